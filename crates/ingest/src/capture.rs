//! Turns a capture file into arrivals at the queue.

use crate::capture_input::CaptureInput;
use crate::clock::Clock;
use crate::input::Queue;
use crate::listener::Listener;
use crate::managed::ManagedQueue;
use crate::notes::{file_notes, noted, parser_notes};
use crate::packet_filter::PacketFilter;
use crate::records::Frames;
use crate::{PROGRESS, Progress};
use queuescope_pcap::{CaptureReader, ReadError, Record};
use queuescope_queue::TailDrop;
use queuescope_report::model::Skipped;
use queuescope_sim::Replay;
use queuescope_wire::parse::{Frame, LinkType, Parser, Segments, Tunnel};
use queuescope_wire::{ByteCount, Class, Ecn, FlowId, KeyMask, MaskedKey, Nanos, Packet, PacketId};
use std::collections::VecDeque;
use std::ops::Range;

/// Counts and notes of a capture that was read.
#[derive(Debug)]
pub struct Read {
    /// Number of frames that came to the queue.
    pub packets: u64,
    /// Their bytes, as counted in the queue.
    pub bytes: u64,
    /// The timestamp of the first frame.
    pub first: Nanos,
    /// The arrival times of the first and the last packet, on the clock of the replay.
    pub span: (Nanos, Nanos),
    /// Number of frames larger than the MTU.
    pub super_packets: u64,
    /// Notes on the capture.
    pub skipped: Vec<Skipped>,
    /// What ended the capture early.
    pub damage: Option<ReadError>,
}

impl Read {
    /// Of a capture of which nothing was read.
    pub const NOTHING: Self = Self {
        packets: 0,
        bytes: 0,
        first: Nanos::ZERO,
        span: (Nanos::ZERO, Nanos::ZERO),
        super_packets: 0,
        skipped: Vec::new(),
        damage: None,
    };
}

/// Sends a capture through a queue, to its end or to the first damage: all frames, or those that `chosen` matches.
///
/// # Errors
/// Returns the error of the listener.
pub fn replay<L: Listener<Key = MaskedKey>>(
    arriving: &mut CaptureInput,
    reading: &Queue,
    mask: KeyMask,
    chosen: Option<PacketFilter<Frames>>,
    mut queue: impl CaptureQueue<L>,
    listener: &mut L,
    progress: Progress<'_>,
) -> Result<Read, L::Error> {
    arriving.reader.correct_times();
    let mut feed = CaptureFeed {
        reading,
        mask,
        chosen,
        parser: Parser::new(if reading.inner { Tunnel::Inner } else { Tunnel::Outer }),
        clock: Clock::new(reading.speedup),
        next_id: 0,
        sent: 0,
        gaps: VecDeque::new(),
        frames: 0,
        bytes: 0,
        super_packets: 0,
        implausible: 0,
        batch: Vec::with_capacity(BATCH),
        flows: Vec::with_capacity(BATCH),
        split: VecDeque::new(),
    };
    let damage = loop {
        if feed.frames.is_multiple_of(PROGRESS) {
            progress(arriving.reader.input_read(), feed.frames);
        }
        if arriving.may_wait() {
            feed.send(&mut queue, listener);
            listener.hand_over()?;
        }
        match arriving.reader.next_record() {
            Ok(Some(record)) => {
                feed.frame(&record, listener)?;
                if feed.batch.len() == BATCH {
                    feed.send(&mut queue, listener);
                }
            }
            Ok(None) => break None,
            Err(error) => break arriving.damage(error),
        }
    };
    feed.send(&mut queue, listener);
    queue.finish(listener);
    progress(arriving.reader.input_read(), feed.frames);
    let skipped = feed.skipped(&arriving.reader);
    Ok(Read {
        packets: feed.frames - feed.chosen.as_ref().map_or(0, PacketFilter::left_out),
        bytes: feed.bytes,
        first: feed.clock.span().0,
        span: feed.clock.span(),
        super_packets: feed.super_packets,
        skipped,
        damage,
    })
}

/// A queue that takes the packets of a capture.
pub trait CaptureQueue<L> {
    /// The flow of a packet that arrives soon, if flows are looked up in batches.
    fn flow(key: &MaskedKey, now: Nanos, listener: &mut L) -> FlowId;

    /// Enqueues a packet.
    fn arrive(&mut self, packet: Packet, key: &MaskedKey, now: Nanos, listener: &mut L);

    /// Ends the input: lets the remaining packets leave.
    fn finish(&mut self, listener: &mut L);
}

impl<L: Listener<Key = MaskedKey>> CaptureQueue<L> for Replay<TailDrop> {
    #[inline(always)]
    fn flow(key: &MaskedKey, now: Nanos, listener: &mut L) -> FlowId {
        listener.intern(key, now)
    }

    #[inline(always)]
    fn arrive(&mut self, packet: Packet, _key: &MaskedKey, now: Nanos, listener: &mut L) {
        self.arrive(packet, now, listener);
    }

    fn finish(&mut self, listener: &mut L) {
        self.finish(listener);
    }
}

impl<L: Listener<Key = MaskedKey>> CaptureQueue<L> for ManagedQueue {
    fn flow(_key: &MaskedKey, _now: Nanos, _listener: &mut L) -> FlowId {
        FlowId::default()
    }

    fn arrive(&mut self, packet: Packet, key: &MaskedKey, now: Nanos, listener: &mut L) {
        self.arrive(packet, key, now, listener);
    }

    fn finish(&mut self, listener: &mut L) {
        self.finish(listener);
    }
}

struct CaptureFeed<'a> {
    reading: &'a Queue,
    mask: KeyMask,
    chosen: Option<PacketFilter<Frames>>,
    parser: Parser,
    clock: Clock,
    /// The id of the next packet that is read, and of the next that is sent.
    next_id: u64,
    sent: u64,
    /// Ids from `sent` on that no packet has: those of frames that were left out.
    gaps: VecDeque<Range<u64>>,
    frames: u64,
    bytes: u64,
    super_packets: u64,
    /// Number of frames with an implausible length.
    implausible: u64,
    /// Frames that were read but not sent yet, and their flows.
    batch: Vec<Arrival>,
    flows: Vec<FlowId>,
    /// The splits of the super-packets in `batch`, in order.
    split: VecDeque<Split>,
}

/// A frame that will be sent to the queue.
struct Arrival {
    key: MaskedKey,
    now: Nanos,
    /// Its bytes in the queue, unless it is split.
    size: u32,
    is_split: bool,
    ecn: Ecn,
}

/// The packets that a super-packet becomes.
struct Split {
    segments: Segments,
    link_header: u16,
    has_ethernet_header: bool,
}

/// Frames longer than this get a note. Segmentation offload makes frames of up to 512 KiB.
const LONGEST: u32 = 1 << 20;
/// Number of frames that are read before they are sent. Their flows are looked up in one loop, so that the processor can
/// fetch several from memory at once.
const BATCH: usize = 64;

impl CaptureFeed<'_> {
    /// Reads a frame.
    #[inline]
    fn frame<L: Listener>(&mut self, record: &Record<'_>, listener: &mut L) -> Result<(), L::Error> {
        let link = LinkType::from_dlt(record.link);
        let time = self.chosen.as_mut().map_or(record.time, |chosen| chosen.time(record));
        let frame = self.parser.parse(link, record.original_len, record.data);
        let id = self.next_id;
        self.frames += 1;
        if let Some(chosen) = &mut self.chosen
            && !chosen.holds(record, time, frame)
        {
            self.pass_over();
            return listener.read(record, frame, time.unwrap_or_default(), id..id);
        }
        let now = self.clock.arrival(time);
        let (link_header, has_ethernet_header) = (frame.link_header, link == LinkType::Ethernet);
        self.implausible += u64::from(record.original_len > LONGEST);
        let (size, count) = match self.segments(&frame) {
            Some(segments) => {
                self.split.push_back(Split { segments, link_header, has_ethernet_header });
                (0, segments.count)
            }
            None => (self.reading.overhead.in_queue(frame.size, link_header, has_ethernet_header), 1),
        };
        self.next_id += u64::from(count);
        let key = self.mask.mask(&frame.key);
        self.batch.push(Arrival { key, now, size, is_split: count > 1, ecn: frame.ecn });
        listener.read(record, frame, time.unwrap_or(now), id..self.next_id)
    }

    /// Skips the id of a frame that is left out, so that ids of packets are still their numbers in the file.
    fn pass_over(&mut self) {
        let id = self.next_id;
        self.next_id += 1;
        match self.gaps.back_mut().filter(|gap| gap.end == id) {
            Some(gap) => gap.end = self.next_id,
            None => self.gaps.push_back(id..self.next_id),
        }
    }

    /// The packets that a super-packet is split into, if the frame is one and it is to be split.
    #[inline]
    fn segments(&mut self, frame: &Frame) -> Option<Segments> {
        if frame.network_length <= self.reading.mtu {
            return None;
        }
        let segments = frame.segments(self.reading.mtu);
        self.super_packets += u64::from(segments.is_some());
        segments.filter(|_| self.reading.split_gso)
    }

    /// Sends the frames that were read to the queue.
    fn send<L, Q: CaptureQueue<L>>(&mut self, queue: &mut Q, listener: &mut L) {
        self.flows.clear();
        for arrival in &self.batch {
            self.flows.push(Q::flow(&arrival.key, arrival.now, listener));
        }
        for (Arrival { key, now, ecn, size, is_split }, flow) in self.batch.iter().zip(&self.flows) {
            if self.gaps.front().is_some_and(|gap| gap.start == self.sent)
                && let Some(gap) = self.gaps.pop_front()
            {
                self.sent = gap.end;
            }
            let mut send = |size: u32| {
                let (id, size, class) = (PacketId(self.sent), ByteCount(u64::from(size)), Class(0));
                self.sent += 1;
                self.bytes += size.0;
                queue.arrive(Packet { id, flow: *flow, size, class, ecn: *ecn }, key, *now, listener);
            };
            if !is_split {
                send(*size);
            } else if let Some(Split { segments, link_header, has_ethernet_header }) = self.split.pop_front() {
                let overhead = self.reading.overhead;
                segments.sizes().for_each(|size| send(overhead.in_queue(size, link_header, has_ethernet_header)));
            }
        }
        self.batch.clear();
    }

    /// Notes on irregularities of the capture, and how they were handled.
    fn skipped(&self, reader: &CaptureReader) -> Vec<Skipped> {
        let back = format!(
            "packets with a timestamp before that of the packet before them (by up to {}); treated as arriving with it",
            self.clock.furthest_back
        );
        let split = if self.reading.split_gso {
            "packets larger than the MTU, merged by segmentation offload; split as the wire carries them"
        } else {
            "packets larger than the MTU, merged by segmentation offload; --split-gso sends them as the wire carries them"
        };
        let back = noted("time_ran_back", self.clock.backwards, &back);
        let split = noted("super_packets", self.super_packets, split);
        let implausible = noted(
            "implausible_lengths",
            self.implausible,
            "packets of more than 1 MiB, according to their records; no link carries such packets: is the file damaged?",
        );
        let (read, parsed) = (file_notes(reader), parser_notes(&self.parser));
        let left_out = self.chosen.as_ref().and_then(PacketFilter::note);
        left_out.into_iter().chain(back).chain(read).chain(split).chain(implausible).chain(parsed).collect()
    }
}
