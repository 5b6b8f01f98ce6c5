//! What a queue did to each packet, into a folder, with the packet's headers.

use crate::error::Error;
use crate::keeping::Keeping;
use crate::recording::{Notes, Recorded, Recording};
use crate::spool::Unwritten;
use queuescope_analysis::Lasting;
use queuescope_ingest::notes::noted;
use queuescope_ingest::records::Frames;
use queuescope_log::{packet, queued};
use queuescope_pcap::Record;
use queuescope_queue::{DropReason, Dropped};
use queuescope_wire::parse::Frame;
use queuescope_wire::{Backlog, Departure, FlowId, Nanos, Packet};
use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;

/// Records of the schema `queued` on their way to a folder.
#[derive(Debug)]
pub struct QueuedLog {
    recording: Recording,
    record: Box<[u8; queued::SIZE]>,
}

impl QueuedLog {
    /// Opens a folder, or makes it, so that one that cannot be recorded to fails before the work is done. What cannot be kept later is
    /// counted, and is no error.
    ///
    /// # Errors
    /// If it cannot be recorded to.
    pub fn open(path: &Path, keeping: &Keeping, notes: Notes) -> Result<Self, Error> {
        let recording = Recording::open(path, queued::schema(), keeping, None, notes)?;
        recording.go_on();
        Ok(Self { recording, record: Box::new([0; queued::SIZE]) })
    }

    /// A packet with such headers left the queue.
    ///
    /// # Errors
    /// If it cannot be kept.
    pub fn departed(&mut self, headers: &[u8; packet::SIZE], departure: &Departure) -> Result<(), Error> {
        queued::fill(&mut self.record, headers, departure, queued::LEFT);
        self.recording.push(self.record.as_slice())
    }

    /// A packet with such headers was dropped.
    ///
    /// # Errors
    /// If it cannot be kept.
    pub fn dropped(&mut self, headers: &[u8; packet::SIZE], dropped: &Dropped) -> Result<(), Error> {
        let none = Backlog::default();
        let Dropped { packet, queue, at, .. } = *dropped;
        let enqueued = dropped.enqueued.unwrap_or(at);
        let left = Departure { packet, queue, enqueued, dequeued: at, backlog_in: none, backlog_out: none };
        queued::fill(&mut self.record, headers, &left, number_of(dropped.reason));
        self.recording.push(self.record.as_slice())
    }

    /// The next packet may be a while.
    ///
    /// # Errors
    /// If what came before cannot be kept.
    pub fn hand_over(&self) -> Result<(), Error> {
        self.recording.flush()
    }

    /// Nothing more comes.
    ///
    /// # Errors
    /// If not all is kept.
    pub fn finish(self) -> Result<Recorded, Error> {
        self.recording.finish()
    }
}

/// The number of a reason in the schema.
fn number_of(reason: DropReason) -> u8 {
    queued::LEFT + 1 + reason as u8
}

/// Keeps the headers of packets until it is known what became of them, and records both. Memory is bounded by what waits.
#[derive(Debug)]
pub struct Passing {
    log: QueuedLog,
    frames: Frames,
    waiting: VecDeque<Waiting>,
    flows: Lasting<()>,
    headless: u64,
}

/// The headers of what is in the queue.
#[derive(Debug)]
struct Waiting {
    headers: [u8; packet::SIZE],
    /// The packets that the frame became: several if a super-packet was split.
    packets: Range<u64>,
    /// How many of them neither left nor were dropped yet.
    unknown: u64,
}

impl Passing {
    /// Nothing has come yet.
    pub fn new(log: QueuedLog) -> Self {
        Self { log, frames: Frames::default(), waiting: VecDeque::new(), flows: Lasting::new(), headless: 0 }
    }

    /// A frame was read at `time`, which becomes these packets: none if it is left out.
    pub fn read(&mut self, record: &Record<'_>, frame: &Frame, time: Nanos, packets: Range<u64>) {
        if !packets.is_empty() {
            let headers = *self.frames.fill(record, Some(time), frame);
            self.came(headers, packets);
        }
    }

    /// A packet came with such headers, or several; their ids are above those before them.
    pub fn came(&mut self, headers: [u8; packet::SIZE], packets: Range<u64>) {
        let unknown = packets.end - packets.start;
        self.waiting.push_back(Waiting { headers, packets, unknown });
    }

    /// A packet left the queue, of the flow that has the id `flow` at the moment.
    ///
    /// # Errors
    /// If it cannot be kept.
    pub fn departed(&mut self, departure: &Departure, flow: FlowId) -> Result<(), Error> {
        let packet = self.numbered(departure.packet, flow);
        match headers(&mut self.waiting, packet) {
            Some(headers) => self.log.departed(headers, &Departure { packet, ..*departure })?,
            None => self.headless += 1,
        }
        self.forget_known();
        Ok(())
    }

    /// A packet was dropped.
    ///
    /// # Errors
    /// If it cannot be kept.
    pub fn dropped(&mut self, dropped: &Dropped, flow: FlowId) -> Result<(), Error> {
        let packet = self.numbered(dropped.packet, flow);
        match headers(&mut self.waiting, packet) {
            Some(headers) => self.log.dropped(headers, &Dropped { packet, ..*dropped })?,
            None => self.headless += 1,
        }
        self.forget_known();
        Ok(())
    }

    /// The id of a flow is taken back.
    pub fn forget(&mut self, flow: FlowId) {
        self.flows.forget(flow, &());
    }

    /// What could not be kept so far, once something could not be.
    pub fn unwritten(&self) -> Option<Unwritten> {
        self.log.recording.unwritten()
    }

    /// The next packet may be a while: what is known goes to the folder.
    ///
    /// # Errors
    /// If it cannot be kept.
    pub fn hand_over(&self) -> Result<(), Error> {
        self.log.hand_over()
    }

    /// Nothing more comes.
    ///
    /// # Errors
    /// If not all is kept.
    pub fn finish(self) -> Result<Recorded, Error> {
        let others = noted("not_recorded", self.headless, HEADLESS).into_iter().collect();
        Ok(Recorded { others, ..self.log.finish()? })
    }

    /// The packet under the number of its flow that no other flow gets.
    fn numbered(&mut self, packet: Packet, flow: FlowId) -> Packet {
        Packet { flow: self.flows.id(flow), ..packet }
    }

    /// The oldest go when it is known what became of them.
    fn forget_known(&mut self) {
        while self.waiting.front().is_some_and(|waiting| waiting.unknown == 0) {
            self.waiting.pop_front();
        }
    }
}

const HEADLESS: &str = "packets that were not seen to come in: what they were then, and since when they waited, is not known; \
                        not recorded";

/// The headers of a packet of which it is known now what became of it.
fn headers(waiting: &mut VecDeque<Waiting>, packet: Packet) -> Option<&[u8; packet::SIZE]> {
    let position = waiting.partition_point(|waiting| waiting.packets.end <= packet.id.0);
    let found = waiting.get_mut(position).filter(|waiting| waiting.packets.contains(&packet.id.0))?;
    found.unknown -= 1;
    Some(&found.headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_the_names_of_the_schema() {
        let schema = queued::schema();
        let dropped = schema.attribute(schema.find("dropped").unwrap());
        assert_eq!(dropped.values.len(), DropReason::ALL.len() + 1);
        assert_eq!(dropped.key_of("no"), Ok(u128::from(queued::LEFT)));
        for reason in DropReason::ALL {
            let name = reason.name().replace('-', "_");
            assert_eq!(dropped.key_of(&name), Ok(u128::from(number_of(reason))), "{name}");
        }
    }
}
