//! The mean of whole numbers, rounded once.

use crate::expr::Number;

/// A sum by a count, which is not zero. Of whole numbers it is the float that is nearest to the quotient, so the mean of equal values is
/// that value.
pub fn value(sum: Number, count: u128) -> f64 {
    match sum {
        Number::Unsigned(sum) => of_whole(sum, count),
        Number::Signed(sum) if sum < 0 => -of_whole(sum.unsigned_abs(), count),
        Number::Signed(sum) => of_whole(sum.unsigned_abs(), count),
        Number::Float(sum) => sum / count as f64,
    }
}

fn of_whole(sum: u128, count: u128) -> f64 {
    // The shifted quotient has at least 64 bits for counts of records, which is more than a float holds; its lowest bit says whether there
    // is a rest. So only the conversion rounds.
    let up = sum.leading_zeros().min(127);
    let (quotient, rest) = ((sum << up) / count, (sum << up) % count);
    (quotient | u128::from(rest > 0)) as f64 / 2f64.powi(up as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_mean_of_equal_values_is_their_value(value in any::<u64>(), count in 1..u64::MAX) {
            let sum = u128::from(value) * u128::from(count);
            prop_assert_eq!(super::value(Number::Unsigned(sum), count.into()), value as f64);
            if let Ok(sum) = i128::try_from(sum) {
                prop_assert_eq!(super::value(Number::Signed(-sum), count.into()), -(value as f64));
            }
        }

        #[test]
        fn no_float_is_nearer(sum in any::<u64>(), count in 1..=u64::from(u32::MAX)) {
            let mean = value(Number::Unsigned(sum.into()), count.into());
            // Exactly: how far a float with this mantissa and exponent is from the quotient, times the count and a power of two.
            let distance = |float: f64| {
                let bits = float.to_bits();
                let exponent = (bits >> 52) as i32 - 1075;
                let mantissa = u128::from(bits & ((1 << 52) - 1) | 1 << 52);
                let (sum, product) = (u128::from(sum), mantissa * u128::from(count));
                if exponent >= 0 { (product << exponent).abs_diff(sum) } else { product.abs_diff(sum << exponent.unsigned_abs()) }
            };
            // A quotient below 2^-20 is no mean that needs this; its shift would not fit.
            prop_assume!(sum == 0 || sum >= count);
            if sum > 0 {
                for other in [mean.next_down(), mean.next_up()] {
                    prop_assert!(distance(mean) <= distance(other), "{} of {} by {}", mean, sum, count);
                }
            }
        }
    }

    #[test]
    fn a_mean_of_times_is_not_below_the_least() {
        // 39 packets of one nanosecond: the rounded sum by the count was a unit in the last place lower.
        let at = 1_214_528_320_101_273_000u128;
        assert_eq!(value(Number::Unsigned(39 * at), 39), at as f64);
        assert_eq!(value(Number::Unsigned(0), 5), 0.0);
        assert_eq!(value(Number::Float(1.0), 4), 0.25);
    }
}
