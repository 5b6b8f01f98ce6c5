//! Packets as records, which expressions are about.

use crate::error::ExpressionError;
use queuescope_log::{AttributeId, Dnf, Schema, departure, packet};
use queuescope_pcap::Record;
use queuescope_sim::number;
use queuescope_wire::parse::{Frame, LinkType};
use queuescope_wire::{Backlog, Departure, FlowId, FlowKey, Nanos, Packet, PacketId, QueueId};

/// Makes records of a schema.
pub trait Records: Default {
    /// The schema.
    fn schema() -> &'static Schema;

    /// Refuses an expression about what the records do not have.
    ///
    /// # Errors
    /// If it is.
    fn askable(_expression: &Dnf) -> Result<(), ExpressionError> {
        Ok(())
    }
}

/// Frames of a capture as records of the schema `packet`.
#[derive(Debug, Clone)]
pub struct Frames {
    record: Box<[u8; packet::SIZE]>,
    /// When the last of them was captured that has a time.
    last: Option<Nanos>,
}

/// Departures as records of the schema `departure`.
#[derive(Debug, Clone)]
pub struct Departures {
    record: Box<[u8; departure::SIZE]>,
}

impl Frames {
    /// When a frame was captured: one without a time, with the frame before it. It has to be asked of each.
    pub fn time(&mut self, record: &Record<'_>) -> Option<Nanos> {
        self.last = record.time.or(self.last);
        self.last
    }

    /// The record of a frame that was captured then.
    pub fn fill(&mut self, record: &Record<'_>, time: Option<Nanos>, frame: &Frame) -> &[u8; packet::SIZE] {
        let (at, link) = (time.unwrap_or_default(), LinkType::from_dlt(record.link));
        let captured = packet::Captured { at, link, original_len: record.original_len, data: record.data };
        packet::fill(&mut self.record, &captured, frame, None);
        &self.record
    }
}

impl Departures {
    /// The record of a departure of the flow `key`.
    pub fn fill(&mut self, departure: &Departure, key: &FlowKey) -> &[u8; departure::SIZE] {
        departure::fill(&mut self.record, departure, key);
        &self.record
    }
}

/// What is not known of departures: it would be zero, and answers wrong.
#[derive(Debug, Clone, Copy)]
pub struct Unknown {
    attributes: &'static [&'static str],
    /// What they are asked of.
    of: &'static str,
    why: &'static str,
}

impl Unknown {
    /// Of a queue that is worked out or simulated here.
    pub const NOTHING: Self = Self { attributes: &[], of: "", why: "" };
    /// Of a table.
    pub const OF_TABLE: Self = Self {
        attributes: &["backlog_in", "backlog_out", "packets_in", "packets_out", "ecn", "queue"],
        of: "a table of departures",
        why: "it is not read from one",
    };
    /// Of the queue of an interface, or of a router.
    pub const OF_OUTSIDE: Self = Self {
        attributes: &["backlog_in", "backlog_out", "packets_in", "packets_out"],
        of: "a queue that is seen from outside",
        why: "what was in it is worked out later",
    };

    /// Of victims, wherever they are.
    pub const OF_VICTIMS: Self = Self {
        attributes: &["flow", "packet"],
        of: "victims",
        why: "it is a number of one run; name addresses, ports or times (why --packet asks about one packet)",
    };

    /// Refuses attributes that are not known.
    ///
    /// # Errors
    /// If one of them is not.
    pub fn check(self, attributes: impl IntoIterator<Item = AttributeId>) -> Result<(), ExpressionError> {
        let schema = Departures::schema();
        let name = |id| schema.attribute(id).name.as_str();
        match attributes.into_iter().map(name).find(|name| self.attributes.contains(name)) {
            Some(name) => Err(ExpressionError::Unknown { attribute: name.to_owned(), of: self.of, why: self.why }),
            None => Ok(()),
        }
    }
}

impl Records for Frames {
    fn schema() -> &'static Schema {
        packet::schema()
    }
}

impl Records for Departures {
    fn schema() -> &'static Schema {
        departure::schema()
    }
}

impl Default for Frames {
    fn default() -> Self {
        Self { record: Box::new([0; packet::SIZE]), last: None }
    }
}

impl Default for Departures {
    fn default() -> Self {
        Self { record: Box::new([0; departure::SIZE]) }
    }
}

/// A departure as expressions know it: without the door's numbers of flows, which are taken back.
pub fn without_flow(departure: &Departure) -> Departure {
    Departure { packet: Packet { flow: FlowId(0), ..departure.packet }, ..*departure }
}

/// What is known of a packet that did not leave the queue, as if it had.
pub fn as_departure(packet: Packet, queue: QueueId, enqueued: Nanos, dequeued: Nanos) -> Departure {
    let none = Backlog::default();
    Departure { packet, queue, enqueued, dequeued, backlog_in: none, backlog_out: none }
}

/// A departure as expressions know it: by the packet's number, and without the simulation's own numbers of flows.
pub fn for_expressions(departure: &Departure) -> Departure {
    without_flow(&Departure { packet: numbered(departure.packet), ..*departure })
}

/// The packet by its number in the order of sending.
#[inline]
pub fn numbered(packet: Packet) -> Packet {
    Packet { id: PacketId(number(packet.id)), ..packet }
}
