//! PIE: early drops with a probability that a PI controller moves to hold a target delay (RFC 8033).
//!
//! Each packet that arrives is dropped, or marked, with the current probability. Every 15 ms the probability moves by
//! the distance of the delay to its target and by the change of the delay; the smaller the probability, the smaller the
//! step. After a calm period, bursts pass for 150 ms. [`PieParams`] has the options of sections 4 and 5.
//!
//! Deviations, and choices where the RFC's parts contradict each other or leave something open:
//!
//! - The delay is 0 once the queue is empty ([`PieDelay::Timestamps`]); the pseudocode keeps that of the last packet.
//! - Appendix B tests the burst allowance after its drop decision, so that derandomisation accumulates during a burst.
//!   Here it is tested first (section 4.4, appendix A).
//! - Appendix B does not enqueue a packet that it marks, and does not state whether marks reset the accumulated
//!   probability. Here the packet is enqueued, and every drop and every mark resets.
//! - Updates are on a fixed grid. Appendix B wants a whole interval between activation and the first update.
//! - Appendix B would become inactive at the very arrival that activates it, because its delays are then 0. It would
//!   become inactive again before its first measurement of the departure rate has ended, and the next activation
//!   restarts the measurement. So it would never drop. Here PIE becomes inactive when less than a third of the limit is
//!   used, an update has passed and the delay is known. Calm is defined as in section 5.3: below half of the target.
//! - ns-3's own measurement of the departure rate, which is off by default there, is not implemented.

mod control;
mod departure_rate;
mod params;

pub(crate) use control::proportional_integral;
pub use params::{PieActivation, PieBurst, PieDecay, PieDelay, PieParams, PieScaling, ShortQueue};

use crate::counters::counters;
use crate::fifo::Fifo;
use crate::limit::CompiledLimit;
use crate::random::RandomSource;
use crate::update_clock::UpdateClock;
use crate::{Discipline, DropReason, Dropped, Limit, MarkReason, Outlet, Sink};
use control::{BurstAllowance, below_half, decayed, next_probability};
use departure_rate::DepartureRate;
use queuescope_wire::{Backlog, Departure, Ecn, Nanos, Packet};

/// A queue under PIE.
///
/// ```
/// use queuescope_queue::{Discipline, Outlet, Pie, PieParams};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_wire::{ByteCount, Nanos, Packet, PacketId, QueueId};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// let outlet = Outlet { rate: "12mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
/// let mut queue = Pie::new(PieParams::default(), outlet);
/// for n in 0..2_000 {
///     // For two seconds, two packets come in each millisecond, and one leaves.
///     let now = Nanos(n * 1_000_000);
///     if queue.next_timer().is_some_and(|due| due <= now) {
///         queue.on_timer(now);
///     }
///     for id in [2 * n, 2 * n + 1] {
///         let packet = Packet { id: PacketId(id), size: ByteCount(1500), ..Packet::default() };
///         queue.enqueue(packet, now, &mut NoSink);
///     }
///     queue.dequeue(now, &mut NoSink);
/// }
/// println!("drops {:.0} %, delay {}", 100.0 * queue.drop_probability(), queue.queue_delay());
/// assert!(queue.stats().early > 100 && queue.drop_probability() > 0.1);
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug)]
pub struct Pie {
    params: PieParams,
    outlet: Outlet,
    room: CompiledLimit,
    fifo: Fifo,
    clock: UpdateClock,
    chance: RandomSource,
    /// The drop probability (`drop_prob_`).
    probability: f64,
    /// The delay now, and at the last update (`qdelay_old_`).
    delay: Nanos,
    old: Nanos,
    burst: BurstAllowance,
    /// The probability summed up since the last drop (`accu_prob_`).
    accumulated: f64,
    active: bool,
    /// Whether an update has passed since PIE became active.
    updated: bool,
    rate: DepartureRate,
    stats: PieStats,
}

/// The counters of PIE.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PieStats {
    /// Packets that came.
    pub offered: u64,
    /// Packets that left.
    pub departed: u64,
    /// Packets that were dropped because the queue was full.
    pub overlimit: u64,
    /// Packets that were dropped early.
    pub early: u64,
    /// Packets that were marked instead of dropped.
    pub marked: u64,
    /// Updates of the probability.
    pub updates: u64,
}

counters!(PieStats { offered, departed, overlimit, early, marked, updates });

/// The decision on a packet that fits into the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieVerdict {
    Enqueue,
    Mark,
    Drop,
}

impl Pie {
    /// An empty queue.
    pub fn new(params: PieParams, outlet: Outlet) -> Self {
        let threshold = match params.delay {
            PieDelay::DepartureRate { threshold } => threshold,
            PieDelay::Timestamps { .. } | PieDelay::LinkRate => queuescope_wire::ByteCount(1),
        };
        Self {
            params,
            outlet,
            room: CompiledLimit::new(params.limit, &outlet),
            fifo: Fifo::default(),
            clock: UpdateClock::new(params.update, params.first_update),
            chance: RandomSource::new(params.draws, outlet.seed),
            probability: 0.0,
            delay: Nanos::ZERO,
            old: Nanos::ZERO,
            burst: BurstAllowance::new(&params),
            accumulated: 0.0,
            active: params.starts_active(),
            updated: true,
            rate: DepartureRate::new(threshold),
            stats: PieStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &PieStats {
        &self.stats
    }

    /// The current probability with which a packet is dropped or marked.
    pub fn drop_probability(&self) -> f64 {
        self.probability
    }

    /// The delay as PIE knows it: the current one with timestamps, otherwise that of the last update.
    pub fn queue_delay(&self) -> Nanos {
        self.delay
    }

    /// The remaining time during which bursts pass.
    pub fn burst_allowance(&self) -> Nanos {
        self.burst.left()
    }

    /// Whether PIE is active.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Whether the delay is low, now and at the last update, and nothing is dropped.
    #[inline]
    fn calm(&self) -> bool {
        self.probability == 0.0 && below_half(&self.params, self.delay) && below_half(&self.params, self.old)
    }

    #[inline]
    fn verdict(&mut self, packet: &Packet) -> PieVerdict {
        if !self.active || self.burst.protects() || self.spares() || !self.draws_drop(packet) {
            return PieVerdict::Enqueue;
        }
        self.accumulated = 0.0;
        let marks = self.params.mark_below.is_some_and(|below| self.probability < below);
        if marks && packet.ecn.is_capable() { PieVerdict::Mark } else { PieVerdict::Drop }
    }

    /// Whether the state of the queue forbids drops, whatever the probability (RFC 8033 section 4.1).
    #[inline]
    fn spares(&self) -> bool {
        let low = self.params.spare_below_half && self.probability < 0.2 && below_half(&self.params, self.old);
        low || match self.params.short_queue {
            Some(ShortQueue::Bytes(most)) => self.fifo.backlog().bytes <= most,
            Some(ShortQueue::Packets(most)) => self.fifo.backlog().packets <= most,
            None => false,
        }
    }

    /// Draws whether this packet is dropped or marked.
    #[inline]
    fn draws_drop(&mut self, packet: &Packet) -> bool {
        if self.params.derandomise {
            if self.probability == 0.0 {
                self.accumulated = 0.0;
            }
            self.accumulated += self.probability;
            if self.accumulated < 0.85 {
                return false;
            }
            if self.accumulated >= 8.5 {
                return true;
            }
        }
        let probability = match self.params.scale_to_size {
            Some(mean) => self.probability * packet.size.0 as f64 / mean.0.max(1) as f64,
            None => self.probability,
        };
        self.chance.unit() < probability
    }

    /// Activates or deactivates PIE as a packet arrives (RFC 8033 section 5.3).
    #[inline]
    fn update_activation(&mut self, now: Nanos, enqueued: bool) {
        match self.params.activation {
            PieActivation::Always => {}
            PieActivation::ThirdOfLimit => {
                let full = self.params.third_is_full(self.fifo.backlog(), &self.outlet);
                self.activate_if(full, now);
                self.deactivate_if(!full && self.updated && self.knows_delay() && self.calm());
            }
            PieActivation::Delay(threshold) if enqueued => {
                self.activate_if(self.delay >= threshold, now);
                // ns-3 compares whole milliseconds, and may deactivate PIE right after activating it.
                let low = |delay: Nanos| delay < Nanos(1_000_000);
                self.deactivate_if(self.probability == 0.0 && low(self.old) && low(self.delay));
            }
            PieActivation::Delay(_) => {}
        }
    }

    fn activate_if(&mut self, on: bool, now: Nanos) {
        if on && !self.active {
            self.active = true;
            self.old = Nanos::ZERO;
            self.probability = 0.0;
            self.accumulated = 0.0;
            self.burst.renew();
            self.rate.restart(now);
            self.updated = false;
        }
    }

    fn deactivate_if(&mut self, off: bool) {
        if off && self.active {
            self.active = false;
            self.rate.stop();
        }
    }

    /// Whether the delay is known: if it comes from the departure rate, that must have been measured.
    fn knows_delay(&self) -> bool {
        !matches!(self.params.delay, PieDelay::DepartureRate { .. }) || self.rate.is_known()
    }

    /// Whether the queue is empty and an update would change nothing.
    fn at_rest(&self) -> bool {
        self.fifo.backlog().packets == 0
            && self.probability == 0.0
            && self.delay == Nanos::ZERO
            && self.old == Nanos::ZERO
            && self.burst.at_rest()
    }
}

impl Discipline for Pie {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet, now: Nanos, sink: &mut impl Sink) {
        self.stats.offered += 1;
        self.clock.wake(now);
        self.burst.on_arrival(self.calm());
        let dropped = if !self.room.admits(self.fifo.backlog(), packet.size) {
            self.stats.overlimit += 1;
            self.accumulated = 0.0;
            Some(DropReason::Overlimit)
        } else {
            match self.verdict(&packet) {
                PieVerdict::Drop => {
                    self.stats.early += 1;
                    Some(DropReason::Early)
                }
                PieVerdict::Mark => {
                    packet.ecn = Ecn::Ce;
                    self.stats.marked += 1;
                    sink.marked(&packet, MarkReason::Early, now);
                    None
                }
                PieVerdict::Enqueue => None,
            }
        };
        match dropped {
            Some(reason) => sink.dropped(&Dropped::on_arrival(packet, self.outlet.queue, now, reason)),
            None => self.fifo.push(packet, now),
        }
        self.update_activation(now, dropped.is_none());
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, _sink: &mut impl Sink) -> Option<Departure> {
        let first = self.fifo.pop()?;
        self.stats.departed += 1;
        let backlog = self.fifo.backlog();
        match self.params.delay {
            PieDelay::Timestamps { zero_when_empty } => {
                let empty = zero_when_empty && backlog.packets == 0;
                self.delay = if empty { Nanos::ZERO } else { now.saturating_sub(first.enqueued) };
            }
            PieDelay::DepartureRate { .. } => self.rate.on_departure(first.packet.size, backlog.bytes, now),
            PieDelay::LinkRate => {}
        }
        Some(first.depart(self.outlet.queue, now, backlog))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        self.clock.next()
    }

    fn on_timer(&mut self, _now: Nanos) {
        if self.params.activation == PieActivation::ThirdOfLimit && !self.active {
            self.clock.rest();
            return;
        }
        self.stats.updates += 1;
        self.updated = true;
        let backlog = self.fifo.backlog();
        match self.params.delay {
            PieDelay::Timestamps { .. } => {}
            PieDelay::DepartureRate { .. } => self.delay = self.rate.delay(backlog.bytes),
            PieDelay::LinkRate => self.delay = self.outlet.time_for(backlog),
        }
        self.probability = if self.burst.holds_probability() {
            decayed(&self.params, 0.0, self.delay, self.old)
        } else {
            next_probability(&self.params, self.probability, self.delay, self.old)
        };
        self.burst.on_update(self.params.update, self.calm());
        self.old = self.delay;
        if self.at_rest() { self.clock.rest() } else { self.clock.tick() }
    }

    fn is_fifo(&self) -> bool {
        true
    }

    fn drop_probability(&self) -> Option<f64> {
        Some(self.probability)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

impl PieParams {
    fn starts_active(&self) -> bool {
        match self.activation {
            PieActivation::Always => true,
            PieActivation::ThirdOfLimit => self.limit == Limit::None,
            PieActivation::Delay(_) => false,
        }
    }

    /// Whether the queue holds at least a third of its limit.
    fn third_is_full(&self, backlog: Backlog, outlet: &Outlet) -> bool {
        match self.limit {
            Limit::None => true,
            Limit::Bytes(most) => backlog.bytes.0.saturating_mul(3) >= most.0,
            Limit::Packets(most) => backlog.packets.saturating_mul(3) >= most,
            Limit::Time(most) => outlet.time_for(backlog).0.saturating_mul(3) >= most.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_wire::{ByteCount, Class, FlowId, PacketId, QueueId, Rate};

    #[derive(Default)]
    struct Drops(u64);

    impl Sink for Drops {
        fn dropped(&mut self, _dropped: &Dropped) {
            self.0 += 1;
        }

        fn marked(&mut self, packet: &Packet, _reason: MarkReason, _now: Nanos) {
            panic!("{packet:?} was marked");
        }
    }

    /// Drops of 400 packets under a fixed probability, with the accumulated probability set before each.
    fn drops(probability: f64, accumulated: Option<f64>) -> u64 {
        let params = PieParams { limit: Limit::None, mark_below: None, ..PieParams::default() };
        let outlet =
            Outlet { overhead: 0, rate: Rate::from_bits_per_second(1_000_000).unwrap(), queue: QueueId(0), seed: 3 };
        let mut pie = Pie::new(params, outlet);
        let mut drops = Drops::default();
        pie.burst = BurstAllowance::new(&PieParams { burst: PieBurst::None, ..params });
        pie.probability = probability;
        (pie.delay, pie.old) = (params.target, params.target);
        for id in 0..400 {
            pie.accumulated = accumulated.unwrap_or(pie.accumulated);
            let packet =
                Packet { id: PacketId(id), flow: FlowId(0), size: ByteCount(1000), class: Class(0), ecn: Ecn::Ect0 };
            pie.enqueue(packet, Nanos(id), &mut drops);
        }
        drops.0
    }

    #[test]
    fn a_packet_is_dropped_by_the_accumulated_probability() {
        assert_eq!(drops(0.5, Some(-0.16)), 0, "0.34 is below 0.85");
        assert_eq!(drops(1.0, Some(-0.16)), 0, "0.84 is below 0.85");
        assert_eq!(drops(0.01, Some(8.5)), 397, "all except the three that find the queue too short");
        let free = drops(0.1, None);
        assert!((20..50).contains(&free), "{free}");
    }
}
