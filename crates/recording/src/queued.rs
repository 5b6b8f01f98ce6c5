//! Records what a queue did to each packet in a folder, with the packet's headers.

use crate::error::Error;
use crate::hops::SwitchHop;
use crate::keep_options::KeepOptions;
use crate::recording::{Notes, Recorded, Recording};
use crate::spool::Unwritten;
use queuescope_analysis::Lasting;
use queuescope_archive::{Recorder, schema};
use queuescope_ingest::notes::noted;
use queuescope_ingest::records::Frames;
use queuescope_log::{packet, queued};
use queuescope_pcap::Record;
use queuescope_queue::{DropReason, Dropped};
use queuescope_report::model::Skipped;
use queuescope_wire::parse::Frame;
use queuescope_wire::{Backlog, Departure, FlowId, Nanos, Packet};
use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Writes records of the schema `queued` to a folder.
#[derive(Debug)]
pub struct QueuedLog {
    recording: Recording,
    record: Box<[u8; queued::SIZE]>,
    /// The bytes of a record that the folder has: in one of an earlier version, not all.
    size: usize,
}

impl QueuedLog {
    /// Opens or makes a folder, so that one that cannot be recorded to fails before the work is done. Packets that cannot be kept later are
    /// counted, and are not an error. A folder of an earlier version goes on as it is: its records lack the last attributes.
    ///
    /// # Errors
    /// Fails if it cannot be recorded to.
    pub fn open(path: &Path, keeping: &KeepOptions, notes: Notes) -> Result<Self, Error> {
        // If the folder cannot be read, the recording says why.
        let earlier = schema(path).ok().filter(|known| known.is_beginning_of(queued::schema()));
        let known = earlier.as_ref().unwrap_or(queued::schema());
        let recording = Recording::open(path, known, keeping, None, notes)?;
        recording.go_on();
        Ok(Self { recording, record: Box::new([0; queued::SIZE]), size: known.record_size() })
    }

    fn push(&self) -> Result<(), Error> {
        self.recording.push(&self.record[..self.size])
    }

    /// The recorder, for readers in other threads. [`finish`](Self::finish) fails while one of these is left.
    pub fn recorder(&self) -> Arc<Recorder> {
        self.recording.shared_recorder()
    }

    /// Records that a packet with these headers left the queue.
    ///
    /// # Errors
    /// Fails if it cannot be kept.
    pub fn departed(&mut self, headers: &[u8; packet::SIZE], departure: &Departure) -> Result<(), Error> {
        queued::fill(&mut self.record, headers, departure, queued::LEFT);
        self.push()
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
        self.push()
    }

    /// Records what a switch reported of a packet with these headers.
    ///
    /// # Errors
    /// Fails if it cannot be kept, or if the folder's records have no switches.
    pub fn reported(&mut self, headers: &[u8; packet::SIZE], hop: &SwitchHop) -> Result<(), Error> {
        if self.size < queued::SIZE {
            return Err(Error::NoSwitches(self.recording.path().to_owned()));
        }
        let dropped = if hop.is_dropped { queued::REPORTED } else { queued::LEFT };
        queued::fill(&mut self.record, headers, &hop.departure, dropped);
        queued::fill_place(&mut self.record, hop.place, hop.is_timed);
        self.push()
    }

    /// Packets that could not be kept so far, once there is an error.
    pub fn unwritten(&self) -> Option<Unwritten> {
        self.recording.unwritten()
    }

    /// Notes what has been left out so far: see [`Recording::left_out`].
    pub fn left_out(&self, now: Nanos, slack: Nanos, totals: &[Skipped]) {
        self.recording.left_out(now, slack, totals);
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
pub struct PendingPackets {
    log: QueuedLog,
    frames: Frames,
    waiting: VecDeque<Waiting>,
    flows: Lasting<()>,
    headless: u64,
    /// Nanoseconds from the clock of departures to that of records.
    to_epoch: u64,
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

impl PendingPackets {
    /// No packet has come yet.
    pub fn new(log: QueuedLog) -> Self {
        Self {
            log,
            frames: Frames::default(),
            waiting: VecDeque::new(),
            flows: Lasting::new(),
            headless: 0,
            to_epoch: 0,
        }
    }

    /// Adds this many nanoseconds to the times of departures and drops, so that records of a clock that starts at boot have times since the Unix
    /// epoch.
    pub fn shift_times(&mut self, to_epoch: u64) {
        self.to_epoch = to_epoch;
    }

    fn since_epoch(&self, time: Nanos) -> Nanos {
        Nanos(time.0.saturating_add(self.to_epoch))
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
        let (enqueued, dequeued) = (self.since_epoch(departure.enqueued), self.since_epoch(departure.dequeued));
        match headers(&mut self.waiting, packet) {
            Some(headers) => self.log.departed(&headers, &Departure { packet, enqueued, dequeued, ..*departure })?,
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
        let (enqueued, at) = (dropped.enqueued.map(|time| self.since_epoch(time)), self.since_epoch(dropped.at));
        match headers(&mut self.waiting, packet) {
            Some(headers) => self.log.dropped(&headers, &Dropped { packet, enqueued, at, ..*dropped })?,
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
        self.log.unwritten()
    }

    /// Notes what has been left out so far, and packets whose headers were not read: see [`Recording::left_out`].
    pub fn left_out(&self, now: Nanos, slack: Nanos, totals: &[Skipped]) {
        let headless = noted("not_recorded", self.headless, HEADLESS);
        let all: Vec<_> = totals.iter().cloned().chain(headless).collect();
        self.log.left_out(now, slack, &all);
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

/// The headers of a packet whose outcome is known now. A packet of a split super-packet has its own length: the bytes that the queue held of it.
fn headers(waiting: &mut VecDeque<Waiting>, packet: Packet) -> Option<[u8; packet::SIZE]> {
    let position = waiting.partition_point(|waiting| waiting.packets.end <= packet.id.0);
    let found = waiting.get_mut(position).filter(|waiting| waiting.packets.contains(&packet.id.0))?;
    found.unknown -= 1;
    let mut headers = found.headers;
    if found.packets.end - found.packets.start > 1 {
        packet::fill_length(&mut headers, u32::try_from(packet.size.0).unwrap_or(u32::MAX));
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_wire::{ByteCount, Class, Ecn, PacketId};

    #[test]
    fn packets_of_a_super_packet_have_their_own_lengths() {
        let length =
            |headers: [u8; packet::SIZE]| u32::from_le_bytes([headers[8], headers[9], headers[10], headers[11]]);
        let mut whole = [0; packet::SIZE];
        packet::fill_length(&mut whole, 4_000);
        let came = |packets: Range<u64>| Waiting { headers: whole, unknown: packets.end - packets.start, packets };
        let mut waiting = VecDeque::from([came(0..3), came(3..4)]);
        let sizes = [1_500, 1_500, 1_100, 4_000];
        let lengths = (0..).zip(sizes).map(|(id, size)| {
            let (id, size, flow) = (PacketId(id), ByteCount(size), FlowId(0));
            length(headers(&mut waiting, Packet { id, flow, size, class: Class(0), ecn: Ecn::NotEct }).unwrap())
        });
        assert_eq!(lengths.collect::<Vec<_>>(), [1_500, 1_500, 1_100, 4_000]);
        assert!(waiting.iter().all(|waiting| waiting.unknown == 0));
    }

    #[test]
    fn reasons_have_the_names_of_the_schema() {
        let schema = queued::schema();
        let dropped = schema.attribute(schema.find("dropped").unwrap());
        // Beside the reasons, there are "no" and "reported".
        assert_eq!(dropped.values.len(), DropReason::ALL.len() + 2);
        assert_eq!(dropped.key_of("no"), Ok(u128::from(queued::LEFT)));
        assert_eq!(dropped.key_of("reported"), Ok(u128::from(queued::REPORTED)));
        for reason in DropReason::ALL {
            let name = reason.name().replace('-', "_");
            assert_eq!(dropped.key_of(&name), Ok(u128::from(number_of(reason))), "{name}");
        }
    }
}
