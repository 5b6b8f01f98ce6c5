//! pcap, the format of libpcap (draft-ietf-opsawg-pcap): a file header, then records.

use std::io;

use queuescope_wire::Nanos;

use crate::buffer::Buffer;
use crate::error::Damage;
use crate::reader::{BufferedRecord, ReadStats};
use crate::zeros;

/// Bytes of the file header.
pub(crate) const FILE_HEADER: usize = 24;
/// Bytes of a record's header, and of that of Kuznetzov's patched libpcap, which has the interface index, the protocol
/// and the packet's direction after the usual fields.
const RECORD_HEADER: usize = 16;
const KUZNETZOV_HEADER: usize = 24;
/// The most captured bytes of a packet: as in libpcap and Wireshark (the snapshot length that tcpdump uses for "all"),
/// unless the file header allows more; and the most that the header can allow, so that four wrong bytes cannot make us
/// allocate gigabytes.
const CAPTURED: u32 = 256 << 10;
const CAPTURED_ALLOWED: u32 = 64 << 20;

/// Times of a capture from this many seconds on (a day) are far from 0. Only clocks of simulations and of machines that
/// were just started begin at 0.
const FAR: u32 = 86_400;
/// The most seconds between the times of packets that are found behind zeros: a year.
const APART: u32 = 366 * 86_400;
/// Consecutive plausible headers that are needed to accept a packet behind zeros.
const CONSECUTIVE_HEADERS: usize = 3;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const KUZNETZOV: u32 = 0xa1b2_cd34;

/// Whether a file that begins with these bytes is a pcap file.
pub(crate) fn is_legacy(bytes: &[u8]) -> bool {
    Magic::from_bytes(bytes).is_some()
}

/// The state of a pcap file: the contents of its header.
pub(crate) struct Legacy {
    big_endian: bool,
    nanos_per_tick: u64,
    record_header: usize,
    link: u32,
    most_captured: u32,
    /// The seconds of the last packet's time; 0 before the first.
    before: u32,
}

/// The fields of a record's header.
struct Header {
    seconds: u32,
    ticks: u32,
    captured: u32,
    original_len: u32,
}

impl Legacy {
    /// Parses the file header, which must be available.
    pub(crate) fn new(buffer: &mut Buffer, stats: &mut ReadStats) -> Result<Self, Damage> {
        let header = buffer.available();
        let (magic, Some(header)) = (Magic::from_bytes(header), header.first_chunk::<FILE_HEADER>()) else {
            return Err(Damage::Cut { what: "a file header", needed: 24, found: header.len() as u64 });
        };
        let Magic { big_endian, number } = magic.unwrap_or(Magic { big_endian: false, number: MICROSECONDS });
        let field = |at: usize| word(header, at, big_endian);
        let version = if big_endian { field(4) } else { field(4).rotate_right(16) };
        let (major, minor) = ((version >> 16) as u16, version as u16);
        // Before 2.3 the two lengths of a record were in the other order; 2.4 is from 1998.
        if major != 2 || minor < 3 {
            return Err(Damage::Version { major, minor, known: "2.3 and later" });
        }
        let legacy = Self {
            big_endian,
            nanos_per_tick: if number == NANOSECONDS { 1 } else { 1_000 },
            record_header: if number == KUZNETZOV { KUZNETZOV_HEADER } else { RECORD_HEADER },
            // The upper half states whether there is a frame check sequence, and its length.
            link: field(20) & 0xffff,
            most_captured: field(16).clamp(CAPTURED, CAPTURED_ALLOWED),
            before: 0,
        };
        buffer.take(FILE_HEADER, 0, 0);
        stats.interfaces = 1;
        Ok(legacy)
    }

    #[inline(always)]
    pub(crate) fn next(
        &mut self,
        buffer: &mut Buffer,
        stats: &mut ReadStats,
    ) -> Result<Option<BufferedRecord>, Damage> {
        if !buffer.need(self.record_header).map_err(Damage::Io)? {
            return self.ends(buffer);
        }
        let Some(header) = self.header(buffer.available()) else {
            return self.ends(buffer);
        };
        if header.is_zeros() && self.is_hole(buffer)? {
            return Err(zeros::skip(buffer, |buffer| self.begins(buffer)));
        }
        let Header { seconds, ticks, captured, original_len } = header;
        if captured > self.most_captured {
            let (claimed, limit) = (u64::from(captured), u64::from(self.most_captured));
            return Err(Damage::TooLong { what: "a packet", claimed, limit });
        }
        let length = self.record_header + captured as usize;
        if !buffer.need(length).map_err(Damage::Io)? {
            let (needed, found) = (length as u64, buffer.available().len() as u64);
            return Err(Damage::Cut { what: "a packet", needed, found });
        }
        self.before = seconds;
        let time = self.time(seconds, ticks);
        stats.time_out_of_range += u64::from(time.is_none());
        let (link, from) = (self.link, self.record_header);
        Ok(Some(BufferedRecord { time, link, interface: 0, original_len, captured, from, length }))
    }

    /// The length of the record at the start of `bytes`, if they have all of it. If its header is zeros, more bytes are needed to decide whether it
    /// is one.
    #[inline]
    pub(crate) fn has_next(&self, bytes: &[u8]) -> Option<usize> {
        let header = self.header(bytes).filter(|header| !header.is_zeros())?;
        let length = self.record_header.saturating_add(header.captured as usize);
        (bytes.len() >= length).then_some(length)
    }

    /// The time of the record behind the first `length` bytes, and where that record ends, if there is a record with a time.
    pub(crate) fn time_behind(&self, buffer: &mut Buffer, length: usize) -> Option<(Nanos, usize)> {
        if !buffer.need(length + self.record_header).ok()? {
            return None;
        }
        let header = self.header(buffer.available().get(length..)?)?;
        let is_record = !header.is_zeros() && header.captured <= self.most_captured;
        let time = self.time(header.seconds, header.ticks).filter(|_| is_record)?;
        Some((time, length + self.record_header + header.captured as usize))
    }

    /// The time of a record, unless its fraction is a second or more.
    #[inline(always)]
    fn time(&self, seconds: u32, ticks: u32) -> Option<Nanos> {
        // At most 2^32 seconds and 2^32 microseconds: far from overflow.
        let fraction = u64::from(ticks) * self.nanos_per_tick;
        (fraction < 1_000_000_000).then(|| Nanos(u64::from(seconds) * 1_000_000_000 + fraction))
    }

    #[inline(always)]
    fn header(&self, bytes: &[u8]) -> Option<Header> {
        let header = bytes.first_chunk::<RECORD_HEADER>()?;
        let field = |at| word(header, at, self.big_endian);
        Some(Header { seconds: field(0), ticks: field(4), captured: field(8), original_len: field(12) })
    }

    /// Whether a header of zeros is damage rather than a packet of time 0 without bytes.
    ///
    /// No link carries a packet of no bytes: each link type has a header, or begins with that of the network. Only a
    /// program with nothing to write (`text2pcap` of an empty text, a library's empty packet) writes one, with a time
    /// like those of its neighbours. So one such record is a packet if the times of its neighbours are near 0, or if it
    /// has no neighbours. Two in a row, or one whose neighbours have times far from 0, are a hole.
    #[cold]
    fn is_hole(&self, buffer: &mut Buffer) -> Result<bool, Damage> {
        buffer.need(2 * self.record_header).map_err(Damage::Io)?;
        let (record, behind) = buffer.available().split_at(self.record_header);
        if record.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        let after = self.header(behind);
        let in_a_row = after.as_ref().is_some_and(Header::is_zeros);
        Ok(in_a_row || self.before >= FAR || after.is_some_and(|after| after.seconds >= FAR))
    }

    /// Whether a record begins here, judged by its header and those behind it.
    fn begins(&self, buffer: &mut Buffer) -> io::Result<bool> {
        let (mut at, mut before) = (0, self.before);
        for found in 0..CONSECUTIVE_HEADERS {
            if !buffer.need(at + self.record_header)? {
                return Ok(found > 1 || found == 1 && buffer.available().len() == at);
            }
            let Some(header) = self.header(&buffer.available()[at..]).filter(|header| self.is_likely(header, before))
            else {
                return Ok(false);
            };
            before = header.seconds;
            at += self.record_header + header.captured as usize;
        }
        Ok(true)
    }

    fn is_likely(&self, header: &Header, before: u32) -> bool {
        let Header { seconds, ticks, captured, original_len } = *header;
        self.time(seconds, ticks).is_some()
            && captured <= original_len
            && (1..=zeros::LONGEST).contains(&original_len)
            && (before == 0 || before.abs_diff(seconds) < APART)
    }

    /// The end of the file where a record's header is expected.
    #[cold]
    fn ends(&self, buffer: &Buffer) -> Result<Option<BufferedRecord>, Damage> {
        match buffer.available().len() as u64 {
            0 => Ok(None),
            found => Err(Damage::Cut { what: "a packet header", needed: self.record_header as u64, found }),
        }
    }
}

impl Header {
    #[inline(always)]
    fn is_zeros(&self) -> bool {
        self.seconds | self.ticks | self.captured | self.original_len == 0
    }
}

struct Magic {
    big_endian: bool,
    number: u32,
}

impl Magic {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<4>()?;
        [false, true].into_iter().find_map(|big_endian| {
            let number = word(bytes, 0, big_endian);
            [MICROSECONDS, NANOSECONDS, KUZNETZOV].contains(&number).then_some(Self { big_endian, number })
        })
    }
}

/// The 32-bit field at `at`, which must be inside of the header.
#[inline(always)]
fn word<const SIZE: usize>(header: &[u8; SIZE], at: usize, big_endian: bool) -> u32 {
    let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
    if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}
