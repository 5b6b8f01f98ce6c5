//! Builds a simulation from a scenario.

mod programs;
mod workloads;

use crate::BuildError;
use crate::connection::Transport;
use crate::link::LinkRate;
use crate::seed;
use crate::shapes::{RECIRCULATION, Wire, add_both};
use crate::simulation::Simulation;
use crate::topology::{LinkId, NodeId, SwitchParams, Topology};
use crate::trace::RateTrace;
use crate::traffic::{Datagram, DatagramParams};
use crate::workload::{CapturedPacket, FlowStart, OnOff, Random, Spacing, Span, UdpParams, UdpSource};
use programs::Promise;
pub(crate) use programs::fitted;
use queuescope_queue::{Activity, DisciplineFactory, DisciplineParams, Host};
use queuescope_scenario::{self as scenario, Capacity, FlowGroup, Network, NetworkLink, Scenario, Traffic};
use queuescope_tcp::ControlFactory;
use queuescope_wire::{Class, Ecn, Nanos};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use workloads::add_workload;

/// A simulation that was built from a scenario.
#[derive(Debug)]
pub struct Built {
    /// The simulation.
    pub simulation: Simulation,
    /// The groups of flows and the workloads, indexed by the group number of flows.
    pub groups: Vec<Group>,
    /// The measured links, in the order of the scenario's meters; the first link if it names none.
    pub meters: Vec<LinkId>,
    /// The sender and the receiver of each flow of each group; several flows may have the same.
    pub hosts: Vec<Vec<(NodeId, NodeId)>>,
}

/// A group of flows, or a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// `tcp` and its congestion control, or `udp`.
    pub transport: String,
}

/// The contents of the files that a scenario names, by the paths in the scenario.
#[derive(Debug, Default)]
pub struct Files {
    /// Traces of links.
    pub traces: BTreeMap<String, RateTrace>,
    /// Captures, in order of time.
    pub captures: BTreeMap<String, Arc<[CapturedPacket]>>,
}

/// The paths of the files that a scenario names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedFiles {
    /// Traces of links.
    pub traces: BTreeSet<String>,
    /// Captures.
    pub captures: BTreeSet<String>,
}

impl NamedFiles {
    /// All paths: first those of traces, then those of captures.
    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.traces.iter().chain(&self.captures)
    }
}

/// The paths of the files that a scenario names.
pub fn files_of(scenario: &Scenario) -> NamedFiles {
    let traces = scenario.network().links.into_iter().filter_map(|link| match link.capacity {
        Capacity::Trace(path) => Some(path),
        Capacity::Rate(_) => None,
    });
    let captures = scenario.workloads.iter().filter_map(|load| match &load.arrivals {
        scenario::Arrivals::Capture(capture) => Some(capture.file.clone()),
        _ => None,
    });
    NamedFiles { traces: traces.collect(), captures: captures.collect() }
}

/// Disciplines and congestion controls from outside, in place of those of a scenario.
///
/// ```
/// use queuescope_queue::{DisciplineFactory, TailDrop, TailDropParams};
/// use queuescope_scenario::Scenario;
/// use queuescope_sim::{Files, Own, build_with};
///
/// let scenario = Scenario::parse("mine", "[[flows]]\nname = \"bulk\"", &[])?;
/// let mine = DisciplineFactory::new("mine", |outlet| TailDrop::new(TailDropParams::default(), outlet));
/// let own = Own { disciplines: [("bottleneck".to_owned(), mine)].into(), ..Own::default() };
/// let built = build_with(&scenario, &Files::default(), &own)?;
/// assert_eq!(built.simulation.discipline(built.meters[0]).0, "mine");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// Disciplines, by the names of the links whose queues they manage in the direction of the name.
    pub disciplines: BTreeMap<String, DisciplineFactory>,
    /// Congestion controls, by the names of groups of flows.
    pub controls: BTreeMap<String, ControlFactory>,
}

impl Own {
    /// Checks that the scenario has the links and the groups, and that congestion controls and switch programs leave room for them.
    fn check(&self, scenario: &Scenario, network: &Network) -> Result<(), BuildError> {
        for name in self.disciplines.keys() {
            let link = network.links.iter().find(|link| link.name == *name);
            match link {
                None => {
                    let known = network.links.iter().map(|link| link.name.clone()).collect();
                    return Err(BuildError::NoLink { name: name.clone(), known });
                }
                Some(link) if link.pipeline.is_some() => return Err(BuildError::HasProgram { link: name.clone() }),
                Some(_) => {}
            }
        }
        let groups = scenario.flows.iter().filter(|flows| matches!(flows.traffic, Traffic::Tcp(_)));
        let known: Vec<_> = groups.map(|flows| flows.name.clone()).collect();
        match self.controls.keys().find(|name| !known.contains(name)) {
            Some(name) => Err(BuildError::NoGroup { name: name.clone(), known }),
            None => Ok(()),
        }
    }
}

/// Like [`build`], with disciplines and congestion controls of your own in places of the scenario.
///
/// # Errors
/// As [`build`]. Fails also if the scenario lacks a link or a group of TCP flows that `own` names, or has a switch program at the link.
pub fn build_with(scenario: &Scenario, files: &Files, own: &Own) -> Result<Built, BuildError> {
    own.check(scenario, &scenario.network())?;
    let mut built = lay_out(scenario, files, own)?;
    let Built { simulation, hosts, .. } = &mut built;
    // All hosts of a group are between the same two switches: there are routes for all of them, or for none.
    for (from, to) in hosts.iter().filter_map(|hosts| hosts.first()) {
        simulation.way(*from, *to)?;
        simulation.way(*to, *from)?;
    }
    for source in traffic(scenario, files, hosts)? {
        match source {
            TrafficSource::Flows { group, mut transport, stop, starts } => {
                let name = scenario.flows.get(group as usize).map(|flows| flows.name.as_str());
                if let Some(control) = name.and_then(|name| own.controls.get(name)) {
                    transport.algorithm = control.clone().into();
                }
                simulation.add_flows(group, *transport, stop, starts)?;
            }
            TrafficSource::Datagrams { params, datagrams } => simulation.add_datagrams(params, datagrams)?,
        }
    }
    Ok(built.sampled(scenario))
}

/// Builds the simulation that a scenario describes.
///
/// # Errors
/// Fails if a file is missing, or if no route leads from one host to another.
///
/// ```
/// use queuescope_scenario::Scenario;
/// use queuescope_sim::{Files, build};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/bufferbloat.toml");
/// let text = std::fs::read_to_string(path)?;
/// let scenario = Scenario::parse("bufferbloat.toml", &text, &[])?;
/// let mut built = build(&scenario, &Files::default())?;
/// built.simulation.run_until("2s".parse()?, &mut ());
/// for &link in &built.meters {
///     let stats = built.simulation.link(link);
///     println!("{}: {} packets", built.simulation.topology().link(link).name, stats.sent.packets);
///     assert!(stats.sent.packets > 0);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn build(scenario: &Scenario, files: &Files) -> Result<Built, BuildError> {
    build_with(scenario, files, &Own::default())
}

/// The traffic of a group in a scenario. It is the same for the same scenario, whatever runs it.
pub enum TrafficSource {
    /// Flows of the same kind.
    Flows {
        /// The number of their group.
        group: u32,
        /// Their transport parameters.
        transport: Box<Transport>,
        /// When they stop sending.
        stop: Option<Nanos>,
        /// When each flow starts, in order of time, and between which nodes.
        starts: Box<dyn Iterator<Item = FlowStart> + Send>,
    },
    /// Datagrams from one host to another.
    Datagrams {
        /// What they have in common.
        params: DatagramParams,
        /// The datagrams, in order of time.
        datagrams: Box<dyn Iterator<Item = Datagram> + Send>,
    },
}

/// The traffic of a scenario between the `hosts` that [`build_without_traffic`] made for it.
///
/// # Errors
/// Fails if the traffic is not possible, or if a file is missing.
pub fn traffic(
    scenario: &Scenario,
    files: &Files,
    hosts: &[Vec<(NodeId, NodeId)>],
) -> Result<Vec<TrafficSource>, BuildError> {
    let mut sources = Vec::new();
    for (group, (flows, hosts)) in (0..).zip(scenario.flows.iter().zip(hosts)) {
        add_flows(&mut sources, scenario, group, flows, hosts)?;
    }
    let network = scenario.network();
    for (group, load) in (scenario.flows.len()..).zip(&scenario.workloads) {
        add_workload(&mut sources, scenario, &network, files, group as u32, load, &hosts[group])?;
    }
    Ok(sources)
}

/// Like [`build`], without traffic: for packets from outside.
///
/// # Errors
/// As [`build`].
pub fn build_without_traffic(scenario: &Scenario, files: &Files) -> Result<Built, BuildError> {
    Ok(lay_out(scenario, files, &Own::default())?.sampled(scenario))
}

impl Built {
    /// Samples the state from here on, if the scenario says so.
    fn sampled(mut self, scenario: &Scenario) -> Self {
        if let Some(interval) = scenario.record.interval {
            self.simulation.sample_every(interval);
        }
        self
    }
}

/// Builds the network and the hosts.
fn lay_out(scenario: &Scenario, files: &Files, own: &Own) -> Result<Built, BuildError> {
    let network = scenario.network();
    let mut builder =
        Builder { scenario, network, topology: Topology::default(), hosts: Vec::new(), links: Vec::new() };
    builder.links(files, own)?;
    let mut hosts = Vec::new();
    for flows in &scenario.flows {
        hosts.push(builder.hosts_of(flows)?);
    }
    for load in &scenario.workloads {
        hosts.push(builder.hosts_of_workload(load)?);
    }
    builder.switches(&hosts);
    let Builder { network, topology, links, .. } = builder;
    let mut simulation = Simulation::new(topology, scenario.seed, scenario.warmup)?;
    if scenario.profile == scenario::Profile::Ns3 {
        simulation.order_as_ns3();
        simulation.round_as_ns3();
    }
    let flows = scenario.flows.iter();
    let flows = flows.map(|flows| Group { name: flows.name.clone(), transport: transport_name(&flows.traffic) });
    let loads = scenario.workloads.iter();
    let loads = loads.map(|load| Group { name: load.name.clone(), transport: workloads::transport_name(load) });
    let groups = flows.chain(loads).collect();
    let watched = scenario.meters.iter().filter_map(|meter| {
        let link = network.links.iter().position(|link| link.name == meter.link)?;
        Some(if meter.reverse { links[link].1 } else { links[link].0 })
    });
    let mut meters: Vec<_> = watched.collect();
    if meters.is_empty() {
        meters.extend(links.first().map(|(there, _)| *there));
    }
    Ok(Built { simulation, groups, meters, hosts })
}

struct Builder<'a> {
    scenario: &'a Scenario,
    network: Network,
    topology: Topology,
    /// The switches, by their index in the network.
    hosts: Vec<NodeId>,
    /// Both directions of each link of the network.
    links: Vec<(LinkId, LinkId)>,
}

/// The sender and the receiver of a flow.
type Pair = (NodeId, NodeId);

impl Builder<'_> {
    /// Adds the switches and the links between them.
    fn links(&mut self, files: &Files, own: &Own) -> Result<(), BuildError> {
        let nodes: Vec<_> = self.network.nodes.iter().map(|name| self.topology.add_node(name)).collect();
        self.hosts = nodes.clone();
        for link in &self.network.links {
            let rate = match &link.capacity {
                Capacity::Rate(rate) => LinkRate::Constant(*rate),
                Capacity::Trace(path) => LinkRate::Varying(
                    files.traces.get(path).ok_or_else(|| BuildError::NoFile { path: path.clone() })?.clone(),
                ),
            };
            let overhead = link.overhead;
            let discipline = own.disciplines.get(&link.name).cloned();
            let discipline = discipline.map_or_else(|| link.discipline.clone().into(), Into::into);
            let there = Wire { rate, delay: link.delay, overhead, discipline };
            let names = (link.name.clone(), format!("{}-back", link.name));
            let ends = (nodes[link.ends.0], nodes[link.ends.1]);
            let both = add_both(&mut self.topology, (&names.0, &names.1), ends, &there, true);
            self.topology.link_mut(both.0).loss = link.loss;
            let back = self.topology.link_mut(both.1);
            back.loss = link.loss;
            back.discipline = link.reverse_discipline.clone().into();
            back.measured = link.reverse_discipline != DisciplineParams::default();
            if let Some(rate) = link.reverse_rate {
                back.rate = LinkRate::Constant(rate);
            }
            self.links.push(both);
        }
        Ok(())
    }

    /// Adds the programs of switches, fitted to their ports. Links with a program at one switch have the same
    /// one; each queue has the limit of its link.
    fn switches(&mut self, hosts: &[Vec<Pair>]) {
        let promises = self.promises(hosts);
        for (place, node) in self.hosts.iter().enumerate() {
            let here = || self.network.links.iter().zip(&self.links).filter(|(link, _)| link.ends.0 == place);
            let Some(pipeline) = here().find_map(|(link, _)| link.pipeline.clone()) else { continue };
            let limit = |link: &NetworkLink| link.pipeline.as_ref().map(|program| program.queue().limit);
            let managed: Vec<_> = here().filter_map(|(link, both)| Some((both.0, limit(link)?))).collect();
            let ports: Vec<_> = self.topology.links_from(*node).collect();
            let at: Vec<_> = ports.iter().map(|port| managed.iter().any(|(link, _)| link == port)).collect();
            let pipeline = fitted(pipeline, &at, &promises).into();
            self.topology.set_switch(*node, SwitchParams { pipeline, managed, recirculation: RECIRCULATION });
        }
    }

    /// The promises to hosts, for switches that meter them: the reference rate of senders, and the class of
    /// senders and receivers. Hosts without promises are left out.
    fn promises(&self, hosts: &[Vec<Pair>]) -> Vec<(Host, Promise)> {
        let flows = self.scenario.flows.iter().map(|flows| (flows.reference, flows.class));
        let loads = self.scenario.workloads.iter().map(|load| (load.reference, load.class));
        let mut promised = Vec::new();
        for ((reference, class), hosts) in flows.chain(loads).zip(hosts) {
            let class = Class(class);
            for (sender, receiver) in hosts {
                promised.push((Host(sender.0), Promise { reference, class }));
                promised.push((Host(receiver.0), Promise { reference: None, class }));
            }
        }
        promised.retain(|(_, promise)| *promise != Promise::default());
        promised
    }

    /// Adds a sender and a receiver for each flow of a group. Senders get extra delay for the part of the group's round-trip
    /// time that exceeds the path's.
    fn hosts_of(&mut self, flows: &FlowGroup) -> Result<Vec<Pair>, BuildError> {
        let hosts = flows.hosts.unwrap_or(flows.count);
        let path = self.scenario.path_rtt(&self.network, &flows.from, &flows.to).unwrap_or(Nanos::ZERO);
        let extra = flows.rtt.map_or(Nanos::ZERO, |rtt| Nanos(rtt.saturating_sub(path).0 / 2));
        (0..hosts).map(|n| self.pair(&flows.name, n, &flows.from, &flows.to, extra)).collect()
    }

    fn hosts_of_workload(&mut self, load: &scenario::Workload) -> Result<Vec<Pair>, BuildError> {
        let pairs = match &load.arrivals {
            scenario::Arrivals::Incast(incast) => incast.senders,
            _ => load.hosts,
        };
        (0..pairs).map(|n| self.pair(&load.name, n, &load.from, &load.to, Nanos::ZERO)).collect()
    }

    /// Adds sender number `n` of a group, from 0, at one switch, and its receiver at another.
    fn pair(&mut self, group: &str, n: u32, from: &str, to: &str, extra: Nanos) -> Result<Pair, BuildError> {
        let access = &self.scenario.access;
        let wire = |delay| Wire {
            rate: LinkRate::Constant(access.rate),
            delay,
            overhead: self.scenario.link.overhead.on_ip_packet(),
            discipline: DisciplineParams::default().into(),
        };
        let (near, far) = (wire(access.delay.saturating_add(extra)), wire(access.delay));
        let sender = self.topology.add_node(format!("{group}-sender-{}", n + 1));
        let receiver = self.topology.add_node(format!("{group}-receiver-{}", n + 1));
        let (from, to) = (self.switch(from)?, self.switch(to)?);
        let names = |host: NodeId| (format!("up-{}", host.0), format!("down-{}", host.0));
        let name = names(sender);
        add_both(&mut self.topology, (&name.0, &name.1), (sender, from), &near, false);
        let name = names(receiver);
        add_both(&mut self.topology, (&name.1, &name.0), (to, receiver), &far, false);
        Ok((sender, receiver))
    }

    fn switch(&self, name: &str) -> Result<NodeId, BuildError> {
        let place = self.network.node(name).and_then(|place| self.hosts.get(place).copied());
        place.ok_or_else(|| BuildError::NoSwitch { name: name.to_owned() })
    }
}

/// The name of a group's transport in reports.
fn transport_name(traffic: &Traffic) -> String {
    match traffic {
        Traffic::Tcp(params) => format!("tcp {}", params.algorithm()),
        Traffic::Udp(_) => "udp".to_owned(),
    }
}

fn add_flows(
    sources: &mut Vec<TrafficSource>,
    scenario: &Scenario,
    group: u32,
    flows: &FlowGroup,
    hosts: &[Pair],
) -> Result<(), BuildError> {
    let mut random = Random::new(seed_of(scenario, group));
    let class = Class(flows.class);
    let activity = flows.activity.map(|activity| Activity::nearest(activity, Activity::FRACTION_BITS));
    let start = |n: u32, random: &mut Random| {
        let spread = if flows.spread == Nanos::ZERO { 0 } else { random.below(flows.spread.0) };
        Nanos(flows.start.0.saturating_add(flows.stagger.0.saturating_mul(u64::from(n))).saturating_add(spread))
    };
    let of = |n: u32| hosts[n as usize % hosts.len()];
    match &flows.traffic {
        Traffic::Tcp(algorithm) => {
            let transport =
                Transport { tcp: flows.stack, algorithm: (*algorithm).into(), class, l4s: flows.l4s, activity };
            let mut starts: Vec<_> = (0..flows.count)
                .map(|n| {
                    let ((from, to), bytes) = (of(n), flows.bytes.map(|bytes| bytes.0));
                    FlowStart { at: start(n, &mut random), from: from.0 as usize, to: to.0 as usize, bytes }
                })
                .collect();
            starts.sort_by_key(|start| start.at);
            let starts = Box::new(starts.into_iter());
            let transport = Box::new(transport);
            sources.push(TrafficSource::Flows { group, transport, stop: flows.stop, starts });
        }
        Traffic::Udp(udp) => {
            let ecn = match (flows.stack.ecn, flows.l4s) {
                (false, _) => Ecn::NotEct,
                (true, false) => Ecn::Ect0,
                (true, true) => Ecn::Ect1,
            };
            let span = |time| if udp.random { Span::Exponential(time) } else { Span::Fixed(time) };
            let on_off = (udp.off > Nanos::ZERO).then(|| OnOff { on: span(udp.on), off: span(udp.off) });
            for n in 0..flows.count {
                let (from, to) = of(n);
                let params = UdpParams {
                    rate: udp.rate,
                    size: udp.packet,
                    spacing: match udp.spacing {
                        scenario::Spacing::Even => Spacing::Even,
                        scenario::Spacing::Jittered => Spacing::Jittered,
                        scenario::Spacing::Poisson => Spacing::Poisson,
                    },
                    on_off,
                    start: start(n, &mut random),
                    until: flows.stop,
                };
                let source = UdpSource::new(&params, seed::derive(seed_of(scenario, group), u64::from(n)))?;
                let params = DatagramParams { group, class, ecn, activity, ..DatagramParams::new(from, to) };
                let datagrams = Box::new(source.map(Datagram::from));
                sources.push(TrafficSource::Datagrams { params, datagrams });
            }
        }
    }
    Ok(())
}

/// The seed of a group.
fn seed_of(scenario: &Scenario, group: u32) -> u64 {
    seed::derive(scenario.seed ^ 0x7472_6166_6669_6373, u64::from(group))
}

#[cfg(test)]
mod tests {
    use super::workloads::sizes;
    use super::*;
    use crate::Choice;
    use queuescope_queue::{Contract, PipelineParams};
    use queuescope_scenario::NamedSizes;

    /// Senders have a reference rate and a class, receivers a class; hosts without promises have the program's defaults.
    #[test]
    fn hosts_have_what_their_flows_and_workloads_were_promised() {
        let text = r#"
            link = { pipeline = { abc = { surcharges = [0.0, 1.0], reference = "7kbps" } } }
            [[flows]]
            [[flows]]
            reference = "1mbps"
            [[workloads]]
            hosts = 1
            class = 1
            poisson = { rate = "5/s" }
        "#;
        let built = build(&Scenario::parse("test", text, &[]).unwrap(), &Files::default()).unwrap();
        let topology = built.simulation.topology();
        let switches: Vec<_> = topology.nodes.iter().filter_map(|node| node.switch.as_ref()).collect();
        let [SwitchParams { pipeline: Choice::BuiltIn(PipelineParams::Abc(params)), .. }] = switches[..] else {
            panic!("{switches:?}")
        };
        let promised = params.aggregates.hosts.iter().map(|(host, number)| {
            let Contract { reference, class } = params.aggregates.contracts[*number as usize];
            (topology.node_name(NodeId(host.0)), reference.bits_per_second(), class.0)
        });
        let expected =
            [("flows2-sender-1", 1_000_000, 0), ("workload1-sender-1", 7_000, 1), ("workload1-receiver-1", 7_000, 1)];
        assert_eq!(promised.collect::<Vec<_>>(), expected);
        let queues = params.classes.iter().map(|class| (class.queue, class.surcharge)).collect::<Vec<_>>();
        assert_eq!(queues, [(0, 0.0), (1, 1.0)]);
    }

    /// Every flow of datagrams has a five-tuple of its own, flows come in bursts, and their bytes add up to the load.
    #[test]
    fn flows_of_datagrams_are_the_load() {
        #[derive(Default)]
        struct Seen {
            flows: BTreeSet<u16>,
            bytes: u64,
            packets: u64,
        }
        impl crate::Observer for Seen {
            fn departed(
                &mut self,
                link: LinkId,
                departure: &queuescope_wire::Departure,
                packet: &crate::InFlight,
                _headers: &queuescope_queue::Headers,
            ) {
                if link.0 == 0 {
                    self.flows.insert(packet.key().src_port);
                    (self.bytes, self.packets) = (self.bytes + departure.packet.size.0, self.packets + 1);
                    assert!(departure.enqueued.0 % 10_000_000 < 2_100_000, "in bursts only");
                }
            }
        }
        let text = r#"
            duration = "10s"
            link = { rate = "100mbps", limit = "none" }
            [[workloads]]
            hosts = 1
            datagrams = { load = 0.2, sizes = "1000B", on = "2ms", off = "8ms" }
        "#;
        let Built { mut simulation, groups, .. } =
            build(&Scenario::parse("test", text, &[]).unwrap(), &Files::default()).unwrap();
        assert_eq!(groups[0].transport, "udp");
        let mut seen = Seen::default();
        simulation.run_until(Nanos(10_000_000_000), &mut seen);
        // 25 000 flows of 1000 bytes and a header: five standard deviations.
        assert!((seen.packets as f64 - 25_000.0).abs() < 5.0 * 25_000f64.sqrt(), "{}", seen.packets);
        assert_eq!((seen.bytes, seen.flows.len() as u64), (1_028 * seen.packets, seen.packets));
    }

    /// What is set for links and groups of the scenario is used there only; other names are errors.
    #[test]
    fn own_components_have_their_places() {
        use queuescope_queue::{TailDrop, TailDropParams};
        use queuescope_tcp::congestion::{NewReno, NewRenoParams};
        let mine = DisciplineFactory::new("mine", |outlet| TailDrop::new(TailDropParams::default(), outlet));
        let control = ControlFactory::new("own", |opening| {
            NewReno::new(NewRenoParams::default(), opening.mss, opening.initial_window, opening.seed)
        });
        let text = "[[flows]]\nname = \"bulk\"\n[[flows]]\nname = \"call\"\nudp = { rate = \"80kbps\" }";
        let scenario = Scenario::parse("test", text, &[]).unwrap();
        let own = |link: &str, group: &str| Own {
            disciplines: [(link.to_owned(), mine.clone())].into(),
            controls: [(group.to_owned(), control.clone())].into(),
        };
        let built = |own: &Own| build_with(&scenario, &Files::default(), own);
        let Built { simulation, meters, .. } = built(&own("bottleneck", "bulk")).unwrap();
        assert_eq!(simulation.discipline(meters[0]).0, "mine");
        let all = simulation.topology().links().filter(|link| simulation.discipline(*link).0 == "mine");
        assert_eq!(all.count(), 1);
        for (link, group, message) in [
            ("nowhere", "bulk", "there is no link 'nowhere'; the links are bottleneck"),
            ("bottleneck", "call", "there is no group of TCP flows 'call'; the groups are bulk"),
        ] {
            assert_eq!(built(&own(link, group)).unwrap_err().to_string(), message);
        }
        let scenario =
            Scenario::parse("test", "link = { pipeline = \"pie-dp\" }\n[[flows]]\nname = \"bulk\"", &[]).unwrap();
        let error = build_with(&scenario, &Files::default(), &own("bottleneck", "bulk")).unwrap_err();
        assert!(matches!(error, BuildError::HasProgram { .. }), "{error}");
    }

    /// With straight lines between the points, as they were published.
    #[test]
    fn every_name_of_sizes_is_known() {
        let mean = |named: &NamedSizes| sizes(&scenario::Sizes::Named(*named)).unwrap().mean().round();
        assert_eq!(NamedSizes::ALL.iter().map(mean).collect::<Vec<_>>(), [1_711_250.0, 12_658_199.0, 38_800.0]);
    }
}
