//! What becomes of packets on a link, for its meters.

use crate::sim::metered::Meters;
use anyhow::{Error, Result};
use queuescope_link::{Frame, Running, Watcher};
use queuescope_pcap::Record;
use queuescope_queue::{Dropped, MarkReason};
use queuescope_sim::{LinkId, OnItsWay, Simulation};
use queuescope_wire::{Departure, Nanos, Packet, PacketId};
use std::time::SystemTime;

/// The link type of packets that begin with an IP header.
const RAW: u32 = 101;

/// Who watches a link, until something that is asked now and then has ended.
pub struct Watched<F> {
    meters: Meters,
    has_ended: F,
    /// When the link began, since the Unix epoch.
    origin: Nanos,
    /// Packets that were told.
    told: u64,
    failure: Option<Error>,
}

impl<F: FnMut(Nanos) -> Result<bool>> Watched<F> {
    /// From now on.
    #[expect(clippy::disallowed_methods, reason = "what happens now is told by the time of day")]
    pub fn new(meters: Meters, has_ended: F) -> Self {
        let today = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let origin = Nanos(today.as_nanos() as u64);
        Self { meters, has_ended, origin, told: 0, failure: None }
    }

    /// What was measured.
    ///
    /// # Errors
    /// What went wrong meanwhile.
    pub fn finish(self) -> Result<Meters> {
        self.failure.map_or(Ok(self.meters), Err)
    }

    /// The next packet that is told, by its number among them; its bytes are told first.
    fn next(&mut self, packet: &Packet, came: Nanos, frame: &Frame) -> Packet {
        let id = self.told;
        self.told += 1;
        if let Some(seen) = frame.headers() {
            let time = self.origin.saturating_add(came);
            let bytes = frame.bytes();
            let record =
                Record { time: Some(time), link: RAW, interface: 0, original_len: bytes.len() as u32, data: bytes };
            self.note(|meters| meters.read(&record, seen, time, id));
        }
        Packet { id: PacketId(id), ..*packet }
    }

    fn note(&mut self, what: impl FnOnce(&mut Meters) -> Result<()>) {
        if self.failure.is_none() {
            self.failure = what(&mut self.meters).err();
        }
    }
}

impl<F: FnMut(Nanos) -> Result<bool>> Watcher for Watched<F> {
    fn departed(&mut self, link: LinkId, departure: &Departure, _packet: &OnItsWay, frame: &Frame) {
        if self.meters.is_watched(link) {
            let packet = self.next(&departure.packet, departure.enqueued, frame);
            self.meters.left(link, &Departure { packet, ..*departure }, || frame.key());
        }
    }

    fn dropped(&mut self, link: LinkId, dropped: &Dropped, _packet: &OnItsWay, frame: &Frame) {
        if self.meters.is_watched(link) {
            let packet = self.next(&dropped.packet, dropped.enqueued.unwrap_or(dropped.at), frame);
            self.meters.lost(link, &Dropped { packet, ..*dropped }, || frame.key());
        }
    }

    fn marked(&mut self, link: LinkId, marked: &Packet, reason: MarkReason, now: Nanos, _: &OnItsWay, frame: &Frame) {
        self.meters.got_marked(link, marked, reason, now, || frame.key());
    }

    fn look(&mut self, now: Nanos, _network: &Simulation) -> Running {
        self.note(Meters::check);
        match (self.has_ended)(now) {
            Ok(false) if self.failure.is_none() => Running::On,
            Ok(_) => Running::Over,
            Err(error) => {
                self.failure.get_or_insert(error);
                Running::Over
            }
        }
    }
}
