//! pcap, the format of libpcap (draft-ietf-opsawg-pcap): a file header, then records.

use queuescope_wire::Nanos;

use crate::buffer::Buffer;
use crate::error::Damage;
use crate::reader::{Found, ReadStats};

/// Bytes of the file header.
pub(crate) const FILE_HEADER: usize = 24;
/// Bytes of a record's header, and of the one that Kuznetzov's patched libpcap wrote: it has the interface index, the
/// protocol and the packet's direction after the usual fields.
const RECORD_HEADER: usize = 16;
const KUZNETZOV_HEADER: usize = 24;
/// The most captured bytes that are believed, as in libpcap and Wireshark (the snapshot length that tcpdump uses for
/// "all"), where the file header does not allow more itself; and the most it can allow, so that four wrong bytes cannot
/// make us hold gigabytes.
const CAPTURED: u32 = 256 << 10;
const CAPTURED_ALLOWED: u32 = 64 << 20;

/// Bytes of zeros that are no packets. Records of nothing but zeros are packets without bytes, as far as the format goes; no
/// capture has so many in a row.
const ZEROS: usize = 4096;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const KUZNETZOV: u32 = 0xa1b2_cd34;

/// Whether a file that begins so is a pcap file.
pub(crate) fn is_legacy(bytes: &[u8]) -> bool {
    Magic::of(bytes).is_some()
}

/// The state of a pcap file: what its header said.
pub(crate) struct Legacy {
    big_endian: bool,
    nanos_per_tick: u64,
    record_header: usize,
    link: u32,
    most_captured: u32,
}

impl Legacy {
    /// Takes the file header, which must be available.
    pub(crate) fn new(buffer: &mut Buffer, stats: &mut ReadStats) -> Result<Self, Damage> {
        let header = buffer.available();
        let (magic, Some(header)) = (Magic::of(header), header.first_chunk::<FILE_HEADER>()) else {
            return Err(Damage::Cut { what: "a file header", needed: 24, found: header.len() as u64 });
        };
        let Magic { big_endian, number } = magic.unwrap_or(Magic { big_endian: false, number: MICROSECONDS });
        let field = |at: usize| word(header, at, big_endian);
        let version = if big_endian { field(4) } else { field(4).rotate_right(16) };
        let (major, minor) = ((version >> 16) as u16, version as u16);
        // Before 2.3 the two lengths of a record stood in the other order; 2.4 is of 1998.
        if major != 2 || minor < 3 {
            return Err(Damage::Version { major, minor, known: "2.3 and later" });
        }
        let legacy = Self {
            big_endian,
            nanos_per_tick: if number == NANOSECONDS { 1 } else { 1_000 },
            record_header: if number == KUZNETZOV { KUZNETZOV_HEADER } else { RECORD_HEADER },
            // The upper half says whether and how long a frame check sequence is.
            link: field(20) & 0xffff,
            most_captured: field(16).clamp(CAPTURED, CAPTURED_ALLOWED),
        };
        buffer.take(FILE_HEADER, 0, 0);
        stats.interfaces = 1;
        Ok(legacy)
    }

    #[inline(always)]
    pub(crate) fn next(&mut self, buffer: &mut Buffer, _stats: &mut ReadStats) -> Result<Option<Found>, Damage> {
        if !buffer.need(self.record_header).map_err(Damage::Io)? {
            return self.ends(buffer);
        }
        let Some(header) = buffer.available().first_chunk::<RECORD_HEADER>().copied() else {
            return self.ends(buffer);
        };
        let header = &header;
        if *header == [0; RECORD_HEADER]
            && buffer.need(ZEROS).map_err(Damage::Io)?
            && starts_with_zeros(buffer.available())
        {
            return Err(skip_zeros(buffer)?);
        }
        let seconds = word(header, 0, self.big_endian);
        let ticks = word(header, 4, self.big_endian);
        let captured = word(header, 8, self.big_endian);
        let original_len = word(header, 12, self.big_endian);
        if captured > self.most_captured {
            let (claimed, limit) = (u64::from(captured), u64::from(self.most_captured));
            return Err(Damage::TooLong { what: "a packet", claimed, limit });
        }
        let length = self.record_header + captured as usize;
        if !buffer.need(length).map_err(Damage::Io)? {
            let (needed, found) = (length as u64, buffer.available().len() as u64);
            return Err(Damage::Cut { what: "a packet", needed, found });
        }
        // At most 2^32 seconds and 2^32 microseconds: far from overflow.
        let time = Nanos(u64::from(seconds) * 1_000_000_000 + u64::from(ticks) * self.nanos_per_tick);
        let (link, from) = (self.link, self.record_header);
        Ok(Some(Found { time: Some(time), link, interface: 0, original_len, captured, from, length }))
    }

    /// Whether `bytes` have a whole record.
    #[inline]
    pub(crate) fn has_next(&self, bytes: &[u8]) -> bool {
        bytes.first_chunk::<RECORD_HEADER>().is_some_and(|header| {
            let captured = word(header, 8, self.big_endian) as usize;
            // Behind nothing but zeros is looked further.
            let least = if *header == [0; RECORD_HEADER] { ZEROS } else { 0 };
            bytes.len() >= self.record_header.saturating_add(captured).max(least)
        })
    }

    /// The end of the file where a record's header would stand.
    #[cold]
    fn ends(&self, buffer: &Buffer) -> Result<Option<Found>, Damage> {
        match buffer.available().len() as u64 {
            0 => Ok(None),
            found => Err(Damage::Cut { what: "a packet header", needed: self.record_header as u64, found }),
        }
    }
}

fn starts_with_zeros(bytes: &[u8]) -> bool {
    bytes.get(..ZEROS).is_some_and(is_zeros)
}

/// Without an early end, so that it is done by many bytes at once.
fn is_zeros(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |all, byte| all | byte) == 0
}

/// Consumes zeros, and counts them.
#[cold]
fn skip_zeros(buffer: &mut Buffer) -> Result<Damage, Damage> {
    let from = buffer.offset();
    loop {
        let found = buffer.available();
        let whole: usize = found.chunks(ZEROS).take_while(|chunk| is_zeros(chunk)).map(<[u8]>::len).sum();
        let zeros = whole + found[whole..].iter().take_while(|byte| **byte == 0).count();
        let is_end = zeros == found.len();
        buffer.take(zeros, 0, 0);
        if !is_end || !buffer.need(1).map_err(Damage::Io)? {
            return Ok(Damage::Zeros { bytes: buffer.offset() - from, is_end });
        }
    }
}

struct Magic {
    big_endian: bool,
    number: u32,
}

impl Magic {
    fn of(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<4>()?;
        [false, true].into_iter().find_map(|big_endian| {
            let number = word(bytes, 0, big_endian);
            [MICROSECONDS, NANOSECONDS, KUZNETZOV].contains(&number).then_some(Self { big_endian, number })
        })
    }
}

/// The 32-bit field at `at`, which lies inside the header of known size.
#[inline(always)]
fn word<const SIZE: usize>(header: &[u8; SIZE], at: usize, big_endian: bool) -> u32 {
    let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
    if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}
