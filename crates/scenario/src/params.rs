//! The parameters of disciplines, switch programs, congestion controls and TCP: their keys, and nothing else. What they
//! are by default, the crates say that they are from.

mod abc;
mod bbr;
mod congestion;
mod conquest;
mod discipline;
mod draws;
mod pie;
mod pipeline;
mod tcp;

pub(crate) use abc::ACTIVITY;
pub(crate) use congestion::{Control, counts_marks};
pub(crate) use discipline::with_limit;
pub(crate) use tcp::of_profile;

use crate::keys::{Field, Keys};
use queuescope_wire::{ByteCount, Nanos};
use std::ops::RangeInclusive;

/// Any time that a parameter may be.
const TIME: RangeInclusive<Nanos> = Nanos::ZERO..=Nanos(1_000_000_000_000);
/// The same for what is done again and again: often enough, and not without end in no time.
const STEP: RangeInclusive<Nanos> = Nanos(1_000)..=Nanos(1_000_000_000_000);
/// Any number of bytes that a parameter may be.
const BYTES: RangeInclusive<ByteCount> = ByteCount(0)..=ByteCount(1 << 40);
/// A probability, or a part of something.
const SHARE: RangeInclusive<f64> = 0.0..=1.0;
/// A factor that is not negative.
const FACTOR: RangeInclusive<f64> = 0.0..=1e6;

/// A value that may be none, with bounds if there is one.
pub(crate) fn optional<K: Keys, T: Field + PartialOrd>(
    keys: &mut K,
    name: &'static str,
    field: &mut Option<T>,
    bounds: &RangeInclusive<T>,
    doc: &'static str,
) {
    keys.key(name, field, doc);
    keys.ensure(name, field.as_ref().is_none_or(|value| bounds.contains(value)), || {
        let show = |value: &T| value.write().inline().trim_matches('"').to_owned();
        let help = format!("it is from {} to {}, or \"none\"", show(bounds.start()), show(bounds.end()));
        (format!("`{name}` is out of bounds"), help)
    });
}
