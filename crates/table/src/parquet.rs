//! Reads the needed columns of Parquet files, batch by batch.

use crate::columns::ColumnPositions;
use crate::decoded::{Batch, check_types};
use crate::format;
use crate::reader::NextRow;
use crate::{Columns, TableError, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The first and the last bytes of every Parquet file.
pub(crate) const MAGIC: &[u8] = b"PAR1";

/// How many rows are decoded at once.
const BATCH: usize = 4096;

/// The rows of a Parquet table.
pub(crate) struct ParquetRows {
    table: String,
    reader: ParquetRecordBatchReader,
    /// Positions among the columns that are read.
    places: ColumnPositions,
    unit: TimeUnit,
    batch: Option<Batch>,
    /// The index of the next row in the batch.
    at: usize,
    /// Rows before the batch.
    before: u64,
    /// For each row group, the number of rows up to its end.
    group_ends: Vec<u64>,
    bytes: u64,
}

impl ParquetRows {
    /// Reads the footer, and checks that the columns exist and have supported types.
    pub fn open(
        source: impl ChunkReader + 'static,
        table: &str,
        columns: &Columns,
        unit: TimeUnit,
    ) -> Result<Self, TableError> {
        let broken = |why: String| TableError::Parquet { table: table.to_owned(), place: "footer".to_owned(), why };
        let bytes = source.len();
        check_end(&source, bytes).map_err(broken)?;
        let builder =
            guarded(|| ParquetRecordBatchReaderBuilder::try_new_with_options(source, ArrowReaderOptions::new()))
                .map_err(broken)?;
        format::check(table, builder.metadata())?;
        let schema = builder.schema().clone();
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let places = ColumnPositions::find(columns, &names, table)?;
        check_types(table, &places, &schema)?;
        let group_ends = check_groups(builder.metadata(), bytes).map_err(broken)?;
        let mut wanted: Vec<usize> = places.all().map(|(_, index)| index).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let reader = guarded(|| {
            let mask = ProjectionMask::roots(builder.parquet_schema(), wanted.iter().copied());
            builder.with_projection(mask).with_batch_size(BATCH).build()
        })
        .map_err(broken)?;
        let places = places.among(&wanted);
        let table = table.to_owned();
        Ok(Self { table, reader, places, unit, batch: None, at: 0, before: 0, group_ends, bytes })
    }

    /// The next row; writes its flow's name to `flow`.
    pub fn next(&mut self, flow: &mut String) -> Result<NextRow, TableError> {
        loop {
            if let Some(batch) = &self.batch {
                if self.at < batch.rows {
                    let row = self.at;
                    self.at += 1;
                    return Ok(batch.row(row, self.before, flow));
                }
                self.before += batch.rows as u64;
                self.at = 0;
                self.batch = None;
            }
            let reader = &mut self.reader;
            match guarded(|| reader.next().transpose()) {
                Ok(Some(batch)) => self.batch = Some(Batch::new(&batch, &self.places, self.unit)),
                // Fewer rows than the footer promised: pages are missing, which the decoder does not report.
                Ok(None) if self.before < self.rows() => {
                    return Err(self.broken(format!("the footer promises {} rows, and here they end", self.rows())));
                }
                Ok(None) => return Ok(NextRow::End),
                Err(why) => return Err(self.broken(why)),
            }
        }
    }

    /// Bytes of the file up to here, if all rows had the same length.
    pub fn input_read(&self) -> u64 {
        let done = u128::from(self.before) + self.at as u128;
        let share = u128::from(self.bytes) * done / u128::from(self.rows().max(1));
        u64::try_from(share).unwrap_or(u64::MAX).min(self.bytes)
    }

    fn rows(&self) -> u64 {
        self.group_ends.last().copied().unwrap_or(0)
    }

    fn broken(&self, why: String) -> TableError {
        let group = self.group_ends.iter().take_while(|&&end| end <= self.before).count();
        let place = format!("row group {group} of {}, after row {}", self.group_ends.len(), self.before);
        TableError::Parquet { table: self.table.clone(), place, why }
    }
}

/// Runs a part of the decoder. On some malformed files the decoder panics (an index or an assertion in a page decoder)
/// where it should return an error. It touches no state of this crate meanwhile and is not used again after a failure,
/// so a panic is treated as another sign of a damaged file.
fn guarded<T, E: ToString>(decode: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(payload) => Err(format!("the decoder gave up: {}", panic_text(payload.as_ref()))),
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("it does not say why")
}

/// A file that is still being written, or was cut short, does not have the end of a Parquet file.
fn check_end(source: &impl ChunkReader, bytes: u64) -> Result<(), String> {
    let cut = "it does not end with PAR1: it is cut short, or still being written";
    let start = bytes.checked_sub(4).ok_or(cut)?;
    let end = source.get_bytes(start, 4).map_err(|error| error.to_string())?;
    match end.as_ref() {
        MAGIC => Ok(()),
        b"PARE" => Err("it is encrypted; write it without encryption".to_owned()),
        _ => Err(cut.to_owned()),
    }
}

/// The end of each row group, in rows. Returns an error if the footer points outside the file.
fn check_groups(metadata: &ParquetMetaData, bytes: u64) -> Result<Vec<u64>, String> {
    let mut rows = 0u64;
    let mut ends = Vec::with_capacity(metadata.num_row_groups());
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let count = u64::try_from(group.num_rows()).ok().and_then(|count| rows.checked_add(count));
        rows = count.ok_or_else(|| format!("row group {number} has an impossible number of rows"))?;
        ends.push(rows);
        for column in group.columns() {
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let inside = u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok());
            let end = inside.and_then(|(start, length)| start.checked_add(length));
            if end.is_none_or(|end| end > bytes) {
                let name = column.column_path().string();
                return Err(format!("column '{name}' of row group {number} lies outside of the file"));
            }
        }
    }
    Ok(ends)
}
