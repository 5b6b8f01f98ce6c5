//! The common part of the three PIE variants for a switch (Kunze et al., IM 2021, sections V and VI): gains, units, and
//! the differences between the published programs and the paper.

use crate::{Limit, TailDropParams};
use queuescope_wire::Nanos;

/// The gains of PIE's controller, in changes of the probability per second of delay and update (Hz).
///
/// ```
/// use queuescope_queue::PieGains;
///
/// let gains = PieGains::tofino();
/// println!("alpha {:.4} Hz, beta {:.2} Hz", gains.alpha, gains.beta);
/// assert_eq!(gains.shifts(), (9, 19));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PieGains {
    /// The gain for the distance of the delay to its target.
    pub alpha: f64,
    /// The gain for the change of the delay.
    pub beta: f64,
}

impl PieGains {
    /// RFC 8033, appendix A: for an update each 15 ms and a target of 15 ms.
    pub const RFC8033: Self = Self { alpha: 0.125, beta: 1.25 };

    /// The gains for an update twice as often, by the rule of RFC 8033 section 4.2: beta grows by a quarter of alpha,
    /// and alpha is halved.
    pub fn halved(self) -> Self {
        Self { alpha: self.alpha / 2.0, beta: self.beta + self.alpha / 4.0 }
    }

    /// The gains for another target, by the rule of the same section: both grow as the target shrinks.
    pub fn for_target(self, from: Nanos, to: Nanos) -> Self {
        let factor = from.0 as f64 / to.0 as f64;
        Self { alpha: self.alpha * factor, beta: self.beta * factor }
    }

    /// The gains of the paper's table II: the update interval is halved seven times from 15 ms to 117.19 us, and the
    /// target is 125 us. Alpha is 0.1172 Hz, beta 157.44 Hz.
    pub fn tofino() -> Self {
        let halved = (0..7).fold(Self::RFC8033, |gains, _| gains.halved());
        halved.for_target(Nanos(15_000_000), Nanos(125_000))
    }

    /// Both gains per microsecond of delay, for a probability in 32 bits: 503.3 and 676 206 for the paper's.
    pub fn per_microsecond(self) -> (f64, f64) {
        let unit = f64::from(u32::MAX) / 1e6;
        (self.alpha * unit, self.beta * unit)
    }

    /// The nearest powers of two, as left shifts: 9 and 19 for the paper's.
    pub fn shifts(self) -> (u32, u32) {
        let nearest = |gain: f64| libm::log2(gain.max(1.0)).round().min(31.0) as u32;
        let (alpha, beta) = self.per_microsecond();
        (nearest(alpha), nearest(beta))
    }
}

/// The sign of the change of the delay in the data plane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trend {
    /// New minus old: a delay that grows raises the probability (RFC 8033, and the text of the paper's section VI.D).
    #[default]
    AsStated,
    /// Old minus new, as the published register action subtracts: a delay that grows lowers the probability.
    AsPublished,
}

/// The target of the paper's table II.
pub(crate) const TARGET: Nanos = Nanos(125_000);

/// The queue that the paper puts in front of each port: tail drop at 500 us (section VI.A).
pub(crate) const QUEUE: TailDropParams = TailDropParams { limit: Limit::Time(Nanos(500_000)) };

/// The value of the delay register: bits 25 to 10 of a time in nanoseconds. Its unit is 1.024 us, and it wraps after
/// 67.1 ms.
#[inline]
pub(crate) fn delay_register(sojourn: Nanos) -> u16 {
    (sojourn.0 >> 10) as u16
}

/// The longest target that a register of 16 bits can have. [`PieDp`](crate::PieDp) and [`PieTable`](crate::PieTable) take longer ones for this; scenarios and
/// P4 programs refuse them.
pub const LONGEST_PIE_TARGET: Nanos = Nanos(u16::MAX as u64 * 1000);

/// The target as the switch compares it with the register: in microseconds, as if that were the register's unit.
#[inline]
pub(crate) fn target_register(target: Nanos) -> u16 {
    u16::try_from(target.0 / 1000).unwrap_or(u16::MAX)
}

/// A probability in 32 bits as a fraction.
#[inline]
pub(crate) fn fraction(probability: u32) -> f64 {
    f64::from(probability) / f64::from(u32::MAX)
}

/// A change of the probability, as the data plane has it: a magnitude and a direction.
///
/// ```
/// use queuescope_queue::{PieDpParams, shifted_step};
///
/// let params = PieDpParams::default();
/// let step = shifted_step(&params, 300, 300); // a constant delay far above the target of 125
/// assert!(step.increase);
/// assert_eq!(step.apply(u32::MAX), u32::MAX, "the register saturates");
/// assert!(step.apply(0) > 0);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PieStep {
    /// The magnitude, where 2^32 - 1 is one.
    pub change: u32,
    /// Whether the probability grows.
    pub increase: bool,
}

impl PieStep {
    /// The probability after the step. The register saturates at its ends.
    #[inline]
    pub fn apply(self, probability: u32) -> u32 {
        if self.increase { probability.saturating_add(self.change) } else { probability.saturating_sub(self.change) }
    }
}

/// A time in units of 1024 ns, as the registers of a switch have it: bits 41 to 10 of a timestamp.
#[inline]
pub(crate) fn units(time: Nanos) -> u32 {
    (time.0 >> 10) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gains_are_those_of_the_papers_table() {
        let gains = PieGains::tofino();
        assert!((gains.alpha - 0.117_187_5).abs() < 1e-12, "{gains:?}");
        assert!((gains.beta - 157.441_406_25).abs() < 1e-9, "{gains:?}");
        let (alpha, beta) = gains.per_microsecond();
        assert!((alpha - 503.3).abs() < 0.05 && (beta - 676_206.0).abs() < 1.0, "{alpha} {beta}");
        assert_eq!(gains.shifts(), (9, 19));
    }

    #[test]
    fn the_delay_register_counts_in_1024_ns_and_wraps() {
        assert_eq!(delay_register(Nanos(1023)), 0);
        assert_eq!(delay_register(Nanos(500_000)), 488);
        assert_eq!(delay_register(Nanos(1 << 26)), 0);
        assert_eq!(delay_register(Nanos((1 << 26) - 1)), u16::MAX);
        assert_eq!(target_register(Nanos(125_000)), 125);
    }

    #[test]
    fn a_step_stops_at_the_ends() {
        let step = |change, increase| PieStep { change, increase };
        assert_eq!(step(5, false).apply(3), 0);
        assert_eq!(step(5, true).apply(u32::MAX - 3), u32::MAX);
        assert_eq!(step(5, true).apply(3), 8);
    }
}
