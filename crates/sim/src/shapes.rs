//! Common topologies.

use crate::DisciplineChoice;
use crate::link::LinkRate;
use crate::topology::{LinkId, LinkParams, NodeId, SwitchParams, Topology};
use queuescope_queue::PipelineParams;
use queuescope_wire::{Nanos, Rate};

/// The time from the egress of a switch back to its ingress: the usual order of magnitude for switching chips.
pub const RECIRCULATION: Nanos = Nanos(1_000);

/// A link as in scenarios: what both directions share, and the queue of the direction that matters.
#[derive(Debug, Clone)]
pub struct Wire {
    /// Its rate.
    pub rate: LinkRate,
    /// The propagation delay in one direction.
    pub delay: Nanos,
    /// Bytes that it adds to each packet as it sends it, beyond the IP packet: they take transmission time, but the queue does not count them.
    pub overhead: u32,
    /// The queue before it.
    pub discipline: DisciplineChoice,
}

impl Wire {
    /// With a constant rate and without overhead.
    pub fn new(rate: Rate, delay: Nanos, discipline: impl Into<DisciplineChoice>) -> Self {
        Self { rate: LinkRate::Constant(rate), delay, overhead: 0, discipline: discipline.into() }
    }
}

/// Hosts on both sides of one link.
///
/// ```
/// use queuescope_queue::DisciplineParams;
/// use queuescope_sim::shapes::{Dumbbell, Wire};
///
/// let bottleneck = Wire::new("10mbps".parse()?, "10ms".parse()?, DisciplineParams::default());
/// let host = Wire::new("100mbps".parse()?, "1ms".parse()?, DisciplineParams::default());
/// let dumbbell = Dumbbell::new(&bottleneck, None, vec![host; 3]);
/// assert_eq!((dumbbell.left.len(), dumbbell.right.len()), (3, 3));
/// assert_eq!(dumbbell.topology.len(), 8, "six hosts and two routers");
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dumbbell {
    /// The nodes and links.
    pub topology: Topology,
    /// The link between the sides, from left to right.
    pub bottleneck: LinkId,
    /// The link between the sides, from right to left.
    pub back: LinkId,
    /// The left host of each pair.
    pub left: Vec<NodeId>,
    /// The right host of each pair.
    pub right: Vec<NodeId>,
}

impl Dumbbell {
    /// A bottleneck between two routers, and for each pair of hosts its links to them. The link back has the same rate and
    /// delay, and tail drop without a limit. If the left router is a switch with a program, the program has the bottleneck's queues.
    pub fn new(bottleneck: &Wire, program: Option<PipelineParams>, pairs: impl IntoIterator<Item = Wire>) -> Self {
        let mut topology = Topology::default();
        let (left_router, right_router) = (topology.add_node("left"), topology.add_node("right"));
        let there = (left_router, right_router);
        let (bottleneck, back) = add_both(&mut topology, ("bottleneck", "back"), there, bottleneck, true);
        if let Some(pipeline) = program {
            let managed = vec![(bottleneck, pipeline.queue().limit)];
            let pipeline = pipeline.into();
            topology.set_switch(left_router, SwitchParams { pipeline, managed, recirculation: RECIRCULATION });
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (n, wire) in pairs.into_iter().enumerate() {
            let sender = topology.add_node(format!("sender-{}", n + 1));
            let receiver = topology.add_node(format!("receiver-{}", n + 1));
            let names = (format!("sender-{}-up", n + 1), format!("sender-{}-down", n + 1));
            add_both(&mut topology, (&names.0, &names.1), (sender, left_router), &wire, false);
            let names = (format!("receiver-{}-down", n + 1), format!("receiver-{}-up", n + 1));
            add_both(&mut topology, (&names.0, &names.1), (right_router, receiver), &wire, false);
            left.push(sender);
            right.push(receiver);
        }
        Self { topology, bottleneck, back, left, right }
    }
}

/// Adds a link and the link back, which is the same except for its queue.
pub fn add_both(
    topology: &mut Topology,
    names: (&str, &str),
    (from, to): (NodeId, NodeId),
    wire: &Wire,
    measured: bool,
) -> (LinkId, LinkId) {
    let Wire { rate, delay, overhead, discipline } = wire.clone();
    let back = LinkParams {
        name: names.1.to_owned(),
        from: to,
        to: from,
        rate,
        delay,
        loss: 0.0,
        overhead,
        discipline: DisciplineChoice::default(),
        measured: false,
    };
    let there = LinkParams { name: names.0.to_owned(), from, to, discipline, measured, ..back.clone() };
    (topology.add_link(there), topology.add_link(back))
}
