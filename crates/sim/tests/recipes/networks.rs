//! Small networks with and without a planted fault; other details depend on the seed.

use queuescope_log::{Definitions, Schema};
use queuescope_queue::{DisciplineParams, Limit, TailDropParams};
use queuescope_sim::shapes::{Wire, add_both};
use queuescope_sim::workload::{FlowStart, Random};
use queuescope_sim::{DatagramParams, DetourParams, LinkRate, NodeId, Simulation, Topology, Transport};
use queuescope_tcp::{Algorithm, Profile, TcpParams};
use queuescope_wire::{ByteCount, Class, Nanos, Rate};
use std::path::Path;

/// A network with traffic, the definitions that watch it, and the planted fault.
pub struct Network {
    pub simulation: Simulation,
    pub definitions: Definitions,
    pub end: Nanos,
    /// The period of triggers: longer than their own, where there are many and a run is long.
    pub look: Nanos,
    /// Switches with a fault.
    pub switches: Vec<NodeId>,
    /// The flows that cause or suffer from the fault, as (source, receiver).
    pub hosts: Vec<(NodeId, NodeId)>,
    pub others: Vec<(NodeId, NodeId)>,
}

/// A millisecond.
pub const MS: u64 = 1_000_000;

/// A host's address.
pub fn address(node: NodeId) -> String {
    format!("10.0.0.{}", node.0)
}

/// Adds a recipe, with values for its parameters.
pub fn add(definitions: &mut Definitions, recipe: &str, values: &[(&str, &str)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../recipes/{recipe}.toml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    definitions.add_text_with(recipe, &text, values).unwrap_or_else(|error| panic!("{error}"));
}

/// A topology under construction, and random numbers.
struct Building {
    topology: Topology,
    chance: Random,
    /// TCP flows: from, to, start, bytes, class.
    flows: Vec<(NodeId, NodeId, Nanos, u64, Class)>,
    definitions: Definitions,
    tcp: TcpParams,
    algorithm: Algorithm,
}

impl Building {
    fn new(seed: u64) -> Self {
        let (topology, chance) = (Topology::default(), Random::new(seed));
        Self {
            topology,
            chance,
            flows: Vec::new(),
            definitions: Definitions::new(Schema::packet()),
            tcp: TcpParams::linux(),
            algorithm: Algorithm::NewReno,
        }
    }

    fn nodes<const N: usize>(&mut self, name: &str) -> [NodeId; N] {
        std::array::from_fn(|n| self.topology.add_node(format!("{name}-{n}")))
    }

    /// A random whole number in a range, its end excluded.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.chance.below(high - low)
    }

    /// A link and the link back; the limit is that of the queue before the first.
    fn link(&mut self, from: NodeId, to: NodeId, mbps: u64, delay_us: u64, limit: Limit) {
        let rate = LinkRate::Constant(Rate::from_bits_per_second(mbps * 1_000_000).expect("it is more than nothing"));
        let discipline = DisciplineParams::TailDrop(TailDropParams { limit });
        let wire = Wire { rate, delay: Nanos(delay_us * 1_000), overhead: 0, discipline: discipline.into() };
        let name = format!("{}-{}", from.0, to.0);
        add_both(&mut self.topology, (&name, &format!("{name}-back")), (from, to), &wire, false);
    }

    /// A host at a switch; its own queue drops nothing.
    fn host(&mut self, name: &str, switch: NodeId, mbps: u64, delay_us: u64) -> NodeId {
        let host = self.topology.add_node(name);
        self.link(host, switch, mbps, delay_us, Limit::None);
        host
    }

    /// A TCP flow, which is watched for retransmissions. The number of its connection is its index.
    fn flow(&mut self, from: NodeId, to: NodeId, at: u64, bytes: u64, class: u8) {
        let number = self.flows.len() as u64;
        self.flows.push((from, to, Nanos(at), bytes, Class(class)));
        let (src, dst, flow) = (address(from), address(to), format!("{}_{}", from.0, to.0));
        let port = (1024 + number).to_string();
        let values = [("flow", &*flow), ("src", &*src), ("src_port", &*port), ("dst", &*dst), ("dst_port", "5001")];
        add(&mut self.definitions, "retransmissions", &values);
    }

    /// Flows get their numbers, and so their ports, in the order in which they start.
    fn simulation(&self, seed: u64) -> Simulation {
        let mut simulation =
            Simulation::new(self.topology.clone(), seed, Nanos::ZERO).unwrap_or_else(|error| panic!("{error}"));
        for (from, to, at, bytes, class) in &self.flows {
            let algorithm = self.algorithm.params(Profile::Linux).into();
            let transport = Transport { tcp: self.tcp, algorithm, class: *class, l4s: false, activity: None };
            let start = FlowStart { at: *at, from: from.0 as usize, to: to.0 as usize, bytes: Some(*bytes) };
            simulation.add_flows(0, transport, None, std::iter::once(start)).unwrap();
        }
        simulation
    }

    /// Datagrams of 1000 bytes in an interval of time, evenly spaced; a few of them early or late.
    fn datagrams(
        &mut self,
        simulation: &mut Simulation,
        ends: (NodeId, NodeId),
        class: u8,
        span: (u64, u64),
        kbps: u64,
    ) {
        let gap = 8_000_000_000 / kbps;
        let count = (span.1 - span.0) / gap;
        let jitter: Vec<_> = (0..count).map(|_| self.chance.below(gap / 4)).collect();
        let start = span.0;
        let datagrams =
            (0..count).zip(jitter).map(move |(n, late)| (Nanos(start + n * gap + late), ByteCount(1000)).into());
        let params = DatagramParams { class: Class(class), ..DatagramParams::new(ends.0, ends.1) };
        simulation.add_datagrams(params, datagrams).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A limit if there is a fault, and none otherwise.
fn limit(fault: bool, packets: u64) -> Limit {
    if fault { Limit::Packets(packets) } else { Limit::None }
}

/// This many path checks, of which the one in the middle is for the switch to which [`stray`] diverts packets.
pub fn checks(count: u32) -> Definitions {
    let mut definitions = Definitions::new(Schema::packet());
    for check in 0..count {
        let switch = if check == count / 2 { OFF.0 } else { 100 + check };
        add(&mut definitions, "path-conformance", &[("switch", &switch.to_string())]);
    }
    definitions
}

/// The switch that is on no route of [`stray`].
const OFF: NodeId = NodeId(2);

/// Two flows through two switches; the fault diverts a share of one flow's packets over a third one.
pub fn stray(seed: u64, fault: bool, definitions: &Definitions) -> Network {
    let mut building = Building::new(seed);
    let [left, right, off] = building.nodes("switch");
    assert_eq!(off, OFF);
    for (from, to, delay) in [(left, right, 100), (left, off, 150), (off, right, 150)] {
        building.link(from, to, 100, delay, Limit::None);
    }
    let hosts: [NodeId; 4] =
        std::array::from_fn(|n| building.host(&format!("host-{n}"), [left, left, right, right][n], 100, 20));
    let pairs = [(hosts[0], hosts[2]), (hosts[1], hosts[3])];
    let strays = building.between(0, 2) as usize;
    for (n, (from, to)) in pairs.iter().enumerate() {
        building.flows.push((*from, *to, Nanos(n as u64 * MS), 60_000, Class(0)));
    }
    let mut simulation = building.simulation(seed);
    if fault {
        let (from, to) = pairs[strays];
        let share = 0.25 + 0.5 * building.chance.open();
        let detour = DetourParams { from, via: off, to, flow: None, share };
        simulation.add_detour(&detour).unwrap_or_else(|error| panic!("{error}"));
    }
    let (hosts, others) = (vec![pairs[strays]], vec![pairs[1 - strays]]);
    let (definitions, end) = (definitions.clone(), Nanos(40 * MS));
    Network { simulation, definitions, end, look: Nanos(MS), switches: vec![off], hosts, others }
}

/// Flows along a chain of four switches, one of which has a slow port with a buffer that is too small; without the
/// fault the port is as slow, and its buffer is unlimited. One flow does not pass it.
pub fn loss(seed: u64, fault: bool) -> Network {
    let mut building = Building::new(seed);
    let chain: [NodeId; 4] = building.nodes("switch");
    let slow = building.between(0, 3) as usize;
    let buffer = building.between(6, 12);
    for n in 0..3 {
        let (mbps, limit) = if n == slow { (20, limit(fault, buffer)) } else { (2_000, Limit::None) };
        building.link(chain[n], chain[n + 1], mbps, 50, limit);
    }
    let count = building.between(2, 6);
    let mut hosts = Vec::new();
    for n in 0..count {
        // Some flows join later, some leave earlier; all pass the slow port.
        let (first, last) = (building.between(0, slow as u64 + 1), building.between(slow as u64 + 1, 4));
        let from = building.host(&format!("sender-{n}"), chain[first as usize], 200, 20);
        let to = building.host(&format!("receiver-{n}"), chain[last as usize], 200, 20);
        hosts.push((from, to));
    }
    let aside = building.host("aside", chain[3], 200, 20);
    let other = (aside, building.host("other", chain[3], 200, 20));
    for (n, (from, to)) in (0..).zip(hosts.iter().chain([&other])) {
        building.flow(*from, *to, n * 100_000, 150_000 / count.max(1) + 20_000, 0);
    }
    for switch in chain {
        add(&mut building.definitions, "packet-loss", &[("switch", &switch.0.to_string()), ("queue", "5kB")]);
    }
    let simulation = building.simulation(seed);
    let switches = vec![chain[slow]];
    let (end, look) = (Nanos(120 * MS), Nanos(5 * MS));
    Network { simulation, definitions: building.definitions, end, look, switches, hosts, others: vec![other] }
}

/// A flow along three switches, with datagrams of a higher class on the first link and others on the second,
/// each for a while. With the fault they exceed the links' capacity; without it they are few.
pub fn losses(seed: u64, fault: bool) -> Network {
    let mut building = Building::new(seed);
    let [first, second, third] = building.nodes("switch");
    let buffer = building.between(8, 14);
    building.link(first, second, 20, 50, Limit::Packets(buffer));
    building.link(second, third, 20, 50, Limit::Packets(buffer));
    let from = building.host("sender", first, 20, 20);
    let to = building.host("receiver", third, 200, 20);
    let crossing = [(first, second), (second, third)]
        .map(|(enter, leave)| (building.host("crossing", enter, 200, 20), building.host("crossed", leave, 200, 20)));
    building.flow(from, to, 0, 200_000, 0);
    let mut simulation = building.simulation(seed);
    for (n, ends) in (0..).zip(crossing) {
        let kbps = if fault { building.between(26_000, 32_000) } else { 500 };
        let start = (5 + n * 30) * MS + building.between(0, 5 * MS);
        building.datagrams(&mut simulation, ends, 1 + n as u8, (start, start + 25 * MS), kbps);
    }
    for switch in [first, second, third] {
        add(&mut building.definitions, "packet-loss", &[("switch", &switch.0.to_string()), ("queue", "5kB")]);
    }
    let hosts = vec![(from, to)];
    let end = Nanos(350 * MS);
    let (switches, look) = (vec![first, second], Nanos(5 * MS));
    Network { simulation, definitions: building.definitions, end, look, switches, hosts, others: crossing.to_vec() }
}

/// Fifteen flows to one receiver behind a port as slow as the links to its switch: one sender is at that
/// switch, two are two switches away, twelve are four away. With the fault the port's buffer is small; without it, unlimited.
pub fn outcast(seed: u64, fault: bool) -> Network {
    let mut building = Building::new(seed);
    // The bounded window lets the others keep the port busy and lose little.
    building.tcp.receive_window = 32_000;
    let buffer = building.between(38, 43);
    let (chain, hosts) = building.fifteen(100, (Limit::None, limit(fault, buffer)), 4_000_000, "50ms");
    let simulation = building.simulation(seed);
    let (end, look) = (Nanos(150 * MS), Nanos(50 * MS));
    building.watched(simulation, (end, look), chain, hosts)
}

/// The same for two seconds, with links of 1 Gb/s with buffers, and with datagrams of many hosts at random times: traffic
/// that only the clock of one port drives finds a full queue always or never.
pub fn lasting_outcast(seed: u64) -> Network {
    let mut building = Building::new(seed);
    building.tcp.min_rto = Nanos(10 * MS);
    building.algorithm = Algorithm::Cubic;
    let buffer = Limit::Packets(200);
    let (chain, hosts) = building.fifteen(1_000, (buffer, buffer), 1 << 30, "10ms");
    let crowds = [chain[0], chain[4]].map(|switch| building.host("crowd", switch, 1_000, 20));
    let mut simulation = building.simulation(seed);
    let end = 2_000 * MS;
    for crowd in crowds {
        let mut chance = Random::new(building.between(1, u64::MAX));
        let times = std::iter::successors(Some(0), move |at| Some(at + 1 + chance.below(32_000)));
        let datagrams = times.take_while(move |at| *at < end).map(|at| (Nanos(at), ByteCount(100)).into());
        let added = simulation.add_datagrams(DatagramParams::new(crowd, hosts[0].1), datagrams);
        added.unwrap_or_else(|error| panic!("{error}"));
    }
    building.watched(simulation, (Nanos(end), Nanos(50 * MS)), chain, hosts)
}

impl Building {
    /// The network of an outcast; its links have one limit and the last link another, each flow has this many bytes, and a flow without packets
    /// for a given time counts as silent. Returns its switches, and the pairs of hosts, the nearest one first.
    fn fifteen(
        &mut self,
        mbps: u64,
        (limit, last): (Limit, Limit),
        bytes: u64,
        silence: &str,
    ) -> ([NodeId; 5], Vec<(NodeId, NodeId)>) {
        let chain: [NodeId; 5] = self.nodes("switch");
        for n in 0..4 {
            self.link(chain[n], chain[n + 1], mbps, 20, limit);
        }
        let receiver = self.topology.add_node("receiver");
        self.link(chain[4], receiver, mbps, 20, last);
        let mut hosts = Vec::new();
        for n in 0..15 {
            let switch = chain[if n == 0 {
                4
            } else if n < 13 {
                0
            } else {
                2
            }];
            let from = self.host(&format!("sender-{n}"), switch, mbps, 20);
            let at = n * 20_000 + self.between(0, 20_000);
            self.flows.push((from, receiver, Nanos(at), bytes, Class(0)));
            let (name, src, port) = (from.0.to_string(), address(from), (1024 + n).to_string());
            let (to, port) = (address(receiver), port.as_str());
            let values = [("flow", &*name), ("src", &src), ("src_port", port), ("receiver", &to), ("silence", silence)];
            add(&mut self.definitions, "outcast", &values);
            hosts.push((from, receiver));
        }
        (chain, hosts)
    }

    /// The network with definitions; the first pair of hosts suffers.
    fn watched(
        self,
        simulation: Simulation,
        (end, look): (Nanos, Nanos),
        chain: [NodeId; 5],
        mut hosts: Vec<(NodeId, NodeId)>,
    ) -> Network {
        let others = hosts.split_off(1);
        Network { simulation, definitions: self.definitions, end, look, switches: vec![chain[4]], hosts, others }
    }
}

/// Many hosts repeatedly send some packets each to one receiver: at once with the fault, one after another without it. One
/// other host sends to another receiver at the same switch all the time.
pub fn incast(seed: u64, fault: bool) -> Network {
    let mut building = Building::new(seed);
    let [switch, edge] = building.nodes("switch");
    building.link(switch, edge, 10_000, 10, Limit::None);
    let [receiver, other] = [building.topology.add_node("receiver"), building.topology.add_node("other")];
    building.link(edge, receiver, 1_000, 10, Limit::Packets(200));
    building.link(edge, other, 1_000, 10, Limit::Packets(200));
    let count = building.between(8, 16);
    let senders: Vec<_> = (0..count).map(|n| building.host(&format!("sender-{n}"), switch, 1_000, 10)).collect();
    let aside = building.host("aside", switch, 1_000, 10);
    let start = building.between(MS, 3 * MS);
    for round in 0..2 {
        for (n, from) in (0..).zip(&senders) {
            // One after another: each is done before the next begins.
            let within = if fault { building.between(0, 20_000) } else { n * 600_000 };
            let at = Nanos(start + round * 10 * MS + within);
            building.flows.push((*from, receiver, at, 14_000, Class(0)));
        }
    }
    let mut simulation = building.simulation(seed);
    building.datagrams(&mut simulation, (aside, other), 0, (0, 20 * MS), 100_000);
    let address = address(receiver);
    let values = [("name", "r"), ("receiver", &*address), ("queue", "40kB")];
    add(&mut building.definitions, "incast", &values);
    let hosts = senders.into_iter().map(|from| (from, receiver)).collect();
    let (end, look, others) = (Nanos(25 * MS), Nanos(MS), vec![(aside, other)]);
    Network { simulation, definitions: building.definitions, end, look, switches: vec![edge], hosts, others }
}

/// Hosts at a ring of switches send datagrams to each other, every pair at its own rate; with the fault one of them sends
/// many times as much as any other. Every source, or every pair, is watched.
pub fn matrix(seed: u64, fault: bool) -> Network {
    let mut building = Building::new(seed);
    let ring: [NodeId; 4] = building.nodes("switch");
    for n in 0..4 {
        building.link(ring[n], ring[(n + 1) % 4], 1_000, 50, Limit::None);
    }
    let hosts: [NodeId; 4] = std::array::from_fn(|n| building.host(&format!("host-{n}"), ring[n], 1_000, 10));
    let heavy = (building.between(0, 4), building.between(1, 4));
    let heavy = (hosts[heavy.0 as usize], hosts[((heavy.0 + heavy.1) % 4) as usize]);
    let mut simulation = building.simulation(seed);
    let mut others = Vec::new();
    for from in hosts {
        let (name, source) = (from.0.to_string(), address(from));
        let values = [("name", &*name), ("source", &*source), ("limit", "60kB"), ("window", "10ms")];
        add(&mut building.definitions, "heavy-hitter", &values);
        for to in hosts.into_iter().filter(|to| *to != from) {
            let (name, receiver) = (format!("{}_{}", from.0, to.0), address(to));
            let values =
                [("name", &*name), ("source", &source), ("receiver", &receiver), ("limit", "60kB"), ("window", "20ms")];
            add(&mut building.definitions, "traffic-matrix", &values);
            let kbps = building.between(2_000, 6_000);
            let kbps = if fault && (from, to) == heavy { 80_000 } else { kbps };
            building.datagrams(&mut simulation, (from, to), 0, (0, 40 * MS), kbps);
            if (from, to) != heavy {
                others.push((from, to));
            }
        }
    }
    let (end, look, hosts) = (Nanos(45 * MS), Nanos(MS), vec![heavy]);
    Network { simulation, definitions: building.definitions, end, look, switches: ring.to_vec(), hosts, others }
}
