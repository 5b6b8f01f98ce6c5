//! The rows of an answer as Arrow columns, and their form between a coordinator and its users.
//!
//! | column | type |
//! | --- | --- |
//! | a key, a minimum, a maximum | that of the attribute in [`queuescope_log::arrow`], as in Parquet files of packets |
//! | `count`, `distinct` | `UInt64` |
//! | a sum of whole numbers of at most 64 bits | `Decimal128(38, 0)` |
//! | a sum of longer ones | `Utf8`, in decimal |
//! | a sum of fractions, a mean, a deviation | `Float64` |
//!
//! Minima, maxima, means and deviations of no packets are null.

use super::asked::Asked;
use super::ipc::{IpcError, IpcLimits, frames};
use super::merge::Merged;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, Decimal128Array, Float64Array, RecordBatch, StringArray, UInt64Array, new_null_array,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema as ArrowSchema};
use queuescope_log::arrow::{Column, ColumnError};
use queuescope_log::{Attribute, AttributeId, Function, Group, Kind, LAST_TIME, Number, Schema};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Digits of a sum.
const DIGITS: u8 = 38;
/// The greatest number of that many digits.
const GREATEST: i128 = 10i128.pow(DIGITS as u32) - 1;
/// The names of totals in the metadata of the schema.
const PACKETS: &str = "queuescope.packets";
const RECORDS: &str = "queuescope.records";
const LEFT_OUT: &str = "queuescope.left_out";

/// Why rows have no columns, or columns no rows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RowsError {
    /// A time is later than columns can have.
    #[error("an answer has a time from the year 2262 on, which no column of times can have: leave it out (--to)")]
    Time,
    /// The stream is refused.
    #[error(transparent)]
    Stream(#[from] IpcError),
    /// A column has values of another attribute.
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// An error of Arrow.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

impl Merged {
    /// The rows as columns with the names of the question.
    ///
    /// # Errors
    /// Fails if a time is too late for a column. Errors of Arrow are not expected.
    pub fn batch(&self, asked: &Asked) -> Result<RecordBatch, RowsError> {
        let names = asked.selection().names(asked.schema());
        let columns = columns(asked);
        let arrays = columns.iter().enumerate().map(|(place, column)| column.array(&self.groups, place, self.packets));
        let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
        let fields: Vec<_> = names.iter().zip(&columns).map(|(name, column)| column.field().with_name(name)).collect();
        let totals = [(PACKETS, self.packets), (RECORDS, self.records), (LEFT_OUT, self.left_out)];
        let totals = totals.map(|(name, total)| (name.to_owned(), total.to_string()));
        let schema = ArrowSchema::new_with_metadata(fields, totals.into());
        Ok(RecordBatch::try_new(Arc::new(schema), arrays)?)
    }

    /// The rows as an Arrow IPC stream.
    ///
    /// # Errors
    /// As [`batch`](Self::batch).
    pub fn encode(&self, asked: &Asked) -> Result<Vec<u8>, RowsError> {
        let batch = self.batch(asked)?;
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
        writer.write(&batch)?;
        Ok(writer.into_inner()?)
    }

    /// Reads rows from an Arrow IPC stream.
    ///
    /// # Errors
    /// Fails if the stream is too long, malformed, or the answer to another question.
    pub fn decode(bytes: &[u8], asked: &Asked, limits: IpcLimits) -> Result<Self, RowsError> {
        let frames = frames(bytes, limits)?;
        let Some((first, others)) = frames.split_first() else {
            return Err(IpcError::Malformed("it is empty").into());
        };
        let names = asked.selection().names(asked.schema());
        first.check_names(names.iter().map(String::as_str))?;
        let (packets, records, left_out) = (first.number(PACKETS)?, first.number(RECORDS)?, first.number(LEFT_OUT)?);
        // The types are those of the question, whatever the schema from outside says.
        let columns = columns(asked);
        let fields: Vec<_> = names.iter().zip(&columns).map(|(name, column)| column.field().with_name(name)).collect();
        let own = StreamWriter::try_new(Vec::new(), &ArrowSchema::new(fields))?;
        let mut stream = own.get_ref().clone();
        others.iter().for_each(|frame| stream.extend_from_slice(frame.bytes));
        // Arrow panics on some malformed buffers.
        let read = catch_unwind(AssertUnwindSafe(|| read_groups(&stream, &columns, asked.keys().len())));
        let groups = read.map_err(|_| IpcError::Malformed("a buffer that Arrow cannot read"))??;
        Ok(Self { groups, packets, records, left_out })
    }
}

/// The groups of a stream, of which the first columns are keys.
fn read_groups(stream: &[u8], columns: &[ColumnOf<'_>], keys: usize) -> Result<Vec<Group>, RowsError> {
    let mut groups: Vec<Group> = Vec::new();
    for batch in StreamReader::try_new(stream, None)? {
        let batch = batch?;
        let start = groups.len();
        groups.extend((0..batch.num_rows()).map(|_| Group::default()));
        for (place, (column, array)) in columns.iter().zip(batch.columns()).enumerate() {
            column.read(array, place < keys, &mut groups[start..])?;
        }
    }
    Ok(groups)
}

/// A column of rows.
enum ColumnOf<'a> {
    /// Keys of an attribute. `None`: of a group; else a minimum or a maximum, with its value without packets.
    Attribute(AttributeId, &'a Schema, Option<u128>),
    Count,
    /// Whether its values may be below zero.
    Decimal(bool),
    /// The same.
    Text(bool),
    /// Whether it is null without packets.
    Float(bool),
}

/// The columns of an answer.
fn columns(asked: &Asked) -> Vec<ColumnOf<'_>> {
    let schema = asked.schema();
    let of_key = asked.keys().iter().map(|key| ColumnOf::Attribute(key.attribute(), schema, None));
    let of_function = asked.functions().iter().map(|function| match function {
        Function::Min(id) => ColumnOf::Attribute(*id, schema, Some(schema.attribute(*id).highest_key())),
        Function::Max(id) => ColumnOf::Attribute(*id, schema, Some(0)),
        Function::Sum(id) => match (schema.attribute(*id).kind, schema.attribute(*id).place.bits) {
            (Kind::Float, _) => ColumnOf::Float(false),
            (kind, 0..=64) => ColumnOf::Decimal(kind == Kind::Signed),
            (kind, _) => ColumnOf::Text(kind == Kind::Signed),
        },
        Function::Mean(_) | Function::Deviation(_) => ColumnOf::Float(true),
        // Functions of a caller have no text, so they are in no question.
        Function::Count | Function::Distinct(_) | Function::User(_) => ColumnOf::Count,
    });
    of_key.chain(of_function).collect()
}

impl ColumnOf<'_> {
    fn field(&self) -> Field {
        match self {
            Self::Attribute(id, schema, none) => Column::new(*id, schema).field().with_nullable(none.is_some()),
            Self::Count => Field::new("", DataType::UInt64, false),
            Self::Decimal(_) => Field::new("", DataType::Decimal128(DIGITS, 0), false),
            Self::Text(_) => Field::new("", DataType::Utf8, false),
            Self::Float(is_nullable) => Field::new("", DataType::Float64, *is_nullable),
        }
    }

    /// The column in this place of all rows, for `packets` packets.
    fn array(&self, groups: &[Group], place: usize, packets: u64) -> Result<ArrayRef, RowsError> {
        if packets == 0 && self.field().is_nullable() {
            return Ok(new_null_array(self.field().data_type(), groups.len()));
        }
        let values = groups.iter().map(|(keys, values)| values.get(place.wrapping_sub(keys.len())).copied());
        let values = values.map(|value| value.unwrap_or(Number::Unsigned(0)));
        let array: ArrayRef = match self {
            Self::Attribute(id, schema, none) => {
                let (size, reader, attribute) = (schema.record_size(), schema.reader(*id), schema.attribute(*id));
                let mut records = vec![0; groups.len() * size];
                for ((record, (keys, _)), value) in records.chunks_exact_mut(size).zip(groups).zip(values) {
                    let key = if none.is_some() { key_of(attribute, value) } else { keys[place] };
                    if schema.time() == Some(*id) && key > u128::from(LAST_TIME) {
                        return Err(RowsError::Time);
                    }
                    reader.write(record, key);
                }
                Column::new(*id, schema).array(&records, size)
            }
            Self::Count => {
                let whole = |value| match value {
                    Number::Unsigned(value) => u64::try_from(value).unwrap_or(u64::MAX),
                    _ => 0,
                };
                Arc::new(UInt64Array::from_iter_values(values.map(whole)))
            }
            Self::Decimal(_) => {
                let whole = |value| match value {
                    Number::Unsigned(value) => i128::try_from(value).unwrap_or(GREATEST).min(GREATEST),
                    Number::Signed(value) => value.clamp(-GREATEST, GREATEST),
                    Number::Float(_) => 0,
                };
                let array = Decimal128Array::from_iter_values(values.map(whole));
                Arc::new(array.with_precision_and_scale(DIGITS, 0)?)
            }
            Self::Text(_) => {
                let text = |value| match value {
                    Number::Unsigned(value) => value.to_string(),
                    Number::Signed(value) => value.to_string(),
                    Number::Float(value) => value.to_string(),
                };
                Arc::new(StringArray::from_iter_values(values.map(text)))
            }
            Self::Float(_) => Arc::new(Float64Array::from_iter_values(values.map(Number::to_f64))),
        };
        Ok(array)
    }

    /// Adds the values of a column to its rows.
    fn read(&self, array: &ArrayRef, is_key: bool, rows: &mut [Group]) -> Result<(), RowsError> {
        let is_null = array.logical_null_count() == array.len();
        if !is_null && array.logical_null_count() > 0 {
            return Err(IpcError::Malformed("values are missing").into());
        }
        match self {
            Self::Attribute(id, schema, none) => {
                let (size, attribute) = (schema.record_size(), schema.attribute(*id));
                let keys: Vec<_> = match none {
                    Some(none) if is_null => vec![*none; array.len()],
                    _ => {
                        let mut records = vec![0; array.len() * size];
                        Column::new(*id, schema).write(array.as_ref(), &mut records, size)?;
                        records.chunks_exact(size).map(|record| schema.key(*id, record)).collect()
                    }
                };
                if is_key {
                    rows.iter_mut().zip(&keys).for_each(|((row, _), key)| row.push(*key));
                    return Ok(());
                }
                add(rows, &|row| Some(Number::of_key(attribute, keys[row])))
            }
            Self::Float(true) if is_null => add(rows, &|_| Some(Number::Float(0.0))),
            _ if is_null && !array.is_empty() => Err(IpcError::Malformed("values are missing").into()),
            Self::Count => {
                add(rows, &|row| Some(Number::Unsigned(array.as_primitive::<UInt64Type>().value(row).into())))
            }
            Self::Decimal(is_signed) => add(rows, &|row| {
                let value = array.as_primitive::<Decimal128Type>().value(row);
                if *is_signed { Some(Number::Signed(value)) } else { u128::try_from(value).map(Number::Unsigned).ok() }
            }),
            Self::Text(is_signed) => add(rows, &|row| {
                let text = array.as_string::<i32>().value(row);
                if *is_signed { text.parse().map(Number::Signed).ok() } else { text.parse().map(Number::Unsigned).ok() }
            }),
            Self::Float(_) => add(rows, &|row| Some(Number::Float(array.as_primitive::<Float64Type>().value(row)))),
        }
    }
}

/// Adds a value to each row.
fn add(rows: &mut [Group], value: &dyn Fn(usize) -> Option<Number>) -> Result<(), RowsError> {
    for (row, (_, values)) in rows.iter_mut().enumerate() {
        values.push(value(row).ok_or(IpcError::Malformed("a sum is not a number"))?);
    }
    Ok(())
}

/// The key of a value that an attribute has.
fn key_of(attribute: &Attribute, value: Number) -> u128 {
    let bits = attribute.place.bits;
    let sign = 1u128 << (bits - 1);
    match value {
        Number::Unsigned(key) => key,
        Number::Signed(value) => (value as u128).wrapping_add(sign) & attribute.highest_key(),
        Number::Float(value) => {
            let word = if bits == 32 { u128::from((value as f32).to_bits()) } else { u128::from(value.to_bits()) };
            if word & sign == 0 { word | sign } else { !word & attribute.highest_key() }
        }
    }
}
