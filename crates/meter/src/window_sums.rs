//! The bytes of each flow in a window of departures that its owner moves.

use queuescope_wire::FlowId;

/// The bytes of each flow in a window of departures, at one granularity.
///
/// In a FIFO queue, the departures since a packet came are what was in the queue as it came. So a sum for each flow does what an
/// [`ExactMeter`](crate::ExactMeter) does, if the owner adds each departure, and removes those that left before the packet came.
#[derive(Debug, Default)]
pub struct WindowSums {
    flows: Vec<FlowSum>,
    /// The number of times that the window was emptied; sums of an earlier era are zero.
    era: u32,
    /// The number of flows in the window.
    active: u64,
}

/// Aligned so that none lies in two cache lines.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(16))]
struct FlowSum {
    bytes: u64,
    packets: u32,
    era: u32,
}

impl WindowSums {
    /// Creates an empty window.
    pub fn new() -> Self {
        Self::default()
    }

    /// A departure of `flow` enters the window.
    #[inline]
    pub fn add(&mut self, flow: FlowId, size: u32) {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, FlowSum::default());
        }
        let sum = &mut self.flows[flow.index()];
        if sum.era != self.era {
            *sum = FlowSum { era: self.era, ..FlowSum::default() };
        }
        self.active += u64::from(sum.packets == 0);
        sum.packets += 1;
        sum.bytes += u64::from(size);
    }

    /// A departure of `flow`, which is in the window, leaves it.
    #[inline]
    pub fn remove(&mut self, flow: FlowId, size: u32) {
        let sum = &mut self.flows[flow.index()];
        debug_assert!(sum.era == self.era && sum.packets > 0, "what is removed was added before");
        sum.packets -= 1;
        sum.bytes -= u64::from(size);
        self.active -= u64::from(sum.packets == 0);
    }

    /// Bytes of `flow` in the window.
    #[inline]
    pub fn own(&self, flow: FlowId) -> u64 {
        self.flows.get(flow.index()).map_or(0, |sum| if sum.era == self.era { sum.bytes } else { 0 })
    }

    /// The number of flows in the window.
    #[inline]
    pub fn flows(&self) -> u64 {
        self.active
    }

    /// Empties the window.
    pub fn clear(&mut self) {
        self.active = 0;
        self.era = self.era.checked_add(1).unwrap_or_else(|| {
            self.flows.clear();
            0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExactMeter, History, PastDeparture, Recent};
    use proptest::prelude::*;
    use queuescope_wire::Nanos;

    proptest! {
        /// The sums are those of the meter that can answer about any time.
        #[test]
        fn a_window_of_a_fifo_is_what_the_exact_meter_finds(
            packets in prop::collection::vec((0..60u64, 1..90u32, 0..5u32, prop::bool::weighted(0.05)), 0..200)
        ) {
            let (mut sums, mut exact) = (WindowSums::new(), ExactMeter::new());
            let mut recent = Recent::new(History::Fifo);
            let (mut now, mut free) = (0, 0);
            for (gap, size, flow, begins_again) in packets {
                now += gap;
                let (flow, enqueued, dequeued) = (FlowId(flow), Nanos(now), Nanos(free.max(now)));
                free = dequeued.0 + u64::from(size);
                if begins_again {
                    sums.clear();
                    exact.clear();
                    recent = Recent::new(History::Fifo);
                }
                recent.advance_with(enqueued, |gone| sums.remove(gone.flow, gone.size));
                exact.forget_before(recent.oldest().map_or(dequeued, |past| past.dequeued));
                prop_assert_eq!(sums.own(flow), exact.own(flow, enqueued));
                prop_assert_eq!(sums.flows(), exact.flows_in_window());
                sums.add(flow, size);
                exact.record(flow, size, dequeued);
                recent.record(PastDeparture { flow, size, enqueued, dequeued });
            }
        }
    }
}
