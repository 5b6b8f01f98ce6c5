//! PIE_DP: PIE wholly in a switch's data plane, with shifts for multiplications (Kunze et al., IM 2021, section VI.C).
//!
//! Packets of a generator come at a fixed period. Each reads the delay of the last packet that left, forms the
//! differences to the target and to the delay read before, shifts them left in place of multiplying, and adds the
//! result to the probability, or subtracts it; the register stops at its ends. There is no scaling of the update, no
//! decay, no burst allowance. Every other packet stores its delay behind the queue and is dropped there if the
//! probability is above a random number, which was drawn for the packet before it: a register gives its old value and
//! takes the new one in one access. Generated packets draw too.
//!
//! Not as the switch: a generated packet takes no room in a queue of its own and no time on the link (70 bytes each 117
//! us, 0.05 % of 10 Gb/s); timestamps are those of the queue, without the time in the pipeline.

use crate::pie_switch::{QUEUE, TARGET, delay_register, fraction, target_register};
use crate::random::Random;
use crate::update_clock::UpdateClock;
use crate::{DropReason, Egress, Headers, Ingress, PieGains, PieStep, Pipeline, Port, Sink, TailDropParams, Trend};
use queuescope_wire::{Departure, Nanos, Packet};

/// What PIE_DP is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PieDpParams {
    /// The queue of each port, which the driver keeps. Source: section VI.A, 500 us.
    pub queue: TailDropParams,
    /// The delay to be held. The register's unit of 1.024 us is taken for a microsecond, so that 125 us are 128.
    /// Source: table II.
    pub target: Nanos,
    /// How often the generator makes a packet. Source: section VI.A, 117 us.
    pub update: Nanos,
    /// The left shift of the distance to the target. Source: section VI.C, 9.
    pub alpha_shift: u32,
    /// The left shift of the change of the delay. Source: section VI.C, 19.
    pub beta_shift: u32,
    /// Which way the change of the delay is taken.
    pub trend: Trend,
    /// Whether packets are dropped. Without, the probability is only computed (section VII.A).
    pub act: bool,
}

impl Default for PieDpParams {
    fn default() -> Self {
        let (alpha_shift, beta_shift) = PieGains::tofino().shifts();
        Self {
            queue: QUEUE,
            target: TARGET,
            update: Nanos(117_000),
            alpha_shift,
            beta_shift,
            trend: Trend::AsStated,
            act: true,
        }
    }
}

/// PIE_DP on every port of a switch.
#[derive(Debug)]
pub struct PieDp {
    params: PieDpParams,
    target: u16,
    ports: Vec<DpPort>,
    clock: UpdateClock,
    random: Random,
    stats: PieDpStats,
}

/// What PIE_DP counted, on all ports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PieDpStats {
    /// Packets that came to egress.
    pub offered: u64,
    /// Packets that were dropped there.
    pub early: u64,
    /// Packets of the generator, each counted once for all ports.
    pub updates: u64,
}

/// The registers of a port.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DpPort {
    pub probability: u32,
    /// The delay of the last packet.
    pub delay: u16,
    /// The delay that the last update read.
    pub sampled: u16,
    /// The number drawn for the packet before.
    pub random: u32,
}

impl DpPort {
    /// A packet leaves after `sojourn`: whether it is to be dropped.
    #[inline]
    pub fn leave(&mut self, sojourn: Nanos, drawn: u32) -> bool {
        self.delay = delay_register(sojourn);
        self.probability > std::mem::replace(&mut self.random, drawn)
    }

    /// A packet of the generator passes, and `step` says what its delay and the delay before make: whether any register
    /// but the random one has changed.
    #[inline]
    pub fn sample(&mut self, step: impl Fn(u16, u16) -> PieStep, drawn: u32) -> bool {
        let before = (self.probability, self.sampled);
        self.probability = step(self.delay, self.sampled).apply(self.probability);
        self.sampled = self.delay;
        self.random = drawn;
        before != (self.probability, self.sampled)
    }
}

/// The update by shifts of 32 bits, as the egress pipeline does it: both parts as magnitude and sign, combined by which
/// is the larger. What a shift moves out of the 32 bits is lost.
pub fn shifted_step(params: &PieDpParams, delay: u16, sampled: u16) -> PieStep {
    let target = i32::from(target_register(params.target));
    let (delay, sampled) = (i32::from(delay), i32::from(sampled));
    let from_target = delay - target;
    let change = match params.trend {
        Trend::AsStated => delay - sampled,
        Trend::AsPublished => sampled - delay,
    };
    let shift = |magnitude: u32, by: u32| magnitude.checked_shl(by).unwrap_or(0);
    let alpha = shift(from_target.unsigned_abs(), params.alpha_shift);
    let beta = shift(change.unsigned_abs(), params.beta_shift);
    match (from_target >= 0, change >= 0) {
        (alpha_up, beta_up) if alpha_up == beta_up => {
            PieStep { change: alpha.saturating_add(beta), increase: alpha_up }
        }
        (alpha_up, _) if alpha >= beta => PieStep { change: alpha - beta, increase: alpha_up },
        (_, beta_up) => PieStep { change: beta - alpha, increase: beta_up },
    }
}

impl PieDp {
    /// With all registers at 0.
    pub fn new(params: PieDpParams, ports: u16, seed: u64) -> Self {
        Self {
            params,
            target: target_register(params.target),
            ports: vec![DpPort::default(); usize::from(ports)],
            clock: UpdateClock::new(params.update, None),
            random: Random::new(seed),
            stats: PieDpStats::default(),
        }
    }

    /// What was counted so far.
    pub fn stats(&self) -> &PieDpStats {
        &self.stats
    }

    /// The probability with which `port` drops, where 2^32 - 1 is one; none of a port that is not there.
    pub fn probability_register(&self, port: Port) -> Option<u32> {
        self.ports.get(usize::from(port.0)).map(|port| port.probability)
    }

    /// The probability with which `port` drops.
    pub fn drop_probability(&self, port: Port) -> Option<f64> {
        self.probability_register(port).map(fraction)
    }

    /// The target, in the unit of the delay register.
    pub fn target_register(&self) -> u16 {
        self.target
    }
}

impl Pipeline for PieDp {
    #[inline]
    fn ingress(
        &mut self,
        _port: Port,
        _packet: &mut Packet,
        _headers: &mut Headers,
        _now: Nanos,
        _sink: &mut impl Sink,
    ) -> Ingress {
        Ingress::Enqueue(0)
    }

    #[inline]
    fn egress(
        &mut self,
        port: Port,
        departure: &mut Departure,
        _headers: &mut Headers,
        _sink: &mut impl Sink,
    ) -> Egress {
        let Some(port) = self.ports.get_mut(usize::from(port.0)) else { return Egress::Send };
        self.clock.wake(departure.dequeued);
        self.stats.offered += 1;
        let drop = port.leave(departure.sojourn(), self.random.bits());
        if drop && self.params.act {
            self.stats.early += 1;
            return Egress::Drop(DropReason::Early);
        }
        Egress::Send
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        self.clock.next()
    }

    fn on_timer(&mut self, _now: Nanos) {
        self.stats.updates += 1;
        let mut changed = false;
        for port in &mut self.ports {
            changed |= port.sample(|delay, sampled| shifted_step(&self.params, delay, sampled), self.random.bits());
        }
        if changed { self.clock.tick() } else { self.clock.rest() }
    }
}
