//! What no part of a scenario can know by itself: whether the parts fit each other.

use crate::link::Capacity;
use crate::near::did_you_mean;
use crate::network::Network;
use crate::problem::Problem;
use crate::read::{Findings, shortened};
use crate::scenario::Scenario;
use crate::topology::Topology;
use crate::traffic::Traffic;
use crate::value::Buffer;
use crate::workload::{Arrivals, Intensity};
use queuescope_wire::Nanos;
use std::collections::BTreeSet;

/// Tells what does not fit.
pub(crate) fn check(scenario: &Scenario, findings: &mut Findings) {
    topology(scenario, findings);
    let network = Network::skeleton(scenario);
    limits(scenario, findings);
    programs(scenario, findings);
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

fn limits(scenario: &Scenario, findings: &mut Findings) {
    let wires = scenario.wires.iter().enumerate().map(|(index, wire)| (format!("wires.{index}.limit"), &wire.link));
    let link = (scenario.topology != Topology::Graph).then(|| ("link.limit".to_owned(), &scenario.link));
    for (path, link) in link.into_iter().chain(wires) {
        if matches!((link.limit, &link.capacity), (Buffer::Bdp(_), Capacity::Trace(_))) {
            let place = findings.place(&path);
            findings.tell(|| {
                Problem::new("a trace has no rate, and so no product of rate and delay")
                    .at(place, "")
                    .help("write a limit in packets, bytes or time, as \"100packets\"")
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
        let Arrivals::Poisson(poisson) = &workload.arrivals else { continue };
        let route = network.route(&workload.from, &workload.to).unwrap_or_default();
        let traced = route.iter().any(|hop| matches!(network.links[hop.link].capacity, Capacity::Trace(_)));
        let path = format!("workloads.{index}.poisson");
        let failed = findings.has_failed(&path) || findings.has_failed(&format!("{path}.load"));
        if traced && matches!(poisson.intensity, Intensity::Load(_)) && !failed {
            let place = findings.place(&format!("workloads.{index}.poisson.load"));
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

/// A switch has one program, whichever of its ports it is named at.
fn programs(scenario: &Scenario, findings: &mut Findings) {
    for (index, wire) in scenario.wires.iter().enumerate() {
        let Some(program) = &wire.link.pipeline else { continue };
        let other = scenario.wires[..index].iter().find(|other| {
            other.from == wire.from && other.link.pipeline.as_ref().is_some_and(|other| other != program)
        });
        if let Some(other) = other {
            let place = findings.place(&format!("wires.{index}.pipeline"));
            findings.tell(|| {
                Problem::new(format!("the switch {} has two programs", shortened(&wire.from)))
                    .at(place, format!("another than at {}", shortened(&other.name)))
                    .help("give all its wires the same, or split the switch")
            });
        }
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
