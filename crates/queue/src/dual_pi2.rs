//! DualPI2: two coupled queues, a classic one under PI2 and one of low latency (RFC 9332, appendix A with its second
//! pass).
//!
//! ECT(1) and CE packets enter the L queue, all others the C queue (RFC 9331). A PI controller on the longer of both
//! delays moves p'. Classic packets are dropped, or marked if ECN-capable, with p_C = p'^2. Packets of the L queue are
//! marked with the larger of p_CL = k p' and a ramp over their own delay. Both decisions are made at dequeue. Overload:
//! once p_CL is 1, the L queue also drops with p_C and marks all other packets, and the C queue marks none.
//!
//! Deviations and choices:
//!
//! - The RFC prefers `recur` to random draws: it marks each time the sum of likelihoods passes one. Under overload the
//!   RFC sums drops and marks of the L queue in one count. It also sums p_CL, which may be above 1, without bound, so
//!   that drops would become more and more frequent than p_C. Here drops and marks have a count each, and a likelihood
//!   of 1 or more is certain.
//! - `lq.time()` of the packet that leaves is its own sojourn time, and `lq.len()` counts it. So the ramp does not mark
//!   a packet that was alone in the queue.
//! - The RFC's limit keeps room for a full packet (`mtu`), whatever the size of the packet that arrives. A limit in
//!   time or packets works as in the other disciplines.
//! - The weighted round robin, which the RFC leaves open, counts bytes, and only while packets of both queues wait.
//!   Once both queues are empty it starts again in favour of L (after the note on Linux in appendix A.1).

use crate::counters::counters;
use crate::fifo::{Fifo, Waiting};
use crate::limit::CompiledLimit;
use crate::pi2::{is_scalable, next_base};
use crate::pie::proportional_integral;
use crate::random::Random;
use crate::update_clock::UpdateClock;
use crate::{Discipline, DropReason, Dropped, Limit, MarkReason, Outlet, Sink};
use queuescope_wire::{Backlog, ByteCount, Departure, Ecn, Nanos, Packet, QueueId};

/// The parameters of DualPI2. Source of all defaults: RFC 9332, figure 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DualPi2Params {
    /// The limit of both queues together: what the link sends in 250 ms.
    pub limit: Limit,
    /// The size of the largest packet, for which the limit keeps room: 1500 bytes.
    pub mtu: ByteCount,
    /// The target delay of the C queue: 15 ms.
    pub target: Nanos,
    /// The interval between updates of the probability: 15 ms.
    pub update: Nanos,
    /// The time of the first update; further ones follow each `update`. `None`: one `update` after the first packet.
    pub first_update: Option<Nanos>,
    /// The gain for the distance of the delay to its target, in Hz: 0.15.
    pub alpha: f64,
    /// The gain for the change of the delay, in Hz: 3.
    pub beta: f64,
    /// The coupling factor k: 2.
    pub coupling: f64,
    /// The delay above which the ramp marks packets of the L queue: 800 us.
    pub ramp_start: Nanos,
    /// The length of the ramp. `ramp_start` plus this is the delay at which it marks every packet: 400 us. With 0 it is
    /// a step at `ramp_start`.
    pub ramp_length: Nanos,
    /// The ramp marks nothing while the L queue holds at most this many packets, including the one that leaves: 1.
    pub ramp_spares: u64,
    /// How the two queues share the link.
    pub scheduler: DualPi2Scheduler,
    /// Whether marks and drops are spaced evenly (`recur`), not drawn at random.
    pub even: bool,
    /// Whether p_C and p_CL drop or mark nothing while both queues together hold less than two full packets. Off: Linux
    /// does it, the RFC's pseudocode does not.
    pub spare_short: bool,
}

/// How the two queues share the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DualPi2Scheduler {
    /// Weighted round robin: while both have packets, the C queue gets one byte of every `of`.
    WeightedRoundRobin {
        /// How many bytes both queues get for each byte of the C queue: 16. At least 2.
        of: u16,
    },
    /// The queue whose head has waited longest. Packets of the L queue count as having waited this much longer: 50 ms.
    TimeShiftedFifo(Nanos),
}

impl Default for DualPi2Params {
    fn default() -> Self {
        Self::for_round_trip(Nanos(15_000_000), Nanos(100_000_000))
    }
}

impl DualPi2Params {
    /// The parameters of figure 2 for another target and another longest round-trip time for which the control is
    /// stable.
    pub fn for_round_trip(target: Nanos, longest: Nanos) -> Self {
        let update = target.min(Nanos(longest.0 / 3));
        let seconds = longest.max(Nanos(1)).as_secs_f64();
        Self {
            limit: Limit::Time(Nanos(250_000_000)),
            mtu: ByteCount(1500),
            target,
            update,
            first_update: None,
            alpha: 0.1 * update.as_secs_f64() / (seconds * seconds),
            beta: 0.3 / seconds,
            coupling: 2.0,
            ramp_start: Nanos(800_000),
            ramp_length: Nanos(400_000),
            ramp_spares: 1,
            scheduler: DualPi2Scheduler::WeightedRoundRobin { of: 16 },
            even: true,
            spare_short: false,
        }
    }

    /// With a step at `threshold` in place of the ramp.
    pub fn with_step(self, threshold: Nanos) -> Self {
        Self { ramp_start: threshold, ramp_length: Nanos::ZERO, ..self }
    }

    /// The likelihood that the ramp marks a packet of the L queue with this delay (figure 5).
    #[inline]
    pub fn ramp(&self, delay: Nanos) -> f64 {
        if delay >= self.ramp_start.saturating_add(self.ramp_length) {
            1.0
        } else if delay > self.ramp_start {
            (delay.0 - self.ramp_start.0) as f64 / self.ramp_length.0 as f64
        } else {
            0.0
        }
    }

    /// The classic probability at which overload starts: 1 / k^2, at most 1.
    fn most_classic(&self) -> f64 {
        (1.0 / (self.coupling * self.coupling)).min(1.0)
    }
}

/// Two queues under DualPI2. The C queue has the outlet's id, the L queue the next one. Backlogs count both.
///
/// ```
/// use queuescope_queue::{Discipline, DualPi2, DualPi2Params, Outlet};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_wire::{ByteCount, Ecn, Nanos, Packet, PacketId, QueueId};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// let outlet = Outlet { rate: "40mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
/// let mut queue = DualPi2::new(DualPi2Params::default(), outlet);
/// for n in 0..20 {
///     let ecn = if n < 19 { Ecn::NotEct } else { Ecn::Ect1 }; // ECT(1) marks L4S
///     let packet = Packet { id: PacketId(n), size: ByteCount(1500), ecn, ..Packet::default() };
///     queue.enqueue(packet, Nanos::ZERO, &mut NoSink);
/// }
/// let (classic, low_latency) = queue.backlogs();
/// assert_eq!((classic.packets, low_latency.packets), (19, 1));
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug)]
pub struct DualPi2 {
    params: DualPi2Params,
    outlet: Outlet,
    room: CompiledLimit,
    classic: Fifo,
    low_latency: Fifo,
    clock: UpdateClock,
    random: Random,
    /// p', p_C and p_CL.
    base: f64,
    p_classic: f64,
    p_coupled: f64,
    old: Nanos,
    /// The sums of likelihoods: of the C queue, of marks in the L queue, of drops in the L queue.
    counts: [f64; 3],
    /// How far the L queue is ahead of its share (above 0), or the C queue (below 0), in bytes times the weight of the
    /// other queue.
    credit: i64,
    stats: DualPi2Stats,
}

/// The counters of DualPI2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DualPi2Stats {
    /// Packets that came.
    pub offered: u64,
    /// Packets that left the C queue.
    pub departed_classic: u64,
    /// Packets that left the L queue.
    pub departed_low_latency: u64,
    /// Packets that were dropped because there was no room.
    pub overlimit: u64,
    /// Packets of the C queue that were dropped early.
    pub early_classic: u64,
    /// Packets of the L queue that were dropped, under overload.
    pub early_low_latency: u64,
    /// Packets of the C queue that were marked.
    pub marked_classic: u64,
    /// Packets of the L queue that were marked by the coupled probability.
    pub marked_coupled: u64,
    /// Packets of the L queue that were marked by the ramp.
    pub marked_ramp: u64,
    /// Updates of the probability.
    pub updates: u64,
}

counters!(DualPi2Stats {
    offered,
    departed_classic,
    departed_low_latency,
    overlimit,
    early_classic,
    early_low_latency,
    marked_classic,
    marked_coupled,
    marked_ramp,
    updates,
});

/// The sums of likelihoods: see [`DualPi2::recur`].
#[derive(Debug, Clone, Copy)]
enum LikelihoodSum {
    Classic,
    Mark,
    Drop,
}

impl DualPi2 {
    /// Two empty queues.
    pub fn new(params: DualPi2Params, outlet: Outlet) -> Self {
        Self {
            params,
            outlet,
            room: CompiledLimit::new(params.limit, &outlet),
            classic: Fifo::default(),
            low_latency: Fifo::default(),
            clock: UpdateClock::new(params.update, params.first_update),
            random: Random::new(outlet.seed),
            base: 0.0,
            p_classic: 0.0,
            p_coupled: 0.0,
            old: Nanos::ZERO,
            counts: [0.0; 3],
            credit: 0,
            stats: DualPi2Stats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &DualPi2Stats {
        &self.stats
    }

    /// p_C: the probability with which a packet of the C queue is dropped or marked.
    pub fn drop_probability(&self) -> f64 {
        self.p_classic
    }

    /// p': the controller's own probability.
    pub fn base_probability(&self) -> f64 {
        self.base
    }

    /// p_CL: the probability with which a packet of the L queue is marked because of the C queue, at most 1.
    pub fn coupled_probability(&self) -> f64 {
        self.p_coupled
    }

    /// The backlogs of the C queue and of the L queue.
    pub fn backlogs(&self) -> (Backlog, Backlog) {
        (self.classic.backlog(), self.low_latency.backlog())
    }

    /// The id of the L queue.
    fn low_latency_id(&self) -> QueueId {
        QueueId(self.outlet.queue.0.saturating_add(1))
    }

    #[inline]
    fn total(&self) -> Backlog {
        let (c, l) = self.backlogs();
        Backlog { packets: c.packets + l.packets, bytes: c.bytes + l.bytes }
    }

    /// Whether the L queue is served next. At least one of the two has packets.
    #[inline]
    fn low_latency_is_next(&self, now: Nanos) -> bool {
        let (Some(c), Some(l)) = (self.classic.front(), self.low_latency.front()) else {
            return self.low_latency.front().is_some();
        };
        match self.params.scheduler {
            DualPi2Scheduler::WeightedRoundRobin { .. } => self.credit <= 0,
            DualPi2Scheduler::TimeShiftedFifo(shift) => {
                now.saturating_sub(l.enqueued).saturating_add(shift) >= now.saturating_sub(c.enqueued)
            }
        }
    }

    /// Records that a packet of `size` is sent while the other queue has packets too.
    #[inline]
    fn account(&mut self, low_latency: bool, size: ByteCount) {
        let DualPi2Scheduler::WeightedRoundRobin { of } = self.params.scheduler else { return };
        let size = i64::try_from(size.0).unwrap_or(i64::MAX);
        let change = if low_latency { size } else { size.saturating_mul(-i64::from(of.saturating_sub(1).max(1))) };
        self.credit = self.credit.saturating_add(change);
    }

    /// Adds a likelihood to its sum, and returns whether the sum has passed one.
    #[inline]
    fn recur(&mut self, count: LikelihoodSum, likelihood: f64) -> bool {
        if likelihood >= 1.0 {
            return true;
        }
        if !self.params.even {
            return self.random.unit() < likelihood;
        }
        let sum = &mut self.counts[count as usize];
        *sum += likelihood;
        let due = *sum > 1.0;
        if due {
            *sum -= 1.0;
        }
        due
    }

    /// The decision on a packet of the L queue, in which `others` packets wait with it.
    #[inline]
    fn judge_low_latency(&mut self, sojourn: Nanos, others: u64, spared: bool) -> DualPi2Verdict {
        let coupled = if spared { 0.0 } else { self.p_coupled };
        if coupled >= 1.0 {
            if self.recur(LikelihoodSum::Drop, self.p_classic) {
                return DualPi2Verdict::Drop;
            }
            return DualPi2Verdict::Mark(MarkReason::Early);
        }
        let native = if others + 1 > self.params.ramp_spares { self.params.ramp(sojourn) } else { 0.0 };
        if !self.recur(LikelihoodSum::Mark, native.max(coupled)) {
            DualPi2Verdict::Pass
        } else if native >= coupled {
            DualPi2Verdict::Mark(MarkReason::Threshold)
        } else {
            DualPi2Verdict::Mark(MarkReason::Early)
        }
    }

    /// The decision on a packet of the C queue.
    #[inline]
    fn judge_classic(&mut self, ecn: Ecn, spared: bool) -> DualPi2Verdict {
        if spared || !self.recur(LikelihoodSum::Classic, self.p_classic) {
            DualPi2Verdict::Pass
        } else if ecn.is_capable() && self.p_classic < self.params.most_classic() {
            DualPi2Verdict::Mark(MarkReason::Early)
        } else {
            DualPi2Verdict::Drop
        }
    }

    fn count_mark(&mut self, low_latency: bool, reason: MarkReason) {
        match (low_latency, reason) {
            (false, _) => self.stats.marked_classic += 1,
            (true, MarkReason::Threshold) => self.stats.marked_ramp += 1,
            (true, _) => self.stats.marked_coupled += 1,
        }
    }

    /// Removes the head of the queue that is served next. Also returns whether that is the L queue.
    #[inline]
    fn take_next(&mut self, now: Nanos) -> Option<(Waiting, bool)> {
        let low_latency = self.low_latency_is_next(now);
        let queue = if low_latency { &mut self.low_latency } else { &mut self.classic };
        Some((queue.pop()?, low_latency))
    }
}

/// The decision on a packet that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DualPi2Verdict {
    Pass,
    Mark(MarkReason),
    Drop,
}

impl Discipline for DualPi2 {
    #[inline]
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        self.stats.offered += 1;
        self.clock.wake(now);
        let total = self.total();
        let low_latency = is_scalable(packet.ecn);
        if !self.room.admits(total, self.params.mtu.max(packet.size)) {
            self.stats.overlimit += 1;
            let queue = if low_latency { self.low_latency_id() } else { self.outlet.queue };
            sink.dropped(&Dropped::on_arrival(packet, queue, now, DropReason::Overlimit));
            return;
        }
        let queue = if low_latency { &mut self.low_latency } else { &mut self.classic };
        queue.push_behind(packet, now, total);
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, sink: &mut impl Sink) -> Option<Departure> {
        loop {
            let total = self.total();
            let contended = self.classic.front().is_some() && self.low_latency.front().is_some();
            let (mut head, low_latency) = self.take_next(now)?;
            let left = self.total();
            if left.packets == 0 {
                self.credit = 0;
            }
            let spared = self.params.spare_short && total.bytes.0 < self.params.mtu.0.saturating_mul(2);
            let (verdict, queue) = if low_latency {
                let sojourn = now.saturating_sub(head.enqueued);
                let others = self.low_latency.backlog().packets;
                (self.judge_low_latency(sojourn, others, spared), self.low_latency_id())
            } else {
                (self.judge_classic(head.packet.ecn, spared), self.outlet.queue)
            };
            match verdict {
                DualPi2Verdict::Drop => {
                    if low_latency {
                        self.stats.early_low_latency += 1;
                    } else {
                        self.stats.early_classic += 1;
                    }
                    sink.dropped(&Dropped::from_queue(head.packet, queue, head.enqueued, now, DropReason::Early));
                    continue;
                }
                DualPi2Verdict::Mark(reason) => {
                    head.packet.ecn = Ecn::Ce;
                    self.count_mark(low_latency, reason);
                    sink.marked(&head.packet, reason, now);
                }
                DualPi2Verdict::Pass => {}
            }
            if contended {
                self.account(low_latency, head.packet.size);
            }
            if low_latency {
                self.stats.departed_low_latency += 1;
            } else {
                self.stats.departed_classic += 1;
            }
            return Some(head.depart(queue, now, left));
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.total()
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        self.clock.next()
    }

    fn on_timer(&mut self, now: Nanos) {
        self.stats.updates += 1;
        let DualPi2Params { alpha, beta, target, coupling, .. } = self.params;
        let waited = |queue: &Fifo| queue.front().map_or(Nanos::ZERO, |head| now.saturating_sub(head.enqueued));
        let delay = waited(&self.classic).max(waited(&self.low_latency));
        self.base = next_base(self.base, proportional_integral(alpha, beta, target, delay, self.old), 1.0);
        self.p_classic = self.base * self.base;
        self.p_coupled = (coupling * self.base).min(1.0);
        self.old = delay;
        if self.base == 0.0 && delay == Nanos::ZERO && self.total().packets == 0 {
            self.clock.rest();
        } else {
            self.clock.tick();
        }
    }

    fn queues(&self) -> u16 {
        2
    }

    fn drop_probability(&self) -> Option<f64> {
        Some(self.p_classic)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}
