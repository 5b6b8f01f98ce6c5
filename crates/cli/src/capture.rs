//! From a capture file to arrivals at the queue.

use crate::analysis::Analysis;
use crate::args::Overhead;
use crate::clock::Clock;
use crate::outputs::Outputs;
use crate::progress::Progress;
use anyhow::Result;
use queuescope_pcap::{CaptureReader, ReadError, Record};
use queuescope_queue::TailDrop;
use queuescope_report::model::Skipped;
use queuescope_sim::{Replay, Speedup};
use queuescope_wire::parse::{Frame, LinkType, Parser, Segments, Tunnel};
use queuescope_wire::{ByteCount, Class, FlowId, Flows, Nanos, Packet, PacketId};

/// How frames become packets.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Whose flow a tunnelled packet belongs to.
    pub tunnel: Tunnel,
    /// What a packet occupies beyond its captured size.
    pub overhead: Overhead,
    /// How many times faster than captured packets come.
    pub speedup: Speedup,
    /// Largest network packet.
    pub mtu: u32,
    /// Whether larger ones are split.
    pub split: bool,
}

/// What was read.
#[derive(Debug)]
pub struct Read {
    /// Frames.
    pub packets: u64,
    /// Bytes on the link.
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

/// Sends a capture through a queue, to its end or to where it is damaged.
///
/// # Errors
/// Those of the outputs.
pub fn replay(
    reader: &mut CaptureReader,
    reading: Reading,
    mut queue: Replay<TailDrop>,
    analysis: &mut Analysis<Flows, Outputs>,
    progress: &Progress,
) -> Result<Read> {
    let mut feed = Feed {
        reading,
        parser: Parser::new(reading.tunnel),
        clock: Clock::new(reading.speedup),
        next_id: 0,
        packets: 0,
        bytes: 0,
        super_packets: 0,
        batch: Vec::with_capacity(BATCH),
        flows: Vec::with_capacity(BATCH),
    };
    let damage = loop {
        if feed.packets.is_multiple_of(65_536) {
            progress.update(reader.input_read(), feed.packets);
        }
        match reader.next_record() {
            Ok(Some(record)) => {
                feed.frame(&record, analysis.watcher())?;
                if feed.batch.len() == BATCH {
                    feed.send(&mut queue, analysis);
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    feed.send(&mut queue, analysis);
    queue.finish(analysis);
    let skipped = feed.skipped(reader);
    Ok(Read {
        packets: feed.packets,
        bytes: feed.bytes,
        first: feed.clock.span().0,
        span: feed.clock.span(),
        super_packets: feed.super_packets,
        skipped,
        damage,
    })
}

struct Feed {
    reading: Reading,
    parser: Parser,
    clock: Clock,
    next_id: u64,
    packets: u64,
    bytes: u64,
    super_packets: u64,
    /// Frames that were read and not sent yet, and their flows.
    batch: Vec<Arrival>,
    flows: Vec<FlowId>,
}

/// A frame on its way to the queue.
struct Arrival {
    frame: Frame,
    segments: Option<Segments>,
    has_ethernet_header: bool,
    now: Nanos,
}

/// Frames that are read before they are sent. Looking up their flows one after another, with nothing in between, lets
/// the processor fetch several from memory at once.
const BATCH: usize = 64;

impl Feed {
    /// Reads a frame.
    fn frame(&mut self, record: &Record<'_>, outputs: &mut Outputs) -> Result<()> {
        self.packets += 1;
        let link = LinkType::from_dlt(record.link);
        let now = self.clock.arrival(record.time);
        let frame = self.parser.parse(link, record.original_len, record.data);
        let segments = frame.segments(self.reading.mtu);
        self.super_packets += u64::from(segments.is_some());
        let segments = segments.filter(|_| self.reading.split);
        let count = segments.map_or(1, |segments| segments.count);
        self.next_id += u64::from(count);
        self.batch.push(Arrival { frame, segments, has_ethernet_header: link == LinkType::Ethernet, now });
        outputs.read(record, record.time.unwrap_or(now), self.next_id - 1, count)
    }

    /// Sends the frames that were read to the queue.
    fn send(&mut self, queue: &mut Replay<TailDrop>, analysis: &mut Analysis<Flows, Outputs>) {
        let flows = self.batch.iter().map(|arrival| analysis.intern(&arrival.frame.key, arrival.now));
        self.flows.extend(flows);
        let ids = |arrival: &Arrival| u64::from(arrival.segments.map_or(1, |segments| segments.count));
        let mut id = self.next_id - self.batch.iter().map(ids).sum::<u64>();
        for (Arrival { frame, segments, has_ethernet_header, now }, flow) in
            self.batch.drain(..).zip(self.flows.drain(..))
        {
            let mut send = |size: u32| {
                let size = self.reading.overhead.apply(size, frame.link_header, has_ethernet_header);
                let (size, class) = (ByteCount(u64::from(size)), Class(0));
                self.bytes += size.0;
                queue.arrive(Packet { id: PacketId(id), flow, size, class, ecn: frame.ecn }, now, analysis);
                id += 1;
            };
            match segments {
                None => send(frame.size),
                Some(segments) => segments.sizes().for_each(send),
            }
        }
    }

    /// Everything that was not as it should be, and what was done about it.
    fn skipped(&self, reader: &CaptureReader) -> Vec<Skipped> {
        let skip = |reason: &str, count: u64, meaning: &str| {
            (count > 0).then(|| Skipped { reason: reason.to_owned(), count, meaning: meaning.to_owned() })
        };
        let back = format!(
            "packets with a time before the packet before them (by up to {}); taken to come with it",
            self.clock.furthest_back
        );
        let split = if self.reading.split {
            "packets larger than the MTU, merged by segmentation offload; split as the wire carries them"
        } else {
            "packets larger than the MTU, merged by segmentation offload; --split-gso sends them as the wire carries them"
        };
        let read = reader.stats();
        let own = [
            ("time_ran_back", self.clock.backwards, back.as_str()),
            ("untimed", read.untimed, "packets without a time; taken to come with the packet before them"),
            (
                "time_out_of_range",
                read.time_out_of_range,
                "packets with an impossible time; taken to come with the packet before them",
            ),
            (
                "captured_over_original",
                read.captured_over_original,
                "packets of which more was captured than the wire carried, says the file",
            ),
            ("unknown_blocks", read.unknown_blocks, "blocks of the capture file of an unknown type; skipped"),
            ("super_packets", self.super_packets, split),
        ];
        let own = own.map(|(reason, count, meaning)| skip(reason, count, meaning));
        let parsed = self.parser.stats().iter().filter(|(name, ..)| *name != "frames");
        let parsed = parsed.map(|(reason, count, meaning)| skip(reason, count, meaning));
        own.into_iter().chain(parsed).flatten().collect()
    }
}
