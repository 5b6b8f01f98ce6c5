//! PIE's controller: the next probability from the delays, and the burst allowance. No queue, no packets.

use super::params::{PieBurst, PieDecay, PieParams};
use queuescope_wire::Nanos;

/// The change of the probability in one update of a PI controller: `alpha` times the distance of the delay to its
/// target plus `beta` times its change, both in Hz.
#[inline]
pub(crate) fn proportional_integral(alpha: f64, beta: f64, target: Nanos, delay: Nanos, old: Nanos) -> f64 {
    alpha * (delay.as_secs_f64() - target.as_secs_f64()) + beta * (delay.as_secs_f64() - old.as_secs_f64())
}

/// The probability after an update (RFC 8033 sections 4.2 and 5.5).
pub(super) fn next_probability(params: &PieParams, probability: f64, delay: Nanos, old: Nanos) -> f64 {
    let mut change = proportional_integral(params.alpha, params.beta, params.target, delay, old);
    change /= params.scaling.divisor(probability);
    if params.cap && probability >= 0.1 && change > 0.02 {
        change = 0.02;
    }
    if params.raise_above.is_some_and(|above| delay > above) {
        change += 0.02;
    }
    decayed(params, probability + change, delay, old).clamp(0.0, 1.0)
}

/// The probability after the decay, if the decay applies.
pub(super) fn decayed(params: &PieParams, probability: f64, delay: Nanos, old: Nanos) -> f64 {
    let decays = match params.decay {
        PieDecay::BothZero => delay == Nanos::ZERO && old == Nanos::ZERO,
        PieDecay::BothBelowHalf => below_half(params, delay) && below_half(params, old),
        PieDecay::None => false,
    };
    if decays { probability * 0.98 } else { probability }
}

/// Whether a delay is below half of the target.
#[inline]
pub(super) fn below_half(params: &PieParams, delay: Nanos) -> bool {
    delay.0.saturating_mul(2) < params.target.0
}

/// The burst allowance (RFC 8033 section 4.4, or that of ns-3).
#[derive(Debug, Clone)]
pub(super) struct BurstAllowance {
    kind: PieBurst,
    left: Nanos,
    /// Only for ns-3: the state of its cycle.
    state: Ns3State,
    /// Only for ns-3: updates during calm.
    calm: u64,
    /// Only for ns-3: the number of updates during calm after which the cycle starts again.
    calm_limit: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ns3State {
    /// The next packet starts an allowance.
    NoBurst,
    /// An allowance is running.
    Protecting,
    /// The allowance is over; calm updates are counted.
    InBurst,
}

/// The calm period that ns-3 requires before it allows another burst.
const NS3_CALM: Nanos = Nanos(1_500_000_000);

impl BurstAllowance {
    pub fn new(params: &PieParams) -> Self {
        let left = match params.burst {
            PieBurst::Rfc8033(most) => most,
            // ns-3 does not start with an allowance.
            PieBurst::Ns3(_) | PieBurst::None => Nanos::ZERO,
        };
        let calm_limit = NS3_CALM.0 / params.update.0.max(1);
        Self { kind: params.burst, left, state: Ns3State::NoBurst, calm: 0, calm_limit }
    }

    /// The remaining time.
    #[inline]
    pub fn left(&self) -> Nanos {
        self.left
    }

    /// Whether the probability must stay 0.
    pub fn holds_probability(&self) -> bool {
        matches!(self.kind, PieBurst::Ns3(_)) && self.left > Nanos::ZERO
    }

    /// Restarts the full allowance.
    #[inline]
    pub fn renew(&mut self) {
        self.left = match self.kind {
            PieBurst::None => Nanos::ZERO,
            PieBurst::Rfc8033(most) | PieBurst::Ns3(most) => most,
        };
    }

    /// Records an arrival. `calm`: the probability is 0 and the delay is low.
    #[inline]
    pub fn on_arrival(&mut self, calm: bool) {
        if calm && matches!(self.kind, PieBurst::Rfc8033(_)) {
            self.renew();
        }
    }

    /// Whether the allowance lets a packet pass. With ns-3, a packet that finds none starts one, from which it does not
    /// profit itself.
    #[inline]
    pub fn protects(&mut self) -> bool {
        if self.left > Nanos::ZERO {
            return true;
        }
        if matches!(self.kind, PieBurst::Ns3(_)) && self.state == Ns3State::NoBurst {
            self.state = Ns3State::Protecting;
            self.renew();
        }
        false
    }

    /// Records an update. `calm`: after it the probability is 0 and the delay is low.
    pub fn on_update(&mut self, update: Nanos, calm: bool) {
        self.left = self.left.saturating_sub(update);
        if !matches!(self.kind, PieBurst::Ns3(_)) {
            return;
        }
        let calm = calm && self.left == Nanos::ZERO;
        match self.state {
            Ns3State::Protecting if calm => {
                self.state = Ns3State::InBurst;
                self.calm = 0;
            }
            Ns3State::InBurst if calm => {
                self.calm += 1;
                if self.calm > self.calm_limit {
                    self.calm = 0;
                    self.state = Ns3State::NoBurst;
                }
            }
            Ns3State::InBurst => self.calm = 0,
            Ns3State::NoBurst | Ns3State::Protecting => {}
        }
    }

    /// Whether a calm update changes nothing that matters. The RFC's allowance is renewed by the packet that ends the
    /// calm.
    pub fn at_rest(&self) -> bool {
        match self.kind {
            PieBurst::None | PieBurst::Rfc8033(_) => true,
            PieBurst::Ns3(_) => self.state == Ns3State::NoBurst && self.left == Nanos::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PieScaling;

    const MS: u64 = 1_000_000;

    fn next(params: &PieParams, probability: f64, delay: u64, old: u64) -> f64 {
        next_probability(params, probability, Nanos(delay * MS), Nanos(old * MS))
    }

    /// By hand: 0.125 * (delay - 15 ms) + 1.25 * (delay - old), over the divisor.
    #[test]
    fn updates_by_hand() {
        let params = PieParams::default();
        let close = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-15, "{value} {expected}");
        // 0.125 * 0.015 + 1.25 * 0.030 = 0.039375.
        close(next(&params, 0.0, 30, 0), 0.039_375 / 2048.0);
        close(next(&params, 5e-6, 30, 0), 5e-6 + 0.039_375 / 512.0);
        close(next(&params, 5e-5, 30, 0), 5e-5 + 0.039_375 / 128.0);
        close(next(&params, 5e-4, 30, 0), 5e-4 + 0.039_375 / 32.0);
        close(next(&params, 5e-3, 30, 0), 5e-3 + 0.039_375 / 8.0);
        close(next(&params, 0.05, 30, 0), 0.05 + 0.039_375 / 2.0);
        // From 10 % on, an increase is capped to 2 %, a decrease is not.
        close(next(&params, 0.1, 30, 0), 0.12);
        close(next(&PieParams { cap: false, ..params }, 0.1, 30, 0), 0.139_375);
        // 0.125 * (0.010 - 0.015) + 1.25 * (0.010 - 0.100) = -0.113125.
        close(next(&params, 0.5, 10, 100), 0.386_875);
        close(next(&params, 0.1, 10, 100), 0.0);
        close(next(&params, 1.0, 400, 0), 1.0);
        // Both delays 0: 0.5 - 0.001875, then 2 % less.
        close(next(&params, 0.5, 0, 0), 0.498_125 * 0.98);
        close(next(&PieParams { decay: PieDecay::None, ..params }, 0.5, 0, 0), 0.498_125);
        // Appendix B decays below half of the target.
        let appendix_b = PieParams { decay: PieDecay::BothBelowHalf, ..params };
        close(next(&appendix_b, 0.5, 7, 7), (0.5 - 0.125 * 0.008) * 0.98);
        close(next(&appendix_b, 0.5, 8, 7), 0.5 - 0.125 * 0.007 + 1.25 * 0.001);
        // Above 250 ms, 2 % more, after the cap.
        let raised = PieParams { raise_above: Some(Nanos(250 * MS)), ..params };
        close(next(&raised, 0.2, 251, 0), 0.24);
        close(next(&raised, 0.2, 250, 0), 0.22);
        close(next(&PieParams { scaling: PieScaling::Ns3Old, cap: false, ..params }, 0.2, 15, 5), 0.2 + 0.025);
    }

    #[test]
    fn ns3_allows_a_burst_again_after_calm() {
        let params = PieParams::ns3();
        let mut burst = BurstAllowance::new(&params);
        assert!(!burst.protects(), "the packet that starts the allowance does not profit from it");
        assert!(burst.protects());
        for _ in 0..10 {
            assert!(burst.holds_probability());
            burst.on_update(params.update, true);
        }
        assert_eq!(burst.left(), Nanos::ZERO);
        // The tenth update took the last of the allowance and found calm. From there on more than 100 calm updates are
        // needed.
        for _ in 0..100 {
            burst.on_update(params.update, true);
            assert!(!burst.protects());
        }
        assert!(!burst.at_rest());
        burst.on_update(params.update, true);
        assert!(burst.at_rest());
        assert!(!burst.protects());
        assert!(burst.protects());
    }
}
