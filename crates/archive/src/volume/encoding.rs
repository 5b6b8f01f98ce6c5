//! Chooses the encoding of a column's values.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_schema::DataType;
use std::collections::BTreeSet;

/// The encoding of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnEncoding {
    /// Each distinct value once, and an index for each row.
    Dictionary,
    /// Differences to the previous value.
    Differences,
    /// For texts: the part that differs from the previous one.
    Endings,
    /// The values themselves.
    Plain,
}

/// Differences of this many values are written with the bits that the largest one needs.
const TOGETHER: usize = 32;

impl ColumnEncoding {
    /// The encoding that takes the least room, judged by a sample of a column's values in the order of rows.
    pub fn choose(values: &dyn Array) -> Self {
        match values.data_type() {
            DataType::UInt8 => number::<UInt8Type>(values),
            DataType::UInt16 => number::<UInt16Type>(values),
            DataType::UInt32 => number::<UInt32Type>(values),
            DataType::UInt64 => number::<UInt64Type>(values),
            DataType::Int8 => number::<Int8Type>(values),
            DataType::Int16 => number::<Int16Type>(values),
            DataType::Int32 => number::<Int32Type>(values),
            DataType::Int64 => number::<Int64Type>(values),
            DataType::Timestamp(..) => number::<TimestampNanosecondType>(values),
            // A dictionary of many texts is long, and is read again for each page.
            DataType::Dictionary(..) if values.as_dictionary::<Int32Type>().values().len() * 4 > values.len() => {
                Self::Endings
            }
            _ => Self::Dictionary,
        }
    }
}

fn number<T: ArrowPrimitiveType<Native: Word>>(values: &dyn Array) -> ColumnEncoding {
    let values: Vec<i64> = values.as_primitive::<T>().values().iter().map(|value| value.word()).collect();
    let different: BTreeSet<_> = values.iter().collect();
    match different.len() {
        // A constant column compresses to nothing, and no dictionary has to be read.
        1 => return ColumnEncoding::Plain,
        // Bytes are written as numbers of four bytes, and have few distinct values.
        count if count * 4 <= values.len() || size_of::<T::Native>() == 1 => return ColumnEncoding::Dictionary,
        _ => {}
    }
    let differences: Vec<i64> = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    let bits = |part: &[i64]| {
        let (low, high) = part.iter().fold((i64::MAX, i64::MIN), |(low, high), of| (low.min(*of), high.max(*of)));
        part.len() as u64 * u64::from(64 - (high.wrapping_sub(low) as u64).leading_zeros())
    };
    let all: u64 = differences.chunks(TOGETHER).map(bits).sum();
    let width = size_of::<T::Native>() as u64 * 8;
    // A small gain does not pay: compression works on plain values, too.
    if all * 10 < differences.len() as u64 * width * 9 { ColumnEncoding::Differences } else { ColumnEncoding::Plain }
}

/// A number as a 64-bit word.
trait Word: Copy {
    fn word(self) -> i64;
}

macro_rules! word {
    ($($number:ty),*) => { $(impl Word for $number {
        fn word(self) -> i64 {
            i64::from(self)
        }
    })* };
}

word!(u8, u16, u32, i8, i16, i32, i64);

impl Word for u64 {
    fn word(self) -> i64 {
        self.cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{DictionaryArray, StringArray, UInt32Array};

    #[test]
    fn the_smallest_encoding_is_chosen() {
        let of = |value: fn(u32) -> u32| ColumnEncoding::choose(&UInt32Array::from_iter_values((0..1000).map(value)));
        assert_eq!(of(|n| n % 7), ColumnEncoding::Dictionary);
        assert_eq!(of(|n| n * 1448), ColumnEncoding::Differences);
        assert_eq!(of(|n| n.wrapping_mul(0x9e37_79b9).rotate_left(7) ^ n.wrapping_mul(n)), ColumnEncoding::Plain);
        assert_eq!(ColumnEncoding::choose(&StringArray::from(vec!["a", "b"])), ColumnEncoding::Dictionary);
        assert_eq!(ColumnEncoding::choose(&UInt32Array::from(Vec::<u32>::new())), ColumnEncoding::Dictionary);
        let texts = |count: i32| {
            let texts: Vec<_> = (0..100).map(|number| (number % count).to_string()).collect();
            texts.iter().map(String::as_str).collect::<DictionaryArray<Int32Type>>()
        };
        assert_eq!(
            (ColumnEncoding::choose(&texts(25)), ColumnEncoding::choose(&texts(26))),
            (ColumnEncoding::Dictionary, ColumnEncoding::Endings)
        );
    }
}
