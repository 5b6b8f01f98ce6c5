//! The standard deviation of a number of records, from states that can be joined.
//!
//! - Whole numbers of at most 64 bits: the words are the count, the sum, and the low and the high half of the sum of squares. Fewer than 2^63
//!   records do not exceed them, so the variance, `(n * sum of squares - sum^2) / n^2`, is exact until it is rounded at the end. Beyond, which only a state
//!   from outside reaches, words saturate.
//! - Other numbers: the count, and the bits of the mean and of the sum of squared distances from it, updated by each number (Welford, "Note on a
//!   method for calculating corrected sums of squares and products", Technometrics 1962) and joined (Chan, Golub and LeVeque, "Updating formulae
//!   and a pairwise algorithm for computing sample variances", 1979). Each step is rounded.

use super::State;
use crate::expr::Number;
use crate::schema::Kind;

/// Whether the deviation of numbers of this kind and width is computed from exact sums.
pub(super) fn is_exact(kind: Kind, bits: u32) -> bool {
    kind != Kind::Float && bits <= 64
}

/// Adds a whole number.
pub(super) fn add_whole(state: &mut State, number: Number) {
    let (sum, magnitude) = match number {
        Number::Unsigned(number) => (state[1].saturating_add(number), number),
        Number::Signed(number) => ((state[1] as i128).saturating_add(number) as u128, number.unsigned_abs()),
        Number::Float(_) => return,
    };
    let squares = plus(squares(state), (magnitude * magnitude, 0));
    *state = [state[0] + 1, sum, squares.0, squares.1];
}

/// Adds the state of other whole numbers. `is_signed`: sums may be below zero.
pub(super) fn join_whole(state: &mut State, other: &State, is_signed: bool) {
    let sum = if is_signed {
        (state[1] as i128).saturating_add(other[1] as i128) as u128
    } else {
        state[1].saturating_add(other[1])
    };
    let squares = plus(squares(state), squares(other));
    *state = [state[0].saturating_add(other[0]), sum, squares.0, squares.1];
}

/// The deviation of whole numbers, whose sum is `sum`.
pub(super) fn value_whole(state: &State, sum: Number) -> f64 {
    let sum = match sum {
        Number::Unsigned(sum) => sum,
        Number::Signed(sum) => sum.unsigned_abs(),
        Number::Float(_) => 0,
    };
    let (low, high) = minus(times(squares(state), state[0]), times((sum, 0), sum));
    let difference = high as f64 * 2f64.powi(128) + low as f64;
    difference.sqrt() / (state[0].max(1) as f64)
}

/// Adds a number.
pub(super) fn add(state: &mut State, number: f64) {
    let (count, mean, squares) = moments(state);
    let (count, apart) = (count + 1, number - mean);
    let mean = mean + apart / count as f64;
    *state = packed(count, mean, squares + apart * (number - mean));
}

/// Adds the state of other numbers.
pub(super) fn join(state: &mut State, other: &State) {
    let ((own, mean, squares), (others, other_mean, other_squares)) = (moments(state), moments(other));
    if own == 0 || others == 0 {
        *state = if own == 0 { *other } else { *state };
        return;
    }
    let (count, apart) = (own.saturating_add(others), other_mean - mean);
    let share = others as f64 / count as f64;
    *state = packed(count, mean + apart * share, squares + other_squares + apart * apart * own as f64 * share);
}

/// The deviation of numbers.
pub(super) fn value(state: &State) -> f64 {
    let (count, _, squares) = moments(state);
    if count == 0 { 0.0 } else { (squares / count as f64).sqrt() }
}

/// A state as the count, the mean and the sum of squared distances.
fn moments(state: &State) -> (u128, f64, f64) {
    (state[0], f64::from_bits(state[1] as u64), f64::from_bits(state[2] as u64))
}

fn packed(count: u128, mean: f64, squares: f64) -> State {
    [count, mean.to_bits().into(), squares.to_bits().into(), 0]
}

/// A number of 256 bits: the low and the high half.
type Wide = (u128, u128);

const MOST: Wide = (u128::MAX, u128::MAX);

fn squares(state: &State) -> Wide {
    (state[2], state[3])
}

/// The sum, which saturates.
fn plus(a: Wide, b: Wide) -> Wide {
    let (low, carry) = a.0.overflowing_add(b.0);
    match a.1.checked_add(b.1).and_then(|high| high.checked_add(carry.into())) {
        Some(high) => (low, high),
        None => MOST,
    }
}

/// The difference, at least zero.
fn minus(a: Wide, b: Wide) -> Wide {
    let (low, borrow) = a.0.overflowing_sub(b.0);
    a.1.checked_sub(b.1).and_then(|high| high.checked_sub(borrow.into())).map_or((0, 0), |high| (low, high))
}

/// The product, which saturates.
fn times(a: Wide, b: u128) -> Wide {
    let (low, carried) = product(a.0, b);
    let (high, over) = product(a.1, b);
    if over > 0 { MOST } else { plus((low, carried), (0, high)) }
}

/// The product of two words, by halves.
fn product(a: u128, b: u128) -> Wide {
    let halves = |word: u128| (word & u128::from(u64::MAX), word >> 64);
    let ((a_low, a_high), (b_low, b_high)) = (halves(a), halves(b));
    let low = (a_low * b_low, 0);
    let middle = |word: u128| (word << 64, word >> 64);
    let sum = plus(plus(low, middle(a_low * b_high)), middle(a_high * b_low));
    plus(sum, (0, a_high * b_high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn products_are_those_of_small_words(a in any::<u64>(), b in any::<u64>(), shift in 0..64u32) {
            prop_assert_eq!(product(a.into(), b.into()), (u128::from(a) * u128::from(b), 0));
            // Moved up by 64 bits, the product moves up by 64 bits; the remaining shift moves the same on both sides.
            let (low, high) = product(u128::from(a) << 64, u128::from(b >> shift));
            let plain = u128::from(a) * u128::from(b >> shift);
            prop_assert_eq!((low, high), (plain << 64, plain >> 64));
        }

        #[test]
        fn a_product_by_parts_is_the_product(a in any::<u128>(), b in any::<u128>(), c in any::<u64>()) {
            // (a + c) * b = a * b + c * b, if nothing overflows.
            let a = a >> 1;
            let whole = product(a + u128::from(c), b);
            prop_assert_eq!(whole, plus(product(a, b), product(c.into(), b)));
            prop_assert_eq!(minus(whole, product(c.into(), b)), product(a, b));
            prop_assert_eq!(product(a, b), product(b, a));
        }

        #[test]
        fn nothing_overflows(words in any::<[u128; 4]>(), more in any::<[u128; 4]>(), number in any::<u64>()) {
            let mut state = words.map(|word| word >> (number % 64));
            state[0] &= u128::from(u64::MAX);
            let sum = Number::Unsigned(state[1]);
            prop_assert!(value_whole(&state, sum) >= 0.0);
            join_whole(&mut state, &more, number % 2 == 0);
            prop_assert!(value_whole(&state, Number::Signed(state[1] as i128)) >= 0.0);
        }
    }
}
