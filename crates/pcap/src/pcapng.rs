//! pcapng (draft-ietf-opsawg-pcapng): sections of blocks, of which some describe interfaces and some hold packets.

use std::io;

use queuescope_wire::Nanos;

use crate::buffer::Buffer;
use crate::error::Damage;
use crate::reader::{BufferedRecord, ReadStats};
use crate::zeros;

/// Bytes of a section header block without options.
pub(crate) const SMALLEST_SECTION_HEADER: usize = 28;
/// The longest block, bytes: far more than any packet with its comments, and small enough to hold, so that four wrong
/// bytes cannot make us allocate gigabytes.
const LONGEST_BLOCK: u32 = 64 << 20;
/// The most interfaces in a section: obsolete packet blocks cannot refer to more.
const MOST_INTERFACES: usize = 1 << 16;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
/// Name resolution, interface statistics, systemd journal, decryption secrets.
const OTHERS: [u32; 4] = [4, 5, 9, 10];
/// Custom blocks: those that tools may copy when they rewrite the file, and those that they may not.
const CUSTOM: [u32; 2] = [0xbad, 0x4000_0bad];

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Bytes for the type, the length, and the length again at the end.
const FRAME: u32 = 12;
/// Bytes of a packet block before its data.
const ENHANCED_FIELDS: usize = 28;
/// The most bytes of other blocks between two packets at which the time of the second is still looked for early.
const LOOKAHEAD: usize = 1 << 20;

const OPTION_END: u16 = 0;
const OPTION_TSRESOL: u16 = 9;
const OPTION_TSOFFSET: u16 = 14;

/// Whether a file that begins with these bytes is a pcapng file.
pub(crate) fn is_pcapng(bytes: &[u8]) -> bool {
    bytes.starts_with(&SECTION_HEADER.to_be_bytes())
}

/// The state of a pcapng file: its current section.
pub(crate) struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
    /// Number of interfaces that earlier sections described.
    first_interface: u32,
}

impl Pcapng {
    /// Parses the first section header.
    pub(crate) fn new(buffer: &mut Buffer, stats: &mut ReadStats) -> Result<Self, Damage> {
        let mut pcapng = Self { order: Order { big_endian: false }, interfaces: Vec::new(), first_interface: 0 };
        let kind = SECTION_HEADER;
        pcapng.order = section_order(buffer)?;
        let length = pcapng.order.block(buffer, kind)?;
        pcapng.section(buffer, length, stats)?;
        Ok(pcapng)
    }

    #[inline]
    pub(crate) fn next(
        &mut self,
        buffer: &mut Buffer,
        stats: &mut ReadStats,
    ) -> Result<Option<BufferedRecord>, Damage> {
        loop {
            if !buffer.need(8).map_err(Damage::Io)? {
                return match buffer.available().len() as u64 {
                    0 => Ok(None),
                    found => Err(Damage::Cut { what: "a block header", needed: 8, found }),
                };
            }
            let kind = self.order.word(buffer.available(), 0);
            // No block has a length of 0.
            if buffer.available().starts_with(&[0; 8]) {
                return Err(zeros::skip(buffer, |buffer| self.begins(buffer)));
            }
            if kind == SECTION_HEADER {
                // Its type reads the same in both byte orders, its length only in the section's own.
                self.order = section_order(buffer)?;
            }
            let length = self.order.block(buffer, kind)?;
            match kind {
                ENHANCED_PACKET | PACKET => return self.packet(buffer, kind, length, stats).map(Some),
                SIMPLE_PACKET => return self.simple_packet(buffer, length, stats).map(Some),
                SECTION_HEADER => self.section(buffer, length, stats)?,
                INTERFACE_DESCRIPTION => self.interface(buffer, length, stats)?,
                kind => {
                    let counter = match kind {
                        kind if CUSTOM.contains(&kind) => &mut stats.custom_blocks,
                        kind if OTHERS.contains(&kind) => &mut stats.other_blocks,
                        _ => &mut stats.unknown_blocks,
                    };
                    *counter += 1;
                    buffer.take(length as usize, 0, 0);
                }
            }
        }
    }

    /// The length of the blocks at the start of `bytes` up to the end of a packet block, if they have all of them, and all are of this section. Their
    /// contents are not checked.
    #[inline]
    pub(crate) fn has_next(&self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while bytes.len() - at >= FRAME as usize {
            let rest = &bytes[at..];
            let (kind, length) = (self.order.word(rest, 0), self.order.word(rest, 4));
            // The lengths of another section may be in the other byte order.
            if kind == SECTION_HEADER || length < FRAME || rest.len() < length as usize {
                return None;
            }
            at += length as usize;
            if [ENHANCED_PACKET, PACKET, SIMPLE_PACKET].contains(&kind) {
                return Some(at);
            }
        }
        None
    }

    /// The time of the first packet behind the first `length` bytes, and where its block ends. `None` unless it is near, of this section, on a known
    /// interface, and has a time.
    pub(crate) fn time_behind(&self, buffer: &mut Buffer, length: usize) -> Option<(Nanos, usize)> {
        let mut at = length;
        while at - length < LOOKAHEAD {
            // The fixed fields of a packet block; the smallest block of another kind at the end of a file is shorter, and has no packet behind it.
            if !buffer.need(at + ENHANCED_FIELDS).ok()? {
                return None;
            }
            let block = &buffer.available()[at..];
            let (kind, block_length) = (self.order.word(block, 0), self.order.word(block, 4));
            match kind {
                SECTION_HEADER | SIMPLE_PACKET => return None,
                ENHANCED_PACKET | PACKET => {
                    let (number, ticks) = self.stamp(block, kind);
                    let time = self.interface_of(number).ok()?.time(ticks)?;
                    return (block_length <= LONGEST_BLOCK).then_some((time, at + block_length as usize));
                }
                _ if block_length < FRAME => return None,
                _ => at += block_length as usize,
            }
        }
        None
    }

    /// The interface of a packet block, and its time in ticks.
    #[inline]
    fn stamp(&self, block: &[u8], kind: u32) -> (u32, u64) {
        let number = if kind == PACKET { self.order.half(block, 8).into() } else { self.order.word(block, 8) };
        (number, u64::from(self.order.word(block, 12)) << 32 | u64::from(self.order.word(block, 16)))
    }

    /// Whether a block of a known type begins here, judged by both of its lengths.
    fn begins(&self, buffer: &mut Buffer) -> io::Result<bool> {
        if !buffer.need(FRAME as usize)? {
            return Ok(false);
        }
        let kind = self.order.word(buffer.available(), 0);
        let order = match kind {
            SECTION_HEADER => section_order(buffer).ok(),
            INTERFACE_DESCRIPTION | PACKET | SIMPLE_PACKET | ENHANCED_PACKET => Some(self.order),
            kind => OTHERS.contains(&kind).then_some(self.order),
        };
        let order = order.filter(|order| order.word(buffer.available(), 4) <= zeros::LONGEST);
        match order.map(|order| order.block(buffer, kind)) {
            Some(Err(Damage::Io(why))) => Err(why),
            block => Ok(block.is_some_and(|block| block.is_ok())),
        }
    }

    /// A section header: interfaces are numbered from 0 again. The section's length is not needed, and often not known.
    #[cold]
    fn section(&mut self, buffer: &mut Buffer, length: u32, stats: &mut ReadStats) -> Result<(), Damage> {
        let body = buffer.available();
        let (major, minor) = (self.order.half(body, 12), self.order.half(body, 14));
        if major != 1 {
            return Err(Damage::Version { major, minor, known: "1.x" });
        }
        self.first_interface = self.first_interface.saturating_add(self.interfaces.len() as u32);
        self.interfaces.clear();
        stats.sections += 1;
        buffer.take(length as usize, 0, 0);
        Ok(())
    }

    #[cold]
    fn interface(&mut self, buffer: &mut Buffer, length: u32, stats: &mut ReadStats) -> Result<(), Damage> {
        if self.interfaces.len() >= MOST_INTERFACES {
            return Err(Damage::TooManyInterfaces { limit: MOST_INTERFACES as u32 });
        }
        let body = buffer.available();
        let mut interface = Interface {
            link: self.order.half(body, 8).into(),
            snaplen: self.order.word(body, 12),
            resolution: Resolution::MICROSECONDS,
            offset: 0,
        };
        self.options(body, 16..length as usize - 4, &mut interface)?;
        self.interfaces.push(interface);
        stats.interfaces += 1;
        buffer.take(length as usize, 0, 0);
        Ok(())
    }

    /// The options of an interface that define its times.
    fn options(&self, body: &[u8], range: std::ops::Range<usize>, interface: &mut Interface) -> Result<(), Damage> {
        let (mut at, end) = (range.start, range.end);
        while end - at >= 4 {
            let (code, length) = (self.order.half(body, at), self.order.half(body, at + 2));
            if code == OPTION_END {
                break;
            }
            let wrong = |why| Err(Damage::Option { code, length, why });
            let value = at + 4;
            let padded = usize::from(length).next_multiple_of(4);
            if padded > end - value {
                return wrong("its block ends before");
            }
            match code {
                OPTION_TSRESOL if length != 1 => return wrong("a time resolution has 1"),
                OPTION_TSOFFSET if length != 8 => return wrong("a time offset has 8"),
                OPTION_TSRESOL => interface.resolution = Resolution::from_option(body.get(value).copied().unwrap_or(6)),
                OPTION_TSOFFSET => interface.offset = self.order.double(body, value).cast_signed(),
                _ => {}
            }
            at = value + padded;
        }
        Ok(())
    }

    /// An enhanced packet block, or the obsolete packet block, which refers to the interface differently.
    #[inline]
    fn packet(&self, buffer: &Buffer, kind: u32, length: u32, stats: &mut ReadStats) -> Result<BufferedRecord, Damage> {
        const DATA: u32 = 28;
        let body = buffer.available();
        let (number, ticks) = self.stamp(body, kind);
        let interface = self.interface_of(number)?;
        let (captured, original_len) = (self.order.word(body, 20), self.order.word(body, 24));
        let room = length - DATA - 4;
        if captured > room {
            return Err(Damage::PacketPastBlock { captured, room });
        }
        let time = interface.time(ticks);
        stats.time_out_of_range += u64::from(time.is_none());
        Ok(BufferedRecord {
            time,
            link: interface.link,
            interface: self.first_interface.saturating_add(number),
            original_len,
            captured,
            from: DATA as usize,
            length: length as usize,
        })
    }

    /// A simple packet block: on the section's first interface, without a time, and captured up to its snapshot length.
    fn simple_packet(&self, buffer: &Buffer, length: u32, stats: &mut ReadStats) -> Result<BufferedRecord, Damage> {
        const DATA: u32 = 12;
        let interface = self.interface_of(0)?;
        let original_len = self.order.word(buffer.available(), 8);
        let captured = if interface.snaplen == 0 { original_len } else { original_len.min(interface.snaplen) };
        let room = length - DATA - 4;
        if captured > room {
            return Err(Damage::PacketPastBlock { captured, room });
        }
        stats.untimed += 1;
        Ok(BufferedRecord {
            time: None,
            link: interface.link,
            interface: self.first_interface,
            original_len,
            captured,
            from: DATA as usize,
            length: length as usize,
        })
    }

    #[inline]
    fn interface_of(&self, number: u32) -> Result<&Interface, Damage> {
        let known = self.interfaces.len() as u32;
        self.interfaces.get(number as usize).ok_or(Damage::NoInterface { interface: number, known })
    }
}

/// The byte order of the section whose header comes next, from its magic number.
#[cold]
fn section_order(buffer: &mut Buffer) -> Result<Order, Damage> {
    if !buffer.need(FRAME as usize).map_err(Damage::Io)? {
        let (needed, found) = (SMALLEST_SECTION_HEADER as u64, buffer.available().len() as u64);
        return Err(Damage::Cut { what: "a section header", needed, found });
    }
    let orders = [Order { big_endian: false }, Order { big_endian: true }];
    let order = orders.into_iter().find(|order| order.word(buffer.available(), 8) == BYTE_ORDER_MAGIC);
    order.ok_or_else(|| Damage::ByteOrder { found: orders[1].word(buffer.available(), 8) })
}

/// What a section has stated about an interface.
struct Interface {
    link: u32,
    snaplen: u32,
    resolution: Resolution,
    /// Seconds to add to every time.
    offset: i64,
}

impl Interface {
    /// The time of this many ticks; none if that is not within the range of nanoseconds since 1970.
    #[inline]
    fn time(&self, ticks: u64) -> Option<Nanos> {
        let nanos = self.resolution.nanos(ticks)?;
        if self.offset == 0 {
            return Some(Nanos(nanos));
        }
        let shifted = i128::from(nanos) + i128::from(self.offset) * 1_000_000_000;
        u64::try_from(shifted).ok().map(Nanos)
    }
}

/// The length of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// This many nanoseconds.
    Times(u64),
    /// A nanosecond divided by this.
    Parts(u64),
    /// A second divided by 2 this many times.
    Halvings(u8),
    /// So short that 64 bits of ticks are less than a nanosecond: no time can be represented.
    Vanishing,
}

impl Resolution {
    /// The default.
    const MICROSECONDS: Self = Self::Times(1_000);

    /// From the value of the option: a negative power of 10 or, with the highest bit, of 2.
    fn from_option(value: u8) -> Self {
        match value {
            0..=9 => Self::Times(10u64.pow(9 - u32::from(value))),
            10..=28 => Self::Parts(10u64.pow(u32::from(value) - 9)),
            29..=127 => Self::Vanishing,
            // 2^64 ticks of 2^-94 s are 0.93 ns.
            128..=221 => Self::Halvings(value & 0x7f),
            222.. => Self::Vanishing,
        }
    }

    #[inline]
    fn nanos(self, ticks: u64) -> Option<u64> {
        match self {
            Self::Times(nanos) => ticks.checked_mul(nanos),
            Self::Parts(parts) => Some(ticks / parts),
            // 64 bits by 30 bits.
            Self::Halvings(halvings) => u64::try_from((u128::from(ticks) * 1_000_000_000) >> halvings).ok(),
            Self::Vanishing => None,
        }
    }
}

/// The byte order of a section. Reads fields of a block whose length was checked; fields past its end are zero.
#[derive(Clone, Copy)]
struct Order {
    big_endian: bool,
}

impl Order {
    /// Makes a whole block available and checks its lengths; returns its length.
    #[inline]
    fn block(self, buffer: &mut Buffer, kind: u32) -> Result<u32, Damage> {
        let length = self.word(buffer.available(), 4);
        let smallest = match kind {
            SECTION_HEADER => SMALLEST_SECTION_HEADER as u32,
            INTERFACE_DESCRIPTION => FRAME + 8,
            ENHANCED_PACKET | PACKET => FRAME + 20,
            SIMPLE_PACKET => FRAME + 4,
            _ => FRAME,
        };
        if length < smallest || !length.is_multiple_of(4) {
            let why = if length < smallest { "the least is more" } else { "it must be a multiple of 4" };
            return Err(Damage::BlockLength { kind, claimed: length, why });
        }
        if length > LONGEST_BLOCK {
            return Err(Damage::TooLong { what: "a block", claimed: length.into(), limit: LONGEST_BLOCK.into() });
        }
        if !buffer.need(length as usize).map_err(Damage::Io)? {
            let found = buffer.available().len() as u64;
            return Err(Damage::Cut { what: "a block", needed: length.into(), found });
        }
        let tail = self.word(buffer.available(), length as usize - 4);
        if tail != length {
            return Err(Damage::LengthsDiffer { kind, head: length, tail });
        }
        Ok(length)
    }

    #[inline]
    fn half(self, bytes: &[u8], at: usize) -> u16 {
        let field = field::<2>(bytes, at);
        if self.big_endian { u16::from_be_bytes(field) } else { u16::from_le_bytes(field) }
    }

    #[inline]
    fn word(self, bytes: &[u8], at: usize) -> u32 {
        let field = field::<4>(bytes, at);
        if self.big_endian { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) }
    }

    fn double(self, bytes: &[u8], at: usize) -> u64 {
        let field = field::<8>(bytes, at);
        if self.big_endian { u64::from_be_bytes(field) } else { u64::from_le_bytes(field) }
    }
}

#[inline]
fn field<const SIZE: usize>(bytes: &[u8], at: usize) -> [u8; SIZE] {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<SIZE>()).copied().unwrap_or([0; SIZE])
}
