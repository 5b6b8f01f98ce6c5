//! Converts Arrow columns to a departure's fields: integers of any width, floats, decimals, timestamps, text, and
//! dictionaries.

use crate::number::{RoundedNumber, decimal};
use crate::stats::Problem;
use crate::{Field, TimeUnit};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Float16Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, downcast_primitive_array};
use arrow_schema::{DataType, TimeUnit as ArrowUnit};
use std::fmt::Write;

/// A column of numbers, each with its value or its problem.
pub(crate) type Numbers = Vec<Result<RoundedNumber, Problem>>;

/// A function that parses a number from text, in units of ten to a power.
type ReadText = fn(&[u8], u32) -> Result<RoundedNumber, Problem>;

/// Whether a column of this type can represent `field`.
pub(crate) fn fits(field: Field, kind: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, Decimal32, Decimal64, Decimal128, Decimal256, Dictionary, Duration, FixedSizeBinary,
        LargeBinary, LargeUtf8, Timestamp, Utf8, Utf8View,
    };
    let time = matches!(field, Field::Enqueued | Field::Dequeued);
    match kind {
        Dictionary(_, values) => !matches!(**values, Dictionary(..)) && fits(field, values),
        Utf8 | LargeUtf8 | Utf8View => true,
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => field == Field::Flow,
        Timestamp(..) | Duration(_) => time,
        Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => field != Field::Flow,
        kind if kind.is_integer() => true,
        kind => kind.is_floating() && field != Field::Flow,
    }
}

/// Reads a column of a type that [`fits`] a number, in units of ten to the `power`; a time type's own unit overrides
/// that. `read` is for text columns.
pub(crate) fn numbers(column: &dyn Array, power: u32, read: ReadText) -> Numbers {
    use DataType::{Duration, Timestamp};
    let shift = power as i32;
    let of = |unit: &ArrowUnit| power_of(*unit) as i32;
    match column.data_type() {
        DataType::Int8 => each::<Int8Type>(column, |value| scaled(value.into(), shift)),
        DataType::Int16 => each::<Int16Type>(column, |value| scaled(value.into(), shift)),
        DataType::Int32 => each::<Int32Type>(column, |value| scaled(value.into(), shift)),
        DataType::Int64 => each::<Int64Type>(column, |value| scaled(value.into(), shift)),
        DataType::UInt8 => each::<UInt8Type>(column, |value| scaled(value.into(), shift)),
        DataType::UInt16 => each::<UInt16Type>(column, |value| scaled(value.into(), shift)),
        DataType::UInt32 => each::<UInt32Type>(column, |value| scaled(value.into(), shift)),
        DataType::UInt64 => each::<UInt64Type>(column, |value| scaled(value.into(), shift)),
        Timestamp(unit, _) => match unit {
            ArrowUnit::Second => each::<TimestampSecondType>(column, |value| scaled(value.into(), of(unit))),
            ArrowUnit::Millisecond => each::<TimestampMillisecondType>(column, |value| scaled(value.into(), of(unit))),
            ArrowUnit::Microsecond => each::<TimestampMicrosecondType>(column, |value| scaled(value.into(), of(unit))),
            ArrowUnit::Nanosecond => each::<TimestampNanosecondType>(column, |value| scaled(value.into(), of(unit))),
        },
        Duration(unit) => match unit {
            ArrowUnit::Second => each::<DurationSecondType>(column, |value| scaled(value.into(), of(unit))),
            ArrowUnit::Millisecond => each::<DurationMillisecondType>(column, |value| scaled(value.into(), of(unit))),
            ArrowUnit::Microsecond => each::<DurationMicrosecondType>(column, |value| scaled(value.into(), of(unit))),
            ArrowUnit::Nanosecond => each::<DurationNanosecondType>(column, |value| scaled(value.into(), of(unit))),
        },
        DataType::Decimal32(_, scale) => {
            each::<Decimal32Type>(column, |value| scaled(value.into(), shift - i32::from(*scale)))
        }
        DataType::Decimal64(_, scale) => {
            each::<Decimal64Type>(column, |value| scaled(value.into(), shift - i32::from(*scale)))
        }
        DataType::Decimal128(_, scale) => {
            each::<Decimal128Type>(column, |value| scaled(value, shift - i32::from(*scale)))
        }
        // Too wide for 128-bit arithmetic, and rare: parsed as text.
        DataType::Decimal256(_, scale) => {
            each::<Decimal256Type>(column, |value| decimal(format!("{value}e{}", -i32::from(*scale)).as_bytes(), power))
        }
        DataType::Float16 => each::<Float16Type>(column, |value| float(value.to_f64(), || value.to_f32(), power)),
        DataType::Float32 => each::<Float32Type>(column, |value| float(f64::from(value), || value, power)),
        DataType::Float64 => each::<Float64Type>(column, |value| float(value, || value, power)),
        DataType::Dictionary(..) => {
            let entries = numbers(column.as_any_dictionary().values().as_ref(), power, read);
            keys(column)
                .into_iter()
                .map(|key| key.and_then(|key| entries.get(key).copied()).unwrap_or(missing()))
                .collect()
        }
        _ => text(column, |value| read(value.as_bytes(), power)),
    }
}

/// A column of flow names.
pub(crate) enum FlowNames {
    /// Text and bytes, unchanged.
    Values(arrow_array::ArrayRef),
    /// Whole numbers.
    Integers(Vec<Option<i128>>),
    /// Indexes of entries in another column.
    Keys(Vec<Option<usize>>, Box<FlowNames>),
}

impl FlowNames {
    /// Prepares a column of a type that [`fits`] a flow.
    pub fn new(column: &arrow_array::ArrayRef) -> Self {
        let whole = |numbers: Vec<Option<i128>>| Self::Integers(numbers);
        match column.data_type() {
            DataType::Int8 => whole(plain::<Int8Type>(column)),
            DataType::Int16 => whole(plain::<Int16Type>(column)),
            DataType::Int32 => whole(plain::<Int32Type>(column)),
            DataType::Int64 => whole(plain::<Int64Type>(column)),
            DataType::UInt8 => whole(plain::<UInt8Type>(column)),
            DataType::UInt16 => whole(plain::<UInt16Type>(column)),
            DataType::UInt32 => whole(plain::<UInt32Type>(column)),
            DataType::UInt64 => whole(plain::<UInt64Type>(column)),
            DataType::Dictionary(..) => {
                Self::Keys(keys(column), Box::new(Self::new(column.as_any_dictionary().values())))
            }
            _ => Self::Values(column.clone()),
        }
    }

    /// Appends the name in `row` to `to`: text unchanged, numbers in decimal, bytes that are not text in hexadecimal.
    pub fn append(&self, row: usize, to: &mut String) -> Result<(), Problem> {
        match self {
            Self::Integers(values) => {
                let value = values.get(row).copied().flatten().ok_or(Problem::Missing)?;
                // Writing to a string does not fail.
                let _ = write!(to, "{value}");
            }
            Self::Keys(keys, entries) => {
                return entries.append(keys.get(row).copied().flatten().ok_or(Problem::Missing)?, to);
            }
            Self::Values(column) => {
                if row >= column.len() || column.is_null(row) {
                    return Err(Problem::Missing);
                }
                match column.data_type() {
                    DataType::Utf8 => to.push_str(column.as_string::<i32>().value(row)),
                    DataType::LargeUtf8 => to.push_str(column.as_string::<i64>().value(row)),
                    DataType::Utf8View => to.push_str(column.as_string_view().value(row)),
                    DataType::Binary => bytes(column.as_binary::<i32>().value(row), to),
                    DataType::LargeBinary => bytes(column.as_binary::<i64>().value(row), to),
                    DataType::BinaryView => bytes(column.as_binary_view().value(row), to),
                    // Fixed length: an address or a digest, which is text only by coincidence.
                    DataType::FixedSizeBinary(_) => hex(column.as_fixed_size_binary().value(row), to),
                    _ => return Err(Problem::NotText),
                }
            }
        }
        Ok(())
    }
}

/// The value in `row`, for a message.
pub(crate) fn value_text(column: &dyn Array, row: usize) -> String {
    if row >= column.len() || column.is_null(row) {
        return String::new();
    }
    downcast_primitive_array!(
        column => format!("{:?}", column.value(row)),
        DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row).to_owned(),
        DataType::Utf8View => column.as_string_view().value(row).to_owned(),
        DataType::Dictionary(..) => match keys(column).get(row).copied().flatten() {
            Some(key) => value_text(column.as_any_dictionary().values().as_ref(), key),
            None => String::new(),
        },
        _ => String::new(),
    )
}

fn missing() -> Result<RoundedNumber, Problem> {
    Err(Problem::Missing)
}

fn each<T: ArrowPrimitiveType>(
    column: &dyn Array,
    read: impl Fn(T::Native) -> Result<RoundedNumber, Problem>,
) -> Numbers {
    column.as_primitive::<T>().iter().map(|value| value.map_or(missing(), &read)).collect()
}

fn plain<T: ArrowPrimitiveType<Native: Into<i128>>>(column: &dyn Array) -> Vec<Option<i128>> {
    column.as_primitive::<T>().iter().map(|value| value.map(Into::into)).collect()
}

fn text(column: &dyn Array, read: impl Fn(&str) -> Result<RoundedNumber, Problem>) -> Numbers {
    let read = |value: Option<&str>| value.map_or(missing(), &read);
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().iter().map(read).collect(),
        DataType::LargeUtf8 => column.as_string::<i64>().iter().map(read).collect(),
        DataType::Utf8View => column.as_string_view().iter().map(read).collect(),
        _ => vec![Err(Problem::NotANumber); column.len()],
    }
}

/// The index of each row's entry in its dictionary.
fn keys(column: &dyn Array) -> Vec<Option<usize>> {
    let dictionary = column.as_any_dictionary();
    if dictionary.values().is_empty() {
        return vec![None; column.len()];
    }
    let nulls = dictionary.keys();
    let keys = dictionary.normalized_keys().into_iter().enumerate();
    keys.map(|(row, key)| (!nulls.is_null(row)).then_some(key)).collect()
}

fn power_of(unit: ArrowUnit) -> u32 {
    match unit {
        ArrowUnit::Second => TimeUnit::Seconds,
        ArrowUnit::Millisecond => TimeUnit::Millis,
        ArrowUnit::Microsecond => TimeUnit::Micros,
        ArrowUnit::Nanosecond => TimeUnit::Nanos,
    }
    .power()
}

/// `value` times ten to the `shift`, rounded to the nearest whole number (halves up).
fn scaled(value: i128, shift: i32) -> Result<RoundedNumber, Problem> {
    let value = u128::try_from(value).map_err(|_| Problem::Negative)?;
    let narrow = |value: u128| u64::try_from(value).map_err(|_| Problem::TooLarge);
    let power = 10u128.checked_pow(shift.unsigned_abs());
    if shift >= 0 {
        let value = if value == 0 { Some(0) } else { power.and_then(|power| value.checked_mul(power)) };
        return Ok(RoundedNumber::exact(narrow(value.ok_or(Problem::TooLarge)?)?));
    }
    // No value reaches half of a power that 128 bits cannot represent.
    let Some(power) = power else { return Ok(RoundedNumber { value: 0, rounded: value != 0 }) };
    let rest = value % power;
    let value = narrow(value / power + u128::from(rest >= power.div_ceil(2)))?;
    Ok(RoundedNumber { value, rounded: rest != 0 })
}

/// A float as its shortest decimal, which is what its writer meant: 0.1 s is 100 ms, as it would be in CSV.
fn float<T: std::fmt::Display>(value: f64, exact: impl Fn() -> T, power: u32) -> Result<RoundedNumber, Problem> {
    // Every whole number up to here has its own float.
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    match value {
        _ if value.is_nan() => Err(Problem::NotANumber),
        _ if value < 0.0 => Err(Problem::Negative),
        _ if value.is_infinite() => Err(Problem::TooLarge),
        _ if value <= WHOLE && value.fract() == 0.0 => scaled(value as i128, power as i32),
        _ => decimal(exact().to_string().as_bytes(), power),
    }
}

/// Appends bytes as text if they are text, otherwise in hexadecimal.
fn bytes(value: &[u8], to: &mut String) {
    match std::str::from_utf8(value) {
        Ok(text) => to.push_str(text),
        Err(_) => hex(value, to),
    }
}

fn hex(value: &[u8], to: &mut String) {
    to.push_str("0x");
    for byte in value {
        // Writing to a string does not fail.
        let _ = write!(to, "{byte:02x}");
    }
}
