//! The inner contents of a report as parts with a type and a length.

use super::{MalformedReport, Truncated, WORD};
use crate::parse::LinkType;

/// A part of the inner contents of a report (TRF section 3.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// TLV Data Template: the form of domain specific data, which the domain defines. Without meaning for packets.
    pub template: u16,
    /// What it has.
    pub contents: TlvContents<'a>,
}

/// What a [`Tlv`] has, by its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlvContents<'a> {
    /// Type 0: data whose form the domain defines.
    DomainSpecific(&'a [u8]),
    /// Types 1 to 3: the start of the packet.
    Packet(Truncated<'a>),
    /// A reserved type.
    Unread {
        /// TLVType: 4 to 15.
        tlv_type: u8,
        /// Its data.
        bytes: &'a [u8],
    },
}

/// The parts of the inner contents of a report, in order. After one whose length exceeds the report there is no next
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tlvs<'a> {
    left: &'a [u8],
    /// Offset of `left` in the payload.
    at: usize,
}

impl<'a> Tlvs<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { left: bytes, at }
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Result<Tlv<'a>, MalformedReport>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        let cut = MalformedReport::CutTlv { at: self.at, bytes: self.left.len() };
        let parts = self.left.split_first_chunk::<WORD>().and_then(|(&header, rest)| {
            let (bytes, left) = rest.split_at_checked(usize::from(header[1]) * WORD)?;
            Some((header, bytes, left))
        });
        let Some(([kind, _, t0, t1], bytes, left)) = parts else {
            self.left = &[];
            return Some(Err(cut));
        };
        self.at += WORD + bytes.len();
        self.left = left;
        let contents = match kind >> 4 {
            0 => TlvContents::DomainSpecific(bytes),
            1 => TlvContents::Packet(Truncated { link: LinkType::Ethernet, bytes }),
            2 | 3 => TlvContents::Packet(Truncated { link: LinkType::RawIp, bytes }),
            tlv_type => TlvContents::Unread { tlv_type, bytes },
        };
        Some(Ok(Tlv { template: u16::from_be_bytes([t0, t1]), contents }))
    }
}

/// After the end, there is nothing.
impl std::iter::FusedIterator for Tlvs<'_> {}
