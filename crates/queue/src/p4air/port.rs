//! The registers of a port.

use super::ranks::RttRanks;
use super::shares::{GROUPS, QueueShares};
use super::{ANTS, LONG_LIVED, P4airParams, Queueing};
use crate::Outlet;
use queuescope_sketch::FlowGroup;
use queuescope_wire::Rate;

/// The registers of a port.
#[derive(Debug)]
pub(super) struct P4airPort {
    pub rate: Rate,
    /// The time that the link needs for a packet of the size in which shares are counted, in ns; at least 1.
    pub packet_time: u64,
    pub shares: QueueShares,
    /// Where round-trip times have their places among the queues of a group.
    pub ranks: RttRanks,
    /// The newest flow of each queue, or of each group: when it was assigned. 0 after it has moved.
    pub newest: Vec<u32>,
    /// The flows of ants and of mice.
    short_lived: [u32; LONG_LIVED as usize],
}

impl P4airPort {
    pub fn new(params: &P4airParams, outlet: &Outlet) -> Self {
        let groups = params.groups();
        let queues = match params.queueing {
            Queueing::Divided => params.queues.saturating_sub(LONG_LIVED),
            // One for each group: there is nothing to reallocate.
            Queueing::Weighted => params.long_lived_groups(),
        };
        let shares = QueueShares::new(queues, groups, params.start, params.assignment);
        Self {
            rate: outlet.rate,
            packet_time: outlet.rate.time_for(params.packet).0.max(1),
            newest: vec![0; usize::from(shares.all_queues()).max(GROUPS)],
            shares,
            ranks: RttRanks::default(),
            short_lived: [0; LONG_LIVED as usize],
        }
    }

    /// A flow leaves group `from` and enters group `to`; `None` for a flow that is not known before or after. Returns
    /// whether a queue has moved.
    pub fn move_flow(&mut self, from: Option<FlowGroup>, to: Option<FlowGroup>) -> bool {
        if let Some(short) = from.and_then(short_lived) {
            self.short_lived[short] = self.short_lived[short].saturating_sub(1);
        }
        if let Some(short) = to.and_then(short_lived) {
            self.short_lived[short] += 1;
        }
        let long = |group: Option<FlowGroup>| group.and_then(FlowGroup::long_lived);
        self.shares.move_flow(long(from), long(to))
    }

    /// The flows of the group whose only queue this is, if groups have weighted queues.
    pub fn weight(&self, queue: u16) -> u32 {
        match queue.checked_sub(LONG_LIVED) {
            None => self.short_lived[usize::from(queue)],
            Some(queue) => self.shares.flows(self.shares.group_of(queue)),
        }
    }
}

/// The queue of a group of short-lived flows.
fn short_lived(group: FlowGroup) -> Option<usize> {
    match group {
        FlowGroup::Ant => Some(usize::from(ANTS)),
        FlowGroup::Mouse => Some(usize::from(super::MICE)),
        _ => None,
    }
}
