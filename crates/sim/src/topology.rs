//! Nodes and links of a network.

use crate::{DisciplineChoice, LinkRate, PipelineChoice};
use queuescope_queue::Limit;
use queuescope_wire::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nodes and the links between them.
///
/// ```
/// use queuescope_queue::DisciplineParams;
/// use queuescope_sim::shapes::{Wire, add_both};
/// use queuescope_sim::{LinkId, Topology};
///
/// let mut topology = Topology::default();
/// let [a, b, c] = ["a", "b", "c"].map(|name| topology.add_node(name));
/// let wire = Wire::new("10mbps".parse()?, "5ms".parse()?, DisciplineParams::default());
/// let (first, _) = add_both(&mut topology, ("a-b", "b-a"), (a, b), &wire, true);
/// let (second, _) = add_both(&mut topology, ("b-c", "c-b"), (b, c), &wire, true);
/// let route = topology.routes_from(a).to(c).ok_or("there is no route")?;
/// assert_eq!(route, [first.0, second.0]);
/// assert_eq!(topology.link(LinkId(route[1])).name, "b-c");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Topology {
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<LinkParams>,
    /// For each node, the links that leave it.
    leaving: Vec<Vec<u32>>,
}

/// A node of a [`Topology`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A link of a [`Topology`], in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl LinkId {
    /// The id as an index into per-link tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub name: String,
    pub switch: Option<SwitchParams>,
}

/// A switch that runs a program. All links that leave its node are its ports, in the order in which they were added. Packets
/// pass the program at the ports that it manages; at other ports only if it has to see them (the ACKs of flows whose
/// windows it bounds), and the queues there are those of their links.
#[derive(Debug, Clone)]
pub struct SwitchParams {
    /// The program.
    pub pipeline: PipelineChoice,
    /// The links whose queues the program manages, and the limits of these.
    pub managed: Vec<(LinkId, Limit)>,
    /// The time from egress back to ingress.
    pub recirculation: Nanos,
}

/// A link, in one direction.
#[derive(Debug, Clone)]
pub struct LinkParams {
    /// Its name in reports.
    pub name: String,
    /// Where it begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// Its rate.
    pub rate: LinkRate,
    /// The propagation delay.
    pub delay: Nanos,
    /// The share of packets that are lost on it, at random, from 0 to 1.
    pub loss: f64,
    /// Bytes that it adds to each packet as it sends it, beyond the IP packet: they take transmission time, but the queue does not count them.
    pub overhead: u32,
    /// The discipline of its queue; without effect if a switch's program manages the queue.
    pub discipline: DisciplineChoice,
    /// Whether the sojourn times in its queue are recorded.
    pub measured: bool,
}

impl Topology {
    /// Adds a node.
    pub fn add_node(&mut self, name: impl Into<String>) -> NodeId {
        self.nodes.push(Node { name: name.into(), switch: None });
        self.leaving.push(Vec::new());
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Makes a node run a program.
    pub fn set_switch(&mut self, node: NodeId, switch: SwitchParams) {
        self.nodes[node.0 as usize].switch = Some(switch);
    }

    /// Adds a link.
    pub fn add_link(&mut self, link: LinkParams) -> LinkId {
        self.leaving[link.from.0 as usize].push(self.links.len() as u32);
        self.links.push(link);
        LinkId(self.links.len() as u32 - 1)
    }

    /// All links, in the order of their numbers.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + '_ {
        (0..self.links.len() as u32).map(LinkId)
    }

    /// The parameters of a link.
    pub fn link(&self, link: LinkId) -> &LinkParams {
        &self.links[link.index()]
    }

    /// The parameters of a link, for changes.
    pub(crate) fn link_mut(&mut self, link: LinkId) -> &mut LinkParams {
        &mut self.links[link.index()]
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node's name.
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.nodes[node.0 as usize].name
    }

    /// The links that leave a node, in the order in which they were added.
    pub fn links_from(&self, node: NodeId) -> impl Iterator<Item = LinkId> + '_ {
        self.leaving.get(node.0 as usize).into_iter().flatten().map(|link| LinkId(*link))
    }

    /// The link that leaves a node, if there is exactly one and it leads to another node.
    pub fn only_link_from(&self, node: NodeId) -> Option<LinkId> {
        match self.leaving.get(node.0 as usize)?.as_slice() {
            [only] if self.link(LinkId(*only)).to != node => Some(LinkId(*only)),
            _ => None,
        }
    }

    /// The routes from a node to all others that it can reach: the shortest by delay, then by the number of links, then by the
    /// order of links.
    pub fn routes_from(&self, from: NodeId) -> Routes {
        let mut last = vec![None; self.nodes.len()];
        let mut best = vec![(Nanos::MAX, u32::MAX); self.nodes.len()];
        best[from.0 as usize] = (Nanos::ZERO, 0);
        let mut open = BinaryHeap::from([Reverse((Nanos::ZERO, 0, from.0))]);
        while let Some(Reverse((delay, hops, node))) = open.pop() {
            if (delay, hops) > best[node as usize] {
                continue;
            }
            for &index in &self.leaving[node as usize] {
                let link = &self.links[index as usize];
                let (to, length) = (link.to.0 as usize, (delay.saturating_add(link.delay), hops + 1));
                if length < best[to] {
                    (best[to], last[to]) = (length, Some(index));
                    open.push(Reverse((length.0, length.1, link.to.0)));
                }
            }
        }
        Routes { from, last, starts: self.links.iter().map(|link| link.from).collect() }
    }
}

/// The routes from one node to all others.
#[derive(Debug)]
pub struct Routes {
    from: NodeId,
    /// For each node, the last link on the route to it.
    last: Vec<Option<u32>>,
    /// For each link, where it begins.
    starts: Vec<NodeId>,
}

impl Routes {
    /// The links on the route to a node, in order; `None` if there is no route.
    pub fn to(&self, to: NodeId) -> Option<Vec<u32>> {
        let mut route = Vec::new();
        let mut at = to;
        while at != self.from {
            let link = self.last[at.0 as usize]?;
            route.push(link);
            at = self.starts[link as usize];
        }
        route.reverse();
        Some(route)
    }
}
