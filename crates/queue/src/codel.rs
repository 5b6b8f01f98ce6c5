//! CoDel (RFC 8289): keeps the time that packets wait near a target, by dropping at the head.
//!
//! The state machine is that of the pseudocode in section 5. Where Linux (`net/sched/sch_codel`) and ns-3 differ from
//! it, a [`CodelFlavour`] chooses. Deviations:
//!
//! - Time is in nanoseconds. Linux drops its ten low bits, which moves a drop by some microseconds; of the flavours only ns-3's
//!   does so.
//! - The pseudocode has no ECN. As in Linux a packet is marked in place of dropped, and leaves: a mark ends the
//!   dequeue, while drops go on until one packet may leave.
//! - A packet marked in place of a drop is not marked once more for the CE threshold (as ns-3; Linux counts both).

use crate::counters::counters;
use crate::fifo::{Fifo, Waiting};
use crate::limit::Room;
use crate::{Discipline, DropReason, Dropped, Limit, MarkReason, Outlet, Sink};
use queuescope_wire::{Backlog, ByteCount, Departure, Ecn, Nanos, Packet, QueueId};

/// What a CoDel queue is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodelParams {
    /// How much it holds. 1000 packets by default (Linux).
    pub limit: Limit,
    /// The wait that is acceptable for longer than an interval: 5 ms (RFC 8289 section 4).
    pub target: Nanos,
    /// As long as a long round trip: 100 ms (RFC 8289 section 4).
    pub interval: Nanos,
    /// No packet is dropped unless more than so many bytes stay behind it: the largest packet of the link. 1500 (ns-3).
    pub min_bytes: ByteCount,
    /// Whether packets that are ECN-capable are marked where they would be dropped. Off, as in Linux and ns-3.
    pub ecn: bool,
    /// Each ECN-capable packet that waited longer than this is marked, whatever the rest decides and whether `ecn` is
    /// on or not: for DCTCP. None by default.
    pub ce_threshold: Option<Nanos>,
    /// Whose details.
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

/// In what the implementations of CoDel differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CodelFlavour {
    /// The pseudocode of RFC 8289: the exact square root; a packet may be dropped from the very end of the first
    /// interval on; the drop that ends a dropping state does not count towards the next one's rate.
    #[default]
    Rfc,
    /// Linux: one step of Newton's method for each drop towards the reciprocal square root, which is kept in 16 bits;
    /// only after the end of the first interval; all drops count.
    Linux,
    /// ns-3 3.37: as Linux; and a queue of exactly `min_bytes` is long enough to drop from; and after a mark in the
    /// dropping state the next one is due a spacing after now, not after it was due itself. Time is in units of 1024 ns.
    Ns3,
}

/// A CoDel queue.
#[derive(Debug)]
pub struct Codel {
    queue: QueueId,
    room: Room,
    law: Law,
    control: Control,
    fifo: Fifo,
    stats: CodelStats,
}

/// What a CoDel queue counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodelStats {
    /// Packets that came.
    pub offered: u64,
    /// Packets that left.
    pub departed: u64,
    /// Packets that found no room.
    pub overlimit: u64,
    /// Packets dropped at the head.
    pub target: u64,
    /// Packets marked in place of that.
    pub marked_target: u64,
    /// Packets marked since they waited longer than the CE threshold.
    pub marked_threshold: u64,
}

counters!(CodelStats { offered, departed, overlimit, target, marked_target, marked_threshold });

impl Codel {
    /// An empty queue.
    pub fn new(params: CodelParams, outlet: Outlet) -> Self {
        Self {
            queue: outlet.queue,
            room: Room::new(params.limit, &outlet),
            law: Law::new(&params),
            control: Control::default(),
            fifo: Fifo::default(),
            stats: CodelStats::default(),
        }
    }

    /// What was counted so far.
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
        let mut line = Single { queue: self.queue, fifo: &mut self.fifo, stats: &mut self.stats, sink, now };
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

/// The only queue there is, and who is told.
struct Single<'a, S> {
    queue: QueueId,
    fifo: &'a mut Fifo,
    stats: &'a mut CodelStats,
    sink: &'a mut S,
    now: Nanos,
}

impl<S: Sink> Line for Single<'_, S> {
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

/// A queue that is under control: what [`Control`] may do with it.
pub(crate) trait Line {
    /// Takes out the first packet.
    fn pop(&mut self) -> Option<Waiting>;
    /// The bytes that wait.
    fn bytes(&self) -> ByteCount;
    /// A packet that was taken out will not leave.
    fn drop(&mut self, waiting: Waiting);
    /// A packet that was taken out has been marked.
    fn marked(&mut self, packet: &Packet, reason: MarkReason);
}

/// What does not change: one for any number of queues. Times are in units of 2^`shift` ns.
#[derive(Debug)]
pub(crate) struct Law {
    shift: u32,
    target: Nanos,
    interval: Nanos,
    /// A queue of so many bytes or fewer is not dropped from.
    min_bytes: u64,
    ecn: bool,
    ce_threshold: Nanos,
    flavour: CodelFlavour,
}

/// The state of one queue under control.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// When the wait will have been above the target for an interval, while it is above.
    first_above: Option<Nanos>,
    /// When the next packet is to be dropped, in the dropping state.
    drop_next: Nanos,
    /// Drops since the dropping state was entered.
    count: u32,
    /// The same, as it was when the state was entered.
    last_count: u32,
    /// One over the square root of `count`, in 2^-16; where Newton's steps are used.
    reciprocal: u16,
    /// Whether this is the dropping state.
    dropping: bool,
}

impl Law {
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

    /// A time, or how long something took, in its units.
    #[inline]
    fn units(&self, time: Nanos) -> Nanos {
        Nanos(time.0 >> self.shift)
    }
}

impl Control {
    /// The packet that leaves now, unless none is left. Others may be dropped before it, and it may be marked.
    #[inline]
    pub fn next(&mut self, law: &Law, line: &mut impl Line, now: Nanos) -> Option<Waiting> {
        let Some((first, late)) = self.pop(law, line, now) else {
            self.dropping = false;
            return None;
        };
        let (mut leaving, marked) =
            if self.dropping || late { self.act(law, line, first, late, now) } else { (Some(first), false) };
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

    /// Takes out the first packet; and says whether it may be dropped (RFC 8289: `dodequeue`).
    #[inline]
    fn pop(&mut self, law: &Law, line: &mut impl Line, now: Nanos) -> Option<(Waiting, bool)> {
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

    /// The dropping state, or the way into it: what leaves, and whether it was marked. Few packets come here.
    #[inline(never)]
    fn act(
        &mut self,
        law: &Law,
        line: &mut impl Line,
        first: Waiting,
        late: bool,
        now: Nanos,
    ) -> (Option<Waiting>, bool) {
        if !self.dropping {
            return self.enter(law, line, first, now);
        }
        if !late {
            self.dropping = false;
            return (Some(first), false);
        }
        let mut first = first;
        while law.units(now) >= self.drop_next {
            if mark(law, line, &mut first) {
                self.faster(law);
                let due = if law.flavour == CodelFlavour::Ns3 { law.units(now) } else { self.drop_next };
                self.drop_next = self.after(law, due);
                return (Some(first), true);
            }
            line.drop(first);
            if law.flavour != CodelFlavour::Rfc {
                self.faster(law);
            }
            match self.pop(law, line, now) {
                Some((next, true)) => first = next,
                other => {
                    self.dropping = false;
                    return (other.map(|(next, _)| next), false);
                }
            }
            if law.flavour == CodelFlavour::Rfc {
                self.faster(law);
            }
            self.drop_next = self.after(law, self.drop_next);
        }
        (Some(first), false)
    }

    /// Enters the dropping state with a first drop or mark.
    fn enter(&mut self, law: &Law, line: &mut impl Line, first: Waiting, now: Nanos) -> (Option<Waiting>, bool) {
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
        // If the state was left not long ago, the rate of drops that it had reached is a good one to start with.
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
        self.drop_next = self.after(law, now);
        (leaving, marked)
    }

    /// One drop more: the next ones come faster.
    fn faster(&mut self, law: &Law) {
        self.count = self.count.saturating_add(1);
        if law.flavour != CodelFlavour::Rfc {
            self.reciprocal = newton_step(self.reciprocal, self.count);
        }
    }

    /// The control law: an interval over the square root of the count after `due`.
    fn after(&self, law: &Law, due: Nanos) -> Nanos {
        let spacing = match law.flavour {
            // IEEE 754 rounds square root and quotient correctly, so it is the same on every machine.
            CodelFlavour::Rfc => (law.interval.0 as f64 / f64::from(self.count).sqrt()) as u64,
            CodelFlavour::Linux | CodelFlavour::Ns3 => {
                ((u128::from(law.interval.0) * u128::from(self.reciprocal)) >> 16) as u64
            }
        };
        due.saturating_add(Nanos(spacing))
    }
}

/// Marks a packet in place of a drop, if that is wanted and possible.
fn mark(law: &Law, line: &mut impl Line, first: &mut Waiting) -> bool {
    let marked = law.ecn && first.packet.ecn.is_capable();
    if marked {
        first.packet.ecn = Ecn::Ce;
        line.marked(&first.packet, MarkReason::Target);
    }
    marked
}

/// One step of Newton's method from `x` towards one over the square root of `count`: x (3 - count x^2) / 2. It is
/// computed in 32 bits after the point and kept in 16, as in Linux.
fn newton_step(x: u16, count: u32) -> u16 {
    let x = u64::from(x) << 16;
    let square = (x * x) >> 32;
    let rest = (3u64 << 32).saturating_sub(u64::from(count) * square);
    // Two bits early, so that the product fits.
    (((rest >> 2) * x) >> 47) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the step as Linux computes them, by hand from its definition in the fixed point that it has.
    #[test]
    fn newton_steps_are_those_of_16_bits() {
        // One is kept as 65535/65536, and stays that.
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
            // One step a drop is coarse for the first ones. Later the 16 bits are what is missing.
            if count > 8 {
                assert!((f64::from(x) - exact).abs() <= 0.02 * exact + 4.0, "{count}: {x} against {exact}");
            }
        }
    }

    #[test]
    fn the_control_law_is_an_interval_over_the_square_root() {
        let law = Law::new(&CodelParams::default());
        let next = |count| Control { count, ..Control::default() }.after(&law, Nanos(7)).0 - 7;
        assert_eq!([1, 2, 3, 4, 100].map(next), [100_000_000, 70_710_678, 57_735_026, 50_000_000, 10_000_000]);
    }
}
