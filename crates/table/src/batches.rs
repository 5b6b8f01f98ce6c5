//! [`BatchWriter`]: record batches of any columns to a Parquet file.

use crate::TableError;
use crate::writer::properties;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use std::fmt;
use std::io::Write;

/// Writes record batches to a Parquet file, one row group after another. Memory is bounded by one row group.
///
/// A file is complete only after [`finish`](Self::finish), because its footer comes last.
pub struct BatchWriter<W: Write + Send> {
    writer: ArrowWriter<W>,
    rows: u64,
}

impl<W: Write + Send> BatchWriter<W> {
    /// Starts a file with these columns.
    ///
    /// # Errors
    /// Returns the first write error of the output.
    pub fn new(out: W, schema: SchemaRef) -> Result<Self, TableError> {
        let writer = ArrowWriter::try_new(out, schema, Some(properties(&[])))
            .map_err(|error| TableError::Write { rows: 0, why: error.to_string() })?;
        Ok(Self { writer, rows: 0 })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// Returns the first write error of the output; or an error if the batch has other columns.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        let written = self.writer.write(batch);
        written.map_err(|error| TableError::Write { rows: self.rows, why: error.to_string() })?;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Writes the remaining rows and the footer, and returns the output.
    ///
    /// # Errors
    /// Returns the first write error of the output.
    pub fn finish(self) -> Result<W, TableError> {
        let rows = self.rows;
        self.writer.into_inner().map_err(|error| TableError::Write { rows, why: error.to_string() })
    }
}

impl<W: Write + Send> fmt::Debug for BatchWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchWriter").field("rows", &self.rows).finish_non_exhaustive()
    }
}
