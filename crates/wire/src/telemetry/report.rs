//! One report: what a node measured itself, and what it knows of the packet.

use super::hop::Within;
use super::{GroupHeader, Hop, Instructions, MalformedReport, TlvContents, Tlvs, WORD};
use crate::parse::LinkType;

/// Bytes of the main contents of INT before the metadata.
const FIXED: usize = 8;

/// A report on one packet or flow (TRF section 3.3).
///
/// What a report has of a packet starts with the headers that the node saw: for INT-MD with the stack of
/// earlier hops, which [`IntParser`](super::IntParser) reads. The node's own metadata are either in `main` or on
/// top of that stack (TRF section 3.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryReport<'a> {
    /// The header of its group.
    pub group: GroupHeader,
    /// Why the report was sent.
    pub flags: Flags,
    /// What the node measured itself.
    pub main: Main<'a>,
    /// What follows: a packet, or data of the domain.
    pub inner: Inner<'a>,
}

/// Why a report was sent (TRF section 3.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// D: at least one packet that the node watches was dropped.
    pub dropped: bool,
    /// Q: a queue that the node watches is congested.
    pub congested: bool,
    /// F: the packet is of a flow that is watched. Other nodes probably report it, too.
    pub tracked: bool,
    /// I: sent within the path of an INT-MD packet, and not at its end.
    pub intermediate: bool,
}

/// The main contents of a report, by its type (RepType, TRF section 3.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Main<'a> {
    /// Type 0: there are none.
    None,
    /// Type 1: what the node measured.
    Int(Exported<'a>),
    /// Type 2 (IOAM) and reserved types. Where the inner contents start is not known, so the whole body is here.
    Unread {
        /// RepType: 2 to 15.
        report_type: u8,
        /// InType: the type of what follows.
        inner_type: u8,
        /// The body of the report.
        body: &'a [u8],
    },
}

/// What the reporting node measured (TRF section 3.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported<'a> {
    /// RepMdBits: which baseline metadata there are.
    pub instructions: Instructions,
    /// Domain Specific ID; 0 is the default.
    pub domain: u16,
    /// DSMdBits: which domain specific metadata there are. The domain defines them.
    pub domain_instructions: u16,
    /// DSMdstatus, which the domain defines.
    pub domain_status: u16,
    /// The metadata, with the node of the group header.
    pub hop: Hop<'a>,
}

/// What follows the main contents, by its type (InType, TRF section 3.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inner<'a> {
    /// Nothing.
    None,
    /// Type 1: parts with a type and a length each.
    Tlvs(Tlvs<'a>),
    /// Type 2: data whose form the domain defines.
    DomainSpecific(&'a [u8]),
    /// Types 3 to 5: the start of the packet.
    Packet(Truncated<'a>),
    /// A reserved type, or bytes although the type is 0 (nothing).
    Unread {
        /// InType: 0, or 6 to 15.
        inner_type: u8,
        /// The inner contents.
        bytes: &'a [u8],
    },
}

/// The start of a packet. The last word may be filled up: lengths of reports are in words of 4 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncated<'a> {
    /// What it starts with: Ethernet, or an IP header.
    pub link: LinkType,
    /// Its first bytes.
    pub bytes: &'a [u8],
}

impl<'a> TelemetryReport<'a> {
    /// Reads a report of `body.len()` bytes behind its first word, which is at `at` in the payload.
    pub(super) fn read(
        group: GroupHeader,
        first_word: [u8; WORD],
        body: &'a [u8],
        at: usize,
    ) -> Result<Self, MalformedReport> {
        let [types, _, metadata, bits] = first_word;
        let (report_type, inner_type) = (types >> 4, types & 0x0f);
        let (main, rest) = match report_type {
            0 => (Main::None, body),
            1 => {
                let (exported, rest) = Exported::read(group.node, usize::from(metadata), body, at)?;
                (Main::Int(exported), rest)
            }
            _ => (Main::Unread { report_type, inner_type, body }, &[][..]),
        };
        let inner = match (inner_type, &main) {
            (_, Main::Unread { .. }) => Inner::None,
            (1, _) => Inner::Tlvs(Tlvs::new(rest, at + WORD + (body.len() - rest.len()))),
            (2, _) => Inner::DomainSpecific(rest),
            (3, _) => Inner::Packet(Truncated { link: LinkType::Ethernet, bytes: rest }),
            (4 | 5, _) => Inner::Packet(Truncated { link: LinkType::RawIp, bytes: rest }),
            (0, _) if rest.is_empty() => Inner::None,
            _ => Inner::Unread { inner_type, bytes: rest },
        };
        Ok(Self { group, flags: Flags::from_bits(bits), main, inner })
    }

    /// The first packet in the report, if it has one: usually the only one.
    ///
    /// # Errors
    /// Fails if there is a malformed TLV before it.
    pub fn packet(&self) -> Result<Option<Truncated<'a>>, MalformedReport> {
        match &self.inner {
            Inner::Packet(packet) => Ok(Some(*packet)),
            Inner::Tlvs(tlvs) => {
                for tlv in tlvs.clone() {
                    if let TlvContents::Packet(packet) = tlv?.contents {
                        return Ok(Some(packet));
                    }
                }
                Ok(None)
            }
            Inner::None | Inner::DomainSpecific(_) | Inner::Unread { .. } => Ok(None),
        }
    }
}

impl Flags {
    fn from_bits(bits: u8) -> Self {
        Self {
            dropped: bits & 0x80 != 0,
            congested: bits & 0x40 != 0,
            tracked: bits & 0x20 != 0,
            intermediate: bits & 0x10 != 0,
        }
    }
}

impl<'a> Exported<'a> {
    /// Reads the main contents of INT with `metadata` words of metadata, and returns what follows them.
    fn read(node: u32, metadata: usize, body: &'a [u8], at: usize) -> Result<(Self, &'a [u8]), MalformedReport> {
        let too_long = MalformedReport::MetadataTooLong { at, metadata, bytes: body.len() };
        let (&[b0, b1, d0, d1, i0, i1, s0, s1], rest) = body.split_first_chunk::<FIXED>().ok_or(too_long)?;
        let (raw, rest) = rest.split_at_checked(metadata * WORD).ok_or(too_long)?;
        let instructions = Instructions(u16::from_be_bytes([b0, b1]));
        let too_short = MalformedReport::MetadataTooShort { at, metadata, needed: instructions.words() };
        let hop = Hop::read(instructions, raw, Within::Report).ok_or(too_short)?;
        let exported = Self {
            instructions,
            domain: u16::from_be_bytes([d0, d1]),
            domain_instructions: u16::from_be_bytes([i0, i1]),
            domain_status: u16::from_be_bytes([s0, s1]),
            hop: Hop { node: Some(node), ..hop },
        };
        Ok((exported, rest))
    }
}
