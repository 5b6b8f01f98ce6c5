//! Reads volumes.

use super::sums::Checked;
use super::{Columns, PAGE, index};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::PageIndexPolicy;
use queuescope_log::{AttributeId, Schema};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An open volume.
#[derive(Debug)]
pub(crate) struct Volume {
    file: Checked,
    metadata: ArrowReaderMetadata,
}

/// Records that were read.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// Records, one after another.
    pub records: Vec<u8>,
    /// Their positions.
    pub positions: Vec<u64>,
}

impl Volume {
    /// Reads the metadata of the file.
    pub fn open(file: Checked, columns: &Columns) -> Result<Self> {
        guarded(|| {
            let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
            let metadata = ArrowReaderMetadata::load(&file, options)?;
            let names = |schema: &arrow_schema::Schema| -> Vec<_> {
                schema.fields().iter().map(|field| field.name().clone()).collect()
            };
            if names(metadata.schema()) != names(&columns.arrow) {
                return Err(ParquetError::General("its columns are not those of the log's schema".to_owned()));
            }
            Ok(Self { file, metadata })
        })
    }

    /// Adds the records of a row group, with the needed attributes; of all pages or of some, which
    /// are numbered as in an index.
    pub fn read(
        &self,
        group: usize,
        pages: Option<&[u32]>,
        schema: &Schema,
        columns: &Columns,
        needed: &[AttributeId],
        into: &mut Rows,
    ) -> Result<()> {
        guarded(|| {
            let wanted: Vec<_> =
                columns.attributes.iter().enumerate().filter(|(_, (id, _))| needed.contains(id)).collect();
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone());
            let places = wanted.iter().map(|(place, _)| *place).chain([columns.attributes.len()]);
            let mask = ProjectionMask::roots(builder.parquet_schema(), places);
            let mut builder = builder.with_projection(mask).with_row_groups(vec![group]).with_batch_size(PAGE);
            if let Some(pages) = pages {
                let rows = self.metadata.metadata().row_group(group).num_rows() as usize;
                builder = builder.with_row_selection(selection(group, pages, rows));
            }
            let size = schema.record_size();
            for batch in builder.build()? {
                let batch = batch?;
                let wrong = || ParquetError::General("its columns are not of the log's schema".to_owned());
                let (positions, attributes) = batch.columns().split_last().ok_or_else(wrong)?;
                let positions = positions.as_primitive_opt::<UInt64Type>().ok_or_else(wrong)?;
                into.positions.extend_from_slice(positions.values());
                let start = into.records.len();
                into.records.resize(start + batch.num_rows() * size, 0);
                for ((_, (_, column)), array) in wanted.iter().zip(attributes) {
                    let written = column.write(array, &mut into.records[start..], size);
                    written.map_err(|error| ParquetError::General(error.to_string()))?;
                }
            }
            Ok(())
        })
    }
}

impl Rows {
    /// Sorts the records by position.
    pub fn sort(&mut self, size: usize) {
        if self.positions.is_sorted() {
            return;
        }
        let mut order: Vec<_> = self.positions.iter().enumerate().map(|(place, at)| (*at, place as u32)).collect();
        order.sort_unstable();
        let mut records = Vec::with_capacity(self.records.len());
        for (_, place) in &order {
            let at = *place as usize * size;
            records.extend_from_slice(&self.records[at..at + size]);
        }
        self.records = records;
        self.positions = order.into_iter().map(|(at, _)| at).collect();
    }
}

/// The rows of some pages of a row group.
fn selection(group: usize, pages: &[u32], rows: usize) -> RowSelection {
    let mut selectors = Vec::new();
    let mut at = 0;
    for (_, page) in pages.iter().map(|page| index::place(*page)).filter(|(of, _)| *of == group) {
        let (start, end) = ((page * PAGE).min(rows), ((page + 1) * PAGE).min(rows));
        selectors.extend([RowSelector::skip(start - at), RowSelector::select(end - start)]);
        at = end;
    }
    selectors.push(RowSelector::skip(rows - at));
    RowSelection::from(selectors)
}

/// The decoder may panic on crafted bytes.
fn guarded<T>(decode: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(ParquetError::General("the decoder gave up on it".to_owned())))
}
