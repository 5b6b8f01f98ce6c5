//! The reader: opens a capture, detects its format, and streams its packets.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use queuescope_wire::Nanos;

use crate::buffer::Buffer;
use crate::error::{Damage, OpenError, ReadError, describe_magic};
use crate::legacy::{self, Legacy};
use crate::pcapng::{self, Pcapng};
use crate::timeline::{Timeline, is_before};
use queuescope_unpack::{Compression, Unpacked};

/// A capture, read packet by packet in constant memory.
///
/// It parses records and blocks itself rather than with `pcap-parser`: their fixed fields are few, and a packet took 15
/// ns instead of 24 (10 million packets of 86 captured bytes, from the page cache, without that crate's conversion of
/// times to nanoseconds). That crate also collects the options of each packet into a vector, and does not read
/// Kuznetzov headers. The tests compare this reader with it.
pub struct CaptureReader {
    name: Box<str>,
    format: Format,
    buffer: Buffer,
    parser: Parser,
    stats: ReadStats,
    /// Corrects the times, if the caller wants that.
    timeline: Option<Timeline>,
    /// The first damage behind which packets were read; it is returned at the end.
    passed: Option<Box<ReadError>>,
    ended: bool,
}

enum Parser {
    Legacy(Legacy),
    Pcapng(Pcapng),
}

impl CaptureReader {
    /// Opens the file at `path`. `-` has no special meaning here.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_through(path, |file| file)
    }

    /// As [`open`](Self::open), but reads the file through what `through` returns.
    pub fn open_through<R: Read + Send + 'static>(
        path: &Path,
        through: impl FnOnce(File) -> R,
    ) -> Result<Self, OpenError> {
        let name = || path.display().to_string();
        let unreadable = |why: io::Error| match why.kind() {
            io::ErrorKind::NotFound => OpenError::Missing { name: name() },
            io::ErrorKind::IsADirectory => OpenError::Directory { name: name() },
            _ => OpenError::Unreadable { name: name(), why },
        };
        #[expect(clippy::disallowed_methods, reason = "this crate is where capture files are opened")]
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(OpenError::Directory { name: name() });
        }
        Self::new(through(file), &name())
    }

    /// Reads from any source, which errors call `name`. The first bytes determine the compression and the kind of
    /// capture.
    pub fn new(source: impl Read + Send + 'static, name: &str) -> Result<Self, OpenError> {
        let unreadable = |why| OpenError::Unreadable { name: name.to_owned(), why };
        let source = Unpacked::new(Box::new(source)).map_err(unreadable)?;
        let compression = source.compression();
        let mut buffer = Buffer::new(source);
        // A shorter source is reported by the bytes that it has.
        buffer.need(4).map_err(unreadable)?;
        let found = buffer.available();
        if found.is_empty() {
            return Err(OpenError::Empty { name: name.to_owned(), compression });
        }
        let (container, header) = if legacy::is_legacy(found) {
            (Container::Pcap, legacy::FILE_HEADER)
        } else if pcapng::is_pcapng(found) {
            (Container::Pcapng, pcapng::SMALLEST_SECTION_HEADER)
        } else {
            let found = describe_magic(&found[..found.len().min(8)]);
            return Err(OpenError::NotCapture { name: name.to_owned(), compression, found });
        };
        let format = Format { container, compression };
        if !buffer.need(header).map_err(unreadable)? {
            let (found, needed) = (buffer.available().len() as u64, header as u64);
            return Err(OpenError::TruncatedHeader { name: name.to_owned(), format, found, needed });
        }
        let mut stats = ReadStats::default();
        let parser = match container {
            Container::Pcap => Legacy::new(&mut buffer, &mut stats).map(Parser::Legacy),
            Container::Pcapng => Pcapng::new(&mut buffer, &mut stats).map(Parser::Pcapng),
        };
        let damaged = |damage| ReadError { name: name.into(), format, offset: 0, record: 1, damage };
        let parser = parser.map_err(damaged)?;
        Ok(Self { name: name.into(), format, buffer, parser, stats, timeline: None, passed: None, ended: false })
    }

    /// Corrects the times of packets from here on, for a caller that replays them. An outlier, which is more than 1 s away from the packets before and
    /// behind it, gets the time of the packet before. Where the clock was set back by more than 1 s, the times behind continue after the packet
    /// before. [`ReadStats`] counts both. Times that never decrease, and disorder of up to 1 s, stay as they are.
    ///
    /// To judge a time that is more than 1 s from the one before, and the first, the reader also reads the packet behind.
    /// If that one is back, it reads a third.
    pub fn correct_times(&mut self) {
        self.timeline.get_or_insert_default();
    }

    /// The next packet, or none at the end of the file. After an error there are no more packets. Zeros behind which
    /// packets are found do not end the reading: the error for them is returned at the end.
    #[inline(always)]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        while !self.ended {
            let next = match &mut self.parser {
                Parser::Legacy(legacy) => legacy.next(&mut self.buffer, &mut self.stats),
                Parser::Pcapng(pcapng) => pcapng.next(&mut self.buffer, &mut self.stats),
            };
            match next {
                Ok(Some(found)) => {
                    self.stats.packets += 1;
                    self.stats.cut += u64::from(found.captured < found.original_len);
                    self.stats.captured_over_original += u64::from(found.captured > found.original_len);
                    let time = self.time(&found);
                    let data = self.buffer.take(found.length, found.from, found.captured as usize);
                    let BufferedRecord { link, interface, original_len, .. } = found;
                    return Ok(Some(Record { time, link, interface, original_len, data }));
                }
                Ok(None) => {
                    self.ended = true;
                    return self.passed.take().map_or(Ok(None), |error| Err(*error));
                }
                Err(damage) => self.damaged(damage)?,
            }
        }
        Ok(None)
    }

    /// Whether the next packet is certainly in memory: then [`next_record`](Self::next_record) does not read from the
    /// source, and does not wait for it. If times are [corrected](Self::correct_times), so must the two behind it.
    #[inline]
    pub fn has_next(&self) -> bool {
        let mut bytes = self.buffer.available();
        let count = if self.timeline.is_some() { 3 } else { 1 };
        (0..count).all(|_| {
            let length = match &self.parser {
                Parser::Legacy(legacy) => legacy.has_next(bytes),
                Parser::Pcapng(pcapng) => pcapng.has_next(bytes),
            };
            bytes = length.and_then(|length| bytes.get(length..)).unwrap_or_default();
            length.is_some()
        })
    }

    /// The time of a packet that is still in the buffer, corrected if the caller wants that.
    #[inline(always)]
    fn time(&mut self, found: &BufferedRecord) -> Option<Nanos> {
        match (&mut self.timeline, found.time) {
            (Some(timeline), Some(time)) => timeline.continues(time).or_else(|| self.corrected(time, found.length)),
            (_, time) => time,
        }
    }

    /// The corrected time of a packet of `length` bytes at the front of the buffer.
    #[cold]
    fn corrected(&mut self, time: Nanos, length: usize) -> Option<Nanos> {
        let timeline = self.timeline.as_mut()?;
        // An error comes again when the packet itself is read.
        let mut behind = |length| match &self.parser {
            Parser::Legacy(legacy) => legacy.time_behind(&mut self.buffer, length),
            Parser::Pcapng(pcapng) => pcapng.time_behind(&mut self.buffer, length),
        };
        let next = if timeline.is_doubtful(time) { behind(length) } else { None };
        let next = next.filter(|(next, length)| {
            !timeline.needs_third(time, *next) || behind(*length).is_none_or(|(third, _)| is_before(third, time))
        });
        let next = next.map(|(next, _)| next);
        Some(timeline.correct(time, next, &mut self.stats))
    }

    /// The kind of file, and its compression.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Bytes of the source, compressed as they are, that were consumed so far.
    pub fn input_read(&self) -> u64 {
        self.buffer.input_read()
    }

    /// The counters so far.
    pub fn stats(&self) -> &ReadStats {
        &self.stats
    }

    /// Stores damage that reading continues behind; returns any other as an error.
    #[cold]
    fn damaged(&mut self, damage: Damage) -> Result<(), ReadError> {
        let skipped = if let Damage::Zeros { skipped, .. } = damage { skipped } else { 0 };
        let is_passed = damage.is_passed();
        let (offset, record) = (self.buffer.offset() - skipped, self.stats.packets + 1);
        let error = ReadError { name: self.name.clone(), format: self.format, offset, record, damage };
        if skipped > 0 {
            self.stats.holes += 1;
            self.stats.skipped_bytes += skipped;
            self.stats.first_hole.get_or_insert(offset);
        }
        if is_passed {
            self.passed.get_or_insert_with(|| Box::new(error));
            return Ok(());
        }
        self.ended = true;
        Err(error)
    }
}

impl fmt::Debug for CaptureReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, format, buffer, stats, .. } = self;
        let mut shown = f.debug_struct("CaptureReader");
        shown.field("name", name).field("format", format).field("offset", &buffer.offset()).field("stats", stats);
        shown.finish_non_exhaustive()
    }
}

/// One captured packet, borrowed until the next one is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was captured, since the Unix epoch, or its [corrected](CaptureReader::correct_times) time. `None` for simple packet blocks, which have
    /// no time, and for impossible times. Finer resolutions are rounded down.
    pub time: Option<Nanos>,
    /// Its link-layer header type, a number of the LINKTYPE_ registry.
    pub link: u32,
    /// The interface on which it was captured. Interfaces are numbered from 0 through the whole file, in the order of
    /// their descriptions: each section numbers its own from 0, which would be ambiguous.
    pub interface: u32,
    /// Its length on the wire, bytes.
    pub original_len: u32,
    /// The captured bytes.
    pub data: &'a [u8],
}

/// A packet in the buffer that was not yet returned.
pub(crate) struct BufferedRecord {
    pub time: Option<Nanos>,
    pub link: u32,
    pub interface: u32,
    pub original_len: u32,
    /// Captured bytes.
    pub captured: u32,
    /// Their offset in the record.
    pub from: usize,
    /// Length of the whole record or block, bytes.
    pub length: usize,
}

/// The kind of a capture file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// The format of libpcap (draft-ietf-opsawg-pcap).
    Pcap,
    /// Its successor (draft-ietf-opsawg-pcapng).
    Pcapng,
}

/// `pcap` or `pcapng`.
impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pcap => "pcap",
            Self::Pcapng => "pcapng",
        })
    }
}

/// The detected format of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// The kind of capture.
    pub container: Container,
    /// Its compression.
    pub compression: Compression,
}

/// `pcap`, or `pcapng, gzip`.
impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.compression {
            Compression::None => write!(f, "{}", self.container),
            compression => write!(f, "{}, {compression}", self.container),
        }
    }
}

/// Counters of a reader: all packets, and everything irregular.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadStats {
    /// Packets delivered.
    pub packets: u64,
    /// Packets of which less was captured than was on the wire.
    pub cut: u64,
    /// Packets that claim more captured bytes than they had on the wire.
    pub captured_over_original: u64,
    /// Packets without a time (simple packet blocks).
    pub untimed: u64,
    /// Packets with an impossible time, delivered without one: before 1970 or after 2554, with a fraction of a second or more, or of an interface whose
    /// resolution is so fine that its times cannot reach a nanosecond.
    pub time_out_of_range: u64,
    /// Packets whose time was more than 1 s from those before and behind; [corrected](CaptureReader::correct_times).
    pub time_outliers: u64,
    /// Places where the clock was set back by more than 1 s; the times behind them are [corrected](CaptureReader::correct_times).
    pub clock_steps: u64,
    /// The largest of these steps.
    pub largest_clock_step: Nanos,
    /// Sections (pcapng).
    pub sections: u64,
    /// Interfaces described, in all sections.
    pub interfaces: u64,
    /// Known blocks without a packet: names, statistics, keys, journals.
    pub other_blocks: u64,
    /// Custom blocks, whose format only their authors know; skipped.
    pub custom_blocks: u64,
    /// Blocks of unknown type; skipped.
    pub unknown_blocks: u64,
    /// Holes, where zeros are in place of packets.
    pub holes: u64,
    /// Bytes that were skipped at holes.
    pub skipped_bytes: u64,
    /// Where the first hole begins, in bytes of the decompressed stream.
    pub first_hole: Option<u64>,
}
