//! [`HopWriter`]: the telemetry of simulated packets to a Parquet file, a row for each hop of each packet.

use crate::TableError;
use crate::writer::{BATCH, properties};
use arrow_array::builder::{BooleanBuilder, Int64Builder, StringBuilder, UInt8Builder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use queuescope_wire::{Backlog, Nanos};
use std::fmt;
use std::io::Write;
use std::sync::Arc;

/// A packet whose path has ended; each of its rows repeats this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketRow<'a> {
    /// Its number in the order of sending, from 1.
    pub packet: u64,
    /// Its flow.
    pub flow: &'a str,
    /// Its size in bytes, from the network header on.
    pub size: u32,
    /// When its path ended.
    pub ended: Nanos,
    /// The link and the reason of its drop, if it was dropped.
    pub dropped: Option<(&'a str, &'a str)>,
}

/// A hop: a switch, and the link on which the packet continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopRow<'a> {
    /// The switch.
    pub switch: &'a str,
    /// The link.
    pub link: &'a str,
    /// When it arrived at the queue.
    pub ingress: Nanos,
    /// When it left the queue.
    pub egress: Nanos,
    /// The backlog at its arrival, without itself.
    pub backlog_in: Backlog,
    /// The backlog at its departure, without itself.
    pub backlog_out: Backlog,
    /// Whether it was marked when it left.
    pub marked: bool,
}

/// Writes hops to a Parquet file, one row group after another. Memory is bounded by one row group. Times are
/// nanoseconds of the simulation.
///
/// A file is complete only after [`finish`](Self::finish), because its footer comes last.
pub struct HopWriter<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: SchemaRef,
    rows: u64,
    pending: Pending,
}

impl<W: Write + Send> HopWriter<W> {
    /// Starts a file.
    ///
    /// # Errors
    /// Returns the first write error of the output.
    pub fn new(out: W) -> Result<Self, TableError> {
        let schema = schema();
        let properties = properties(&["packet", "ingress", "egress", "ended"]);
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties))
            .map_err(|error| TableError::Write { rows: 0, why: error.to_string() })?;
        Ok(Self { writer, schema, rows: 0, pending: Pending::default() })
    }

    /// Adds a packet. A packet that was dropped before its first hop has a row without a hop.
    ///
    /// # Errors
    /// Returns the first write error of the output.
    pub fn write<'a>(
        &mut self,
        packet: &PacketRow<'_>,
        hops: impl IntoIterator<Item = HopRow<'a>>,
    ) -> Result<(), TableError> {
        let before = self.rows;
        for (number, hop) in (1..).zip(hops) {
            self.pending.push(packet, Some((number, &hop)));
            self.rows += 1;
        }
        if self.rows == before {
            self.pending.push(packet, None);
            self.rows += 1;
        }
        if self.pending.packet.values_slice().len() >= BATCH { self.flush() } else { Ok(()) }
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
        let broken = |why: String| TableError::Write { rows: self.rows, why };
        let batch = RecordBatch::try_new(self.schema.clone(), self.pending.take());
        let batch = batch.map_err(|error| broken(error.to_string()))?;
        self.writer.write(&batch).map_err(|error| broken(error.to_string()))
    }
}

impl<W: Write + Send> fmt::Debug for HopWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HopWriter").field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// Rows that wait to be encoded, by column.
#[derive(Default)]
struct Pending {
    packet: UInt64Builder,
    flow: StringBuilder,
    size: UInt32Builder,
    hop: UInt8Builder,
    switch: StringBuilder,
    link: StringBuilder,
    ingress: Int64Builder,
    egress: Int64Builder,
    packets_in: UInt64Builder,
    bytes_in: UInt64Builder,
    packets_out: UInt64Builder,
    bytes_out: UInt64Builder,
    marked: BooleanBuilder,
    ended: Int64Builder,
    dropped_at: StringBuilder,
    dropped_for: StringBuilder,
}

impl Pending {
    fn push(&mut self, packet: &PacketRow<'_>, hop: Option<(u8, &HopRow<'_>)>) {
        let time = |time: Nanos| i64::try_from(time.0).unwrap_or(i64::MAX);
        let of = |get: fn(&HopRow<'_>) -> u64| hop.map(|(_, hop)| get(hop));
        self.packet.append_value(packet.packet);
        self.flow.append_value(packet.flow);
        self.size.append_value(packet.size);
        self.hop.append_option(hop.map(|(number, _)| number));
        self.switch.append_option(hop.map(|(_, hop)| hop.switch));
        self.link.append_option(hop.map(|(_, hop)| hop.link));
        self.ingress.append_option(hop.map(|(_, hop)| time(hop.ingress)));
        self.egress.append_option(hop.map(|(_, hop)| time(hop.egress)));
        self.packets_in.append_option(of(|hop| hop.backlog_in.packets));
        self.bytes_in.append_option(of(|hop| hop.backlog_in.bytes.0));
        self.packets_out.append_option(of(|hop| hop.backlog_out.packets));
        self.bytes_out.append_option(of(|hop| hop.backlog_out.bytes.0));
        self.marked.append_option(hop.map(|(_, hop)| hop.marked));
        self.ended.append_value(time(packet.ended));
        self.dropped_at.append_option(packet.dropped.map(|(link, _)| link));
        self.dropped_for.append_option(packet.dropped.map(|(_, reason)| reason));
    }

    /// Takes all rows, as columns in the order of [`schema`].
    fn take(&mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.packet.finish()),
            Arc::new(self.flow.finish()),
            Arc::new(self.size.finish()),
            Arc::new(self.hop.finish()),
            Arc::new(self.switch.finish()),
            Arc::new(self.link.finish()),
            Arc::new(self.ingress.finish()),
            Arc::new(self.egress.finish()),
            Arc::new(self.packets_in.finish()),
            Arc::new(self.bytes_in.finish()),
            Arc::new(self.packets_out.finish()),
            Arc::new(self.bytes_out.finish()),
            Arc::new(self.marked.finish()),
            Arc::new(self.ended.finish()),
            Arc::new(self.dropped_at.finish()),
            Arc::new(self.dropped_for.finish()),
        ]
    }
}

fn schema() -> SchemaRef {
    let always = |name: &str, kind| Field::new(name, kind, false);
    let perhaps = |name: &str, kind| Field::new(name, kind, true);
    Arc::new(Schema::new(vec![
        always("packet", DataType::UInt64),
        always("flow", DataType::Utf8),
        always("size", DataType::UInt32),
        perhaps("hop", DataType::UInt8),
        perhaps("switch", DataType::Utf8),
        perhaps("link", DataType::Utf8),
        perhaps("ingress", DataType::Int64),
        perhaps("egress", DataType::Int64),
        perhaps("packets_in", DataType::UInt64),
        perhaps("bytes_in", DataType::UInt64),
        perhaps("packets_out", DataType::UInt64),
        perhaps("bytes_out", DataType::UInt64),
        perhaps("marked", DataType::Boolean),
        always("ended", DataType::Int64),
        perhaps("dropped_at", DataType::Utf8),
        perhaps("dropped_for", DataType::Utf8),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int64Type, UInt8Type, UInt64Type};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use queuescope_wire::ByteCount;

    #[test]
    fn hops_read_back() {
        let backlog = |packets| Backlog { packets, bytes: ByteCount(1_500 * packets) };
        let hop = |switch, ingress, marked| HopRow {
            switch,
            link: "l",
            ingress: Nanos(ingress),
            egress: Nanos(ingress + 5),
            backlog_in: backlog(3),
            backlog_out: backlog(2),
            marked,
        };
        let mut writer = HopWriter::new(Vec::new()).unwrap();
        let packet = PacketRow { packet: 1, flow: "a > b", size: 40, ended: Nanos(99), dropped: None };
        writer.write(&packet, [hop("s1", 10, false), hop("s2", 20, true)]).unwrap();
        let lost = PacketRow { packet: 2, ended: Nanos(7), dropped: Some(("l", "overlimit")), ..packet };
        writer.write(&lost, []).unwrap();
        let file = writer.finish().unwrap();
        let mut batches = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(file)).unwrap().build().unwrap();
        let batch = batches.next().unwrap().unwrap();
        assert!(batches.next().is_none());
        let column = |name| batch.column_by_name(name).unwrap();
        assert_eq!(column("packet").as_primitive::<UInt64Type>().values()[..], [1, 1, 2]);
        let hops: Vec<_> = column("hop").as_primitive::<UInt8Type>().iter().collect();
        assert_eq!(hops, [Some(1), Some(2), None]);
        let ingress: Vec<_> = column("ingress").as_primitive::<Int64Type>().iter().collect();
        assert_eq!(ingress, [Some(10), Some(20), None]);
        let bytes: Vec<_> = column("bytes_in").as_primitive::<UInt64Type>().iter().collect();
        assert_eq!(bytes, [Some(4_500), Some(4_500), None]);
        let marked: Vec<_> = column("marked").as_boolean().iter().collect();
        assert_eq!(marked, [Some(false), Some(true), None]);
        let dropped: Vec<_> = column("dropped_for").as_string::<i32>().iter().collect();
        assert_eq!(dropped, [None, None, Some("overlimit")]);
    }
}
