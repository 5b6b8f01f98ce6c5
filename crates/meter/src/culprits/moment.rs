//! The queue at one moment of the past: its backlog, and the flows that had raised it to that level.

use super::levels::Levels;
use super::record::{Arrival, PackedDeparture};
use super::{QueueLog, QueueSnapshot, Ranking};
use queuescope_wire::{Backlog, ByteCount, FlowId, Nanos};
use std::ops::Range;

/// The state of the queue just before a packet would have come.
pub(super) struct Moment {
    pub standing: QueueSnapshot,
    pub original: Ranking<FlowId>,
    pub complete: bool,
}

/// The departures of a time in which the queue was never empty.
#[derive(Debug, Clone)]
pub(super) struct Period {
    pub span: Range<usize>,
    /// Whether all of them are remembered.
    pub complete: bool,
}

impl QueueLog {
    /// The period of the departure at `index`.
    pub(super) fn period(&self, index: usize) -> Period {
        let number = self.forgotten + index as u64;
        let after = self.periods.partition_point(|first| *first <= number);
        let first = after.checked_sub(1).and_then(|at| self.periods.get(at)).copied().unwrap_or(0);
        let place = |number: u64| number.saturating_sub(self.forgotten) as usize;
        let end = self.periods.get(after).map_or(self.left.len(), |next| place(*next));
        Period { span: place(first)..end, complete: first >= self.forgotten }
    }

    /// The range of departures that contains those that waited within `during`; it may contain others.
    pub(super) fn candidates(&self, during: &Range<Nanos>) -> Range<usize> {
        let start = self.left.partition_point(|left| left.dequeued <= during.start);
        let end = if self.fifo {
            self.left.partition_point(|left| left.enqueued < during.end)
        } else {
            let position = self.position(during.end);
            if position == self.left.len() { position } else { self.period(position).span.end }
        };
        start..end.max(start)
    }

    /// The range of departures that contains those that were in the queue just before `arrival`, with all that came since the queue
    /// was last empty.
    pub(super) fn period_before(&self, arrival: Arrival) -> Option<Period> {
        let position = self.position(arrival.0);
        if position == self.left.len() {
            return None;
        }
        let Period { span, complete } = self.period(position);
        let end = if self.fifo { self.left.partition_point(|left| left.arrival() < arrival) } else { span.end };
        Some(Period { span: span.start..end.clamp(span.start, span.end), complete })
    }

    /// The queue just before `arrival`.
    pub(super) fn moment(&self, arrival: Arrival) -> Moment {
        let (at, mut levels) = (arrival.0, Levels::default());
        let Some(Period { span, complete }) = self.period_before(arrival) else {
            let standing = QueueSnapshot { at, since: at, backlog: Backlog::default() };
            return Moment { standing, original: levels.owners(), complete: self.remembers(at) };
        };
        let arrivals = Arrivals::new(self, span.clone());
        let mut leaving = self.left.range(span).peekable();
        for left in arrivals.iter().take_while(|left| left.arrival() < arrival) {
            while let Some(gone) = leaving.next_if(|gone| gone.dequeued < left.enqueued) {
                levels.fall(gone);
            }
            levels.rise(left);
        }
        while let Some(gone) = leaving.next_if(|gone| gone.dequeued < at) {
            levels.fall(gone);
        }
        let backlog = levels.backlog();
        let empty = backlog.packets == 0;
        let since = arrivals.iter().next().filter(|_| !empty).map_or(at, |first| first.enqueued);
        Moment {
            standing: QueueSnapshot { at, backlog, since },
            original: levels.owners(),
            complete: self.remembers(at) && (complete || empty),
        }
    }

    /// Whether all departures at `time` or later are remembered.
    pub(super) fn remembers(&self, time: Nanos) -> bool {
        self.forgotten == 0 || self.forgotten_until < time
    }

    /// The moment just after the arrival with which the queue was deepest within `during` (the first if several are equal); the start of `during`
    /// if the queue was as deep before any arrival.
    pub(super) fn deepest(&self, during: &Range<Nanos>) -> Arrival {
        let mut deepest = (during.start, 0);
        let mut most = self.moment(deepest).standing.backlog.bytes;
        let mut index = self.position(during.start);
        while index < self.left.len() {
            let Period { span, .. } = self.period(index);
            index = span.end;
            let arrivals = Arrivals::new(self, span.clone());
            let mut leaving = self.left.range(span).peekable();
            let mut depth = ByteCount(0);
            for left in arrivals.iter() {
                if left.enqueued >= during.end {
                    return deepest;
                }
                while let Some(gone) = leaving.next_if(|gone| gone.dequeued < left.enqueued) {
                    depth -= ByteCount(gone.size.into());
                }
                depth += ByteCount(left.size.into());
                if left.enqueued >= during.start && depth > most {
                    let (at, number) = left.arrival();
                    (most, deepest) = (depth, (at, number + 1));
                }
            }
        }
        deepest
    }
}

/// Departures in the order of their packets' arrival.
struct Arrivals<'a> {
    log: &'a QueueLog,
    span: Range<usize>,
    /// Empty if they left in that order, too.
    order: Vec<usize>,
}

impl<'a> Arrivals<'a> {
    fn new(log: &'a QueueLog, span: Range<usize>) -> Self {
        let mut order = Vec::new();
        if !log.fifo && !log.left.range(span.clone()).is_sorted_by_key(PackedDeparture::arrival) {
            order.extend(span.clone());
            // A stable sort: packets with equal arrivals stay in the order of departure.
            order.sort_by_key(|index| log.left[*index].arrival());
        }
        Self { log, span, order }
    }

    fn iter(&self) -> impl Iterator<Item = &'a PackedDeparture> {
        let log = self.log;
        let in_order = if self.order.is_empty() { self.span.clone() } else { 0..0 };
        in_order.chain(self.order.iter().copied()).map(move |index| &log.left[index])
    }
}
