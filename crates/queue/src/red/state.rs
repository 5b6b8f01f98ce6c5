//! The decisions of RED: the average, its probability, and the decision on an arrival.

use super::{AredParams, RedAdaptation, RedParams, RedThresholds, RedUnit};
use queuescope_wire::{Backlog, ByteCount, Draws, Nanos, Rate};

/// The decision on an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RedVerdict {
    Pass,
    Early,
    Forced,
}

/// The probability by the average (`p_b`).
#[derive(Debug, Clone, Copy)]
pub(super) struct Ramp {
    pub min: f64,
    pub max: f64,
    pub gentle: bool,
    pub nonlinear: bool,
}

/// The constants that follow from the parameters and the link.
#[derive(Debug)]
pub(super) struct RedCurve {
    pub bytes: bool,
    pub ramp: Ramp,
    /// The average from which on all packets are dropped.
    end: f64,
    pub weight: f64,
    wait: bool,
    adaptation: RedAdaptation,
    bottom: f64,
    mean_packet: f64,
    /// Mean packets that the link sends in a nanosecond.
    packets_per_nano: f64,
    pub nanos_per_byte: f64,
    pub ecn: bool,
    pub hard_drop: bool,
    /// Whether a number is drawn even if nothing can be dropped.
    draws_always: bool,
}

impl Ramp {
    /// The probability for an average that is not below the lowest threshold.
    #[inline]
    pub fn probability(&self, average: f64, max_probability: f64) -> f64 {
        if average >= self.max {
            let over = if self.gentle { (average - self.max) / self.max } else { 1.0 };
            return (max_probability + (1.0 - max_probability) * over).min(1.0);
        }
        let way = (average - self.min) / (self.max - self.min);
        max_probability * if self.nonlinear { 1.5 * way * way } else { way }
    }
}

impl RedCurve {
    pub fn new(params: &RedParams, rate: Rate) -> Self {
        let RedParams { gentle, wait, nonlinear, adaptation, ecn, hard_drop, .. } = *params;
        let mean_packet = params.mean_packet.0.max(1) as f64;
        let packets_per_second = rate.bits_per_second() as f64 / (8.0 * mean_packet);
        let bytes = params.unit == RedUnit::Bytes;
        let RedThresholds { min, max } = params.thresholds.unwrap_or_else(|| {
            // As the ARED paper sets them.
            let half = params.target_delay.as_secs_f64() * packets_per_second / 2.0;
            let min = half.max(5.0) * if bytes { mean_packet } else { 1.0 };
            RedThresholds { min, max: 3.0 * min }
        });
        let bottom = match adaptation {
            RedAdaptation::Adaptive(AredParams { bottom, .. }) => bottom,
            _ => None,
        };
        Self {
            bytes,
            ramp: Ramp { min, max, gentle, nonlinear },
            end: if gentle { 2.0 * max } else { max },
            weight: params.weight.unwrap_or_else(|| decay(1.0 / packets_per_second)),
            wait,
            adaptation,
            bottom: bottom.unwrap_or_else(|| (10.0 / packets_per_second).min(0.01)),
            mean_packet,
            packets_per_nano: packets_per_second / 1e9,
            nanos_per_byte: 8e9 / rate.bits_per_second() as f64,
            ecn,
            hard_drop,
            draws_always: params.draws != Draws::Own,
        }
    }

    /// The probability after `count` packets since the last drop, which spaces drops evenly (`p_a`).
    #[inline]
    fn spread(&self, probability: f64, count: f64) -> f64 {
        let expected = count * probability;
        if self.wait && expected < 1.0 {
            return 0.0;
        }
        // By then a drop is certain.
        let end = if self.wait { 2.0 } else { 1.0 };
        if expected < end { probability / (end - expected) } else { 1.0 }
    }
}

/// The state of a RED queue besides its packets.
#[derive(Debug)]
pub(super) struct RedState {
    /// The mean queue (`avg`).
    pub average: f64,
    /// While the queue is empty: since when the link has been idle.
    pub idle_since: Nanos,
    /// Packets since the last early drop.
    count: u64,
    /// Their bytes.
    bytes: u64,
    /// Whether the average was above the lowest threshold at the last arrival.
    above: bool,
    pub max_probability: f64,
    /// When ARED last changed it.
    adapted: Nanos,
    /// For the self-configuring kind: the zone of the last average.
    zone: AverageZone,
}

#[derive(Debug, PartialEq, Eq)]
enum AverageZone {
    Below,
    Between,
    Above,
}

impl RedState {
    pub fn new(max_probability: f64) -> Self {
        Self {
            average: 0.0,
            idle_since: Nanos::ZERO,
            count: 0,
            bytes: 0,
            above: false,
            max_probability: max_probability.clamp(0.0, 1.0),
            adapted: Nanos::ZERO,
            zone: AverageZone::Above,
        }
    }

    /// Decides on a packet of `size` that finds `backlog`. Calls `chance` for a number in 0.0 .. 1.0 only if the
    /// decision needs it; with ns-3's numbers also if the probability is 0.
    #[inline]
    pub fn arrival(
        &mut self,
        curve: &RedCurve,
        backlog: Backlog,
        size: ByteCount,
        now: Nanos,
        chance: impl FnOnce() -> f64,
    ) -> RedVerdict {
        let queued = if curve.bytes { backlog.bytes.0 } else { backlog.packets } as f64;
        let kept = if backlog.packets == 0 && now > self.idle_since {
            // As if this many small packets had found the queue empty while the link was idle.
            let missed = (now - self.idle_since).0 as f64 * curve.packets_per_nano;
            power(1.0 - curve.weight, (missed as u64).saturating_add(1))
        } else {
            1.0 - curve.weight
        };
        if backlog.packets == 0 {
            // Idle time counts once, even if this packet is dropped.
            self.idle_since = self.idle_since.max(now);
        }
        self.average = self.average * kept + curve.weight * queued;
        self.adapt(curve, now);
        self.count += 1;
        self.bytes += size.0;
        if self.average < curve.ramp.min || queued <= 1.0 {
            self.above = false;
            return RedVerdict::Pass;
        }
        if self.average >= curve.end {
            return RedVerdict::Forced;
        }
        if !self.above {
            (self.above, self.count, self.bytes) = (true, 1, size.0);
            return RedVerdict::Pass;
        }
        let probability = curve.ramp.probability(self.average, self.max_probability);
        let count = if curve.bytes { self.bytes as f64 / curve.mean_packet } else { self.count as f64 };
        let mut probability = curve.spread(probability, count);
        if curve.bytes && probability < 1.0 {
            probability *= size.0 as f64 / curve.mean_packet;
        }
        if (probability == 0.0 && !curve.draws_always) || chance() >= probability {
            return RedVerdict::Pass;
        }
        (self.count, self.bytes) = (0, 0);
        RedVerdict::Early
    }

    /// Adapts the highest probability to the average.
    #[inline]
    fn adapt(&mut self, curve: &RedCurve, now: Nanos) {
        match curve.adaptation {
            RedAdaptation::Fixed => {}
            RedAdaptation::Adaptive(AredParams { interval, alpha, beta, top, bottom: _ }) => {
                if now <= self.adapted.saturating_add(interval) {
                    return;
                }
                let part = 0.4 * (curve.ramp.max - curve.ramp.min);
                if self.average < curve.ramp.min + part && self.max_probability > curve.bottom {
                    self.max_probability *= beta;
                    self.adapted = now;
                } else if self.average > curve.ramp.max - part && self.max_probability < top {
                    self.max_probability += alpha.min(self.max_probability / 4.0);
                    self.adapted = now;
                }
            }
            RedAdaptation::SelfConfiguring { decrease, increase } => {
                if self.average > curve.ramp.min && self.average < curve.ramp.max {
                    self.zone = AverageZone::Between;
                } else if self.average < curve.ramp.min && self.zone != AverageZone::Below {
                    self.zone = AverageZone::Below;
                    self.max_probability /= decrease;
                } else if self.average > curve.ramp.max && self.zone != AverageZone::Above {
                    self.zone = AverageZone::Above;
                    self.max_probability = (self.max_probability * increase).min(1.0);
                }
            }
        }
    }
}

/// `base` to the power of `exponent`, by squaring. Unlike `powi`, the result is the same on every machine.
fn power(base: f64, exponent: u64) -> f64 {
    let (mut square, mut rest, mut result) = (base, exponent, 1.0);
    while rest > 0 && result != 0.0 {
        if rest % 2 == 1 {
            result *= square;
        }
        square *= square;
        rest /= 2;
    }
    result
}

/// `1 - exp(-x)`, from its series and `1 - (1 - d)^2` for twice `x`. Unlike `exp`, the result is the same on every
/// machine.
fn decay(x: f64) -> f64 {
    if x > 64.0 {
        return 1.0;
    }
    let (mut part, mut doublings) = (x, 0);
    while part > 0.5 {
        part /= 2.0;
        doublings += 1;
    }
    let (mut term, mut sum) = (part, part);
    for n in 2..20 {
        term *= -part / f64::from(n);
        sum += term;
    }
    for _ in 0..doublings {
        sum = 2.0 * sum - sum * sum;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limit;
    use proptest::prelude::*;

    fn rate(bits: u64) -> Rate {
        Rate::from_bits_per_second(bits).unwrap()
    }

    fn backlog(packets: u64) -> Backlog {
        Backlog { packets, bytes: ByteCount(packets * 500) }
    }

    /// The gaps between early drops while the average stays where the probability is `probability`.
    fn gaps(wait: bool, probability: f64) -> Vec<u64> {
        let thresholds = Some(RedThresholds { min: 0.0, max: 10.0 });
        let params = RedParams {
            thresholds,
            weight: Some(0.0),
            max_probability: 2.0 * probability,
            wait,
            ..RedParams::default()
        };
        let curve = RedCurve::new(&params, rate(1_000_000));
        let mut state = RedState { average: 5.0, ..RedState::new(params.max_probability) };
        let mut random = crate::random::Random::new(3);
        let (mut gaps, mut last) = (Vec::new(), 0);
        for number in 1..=100_000 {
            if state.arrival(&curve, backlog(5), ByteCount(500), Nanos(0), || random.unit()) == RedVerdict::Early {
                gaps.push(number - last);
                last = number;
            }
        }
        gaps
    }

    /// The paper's section VII: gaps are uniform in 1 ..= 1/p. Its figure 2 counts a packet before it decides, so the
    /// longest gap is one less. With `wait`, gaps are 1/p longer.
    #[test]
    fn drops_are_spread_evenly() {
        for (wait, range, mean) in [(false, 1..=19, 10.0), (true, 20..=39, 29.5)] {
            let gaps = gaps(wait, 0.05);
            assert!(gaps[1..].iter().all(|gap| range.contains(gap)), "{gaps:?}");
            let sum: u64 = gaps.iter().sum();
            let measured = sum as f64 / gaps.len() as f64;
            // Five standard errors of a uniform distribution of width 20.
            assert!((measured - mean).abs() < 5.0 * 5.8 / (gaps.len() as f64).sqrt(), "{measured}");
            for gap in range.clone() {
                assert!(gaps.contains(&gap), "{gap} of {range:?}");
            }
        }
    }

    #[test]
    fn the_curve_has_three_pieces() {
        let params = RedParams { max_probability: 0.1, ..RedParams::default() };
        let probability =
            |params: &RedParams, average| RedCurve::new(params, rate(1_000_000)).ramp.probability(average, 0.1);
        for (average, gentle, square, hard) in [
            (5.0, 0.0, 0.0, 0.0),
            (10.0, 0.05, 0.0375, 0.05),
            (14.999_999_999, 0.1, 0.15, 0.1),
            (15.0, 0.1, 0.1, 1.0),
            (22.5, 0.55, 0.55, 1.0),
            (30.0, 1.0, 1.0, 1.0),
        ] {
            let near = |left: f64, right: f64| assert!((left - right).abs() < 1e-9, "{average}: {left} {right}");
            near(probability(&params, average), gentle);
            near(probability(&RedParams { nonlinear: true, ..params }, average), square);
            near(probability(&RedParams { gentle: false, ..params }, average), hard);
        }
    }

    /// On 12 Mb/s with 1500 bytes, 1000 packets a second: a weight of 1 - exp(-1/1000). The mean sojourn time of 40 ms
    /// is 40 packets: thresholds 20 and 60.
    #[test]
    fn parameters_follow_from_the_link() {
        let params = RedParams {
            mean_packet: ByteCount(1500),
            target_delay: Nanos(40_000_000),
            ..RedParams::adaptive(Limit::None)
        };
        let curve = RedCurve::new(&params, rate(12_000_000));
        assert!((curve.weight - 0.000_999_500_166_625).abs() < 1e-15, "{}", curve.weight);
        assert!((curve.ramp.min - 20.0).abs() < 1e-9 && (curve.ramp.max - 60.0).abs() < 1e-9, "{curve:?}");
        assert!((curve.bottom - 0.01).abs() < 1e-15);
        // In 100 ms 10 Gb/s sends 83 333 packets.
        let fast = RedCurve::new(&params, rate(10_000_000_000));
        assert!((fast.bottom - 1.2e-5).abs() < 1e-15, "{}", fast.bottom);
        let short =
            RedCurve::new(&RedParams { target_delay: Nanos(1_000), unit: RedUnit::Bytes, ..params }, rate(12_000_000));
        assert!((short.ramp.min - 7500.0).abs() < 1e-9 && (short.ramp.max - 22_500.0).abs() < 1e-9, "{short:?}");
    }

    /// The range around halfway between the thresholds 5 and 15 is 9 to 11.
    #[test]
    fn the_probability_adapts_once_an_interval() {
        let adaptation = RedAdaptation::Adaptive(AredParams { bottom: Some(0.0185), ..AredParams::default() });
        let params = RedParams { adaptation, ..RedParams::default() };
        let curve = RedCurve::new(&params, rate(1_000_000));
        let mut state = RedState::new(0.02);
        let mut at = |average, millis: u64| {
            state.average = average;
            state.adapt(&curve, Nanos(millis * 1_000_000));
            (state.max_probability * 1e6).round() / 1e6
        };
        assert_eq!(at(8.9, 500), 0.02);
        assert_eq!(at(8.9, 501), 0.018);
        // It may be below its lowest value once.
        assert_eq!(at(8.9, 1_100), 0.018);
        assert_eq!(at(10.0, 1_700), 0.018);
        // At first by no more than a quarter of it.
        assert_eq!(at(11.1, 1_701), 0.0225);
        assert_eq!(at(11.1, 2_201), 0.0225);
        let mut time = 2_202;
        while at(11.1, time) < 0.5 {
            time += 501;
        }
        // Steps of 0.01 stop at the first value that reaches the highest one.
        assert!(at(11.1, time + 501) < 0.51, "{}", at(11.1, time + 501));
    }

    #[test]
    fn the_self_configuring_probability_changes_when_the_average_leaves_the_thresholds() {
        let adaptation = RedAdaptation::SelfConfiguring { decrease: 3.0, increase: 2.0 };
        let curve = RedCurve::new(&RedParams { adaptation, ..RedParams::default() }, rate(1_000_000));
        let mut state = RedState::new(0.36);
        let values = [10.0, 4.0, 3.0, 10.0, 16.0, 17.0, 16.0, 4.0, 10.0, 4.0].map(|average| {
            state.average = average;
            state.adapt(&curve, Nanos(0));
            (state.max_probability * 1e6).round() / 1e6
        });
        assert_eq!(values, [0.36, 0.12, 0.12, 0.12, 0.24, 0.24, 0.24, 0.08, 0.08, 0.026_667]);
    }

    proptest! {
        /// Compared with the library's functions, which may differ between machines.
        #[test]
        fn powers_and_decays_are_exact_enough(base in 0.0..1.0f64, exponent in 0..100_000u64, x in 1e-9..100.0f64) {
            let exact = base.powf(exponent as f64);
            prop_assert!((power(base, exponent) - exact).abs() <= 1e-9 * exact + 1e-300);
            let exact = -(-x).exp_m1();
            prop_assert!((decay(x) - exact).abs() <= 1e-13 * exact, "{} {exact}", decay(x));
        }

        /// The decisions of the paper's figure 2 (with gentle and wait) in a plain implementation, with the same random
        /// numbers.
        #[test]
        fn decisions_are_those_of_the_plain_algorithm(
            wait: bool, gentle: bool, weight in 0.01..1.0f64, max_probability in 0.01..1.0f64, min in 1.0..6.0f64,
            width in 0.5..6.0f64, arrivals in prop::collection::vec((0..20u64, 0..5_000_000u64, 0.0..1.0f64), 0..100)
        ) {
            let max = min + width;
            let thresholds = Some(RedThresholds { min, max });
            let params = RedParams { thresholds, weight: Some(weight), max_probability, wait, gentle, ..RedParams::default() };
            // A mean packet takes 4 ms.
            let curve = RedCurve::new(&params, rate(1_000_000));
            let mut state = RedState::new(max_probability);
            let (mut average, mut since_drop, mut above, mut now, mut free) = (0.0f64, 0u32, false, 0, 0);
            for (queued, gap, chance) in arrivals {
                now += gap;
                if queued == 0 {
                    let missed = ((now - free) as f64 / 4e6).floor();
                    average *= (1.0 - weight).powf(missed);
                    free = now;
                }
                average = (1.0 - weight) * average + weight * queued as f64;
                since_drop += 1;
                let expected = if average < min || queued <= 1 {
                    above = false;
                    RedVerdict::Pass
                } else if average >= if gentle { 2.0 * max } else { max } {
                    RedVerdict::Forced
                } else if !above {
                    above = true;
                    since_drop = 1;
                    RedVerdict::Pass
                } else {
                    let p = if average < max {
                        max_probability * (average - min) / (max - min)
                    } else {
                        max_probability + (1.0 - max_probability) * (average - max) / max
                    };
                    let drops = f64::from(since_drop) * p;
                    let p = match (wait, drops) {
                        (true, drops) if drops < 1.0 => 0.0,
                        (true, drops) if drops < 2.0 => p / (2.0 - drops),
                        (false, drops) if drops < 1.0 => p / (1.0 - drops),
                        _ => 1.0,
                    };
                    if chance < p {
                        since_drop = 0;
                        RedVerdict::Early
                    } else {
                        RedVerdict::Pass
                    }
                };
                let decided = state.arrival(&curve, backlog(queued), ByteCount(500), Nanos(now), || chance);
                prop_assert!((state.average - average).abs() < 1e-9 * average.max(1.0));
                prop_assert_eq!(decided, expected);
                state.average = average;
            }
        }
    }
}
