//! CoDel (RFC 8289): keeps the sojourn time of packets near a target, by dropping at the head.
//!
//! The state machine is that of the pseudocode in section 5. Where Linux (`net/sched/sch_codel`) and ns-3 differ from
//! it, [`CodelFlavour`] selects the variant. Deviations:
//!
//! - Time is in nanoseconds. Linux drops its ten low bits, which moves a drop by some microseconds. Of the flavours
//!   here only that of ns-3 does the same.
//! - The pseudocode has no ECN. As in Linux, an ECN-capable packet is marked instead of dropped, and departs. A mark
//!   ends the dequeue, whereas drops go on until one packet may depart.
//! - A packet that is marked instead of dropped is not marked again for the CE threshold (as in ns-3; Linux counts
//!   both).

use crate::counters::counters;
use crate::fifo::{Fifo, Waiting};
use crate::limit::CompiledLimit;
use crate::{Discipline, DropReason, Dropped, Limit, MarkReason, Outlet, Sink};
use queuescope_wire::{Backlog, ByteCount, Departure, Ecn, Nanos, Packet, QueueId};

/// The parameters of a CoDel queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodelParams {
    /// The limit of the queue. 1000 packets by default (Linux).
    pub limit: Limit,
    /// The sojourn time that is acceptable for longer than an interval: 5 ms (RFC 8289 section 4).
    pub target: Nanos,
    /// The interval, about the longest usual round-trip time: 100 ms (RFC 8289 section 4).
    pub interval: Nanos,
    /// A packet is dropped only if more than this many bytes stay behind it: the largest packet of the link. 1500
    /// (ns-3).
    pub min_bytes: ByteCount,
    /// Whether ECN-capable packets are marked instead of dropped. Off, as in Linux and ns-3.
    pub ecn: bool,
    /// An ECN-capable packet with a longer sojourn time than this is marked, whatever the control law decides and
    /// whether `ecn` is on or not. For DCTCP. None by default.
    pub ce_threshold: Option<Nanos>,
    /// The implementation whose details to follow.
    pub flavour: CodelFlavour,
}

impl Default for CodelParams {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(1000),
            target: Nanos(5_000_000),
            interval: Nanos(100_000_000),
            min_bytes: ByteCount(1500),
            ecn: false,
            ce_threshold: None,
            flavour: CodelFlavour::Rfc,
        }
    }
}

/// The differences between implementations of CoDel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CodelFlavour {
    /// The pseudocode of RFC 8289. It uses the exact square root. A packet may be dropped at the very end of the first
    /// interval. The drop that ends a dropping state does not count towards the rate of the next one.
    #[default]
    Rfc,
    /// Linux. For each drop it takes one step of Newton's method towards the reciprocal square root, which it keeps in
    /// 16 bits. It drops only after the end of the first interval. All drops count.
    Linux,
    /// ns-3 3.37: as Linux, with these differences. A queue of exactly `min_bytes` is long enough to drop from. After a
    /// mark in the dropping state the next one is due one spacing after now, not one spacing after the mark was due.
    /// Time is in units of 1024 ns.
    Ns3,
}

/// A CoDel queue.
///
/// ```
/// use queuescope_queue::{Codel, CodelParams, Discipline, Outlet};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_wire::{ByteCount, Nanos, Packet, PacketId, QueueId};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// let outlet = Outlet { rate: "10mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
/// let mut queue = Codel::new(CodelParams { target: "10ms".parse()?, ..CodelParams::default() }, outlet);
/// for n in 0..300 {
///     queue.enqueue(Packet { id: PacketId(n), size: ByteCount(1500), ..Packet::default() }, Nanos::ZERO, &mut NoSink);
/// }
/// // Each packet takes 1.2 ms on the link. Packets wait for more than 10 ms for longer than the interval of 100 ms.
/// for n in 0..200 {
///     queue.dequeue(Nanos(n * 1_200_000), &mut NoSink);
/// }
/// println!("{} packets were dropped at the head", queue.stats().target);
/// assert!(queue.stats().target > 0);
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug)]
pub struct Codel {
    queue: QueueId,
    room: CompiledLimit,
    law: CodelLaw,
    control: CodelState,
    fifo: Fifo,
    stats: CodelStats,
}

/// The counters of a CoDel queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodelStats {
    /// Packets that came.
    pub offered: u64,
    /// Packets that left.
    pub departed: u64,
    /// Packets that were dropped because the queue was full.
    pub overlimit: u64,
    /// Packets that were dropped at the head, because of the target.
    pub target: u64,
    /// Packets that were marked, because of the target, instead of dropped.
    pub marked_target: u64,
    /// Packets that were marked because their sojourn time was above the CE threshold.
    pub marked_threshold: u64,
}

counters!(CodelStats { offered, departed, overlimit, target, marked_target, marked_threshold });

impl Codel {
    /// An empty queue.
    pub fn new(params: CodelParams, outlet: Outlet) -> Self {
        Self {
            queue: outlet.queue,
            room: CompiledLimit::new(params.limit, &outlet),
            law: CodelLaw::new(&params),
            control: CodelState::default(),
            fifo: Fifo::default(),
            stats: CodelStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &CodelStats {
        &self.stats
    }
}

impl Discipline for Codel {
    #[inline]
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        self.stats.offered += 1;
        if !self.room.admits(self.fifo.backlog(), packet.size) {
            self.stats.overlimit += 1;
            sink.dropped(&Dropped::on_arrival(packet, self.queue, now, DropReason::Overlimit));
            return;
        }
        self.fifo.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure> {
        let mut line = SingleQueue { queue: self.queue, fifo: &mut self.fifo, stats: &mut self.stats, sink, now };
        let first = self.control.next(&self.law, &mut line, now)?;
        self.stats.departed += 1;
        Some(first.depart(self.queue, now, self.fifo.backlog()))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

/// The only queue of a discipline, with the sink for its drops and marks.
struct SingleQueue<'a, S> {
    queue: QueueId,
    fifo: &'a mut Fifo,
    stats: &'a mut CodelStats,
    sink: &'a mut S,
    now: Nanos,
}

impl<S: Sink> ControlledQueue for SingleQueue<'_, S> {
    #[inline]
    fn pop(&mut self) -> Option<Waiting> {
        self.fifo.pop()
    }

    #[inline]
    fn bytes(&self) -> ByteCount {
        self.fifo.backlog().bytes
    }

    fn drop(&mut self, waiting: Waiting) {
        self.stats.target += 1;
        let Waiting { packet, enqueued, .. } = waiting;
        self.sink.dropped(&Dropped::from_queue(packet, self.queue, enqueued, self.now, DropReason::Target));
    }

    fn marked(&mut self, packet: &Packet, reason: MarkReason) {
        match reason {
            MarkReason::Threshold => self.stats.marked_threshold += 1,
            _ => self.stats.marked_target += 1,
        }
        self.sink.marked(packet, reason, self.now);
    }
}

/// The operations of [`CodelState`] on the queue that it controls.
pub(crate) trait ControlledQueue {
    /// Removes the first packet.
    fn pop(&mut self) -> Option<Waiting>;
    /// The bytes in the queue.
    fn bytes(&self) -> ByteCount;
    /// Drops a packet that was removed.
    fn drop(&mut self, waiting: Waiting);
    /// Reports that a packet that was removed has been marked.
    fn marked(&mut self, packet: &Packet, reason: MarkReason);
}

/// The constant part of the control: one for any number of queues. Times are in units of 2^`shift` ns.
#[derive(Debug)]
pub(crate) struct CodelLaw {
    shift: u32,
    target: Nanos,
    interval: Nanos,
    /// A queue of at most this many bytes is not dropped from.
    min_bytes: u64,
    ecn: bool,
    ce_threshold: Nanos,
    flavour: CodelFlavour,
}

/// The state of one queue under control.
#[derive(Debug, Default)]
pub(crate) struct CodelState {
    /// While the sojourn time is above the target: when it will have been above for an interval.
    first_above: Option<Nanos>,
    /// In the dropping state: when the next packet is to be dropped.
    drop_next: Nanos,
    /// Drops since the start of the dropping state.
    count: u32,
    /// The value of `count` when the dropping state started.
    last_count: u32,
    /// The reciprocal square root of `count`, in units of 2^-16, for flavours that use Newton's steps.
    reciprocal: u16,
    /// Whether this is the dropping state.
    dropping: bool,
}

impl CodelLaw {
    pub fn new(params: &CodelParams) -> Self {
        let CodelParams { limit: _, target, interval, min_bytes, ecn, ce_threshold, flavour } = *params;
        let strictly = u64::from(flavour == CodelFlavour::Ns3);
        let shift = if flavour == CodelFlavour::Ns3 { 10 } else { 0 };
        let units = |time: Nanos| Nanos(time.0 >> shift);
        Self {
            shift,
            target: units(target),
            interval: units(interval),
            min_bytes: min_bytes.0.saturating_sub(strictly),
            ecn,
            ce_threshold: ce_threshold.map_or(Nanos::MAX, units),
            flavour,
        }
    }

    /// Converts a time or duration to units of 2^`shift` ns.
    #[inline]
    fn units(&self, time: Nanos) -> Nanos {
        Nanos(time.0 >> self.shift)
    }
}

impl CodelState {
    /// Returns the packet that departs now, or `None` if none is left. It may drop others first, and may mark this one.
    #[inline]
    pub fn next(&mut self, law: &CodelLaw, line: &mut impl ControlledQueue, now: Nanos) -> Option<Waiting> {
        let Some((first, late)) = self.pop(law, line, now) else {
            self.dropping = false;
            return None;
        };
        let (mut leaving, marked) =
            if self.dropping || late { self.drop_or_mark(law, line, first, late, now) } else { (Some(first), false) };
        if let Some(leaving) = &mut leaving
            && !marked
            && leaving.packet.ecn.is_capable()
            && law.units(now.saturating_sub(leaving.enqueued)) > law.ce_threshold
        {
            leaving.packet.ecn = Ecn::Ce;
            line.marked(&leaving.packet, MarkReason::Threshold);
        }
        leaving
    }

    /// Removes the first packet, and returns whether it may be dropped (RFC 8289: `dodequeue`).
    #[inline]
    fn pop(&mut self, law: &CodelLaw, line: &mut impl ControlledQueue, now: Nanos) -> Option<(Waiting, bool)> {
        let Some(first) = line.pop() else {
            self.first_above = None;
            return None;
        };
        if law.units(now.saturating_sub(first.enqueued)) < law.target || line.bytes().0 <= law.min_bytes {
            self.first_above = None;
            return Some((first, false));
        }
        let now = law.units(now);
        let late = match self.first_above {
            None => {
                self.first_above = Some(now.saturating_add(law.interval));
                false
            }
            Some(until) if law.flavour == CodelFlavour::Rfc => now >= until,
            Some(until) => now > until,
        };
        Some((first, late))
    }

    /// Handles the dropping state and the entry into it. Returns the packet that departs, and whether it was marked.
    /// Few packets get here.
    #[inline(never)]
    fn drop_or_mark(
        &mut self,
        law: &CodelLaw,
        line: &mut impl ControlledQueue,
        first: Waiting,
        late: bool,
        now: Nanos,
    ) -> (Option<Waiting>, bool) {
        if !self.dropping {
            return self.enter_dropping(law, line, first, now);
        }
        if !late {
            self.dropping = false;
            return (Some(first), false);
        }
        let mut first = first;
        while law.units(now) >= self.drop_next {
            if mark(law, line, &mut first) {
                self.count_drop(law);
                let due = if law.flavour == CodelFlavour::Ns3 { law.units(now) } else { self.drop_next };
                self.drop_next = self.next_drop(law, due);
                return (Some(first), true);
            }
            line.drop(first);
            if law.flavour != CodelFlavour::Rfc {
                self.count_drop(law);
            }
            match self.pop(law, line, now) {
                Some((next, true)) => first = next,
                other => {
                    self.dropping = false;
                    return (other.map(|(next, _)| next), false);
                }
            }
            if law.flavour == CodelFlavour::Rfc {
                self.count_drop(law);
            }
            self.drop_next = self.next_drop(law, self.drop_next);
        }
        (Some(first), false)
    }

    /// Enters the dropping state with a first drop or mark.
    fn enter_dropping(
        &mut self,
        law: &CodelLaw,
        line: &mut impl ControlledQueue,
        first: Waiting,
        now: Nanos,
    ) -> (Option<Waiting>, bool) {
        let mut first = first;
        let marked = mark(law, line, &mut first);
        let leaving = if marked {
            Some(first)
        } else {
            line.drop(first);
            self.pop(law, line, now).map(|(next, _)| next)
        };
        self.dropping = true;
        let now = law.units(now);
        // If the dropping state ended not long ago, its rate of drops is a good one to start with.
        let reached = self.count.saturating_sub(self.last_count);
        let recent = u128::from(now.saturating_sub(self.drop_next).0) < 16 * u128::from(law.interval.0);
        if reached > 1 && recent {
            self.count = reached;
            self.reciprocal = newton_step(self.reciprocal, reached);
        } else {
            self.count = 1;
            self.reciprocal = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.next_drop(law, now);
        (leaving, marked)
    }

    /// Counts one more drop, so that the next ones come sooner.
    fn count_drop(&mut self, law: &CodelLaw) {
        self.count = self.count.saturating_add(1);
        if law.flavour != CodelFlavour::Rfc {
            self.reciprocal = newton_step(self.reciprocal, self.count);
        }
    }

    /// The control law: returns `due` plus an interval over the square root of the count.
    fn next_drop(&self, law: &CodelLaw, due: Nanos) -> Nanos {
        let spacing = match law.flavour {
            CodelFlavour::Rfc => spacing(law.interval, self.count),
            CodelFlavour::Linux | CodelFlavour::Ns3 => {
                Nanos(((u128::from(law.interval.0) * u128::from(self.reciprocal)) >> 16) as u64)
            }
        };
        due.saturating_add(spacing)
    }
}

/// An interval over the square root of a count, rounded down to nanoseconds.
#[inline]
pub(crate) fn spacing(interval: Nanos, count: u32) -> Nanos {
    // IEEE 754 rounds square root and quotient correctly, so it is the same on every machine.
    Nanos((interval.0 as f64 / f64::from(count).sqrt()) as u64)
}

/// Marks a packet instead of dropping it, if `ecn` is on and the packet is ECN-capable.
fn mark(law: &CodelLaw, line: &mut impl ControlledQueue, first: &mut Waiting) -> bool {
    let marked = law.ecn && first.packet.ecn.is_capable();
    if marked {
        first.packet.ecn = Ecn::Ce;
        line.marked(&first.packet, MarkReason::Target);
    }
    marked
}

/// One step of Newton's method from `x` towards the reciprocal square root of `count`: x (3 - count x^2) / 2. It is
/// computed with 32 fraction bits and kept in 16, as in Linux.
fn newton_step(x: u16, count: u32) -> u16 {
    let x = u64::from(x) << 16;
    let square = (x * x) >> 32;
    let rest = (3u64 << 32).saturating_sub(u64::from(count) * square);
    // Shifted by two bits first, so that the product fits.
    (((rest >> 2) * x) >> 47) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of Linux's step, by hand from its definition in fixed point.
    #[test]
    fn newton_steps_are_those_of_16_bits() {
        // One is kept as 65535/65536, and stays at that.
        assert_eq!(newton_step(u16::MAX, 1), u16::MAX);
        // From there for a count of 2: 0.999985 (3 - 1.999939) / 2 = 0.500023.
        assert_eq!(newton_step(u16::MAX, 2), 32_769);
        // From 0.5 for 3: 0.5 (3 - 0.75) / 2 = 0.5625. From that for 4: 0.5625 (3 - 1.265625) / 2 = 0.48779.
        assert_eq!(newton_step(32_768, 3), 36_864);
        assert_eq!(newton_step(36_864, 4), 31_968);
        assert_eq!(newton_step(1, u32::MAX), 1);
    }

    #[test]
    fn newton_steps_settle_near_the_reciprocal_square_root() {
        let mut x = u16::MAX;
        for count in 2..100_000u32 {
            x = newton_step(x, count);
            let exact = 65_536.0 / f64::from(count).sqrt();
            // One step per drop is coarse for the first drops. Later the error is that of 16 bits.
            if count > 8 {
                assert!((f64::from(x) - exact).abs() <= 0.02 * exact + 4.0, "{count}: {x} against {exact}");
            }
        }
    }

    #[test]
    fn the_control_law_is_an_interval_over_the_square_root() {
        let law = CodelLaw::new(&CodelParams::default());
        let next = |count| CodelState { count, ..CodelState::default() }.next_drop(&law, Nanos(7)).0 - 7;
        assert_eq!([1, 2, 3, 4, 100].map(next), [100_000_000, 70_710_678, 57_735_026, 50_000_000, 10_000_000]);
    }
}
