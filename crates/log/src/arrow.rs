//! Results as Arrow record batches.
//!
//! | kind of an attribute | type of its column |
//! | --- | --- |
//! | the time of the schema | `Timestamp(Nanosecond)`, UTC |
//! | one bit | `Boolean` |
//! | whole numbers, sizes, other times, up to 64 bits | the narrowest `UInt` or `Int` that holds them |
//! | longer whole numbers | `Utf8`, in decimal |
//! | floating point | `Float32`, `Float64` |
//! | addresses | `Utf8`, as people write them |
//! | bytes | `FixedSizeBinary` |

use crate::schema::{Attribute, AttributeId, Kind, Reader, Schema};
use arrow_array::builder::{
    BooleanBuilder, FixedSizeBinaryBuilder, Float32Builder, Float64Builder, Int8Builder, Int16Builder, Int32Builder,
    Int64Builder, StringBuilder, TimestampNanosecondBuilder, UInt8Builder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef, TimeUnit};
use std::sync::Arc;

/// Records as batches of columns.
#[derive(Debug)]
pub struct Batches<I> {
    records: I,
    columns: Vec<Column>,
    schema: SchemaRef,
    rows: usize,
    over: bool,
}

/// An attribute's column.
#[derive(Debug)]
struct Column {
    attribute: Attribute,
    reader: Reader,
    values: Values,
}

/// Values of a batch so far.
#[derive(Debug)]
enum Values {
    Bool(BooleanBuilder),
    U8(UInt8Builder),
    U16(UInt16Builder),
    U32(UInt32Builder),
    U64(UInt64Builder),
    I8(Int8Builder),
    I16(Int16Builder),
    I32(Int32Builder),
    I64(Int64Builder),
    F32(Float32Builder),
    F64(Float64Builder),
    Time(TimestampNanosecondBuilder),
    Text(StringBuilder),
    Bytes(FixedSizeBinaryBuilder),
}

/// What the columns of attributes are, in a file's schema.
///
/// # Panics
/// If one is another schema's.
pub fn columns(schema: &Schema, attributes: &[AttributeId]) -> SchemaRef {
    let fields = attributes.iter().map(|id| {
        let attribute = schema.attribute(*id);
        Field::new(&attribute.name, Values::of(*id, schema).data_type(attribute), false)
    });
    Arc::new(arrow_schema::Schema::new(fields.collect::<Vec<_>>()))
}

impl<'a, I: Iterator<Item = (u64, &'a [u8])>> Batches<I> {
    /// Some attributes of records, which come with their positions; so many records a batch, at least one.
    ///
    /// # Panics
    /// If an attribute is another schema's.
    pub fn new(records: I, schema: &Schema, attributes: &[AttributeId], rows: usize) -> Self {
        let column = |id: &AttributeId| {
            let attribute = schema.attribute(*id).clone();
            Column { attribute, reader: schema.reader(*id), values: Values::of(*id, schema) }
        };
        let (columns, schema) = (attributes.iter().map(column).collect(), columns(schema, attributes));
        Self { records, columns, schema, rows: rows.max(1), over: false }
    }

    /// What the columns are.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl<'a, I: Iterator<Item = (u64, &'a [u8])>> Iterator for Batches<I> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut count = 0;
        while count < self.rows && !self.over {
            let Some((_, record)) = self.records.next() else {
                self.over = true;
                break;
            };
            for column in &mut self.columns {
                if let Err(error) = column.push(record) {
                    self.over = true;
                    return Some(Err(error));
                }
            }
            count += 1;
        }
        // A batch without columns has rows all the same.
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(count));
        let arrays = self.columns.iter_mut().map(|column| column.values.finish()).collect();
        (count > 0).then(|| RecordBatch::try_new_with_options(self.schema(), arrays, &options))
    }
}

impl Column {
    fn push(&mut self, record: &[u8]) -> Result<(), ArrowError> {
        let (place, key) = (self.attribute.place, || self.reader.key(record));
        let bits = || self.reader.bits_of_key(self.reader.key(record));
        match &mut self.values {
            Values::Bool(values) => values.append_value(key() != 0),
            Values::U8(values) => values.append_value(key() as u8),
            Values::U16(values) => values.append_value(key() as u16),
            Values::U32(values) => values.append_value(key() as u32),
            Values::U64(values) => values.append_value(key() as u64),
            // Narrower ones have whole bytes too, so that their sign is where the cast finds it.
            Values::I8(values) => values.append_value(bits() as u8 as i8),
            Values::I16(values) => values.append_value(bits() as u16 as i16),
            Values::I32(values) => values.append_value(sign(bits(), place.bits) as i32),
            Values::I64(values) => values.append_value(sign(bits(), place.bits)),
            Values::F32(values) => values.append_value(f32::from_bits(bits() as u32)),
            Values::F64(values) => values.append_value(f64::from_bits(bits() as u64)),
            // Until 2262; later ones stay there.
            Values::Time(values) => values.append_value(i64::try_from(key()).unwrap_or(i64::MAX)),
            Values::Text(values) => values.append_value(self.attribute.literal_of(key())),
            Values::Bytes(values) => {
                return values.append_value(&record[place.offset as usize..place.end() as usize]);
            }
        }
        Ok(())
    }
}

/// A number in two's complement of so many bits, 64 at most.
fn sign(bits: u128, count: u32) -> i64 {
    let shift = 64 - count;
    ((bits as u64) << shift) as i64 >> shift
}

impl Values {
    fn of(id: AttributeId, schema: &Schema) -> Self {
        let attribute = schema.attribute(id);
        let (bits, bytes) = (attribute.place.bits, attribute.place.bytes());
        match (attribute.kind, bits) {
            (Kind::Time, _) if schema.time() == Some(id) => {
                Self::Time(TimestampNanosecondBuilder::new().with_timezone("UTC"))
            }
            (Kind::Unsigned, 1) => Self::Bool(BooleanBuilder::new()),
            (Kind::Unsigned | Kind::Size | Kind::Time, 0..=8) => Self::U8(UInt8Builder::new()),
            (Kind::Unsigned | Kind::Size | Kind::Time, 9..=16) => Self::U16(UInt16Builder::new()),
            (Kind::Unsigned | Kind::Size | Kind::Time, 17..=32) => Self::U32(UInt32Builder::new()),
            (Kind::Unsigned | Kind::Size | Kind::Time, 33..=64) => Self::U64(UInt64Builder::new()),
            (Kind::Signed, 0..=8) => Self::I8(Int8Builder::new()),
            (Kind::Signed, 9..=16) => Self::I16(Int16Builder::new()),
            (Kind::Signed, 17..=32) => Self::I32(Int32Builder::new()),
            (Kind::Signed, 33..=64) => Self::I64(Int64Builder::new()),
            (Kind::Float, 32) => Self::F32(Float32Builder::new()),
            (Kind::Float, _) => Self::F64(Float64Builder::new()),
            (Kind::Bytes, _) => Self::Bytes(FixedSizeBinaryBuilder::new(bytes as i32)),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    fn data_type(&self, attribute: &Attribute) -> DataType {
        match self {
            Self::Bool(_) => DataType::Boolean,
            Self::U8(_) => DataType::UInt8,
            Self::U16(_) => DataType::UInt16,
            Self::U32(_) => DataType::UInt32,
            Self::U64(_) => DataType::UInt64,
            Self::I8(_) => DataType::Int8,
            Self::I16(_) => DataType::Int16,
            Self::I32(_) => DataType::Int32,
            Self::I64(_) => DataType::Int64,
            Self::F32(_) => DataType::Float32,
            Self::F64(_) => DataType::Float64,
            Self::Time(_) => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            Self::Text(_) => DataType::Utf8,
            Self::Bytes(_) => DataType::FixedSizeBinary(attribute.place.bytes() as i32),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bool(values) => Arc::new(values.finish()),
            Self::U8(values) => Arc::new(values.finish()),
            Self::U16(values) => Arc::new(values.finish()),
            Self::U32(values) => Arc::new(values.finish()),
            Self::U64(values) => Arc::new(values.finish()),
            Self::I8(values) => Arc::new(values.finish()),
            Self::I16(values) => Arc::new(values.finish()),
            Self::I32(values) => Arc::new(values.finish()),
            Self::I64(values) => Arc::new(values.finish()),
            Self::F32(values) => Arc::new(values.finish()),
            Self::F64(values) => Arc::new(values.finish()),
            Self::Time(values) => Arc::new(values.finish()),
            Self::Text(values) => Arc::new(values.finish()),
            Self::Bytes(values) => Arc::new(values.finish()),
        }
    }
}
