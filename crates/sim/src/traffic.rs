//! Who sends in a simulation: connections that start one after the other, and sources of datagrams.

use crate::connection::{Connection, FlowRecord, Transport};
use crate::topology::NodeId;
use crate::workload::FlowStart;
use queuescope_queue::{Activity, Host};
use queuescope_wire::{Backlog, ByteCount, Class, Ecn, Nanos};
use std::fmt;

/// Bytes of an IPv4 and a UDP header.
pub(crate) const DATAGRAM_HEADERS: u32 = 28;

/// Who sends.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub connections: Vec<Connection>,
    /// Connections that are over, whose places can be used again.
    pub free: Vec<u32>,
    /// Flows that are over.
    pub records: Vec<FlowRecord>,
    pub started: u64,
    pub workloads: Vec<Workload>,
    pub sources: Vec<Source>,
    /// What became of datagrams that came from outside.
    pub foreign: Vec<DatagramRecord>,
    /// Flows of all sources.
    pub datagram_flows: u32,
}

/// Flows that start one after the other, of a group.
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

/// Whose datagrams, and how they are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramParams {
    /// The group of flows that they are of, by a number of the caller's.
    pub group: u32,
    /// Who sends.
    pub from: NodeId,
    /// Who receives.
    pub to: NodeId,
    /// Their class of service.
    pub class: Class,
    /// Their ECN codepoint.
    pub ecn: Ecn,
    /// How many flows they are of.
    pub flows: u32,
    /// The activity that their sender writes itself (ABC).
    pub activity: Option<Activity>,
}

/// A datagram that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// When.
    pub at: Nanos,
    /// Its bytes, from the network header on.
    pub size: ByteCount,
    /// Which of its source's flows it is of, from 0.
    pub flow: u32,
}

impl From<(Nanos, ByteCount)> for Datagram {
    /// Of the source's only flow.
    fn from((at, size): (Nanos, ByteCount)) -> Self {
        Self { at, size, flow: 0 }
    }
}

impl DatagramParams {
    /// Of the first group, in the first class, not ECN-capable.
    pub fn new(from: NodeId, to: NodeId) -> Self {
        Self { group: 0, from, to, class: Class(0), ecn: Ecn::NotEct, flows: 1, activity: None }
    }
}

/// What became of the datagrams of a source, since the warm-up; sizes are from the network header on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramRecord {
    /// The group of flows that it is of.
    pub group: u32,
    /// Who sent, and who received.
    pub hosts: [Host; 2],
    /// What was sent.
    pub sent: Backlog,
    /// What arrived.
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
