//! What the queues of a simulation did to each packet, into a folder.

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

/// Records what passes the measured links of a simulation, under the number of the link as that of the queue,
/// in the order of the topology. An error is kept, and ends the run at its next step.
#[derive(Debug)]
pub struct SimulatedLog {
    log: QueuedLog,
    chosen: Option<PacketFilter<Departures>>,
    /// Whether a link is measured, by its number; and the names of those.
    measured: Vec<bool>,
    names: Vec<(LinkId, String)>,
    /// What happens before does not count.
    from: Nanos,
    /// Packets that were marked where they are at the moment, and their codepoints before that.
    marked: BTreeMap<(LinkId, PacketId), Ecn>,
    headers: Box<[u8; packet::SIZE]>,
    failure: Option<Error>,
}

impl SimulatedLog {
    /// Of all packets, or of those that are chosen.
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

    /// What went wrong since the last call.
    ///
    /// # Errors
    /// That.
    pub fn check(&mut self) -> Result<(), Error> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Nothing more comes.
    ///
    /// # Errors
    /// If not all is kept.
    pub fn finish(mut self) -> Result<Recorded, Error> {
        self.check()?;
        let left_out = self.chosen.as_ref().map_or(0, PacketFilter::left_out);
        let others = [noted("not_recorded", left_out, NOT_MEANT), self.names()].into_iter().flatten().collect();
        Ok(Recorded { others, ..self.log.finish()? })
    }

    /// Which numbers of queues are which links.
    fn names(&self) -> Option<Skipped> {
        let more = if self.names.len() > NAMED { ", ..." } else { "" };
        let names: Vec<_> = self.names.iter().take(NAMED).map(|(link, name)| format!("{} is {name}", link.0)).collect();
        let meaning = format!("links whose packets were recorded; as `queue`, {}{more}", names.join(", "));
        noted("queues", self.names.len() as u64, &meaning)
    }

    /// Whether what happened to a packet is recorded, by when it came, or was dropped.
    fn wants(&mut self, link: LinkId, at: Nanos, departure: &Departure, packet: &InFlight) -> bool {
        self.failure.is_none()
            && self.measured[link.index()]
            && at >= self.from
            && self.chosen.as_mut().is_none_or(|chosen| chosen.holds(&for_expressions(departure), &packet.key()))
    }

    /// What is known of the packet's headers, as if it had been captured when it came to the queue.
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
        // What is known of it on its way is not changed yet, unless it was marked here before.
        if self.measured[link.index()] {
            self.marked.entry((link, marked.id)).or_insert(packet.ecn);
        }
    }
}

const NOT_MEANT: &str = "packets, of all links, of which --input does not hold; not recorded";

/// Links that are named in a note.
const NAMED: usize = 12;

/// The queue of a link, as far as numbers of queues go.
fn queue(link: LinkId) -> QueueId {
    QueueId(u16::try_from(link.0).unwrap_or(u16::MAX))
}
