//! An index: which pages of a volume have which keys of an attribute.
//!
//! It is a Parquet file, too, with a row for each pair of key and page, sorted, so that a lookup reads few of its pages.

use super::sums::{Checked, Summing, Sums};
use super::{GROUP, PAGE, PAGES};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{FixedSizeBinaryArray, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use queuescope_log::{AttributeId, Ranges, Schema};
use std::io::Write;
use std::sync::Arc;

/// A key, and a page that has it: pages are numbered across row groups, [`PAGES`] in each.
pub(crate) type Entry = (u128, u32);

/// Rows of a page of an index.
const ROWS: usize = 2048;
/// Bytes of a key.
const KEY: usize = 16;

/// Keys of up to this many bits are sorted as one word with their pages.
const NARROW: u32 = 32;

/// The index entries of consecutive records, in the order `order`.
pub(crate) fn entries(schema: &Schema, attribute: AttributeId, rows: &[u8], order: &[u32]) -> Vec<Entry> {
    let (size, reader) = (schema.record_size(), schema.reader(attribute));
    let key = |place: u32| reader.key(&rows[place as usize * size..]);
    if schema.attribute(attribute).place.bits > NARROW {
        return sorted(order, |place, page| (key(place), page));
    }
    // Entries of half the width are sorted in less than half the time.
    let words = sorted(order, |place, page| (key(place) as u64) << NARROW | u64::from(page));
    words.into_iter().map(|word| (u128::from(word >> NARROW), word as u32)).collect()
}

/// The sorted entries of records and their pages, without duplicates.
fn sorted<T: Ord + Copy>(order: &[u32], entry: impl Fn(u32, u32) -> T) -> Vec<T> {
    let mut found = Vec::new();
    for (page, places) in (0..).zip(order.chunks(PAGE)) {
        for place in places {
            let entry = entry(*place, page);
            // Equal entries are often adjacent.
            if found.last() != Some(&entry) {
                found.push(entry);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Writes sorted entries.
pub(crate) fn write<W: Write + Send>(out: W, entries: &[Entry]) -> Result<(W, Sums)> {
    let properties = WriterProperties::builder()
        .set_key_value_metadata(super::format())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_data_page_row_count_limit(ROWS)
        .set_write_batch_size(ROWS)
        .set_max_row_group_row_count(None)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_dictionary_enabled(false)
        .set_column_encoding(ColumnPath::from("key"), Encoding::DELTA_BYTE_ARRAY)
        .set_column_encoding(ColumnPath::from("page"), Encoding::DELTA_BINARY_PACKED);
    let schema = schema();
    let mut out = Summing::new(out);
    let mut writer = ArrowWriter::try_new(&mut out, Arc::clone(&schema), Some(properties.build()))?;
    for part in entries.chunks(GROUP) {
        let keys = part.iter().flat_map(|(key, _)| key.to_be_bytes()).collect::<Vec<_>>();
        let keys = FixedSizeBinaryArray::new(KEY as i32, keys.into(), None);
        let pages = UInt32Array::from_iter_values(part.iter().map(|(_, page)| *page));
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(keys), Arc::new(pages)])?)?;
    }
    writer.close()?;
    Ok(out.finish())
}

/// The pages that have keys in a range, sorted; `None` if they are more than `most`.
pub(crate) fn find(file: Checked, ranges: &Ranges, most: usize) -> Result<Option<Vec<u32>>> {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let metadata = ArrowReaderMetadata::load(&file, options)?;
    let selection = selection(&metadata, ranges)?;
    let mut found = Vec::new();
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata).with_batch_size(ROWS);
    for batch in builder.with_row_selection(selection).build()? {
        let batch = batch?;
        let wrong = || ParquetError::General("it is not an index: its columns are not a key and a page".to_owned());
        let [keys, pages] = batch.columns() else { return Err(wrong()) };
        let keys = keys.as_fixed_size_binary_opt().ok_or_else(wrong)?;
        let pages = pages.as_primitive_opt::<UInt32Type>().ok_or_else(wrong)?;
        for (key, page) in keys.iter().zip(pages.values()) {
            let key = key.and_then(|key| key.first_chunk()).ok_or_else(wrong)?;
            if ranges.contains(u128::from_be_bytes(*key)) {
                found.push(*page);
            }
        }
        if found.len() > 2 * most + ROWS {
            found.sort_unstable();
            found.dedup();
            if found.len() > most {
                return Ok(None);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok((found.len() <= most).then_some(found))
}

/// The rows of the index's pages that may have keys in a range.
fn selection(metadata: &ArrowReaderMetadata, ranges: &Ranges) -> Result<RowSelection> {
    let lacks = || ParquetError::General("it is not an index: it does not list the contents of its pages".to_owned());
    let metadata = metadata.metadata();
    let (Some(columns), Some(offsets)) = (metadata.column_index(), metadata.offset_index()) else {
        // An empty file has no pages.
        return if metadata.num_row_groups() == 0 { Ok(RowSelection::from(Vec::new())) } else { Err(lacks()) };
    };
    let mut selectors = Vec::new();
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let keys = columns.get(number).and_then(|columns| columns.first()).ok_or_else(lacks)?;
        let ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(keys) = keys else { return Err(lacks()) };
        let pages = offsets.get(number).and_then(|offsets| offsets.first()).ok_or_else(lacks)?.page_locations();
        let ends = pages.iter().skip(1).map(|page| page.first_row_index).chain([group.num_rows()]);
        for (page, (location, end)) in pages.iter().zip(ends).enumerate() {
            let key =
                |bytes: Option<&[u8]>| bytes.and_then(|bytes| bytes.first_chunk()).map(|key| u128::from_be_bytes(*key));
            let (low, high) = (key(keys.min_value(page)), key(keys.max_value(page)));
            let may = low.zip(high).is_none_or(|range| !Ranges::new([range]).intersection(ranges).is_empty());
            let rows = usize::try_from(end - location.first_row_index).map_err(|_| lacks())?;
            selectors.push(if may { RowSelector::select(rows) } else { RowSelector::skip(rows) });
        }
    }
    Ok(RowSelection::from(selectors))
}

fn schema() -> SchemaRef {
    let key = Field::new("key", DataType::FixedSizeBinary(KEY as i32), false);
    Arc::new(arrow_schema::Schema::new(vec![key, Field::new("page", DataType::UInt32, false)]))
}

/// The number of a page of a row group, across row groups.
pub(crate) fn page(group: usize, page: usize) -> u32 {
    (group * PAGES + page) as u32
}

/// The row group of a page, and its number within that.
pub(crate) fn place(page: u32) -> (usize, usize) {
    (page as usize / PAGES, page as usize % PAGES)
}
