//! An analysis as a [`Listener`] of a capture or a table.

use super::Analysis;
use super::watcher::Watcher;
use crate::index::name_digest;
use queuescope_ingest::{Listener, SeenFlow};
use queuescope_log::packet;
use queuescope_pcap::Record;
use queuescope_wire::parse::Frame;
use queuescope_wire::{Departure, FlowId, FlowTable, Flows, MaskedKey, Nanos, PacketId};
use std::ops::Range;

impl<W: Watcher> Analysis<Flows, W> {
    /// Adds drops of packets of a flow that arrived at `arrived`, by which only its behaviour is judged: bursts have them by
    /// [`lost`](Self::lost). A flow of which no packet has left is not judged.
    pub fn lost_of(&mut self, key: &MaskedKey, arrived: Nanos, packets: u64) {
        if let (Some(behaviours), Some(flow)) = (&mut self.behaviours, self.index.find(key)) {
            let flow = self.index.project(0, flow);
            (0..packets).for_each(|_| behaviours.dropped(flow, arrived));
        }
    }
}

impl<W: Watcher> Listener for Analysis<Flows, W> {
    type Key = MaskedKey;
    type Error = W::Error;

    #[inline]
    fn intern(&mut self, key: &MaskedKey, now: Nanos) -> FlowId {
        self.make_room(now);
        let levels = &mut self.levels;
        self.index.intern(key, now, |level, digest| levels[level].distinct.insert(digest))
    }

    #[inline]
    fn again(&mut self, seen: SeenFlow, now: Nanos) -> bool {
        // If there may be no room, `intern` makes some first.
        let is_certain = seen.era == self.era && !self.index.is_full() && self.params.most_flows.is_none();
        if is_certain {
            self.index.seen(seen.flow, now);
        }
        is_certain
    }

    #[inline]
    fn era(&self) -> u32 {
        self.era
    }

    #[inline]
    fn wants_frames(&self) -> bool {
        self.watcher.wants_packets()
    }

    #[inline]
    fn read(&mut self, record: &Record<'_>, frame: Frame, time: Nanos, packets: Range<u64>) -> Result<(), Self::Error> {
        if self.watcher.wants_packets() { self.watcher.read(record, frame, time, packets) } else { Ok(()) }
    }

    fn came(&mut self, packet: PacketId, headers: [u8; packet::SIZE]) {
        self.watcher.came(packet, headers);
    }

    fn passed(&mut self, departure: &Departure) {
        Analysis::passed(self, departure);
    }

    fn hand_over(&mut self) -> Result<(), Self::Error> {
        self.watcher.hand_over()
    }

    fn moved(&mut self) {
        self.is_moved = true;
    }
}

impl<W: Watcher> Listener for Analysis<FlowTable<Box<str>>, W> {
    type Key = str;
    type Error = W::Error;

    fn intern(&mut self, name: &str, now: Nanos) -> FlowId {
        self.make_room(now);
        let digest = name_digest(name);
        let (flow, new) = self.index.intern(name, digest, now);
        if new {
            self.levels[0].distinct.insert(digest);
        }
        flow
    }

    fn row(&mut self, _packets: Range<u64>) -> Result<(), Self::Error> {
        self.watcher.check()
    }

    fn moved(&mut self) {
        self.is_moved = true;
    }
}
