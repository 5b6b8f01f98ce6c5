//! Reads frames of a capture, and makes arrivals at the queue of them.

use super::batch::{Arrival, Batch, NO_PLACE, Split};
use crate::PROGRESS;
use crate::capture_input::CaptureInput;
use crate::clock::Clock;
use crate::input::Queue;
use crate::notes::{file_notes, noted, parser_notes};
use crate::packet_filter::PacketFilter;
use crate::records::Frames;
use queuescope_pcap::{CaptureReader, Format, ReadError, Record};
use queuescope_report::model::Skipped;
use queuescope_scenario::Overhead;
use queuescope_wire::parse::{Frame, LinkType, Parser, Segments, Tunnel};
use queuescope_wire::{KeyMask, MetFlows, Nanos};
use std::ops::Range;

/// Reads a capture to its end or to the first damage.
#[derive(Debug)]
pub struct CaptureFeed {
    input: CaptureInput,
    frames: FrameFeed,
}

/// Where frames and arrivals go.
pub(super) trait Downstream {
    /// The error that ends the reading.
    type Error;
    /// The number of arrivals that are passed on at once.
    const BATCH: usize;

    /// This many bytes of the file, and frames, were read.
    fn progress(&mut self, read: u64, frames: u64) -> Result<(), Self::Error>;

    /// A frame was read, which becomes these packets.
    fn read(&mut self, record: &Record<'_>, frame: Frame, time: Nanos, packets: Range<u64>) -> Result<(), Self::Error>;

    /// Takes the arrivals, and leaves an empty batch.
    fn arrivals(&mut self, batch: &mut Batch) -> Result<(), Self::Error>;

    /// The next frame may take a while. All arrivals before it were passed on.
    fn wait(&mut self) -> Result<(), Self::Error>;
}

/// What is known at the end of a capture.
#[derive(Debug)]
pub(super) struct ReadCapture {
    pub packets: u64,
    pub span: (Nanos, Nanos),
    pub super_packets: u64,
    pub skipped: Vec<Skipped>,
    pub damage: Option<ReadError>,
    pub format: Format,
    /// Bytes of the file and frames that were read, the last [progress](Downstream::progress).
    pub bytes_read: u64,
    pub frames: u64,
}

impl CaptureFeed {
    /// Reads all frames, or those that `chosen` matches. `mask` is the part of flow keys that is kept.
    pub fn new(mut input: CaptureInput, reading: &Queue, mask: KeyMask, chosen: Option<PacketFilter<Frames>>) -> Self {
        input.reader.correct_times();
        let frames = FrameFeed {
            overhead: reading.overhead,
            mtu: reading.mtu,
            split_gso: reading.split_gso,
            mask,
            met: None,
            chosen,
            parser: Parser::new(if reading.inner { Tunnel::Inner } else { Tunnel::Outer }),
            clock: Clock::new(reading.speedup),
            next_id: 0,
            count: 0,
            super_packets: 0,
            implausible: 0,
            batch: Batch::default(),
        };
        Self { input, frames }
    }

    /// Bytes of the file that were read so far.
    pub fn bytes_read(&self) -> u64 {
        self.input.reader.input_read()
    }

    /// From now on, arrivals name their flows by place, with the key of a flow that takes its place. At first, each arrival has its key.
    pub(super) fn name_by_place(&mut self) {
        self.frames.met = Some(MetFlows::new(self.frames.mask));
    }

    /// Reads all frames.
    ///
    /// # Errors
    /// Returns the error of `down`.
    pub(super) fn run<D: Downstream>(mut self, down: &mut D) -> Result<ReadCapture, D::Error> {
        let damage = self.read(down)?;
        let Self { input, mut frames } = self;
        down.arrivals(&mut frames.batch)?;
        Ok(ReadCapture {
            packets: frames.count - frames.chosen.as_ref().map_or(0, PacketFilter::left_out),
            span: frames.clock.span(),
            super_packets: frames.super_packets,
            skipped: frames.skipped(&input.reader),
            damage,
            format: input.reader.format(),
            bytes_read: input.reader.input_read(),
            frames: frames.count,
        })
    }

    fn read<D: Downstream>(&mut self, down: &mut D) -> Result<Option<ReadError>, D::Error> {
        let Self { input, frames } = self;
        loop {
            if input.may_wait() {
                down.arrivals(&mut frames.batch)?;
                down.wait()?;
            }
            match input.reader.next_record() {
                Ok(Some(record)) => frames.frame(&record, down)?,
                Ok(None) => return Ok(None),
                Err(error) => return Ok(input.damage(error)),
            }
            if frames.batch.arrivals.len() >= D::BATCH {
                down.arrivals(&mut frames.batch)?;
            }
            if frames.count.is_multiple_of(PROGRESS) {
                down.progress(input.reader.input_read(), frames.count)?;
            }
        }
    }
}

/// Makes arrivals of frames.
#[derive(Debug)]
struct FrameFeed {
    overhead: Overhead,
    mtu: u32,
    split_gso: bool,
    mask: KeyMask,
    met: Option<MetFlows>,
    chosen: Option<PacketFilter<Frames>>,
    parser: Parser,
    clock: Clock,
    /// The id of the next packet.
    next_id: u64,
    /// Frames that were read.
    count: u64,
    super_packets: u64,
    /// Number of frames with an implausible length.
    implausible: u64,
    /// Arrivals that were not passed on yet.
    batch: Batch,
}

/// Frames longer than this get a note. Segmentation offload makes frames of up to 512 KiB.
const LONGEST: u32 = 1 << 20;

impl FrameFeed {
    /// Reads a frame.
    #[inline]
    fn frame<D: Downstream>(&mut self, record: &Record<'_>, down: &mut D) -> Result<(), D::Error> {
        let link = LinkType::from_dlt(record.link);
        let time = self.chosen.as_mut().map_or(record.time, |chosen| chosen.time(record));
        let frame = self.parser.parse(link, record.original_len, record.data);
        let id = self.next_id;
        self.count += 1;
        if let Some(chosen) = &mut self.chosen
            && !chosen.holds(record, time, frame)
        {
            self.pass_over();
            return down.read(record, frame, time.unwrap_or_default(), id..id);
        }
        let now = self.clock.arrival(time);
        let (link_header, has_ethernet_header) = (frame.link_header, link == LinkType::Ethernet);
        self.implausible += u64::from(record.original_len > LONGEST);
        let (size, count) = match self.segments(&frame) {
            Some(segments) => {
                self.batch.splits.push_back(Split { segments, link_header, has_ethernet_header });
                (0, segments.count)
            }
            None => (self.overhead.in_queue(frame.size, link_header, has_ethernet_header), 1),
        };
        self.next_id += u64::from(count);
        let (place, key) = match &mut self.met {
            Some(met) => met.place(&frame.key),
            None => (NO_PLACE, Some(self.mask.mask(&frame.key))),
        };
        let has_key = key.is_some();
        self.batch.keys.extend(key);
        self.batch.arrivals.push(Arrival { now, size, place, has_key, is_split: count > 1, ecn: frame.ecn });
        down.read(record, frame, time.unwrap_or(now), id..self.next_id)
    }

    /// Skips the id of a frame that is left out, so that ids of packets are still their numbers in the file.
    fn pass_over(&mut self) {
        let id = self.next_id;
        self.next_id += 1;
        match self.batch.gaps.back_mut().filter(|gap| gap.end == id) {
            Some(gap) => gap.end = self.next_id,
            None => self.batch.gaps.push_back(id..self.next_id),
        }
    }

    /// The packets that a super-packet is split into, if the frame is one and it is to be split.
    #[inline]
    fn segments(&mut self, frame: &Frame) -> Option<Segments> {
        if frame.network_length <= self.mtu {
            return None;
        }
        let segments = frame.segments(self.mtu);
        self.super_packets += u64::from(segments.is_some());
        segments.filter(|_| self.split_gso)
    }

    /// Notes on irregularities of the capture, and how they were handled.
    fn skipped(&self, reader: &CaptureReader) -> Vec<Skipped> {
        let back = format!(
            "packets with a timestamp before that of the packet before them (by up to {}); treated as arriving with it",
            self.clock.furthest_back
        );
        let split = if self.split_gso {
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
