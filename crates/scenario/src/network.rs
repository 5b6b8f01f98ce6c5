//! The switches and links of a scenario, for every kind of topology, and routes through them.

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
    /// The names of the switches. Elsewhere a switch is an index into this list.
    pub nodes: Vec<String>,
    /// The links; each sends in both directions.
    pub links: Vec<NetworkLink>,
    /// For each switch, the links at it.
    at: Vec<Vec<Hop>>,
}

/// A link between two switches.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkLink {
    /// The name of the link.
    pub name: String,
    /// The switch at whose port the queue is, and the one at the other end.
    pub ends: (usize, usize),
    /// How fast the link sends.
    pub capacity: Capacity,
    /// The rate of the reverse direction. `None`: the reverse direction follows the same trace.
    pub reverse_rate: Option<Rate>,
    /// The propagation delay of each direction.
    pub delay: Nanos,
    /// The discipline of its queue, including the limit.
    pub discipline: DisciplineParams,
    /// The switch program around its queue, including the limit of the queue.
    pub pipeline: Option<PipelineParams>,
    /// The discipline of the queue of the reverse direction.
    pub reverse_discipline: DisciplineParams,
    /// Bytes that the link sends with each packet in addition to the IP packet.
    pub overhead: u32,
    /// The share of packets that is lost at random in each direction.
    pub loss: f64,
}

/// A link on a route, and the direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The index in [`Network::links`].
    pub link: usize,
    /// Whether the route uses the reverse direction.
    pub reverse: bool,
}

impl Scenario {
    /// The switches and links of the scenario.
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

    /// The round-trip time of a group's flows without queueing and transmission times: that of their path, or the
    /// longer one that the group sets. `None` if there is no path.
    pub fn base_rtt(&self, network: &Network, flows: &FlowGroup) -> Option<Nanos> {
        let path = self.path_rtt(network, &flows.from, &flows.to)?;
        Some(flows.rtt.map_or(path, |rtt| rtt.max(path)))
    }

    /// The round-trip time between hosts at two switches, without queueing and transmission times. `None` if there is
    /// no path.
    pub fn path_rtt(&self, network: &Network, from: &str, to: &str) -> Option<Nanos> {
        let route = network.route(from, to)?;
        let links = route.iter().fold(Nanos::ZERO, |sum, hop| sum.saturating_add(network.links[hop.link].delay));
        let one_way = links.saturating_add(self.access.delay).saturating_add(self.access.delay);
        Some(one_way.saturating_add(one_way))
    }

    /// The limit of a link's queue. `rtt` is the longest round-trip time.
    pub(crate) fn limit_of(&self, link: &Link, rtt: Nanos) -> Limit {
        match (link.limit, &link.capacity) {
            (Buffer::Fixed(limit), _) => limit,
            (Buffer::Bdp(times), Capacity::Rate(rate)) => {
                let product = rate.bytes_in(rtt).0 as f64 * times;
                // At least one full packet.
                Limit::Bytes(ByteCount((product as u64).max(self.largest_packet())))
            }
            // The check of the scenario reports this, because a trace has no rate.
            (Buffer::Bdp(_), Capacity::Trace(_)) => Limit::None,
        }
    }

    /// The largest IP packet of all traffic, in bytes.
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

    /// The longest round-trip time of all traffic, without queueing and transmission times.
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
    /// The network without limits of queues, which may depend on the routes.
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

    /// The index of a switch, by name.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node == name)
    }

    /// The route from one switch to another with the least delay; among equal ones, the one with the fewest links, then
    /// the one with the lowest numbers. `None` if there is no route, or a name is unknown.
    pub fn route(&self, from: &str, to: &str) -> Option<Vec<Hop>> {
        let (from, to) = (self.node(from)?, self.node(to)?);
        let mut best: Vec<Option<(Nanos, usize)>> = vec![None; self.nodes.len()];
        let mut last_hop: Vec<Option<Hop>> = vec![None; self.nodes.len()];
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
                    last_hop[next] = Some(*hop);
                    open.push(Reverse((cost.0, cost.1, next)));
                }
            }
        }
        let mut route = Vec::new();
        let mut node = to;
        best[to]?;
        while node != from {
            let hop = last_hop[node]?;
            route.push(hop);
            node = self.links[hop.link].end(!hop.reverse);
        }
        route.reverse();
        Some(route)
    }
}

impl NetworkLink {
    /// The switch at which a packet arrives.
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
    fn a_limit_in_bdp_uses_the_longest_round_trip_time() {
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
