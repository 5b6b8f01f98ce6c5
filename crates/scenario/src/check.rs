//! What no part of a scenario can know by itself: whether the parts fit each other.

use crate::link::{Capacity, Link};
use crate::network::Network;
use crate::read::{Findings, shortened};
use crate::scenario::Scenario;
use crate::topology::Topology;
use crate::traffic::Traffic;
use crate::value::Buffer;
use crate::workload::{Arrivals, Intensity};
use queuescope_queue::{AbcParams, Limit, PipelineParams, QueueLength};
use queuescope_text::did_you_mean;
use queuescope_text::{Place, Problem};
use queuescope_wire::{ByteCount, Nanos};
use std::collections::BTreeSet;

/// Tells what does not fit.
pub(crate) fn check(scenario: &Scenario, findings: &mut Findings) {
    topology(scenario, findings);
    let network = Network::skeleton(scenario);
    limits(scenario, findings);
    programs(scenario, &network, findings);
    traffic(scenario, &network, findings);
    names(scenario, findings);
    for (index, meter) in scenario.meters.iter().enumerate() {
        let known = network.links.iter().map(|link| link.name.as_str());
        known_name(findings, &format!("meters.{index}.link"), "link", &meter.link, known);
    }
}

fn topology(scenario: &Scenario, findings: &mut Findings) {
    let place = findings.place("wires");
    match (scenario.topology, scenario.wires.is_empty()) {
        (Topology::Graph, true) if !findings.has_failed("wires") => {
            let place = findings.place("topology");
            findings.tell(|| {
                Problem::new("the graph has no links")
                    .at(place, "")
                    .help("write [[wires]] with `from` and `to` for each")
            });
        }
        (Topology::Dumbbell | Topology::ParkingLot { .. }, false) if !findings.has_failed("topology") => {
            findings.tell(|| {
                Problem::new("only a graph has wires")
                    .at(place, "")
                    .help("write topology = \"graph\", or take them away")
            });
        }
        _ => {}
    }
    for (index, wire) in scenario.wires.iter().enumerate() {
        for (key, end) in [("from", &wire.from), ("to", &wire.to)] {
            let path = format!("wires.{index}.{key}");
            if end.is_empty() && !findings.has_failed(&path) {
                let place = findings.place(&path);
                findings.tell(|| Problem::new(format!("`{key}` is empty")).at(place, "name a switch"));
            }
        }
        if wire.from == wire.to && !wire.from.is_empty() {
            let place = findings.place(&format!("wires.{index}.to"));
            findings.tell(|| Problem::new("a link leads to where it begins").at(place, "the same as `from`"));
        }
    }
}

/// The links that there are, with their paths.
fn links(scenario: &Scenario) -> impl Iterator<Item = (String, &Link)> {
    let wires = scenario.wires.iter().enumerate().map(|(index, wire)| (format!("wires.{index}"), &wire.link));
    let link = (scenario.topology != Topology::Graph).then(|| ("link".to_owned(), &scenario.link));
    link.into_iter().chain(wires)
}

fn limits(scenario: &Scenario, findings: &mut Findings) {
    for (path, link) in links(scenario) {
        if matches!((link.limit, &link.capacity), (Buffer::Bdp(_), Capacity::Trace(_))) {
            let place = findings.place(&format!("{path}.limit"));
            findings.tell(|| {
                Problem::new("a trace has no rate, and so no product of rate and delay")
                    .at(place, "")
                    .help("write a limit in packets, bytes or time, as \"100packets\"")
            });
        }
        let largest = scenario.largest_packet();
        let fits = match link.limit {
            Buffer::Fixed(Limit::Packets(most)) => most > 0,
            Buffer::Fixed(Limit::Bytes(most)) => most.0 >= largest,
            Buffer::Fixed(Limit::None | Limit::Time(_)) | Buffer::Bdp(_) => true,
        };
        if !fits && !findings.has_failed(&format!("{path}.limit")) {
            let place = place_of(findings, &path, "limit");
            findings.tell(|| {
                Problem::new("the queue has no room for a single packet")
                    .at(place, format!("packets have up to {largest} bytes"))
                    .help(format!("write \"1packets\" or \"{largest}B\" at least"))
            });
        }
    }
}

fn traffic(scenario: &Scenario, network: &Network, findings: &mut Findings) {
    if scenario.flows.is_empty()
        && scenario.workloads.is_empty()
        // If anything else is wrong, what is missing may be there in another form.
        && findings.count() == 0
    {
        let place = findings.place("");
        findings.tell(|| {
            Problem::new("the scenario has no traffic")
                .at(place, "neither [[flows]] nor [[workloads]]")
                .help("add a flow:\n[[flows]]\ntcp = \"cubic\"")
        });
    }
    let flows =
        scenario.flows.iter().enumerate().map(|(index, it)| (format!("flows.{index}"), it.start, &it.from, &it.to));
    let workloads = scenario
        .workloads
        .iter()
        .enumerate()
        .map(|(index, it)| (format!("workloads.{index}"), it.start, &it.from, &it.to));
    for (path, start, from, to) in flows.chain(workloads) {
        starts(scenario, &path, start, findings);
        ends(scenario, network, &path, from, to, findings);
    }
    for (index, flows) in scenario.flows.iter().enumerate() {
        let path = scenario.path_rtt(network, &flows.from, &flows.to);
        if let (Some(rtt), Some(path)) = (flows.rtt, path)
            && rtt < path
            && !findings.has_failed(&format!("flows.{index}.rtt"))
        {
            let place = findings.place(&format!("flows.{index}.rtt"));
            findings.tell(|| {
                Problem::new("the round-trip time is shorter than that of the path")
                    .at(place, format!("the path has {path}"))
                    .help("shorten `delay` of the links, or ask for a longer time")
            });
        }
        if let Traffic::Udp(_) = flows.traffic
            && flows.rtt.is_some()
        {
            let place = findings.place(&format!("flows.{index}.rtt"));
            findings.tell(|| Problem::new("UDP has no round trips").at(place, "").help("take `rtt` away"));
        }
        if let Traffic::Udp(_) = flows.traffic
            && flows.bytes.is_some()
        {
            let place = findings.place(&format!("flows.{index}.bytes"));
            findings.tell(|| {
                let problem = Problem::new("datagrams have no end of so many bytes").at(place, "");
                problem.help("take `bytes` away, and say `stop`")
            });
        }
    }
    for (index, workload) in scenario.workloads.iter().enumerate() {
        let (key, intensity) = match &workload.arrivals {
            Arrivals::Poisson(poisson) => ("poisson", poisson.intensity),
            Arrivals::Datagrams(datagrams) => ("datagrams", datagrams.intensity),
            Arrivals::Incast(_) | Arrivals::Bursts(_) | Arrivals::Capture(_) => continue,
        };
        let route = network.route(&workload.from, &workload.to).unwrap_or_default();
        let traced = route.iter().any(|hop| matches!(network.links[hop.link].capacity, Capacity::Trace(_)));
        let path = format!("workloads.{index}.{key}");
        let failed = findings.has_failed(&path) || findings.has_failed(&format!("{path}.load"));
        if traced && matches!(intensity, Intensity::Load(_)) && !failed {
            let place = findings.place(&format!("{path}.load"));
            findings.tell(|| {
                Problem::new("a trace has no rate to take a share of")
                    .at(place, "")
                    .help("say how often flows come: rate = \"100/s\"")
            });
        }
    }
    let total: u64 = scenario.flows.iter().map(|flows| u64::from(flows.count)).sum();
    if total > 1_000_000 {
        let place = findings.place("flows");
        findings
            .tell(|| Problem::new(format!("there are {total} flows in all, and at most 1000000 can be")).at(place, ""));
    }
}

fn starts(scenario: &Scenario, path: &str, start: Nanos, findings: &mut Findings) {
    let path = format!("{path}.start");
    if start >= scenario.duration && !findings.has_failed(&path) && !findings.has_failed("duration") {
        let place = findings.place(&path);
        let end = scenario.duration;
        findings.tell(|| {
            Problem::new("it starts when the scenario is over").at(place, "").help(format!("`duration` is {end}"))
        });
    }
}

/// Whether traffic has two ends and a way between them.
fn ends(scenario: &Scenario, network: &Network, path: &str, from: &str, to: &str, findings: &mut Findings) {
    let before = findings.count();
    for (key, end) in [("from", from), ("to", to)] {
        let path = format!("{path}.{key}");
        if end.is_empty() && scenario.topology == Topology::Graph {
            let place = findings.place(&path);
            findings.tell(|| {
                Problem::new(format!("`{key}` is missing"))
                    .at(place, "in this table")
                    .help("in a graph, traffic says between which switches it goes")
            });
        } else {
            known_name(findings, &path, "switch", end, network.nodes.iter().map(String::as_str));
        }
    }
    if findings.count() > before || network.nodes.is_empty() {
        return;
    }
    let place = findings.place(&format!("{path}.to"));
    if from == to {
        findings.tell(|| Problem::new("traffic goes from a switch to itself").at(place, "the same as `from`"));
    } else if network.route(from, to).is_none() {
        findings
            .tell(|| Problem::new(format!("no way leads from {} to {}", shortened(from), shortened(to))).at(place, ""));
    }
}

fn known_name<'a>(
    findings: &mut Findings,
    path: &str,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) {
    if findings.has_failed(path) || known.clone().next().is_none() || known.clone().any(|known| known == name) {
        return;
    }
    let place = findings.place(path);
    findings.tell(|| {
        let near = did_you_mean(name, known.clone()).map(|near| format!("{near} ")).unwrap_or_default();
        let mut all: Vec<_> = known.filter(|name| !name.is_empty()).map(shortened).collect();
        if all.len() > 12 {
            all.truncate(12);
            all.push("...".to_owned());
        }
        Problem::new(format!("no {what} is named '{}'", shortened(name)))
            .at(place, format!("no such {what}"))
            .help(format!("{near}there are {}", all.join(", ")))
    });
}

/// A switch has one program, whichever of its ports it is named at; and each fits its link.
fn programs(scenario: &Scenario, network: &Network, findings: &mut Findings) {
    for (index, wire) in scenario.wires.iter().enumerate() {
        let Some(program) = &wire.link.pipeline else { continue };
        let other = scenario.wires[..index].iter().enumerate().find_map(|(n, other)| {
            let theirs = other.link.pipeline.as_ref().filter(|theirs| *theirs != program)?;
            (other.from == wire.from).then_some((n, other, theirs))
        });
        let Some((n, other, theirs)) = other else { continue };
        let place = |wire: usize| place_of(findings, &format!("wires.{wire}"), "pipeline");
        let (here, there) = (place(index), place(n));
        findings.tell(|| {
            let (wire, other, switch) = (shortened(&wire.name), shortened(&other.name), shortened(&wire.from));
            let (program, theirs) = (program.name(), theirs.name());
            let difference = if program == theirs { " with other parameters" } else { "" };
            Problem::new(format!("the switch {switch} has two programs, and can have one"))
                .at(here, format!("{program} for {wire}{difference}"))
                .at(there, format!("{theirs} for {other}"))
                .help(format!(
                    "give both the same, or one of them pipeline = \"none\", or put a switch of its own before one: a \
                     wire from {switch} to it, and {wire} from there"
                ))
        });
    }
    let rtt = scenario.longest_rtt(network);
    for (path, link) in links(scenario) {
        match &link.pipeline {
            Some(PipelineParams::Abc(AbcParams { queue_length: QueueLength::Counted { buffer }, .. })) => {
                holds(scenario, &path, link, rtt, *buffer, findings);
            }
            Some(PipelineParams::ConQuestAqm(params)) => {
                for (n, change) in params.changes.iter().enumerate() {
                    let key = format!("pipeline.conquest-aqm.changes.{n}.at");
                    changes(scenario, &path_of(findings, &path, &key), change.at, findings);
                }
            }
            _ => {}
        }
    }
}

/// What ABC counts as its buffer, the queue must hold: of what that drops, the program does not know.
fn holds(scenario: &Scenario, path: &str, link: &Link, rtt: Nanos, buffer: u64, findings: &mut Findings) {
    let largest = scenario.largest_packet();
    let bytes = largest.saturating_mul(buffer);
    // Before the last of them, all others wait, and the link sends more of each than the queue holds.
    let on_link = largest.saturating_add(link.overhead.on_ip_packet().into());
    let before_the_last = ByteCount(on_link.saturating_mul(buffer.saturating_sub(1)));
    let held = match (scenario.limit_of(link, rtt), &link.capacity) {
        (Limit::None, _) => return,
        (Limit::Packets(packets), _) if packets >= buffer => return,
        (Limit::Packets(packets), _) => format!("{packets} packets"),
        (Limit::Bytes(most), _) if most.0 >= bytes => return,
        (Limit::Bytes(most), _) => format!("{} packets of {largest} bytes", most.0 / largest),
        (Limit::Time(most), Capacity::Rate(rate)) if rate.time_for(before_the_last) <= most => return,
        (Limit::Time(_), Capacity::Rate(_)) => format!("fewer than {buffer} packets of {largest} bytes"),
        (Limit::Time(_), Capacity::Trace(_)) => "as many as the trace lets out in that time".to_owned(),
    };
    if findings.has_failed(&format!("{path}.limit")) || findings.has_failed(&format!("{path}.pipeline")) {
        return;
    }
    let limit = place_of(findings, path, "limit");
    let program = place_of(findings, path, "pipeline.abc.queue-length.counted.buffer");
    findings.tell(|| {
        Problem::new("the queue holds less than ABC's buffer, and would drop what ABC takes for accepted")
            .at(limit, format!("it holds {held}"))
            .at(program, format!("ABC counts on room for {buffer}"))
            .help(format!("write limit = \"{buffer}packets\", or make `buffer` of `queue-length` smaller"))
    });
}

/// Where the value of a link's key stands, or the nearest one around it.
fn place_of(findings: &Findings, path: &str, key: &str) -> Place {
    findings.place(&path_of(findings, path, key))
}

/// The path of a link's key where it is written: at the link, or else in `[link]`.
fn path_of(findings: &Findings, path: &str, key: &str) -> String {
    let first = key.split('.').next().unwrap_or(key);
    let inherited = !findings.is_written(&format!("{path}.{first}")) && findings.is_written(&format!("link.{first}"));
    format!("{}.{key}", if inherited { "link" } else { path })
}

/// A change of a program comes while it runs. Of links with the same program, that is told once.
fn changes(scenario: &Scenario, path: &str, at: Nanos, findings: &mut Findings) {
    if at >= scenario.duration && !findings.has_failed(path) && !findings.has_failed("duration") {
        let place = findings.place(path);
        findings.tell(|| {
            Problem::new("the change comes when the scenario is over")
                .at(place, "")
                .help(format!("`duration` is {}", scenario.duration))
        });
    }
}

/// Names stand for one thing only.
fn names(scenario: &Scenario, findings: &mut Findings) {
    let flows = scenario.flows.iter().enumerate().map(|(index, it)| (format!("flows.{index}.name"), &it.name));
    let workloads =
        scenario.workloads.iter().enumerate().map(|(index, it)| (format!("workloads.{index}.name"), &it.name));
    unique(flows.chain(workloads), findings);
    unique(scenario.wires.iter().enumerate().map(|(index, it)| (format!("wires.{index}.name"), &it.name)), findings);
}

fn unique<'a>(names: impl Iterator<Item = (String, &'a String)>, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (path, name) in names {
        if !seen.insert(name) {
            let place = findings.place(&path);
            findings.tell(|| {
                Problem::new(format!("the name '{}' stands twice", shortened(name)))
                    .at(place, "the second time")
                    .help("give each a name of its own")
            });
        }
    }
}
