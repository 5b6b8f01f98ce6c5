//! What becomes of packets on a link, for its meters; and of the command behind it.

use crate::sim::metered::Meters;
use crate::stop::Stop;
use anyhow::{Error, Result};
use queuescope_link::command::Behind;
use queuescope_link::{Frame, Running, Watcher};
use queuescope_pcap::Record;
use queuescope_queue::{Dropped, MarkReason};
use queuescope_sim::{LinkId, OnItsWay, Simulation};
use queuescope_wire::{Departure, Nanos, Packet, PacketId};
use std::process::ExitStatus;
use std::time::SystemTime;

/// How long a command that was told to end may take.
const GRACE: Nanos = Nanos(1_000_000_000);
/// The link type of packets that begin with an IP header.
const RAW: u32 = 101;

/// Who watches a link while a command runs behind it.
pub struct Watched<'a> {
    meters: Meters,
    behind: &'a mut Behind,
    stop: &'a Stop,
    /// When the link began, since the Unix epoch.
    origin: Nanos,
    /// Packets that were told.
    told: u64,
    /// When the command has to have ended that was told to.
    until: Option<Nanos>,
    status: Option<ExitStatus>,
    failure: Option<Error>,
}

impl<'a> Watched<'a> {
    /// From now on.
    #[expect(clippy::disallowed_methods, reason = "what happens now is told by the time of day")]
    pub fn new(meters: Meters, behind: &'a mut Behind, stop: &'a Stop) -> Self {
        let today = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let origin = Nanos(today.as_nanos() as u64);
        Self { meters, behind, stop, origin, told: 0, until: None, status: None, failure: None }
    }

    /// How the command ended, what was measured, and what went wrong.
    pub fn into_parts(self) -> (Option<ExitStatus>, Meters, Option<Error>) {
        (self.status, self.meters, self.failure)
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

    fn ended(&mut self, now: Nanos) -> Result<bool> {
        self.status = self.behind.ended()?;
        if self.status.is_none() && self.stop.is_asked() {
            let until = *self.until.get_or_insert(now.saturating_add(GRACE));
            if now >= until {
                self.status = Some(self.behind.end()?);
            }
        }
        Ok(self.status.is_some())
    }
}

impl Watcher for Watched<'_> {
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
        match self.ended(now) {
            Ok(false) if self.failure.is_none() => Running::On,
            Ok(_) => Running::Over,
            Err(error) => {
                self.failure.get_or_insert(error);
                Running::Over
            }
        }
    }
}
