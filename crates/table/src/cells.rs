//! [`CellWriter`]: the cells of a sweep to a Parquet file.

use crate::{TableError, format};
use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::fmt;
use std::io::Write;
use std::sync::Arc;

/// How many rows the encoder receives at once.
const BATCH: u64 = 1 << 13;

/// A cell to write.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellRow<'a> {
    /// Its position in the sweep, from 0.
    pub index: u64,
    /// A digest of everything that it depends on.
    pub key: &'a str,
    /// Its seed.
    pub seed: u64,
    /// The values of the swept parameters.
    pub values: &'a [String],
    /// The measured figures; `None` where there is none.
    pub figures: &'a [Option<f64>],
}

/// Writes cells to a Parquet file with the columns `index`, `key`, `seed`, a text column for each swept path, and a
/// number column for each figure.
///
/// A file is complete only after [`finish`](Self::finish), because its footer comes last.
pub struct CellWriter<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: SchemaRef,
    rows: u64,
    index: UInt64Builder,
    key: StringBuilder,
    seed: UInt64Builder,
    values: Vec<StringBuilder>,
    figures: Vec<Float64Builder>,
}

impl<W: Write + Send> CellWriter<W> {
    /// Starts a file of cells with values of `paths`, and `figures`.
    pub fn new<'a>(out: W, paths: impl IntoIterator<Item = &'a str>, figures: &[&str]) -> Result<Self, TableError> {
        let column = |name: &str, kind| Field::new(name, kind, false);
        let mut columns =
            vec![column("index", DataType::UInt64), column("key", DataType::Utf8), column("seed", DataType::UInt64)];
        let fixed = columns.len();
        columns.extend(paths.into_iter().map(|path| column(path, DataType::Utf8)));
        let values = columns.len() - fixed;
        columns.extend(figures.iter().map(|name| column(name, DataType::Float64).with_nullable(true)));
        let schema = Arc::new(Schema::new(columns));
        let properties = WriterProperties::builder()
            .set_created_by(concat!("queuescope ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(format::metadata())
            .set_compression(Compression::ZSTD(ZstdLevel::default()));
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties.build()))
            .map_err(|error| TableError::Write { rows: 0, why: error.to_string() })?;
        Ok(Self {
            writer,
            schema,
            rows: 0,
            index: UInt64Builder::new(),
            key: StringBuilder::new(),
            seed: UInt64Builder::new(),
            values: (0..values).map(|_| StringBuilder::new()).collect(),
            figures: figures.iter().map(|_| Float64Builder::new()).collect(),
        })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Returns an error if the row cannot be written, or has another number of values or figures than there are columns
    /// for them.
    pub fn write(&mut self, row: &CellRow<'_>) -> Result<(), TableError> {
        if (row.values.len(), row.figures.len()) != (self.values.len(), self.figures.len()) {
            let why = format!("cell {} has not as many values as there are columns", row.index);
            return Err(TableError::Write { rows: self.rows, why });
        }
        self.index.append_value(row.index);
        self.key.append_value(row.key);
        self.seed.append_value(row.seed);
        self.values.iter_mut().zip(row.values).for_each(|(column, value)| column.append_value(value));
        self.figures.iter_mut().zip(row.figures).for_each(|(column, figure)| column.append_option(*figure));
        self.rows += 1;
        if self.rows.is_multiple_of(BATCH) { self.flush() } else { Ok(()) }
    }

    /// Writes the remaining rows and the footer, and returns the output.
    ///
    /// # Errors
    /// Returns the first write error of the output.
    pub fn finish(mut self) -> Result<W, TableError> {
        self.flush()?;
        let rows = self.rows;
        self.writer.into_inner().map_err(|error| TableError::Write { rows, why: error.to_string() })
    }

    fn flush(&mut self) -> Result<(), TableError> {
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(self.index.finish()), Arc::new(self.key.finish()), Arc::new(self.seed.finish())];
        columns.extend(self.values.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        columns.extend(self.figures.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        let broken = |why: String| TableError::Write { rows: self.rows, why };
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(|error| broken(error.to_string()))?;
        self.writer.write(&batch).map_err(|error| broken(error.to_string()))
    }
}

impl<W: Write + Send> fmt::Debug for CellWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CellWriter").field("rows", &self.rows).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, UInt64Type};
    use bytes::Bytes;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    #[test]
    fn cells_come_back() {
        let mut writer = CellWriter::new(Vec::new(), ["link.rate"], &["goodput_bps", "jain"]).unwrap();
        let count = BATCH + 3;
        for index in 0..count {
            let values = [format!("{index}mbps")];
            let figures = [Some(index as f64 / 3.0), (index % 2 == 0).then_some(0.5)];
            let row = CellRow { index, key: "k", seed: index % 5, values: &values, figures: &figures };
            writer.write(&row).unwrap();
        }
        let wrong = CellRow { index: 0, key: "k", seed: 0, values: &[], figures: &[None, None] };
        assert!(writer.write(&wrong).unwrap_err().to_string().contains("as many values"));
        let bytes = Bytes::from(writer.finish().unwrap());
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
        let metadata = reader.metadata().file_metadata();
        let pairs: Vec<_> = metadata.key_value_metadata().into_iter().flatten().collect();
        let format = pairs.iter().find(|pair| pair.key == "queuescope.format").and_then(|pair| pair.value.as_deref());
        assert_eq!(format, Some("1"), "{pairs:?}");
        assert!(metadata.created_by().is_some_and(|by| by.starts_with("queuescope ")), "{metadata:?}");
        let names: Vec<_> = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["index", "key", "seed", "link.rate", "goodput_bps", "jain"]);
        let mut index = 0;
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            for row in 0..batch.num_rows() {
                assert_eq!(batch.column(0).as_primitive::<UInt64Type>().value(row), index);
                assert_eq!(batch.column(2).as_primitive::<UInt64Type>().value(row), index % 5);
                assert_eq!(batch.column(3).as_string::<i32>().value(row), format!("{index}mbps"));
                assert_eq!(batch.column(4).as_primitive::<Float64Type>().value(row), index as f64 / 3.0);
                assert_eq!(batch.column(5).is_null(row), index % 2 == 1);
                index += 1;
            }
        }
        assert_eq!(index, count);
    }
}
