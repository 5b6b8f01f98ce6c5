//! A capture that is read several times, once for each pass.

use super::error::TapError;
use super::headers::Headers;
use crate::Progress;
use crate::capture_input::{CaptureInput, is_standard_input, length};
use crate::notes::{file_notes, noted, parser_notes};
use crate::packet_filter::PacketFilter;
use crate::records::Frames;
use crate::stop::Stop;
use queuescope_meter::tap::{Feed, TapPacket};
use queuescope_pcap::{OpenError, ReadError, Record};
use queuescope_report::model::Skipped;
use queuescope_wire::parse::{Frame, InvariantParams, LinkType, Parser, Reach, Tunnel};
use queuescope_wire::{Nanos, Rate};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::fs::metadata;
use std::path::PathBuf;

/// A capture of one link.
#[derive(Debug)]
pub struct Capture {
    /// The capture file.
    pub path: PathBuf,
    /// Whether the flow of a tunnelled packet is that of the inner or of the outer packet.
    pub tunnel: Tunnel,
    /// How its timestamps are shifted.
    pub shift: Shift,
    /// Which of its packets count; all if it is `None`.
    pub chosen: Option<PacketFilter<Frames>>,
}

/// How the timestamp of a packet is shifted to its arrival at the queue, or to its departure.
#[derive(Debug, Clone, Copy)]
pub enum Shift {
    /// Not shifted.
    None,
    /// Shifted to the arrival of its last bit, over a link of this rate.
    ToEnd(Rate),
    /// Shifted to the departure of its first bit, over a link of this rate.
    ToStart(Rate),
}

/// The result of the first pass over a capture.
#[derive(Debug)]
pub struct CaptureSurvey {
    /// Its format.
    pub format: String,
    /// Number of packets that count.
    pub packets: u64,
    /// The timestamp of the first of them.
    pub first: Nanos,
    /// Number of bytes of each packet that it holds, counted from the network header.
    pub reach: u16,
    /// Largest number of packets in an interval. It may be up to twice too large.
    pub busiest: u64,
    /// Notes on the capture.
    pub notes: Vec<Skipped>,
    /// What ended it early.
    pub damage: Option<ReadError>,
}

/// The progress of all passes.
pub struct TapProgress<'p> {
    progress: RefCell<Progress<'p>>,
    read: Cell<u64>,
    packets: Cell<u64>,
}

/// A pass over a capture.
pub struct Reading<'a, 'p> {
    arriving: CaptureInput,
    parser: Parser,
    capture: &'a Capture,
    chosen: Option<PacketFilter<Frames>>,
    invariant: InvariantParams,
    work: &'a TapProgress<'p>,
    /// The store for headers, and the number of the link in it.
    headers: Option<(&'a Headers, usize)>,
    frames: u64,
    packets: u64,
    reported: u64,
    last: Nanos,
    backwards: u64,
    damage: Option<ReadError>,
}

/// Packets between updates of the progress.
const UPDATE: u64 = 16_384;

impl<'p> TapProgress<'p> {
    /// Creates the progress of passes that report to `progress`.
    pub fn new(progress: Progress<'p>) -> Self {
        Self { progress: RefCell::new(progress), read: Cell::new(0), packets: Cell::new(0) }
    }
}

impl Capture {
    /// Checks that the capture can be read several times.
    ///
    /// # Errors
    /// Fails if it cannot. The error names the file.
    pub fn check(&self) -> Result<(), TapError> {
        let path = &self.path;
        let what = if is_standard_input(path) { "standard input".to_owned() } else { path.display().to_string() };
        let once = metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        if is_standard_input(path) || once { Err(TapError::Once { what }) } else { Ok(()) }
    }

    /// The path, for reports and errors.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Its size in bytes, if it is a regular file.
    pub fn length(&self) -> Option<u64> {
        length(&self.path)
    }

    /// Starts a pass over the capture. It ends at the end of the file, or when a signal comes if `stop` is given.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or is not a capture.
    pub fn read<'a, 'p>(
        &'a self,
        invariant: InvariantParams,
        work: &'a TapProgress<'p>,
        stop: Option<&Stop>,
    ) -> Result<Reading<'a, 'p>, OpenError> {
        let mut arriving = CaptureInput::open(&self.path, stop)?;
        arriving.reader.correct_times();
        Ok(Reading {
            arriving,
            parser: Parser::new(self.tunnel),
            capture: self,
            chosen: self.chosen.clone(),
            invariant,
            work,
            headers: None,
            frames: 0,
            packets: 0,
            reported: 0,
            last: Nanos::ZERO,
            backwards: 0,
            damage: None,
        })
    }

    /// Runs the first pass. It counts the packets, and the most packets within `stretch`.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or is not a capture.
    pub fn content(&self, stretch: Nanos, work: &TapProgress<'_>) -> Result<CaptureSurvey, OpenError> {
        let mut reading = self.read(InvariantParams::default(), work, None)?;
        let (mut reach, mut busiest, mut first) = (Reach::new(), Busiest::new(stretch), None);
        let mut see = |time: Nanos, frame: &Frame, record: &Record<'_>| {
            first.get_or_insert(time);
            reach.observe(frame, record.data);
            busiest.add(time);
        };
        while reading.next_frame(&mut see).is_some() {}
        let back = "packets with a time before that of the packet before them";
        let left_out = reading.chosen.as_ref().and_then(PacketFilter::note);
        let notes = left_out.into_iter().chain(noted("time_ran_back", reading.backwards, back));
        let notes = notes.chain(file_notes(&reading.arriving.reader)).chain(parser_notes(&reading.parser)).collect();
        Ok(CaptureSurvey {
            format: reading.arriving.reader.format().to_string(),
            packets: reading.packets,
            first: first.unwrap_or_default(),
            reach: reach.bytes(),
            busiest: busiest.most,
            notes,
            damage: reading.damage,
        })
    }
}

impl<'a> Reading<'a, '_> {
    /// Stores the headers of packets that are read, under the number of the link.
    #[must_use]
    pub fn keeping(self, headers: Option<(&'a Headers, usize)>) -> Self {
        Self { headers, ..self }
    }

    /// Calls `see` with the next frame that counts: its time, the frame and its record. Returns the result, or `None` at the
    /// end of the capture or at damage.
    fn next_frame<T>(&mut self, see: impl FnOnce(Nanos, &Frame, &Record<'_>) -> T) -> Option<T> {
        loop {
            if self.frames.is_multiple_of(UPDATE) {
                self.update();
            }
            let record = match self.arriving.reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    self.update();
                    return None;
                }
                Err(error) => {
                    self.damage = self.arriving.damage(error);
                    return None;
                }
            };
            self.frames += 1;
            let time = self.chosen.as_mut().map_or(record.time, |chosen| chosen.time(&record));
            let frame = self.parser.parse(LinkType::from_dlt(record.link), record.original_len, record.data);
            if let Some(chosen) = &mut self.chosen
                && !chosen.holds(&record, time, frame)
            {
                continue;
            }
            self.packets += 1;
            let time = time.unwrap_or(self.last);
            self.backwards += u64::from(time < self.last);
            self.last = self.last.max(time);
            return Some(see(time, &frame, &record));
        }
    }

    /// The next packet.
    pub fn next_seen(&mut self) -> Option<TapPacket> {
        let (invariant, shift, headers) = (self.invariant, self.capture.shift, self.headers);
        self.next_frame(|time, frame, record| {
            let seen = TapPacket::new(time, frame, record.data, &invariant);
            let seen = match shift {
                Shift::None => seen,
                Shift::ToEnd(rate) => seen.stamped_at_start(rate),
                Shift::ToStart(rate) => seen.stamped_at_end(rate),
            };
            if let Some((headers, link)) = headers {
                headers.came(link, &seen, time, record, frame);
            }
            seen
        })
    }

    fn update(&mut self) {
        let (read, work) = (self.arriving.reader.input_read(), self.work);
        work.read.set(work.read.get() + read.saturating_sub(self.reported));
        work.packets.set(work.packets.get() + UPDATE);
        self.reported = read;
        (work.progress.borrow_mut())(work.read.get(), work.packets.get());
    }
}

impl Feed for Reading<'_, '_> {
    type Error = Infallible;

    fn next(&mut self) -> Result<Option<TapPacket>, Infallible> {
        Ok(self.next_seen())
    }
}

/// Counts packets in intervals of equal length, and keeps the largest count of two neighbouring intervals. That is at least
/// the count of any interval of this length, wherever it starts.
struct Busiest {
    stretch: u64,
    number: u64,
    before: u64,
    count: u64,
    most: u64,
}

impl Busiest {
    fn new(stretch: Nanos) -> Self {
        Self { stretch: stretch.0.max(1), number: 0, before: 0, count: 0, most: 0 }
    }

    fn add(&mut self, time: Nanos) {
        // Packets whose timestamp steps back are counted in the current interval.
        let number = (time.0 / self.stretch).max(self.number);
        if number != self.number {
            self.before = if number == self.number + 1 { self.count } else { 0 };
            (self.number, self.count) = (number, 0);
        }
        self.count += 1;
        self.most = self.most.max(self.before + self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_interval_is_found_across_a_border() {
        let mut busiest = Busiest::new(Nanos(10));
        [1, 8, 9, 9, 10, 12, 11, 40, 41].into_iter().for_each(|time| busiest.add(Nanos(time)));
        assert_eq!(busiest.most, 7);
    }
}
