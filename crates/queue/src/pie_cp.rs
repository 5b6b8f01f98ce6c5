//! PIE_CP: PIE with its controller in the switch's control plane (Kunze et al., IM 2021, section VI.B).
//!
//! The data plane drops at ingress if the probability in a register is above a random number of 32 bits, and stores the
//! delay of each packet that leaves in another register. The control plane reads the delay periodically, computes RFC
//! 8033's update with its scaling and its decay, and writes the probability back. It computes in floating point; it
//! reads 16 bits (in units of 1.024 us, taken as microseconds) and writes 32 bits.
//!
//! The loop is read, compute, write, sleep. The paper gives one number for it, the period that it reached (125 us,
//! where 117 us were intended). `latency` passes from the read until the write takes effect. A loop cannot read before
//! it has written, so a latency above the period stretches the period. All ports are read at the same moment.

use crate::counters::counters;
use crate::pie::PieScaling;
use crate::pie_switch::{QUEUE, TARGET, delay_register, fraction};
use crate::random::Random;
use crate::update_clock::UpdateClock;
use crate::{DropReason, Egress, Headers, Ingress, PieGains, Pipeline, Port, Sink, TailDropParams};
use queuescope_wire::{Departure, Nanos, Packet};

/// The parameters of PIE_CP.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PieCpParams {
    /// The queue of each port, which the driver keeps. Source: section VI.A, 500 us.
    pub queue: TailDropParams,
    /// The target delay. Source: table II, 125 us.
    pub target: Nanos,
    /// How often the control plane reads. Source: section VI.B, "around 125 us".
    pub period: Nanos,
    /// The time from a read until the new probability is in force. Not in the paper. It equals the period, because the
    /// loop, which intended 117 us and reached 125 us, cannot have slept.
    pub latency: Nanos,
    /// The gains. Source: table II.
    pub gains: PieGains,
    /// When the probability decays.
    pub decay: PieCpDecay,
    /// Whether packets are dropped. If not, the probability is only computed (section VII.A).
    pub act: bool,
}

/// When the control plane lets the probability decay by 2 %.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PieCpDecay {
    /// If the current delay and the one before are both 0 (RFC 8033 section 4.2).
    #[default]
    AsStated,
    /// If the current delay is 0: the published program overwrites the old delay before it tests both.
    AsPublished,
}

impl Default for PieCpParams {
    fn default() -> Self {
        Self {
            queue: QUEUE,
            target: TARGET,
            period: Nanos(125_000),
            latency: Nanos(125_000),
            gains: PieGains::tofino(),
            decay: PieCpDecay::AsStated,
            act: true,
        }
    }
}

/// PIE_CP on every port of a switch.
///
/// ```
/// use queuescope_queue::{Pipeline, PieCp, PieCpParams, Port};
///
/// let mut program = PieCp::new(PieCpParams::default(), 2, 1);
/// while let Some(due) = program.next_timer().filter(|due| due.0 < 1_000_000) {
///     program.on_timer(due); // The control plane reads the registers, and writes new probabilities.
/// }
/// println!("{} rounds in a millisecond", program.stats().updates);
/// assert_eq!(program.probability_register(Port(0)), Some(0), "no packet came");
/// assert_eq!(program.probability_register(Port(2)), None);
/// ```
#[derive(Debug)]
pub struct PieCp {
    params: PieCpParams,
    ports: Vec<CpPort>,
    reads: UpdateClock,
    /// When the result of the last read comes into force.
    write: Option<Nanos>,
    random: Random,
    stats: PieCpStats,
}

/// The counters of PIE_CP, for all ports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PieCpStats {
    /// Packets that arrived at ingress.
    pub offered: u64,
    /// Packets that were dropped there.
    pub early: u64,
    /// Rounds of the control plane.
    pub updates: u64,
}

counters!(PieCpStats { offered, early, updates });

/// A port: two registers, and the control plane's state for it.
#[derive(Debug, Clone, Copy, Default)]
struct CpPort {
    probability: u32,
    delay: u16,
    control: CpControl,
}

/// The control plane's state for a port.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct CpControl {
    /// From 0 to 1.
    probability: f64,
    /// The last delay that was read, in microseconds.
    old: u16,
}

impl CpControl {
    /// Updates the state after the control plane has read `delay`.
    fn update(&mut self, params: &PieCpParams, delay: u16) {
        let seconds = |micros: f64| micros * 1e-6;
        let now = f64::from(delay);
        let change = params.gains.alpha * (seconds(now) - params.target.as_secs_f64())
            + params.gains.beta * seconds(now - f64::from(self.old));
        let mut probability = self.probability + change / PieScaling::Rfc8033.divisor(self.probability);
        let decays = match params.decay {
            PieCpDecay::AsStated => delay == 0 && self.old == 0,
            PieCpDecay::AsPublished => delay == 0,
        };
        if decays {
            probability *= 0.98;
        }
        self.probability = probability.clamp(0.0, 1.0);
        self.old = delay;
    }

    /// The value for the register: the fraction is cut off.
    fn register(self) -> u32 {
        (self.probability * f64::from(u32::MAX)) as u32
    }
}

impl PieCp {
    /// Starts with all registers at 0.
    pub fn new(params: PieCpParams, ports: u16, seed: u64) -> Self {
        Self {
            params,
            ports: vec![CpPort::default(); usize::from(ports)],
            reads: UpdateClock::new(params.period.max(params.latency), None),
            write: None,
            random: Random::new(seed),
            stats: PieCpStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &PieCpStats {
        &self.stats
    }

    /// The drop probability of `port`, where 2^32 - 1 is one; `None` for a port that does not exist.
    pub fn probability_register(&self, port: Port) -> Option<u32> {
        self.ports.get(usize::from(port.0)).map(|port| port.probability)
    }

    /// The delay of the last packet that left `port`, in units of 1024 ns modulo 2^16; `None` for a port that does not exist.
    pub fn delay_register(&self, port: Port) -> Option<u16> {
        self.ports.get(usize::from(port.0)).map(|port| port.delay)
    }

    fn write_back(&mut self) {
        self.write = None;
        for port in &mut self.ports {
            port.probability = port.control.register();
        }
    }

    fn read(&mut self, now: Nanos) {
        self.stats.updates += 1;
        let mut changed = false;
        for port in &mut self.ports {
            let before = port.control;
            port.control.update(&self.params, port.delay);
            changed |= before != port.control;
        }
        if changed {
            self.reads.tick();
        } else {
            self.reads.rest();
        }
        self.write = Some(now.saturating_add(self.params.latency));
    }
}

impl Pipeline for PieCp {
    #[inline]
    fn ingress(
        &mut self,
        port: Port,
        _packet: &mut Packet,
        _headers: &mut Headers,
        _now: Nanos,
        _sink: &mut impl Sink,
    ) -> Ingress {
        let Some(port) = self.ports.get(usize::from(port.0)) else { return Ingress::Enqueue(0) };
        self.stats.offered += 1;
        let drop = port.probability > self.random.bits();
        if drop && self.params.act {
            self.stats.early += 1;
            return Ingress::Drop(DropReason::Early);
        }
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
        if let Some(port) = self.ports.get_mut(usize::from(port.0)) {
            port.delay = delay_register(departure.sojourn());
            self.reads.wake(departure.dequeued);
        }
        Egress::Send
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        match (self.write, self.reads.next()) {
            (Some(write), Some(read)) => Some(write.min(read)),
            (write, read) => write.or(read),
        }
    }

    fn on_timer(&mut self, now: Nanos) {
        if self.write.is_some_and(|due| due <= now) {
            self.write_back();
        }
        if let Some(due) = self.reads.next().filter(|due| *due <= now) {
            self.read(due);
            if self.params.latency == Nanos::ZERO {
                self.write_back();
            }
        }
    }

    fn drop_probability(&self, port: Port) -> Option<f64> {
        self.probability_register(port).map(fraction)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}
