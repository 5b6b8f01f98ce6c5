//! IPv4 and IPv6 headers, with options, extension headers and fragments.

use super::bytes::chunk;
use crate::{Ecn, Family};

pub(super) const HOP_BY_HOP: u8 = 0;
pub(super) const ROUTING: u8 = 43;
pub(super) const FRAGMENT: u8 = 44;
pub(super) const AUTHENTICATION: u8 = 51;
pub(super) const DESTINATION: u8 = 60;
pub(super) const HIP: u8 = 139;
pub(super) const SHIM6: u8 = 140;

/// The most extension headers that are followed; RFC 8200 section 4.1 lists seven.
const MOST_EXTENSIONS: usize = 12;

/// A network header and the extension headers after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Network {
    pub src: u128,
    pub dst: u128,
    pub family: Family,
    pub dscp: u8,
    pub ecn: Ecn,
    /// The protocol of the payload, or the last extension header that was readable.
    pub protocol: u8,
    /// Offset of the byte that has `protocol`.
    pub protocol_at: usize,
    pub fragment: Fragment,
    /// Offset of the payload.
    pub at: usize,
    /// Bytes from the start of the network header to the end of its payload, as the header states it; none if it states
    /// zero.
    pub claimed: Option<u32>,
    /// Whether `protocol` and `at` belong to the payload, and if not, why.
    pub chain: Chain,
}

/// The part of a datagram that a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fragment {
    Whole,
    First(Datagram),
    Later(Datagram),
}

/// What distinguishes one fragmented datagram between two addresses from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Datagram {
    pub id: u32,
    /// The protocol for IPv4 (RFC 791 section 3.2), 0 for IPv6, where it is not part of the identity (RFC 8200 section
    /// 4.5).
    pub protocol: u8,
}

/// How far the parser followed the chain of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chain {
    /// To the payload.
    Whole,
    /// The captured bytes, or the payload by its own length, end before the payload.
    Cut,
    /// A length is shorter than the header itself.
    Bad,
    /// There are too many extension headers.
    TooLong,
}

/// Why the network header is not readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The captured bytes end inside the header, perhaps after its length field.
    Cut { claimed: Option<u32> },
    /// The bytes are not an IP header.
    Bad,
}

impl Network {
    /// Parses the header at `at`. Its first four bits give the version.
    #[inline]
    pub fn read(data: &[u8], at: usize) -> Result<Self, Trouble> {
        let bytes = data.get(at..).unwrap_or_default();
        match bytes.first() {
            Some(first) if first >> 4 == 4 => Self::v4(data, bytes, at),
            Some(first) if first >> 4 == 6 => Self::v6(data, bytes, at),
            Some(_) => Err(Trouble::Bad),
            None => Err(Trouble::Cut { claimed: None }),
        }
    }

    #[inline]
    fn v4(data: &[u8], bytes: &[u8], at: usize) -> Result<Self, Trouble> {
        let Some(header) = bytes.first_chunk::<20>() else {
            let length = chunk(bytes, 2).map(|length| u16::from_be_bytes(*length));
            return Err(Trouble::Cut { claimed: length.filter(|&length| length >= 20).map(u32::from) });
        };
        let [version, tos, l0, l1, i0, i1, f0, f1, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = *header;
        let own = usize::from(version & 0x0f) * 4;
        if own < 20 {
            return Err(Trouble::Bad);
        }
        let length = u16::from_be_bytes([l0, l1]);
        let fragment = match u16::from_be_bytes([f0 & 0x3f, f1]) {
            0 => Fragment::Whole,
            0x2000 => Fragment::First(Datagram { id: u32::from(u16::from_be_bytes([i0, i1])), protocol }),
            _ => Fragment::Later(Datagram { id: u32::from(u16::from_be_bytes([i0, i1])), protocol }),
        };
        let mut network = Self {
            src: u128::from(u32::from_be_bytes([s0, s1, s2, s3])),
            dst: u128::from(u32::from_be_bytes([d0, d1, d2, d3])),
            family: Family::V4,
            dscp: tos >> 2,
            ecn: Ecn::from_bits(tos),
            protocol,
            protocol_at: at + 9,
            fragment,
            at: at + own,
            claimed: (length != 0).then_some(u32::from(length)),
            chain: Chain::Whole,
        };
        if length != 0 && usize::from(length) < own {
            return Ok(Self { claimed: None, chain: Chain::Bad, ..network });
        }
        if protocol == AUTHENTICATION && !matches!(fragment, Fragment::Later(_)) {
            network.extensions(network.payload(data, at), |protocol| protocol == AUTHENTICATION);
        }
        Ok(network)
    }

    #[inline]
    fn v6(data: &[u8], bytes: &[u8], at: usize) -> Result<Self, Trouble> {
        let claimed = |l0, l1| Some(u32::from(u16::from_be_bytes([l0, l1]))).filter(|&length| length != 0);
        let Some((&[v, t, _, _, l0, l1, protocol, _], addresses)) = bytes.split_first_chunk() else {
            let length = chunk(bytes, 4).and_then(|&[l0, l1]| claimed(l0, l1));
            return Err(Trouble::Cut { claimed: length.map(|length| length + 40) });
        };
        let claimed = claimed(l0, l1).map(|length| length + 40);
        let (Some(src), Some(dst)) = (chunk(addresses, 0), chunk(addresses, 16)) else {
            return Err(Trouble::Cut { claimed });
        };
        let class = v << 4 | t >> 4;
        let mut network = Self {
            src: u128::from_be_bytes(*src),
            dst: u128::from_be_bytes(*dst),
            family: Family::V6,
            dscp: class >> 2,
            ecn: Ecn::from_bits(class),
            protocol,
            protocol_at: at + 6,
            fragment: Fragment::Whole,
            at: at + 40,
            claimed,
            chain: Chain::Whole,
        };
        if is_extension(protocol) {
            network.extensions(network.payload(data, at), is_extension);
        }
        Ok(network)
    }

    /// Whether the transport header can be located: the chain was followed to the payload, and this is not a later
    /// fragment.
    #[inline]
    pub fn starts_payload(&self) -> bool {
        self.chain == Chain::Whole && !matches!(self.fragment, Fragment::Later(_))
    }

    /// `data` up to the end of this packet, which starts at `at`, by its own length: the rest is padding.
    #[inline]
    pub fn payload<'a>(&self, data: &'a [u8], at: usize) -> &'a [u8] {
        let end = self.claimed.map_or(usize::MAX, |length| at.saturating_add(length as usize));
        data.get(..end).unwrap_or(data)
    }

    /// Follows extension headers (RFC 8200 section 4, RFC 4302) from `self.at` on, as long as `followed` accepts their
    /// number.
    #[cold]
    fn extensions(&mut self, data: &[u8], followed: fn(u8) -> bool) {
        for _ in 0..MOST_EXTENSIONS {
            if !followed(self.protocol) {
                return;
            }
            let Some(&[next, length, o0, o1]) = chunk(data, self.at) else {
                self.chain = Chain::Cut;
                return;
            };
            let length = usize::from(length);
            self.protocol_at = self.at;
            match self.protocol {
                FRAGMENT => {
                    let Some(id) = chunk(data, self.at + 4) else {
                        self.chain = Chain::Cut;
                        return;
                    };
                    let datagram = Datagram { id: u32::from_be_bytes(*id), protocol: 0 };
                    self.fragment = match u16::from_be_bytes([o0, o1 & 0xf9]) {
                        0 => self.fragment,
                        1 => Fragment::First(datagram),
                        _ => Fragment::Later(datagram),
                    };
                    self.at += 8;
                }
                AUTHENTICATION => self.at += (length + 2) * 4,
                _ => self.at += (length + 1) * 8,
            }
            self.protocol = next;
            if matches!(self.fragment, Fragment::Later(_)) {
                return;
            }
        }
        if followed(self.protocol) {
            self.chain = Chain::TooLong;
        }
    }
}

/// Whether another header that can be located follows an IPv6 header of this number.
fn is_extension(protocol: u8) -> bool {
    matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION | HIP | SHIM6)
}
