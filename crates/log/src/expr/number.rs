//! Values of aggregates, and how attributes compare with them.

use super::AggregateId;
use crate::{Attribute, Kind};
use std::cmp::Ordering;

/// The values of aggregates at some point of the log.
pub trait Aggregates {
    /// The value of an aggregate. It always has one: before the first record, a sum or count is zero, a maximum the lowest and
    /// a minimum the highest possible value. So each comparison is either true or false, and its negation the opposite.
    fn value(&self, aggregate: AggregateId) -> Number;
}

/// No aggregates: every value is zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoAggregates;

impl Aggregates for NoAggregates {
    fn value(&self, _: AggregateId) -> Number {
        Number::Unsigned(0)
    }
}

/// Values by id; zero for ids that are not there.
impl Aggregates for [Number] {
    fn value(&self, aggregate: AggregateId) -> Number {
        self.get(aggregate.0 as usize).copied().unwrap_or(Number::Unsigned(0))
    }
}

impl<A: Aggregates + ?Sized> Aggregates for &A {
    fn value(&self, aggregate: AggregateId) -> Number {
        (**self).value(aggregate)
    }
}

/// A number. Whole numbers compare exactly with all numbers.
///
/// ```
/// use queuescope_log::Number;
/// use std::cmp::Ordering;
///
/// let big = Number::Unsigned(u128::from(u64::MAX));
/// assert_eq!(big.compare(Number::Float(1.5)), Ordering::Greater);
/// assert_eq!(Number::Signed(-3).plus(Number::Signed(5)).to_f64(), 2.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Zero or more: also addresses and bytes, by their keys.
    Unsigned(u128),
    /// May be below zero.
    Signed(i128),
    /// With a fraction. NaN is above all whole numbers.
    Float(f64),
}

impl Number {
    /// The number that an attribute's key represents.
    pub fn of_key(attribute: &Attribute, key: u128) -> Self {
        Self::from_key_bits(attribute.kind, attribute.place.bits, key)
    }

    /// The number that a key of `bits` bits represents.
    #[inline]
    pub(crate) fn from_key_bits(kind: Kind, bits: u32, key: u128) -> Self {
        match kind {
            Kind::Signed => {
                let zero = 1 << (bits - 1);
                // Both differences fit.
                Self::Signed(if key < zero { -((zero - 1 - key) as i128) - 1 } else { (key - zero) as i128 })
            }
            Kind::Float => {
                let sign = 1 << (bits - 1);
                let word = if key & sign != 0 { key ^ sign } else { !key };
                Self::Float(if bits == 32 {
                    f64::from(f32::from_bits(word as u32))
                } else {
                    f64::from_bits(word as u64)
                })
            }
            _ => Self::Unsigned(key),
        }
    }

    /// The sum. Whole numbers saturate at 128 bits.
    #[must_use]
    pub fn plus(self, offset: Self) -> Self {
        match (self, offset) {
            (Self::Unsigned(a), Self::Signed(b)) => match a.checked_add_signed(b) {
                Some(sum) => Self::Unsigned(sum),
                None if b > 0 => Self::Unsigned(u128::MAX),
                // `a` is less than `-b`, so it fits.
                None => Self::Signed(a as i128 + b),
            },
            (Self::Signed(_), Self::Unsigned(_)) => offset.plus(self),
            (Self::Unsigned(a), Self::Unsigned(b)) => Self::Unsigned(a.saturating_add(b)),
            (Self::Signed(a), Self::Signed(b)) => match a.checked_add(b) {
                Some(sum) => Self::Signed(sum),
                None if a > 0 => Self::Unsigned(a.unsigned_abs() + b.unsigned_abs()),
                None => Self::Signed(i128::MIN),
            },
            (a, Self::Signed(0) | Self::Unsigned(0)) => a,
            (a, b) => Self::Float(a.to_f64() + b.to_f64()),
        }
    }

    /// Compares two numbers in a total order.
    pub fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            // Adding zero removes the sign of zero.
            (Self::Float(a), Self::Float(b)) => (a + 0.0).total_cmp(&(b + 0.0)),
            (Self::Float(a), b) => compare_whole(b, a).reverse(),
            (a, Self::Float(b)) => compare_whole(a, b),
            (Self::Unsigned(a), Self::Unsigned(b)) => a.cmp(&b),
            (Self::Signed(a), Self::Signed(b)) => a.cmp(&b),
            (Self::Unsigned(a), Self::Signed(b)) => u128::try_from(b).map_or(Ordering::Greater, |b| a.cmp(&b)),
            (Self::Signed(a), Self::Unsigned(b)) => u128::try_from(a).map_or(Ordering::Less, |a| a.cmp(&b)),
        }
    }

    /// The nearest floating-point number.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Unsigned(number) => number as f64,
            Self::Signed(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

/// Compares a whole number with one that has a fraction, without rounding either.
fn compare_whole(whole: Number, float: f64) -> Ordering {
    if float.is_nan() {
        return if float.is_sign_positive() { Ordering::Less } else { Ordering::Greater };
    }
    let floor = float.floor();
    // The cast value is whole. A value that does not fit saturates; the test above excludes this for the upper end.
    let floor_number = if floor >= 0.0 { Number::Unsigned(floor as u128) } else { Number::Signed(floor as i128) };
    if floor >= 2f64.powi(128) {
        return Ordering::Less;
    }
    if floor < -(2f64.powi(127)) {
        return Ordering::Greater;
    }
    match whole.compare(floor_number) {
        Ordering::Equal if float > floor => Ordering::Less,
        other => other,
    }
}

/// A set of orderings: the outcomes of a comparison that count as true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Orderings(u8);

impl Orderings {
    /// No outcome.
    pub const NONE: Self = Self(0);
    /// Less.
    pub const LESS: Self = Self(1);
    /// Equal.
    pub const EQUAL: Self = Self(2);
    /// Greater.
    pub const GREATER: Self = Self(4);
    /// Every outcome.
    pub const ANY: Self = Self(7);

    /// Whether an outcome is in the set.
    #[inline]
    pub fn contains(self, ordering: Ordering) -> bool {
        // Less is -1.
        self.0 >> (ordering as i8 + 1) & 1 == 1
    }

    /// The outcomes in both sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The outcomes in either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The outcomes that are not in the set.
    #[must_use]
    pub fn complement(self) -> Self {
        Self(!self.0 & Self::ANY.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Number::{Float, Signed, Unsigned};
    use Ordering::{Equal, Greater, Less};

    #[test]
    fn numbers_of_all_kinds_compare_exactly() {
        let big = (1u128 << 60) + 1;
        for (a, b, expected) in [
            (Unsigned(5), Signed(-5), Greater),
            (Signed(-5), Unsigned(5), Less),
            (Signed(5), Unsigned(5), Equal),
            (Unsigned(u128::MAX), Signed(i128::MAX), Greater),
            (Unsigned(big), Float((1u64 << 60) as f64), Greater),
            (Unsigned(7), Float(7.0), Equal),
            (Unsigned(7), Float(7.5), Less),
            (Unsigned(8), Float(7.5), Greater),
            (Signed(-8), Float(-7.5), Less),
            (Signed(-7), Float(-7.5), Greater),
            (Unsigned(u128::MAX), Float(f64::INFINITY), Less),
            (Signed(i128::MIN), Float(f64::NEG_INFINITY), Greater),
            (Signed(i128::MIN), Float(-(2f64.powi(127))), Equal),
            (Unsigned(u128::MAX), Float(f64::NAN), Less),
            (Unsigned(0), Float(-0.0), Equal),
            (Float(0.0), Float(-0.0), Equal),
            (Float(f64::NAN), Float(f64::INFINITY), Greater),
        ] {
            assert_eq!((a.compare(b), b.compare(a)), (expected, expected.reverse()), "{a:?} {b:?}");
        }
    }

    #[test]
    fn sums_stay_within_128_bits() {
        for (a, b, sum) in [
            (Unsigned(5), Signed(-7), Signed(-2)),
            (Unsigned(5), Signed(-3), Unsigned(2)),
            (Unsigned(u128::MAX), Signed(1), Unsigned(u128::MAX)),
            (Unsigned(u128::MAX), Signed(i128::MIN), Unsigned(i128::MAX as u128)),
            (Unsigned(0), Signed(i128::MIN), Signed(i128::MIN)),
            (Signed(i128::MAX), Signed(i128::MAX), Unsigned(u128::MAX - 1)),
            (Signed(i128::MIN), Signed(-1), Signed(i128::MIN)),
            (Signed(-3), Unsigned(2), Signed(-1)),
            (Float(1.5), Signed(2), Float(3.5)),
            (Unsigned(3), Float(0.5), Float(3.5)),
        ] {
            assert_eq!(a.plus(b), sum);
        }
    }

    #[test]
    fn orderings_are_sets() {
        for ordering in [Less, Equal, Greater] {
            assert!(Orderings::ANY.contains(ordering) && !Orderings::NONE.contains(ordering));
            assert_eq!(Orderings::LESS.contains(ordering), ordering.is_lt());
            assert_eq!(Orderings::EQUAL.complement().contains(ordering), ordering.is_ne());
        }
    }
}
