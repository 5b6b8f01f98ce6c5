//! Records as Arrow record batches, and back.
//!
//! | kind of an attribute | type of its column |
//! | --- | --- |
//! | the time of the schema | `Timestamp(Nanosecond)`, UTC; times from the year 2262 on are errors ([`LAST_TIME`]) |
//! | one bit | `Boolean` |
//! | whole numbers, sizes, other times, up to 64 bits | the narrowest `UInt` or `Int` that holds them |
//! | longer whole numbers | `Utf8`, in decimal, as a dictionary |
//! | floating point | `Float32`, `Float64` |
//! | addresses | `Utf8`, as people write them, as a dictionary |
//! | bytes | `FixedSizeBinary` |

mod column;
mod keys;

pub use column::{Column, ColumnError};
pub use keys::KeyReader;

use crate::schema::{AttributeId, LAST_TIME, Reader, Schema};
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, SchemaRef};
use std::sync::Arc;

/// Turns records into batches of columns.
///
/// ```
/// use queuescope_log::arrow::Batches;
/// use queuescope_log::{Schema, departure};
///
/// let schema = Schema::departure();
/// let columns = ["delay", "length"].map(|name| schema.find(name)).into_iter().flatten().collect::<Vec<_>>();
/// let mut batches = Batches::new(schema, &columns, 2);
/// assert!(batches.push(&[0; departure::SIZE])?.is_none());
/// let batch = batches.push(&[0; departure::SIZE])?.ok_or("the batch is not full")?;
/// println!("{:?}", batch.schema());
/// assert_eq!((batch.num_rows(), batch.num_columns()), (2, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Batches {
    columns: Vec<Column>,
    schema: SchemaRef,
    /// The time of the schema, if one of the columns is that attribute.
    time: Option<Reader>,
    rows: usize,
    size: usize,
    /// The records of a batch, one after another.
    bytes: Vec<u8>,
}

/// The Arrow schema for columns of these attributes.
///
/// # Panics
/// Panics if an attribute belongs to another schema.
pub fn columns(schema: &Schema, attributes: &[AttributeId]) -> SchemaRef {
    let fields = attributes.iter().map(|id| Column::new(*id, schema).field());
    Arc::new(arrow_schema::Schema::new(fields.collect::<Vec<_>>()))
}

/// The text of the value with this key, in a column of texts.
///
/// # Panics
/// Panics if the attribute belongs to another schema.
pub fn text(id: AttributeId, schema: &Schema, key: u128) -> String {
    Column::new(id, schema).text(key)
}

impl Batches {
    /// Batches of these attributes, with `rows` records each, at least one.
    ///
    /// # Panics
    /// Panics if an attribute belongs to another schema.
    pub fn new(schema: &Schema, attributes: &[AttributeId], rows: usize) -> Self {
        let (size, rows) = (schema.record_size(), rows.max(1));
        let time = schema.time().filter(|time| attributes.contains(time)).map(|time| schema.reader(time));
        let (columns, schema) =
            (attributes.iter().map(|id| Column::new(*id, schema)).collect(), columns(schema, attributes));
        Self { columns, schema, time, rows, size, bytes: Vec::with_capacity(rows * size) }
    }

    /// The Arrow schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Adds a record; returns a batch once it is full.
    ///
    /// # Errors
    /// Fails if the record's time is after [`LAST_TIME`] and a column would hold it. Also returns errors of Arrow, which are not expected.
    pub fn push(&mut self, record: &[u8]) -> Result<Option<RecordBatch>, ArrowError> {
        if self.time.as_ref().is_some_and(|time| time.key(record) > u128::from(LAST_TIME)) {
            let why =
                "a record has a time from the year 2262 on, which no column of times can have: leave it out (--to)";
            return Err(ArrowError::InvalidArgumentError(why.to_owned()));
        }
        self.bytes.extend_from_slice(record);
        if self.bytes.len() >= self.rows * self.size { self.rest() } else { Ok(None) }
    }

    /// A batch of the records that are in none yet, if there are any.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn rest(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let count = self.bytes.len() / self.size;
        // A batch without columns still has rows.
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let arrays = || self.columns.iter().map(|column| column.array(&self.bytes, self.size)).collect();
        let batch = (count > 0).then(|| RecordBatch::try_new_with_options(self.schema(), arrays(), &options));
        self.bytes.clear();
        batch.transpose()
    }
}
