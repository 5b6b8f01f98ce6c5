//! A packet in a queue, as Python sees it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use queuescope::{Departure, Ecn, Nanos, Packet};

/// A packet in a queue.
#[pyclass(frozen, name = "Packet", module = "queuescope")]
#[derive(Debug, Clone, Copy)]
pub struct RawPacket {
    packet: Packet,
    arrived: Nanos,
}

impl RawPacket {
    /// A packet that arrived at a queue.
    pub fn new(packet: Packet, arrived: Nanos) -> Self {
        Self { packet, arrived }
    }
}

#[pymethods]
impl RawPacket {
    /// Its number, which no other packet in the queue has.
    #[getter]
    pub fn id(&self) -> u64 {
        self.packet.id.0
    }

    /// Its size in bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.packet.size.0
    }

    /// The number of its flow.
    #[getter]
    fn flow(&self) -> u32 {
        self.packet.flow.0
    }

    /// Its class of service.
    #[getter]
    fn traffic_class(&self) -> u8 {
        self.packet.class.0
    }

    /// `not-ect`, `ect0`, `ect1` or `ce`.
    #[getter]
    fn ecn(&self) -> &'static str {
        ecn_name(self.packet.ecn)
    }

    /// When it arrived, in nanoseconds.
    #[getter]
    fn arrived_ns(&self) -> u64 {
        self.arrived.0
    }

    fn __repr__(&self) -> String {
        let Packet { id, size, flow, .. } = self.packet;
        format!("<Packet {}: {} bytes of flow {}, {}>", id.0, size.0, flow.0, self.ecn())
    }
}

/// A packet that left a queue.
#[pyclass(frozen, name = "Departure", module = "queuescope")]
#[derive(Debug, Clone, Copy)]
pub struct RawDeparture {
    departure: Departure,
}

impl From<Departure> for RawDeparture {
    fn from(departure: Departure) -> Self {
        Self { departure }
    }
}

#[pymethods]
impl RawDeparture {
    /// The packet.
    #[getter]
    fn packet(&self) -> RawPacket {
        RawPacket::new(self.departure.packet, self.departure.enqueued)
    }

    /// When it arrived, in nanoseconds.
    #[getter]
    fn enqueued_ns(&self) -> u64 {
        self.departure.enqueued.0
    }

    /// When it left, in nanoseconds.
    #[getter]
    fn dequeued_ns(&self) -> u64 {
        self.departure.dequeued.0
    }

    /// How long it waited, in nanoseconds.
    #[getter]
    fn delay_ns(&self) -> u64 {
        self.departure.sojourn().0
    }

    /// Bytes in the queue when it arrived, without itself.
    #[getter]
    fn backlog_bytes(&self) -> u64 {
        self.departure.backlog_in.bytes.0
    }

    fn __repr__(&self) -> String {
        format!("<Departure of {}, after {} ns>", self.packet().__repr__(), self.delay_ns())
    }
}

/// The name of a codepoint.
pub fn ecn_name(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotEct => "not-ect",
        Ecn::Ect0 => "ect0",
        Ecn::Ect1 => "ect1",
        Ecn::Ce => "ce",
    }
}

/// A codepoint by its name.
pub fn ecn_of(name: &str) -> PyResult<Ecn> {
    let all = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
    let found = all.into_iter().find(|ecn| ecn_name(*ecn) == name);
    found.ok_or_else(|| PyValueError::new_err(format!("ecn= is '{name}': it must be not-ect, ect0, ect1 or ce")))
}
