//! Means and their confidence intervals.

use queuescope_report::model::SweepMean;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The mean of `values`, with half the width of its 95 % confidence interval; see [`mean_at`].
pub fn mean(values: &[f64]) -> Option<SweepMean> {
    mean_at(0.95, values)
}

/// The mean of `values`, with half the width of its confidence interval by Student's t. At a `confidence` of 0.95 that is t(0.975, n
/// - 1) s / √n, where s² is the unbiased variance. `None` if there are no values. One value has no interval.
pub fn mean_at(confidence: f64, values: &[f64]) -> Option<SweepMean> {
    let count = values.len() as f64;
    let (first, rest) = values.split_first()?;
    if rest.is_empty() {
        return Some(SweepMean { mean: *first, half_width: None, cells: 1 });
    }
    // Sum differences from the first value, so that equal values have exactly that mean, and no variance.
    let mean = first + rest.iter().map(|value| value - first).sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    let half_width = deviation / count.sqrt() * quantile(f64::midpoint(1.0, confidence), values.len() - 1);
    Some(SweepMean { mean, half_width: Some(half_width), cells: values.len() as u64 })
}

/// The quantile of Student's t with `freedom` degrees of freedom.
fn quantile(share: f64, freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64).map_or(f64::NAN, |students| students.inverse_cdf(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_the_published_table() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
        let table = [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (9, 2.262),
            (10, 2.228),
            (20, 2.086),
            (30, 2.042),
            (60, 2.000),
            (100, 1.984),
        ];
        for (freedom, expected) in table {
            assert!((quantile(0.975, freedom) - expected).abs() < 0.000_6, "{freedom}: {}", quantile(0.975, freedom));
        }
        for (freedom, expected) in [(1, 63.657), (9, 3.250), (29, 2.756)] {
            assert!((quantile(0.995, freedom) - expected).abs() < 0.000_6);
        }
        // With one degree of freedom it is tan(0.475 π) exactly. With many it approaches the normal distribution's quantile.
        assert!((quantile(0.975, 1) - (0.475 * std::f64::consts::PI).tan()).abs() < 1e-7);
        assert!((quantile(0.975, 99_999) - 1.959_988).abs() < 1e-5);
    }

    #[test]
    fn intervals_match_a_calculation_by_hand() {
        // Mean 5, s² = (9 + 1 + 1 + 1 + 0 + 0 + 4 + 16) / 7, t(7) = 2.364624.
        let found = mean(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((found.mean, found.cells), (5.0, 8));
        let by_hand = 2.364_624 * (32.0f64 / 7.0).sqrt() / 8f64.sqrt();
        assert!((found.half_width.unwrap() - by_hand).abs() < 1e-6);
        // Two values: half of their distance is s / √2, times 12.706.
        let found = mean(&[10.0, 12.0]).unwrap();
        assert!((found.half_width.unwrap() - 12.706_205).abs() < 1e-6 && (found.mean - 11.0).abs() < 1e-12);
    }

    #[test]
    fn values_that_do_not_vary_have_no_width() {
        assert_eq!(mean(&[0.1; 7]), Some(SweepMean { mean: 0.1, half_width: Some(0.0), cells: 7 }));
        assert_eq!(mean(&[0.1]), Some(SweepMean { mean: 0.1, half_width: None, cells: 1 }));
        assert_eq!(mean(&[]), None);
    }
}
