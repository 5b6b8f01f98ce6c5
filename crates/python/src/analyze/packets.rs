//! The packets that left the queue, kept as a table beside the outputs of the command.

use crate::arrow::RawTable;
use crate::failure::{Failure, Outcome};
use arrow_array::builder::{StringBuilder, UInt8Builder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, TimestampNanosecondArray};
use arrow_schema::{Field, Schema};
use queuescope::analysis::Watcher;
use queuescope::log::packet;
use queuescope::meter::Contribution;
use queuescope::pcap::Record;
use queuescope::queue::Dropped;
use queuescope::recording::{self, Outputs, Written};
use queuescope::wire::parse::Frame;
use queuescope::{Departure, FlowId, Nanos, PacketId};
use std::ops::Range;
use std::sync::Arc;

/// The outputs of the command and, if wanted, a table of the packets.
#[derive(Default)]
pub struct Watched {
    outputs: Outputs,
    kept: Option<Box<Kept>>,
}

impl Watched {
    /// Keeps packets if `keeps`.
    pub fn new(outputs: Outputs, keeps: bool) -> Self {
        Self { outputs, kept: keeps.then(Box::default) }
    }

    /// Ends the outputs. Returns what was written, and the packets if they were kept.
    ///
    /// # Errors
    /// Fails if an output cannot be ended.
    pub fn finish(self) -> Outcome<(Written, Option<RawTable>)> {
        let written = self.outputs.finish().map_err(Failure::input)?;
        Ok((written, self.kept.map(Kept::table).transpose()?))
    }
}

impl Watcher for Watched {
    type Error = recording::Error;

    fn wants_parts(&self) -> bool {
        self.kept.is_some() || self.outputs.wants_parts()
    }

    fn wants_packets(&self) -> bool {
        self.outputs.wants_packets()
    }

    #[inline]
    fn departed(
        &mut self,
        departure: &Departure,
        flow: FlowId,
        part: Option<Contribution>,
        name: impl FnOnce() -> String,
    ) {
        let Some(kept) = &mut self.kept else { return self.outputs.departed(departure, flow, part, name) };
        let number = kept.flow(flow, name);
        kept.push(departure, number, part);
        let names = &kept.names;
        self.outputs.departed(departure, flow, part, || names.value(number));
    }

    fn dropped(&mut self, dropped: &Dropped, flow: FlowId) {
        self.outputs.dropped(dropped, flow);
    }

    fn forget(&mut self, flow: FlowId) {
        if let Some(number) = self.kept.as_mut().and_then(|kept| kept.numbers.get_mut(flow.index())) {
            *number = None;
        }
        self.outputs.forget(flow);
    }

    fn came(&mut self, packet: PacketId, headers: [u8; packet::SIZE]) {
        self.outputs.came(packet, headers);
    }

    fn read(&mut self, record: &Record<'_>, frame: Frame, time: Nanos, packets: Range<u64>) -> Result<(), Self::Error> {
        self.outputs.read(record, frame, time, packets)
    }

    fn hand_over(&mut self) -> Result<(), Self::Error> {
        self.outputs.hand_over()
    }

    fn check(&mut self) -> Result<(), Self::Error> {
        self.outputs.check()
    }
}

/// Packets by column, as the Parquet files of the command have them.
#[derive(Default)]
struct Kept {
    packet: UInt64Builder,
    flow: UInt32Builder,
    size: UInt32Builder,
    class: UInt8Builder,
    ecn: UInt8Builder,
    enqueued: Vec<i64>,
    dequeued: Vec<i64>,
    backlog_packets: UInt64Builder,
    backlog_bytes: UInt64Builder,
    own_bytes: UInt64Builder,
    names: Names,
    /// The number of each flow's name, by id.
    numbers: Vec<Option<u32>>,
}

/// Names of flows, in the order in which they were first seen. A flow that was forgotten meanwhile has another entry afterwards.
#[derive(Default)]
struct Names(Vec<Box<str>>);

impl Names {
    fn value(&self, number: u32) -> String {
        self.0.get(number as usize).map(ToString::to_string).unwrap_or_default()
    }
}

impl Kept {
    fn flow(&mut self, flow: FlowId, name: impl FnOnce() -> String) -> u32 {
        if self.numbers.len() <= flow.index() {
            self.numbers.resize(flow.index() + 1, None);
        }
        *self.numbers[flow.index()].get_or_insert_with(|| {
            self.names.0.push(name().into_boxed_str());
            self.names.0.len() as u32 - 1
        })
    }

    fn push(&mut self, departure: &Departure, flow: u32, part: Option<Contribution>) {
        let packet = departure.packet;
        self.packet.append_value(packet.id.0 + 1);
        self.flow.append_value(flow);
        self.size.append_value(packet.size.0 as u32);
        self.class.append_value(packet.class.0);
        self.ecn.append_value(packet.ecn as u8);
        self.enqueued.push(stamp(departure.enqueued));
        self.dequeued.push(stamp(departure.dequeued));
        self.backlog_packets.append_value(departure.backlog_in.packets);
        self.backlog_bytes.append_value(departure.backlog_in.bytes.0);
        self.own_bytes.append_option(part.map(|part| part.own));
    }

    fn table(mut self: Box<Self>) -> Outcome<RawTable> {
        let mut names = StringBuilder::new();
        self.names.0.iter().for_each(|name| names.append_value(name));
        let flow = DictionaryArray::try_new(self.flow.finish(), Arc::new(names.finish())).map_err(Failure::value)?;
        let time = |values: Vec<i64>| Arc::new(TimestampNanosecondArray::from(values).with_timezone("UTC"));
        let columns: [(&str, ArrayRef); 10] = [
            ("packet", Arc::new(self.packet.finish())),
            ("flow", Arc::new(flow)),
            ("size", Arc::new(self.size.finish())),
            ("class", Arc::new(self.class.finish())),
            ("ecn", Arc::new(self.ecn.finish())),
            ("enqueued", time(self.enqueued)),
            ("dequeued", time(self.dequeued)),
            ("backlog_packets", Arc::new(self.backlog_packets.finish())),
            ("backlog_bytes", Arc::new(self.backlog_bytes.finish())),
            ("own_bytes", Arc::new(self.own_bytes.finish())),
        ];
        let fields =
            columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), *name == "own_bytes"));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(schema, columns.into_iter().map(|(_, array)| array).collect());
        Ok(batch.map_err(Failure::value)?.into())
    }
}

/// A time since 1970. Later ones than of the year 2262, which captures with damaged clocks have, become the last.
fn stamp(time: Nanos) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}
