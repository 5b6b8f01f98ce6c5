//! PI2: a PI controller whose output is squared for classic congestion controls (De Schepper, Bondarenko, Tsang and
//! Briscoe, CoNEXT 2016).
//!
//! One queue. The controller moves a probability p' linearly, without PIE's scaling, decay, cap and burst allowance. A
//! classic packet (not ECN-capable, or ECT(0)) is dropped or marked with p' squared; a scalable one (ECT(1) or CE) is
//! marked with k p'. Both decisions are made at enqueue.
//!
//! Choices: the square is drawn as one number below p'^2, not as two numbers both below p'. The probability stops where
//! classic packets reach `max_classic`. Above that load the queue grows to its limit, as in the paper's section on
//! overload.

use crate::counters::counters;
use crate::fifo::Fifo;
use crate::limit::CompiledLimit;
use crate::pie::proportional_integral;
use crate::random::Random;
use crate::update_clock::UpdateClock;
use crate::{Discipline, DropReason, Dropped, Limit, MarkReason, Outlet, Sink};
use queuescope_wire::{Backlog, ByteCount, Departure, Ecn, Nanos, Packet};

/// The parameters of PI2. Sources: the paper's section 5 and the authors' Linux discipline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pi2Params {
    /// The limit of the queue: 1000 packets.
    pub limit: Limit,
    /// The target delay: 20 ms.
    pub target: Nanos,
    /// The interval between updates of the probability: 32 ms.
    pub update: Nanos,
    /// The time of the first update; further ones follow each `update`. `None`: one `update` after the first packet.
    pub first_update: Option<Nanos>,
    /// The gain for the distance of the delay to its target, in Hz: 5/16.
    pub alpha: f64,
    /// The gain for the change of the delay, in Hz: 50/16.
    pub beta: f64,
    /// k: the factor between p' and the probability with which scalable packets are marked: 2.
    pub coupling: f64,
    /// The highest probability with which classic packets are dropped or marked: 25 %.
    pub max_classic: f64,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Nothing is dropped or marked while the queue holds at most this: two packets of 1500 bytes.
    pub short_queue: ByteCount,
}

impl Default for Pi2Params {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(1000),
            target: Nanos(20_000_000),
            update: Nanos(32_000_000),
            first_update: None,
            alpha: 0.3125,
            beta: 3.125,
            coupling: 2.0,
            max_classic: 0.25,
            ecn: true,
            short_queue: ByteCount(3000),
        }
    }
}

/// A queue under PI2.
///
/// ```
/// use queuescope_queue::{Outlet, Pi2, Pi2Params};
/// use queuescope_wire::QueueId;
///
/// let outlet = Outlet { rate: "10mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
/// let queue = Pi2::new(Pi2Params { target: "15ms".parse()?, ..Pi2Params::default() }, outlet);
/// let p = queue.base_probability();
/// assert_eq!(queue.drop_probability(), p * p);
/// assert_eq!(queue.scalable_probability(), 2.0 * p);
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug)]
pub struct Pi2 {
    params: Pi2Params,
    outlet: Outlet,
    room: CompiledLimit,
    fifo: Fifo,
    clock: UpdateClock,
    random: Random,
    /// p', and the probabilities that follow from it.
    base: f64,
    classic: f64,
    scalable: f64,
    delay: Nanos,
    old: Nanos,
    stats: Pi2Stats,
}

/// The counters of PI2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pi2Stats {
    /// Packets that came.
    pub offered: u64,
    /// Packets that left.
    pub departed: u64,
    /// Packets that were dropped because the queue was full.
    pub overlimit: u64,
    /// Packets that were dropped early.
    pub early: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// Updates of the probability.
    pub updates: u64,
}

counters!(Pi2Stats { offered, departed, overlimit, early, marked, updates });

/// The base probability p' after an update, between 0 and `most`.
pub(crate) fn next_base(base: f64, change: f64, most: f64) -> f64 {
    (base + change).clamp(0.0, most.max(0.0))
}

/// Whether a packet belongs to a scalable congestion control (RFC 9331: ECT(1), and CE, which may have been ECT(1)).
#[inline]
pub(crate) fn is_scalable(ecn: Ecn) -> bool {
    matches!(ecn, Ecn::Ect1 | Ecn::Ce)
}

impl Pi2 {
    /// An empty queue.
    pub fn new(params: Pi2Params, outlet: Outlet) -> Self {
        Self {
            params,
            outlet,
            room: CompiledLimit::new(params.limit, &outlet),
            fifo: Fifo::default(),
            clock: UpdateClock::new(params.update, params.first_update),
            random: Random::new(outlet.seed),
            base: 0.0,
            classic: 0.0,
            scalable: 0.0,
            delay: Nanos::ZERO,
            old: Nanos::ZERO,
            stats: Pi2Stats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &Pi2Stats {
        &self.stats
    }

    /// The probability with which a classic packet is dropped or marked: p' squared.
    pub fn drop_probability(&self) -> f64 {
        self.classic
    }

    /// The controller's own probability, p'.
    pub fn base_probability(&self) -> f64 {
        self.base
    }

    /// The probability with which a scalable packet is marked: k p', at most 1.
    pub fn scalable_probability(&self) -> f64 {
        self.scalable
    }

    /// The sojourn time of the last packet that left; 0 once the queue is empty.
    pub fn queue_delay(&self) -> Nanos {
        self.delay
    }
}

impl Discipline for Pi2 {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet, now: Nanos, sink: &mut impl Sink) {
        self.stats.offered += 1;
        self.clock.wake(now);
        let backlog = self.fifo.backlog();
        if !self.room.admits(backlog, packet.size) {
            self.stats.overlimit += 1;
            sink.dropped(&Dropped::on_arrival(packet, self.outlet.queue, now, DropReason::Overlimit));
            return;
        }
        let probability = if self.params.ecn && is_scalable(packet.ecn) { self.scalable } else { self.classic };
        if backlog.bytes > self.params.short_queue && self.random.unit() < probability {
            if !(self.params.ecn && packet.ecn.is_capable()) {
                self.stats.early += 1;
                sink.dropped(&Dropped::on_arrival(packet, self.outlet.queue, now, DropReason::Early));
                return;
            }
            packet.ecn = Ecn::Ce;
            self.stats.marked += 1;
            sink.marked(&packet, MarkReason::Early, now);
        }
        self.fifo.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, _sink: &mut impl Sink) -> Option<Departure> {
        let first = self.fifo.pop()?;
        self.stats.departed += 1;
        let backlog = self.fifo.backlog();
        self.delay = if backlog.packets == 0 { Nanos::ZERO } else { now.saturating_sub(first.enqueued) };
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
        self.stats.updates += 1;
        let Pi2Params { alpha, beta, target, max_classic, coupling, .. } = self.params;
        let change = proportional_integral(alpha, beta, target, self.delay, self.old);
        self.base = next_base(self.base, change, max_classic.min(1.0).sqrt());
        self.classic = self.base * self.base;
        self.scalable = (coupling * self.base).min(1.0);
        self.old = self.delay;
        if self.base == 0.0 && self.delay == Nanos::ZERO && self.fifo.backlog().packets == 0 {
            self.clock.rest();
        } else {
            self.clock.tick();
        }
    }

    fn is_fifo(&self) -> bool {
        true
    }

    fn drop_probability(&self) -> Option<f64> {
        Some(self.classic)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}
