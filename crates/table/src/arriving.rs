//! Reads departures from Arrow record batches that another library hands over.

use crate::columns::ColumnPositions;
use crate::decoded::{Batch, check_types};
use crate::reader::NextRow;
use crate::{Columns, TableError, TimeUnit};
use arrow_array::{RecordBatch, RecordBatchReader};

/// How many rows are decoded at once. Batches of other libraries may have any number of rows.
const ROWS: usize = 1 << 15;

/// The rows of a stream of batches. One batch is held at a time.
pub(crate) struct ArrowRows {
    table: String,
    reader: Box<dyn RecordBatchReader + Send>,
    places: ColumnPositions,
    unit: TimeUnit,
    /// The columns of departures in the batch that is being read, and the number of its rows that are decoded.
    batch: Option<(RecordBatch, usize)>,
    rows: Option<Batch>,
    /// The index of the next row in `rows`.
    at: usize,
    /// Rows before `rows`.
    before: u64,
}

impl ArrowRows {
    /// Checks that the columns exist and have supported types.
    pub fn open(
        reader: Box<dyn RecordBatchReader + Send>,
        table: &str,
        columns: &Columns,
        unit: TimeUnit,
    ) -> Result<Self, TableError> {
        let schema = reader.schema();
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let places = ColumnPositions::find(columns, &names, table)?;
        check_types(table, &places, &schema)?;
        let table = table.to_owned();
        Ok(Self { table, reader, places, unit, batch: None, rows: None, at: 0, before: 0 })
    }

    /// The next row; writes its flow's name to `flow`.
    pub fn next(&mut self, flow: &mut String) -> Result<NextRow, TableError> {
        loop {
            if let Some(rows) = &self.rows {
                if self.at < rows.rows {
                    let row = self.at;
                    self.at += 1;
                    return Ok(rows.row(row, self.before, flow));
                }
                self.before += rows.rows as u64;
                self.at = 0;
                self.rows = None;
            }
            if let Some((batch, done)) = &mut self.batch {
                let count = ROWS.min(batch.num_rows() - *done);
                if count > 0 {
                    self.rows = Some(Batch::new(&batch.slice(*done, count), &self.places, self.unit));
                    *done += count;
                    continue;
                }
                self.batch = None;
            }
            match self.reader.next() {
                Some(Ok(batch)) => self.batch = Some((batch, 0)),
                Some(Err(why)) => {
                    let (table, rows) = (self.table.clone(), self.before);
                    return Err(TableError::Batches { table, rows, why: why.to_string() });
                }
                None => return Ok(NextRow::End),
            }
        }
    }

    /// Rows that were read so far.
    pub fn rows_read(&self) -> u64 {
        self.before + self.at as u64
    }
}
