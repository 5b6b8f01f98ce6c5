//! From a capture file to arrivals at the queue.

use crate::Progress;
use crate::capture_input::CaptureInput;
use crate::clock::Clock;
use crate::input::Queue;
use crate::listener::Listener;
use crate::managed::ManagedQueue;
use crate::notes::{file_notes, noted, parser_notes};
use crate::packet_filter::PacketFilter;
use crate::records::Frames;
use queuescope_pcap::{CaptureReader, ReadError, Record};
use queuescope_queue::TailDrop;
use queuescope_report::model::Skipped;
use queuescope_sim::Replay;
use queuescope_wire::parse::{Frame, LinkType, Parser, Segments, Tunnel};
use queuescope_wire::{ByteCount, Class, Ecn, FlowId, KeyMask, MaskedKey, Nanos, Packet, PacketId};
use std::collections::VecDeque;
use std::ops::Range;

/// What was read.
#[derive(Debug)]
pub struct Read {
    /// Frames that came to the queue.
    pub packets: u64,
    /// Their bytes, as the queue holds them.
    pub bytes: u64,
    /// When the first frame was captured.
    pub first: Nanos,
    /// When the first and last packet arrived, on the clock of the replay.
    pub span: (Nanos, Nanos),
    /// Frames larger than the MTU.
    pub super_packets: u64,
    /// What was remarkable.
    pub skipped: Vec<Skipped>,
    /// What ended the capture early.
    pub damage: Option<ReadError>,
}

/// Sends a capture through a queue, to its end or to where it is damaged: all of it, or the frames that are chosen.
///
/// # Errors
/// Those of the listener.
pub fn replay<L: Listener<Key = MaskedKey>>(
    arriving: &mut CaptureInput,
    reading: &Queue,
    mask: KeyMask,
    chosen: Option<PacketFilter<Frames>>,
    mut queue: impl Entered<L>,
    listener: &mut L,
    progress: Progress<'_>,
) -> Result<Read, L::Error> {
    let mut feed = Feed {
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
        if feed.frames.is_multiple_of(65_536) {
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

/// A queue that the packets of a capture come to.
pub trait Entered<L> {
    /// The flow of a packet that is about to come, where it is looked up before its turn.
    fn flow(key: &MaskedKey, now: Nanos, listener: &mut L) -> FlowId;

    /// It comes.
    fn arrive(&mut self, packet: Packet, key: &MaskedKey, now: Nanos, listener: &mut L);

    /// No packet comes any more.
    fn finish(&mut self, listener: &mut L);
}

impl<L: Listener<Key = MaskedKey>> Entered<L> for Replay<TailDrop> {
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

impl<L: Listener<Key = MaskedKey>> Entered<L> for ManagedQueue {
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

struct Feed<'a> {
    reading: &'a Queue,
    mask: KeyMask,
    chosen: Option<PacketFilter<Frames>>,
    parser: Parser,
    clock: Clock,
    /// The id of the next packet that is read, and of the next that is sent.
    next_id: u64,
    sent: u64,
    /// Ids from `sent` on that no packet has.
    gaps: VecDeque<Range<u64>>,
    frames: u64,
    bytes: u64,
    super_packets: u64,
    /// Frames longer than any.
    implausible: u64,
    /// Frames that were read and not sent yet, and their flows.
    batch: Vec<Arrival>,
    flows: Vec<FlowId>,
    /// Of those that are split, how.
    split: VecDeque<Split>,
}

/// A frame on its way to the queue.
struct Arrival {
    key: MaskedKey,
    now: Nanos,
    /// Bytes that the queue holds of it, unless it is split.
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

/// The longest frame that is believed without a note; segmentation offload makes up to 512 KiB.
const LONGEST: u32 = 1 << 20;
/// Frames that are read before they are sent. Looking up their flows one after another, with nothing in between, lets
/// the processor fetch several from memory at once.
const BATCH: usize = 64;

impl Feed<'_> {
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

    /// A frame is left out: no packet has its number, so that those of others are what they are in the file.
    fn pass_over(&mut self) {
        let id = self.next_id;
        self.next_id += 1;
        match self.gaps.back_mut().filter(|gap| gap.end == id) {
            Some(gap) => gap.end = self.next_id,
            None => self.gaps.push_back(id..self.next_id),
        }
    }

    /// The packets that a super-packet is split into, if it is one and that is wanted.
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
    fn send<L, Q: Entered<L>>(&mut self, queue: &mut Q, listener: &mut L) {
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

    /// Everything that was not as it should be, and what was done about it.
    fn skipped(&self, reader: &CaptureReader) -> Vec<Skipped> {
        let back = format!(
            "packets with a time before the packet before them (by up to {}); taken to come with it",
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
            "packets of more than 1 MiB, say their records; no link has such: is the file damaged?",
        );
        let (read, parsed) = (file_notes(reader), parser_notes(&self.parser));
        let left_out = self.chosen.as_ref().and_then(PacketFilter::note);
        left_out.into_iter().chain(back).chain(read).chain(split).chain(implausible).chain(parsed).collect()
    }
}
