//! Who made the packet of a burst wait that waited longest.

use crate::lasting::Lasting;
use queuescope_meter::{Burst, MonitorParams, QueueMonitor};
use queuescope_sketch::Share;
use queuescope_wire::{Departure, FlowId, Nanos, Packet};

/// Flows that are listed at most, however many are above alpha.
pub(crate) const AT_MOST: usize = 12;

/// Follows a queue in the bounded memory of a [`QueueMonitor`], with names for the flows that it remembers. What left while
/// a packet waited is known in any order of departure; levels only of a FIFO of which every packet was seen to come.
#[derive(Debug)]
pub(crate) struct WorstMeter<K> {
    monitor: QueueMonitor,
    names: Lasting<K>,
}

/// The culprits of the packet that waited longest.
#[derive(Debug, Clone)]
pub(crate) struct Worst<K> {
    /// Since when the queue had not been empty as it came.
    pub since: Nanos,
    pub direct: Named<K>,
    pub indirect: Named<K>,
    /// None where another packet of the busy period waited longer, or packets overtook one another.
    pub original: Option<Named<K>>,
}

/// The heaviest flows with their bytes, heaviest first; of those without a key nobody knows the name any more.
#[derive(Debug, Clone)]
pub(crate) struct Named<K> {
    pub flows: Vec<(Option<K>, u64)>,
    /// How many flows there are, and the bytes of all.
    pub flows_total: u64,
    pub bytes: u64,
}

impl<K: Clone> WorstMeter<K> {
    /// A meter of busy periods in which a packet waits at least `tau`.
    pub fn new(tau: Nanos) -> Self {
        let params = MonitorParams { tau, ..MonitorParams::default() };
        let monitor = QueueMonitor::new(params).expect("the default dimensions can be had");
        Self { monitor, names: Lasting::new() }
    }

    /// A packet of `flow` left.
    #[inline]
    pub fn departed(&mut self, departure: &Departure, flow: FlowId) {
        let packet = Packet { flow: self.names.id(flow), ..departure.packet };
        self.monitor.departed(&Departure { packet, ..*departure });
    }

    /// The id of a flow is taken back.
    pub fn forget(&mut self, flow: FlowId, key: &K) {
        self.names.forget(flow, key);
    }

    /// The culprits of the worst packet of a burst that has just ended; `key` tells the keys of live flows.
    pub fn of(&mut self, burst: &Burst<K>, key: impl Fn(FlowId) -> K) -> Option<Worst<K>> {
        let (came, left) = (burst.peak_at, burst.peak_at.saturating_add(burst.peak_delay));
        let period = *self.monitor.period_at(came)?;
        let direct = self.monitor.left_in(came, left);
        let indirect = self.monitor.left_in(period.start, came);
        // Levels are known as they stood when the worst packet of the whole busy period came.
        let is_fifo = self.monitor.stats().disordered == 0;
        let original = (is_fifo && period.victim_came == came)
            .then(|| self.monitor.worst(came).or_else(|| self.monitor.worst_so_far()).map(|worst| worst.original));
        let named = |mut flows: Vec<Share>, bytes: u64| {
            let flows_total = flows.len() as u64;
            flows.truncate(AT_MOST);
            let keys = self.names.keys(flows.iter().map(|share| share.flow), &key);
            Named { flows: keys.into_iter().zip(flows.iter().map(|share| share.bytes)).collect(), flows_total, bytes }
        };
        Some(Worst {
            since: period.start,
            direct: named(direct.flows, direct.bytes),
            indirect: named(indirect.flows, indirect.bytes),
            original: original.flatten().map(|original| named(original.flows, original.bytes)),
        })
    }
}
