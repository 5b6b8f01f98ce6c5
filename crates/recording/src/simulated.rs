//! Records what the queues of a simulation did to each packet in a folder.

use crate::error::Error;
use crate::queued::QueuedLog;
use crate::recording::Recorded;
use queuescope_ingest::PacketFilter;
use queuescope_ingest::notes::noted;
use queuescope_ingest::records::{Departures, as_departure, for_expressions, numbered};
use queuescope_log::packet::{self, Known, fill_known};
use queuescope_queue::{Dropped, Headers, MarkReason};
use queuescope_report::model::Skipped;
use queuescope_sim::{InFlight, LinkId, Observer, Simulation, segment};
use queuescope_wire::{Departure, Ecn, Nanos, Packet, PacketId, QueueId};
use std::collections::BTreeMap;

/// Records the packets that pass the measured links of a simulation. The number of the queue is the number of the link
/// in the order of the topology. An error is kept, and ends the run at its next step.
#[derive(Debug)]
pub struct SimulatedLog {
    log: QueuedLog,
    chosen: Option<PacketFilter<Departures>>,
    /// Whether a link is measured, by its number; and the names of measured links.
    measured: Vec<bool>,
    names: Vec<(LinkId, String)>,
    /// Earlier packets are not recorded.
    from: Nanos,
    /// Packets that were marked in the queue where they are now, and their codepoints before that.
    marked: BTreeMap<(LinkId, PacketId), Ecn>,
    headers: Box<[u8; packet::SIZE]>,
    failure: Option<Error>,
}

impl SimulatedLog {
    /// Records all packets, or those that match the filter.
    pub fn new(log: QueuedLog, simulation: &Simulation, chosen: Option<PacketFilter<Departures>>) -> Self {
        let mut measured = vec![false; simulation.topology().links().count()];
        simulation.measured().for_each(|link| measured[link.index()] = true);
        let name = |link| (link, simulation.topology().link(link).name.clone());
        Self {
            log,
            chosen,
            measured,
            names: simulation.measured().map(name).collect(),
            from: simulation.warmup(),
            marked: BTreeMap::new(),
            headers: Box::new([0; packet::SIZE]),
            failure: None,
        }
    }

    /// Returns the error since the last call, if any.
    ///
    /// # Errors
    /// Returns that error.
    pub fn check(&mut self) -> Result<(), Error> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// Fails if not all records are kept.
    pub fn finish(mut self) -> Result<Recorded, Error> {
        self.check()?;
        let left_out = self.chosen.as_ref().map_or(0, PacketFilter::left_out);
        let others = [noted("not_recorded", left_out, NOT_MEANT), self.names()].into_iter().flatten().collect();
        Ok(Recorded { others, ..self.log.finish()? })
    }

    /// A note with the links of the queues' numbers.
    fn names(&self) -> Option<Skipped> {
        let more = if self.names.len() > NAMED { ", ..." } else { "" };
        let names: Vec<_> = self.names.iter().take(NAMED).map(|(link, name)| format!("{} is {name}", link.0)).collect();
        let meaning = format!("links whose packets were recorded; as `queue`, {}{more}", names.join(", "));
        noted("queues", self.names.len() as u64, &meaning)
    }

    /// Whether to record a packet, by the time when it came or was dropped.
    fn wants(&mut self, link: LinkId, at: Nanos, departure: &Departure, packet: &InFlight) -> bool {
        self.failure.is_none()
            && self.measured[link.index()]
            && at >= self.from
            && self.chosen.as_mut().is_none_or(|chosen| chosen.holds(&for_expressions(departure), &packet.key()))
    }

    /// The known header fields of the packet, as if it had been captured on arrival at the queue.
    fn fill(&mut self, at: Nanos, ecn: Ecn, packet: &InFlight, headers: &Headers) {
        fill_known(
            &mut self.headers,
            &Known { at, length: packet.bytes, key: &packet.key(), ecn, tcp: segment(headers) },
        );
    }
}

impl Observer for SimulatedLog {
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &InFlight, headers: &Headers) {
        let before = self.marked.remove(&(link, departure.packet.id));
        if !self.wants(link, departure.enqueued, departure, packet) {
            return;
        }
        let ecn = before.unwrap_or(departure.packet.ecn);
        self.fill(departure.enqueued, ecn, packet, headers);
        let departure = Departure { packet: numbered(departure.packet), queue: queue(link), ..*departure };
        self.failure = self.log.departed(&self.headers, &departure).err();
    }

    fn dropped(&mut self, link: LinkId, dropped: &Dropped, packet: &InFlight, headers: &Headers) {
        let before = self.marked.remove(&(link, dropped.packet.id));
        let enqueued = dropped.enqueued.unwrap_or(dropped.at);
        let left = as_departure(dropped.packet, dropped.queue, enqueued, dropped.at);
        if !self.wants(link, dropped.at, &left, packet) {
            return;
        }
        self.fill(enqueued, before.unwrap_or(dropped.packet.ecn), packet, headers);
        let dropped = Dropped { packet: numbered(dropped.packet), queue: queue(link), ..*dropped };
        self.failure = self.log.dropped(&self.headers, &dropped).err();
    }

    fn marked(&mut self, link: LinkId, marked: &Packet, _: MarkReason, _: Nanos, packet: &InFlight) {
        // Its fields on the path are not changed yet, unless it was marked here before.
        if self.measured[link.index()] {
            self.marked.entry((link, marked.id)).or_insert(packet.ecn);
        }
    }
}

const NOT_MEANT: &str = "packets, of all links, that do not match --input; not recorded";

/// The most links that a note names.
const NAMED: usize = 12;

/// The queue number of a link, saturating at the highest number.
fn queue(link: LinkId) -> QueueId {
    QueueId(u16::try_from(link.0).unwrap_or(u16::MAX))
}
