//! One attribute as an Arrow column.

use crate::schema::{Attribute, AttributeId, Kind, Reader, Schema};
use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray, Int32Array, PrimitiveArray, StringArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, TimeUnit};
use hashbrown::HashMap;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// An attribute, and the form of its values in a column.
#[derive(Debug)]
pub struct Column {
    pub(super) attribute: Attribute,
    pub(super) reader: Reader,
    /// Reads and writes its bits unchanged: minus zero stays minus zero.
    bits: Reader,
    pub(super) form: Form,
}

/// A column does not match an attribute.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the column `{name}` {why}")]
pub struct ColumnError {
    /// The name of the column.
    pub name: String,
    /// What is wrong.
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    Time,
    Text,
    Bytes,
}

/// Calls a macro with the Arrow type of a form and the integer type of its bits; the other forms as given.
macro_rules! primitive {
    ($form:expr, $call:ident, $others:expr) => {
        match $form {
            Form::U8 => $call!(UInt8Type, u8),
            Form::U16 => $call!(UInt16Type, u16),
            Form::U32 => $call!(UInt32Type, u32),
            Form::U64 => $call!(UInt64Type, u64),
            Form::I8 => $call!(Int8Type, u8),
            Form::I16 => $call!(Int16Type, u16),
            Form::I32 => $call!(Int32Type, u32),
            Form::I64 => $call!(Int64Type, u64),
            Form::F32 => $call!(Float32Type, u32),
            Form::F64 => $call!(Float64Type, u64),
            Form::Time => $call!(TimestampNanosecondType, u64),
            Form::Bool | Form::Text | Form::Bytes => $others,
        }
    };
}

pub(super) use primitive;

impl Column {
    /// The column of an attribute.
    ///
    /// # Panics
    /// Panics if the attribute belongs to another schema.
    pub fn new(id: AttributeId, schema: &Schema) -> Self {
        let attribute = schema.attribute(id).clone();
        let form = Form::of(&attribute, schema.time() == Some(id));
        let reader = schema.reader(id);
        Self { reader, bits: reader.of_bits(), form, attribute }
    }

    /// The name of the column.
    pub fn name(&self) -> &str {
        &self.attribute.name
    }

    /// Its name and type.
    pub fn field(&self) -> Field {
        Field::new(&self.attribute.name, self.form.data_type(&self.attribute), false)
    }

    /// The values of consecutive records of `size` bytes each.
    pub fn array(&self, rows: &[u8], size: usize) -> ArrayRef {
        let count = rows.len() / size;
        macro_rules! array {
            ($kind:ty, $bits:ty) => {{
                let values = self.words(rows, size, count).into_iter().map(|bits| self.value::<$kind>(bits));
                let array = PrimitiveArray::<$kind>::from_iter_values(values);
                if self.form == Form::Time {
                    Arc::new(array.with_data_type(time()))
                } else {
                    Arc::new(array) as ArrayRef
                }
            }};
        }
        primitive!(
            self.form,
            array,
            match self.form {
                Form::Bool => {
                    let words = self.words(rows, size, count);
                    Arc::new(BooleanArray::from_iter(words.into_iter().map(|bit| Some(bit != 0))))
                }
                Form::Text => Arc::new(self.texts(rows, size, count)),
                _ => {
                    let place = self.attribute.place;
                    let mut values = FixedSizeBinaryBuilder::with_capacity(count, place.bytes() as i32);
                    for record in rows.chunks_exact(size) {
                        let bytes = &record[place.offset as usize..place.end() as usize];
                        values.append_value(bytes).unwrap_or_else(|error| unreachable!("as long as it says: {error}"));
                    }
                    Arc::new(values.finish())
                }
            }
        )
    }

    /// Writes the values of a column into consecutive records of `size` bytes each; there must be one value for each record.
    ///
    /// # Errors
    /// Fails if the column is of another type or length, or has values that the attribute cannot have.
    pub fn write(&self, array: &dyn Array, rows: &mut [u8], size: usize) -> Result<(), ColumnError> {
        let is_plain_text = self.check(array)?;
        if array.len() != rows.len() / size {
            return Err(self.wrong("does not have one value for each record".to_owned()));
        }
        let records = rows.chunks_exact_mut(size);
        macro_rules! write {
            ($kind:ty, $bits:ty) => {{
                for (value, record) in array.as_primitive::<$kind>().values().iter().zip(records) {
                    let bits = u128::from(<$bits>::from_ne_bytes(value.to_ne_bytes()));
                    self.bits.write(record, bits);
                }
            }};
        }
        primitive!(
            self.form,
            write,
            match self.form {
                Form::Bool => {
                    for (value, record) in array.as_boolean().values().iter().zip(records) {
                        self.bits.write(record, value.into());
                    }
                }
                Form::Text if is_plain_text => {
                    for (text, record) in array.as_string::<i32>().iter().zip(records) {
                        let key = self.key_of(text.unwrap_or_default())?;
                        self.bits.write(record, self.reader.bits_of_key(key));
                    }
                }
                Form::Text => {
                    let texts = array.as_dictionary::<Int32Type>();
                    let values = texts.values().as_string::<i32>();
                    // There may be many more texts than records, so only texts that records refer to are parsed.
                    let mut known = HashMap::with_hasher(foldhash::fast::FixedState::default());
                    for (at, record) in texts.keys().values().iter().zip(records) {
                        let bits = match known.get(at) {
                            Some(bits) => *bits,
                            None => {
                                let bits = self.reader.bits_of_key(self.key_of(values.value(*at as usize))?);
                                known.insert(*at, bits);
                                bits
                            }
                        };
                        self.bits.write(record, bits);
                    }
                }
                _ => {
                    let place = self.attribute.place;
                    for (value, record) in array.as_fixed_size_binary().iter().zip(records) {
                        record[place.offset as usize..place.end() as usize].copy_from_slice(value.unwrap_or_default());
                    }
                }
            }
        );
        Ok(())
    }

    /// The bits of each record's value.
    fn words(&self, rows: &[u8], size: usize, count: usize) -> Vec<u64> {
        let mut words = vec![0; count];
        self.bits.fill(rows, size, &mut words);
        words
    }

    /// The value with these bits. If a signed number is narrower than its column, its sign is extended.
    fn value<T: ArrowPrimitiveType>(&self, bits: u64) -> T::Native
    where
        T::Native: FromBits,
    {
        if self.attribute.kind == Kind::Signed {
            let shift = 64 - self.attribute.place.bits;
            return T::Native::from_bits(((bits << shift) as i64 >> shift) as u64);
        }
        T::Native::from_bits(bits)
    }

    /// The distinct texts, and for each record the index of its text.
    fn texts(&self, rows: &[u8], size: usize, count: usize) -> DictionaryArray<Int32Type> {
        let mut known = HashMap::with_hasher(foldhash::fast::FixedState::default());
        let (mut places, mut text, mut ends) = (Vec::with_capacity(count), Vec::new(), vec![0i32]);
        for record in rows.chunks_exact(size) {
            let bits = self.bits.key(record);
            places.push(*known.entry(bits).or_insert_with(|| {
                self.write_text(self.reader.key_of_bits(bits), &mut text);
                ends.push(text.len() as i32);
                ends.len() as i32 - 2
            }));
        }
        let texts = StringArray::new(OffsetBuffer::new(ends.into()), text.into(), None);
        DictionaryArray::new(Int32Array::from(places), Arc::new(texts))
    }

    /// The text of the value with this key.
    pub(super) fn text(&self, key: u128) -> String {
        let mut text = Vec::new();
        self.write_text(key, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Writes the value with this key as text. IPv4 addresses are common, so they have a fast path.
    fn write_text(&self, key: u128, into: &mut Vec<u8>) {
        let address = match self.attribute.kind {
            Kind::Ipv4 => Some(Ipv4Addr::from_bits(key as u32)),
            Kind::Address => Ipv6Addr::from_bits(key).to_ipv4_mapped(),
            _ => None,
        };
        let Some(address) = address else {
            into.extend_from_slice(self.attribute.literal_of(key).as_bytes());
            return;
        };
        for (place, byte) in address.octets().into_iter().enumerate() {
            if place > 0 {
                into.push(b'.');
            }
            if byte > 99 {
                into.push(b'0' + byte / 100);
            }
            if byte > 9 {
                into.push(b'0' + byte / 10 % 10);
            }
            into.push(b'0' + byte % 10);
        }
    }

    /// Checks that a column is of the right type and has all values. Texts may be a dictionary or, then `true` is returned, one for each record.
    pub(super) fn check(&self, array: &dyn Array) -> Result<bool, ColumnError> {
        if array.logical_null_count() > 0 {
            return Err(self.wrong("does not have one value for each record".to_owned()));
        }
        let expected = self.form.data_type(&self.attribute);
        let is_plain_text = self.form == Form::Text && *array.data_type() == DataType::Utf8;
        if *array.data_type() == expected || is_plain_text {
            return Ok(is_plain_text);
        }
        Err(self.wrong(format!("is {} and should be {expected}", array.data_type())))
    }

    pub(super) fn wrong(&self, why: String) -> ColumnError {
        ColumnError { name: self.attribute.name.clone(), why }
    }
}

impl Form {
    fn of(attribute: &Attribute, is_time: bool) -> Self {
        match (attribute.kind, attribute.place.bits) {
            (Kind::Time, _) if is_time => Self::Time,
            (Kind::Unsigned, 1) => Self::Bool,
            (Kind::Unsigned | Kind::Size | Kind::Time, 0..=8) => Self::U8,
            (Kind::Unsigned | Kind::Size | Kind::Time, 9..=16) => Self::U16,
            (Kind::Unsigned | Kind::Size | Kind::Time, 17..=32) => Self::U32,
            (Kind::Unsigned | Kind::Size | Kind::Time, 33..=64) => Self::U64,
            (Kind::Signed, 0..=8) => Self::I8,
            (Kind::Signed, 9..=16) => Self::I16,
            (Kind::Signed, 17..=32) => Self::I32,
            (Kind::Signed, 33..=64) => Self::I64,
            (Kind::Float, 32) => Self::F32,
            (Kind::Float, _) => Self::F64,
            (Kind::Bytes, _) => Self::Bytes,
            _ => Self::Text,
        }
    }

    pub(super) fn data_type(self, attribute: &Attribute) -> DataType {
        macro_rules! data_type {
            ($kind:ty, $bits:ty) => {
                <$kind as ArrowPrimitiveType>::DATA_TYPE
            };
        }
        match self {
            Self::Time => time(),
            Self::Bool => DataType::Boolean,
            Self::Text => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Self::Bytes => DataType::FixedSizeBinary(attribute.place.bytes() as i32),
            form => primitive!(form, data_type, unreachable!("those are above")),
        }
    }
}

fn time() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
}

/// Numbers that are made of the low bits of a word.
trait FromBits {
    fn from_bits(bits: u64) -> Self;
}

macro_rules! from_bits {
    ($($number:ty),*) => { $(impl FromBits for $number {
        fn from_bits(bits: u64) -> Self {
            bits as Self
        }
    })* };
}

from_bits!(u8, u16, u32, u64, i8, i16, i32, i64);

impl FromBits for f32 {
    fn from_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
}

impl FromBits for f64 {
    fn from_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }
}
