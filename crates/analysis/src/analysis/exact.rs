//! The exact part of the queue that each flow had.
//!
//! The meters are kept up only while they are needed: in bursts, or if an output wants the parts of all packets.

use super::Analysis;
use crate::analysis::found::Meters;
use crate::analysis::watcher::Watcher;
use crate::index::FlowIndex;
use queuescope_meter::{Contribution, History};
use queuescope_wire::{Departure, Nanos};

impl<D: FlowIndex, W: Watcher> Analysis<D, W> {
    /// Forgets departures that no later packet waited behind, as one leaves that waited since `from`.
    #[inline]
    pub(super) fn advance(&mut self, from: Nanos) {
        if !(self.exact && self.by_sums) {
            return self.recent.advance(from);
        }
        let (index, levels) = (&self.index, &mut self.levels);
        self.recent.advance_with(from, |gone| {
            for (number, level) in levels.iter_mut().enumerate() {
                level.sums.remove(index.project(number, gone.flow), gone.size);
            }
        });
    }

    /// Measures the exact part of the queue since `from` that the packet's flow had, at each granularity.
    #[inline]
    pub(super) fn measure_exact(&mut self, departure: &Departure, from: Nanos) {
        if !std::mem::replace(&mut self.exact, true) {
            self.fill_exact();
        }
        self.counts.history_too_short += u64::from(self.recent.is_too_short_for(from));
        let total = self.recent.backlog_since(from).bytes.0;
        if self.by_sums {
            for ((level, flow), part) in self.levels.iter().zip(&self.flows).zip(&mut self.parts) {
                *part = Contribution { own: level.sums.own(*flow), total };
            }
            return;
        }
        let oldest = self.recent.oldest().map_or(departure.dequeued, |past| past.dequeued);
        for (number, level) in self.levels.iter_mut().enumerate() {
            level.exact.forget_before(oldest);
            self.parts[number] = Contribution { own: level.exact.own(self.flows[number], from), total };
        }
    }

    /// Brings the exact meters up to date.
    #[cold]
    fn fill_exact(&mut self) {
        for (number, level) in self.levels.iter_mut().enumerate() {
            for past in self.recent.since(Nanos::ZERO) {
                let flow = self.index.project(number, past.flow);
                if self.by_sums {
                    level.sums.add(flow, past.size);
                } else {
                    level.exact.record(flow, past.size, past.dequeued);
                }
            }
        }
    }

    /// The number of flows at the first granularity with remembered departures.
    #[inline]
    pub(super) fn flows_in_window(&self) -> u64 {
        let Meters { sums, exact, .. } = &self.levels[0];
        if self.by_sums { sums.flows() } else { exact.flows_in_window() }
    }

    /// Clears the exact meters, as they are not needed any more. Where packets leave in any order they are kept: to rebuild
    /// them from all remembered departures would cost more.
    pub(super) fn clear_exact(&mut self) {
        if matches!(self.params.history, History::Fifo | History::NearlyFifo { .. }) && std::mem::take(&mut self.exact)
        {
            for level in &mut self.levels {
                level.sums.clear();
                level.exact.clear();
            }
        }
    }
}
