//! How the values of a column are written.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_schema::DataType;
use std::collections::BTreeSet;

/// How the values of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Each value once, and where it is.
    Dictionary,
    /// Differences to the value before.
    Differences,
    /// Of texts: what differs from the one before.
    Endings,
    /// As they are.
    Plain,
}

/// Values whose differences are written with as many bits as the largest needs.
const TOGETHER: usize = 32;

impl Way {
    /// What takes least, as some of a column's values look, in the order that they are written.
    pub fn of(values: &dyn Array) -> Self {
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
            // A dictionary of many texts is long, and is read for each page.
            DataType::Dictionary(..) if values.as_dictionary::<Int32Type>().values().len() * 4 > values.len() => {
                Self::Endings
            }
            _ => Self::Dictionary,
        }
    }
}

fn number<T: ArrowPrimitiveType<Native: Word>>(values: &dyn Array) -> Way {
    let values: Vec<i64> = values.as_primitive::<T>().values().iter().map(|value| value.word()).collect();
    let different: BTreeSet<_> = values.iter().collect();
    match different.len() {
        // What is always the same takes nothing compressed, and no value has to be looked up.
        1 => return Way::Plain,
        // Bytes are written as numbers of four, and have few values.
        count if count * 4 <= values.len() || size_of::<T::Native>() == 1 => return Way::Dictionary,
        _ => {}
    }
    let differences: Vec<i64> = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    let bits = |part: &[i64]| {
        let (low, high) = part.iter().fold((i64::MAX, i64::MIN), |(low, high), of| (low.min(*of), high.max(*of)));
        part.len() as u64 * u64::from(64 - (high.wrapping_sub(low) as u64).leading_zeros())
    };
    let all: u64 = differences.chunks(TOGETHER).map(bits).sum();
    let width = size_of::<T::Native>() as u64 * 8;
    // What is not much less does not pay: compression finds something in plain values, too.
    if all * 10 < differences.len() as u64 * width * 9 { Way::Differences } else { Way::Plain }
}

/// A number as a word.
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
    fn what_takes_least_is_taken() {
        let of = |value: fn(u32) -> u32| Way::of(&UInt32Array::from_iter_values((0..1000).map(value)));
        assert_eq!(of(|n| n % 7), Way::Dictionary);
        assert_eq!(of(|n| n * 1448), Way::Differences);
        assert_eq!(of(|n| n.wrapping_mul(0x9e37_79b9).rotate_left(7) ^ n.wrapping_mul(n)), Way::Plain);
        assert_eq!(Way::of(&StringArray::from(vec!["a", "b"])), Way::Dictionary);
        assert_eq!(Way::of(&UInt32Array::from(Vec::<u32>::new())), Way::Dictionary);
        let texts = |count: i32| {
            let texts: Vec<_> = (0..100).map(|number| (number % count).to_string()).collect();
            texts.iter().map(String::as_str).collect::<DictionaryArray<Int32Type>>()
        };
        assert_eq!((Way::of(&texts(25)), Way::of(&texts(26))), (Way::Dictionary, Way::Endings));
    }
}
