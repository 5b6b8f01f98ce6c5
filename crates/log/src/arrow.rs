//! Records as Arrow record batches, and back.
//!
//! | kind of an attribute | type of its column |
//! | --- | --- |
//! | the time of the schema | `Timestamp(Nanosecond)`, UTC; from the year 2262 on it is negative |
//! | one bit | `Boolean` |
//! | whole numbers, sizes, other times, up to 64 bits | the narrowest `UInt` or `Int` that holds them |
//! | longer whole numbers | `Utf8`, in decimal, as a dictionary |
//! | floating point | `Float32`, `Float64` |
//! | addresses | `Utf8`, as people write them, as a dictionary |
//! | bytes | `FixedSizeBinary` |

mod column;

pub use column::{Column, ColumnError};

use crate::schema::{AttributeId, Schema};
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use std::sync::Arc;

/// Records as batches of columns.
#[derive(Debug)]
pub struct Batches<I> {
    records: I,
    columns: Vec<Column>,
    schema: SchemaRef,
    rows: usize,
    size: usize,
    /// The records of a batch, one behind the other.
    bytes: Vec<u8>,
}

/// What the columns of attributes are, in a file's schema.
///
/// # Panics
/// If one is another schema's.
pub fn columns(schema: &Schema, attributes: &[AttributeId]) -> SchemaRef {
    let fields = attributes.iter().map(|id| Column::new(*id, schema).field());
    Arc::new(arrow_schema::Schema::new(fields.collect::<Vec<_>>()))
}

impl<'a, I: Iterator<Item = (u64, &'a [u8])>> Batches<I> {
    /// Some attributes of records, which come with their positions; so many records a batch, at least one.
    ///
    /// # Panics
    /// If an attribute is another schema's.
    pub fn new(records: I, schema: &Schema, attributes: &[AttributeId], rows: usize) -> Self {
        let (size, rows) = (schema.record_size(), rows.max(1));
        let (columns, schema) =
            (attributes.iter().map(|id| Column::new(*id, schema)).collect(), columns(schema, attributes));
        Self { records, columns, schema, rows, size, bytes: Vec::new() }
    }

    /// What the columns are.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl<'a, I: Iterator<Item = (u64, &'a [u8])>> Iterator for Batches<I> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.bytes.clear();
        for (_, record) in self.records.by_ref().take(self.rows) {
            self.bytes.extend_from_slice(record);
        }
        let count = self.bytes.len() / self.size;
        // A batch without columns has rows all the same.
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(count));
        let arrays = || self.columns.iter().map(|column| column.array(&self.bytes, self.size)).collect();
        (count > 0).then(|| RecordBatch::try_new_with_options(self.schema(), arrays(), &options))
    }
}
