//! [`DepartureWriter`]: writes departures to a Parquet file.

use crate::{TableError, format};
use arrow_array::builder::{
    PrimitiveBuilder, StringBuilder, TimestampNanosecondBuilder, UInt8Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use queuescope_wire::{Ecn, Nanos};
use std::fmt;
use std::io::Write;
use std::sync::Arc;

/// Rows in a row group: enough to compress well, few enough to be held in memory.
const GROUP: usize = 1 << 17;

/// How many rows the encoder receives at once.
pub(crate) const BATCH: usize = 1 << 13;

/// The largest dictionary for flow names in a row group, in bytes.
const DICTIONARY: usize = 8 << 20;

/// A departure to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DepartureRow<'a> {
    /// The packet's number in its stream, from 1.
    pub packet: u64,
    /// Its flow.
    pub flow: &'a str,
    /// Its size in bytes.
    pub size: u32,
    /// Its class of service.
    pub class: u8,
    /// Its ECN codepoint; written as its bits (RFC 3168 section 5: 0 not capable, 1 ECT(1), 2 ECT(0), 3 CE).
    pub ecn: Ecn,
    /// When it entered the queue.
    pub enqueued: Nanos,
    /// When it left the queue.
    pub dequeued: Nanos,
    /// Packets in the queue when it entered, without itself.
    pub backlog_packets: u64,
    /// Their bytes.
    pub backlog_bytes: u64,
    /// How many of these bytes belong to its own flow, if known.
    pub own_bytes: Option<u64>,
}

/// Writes departures to a Parquet file, one row group after another. Memory is bounded by one row group.
///
/// A file is complete only after [`finish`](Self::finish), because its footer comes last.
pub struct DepartureWriter<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: SchemaRef,
    origin: Nanos,
    rows: u64,
    pending: Pending,
}

impl<W: Write + Send> DepartureWriter<W> {
    /// Starts a file. `origin` is the origin of the rows' times, in nanoseconds since the Unix epoch, and is added to
    /// them: zero for times that count from the epoch.
    pub fn new(out: W, origin: Nanos) -> Result<Self, TableError> {
        let schema = schema();
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties(&["packet", "enqueued", "dequeued"])))
            .map_err(|error| TableError::Write { rows: 0, why: error.to_string() })?;
        Ok(Self { writer, schema, origin, rows: 0, pending: Pending::default() })
    }

    /// Adds a row.
    pub fn write(&mut self, row: &DepartureRow<'_>) -> Result<(), TableError> {
        let stamp = |time: Nanos| {
            let time = time.saturating_add(self.origin);
            i64::try_from(time.0).map_err(|_| TableError::WriteTime { packet: row.packet, nanos: time.0 })
        };
        let (enqueued, dequeued) = (stamp(row.enqueued)?, stamp(row.dequeued)?);
        self.pending.push(row, enqueued, dequeued);
        self.rows += 1;
        if self.pending.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    /// Writes the remaining rows and the footer, and returns the output.
    pub fn finish(mut self) -> Result<W, TableError> {
        self.flush()?;
        let rows = self.rows;
        self.writer.into_inner().map_err(|error| TableError::Write { rows, why: error.to_string() })
    }

    /// How many rows were written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn flush(&mut self) -> Result<(), TableError> {
        let broken = |why: String| TableError::Write { rows: self.rows, why };
        let batch = RecordBatch::try_new(self.schema.clone(), self.pending.take());
        let batch = batch.map_err(|error| broken(error.to_string()))?;
        self.writer.write(&batch).map_err(|error| broken(error.to_string()))
    }
}

impl<W: Write + Send> fmt::Debug for DepartureWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, rows, .. } = self;
        f.debug_struct("DepartureWriter").field("origin", origin).field("rows", rows).finish_non_exhaustive()
    }
}

/// Rows that wait to be encoded, by column.
#[derive(Default)]
struct Pending {
    packet: UInt64Builder,
    flow: StringBuilder,
    size: UInt32Builder,
    class: UInt8Builder,
    ecn: UInt8Builder,
    enqueued: TimestampNanosecondBuilder,
    dequeued: TimestampNanosecondBuilder,
    backlog_packets: UInt64Builder,
    backlog_bytes: UInt64Builder,
    own_bytes: UInt64Builder,
}

impl Pending {
    fn len(&self) -> usize {
        self.packet.values_slice().len()
    }

    fn push(&mut self, row: &DepartureRow<'_>, enqueued: i64, dequeued: i64) {
        self.packet.append_value(row.packet);
        self.flow.append_value(row.flow);
        self.size.append_value(row.size);
        self.class.append_value(row.class);
        self.ecn.append_value(row.ecn as u8);
        self.enqueued.append_value(enqueued);
        self.dequeued.append_value(dequeued);
        self.backlog_packets.append_value(row.backlog_packets);
        self.backlog_bytes.append_value(row.backlog_bytes);
        self.own_bytes.append_option(row.own_bytes);
    }

    /// Takes all rows, as columns in the order of [`schema`].
    fn take(&mut self) -> Vec<ArrayRef> {
        fn taken<T: ArrowPrimitiveType>(builder: &mut PrimitiveBuilder<T>) -> ArrayRef {
            Arc::new(builder.finish())
        }
        vec![
            taken(&mut self.packet),
            Arc::new(self.flow.finish()),
            taken(&mut self.size),
            taken(&mut self.class),
            taken(&mut self.ecn),
            Arc::new(self.enqueued.finish().with_timezone("UTC")),
            Arc::new(self.dequeued.finish().with_timezone("UTC")),
            taken(&mut self.backlog_packets),
            taken(&mut self.backlog_bytes),
            taken(&mut self.own_bytes),
        ]
    }
}

fn schema() -> SchemaRef {
    let time = || DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    let column = |name: &str, kind| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![
        column("packet", DataType::UInt64),
        column("flow", DataType::Utf8),
        column("size", DataType::UInt32),
        column("class", DataType::UInt8),
        column("ecn", DataType::UInt8),
        column("enqueued", time()),
        column("dequeued", time()),
        column("backlog_packets", DataType::UInt64),
        column("backlog_bytes", DataType::UInt64),
        column("own_bytes", DataType::UInt64).with_nullable(true),
    ]))
}

/// The settings of the files. Values of the columns `growing` grow from row to row, so their differences are small, but
/// there are too many for a dictionary.
pub(crate) fn properties(growing: &[&str]) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("queuescope ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(format::metadata())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP))
        .set_dictionary_page_size_limit(DICTIONARY);
    for name in growing {
        properties = properties
            .set_column_dictionary_enabled(ColumnPath::from(*name), false)
            .set_column_encoding(ColumnPath::from(*name), Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}
