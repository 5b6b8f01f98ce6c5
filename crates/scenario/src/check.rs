//! Checks across the parts of a scenario: whether they fit each other.

use crate::link::{Capacity, Link};
use crate::network::Network;
use crate::read::{Findings, shortened};
use crate::scenario::Scenario;
use crate::topology::Topology;
use crate::traffic::Traffic;
use crate::value::Buffer;
use crate::workload::{Arrivals, Intensity};
use queuescope_queue::{
    AbcParams, ActAt, ConQuestAqmParams, FlowLimit, HeldAction, HoldParams, Limit, PipelineParams, QueueLength,
};
use queuescope_text::did_you_mean;
use queuescope_text::{Place, Problem};
use queuescope_wire::{ByteCount, Nanos};
use std::collections::BTreeSet;

/// Reports the parts that do not fit.
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
            findings.report(|| {
                Problem::new("the graph has no links")
                    .at(place, "")
                    .help("write [[wires]] with `from` and `to` for each")
            });
        }
        (Topology::Dumbbell | Topology::ParkingLot { .. }, false) if !findings.has_failed("topology") => {
            findings.report(|| {
                Problem::new("only a graph has wires")
                    .at(place, "")
                    .help("write topology = \"graph\", or remove [[wires]]")
            });
        }
        _ => {}
    }
    for (index, wire) in scenario.wires.iter().enumerate() {
        for (key, end) in [("from", &wire.from), ("to", &wire.to)] {
            let path = format!("wires.{index}.{key}");
            if end.is_empty() && !findings.has_failed(&path) {
                let place = findings.place(&path);
                findings.report(|| Problem::new(format!("`{key}` is empty")).at(place, "name a switch"));
            }
        }
        if wire.from == wire.to && !wire.from.is_empty() {
            let place = findings.place(&format!("wires.{index}.to"));
            findings
                .report(|| Problem::new("the link starts and ends at the same switch").at(place, "the same as `from`"));
        }
    }
}

/// The links of the scenario, with their paths.
fn links(scenario: &Scenario) -> impl Iterator<Item = (String, &Link)> {
    let wires = scenario.wires.iter().enumerate().map(|(index, wire)| (format!("wires.{index}"), &wire.link));
    let link = (scenario.topology != Topology::Graph).then(|| ("link".to_owned(), &scenario.link));
    link.into_iter().chain(wires)
}

fn limits(scenario: &Scenario, findings: &mut Findings) {
    for (path, link) in links(scenario) {
        if matches!((link.limit, &link.capacity), (Buffer::Bdp(_), Capacity::Trace(_))) {
            let place = findings.place(&format!("{path}.limit"));
            findings.report(|| {
                Problem::new("a trace has no rate, so a limit in `bdp` is undefined")
                    .at(place, "")
                    .help("write a limit in packets, bytes or time, for example \"100packets\"")
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
            findings.report(|| {
                Problem::new("the queue has no room for a single packet")
                    .at(place, format!("packets have up to {largest} bytes"))
                    .help(format!("write at least \"1packets\" or \"{largest}B\""))
            });
        }
    }
}

fn traffic(scenario: &Scenario, network: &Network, findings: &mut Findings) {
    if scenario.flows.is_empty()
        && scenario.workloads.is_empty()
        // After another problem, the traffic may be there but unreadable.
        && findings.count() == 0
    {
        let place = findings.place("");
        findings.report(|| {
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
        start_time(scenario, &path, start, findings);
        endpoints(scenario, network, &path, from, to, findings);
    }
    for (index, flows) in scenario.flows.iter().enumerate() {
        let path = scenario.path_rtt(network, &flows.from, &flows.to);
        if let (Some(rtt), Some(path)) = (flows.rtt, path)
            && rtt < path
            && !findings.has_failed(&format!("flows.{index}.rtt"))
        {
            let place = findings.place(&format!("flows.{index}.rtt"));
            findings.report(|| {
                Problem::new("the round-trip time is shorter than that of the path")
                    .at(place, format!("the path has {path}"))
                    .help("reduce `delay` of the links, or write a longer `rtt`")
            });
        }
        if let Traffic::Udp(_) = flows.traffic
            && flows.rtt.is_some()
        {
            let place = findings.place(&format!("flows.{index}.rtt"));
            findings.report(|| Problem::new("UDP flows have no round-trip time").at(place, "").help("remove `rtt`"));
        }
        if let Traffic::Udp(_) = flows.traffic
            && flows.bytes.is_some()
        {
            let place = findings.place(&format!("flows.{index}.bytes"));
            findings.report(|| {
                let problem = Problem::new("UDP flows do not end after a number of bytes").at(place, "");
                problem.help("remove `bytes`, and write `stop`")
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
            findings.report(|| {
                Problem::new("a trace has no rate, so `load` is undefined")
                    .at(place, "")
                    .help("write how often flows start: rate = \"100/s\"")
            });
        }
    }
    let total: u64 = scenario.flows.iter().map(|flows| u64::from(flows.count)).sum();
    if total > 1_000_000 {
        let place = findings.place("flows");
        findings.report(|| {
            Problem::new(format!("there are {total} flows in total, and at most 1000000 are allowed")).at(place, "")
        });
    }
}

fn start_time(scenario: &Scenario, path: &str, start: Nanos, findings: &mut Findings) {
    let path = format!("{path}.start");
    if start >= scenario.duration && !findings.has_failed(&path) && !findings.has_failed("duration") {
        let place = findings.place(&path);
        let end = scenario.duration;
        findings.report(|| {
            Problem::new("the traffic starts after the end of the scenario")
                .at(place, "")
                .help(format!("`duration` is {end}"))
        });
    }
}

/// Checks that traffic has two ends and a route between them.
fn endpoints(scenario: &Scenario, network: &Network, path: &str, from: &str, to: &str, findings: &mut Findings) {
    let before = findings.count();
    for (key, end) in [("from", from), ("to", to)] {
        let path = format!("{path}.{key}");
        if end.is_empty() && scenario.topology == Topology::Graph {
            let place = findings.place(&path);
            findings.report(|| {
                Problem::new(format!("`{key}` is missing"))
                    .at(place, "in this table")
                    .help("in a graph, traffic needs `from` and `to`")
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
        findings.report(|| Problem::new("traffic goes from a switch to itself").at(place, "the same as `from`"));
    } else if network.route(from, to).is_none() {
        findings.report(|| {
            Problem::new(format!("there is no route from {} to {}", shortened(from), shortened(to))).at(place, "")
        });
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
    findings.report(|| {
        let near = did_you_mean(name, known.clone()).map(|near| format!("{near} ")).unwrap_or_default();
        let mut all: Vec<_> = known.filter(|name| !name.is_empty()).map(shortened).collect();
        if all.len() > 12 {
            all.truncate(12);
            all.push("...".to_owned());
        }
        Problem::new(format!("no {what} is named '{}'", shortened(name)))
            .at(place, format!("unknown {what}"))
            .help(format!("{near}there are {}", all.join(", ")))
    });
}

/// Checks that all links of a switch name the same program, and that each program fits its link.
fn programs(scenario: &Scenario, network: &Network, findings: &mut Findings) {
    for (index, wire) in scenario.wires.iter().enumerate() {
        let Some(program) = &wire.link.pipeline else { continue };
        let other = scenario.wires[..index].iter().enumerate().find_map(|(n, other)| {
            let other_program = other.link.pipeline.as_ref().filter(|it| *it != program)?;
            (other.from == wire.from).then_some((n, other, other_program))
        });
        let Some((n, other, other_program)) = other else { continue };
        let place = |wire: usize| place_of(findings, &format!("wires.{wire}"), "pipeline");
        let (here, there) = (place(index), place(n));
        findings.report(|| {
            let (wire, other, switch) = (shortened(&wire.name), shortened(&other.name), shortened(&wire.from));
            let (program, other_program) = (program.name(), other_program.name());
            let difference = if program == other_program { " with other parameters" } else { "" };
            Problem::new(format!("the switch {switch} has two programs, but can have only one"))
                .at(here, format!("{program} for {wire}{difference}"))
                .at(there, format!("{other_program} for {other}"))
                .help(format!(
                    "give both the same program, or one of them pipeline = \"none\", or insert another switch: a wire \
                     from {switch} to it, and {wire} from there"
                ))
        });
    }
    let rtt = scenario.longest_rtt(network);
    for (path, link) in links(scenario) {
        match &link.pipeline {
            Some(PipelineParams::Abc(AbcParams { queue_length: QueueLength::Counted { buffer }, .. })) => {
                abc_buffer(scenario, &path, link, rtt, *buffer, findings);
            }
            Some(PipelineParams::ConQuestAqm(params)) => {
                flow_limit(scenario, &path, link, params, findings);
                for (n, change) in params.changes.iter().enumerate() {
                    let key = format!("pipeline.conquest-aqm.changes.{n}.at");
                    change_time(scenario, &path_of(findings, &path, &key), change.at, findings);
                }
            }
            _ => {}
        }
    }
}

/// Checks that the queue holds at least ABC's buffer, because ABC does not know of packets that the queue drops.
fn abc_buffer(scenario: &Scenario, path: &str, link: &Link, rtt: Nanos, buffer: u64, findings: &mut Findings) {
    let largest = scenario.largest_packet();
    let bytes = largest.saturating_mul(buffer);
    // A limit in time counts the packets ahead of the last one, including what the link adds to each.
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
        (Limit::Time(_), Capacity::Trace(_)) => "as many packets as the trace sends in that time".to_owned(),
    };
    if findings.has_failed(&format!("{path}.limit")) || findings.has_failed(&format!("{path}.pipeline")) {
        return;
    }
    let limit = place_of(findings, path, "limit");
    let program = place_of(findings, path, "pipeline.abc.queue-length.counted.buffer");
    findings.report(|| {
        Problem::new("the queue holds less than ABC's buffer, and would drop packets that ABC counts as accepted")
            .at(limit, format!("it holds {held}"))
            .at(program, format!("ABC assumes room for {buffer} packets"))
            .help(format!("write limit = \"{buffer}packets\", or reduce `buffer` of `queue-length`"))
    });
}

/// Checks that ConQuest limits held flows to less than the rate of the link: a limit above it does nothing.
fn flow_limit(scenario: &Scenario, path: &str, link: &Link, params: &ConQuestAqmParams, findings: &mut Findings) {
    let ActAt::Ingress(HoldParams { action: HeldAction::Limit(FlowLimit { interval, .. }), .. }) = params.act_at else {
        return;
    };
    // How often a trace sends is not known here.
    let Capacity::Rate(rate) = link.capacity else { return };
    let largest = scenario.largest_packet().saturating_add(link.overhead.on_ip_packet().into());
    let on_link = rate.time_for(ByteCount(largest));
    if interval > on_link || [".rate", ".pipeline"].iter().any(|key| findings.has_failed(&format!("{path}{key}"))) {
        return;
    }
    let program = place_of(findings, path, "pipeline.conquest-aqm.act-at.ingress.action.limit.interval");
    let capacity = place_of(findings, path, "rate");
    findings.report(|| {
        // A tenth of the link, as by default on 10 Gb/s.
        let tenth = on_link.0.saturating_mul(10).div_ceil(1000);
        Problem::new("the limit of held flows is not below the rate of the link, so it limits none")
            .at(program, format!("a packet of {largest} bytes each {interval}"))
            .at(capacity, format!("at {rate}, such a packet takes {on_link}"))
            .help(format!("write interval = \"{tenth}us\", which is a tenth of the link"))
    });
}

/// The place of the value of a link's key, or of the nearest table around it.
fn place_of(findings: &Findings, path: &str, key: &str) -> Place {
    findings.place(&path_of(findings, path, key))
}

/// The path where a link's key is written: at the link, or else in `[link]`.
fn path_of(findings: &Findings, path: &str, key: &str) -> String {
    let first = key.split('.').next().unwrap_or(key);
    let inherited = !findings.is_written(&format!("{path}.{first}")) && findings.is_written(&format!("link.{first}"));
    format!("{}.{key}", if inherited { "link" } else { path })
}

/// Checks that a program's change is before the end of the scenario. Links that inherit the same program report it
/// once.
fn change_time(scenario: &Scenario, path: &str, at: Nanos, findings: &mut Findings) {
    if at >= scenario.duration && !findings.has_failed(path) && !findings.has_failed("duration") {
        let place = findings.place(path);
        findings.report(|| {
            Problem::new("the change is after the end of the scenario")
                .at(place, "")
                .help(format!("`duration` is {}", scenario.duration))
        });
    }
}

/// Checks that names are unique.
fn names(scenario: &Scenario, findings: &mut Findings) {
    let flows = scenario.flows.iter().enumerate().map(|(index, it)| (format!("flows.{index}.name"), &it.name));
    let workloads =
        scenario.workloads.iter().enumerate().map(|(index, it)| (format!("workloads.{index}.name"), &it.name));
    unique(flows.chain(workloads), findings);
    unique(scenario.wires.iter().enumerate().map(|(index, it)| (format!("wires.{index}.name"), &it.name)), findings);
}

fn unique<'a>(names: impl Iterator<Item = (String, &'a String)>, findings: &mut Findings) {
    let mut known = BTreeSet::new();
    for (path, name) in names {
        if !known.insert(name) {
            let place = findings.place(&path);
            findings.report(|| {
                Problem::new(format!("the name '{}' is used twice", shortened(name)))
                    .at(place, "the second use")
                    .help("give each its own name")
            });
        }
    }
}
