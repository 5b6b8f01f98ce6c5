//! The keys of the parameters of disciplines, switch programs, congestion controls and TCP. The crates that define the
//! parameters define their defaults.

mod abc;
mod bbr;
mod bbr3;
mod bic;
mod congestion;
mod conquest;
mod discipline;
mod draws;
mod hstcp;
mod htcp;
mod hybla;
mod lola;
mod p4air;
mod pie;
mod pipeline;
mod prague;
mod scalable;
mod shared;
mod tcp;
mod veno;
mod westwood;
mod yeah;

pub(crate) use abc::ACTIVITY;
pub(crate) use congestion::{Control, counts_marks};
pub(crate) use discipline::with_limit;
pub(crate) use tcp::tcp_of_profile;

use crate::keys::{Field, KeyVisitor};
use queuescope_wire::{ByteCount, Nanos};
use std::ops::RangeInclusive;

/// The bounds of times.
const TIME: RangeInclusive<Nanos> = Nanos::ZERO..=Nanos(1_000_000_000_000);
/// The bounds of times that repeat. Not zero, so that repetition takes time.
const STEP: RangeInclusive<Nanos> = Nanos(1_000)..=Nanos(1_000_000_000_000);
/// The bounds of numbers of bytes.
const BYTES: RangeInclusive<ByteCount> = ByteCount(0)..=ByteCount(1 << 40);
/// The bounds of probabilities and shares.
const SHARE: RangeInclusive<f64> = 0.0..=1.0;
/// The bounds of factors, which are not negative.
const FACTOR: RangeInclusive<f64> = 0.0..=1e6;

/// A key with an optional value that has bounds.
pub(crate) fn optional<K: KeyVisitor, T: Field + PartialOrd>(
    keys: &mut K,
    name: &'static str,
    field: &mut Option<T>,
    bounds: &RangeInclusive<T>,
    doc: &'static str,
) {
    keys.key(name, field, doc);
    keys.ensure(name, field.as_ref().is_none_or(|value| bounds.contains(value)), || {
        let show = |value: &T| value.write().inline().trim_matches('"').to_owned();
        let help = format!("use {} to {}, or \"none\"", show(bounds.start()), show(bounds.end()));
        (format!("`{name}` is out of bounds"), help)
    });
}
