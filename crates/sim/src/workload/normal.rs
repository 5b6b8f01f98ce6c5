//! The normal distribution, with the same results on every machine.

use libm::{erfc, exp, log, sqrt};
use std::f64::consts::{PI, SQRT_2};

/// The share of a standard normal distribution at or below `x`.
pub(super) fn cumulative(x: f64) -> f64 {
    0.5 * erfc(-x / SQRT_2)
}

/// The quantile of a share `p` of a standard normal distribution, above 0 and below 1.
///
/// A rational approximation (Abramowitz and Stegun, 26.2.23, within 4.5e-4) to start from, then two steps of Halley's
/// method, each of which cubes the error. It is computed in the lower half, where `p` is most precise.
pub(super) fn quantile(p: f64) -> f64 {
    if p > 0.5 {
        return -quantile(1.0 - p);
    }
    let t = sqrt(-2.0 * log(p));
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let mut x = above / below - t;
    for _ in 0..2 {
        let step = (cumulative(x) - p) * sqrt(2.0 * PI) * exp(0.5 * x * x);
        x -= step / (1.0 + 0.5 * x * step);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By mpmath: `sqrt(2) * erfinv(2 p - 1)`.
    #[test]
    fn quantiles_are_those_of_a_table() {
        let table = [
            (0.5, 0.0),
            (0.25, -0.674_489_750_196_081_7),
            (0.975, 1.959_963_984_540_054),
            (0.001, -3.090_232_306_167_813_5),
            (1e-9, -5.997_807_015_007_687),
            (1e-16, -8.222_082_216_130_436),
        ];
        for (p, x) in table {
            assert!((quantile(p) - x).abs() < 1e-14 * x.abs().max(1.0), "{p}: {}", quantile(p));
        }
    }

    #[test]
    fn quantiles_invert_shares() {
        for n in 1..10_000 {
            let p = f64::from(n) / 10_000.0;
            assert!((cumulative(quantile(p)) - p).abs() < 4.0 * f64::EPSILON, "{p}");
        }
    }
}
