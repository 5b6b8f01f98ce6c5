//! An analysis beside outputs for each packet, which listens to a capture or a table.

use super::Analysis;
use crate::door::Door;
use crate::outputs::Outputs;
use crate::spool::Unwritten;
use anyhow::Result;
use queuescope_ingest::Listener;
use queuescope_log::packet;
use queuescope_pcap::Record;
use queuescope_wire::parse::Frame;
use queuescope_wire::{FlowId, FlowTable, Flows, MaskedKey, Nanos, PacketId};
use std::ops::Range;

impl Listener for Analysis<Flows, Outputs> {
    type Key = MaskedKey;
    type Error = anyhow::Error;

    #[inline]
    fn intern(&mut self, key: &MaskedKey, now: Nanos) -> FlowId {
        self.make_room(now);
        let levels = &mut self.levels;
        self.door.intern(key, now, |level, digest| levels[level].distinct.insert(digest))
    }

    #[inline]
    fn read(&mut self, record: &Record<'_>, frame: Frame, time: Nanos, packets: Range<u64>) -> Result<()> {
        if self.watcher.wants_packets() { self.watcher.read(record, frame, time, packets) } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<()> {
        self.watcher.hand_over()
    }

    fn moved(&mut self) {
        self.is_moved = true;
    }
}

impl Listener for Analysis<FlowTable<Box<str>>, Outputs> {
    type Key = str;
    type Error = anyhow::Error;

    fn intern(&mut self, name: &str, now: Nanos) -> FlowId {
        self.make_room(now);
        let digest = crate::door::name_digest(name);
        let (flow, new) = self.door.intern(name, digest, now);
        if new {
            self.levels[0].distinct.insert(digest);
        }
        flow
    }

    fn row(&mut self, _packets: Range<u64>) -> Result<()> {
        self.check()
    }

    fn moved(&mut self) {
        self.is_moved = true;
    }
}

impl<D: Door> Analysis<D, Outputs> {
    /// What went wrong with the outputs since the last call.
    ///
    /// # Errors
    /// That.
    pub fn check(&mut self) -> Result<()> {
        self.watcher.check()
    }

    /// What could not be written so far.
    pub fn unwritten(&mut self) -> Vec<Unwritten> {
        self.watcher.unwritten()
    }

    /// A packet comes with such headers, for outputs that tell them.
    pub fn came(&mut self, packet: PacketId, headers: [u8; packet::SIZE]) {
        self.watcher.came(packet, headers);
    }
}
