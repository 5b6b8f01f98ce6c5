//! A scenario's topology as switches and links, whatever kind it is of; and the routes through it.

use crate::link::{Capacity, Link};
use crate::scenario::Scenario;
use crate::topology::{Topology, Wire};
use crate::traffic::{FlowGroup, Traffic};
use crate::value::Buffer;
use crate::workload::Arrivals;
use queuescope_queue::{DisciplineParams, Limit, PipelineParams};
use queuescope_tcp::TcpParams;
use queuescope_wire::{ByteCount, Nanos, Rate};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Switches and the links between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// The switches' names; elsewhere they are numbers in this list.
    pub nodes: Vec<String>,
    /// The links; each has two ways.
    pub links: Vec<NetworkLink>,
    /// Links by the switch at either end.
    at: Vec<Vec<Hop>>,
}

/// A link between two switches.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkLink {
    /// Its name.
    pub name: String,
    /// The switch at whose port the queue is, and the one at the other end.
    pub ends: (usize, usize),
    /// How fast it sends.
    pub capacity: Capacity,
    /// How fast it sends the other way; none if by the same trace.
    pub reverse_rate: Option<Rate>,
    /// How long a bit is under way, either way.
    pub delay: Nanos,
    /// What its queue does, with its limit.
    pub discipline: DisciplineParams,
    /// The switch program around it, with the limit of its queue.
    pub pipeline: Option<PipelineParams>,
    /// What the queue of the other way does.
    pub reverse_discipline: DisciplineParams,
    /// Bytes that it sends with each packet beyond its IP packet.
    pub overhead: u32,
    /// Which share of packets is lost on it, either way.
    pub loss: f64,
}

/// A link on a route, and which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Its number in [`Network::links`].
    pub link: usize,
    /// Whether it is passed against its direction.
    pub reverse: bool,
}

impl Scenario {
    /// The switches and links.
    pub fn network(&self) -> Network {
        let mut network = Network::skeleton(self);
        let links = self.wires_of_topology();
        let rtt = self.longest_rtt(&network);
        for (link, wire) in network.links.iter_mut().zip(&links) {
            let limit = self.limit_of(&wire.link, rtt);
            link.discipline = crate::params::with_limit(&wire.link.discipline, limit);
            link.pipeline = wire.link.pipeline.clone().map(|program| program.with_limit(limit));
            if wire.link.both_ways {
                link.reverse_discipline = link.discipline.clone();
            }
        }
        network
    }

    /// The round-trip time of a group's flows without queueing and without the time that packets take to be sent: that of
    /// their path, or the longer one that they have by themselves. None if there is no path.
    pub fn base_rtt(&self, network: &Network, flows: &FlowGroup) -> Option<Nanos> {
        let path = self.path_rtt(network, &flows.from, &flows.to)?;
        Some(flows.rtt.map_or(path, |rtt| rtt.max(path)))
    }

    /// The round-trip time between hosts at two switches, as [`Self::base_rtt`].
    pub fn path_rtt(&self, network: &Network, from: &str, to: &str) -> Option<Nanos> {
        let route = network.route(from, to)?;
        let links = route.iter().fold(Nanos::ZERO, |sum, hop| sum.saturating_add(network.links[hop.link].delay));
        let one_way = links.saturating_add(self.access.delay).saturating_add(self.access.delay);
        Some(one_way.saturating_add(one_way))
    }

    /// How much a link's queue holds; `rtt` is the longest round-trip time.
    pub(crate) fn limit_of(&self, link: &Link, rtt: Nanos) -> Limit {
        match (link.limit, &link.capacity) {
            (Buffer::Fixed(limit), _) => limit,
            (Buffer::Bdp(times), Capacity::Rate(rate)) => {
                let product = rate.bytes_in(rtt).0 as f64 * times;
                // Room for one full packet there is in any case.
                Limit::Bytes(ByteCount((product as u64).max(self.largest_packet())))
            }
            // Refused at the door: a trace has no rate.
            (Buffer::Bdp(_), Capacity::Trace(_)) => Limit::None,
        }
    }

    /// The largest packet that anyone sends, from its network header on.
    pub(crate) fn largest_packet(&self) -> u64 {
        const TCP_HEADER: u32 = 60;
        let segment = |stack: &TcpParams| u64::from(stack.network_header + TCP_HEADER + stack.mss);
        let flows = self.flows.iter().map(|flows| match &flows.traffic {
            Traffic::Tcp(_) => segment(&flows.stack),
            Traffic::Udp(udp) => udp.packet.0,
        });
        let loads = self.workloads.iter().map(|load| match &load.arrivals {
            Arrivals::Bursts(bursts) => bursts.packet.0,
            Arrivals::Datagrams(datagrams) => datagrams.packet.0,
            Arrivals::Capture(_) => 1514,
            Arrivals::Poisson(_) | Arrivals::Incast(_) => segment(&load.stack),
        });
        flows.chain(loads).max().unwrap_or(1514)
    }

    /// The longest round-trip time of all traffic, as [`Self::base_rtt`].
    pub(crate) fn longest_rtt(&self, network: &Network) -> Nanos {
        let groups = self.flows.iter().filter_map(|flows| self.base_rtt(network, flows));
        let workloads = self.workloads.iter().filter_map(|load| self.path_rtt(network, &load.from, &load.to));
        groups.chain(workloads).max().unwrap_or(Nanos::ZERO)
    }

    fn wires_of_topology(&self) -> Vec<Wire> {
        let wire = |name: String, from: String, to: String| Wire { name, from, to, link: self.link.clone() };
        match self.topology {
            Topology::Dumbbell => vec![wire("bottleneck".to_owned(), "left".to_owned(), "right".to_owned())],
            Topology::ParkingLot { hops } => (1..=u32::from(hops))
                .map(|hop| wire(format!("hop{hop}"), format!("r{hop}"), format!("r{}", hop + 1)))
                .collect(),
            Topology::Graph => self.wires.clone(),
        }
    }
}

impl Network {
    /// All but the disciplines, whose limits may depend on the routes.
    pub(crate) fn skeleton(scenario: &Scenario) -> Self {
        let mut network = Self { nodes: Vec::new(), links: Vec::new(), at: Vec::new() };
        let mut numbers = BTreeMap::new();
        for wire in scenario.wires_of_topology() {
            let mut number = |name: &String| {
                *numbers.entry(name.clone()).or_insert_with(|| {
                    network.nodes.push(name.clone());
                    network.at.push(Vec::new());
                    network.nodes.len() - 1
                })
            };
            let ends = (number(&wire.from), number(&wire.to));
            let link = network.links.len();
            network.at[ends.0].push(Hop { link, reverse: false });
            network.at[ends.1].push(Hop { link, reverse: true });
            let rate = match wire.link.capacity {
                Capacity::Rate(rate) => Some(rate),
                Capacity::Trace(_) => None,
            };
            network.links.push(NetworkLink {
                name: wire.name,
                ends,
                capacity: wire.link.capacity,
                reverse_rate: wire.link.reverse_rate.or(rate),
                delay: wire.link.delay,
                discipline: wire.link.discipline,
                pipeline: wire.link.pipeline,
                reverse_discipline: DisciplineParams::default(),
                overhead: wire.link.overhead.on_ip_packet(),
                loss: wire.link.loss,
            });
        }
        network
    }

    /// A switch by its name.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node == name)
    }

    /// The way from one switch to another with the least delay; of those, with the fewest links; of those, with the
    /// lowest numbers. None if there is none, or no such switch.
    pub fn route(&self, from: &str, to: &str) -> Option<Vec<Hop>> {
        let (from, to) = (self.node(from)?, self.node(to)?);
        let mut best: Vec<Option<(Nanos, usize)>> = vec![None; self.nodes.len()];
        let mut came_by: Vec<Option<Hop>> = vec![None; self.nodes.len()];
        let mut open = BinaryHeap::from([Reverse((Nanos::ZERO, 0, from))]);
        best[from] = Some((Nanos::ZERO, 0));
        while let Some(Reverse((delay, links, node))) = open.pop() {
            if best[node] != Some((delay, links)) {
                continue;
            }
            if node == to {
                break;
            }
            for hop in &self.at[node] {
                let next = self.links[hop.link].end(hop.reverse);
                let cost = (delay.saturating_add(self.links[hop.link].delay), links + 1);
                if best[next].is_none_or(|known| cost < known) {
                    best[next] = Some(cost);
                    came_by[next] = Some(*hop);
                    open.push(Reverse((cost.0, cost.1, next)));
                }
            }
        }
        let mut route = Vec::new();
        let mut node = to;
        best[to]?;
        while node != from {
            let hop = came_by[node]?;
            route.push(hop);
            node = self.links[hop.link].end(!hop.reverse);
        }
        route.reverse();
        Some(route)
    }
}

impl NetworkLink {
    /// The switch that a packet comes to.
    fn end(&self, reverse: bool) -> usize {
        if reverse { self.ends.0 } else { self.ends.1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> (Scenario, Network) {
        let scenario = Scenario::parse("test", text, &[]).unwrap_or_else(|error| panic!("{error}"));
        let network = scenario.network();
        (scenario, network)
    }

    #[test]
    fn routes_have_the_least_delay_and_then_the_fewest_links() {
        let (_, network) = network(
            r#"
            topology = "graph"
            wires = [
                { from = "a", to = "b", delay = "1ms" },
                { from = "b", to = "c", delay = "1ms" },
                { from = "a", to = "c", delay = "2ms" },
                { from = "d", to = "c", delay = "5ms" },
                { from = "a", to = "d", delay = "9ms" },
            ]
            flows = [{ from = "a", to = "d" }]
            "#,
        );
        let hop = |link, reverse| Hop { link, reverse };
        assert_eq!(network.route("a", "c"), Some(vec![hop(2, false)]));
        assert_eq!(network.route("a", "d"), Some(vec![hop(2, false), hop(3, true)]));
        assert_eq!(network.route("d", "a"), Some(vec![hop(3, false), hop(2, true)]));
        assert_eq!(network.route("a", "a"), Some(vec![]));
        assert_eq!(network.route("a", "e"), None);
    }

    #[test]
    fn a_limit_in_products_takes_the_longest_round_trip() {
        let (scenario, network) = network(
            r#"
            link = { rate = "8mbps", delay = "10ms", limit = "2bdp", both-ways = true }
            access = { delay = "5ms" }
            flows = [{}, { rtt = "100ms" }, { rtt = "50ms" }]
            "#,
        );
        let rtts: Vec<_> = scenario.flows.iter().map(|flows| scenario.base_rtt(&network, flows)).collect();
        assert_eq!(rtts, [Some(Nanos(40_000_000)), Some(Nanos(100_000_000)), Some(Nanos(50_000_000))]);
        let limit = Limit::Bytes(ByteCount(200_000));
        let expected = crate::params::with_limit(&DisciplineParams::default(), limit);
        assert_eq!(network.links[0].discipline, expected);
        assert_eq!(network.links[0].reverse_discipline, expected);
    }
}
