//! Records what a queue did to each packet in a folder, with the packet's headers.

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

/// Writes records of the schema `queued` to a folder.
#[derive(Debug)]
pub struct QueuedLog {
    recording: Recording,
    record: Box<[u8; queued::SIZE]>,
}

impl QueuedLog {
    /// Opens or makes a folder, so that one that cannot be recorded to fails before the work is done. Packets that cannot be kept later are
    /// counted, and are not an error.
    ///
    /// # Errors
    /// Fails if it cannot be recorded to.
    pub fn open(path: &Path, keeping: &Keeping, notes: Notes) -> Result<Self, Error> {
        let recording = Recording::open(path, queued::schema(), keeping, None, notes)?;
        recording.go_on();
        Ok(Self { recording, record: Box::new([0; queued::SIZE]) })
    }

    /// Records that a packet with these headers left the queue.
    ///
    /// # Errors
    /// Fails if it cannot be kept.
    pub fn departed(&mut self, headers: &[u8; packet::SIZE], departure: &Departure) -> Result<(), Error> {
        queued::fill(&mut self.record, headers, departure, queued::LEFT);
        self.recording.push(self.record.as_slice())
    }

    /// Records that a packet with these headers was dropped.
    ///
    /// # Errors
    /// Fails if it cannot be kept.
    pub fn dropped(&mut self, headers: &[u8; packet::SIZE], dropped: &Dropped) -> Result<(), Error> {
        let none = Backlog::default();
        let Dropped { packet, queue, at, .. } = *dropped;
        let enqueued = dropped.enqueued.unwrap_or(at);
        let left = Departure { packet, queue, enqueued, dequeued: at, backlog_in: none, backlog_out: none };
        queued::fill(&mut self.record, headers, &left, number_of(dropped.reason));
        self.recording.push(self.record.as_slice())
    }

    /// Writes the records so far. Call this when the next packet may take a while.
    ///
    /// # Errors
    /// Fails if they cannot be kept.
    pub fn hand_over(&self) -> Result<(), Error> {
        self.recording.flush()
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// Fails if not all records are kept.
    pub fn finish(self) -> Result<Recorded, Error> {
        self.recording.finish()
    }
}

/// The number of a reason in the schema.
fn number_of(reason: DropReason) -> u8 {
    queued::LEFT + 1 + reason as u8
}

/// Keeps the headers of packets until their outcome is known, and records both. Memory is bounded by the packets that wait.
#[derive(Debug)]
pub struct Passing {
    log: QueuedLog,
    frames: Frames,
    waiting: VecDeque<Waiting>,
    flows: Lasting<()>,
    headless: u64,
}

/// The headers of packets in the queue.
#[derive(Debug)]
struct Waiting {
    headers: [u8; packet::SIZE],
    /// The packets of the frame: several if a super-packet was split.
    packets: Range<u64>,
    /// How many of them have neither left nor been dropped yet.
    unknown: u64,
}

impl Passing {
    /// No packet has come yet.
    pub fn new(log: QueuedLog) -> Self {
        Self { log, frames: Frames::default(), waiting: VecDeque::new(), flows: Lasting::new(), headless: 0 }
    }

    /// Call this for each frame, read at `time`, with the packets that it becomes: none if it is left out.
    pub fn read(&mut self, record: &Record<'_>, frame: &Frame, time: Nanos, packets: Range<u64>) {
        if !packets.is_empty() {
            let headers = *self.frames.fill(record, Some(time), frame);
            self.came(headers, packets);
        }
    }

    /// Call this when one or several packets with these headers come; their ids are above all earlier ones.
    pub fn came(&mut self, headers: [u8; packet::SIZE], packets: Range<u64>) {
        let unknown = packets.end - packets.start;
        self.waiting.push_back(Waiting { headers, packets, unknown });
    }

    /// Call this when a packet leaves the queue; `flow` is the current id of its flow.
    ///
    /// # Errors
    /// Fails if it cannot be kept.
    pub fn departed(&mut self, departure: &Departure, flow: FlowId) -> Result<(), Error> {
        let packet = self.numbered(departure.packet, flow);
        match headers(&mut self.waiting, packet) {
            Some(headers) => self.log.departed(headers, &Departure { packet, ..*departure })?,
            None => self.headless += 1,
        }
        self.forget_known();
        Ok(())
    }

    /// Call this when a packet is dropped.
    ///
    /// # Errors
    /// Fails if it cannot be kept.
    pub fn dropped(&mut self, dropped: &Dropped, flow: FlowId) -> Result<(), Error> {
        let packet = self.numbered(dropped.packet, flow);
        match headers(&mut self.waiting, packet) {
            Some(headers) => self.log.dropped(headers, &Dropped { packet, ..*dropped })?,
            None => self.headless += 1,
        }
        self.forget_known();
        Ok(())
    }

    /// Call this when the id of a flow is freed for reuse.
    pub fn forget(&mut self, flow: FlowId) {
        self.flows.forget(flow, &());
    }

    /// Packets that could not be kept so far, once there is an error.
    pub fn unwritten(&self) -> Option<Unwritten> {
        self.log.recording.unwritten()
    }

    /// Writes the known outcomes to the folder. Call this when the next packet may take a while.
    ///
    /// # Errors
    /// Fails if they cannot be kept.
    pub fn hand_over(&self) -> Result<(), Error> {
        self.log.hand_over()
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// Fails if not all records are kept.
    pub fn finish(self) -> Result<Recorded, Error> {
        let others = noted("not_recorded", self.headless, HEADLESS).into_iter().collect();
        Ok(Recorded { others, ..self.log.finish()? })
    }

    /// The packet, with a number of its flow that no other flow gets.
    fn numbered(&mut self, packet: Packet, flow: FlowId) -> Packet {
        Packet { flow: self.flows.id(flow), ..packet }
    }

    /// Drops the oldest headers whose outcomes are known.
    fn forget_known(&mut self) {
        while self.waiting.front().is_some_and(|waiting| waiting.unknown == 0) {
            self.waiting.pop_front();
        }
    }
}

const HEADLESS: &str = "packets whose arrival was not seen: their headers and arrival times are not known; \
                        not recorded";

/// The headers of a packet whose outcome is known now.
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
