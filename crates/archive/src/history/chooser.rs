//! Finds the matching records of a batch of columns.

use super::ArchiveQuery;
use arrow_array::RecordBatch;
use parquet::errors::{ParquetError, Result};
use queuescope_log::arrow::KeyReader;
use queuescope_log::{AttributeId, BatchFilter, KeyBatch, Schema, Selected};
use std::sync::Arc;

/// Reads the keys of some attributes, and finds the records that match a query.
pub(super) struct Chooser {
    attributes: Arc<[AttributeId]>,
    readers: Vec<KeyReader>,
    filter: BatchFilter,
}

impl Chooser {
    /// For a query, and with the keys of further attributes; `None` if an attribute is not in one column.
    pub fn new(ask: &ArchiveQuery<'_>, further: &[AttributeId], schema: &Schema) -> Option<Self> {
        let attributes: Arc<[_]> = ask.keys(further, schema).into();
        let readers = attributes.iter().map(|id| KeyReader::new(*id, schema)).collect::<Option<_>>()?;
        Some(Self { attributes, readers, filter: BatchFilter::new(ask.expression, ask.from..ask.to, schema) })
    }

    /// The attributes of batches of keys.
    pub fn attributes(&self) -> &Arc<[AttributeId]> {
        &self.attributes
    }

    /// The attributes whose columns are read, sorted.
    pub fn stored(&self) -> Vec<AttributeId> {
        let mut stored: Vec<_> = self.readers.iter().map(KeyReader::stored).collect();
        stored.sort_unstable();
        stored.dedup();
        stored
    }

    /// The keys of a batch with the columns of the `stored` attributes, which are sorted.
    pub fn keys(&mut self, batch: &RecordBatch, stored: &[AttributeId]) -> Result<KeyBatch> {
        let columns = self.readers.iter_mut().map(|reader| {
            let place = stored.partition_point(|id| *id < reader.stored());
            reader.keys(batch.column(place)).map_err(|error| ParquetError::General(error.to_string()))
        });
        Ok(KeyBatch::new(batch.num_rows(), Arc::clone(&self.attributes), columns.collect::<Result<_>>()?))
    }

    /// The records of a batch that match.
    pub fn select(&mut self, keys: &KeyBatch) -> Selected<'_> {
        self.filter.select(keys)
    }
}
