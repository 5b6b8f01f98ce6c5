//! The culprits of the packet of a burst that waited longest.

use crate::lasting::Lasting;
use queuescope_meter::{Burst, MonitorParams, QueueMonitor};
use queuescope_sketch::Share;
use queuescope_wire::{Departure, FlowId, Nanos, Packet};

/// Largest number of flows that are listed, even if more are above alpha.
pub(crate) const AT_MOST: usize = 12;

/// Follows a queue in the bounded memory of a [`QueueMonitor`], with keys for the flows that it remembers. Direct and
/// indirect culprits are known in any order of departure. Original culprits are known only for a FIFO in which the arrival
/// of every packet was seen.
#[derive(Debug)]
pub(crate) struct WorstMeter<K> {
    monitor: QueueMonitor,
    names: Lasting<K>,
}

/// The culprits of the packet that waited longest.
#[derive(Debug, Clone)]
pub(crate) struct Worst<K> {
    /// When the busy period started in which it came.
    pub since: Nanos,
    pub direct: Named<K>,
    pub indirect: Named<K>,
    /// `None` if another packet of the busy period waited longer, or if packets overtook one another.
    pub original: Option<Named<K>>,
}

/// The heaviest flows with their bytes, heaviest first. The key is `None` if it was forgotten.
#[derive(Debug, Clone)]
pub(crate) struct Named<K> {
    pub flows: Vec<(Option<K>, u64)>,
    /// The number of all flows, and their bytes.
    pub flows_total: u64,
    pub bytes: u64,
}

impl<K: Clone> WorstMeter<K> {
    /// Creates a meter of busy periods in which a packet waits at least `tau`.
    pub fn new(tau: Nanos) -> Self {
        let params = MonitorParams { tau, ..MonitorParams::default() };
        let monitor = QueueMonitor::new(params).expect("the default dimensions can be had");
        Self { monitor, names: Lasting::new() }
    }

    /// Processes a packet of `flow` that left.
    #[inline]
    pub fn departed(&mut self, departure: &Departure, flow: FlowId) {
        let packet = Packet { flow: self.names.id(flow), ..departure.packet };
        self.monitor.departed(&Departure { packet, ..*departure });
    }

    /// The id of a flow is freed: its key is kept under its lasting id.
    pub fn forget(&mut self, flow: FlowId, key: &K) {
        self.names.forget(flow, key);
    }

    /// The culprits of the worst packet of a burst that has just ended. `key` returns the keys of live flows.
    pub fn of(&mut self, burst: &Burst<K>, key: impl Fn(FlowId) -> K) -> Option<Worst<K>> {
        let (came, left) = (burst.peak_at, burst.peak_at.saturating_add(burst.peak_delay));
        let period = *self.monitor.period_at(came)?;
        let direct = self.monitor.left_in(came, left);
        let indirect = self.monitor.left_in(period.start, came);
        // The monitor stores levels only for the worst packet of the whole busy period.
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
