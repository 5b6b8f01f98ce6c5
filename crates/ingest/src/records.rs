//! Turns packets into records, on which expressions are evaluated.

use crate::error::ExpressionError;
use queuescope_log::{AttributeId, Dnf, Schema, departure, packet};
use queuescope_pcap::Record;
use queuescope_sim::number;
use queuescope_wire::parse::{Frame, LinkType};
use queuescope_wire::{Backlog, Departure, FlowId, FlowKey, Nanos, Packet, PacketId, QueueId};

/// Makes records of a schema from packets.
pub trait Records: Default {
    /// The schema.
    fn schema() -> &'static Schema;

    /// Checks that an expression uses only attributes that the records have.
    ///
    /// # Errors
    /// Fails if it uses another attribute.
    fn askable(_expression: &Dnf) -> Result<(), ExpressionError> {
        Ok(())
    }
}

/// Turns frames of a capture into records of the schema `packet`.
#[derive(Debug, Clone)]
pub struct Frames {
    record: Box<[u8; packet::SIZE]>,
    /// The timestamp of the last frame that has one.
    last: Option<Nanos>,
}

/// Turns departures into records of the schema `departure`.
#[derive(Debug, Clone)]
pub struct Departures {
    record: Box<[u8; departure::SIZE]>,
}

impl Frames {
    /// The capture time of a frame. A frame without a timestamp has that of the frame before it, so call this for each
    /// frame, in order.
    pub fn time(&mut self, record: &Record<'_>) -> Option<Nanos> {
        self.last = record.time.or(self.last);
        self.last
    }

    /// The record of a frame that was captured at `time`.
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

/// Attributes of departures that are not known. They would be 0 in records, so that expressions with them would give wrong
/// results.
#[derive(Debug, Clone, Copy)]
pub struct Unknown {
    attributes: &'static [&'static str],
    /// The kind of departures, for errors.
    of: &'static str,
    why: &'static str,
}

impl Unknown {
    /// For a queue that is replayed or simulated: everything is known.
    pub const NOTHING: Self = Self { attributes: &[], of: "", why: "" };
    /// For a table of departures.
    pub const OF_TABLE: Self = Self {
        attributes: &["backlog_in", "backlog_out", "packets_in", "packets_out", "ecn", "queue"],
        of: "a table of departures",
        why: "tables do not have it",
    };
    /// For the queue of an interface, or of a router.
    pub const OF_OUTSIDE: Self = Self {
        attributes: &["backlog_in", "backlog_out", "packets_in", "packets_out"],
        of: "a queue that is measured from outside",
        why: "its content is computed later",
    };

    /// For victims, in any queue.
    pub const OF_VICTIMS: Self = Self {
        attributes: &["flow", "packet"],
        of: "victims",
        why: "it is a number that is valid in one run only; use addresses, ports or times (why --packet examines one packet)",
    };

    /// Checks that all attributes are known.
    ///
    /// # Errors
    /// Fails if one is not.
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

/// The departure for records, without its flow id: ids are reused, so expressions must not see them.
pub fn without_flow(departure: &Departure) -> Departure {
    Departure { packet: Packet { flow: FlowId(0), ..departure.packet }, ..*departure }
}

/// A packet that did not leave the queue, as a departure without backlogs.
pub fn as_departure(packet: Packet, queue: QueueId, enqueued: Nanos, dequeued: Nanos) -> Departure {
    let none = Backlog::default();
    Departure { packet, queue, enqueued, dequeued, backlog_in: none, backlog_out: none }
}

/// The departure for records: with the packet's number in the order of sending, and without the flow id of the simulation.
pub fn for_expressions(departure: &Departure) -> Departure {
    without_flow(&Departure { packet: numbered(departure.packet), ..*departure })
}

/// The packet with its number in the order of sending as its id.
#[inline]
pub fn numbered(packet: Packet) -> Packet {
    Packet { id: PacketId(number(packet.id)), ..packet }
}
