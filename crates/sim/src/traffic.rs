//! The senders of a simulation: connections that start one after another, and sources of datagrams.

use crate::connection::{Connection, FlowRecord, Transport};
use crate::topology::NodeId;
use crate::workload::FlowStart;
use queuescope_queue::{Activity, Host};
use queuescope_wire::{Backlog, ByteCount, Class, Ecn, Nanos};
use std::fmt;

/// Bytes of an IPv4 and a UDP header.
pub(crate) const DATAGRAM_HEADERS: u32 = 28;

/// All senders.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub connections: Vec<Connection>,
    /// Slots of connections that are over, for reuse.
    pub free: Vec<u32>,
    /// Results of flows that are over.
    pub records: Vec<FlowRecord>,
    pub started: u64,
    pub workloads: Vec<Workload>,
    pub sources: Vec<Source>,
    /// Results of datagrams that came from outside.
    pub foreign: Vec<DatagramRecord>,
    /// Number of flows of all sources.
    pub datagram_flows: u32,
    /// Flows that could not start, because there is no route.
    pub without_route: u64,
}

/// Flows of a group that start one after another.
pub(crate) struct Workload {
    pub group: u32,
    pub transport: Transport,
    pub starts: Box<dyn Iterator<Item = FlowStart> + Send>,
    pub next: Option<FlowStart>,
}

/// A source of datagrams.
pub(crate) struct Source {
    pub datagrams: Box<dyn Iterator<Item = Datagram> + Send>,
    pub next: Option<Datagram>,
    pub route: u32,
    pub hosts: [Host; 2],
    /// The number of its first flow among those of all sources.
    pub first: u32,
    pub class: Class,
    pub ecn: Ecn,
    pub activity: Option<Activity>,
    pub record: DatagramRecord,
}

/// Sender, receiver and marking of a source of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramParams {
    /// The group of flows, a number of the caller's choice.
    pub group: u32,
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// Their class of service.
    pub class: Class,
    /// Their ECN codepoint.
    pub ecn: Ecn,
    /// The number of flows.
    pub flows: u32,
    /// The activity that their sender writes itself (ABC).
    pub activity: Option<Activity>,
}

/// A datagram to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// The time when it is sent.
    pub at: Nanos,
    /// Its size in bytes, from the network header on.
    pub size: ByteCount,
    /// Its flow, among those of its source, from 0.
    pub flow: u32,
}

impl From<(Nanos, ByteCount)> for Datagram {
    /// In the source's only flow.
    fn from((at, size): (Nanos, ByteCount)) -> Self {
        Self { at, size, flow: 0 }
    }
}

impl DatagramParams {
    /// In group 0 and the first class, not ECN-capable.
    pub fn new(from: NodeId, to: NodeId) -> Self {
        Self { group: 0, from, to, class: Class(0), ecn: Ecn::NotEct, flows: 1, activity: None }
    }
}

/// The results of a source of datagrams since the warm-up; sizes are from the network header on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramRecord {
    /// Its group of flows.
    pub group: u32,
    /// The sender and the receiver.
    pub hosts: [Host; 2],
    /// Datagrams that were sent.
    pub sent: Backlog,
    /// Datagrams that arrived.
    pub delivered: Backlog,
}

impl DatagramRecord {
    /// Bytes that arrived, without headers.
    pub fn payload_delivered(&self) -> u64 {
        self.delivered.bytes.0.saturating_sub(u64::from(DATAGRAM_HEADERS) * self.delivered.packets)
    }
}

impl fmt::Debug for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workload").field("group", &self.group).field("next", &self.next).finish_non_exhaustive()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("next", &self.next).field("record", &self.record).finish_non_exhaustive()
    }
}
