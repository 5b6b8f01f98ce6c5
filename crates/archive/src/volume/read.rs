//! Reads volumes.

use super::sums::{Checked, Fetched};
use super::{Columns, PAGE, extremes, index};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field};
use arrow_select::take::take_record_batch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};
use parquet::basic::Encoding;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy};
use queuescope_log::{AttributeId, Dnf, Schema, Selected};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// An open volume.
#[derive(Debug)]
pub(crate) struct Volume {
    file: Checked,
    metadata: ArrowReaderMetadata,
}

/// Records that were read, of which some may be left out.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// How many were read.
    pub read: u64,
    /// Records, one after another.
    pub records: Vec<u8>,
    /// Their positions.
    pub positions: Vec<u64>,
}

impl Volume {
    /// Reads the metadata of the file, with the extremes of its pages or without.
    pub fn open(file: Checked, columns: &Columns, with_extremes: bool) -> Result<Self> {
        guarded(|| {
            let extremes = if with_extremes { PageIndexPolicy::Optional } else { PageIndexPolicy::Skip };
            let options = ArrowReaderOptions::new()
                .with_offset_index_policy(PageIndexPolicy::Optional)
                .with_column_index_policy(extremes);
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

    /// The number of its row groups.
    pub fn groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// The pages of a row group that may have matching records, by the extremes of each; `None` if these do not say, or exclude none.
    pub fn by_extremes(
        &self,
        group: usize,
        expression: &Dnf,
        schema: &Schema,
        columns: &Columns,
    ) -> Option<Vec<usize>> {
        guarded(|| Ok(extremes::pages(self.metadata.metadata(), group, expression, schema, columns))).ok().flatten()
    }

    /// The columns of some attributes in the order of the schema, and perhaps that of positions behind them; of all pages of a row group or of
    /// some, which are numbered as in an index.
    pub fn batches(
        &self,
        group: usize,
        pages: Option<&[u32]>,
        columns: &Columns,
        stored: &[AttributeId],
        with_positions: bool,
    ) -> Result<Batches> {
        guarded(|| {
            let wanted = columns.attributes.iter().enumerate().filter(|(_, (id, _))| stored.contains(id));
            let positions = with_positions.then_some(columns.attributes.len());
            let wanted: Vec<_> = wanted.map(|(place, _)| place).chain(positions).collect();
            let of_group = self.metadata.metadata().row_group(group);
            let chunks = wanted.iter().map(|place| of_group.column(*place));
            // Arrow would build a dictionary for texts that have none, which takes longer than to read each.
            let is_plain = |place: &usize| {
                let column = of_group.column(*place);
                column.dictionary_page_offset().is_none()
                    || column.encodings().any(|encoding| encoding == Encoding::DELTA_BYTE_ARRAY)
            };
            let plain: Vec<_> = wanted.iter().copied().filter(is_plain).collect();
            let metadata = self.with_plain_texts(&plain)?;
            let file = match pages {
                None => Fetched::new(self.file.clone(), chunks.map(ColumnChunkMetaData::byte_range))?,
                Some(_) => Fetched::new(self.file.clone(), std::iter::empty())?,
            };
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
            let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
            let mut builder = builder.with_projection(mask).with_row_groups(vec![group]).with_batch_size(PAGE);
            if let Some(pages) = pages {
                builder = builder.with_row_selection(selection(group, pages, of_group.num_rows() as usize));
            }
            Ok(Batches(builder.build()?))
        })
    }

    /// The metadata of the file, with some columns of texts as one text for each record.
    fn with_plain_texts(&self, columns: &[usize]) -> Result<ArrowReaderMetadata> {
        let schema = self.metadata.schema();
        let is_text = |place: &usize| matches!(schema.field(*place).data_type(), DataType::Dictionary(..));
        if !columns.iter().any(is_text) {
            return Ok(self.metadata.clone());
        }
        let fields = schema.fields().iter().enumerate().map(|(place, field)| {
            let is_plain = columns.contains(&place) && is_text(&place);
            let field = Field::clone(field);
            if is_plain { field.with_data_type(DataType::Utf8) } else { field }
        });
        let schema = arrow_schema::Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
        ArrowReaderMetadata::try_new(Arc::clone(self.metadata.metadata()), options)
    }
}

/// Some columns of a row group, batch by batch.
pub(crate) struct Batches(ParquetRecordBatchReader);

impl Batches {
    /// The next batch.
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        guarded(|| Ok(self.0.next().transpose()?))
    }
}

impl Rows {
    /// Adds the selected records of a batch, which has the columns of the `stored` attributes and that of positions.
    pub fn add(
        &mut self,
        batch: &RecordBatch,
        selected: Selected<'_>,
        schema: &Schema,
        columns: &Columns,
        stored: &[AttributeId],
    ) -> Result<()> {
        self.read += batch.num_rows() as u64;
        if selected.is_empty() {
            return Ok(());
        }
        let some = match selected {
            Selected::Some(places) if places.len() < batch.num_rows() => {
                let places = UInt32Array::from(places.to_vec());
                Some(take_record_batch(batch, &places)?)
            }
            _ => None,
        };
        let batch = some.as_ref().unwrap_or(batch);
        let wrong = || ParquetError::General("its columns are not of the log's schema".to_owned());
        let (positions, attributes) = batch.columns().split_last().ok_or_else(wrong)?;
        let positions = positions.as_primitive_opt::<UInt64Type>().ok_or_else(wrong)?;
        self.positions.extend_from_slice(positions.values());
        let (start, size) = (self.records.len(), schema.record_size());
        self.records.resize(start + batch.num_rows() * size, 0);
        let wanted = columns.attributes.iter().filter(|(id, _)| stored.contains(id));
        for ((_, column), array) in wanted.zip(attributes) {
            let written = column.write(array, &mut self.records[start..], size);
            written.map_err(|error| ParquetError::General(error.to_string()))?;
        }
        Ok(())
    }

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
