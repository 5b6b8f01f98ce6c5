//! Writes volumes.

use super::encoding::ColumnEncoding;
use super::sums::{Summing, Sums};
use super::{Columns, GROUP, PAGE, format};
use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::io::Write;
use std::sync::Arc;

/// Bytes of a page's dictionary: a column with more distinct values is written without one.
const DICTIONARY: usize = 1 << 20;
/// Pages of the sample from which encodings are chosen.
const SAMPLE: usize = 4;

/// Records that become a row group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group<'a> {
    /// Records of `size` bytes, one after another.
    pub rows: &'a [u8],
    pub size: usize,
    /// The position of the first record; the others follow.
    pub first: u64,
    /// The indices of the records to write, in order.
    pub order: &'a [u32],
}

/// Writes a row group as a file.
///
/// # Errors
/// Returns the first write error.
pub(crate) fn write<W: Write + Send>(out: W, columns: &Columns, group: Group<'_>) -> Result<(W, Sums)> {
    let mut out = Summing::new(out);
    let mut writer = ArrowWriter::try_new(&mut out, Arc::clone(&columns.arrow), Some(properties(columns, group)))?;
    let mut page = Vec::with_capacity(PAGE * group.size);
    for places in group.order.chunks(PAGE) {
        gather(group, places, &mut page);
        let mut arrays: Vec<ArrayRef> =
            columns.attributes.iter().map(|(_, column)| column.array(&page, group.size)).collect();
        let positions = places.iter().map(|place| group.first + u64::from(*place));
        arrays.push(Arc::new(UInt64Array::from_iter_values(positions)));
        writer.write(&RecordBatch::try_new(Arc::clone(&columns.arrow), arrays)?)?;
    }
    // Taking the output out of the writer would turn the system's error into text.
    writer.close()?;
    Ok(out.finish())
}

/// Copies some records, one after another.
fn gather(group: Group<'_>, places: &[u32], into: &mut Vec<u8>) {
    into.clear();
    for place in places {
        let at = *place as usize * group.size;
        into.extend_from_slice(&group.rows[at..at + group.size]);
    }
}

fn properties(columns: &Columns, group: Group<'_>) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("queuescope ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(format())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP))
        .set_data_page_row_count_limit(PAGE)
        .set_write_batch_size(PAGE)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_dictionary_page_size_limit(DICTIONARY);
    let step = group.order.len().div_ceil(PAGE * SAMPLE) * PAGE;
    let mut sample = Vec::new();
    let places: Vec<u32> = group.order.chunks(step.max(1)).flat_map(|part| part.iter().take(PAGE).copied()).collect();
    gather(group, &places, &mut sample);
    let encodings = columns.attributes.iter().map(|(_, column)| {
        let values = column.array(&sample, group.size);
        (column.name().to_owned(), ColumnEncoding::choose(&values))
    });
    for (name, encoding) in encodings.chain([(columns.position.clone(), ColumnEncoding::Differences)]) {
        let encoding = match encoding {
            ColumnEncoding::Dictionary => continue,
            ColumnEncoding::Differences => Encoding::DELTA_BINARY_PACKED,
            ColumnEncoding::Endings => Encoding::DELTA_BYTE_ARRAY,
            ColumnEncoding::Plain => Encoding::PLAIN,
        };
        let path = ColumnPath::from(name);
        properties = properties.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, encoding);
    }
    properties.build()
}
