//! A table of departures as records of the schema `queued`.

use crate::error::Error;
use crate::queued::QueuedLog;
use crate::recording::Recorded;
use crate::spool::Unwritten;
use queuescope_archive::Recorder;
use queuescope_ingest::Listener;
use queuescope_ingest::notes::noted;
use queuescope_log::packet::{self, Known, Segment, fill_identity, fill_known};
use queuescope_queue::{Dropped, MarkReason, Sink};
use queuescope_sim::Output;
use queuescope_table::PacketIdentity;
use queuescope_wire::{Departure, FlowId, FlowKey, Nanos, Packet, PacketId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const TCP: u8 = 6;

/// Records the packets of a table. A flow whose name is not that of addresses and ports has none in its records. An error is kept, and ends the run at the next
/// row.
#[derive(Debug)]
pub struct TableLog {
    log: QueuedLog,
    flows: BTreeMap<Box<str>, FlowId>,
    /// The keys of flows, by id; none if the name has none.
    keys: Vec<Option<FlowKey>>,
    /// What distinguishes packets that have not left yet.
    identities: BTreeMap<PacketId, PacketIdentity>,
    unnamed: u64,
    /// Whether nothing distinguishes packets of a flow.
    anonymous: u64,
    headers: Box<[u8; packet::SIZE]>,
    failure: Option<Error>,
}

impl TableLog {
    /// Nothing was read yet.
    pub fn new(log: QueuedLog) -> Self {
        Self {
            log,
            flows: BTreeMap::new(),
            keys: Vec::new(),
            identities: BTreeMap::new(),
            unnamed: 0,
            anonymous: 0,
            headers: Box::new([0; packet::SIZE]),
            failure: None,
        }
    }

    /// The recorder, for readers in other threads, which must be gone before [`finish`](Self::finish).
    pub fn recorder(&self) -> Arc<Recorder> {
        self.log.recorder()
    }

    /// Records that could not be kept, once there is an error.
    pub fn unwritten(&self) -> Option<Unwritten> {
        self.log.unwritten()
    }

    /// Writes the records so far.
    ///
    /// # Errors
    /// Fails if they cannot be kept.
    pub fn hand_over(&mut self) -> Result<(), Error> {
        self.failure.take().map_or(Ok(()), Err)?;
        self.log.hand_over()
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// Fails if not all records are kept.
    pub fn finish(self) -> Result<Recorded, Error> {
        self.failure.map_or(Ok(()), Err)?;
        let notes = [
            noted(
                "unnamed",
                self.unnamed,
                "packets of flows whose names have no addresses, as 10.0.0.1:443 > 10.0.0.2:50010 tcp has: neither have their records",
            ),
            noted(
                "not_distinguished",
                self.anonymous,
                "packets that nothing distinguishes from others of their flow: other hosts do not recognise them (--columns ip_id=NAME,tcp_seq=NAME,tcp_ack=NAME,payload_length=NAME)",
            ),
        ];
        Ok(Recorded { others: notes.into_iter().flatten().collect(), ..self.log.finish()? })
    }
}

impl Output for TableLog {
    fn departed(&mut self, departure: &Departure) {
        let key = self.keys.get(departure.packet.flow.index()).copied().flatten();
        self.unnamed += u64::from(key.is_none());
        let length = u32::try_from(departure.packet.size.0).unwrap_or(u32::MAX);
        let (at, ecn, key) = (departure.enqueued, departure.packet.ecn, key.unwrap_or_default());
        let identity = self.identities.remove(&departure.packet.id);
        self.anonymous += u64::from(identity.is_none());
        let PacketIdentity { ip_id, tcp_seq, tcp_ack, payload_length: payload } = identity.unwrap_or_default();
        let tcp = (key.protocol == TCP).then(|| Segment { seq: tcp_seq, ack: tcp_ack, payload, ..Segment::default() });
        fill_known(&mut self.headers, &Known { at, length, key: &key, ecn, tcp });
        fill_identity(&mut self.headers, ip_id, payload);
        if self.failure.is_none() {
            self.failure = self.log.departed(&self.headers, departure).err();
        }
    }
}

impl Sink for TableLog {
    /// A table has no drops.
    fn dropped(&mut self, _: &Dropped) {}

    fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
}

impl Listener for TableLog {
    type Key = str;
    type Error = Error;

    fn intern(&mut self, name: &str, _: Nanos) -> FlowId {
        if let Some(flow) = self.flows.get(name) {
            return *flow;
        }
        let flow = FlowId(u32::try_from(self.keys.len()).unwrap_or(u32::MAX));
        self.keys.push(FlowKey::named(name).map(|(_, key)| key));
        self.flows.insert(name.into(), flow);
        flow
    }

    fn identified(&mut self, packet: PacketId, identity: PacketIdentity) {
        self.identities.insert(packet, identity);
    }

    fn row(&mut self, _: Range<u64>) -> Result<(), Error> {
        self.failure.take().map_or(Ok(()), Err)
    }
}
