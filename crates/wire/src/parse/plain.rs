//! A fast path for the most common frames: Ethernet, at most one VLAN tag, IPv4 without options or IPv6 without
//! extension headers, TCP or UDP, not fragmented, with consistent lengths.
//!
//! The result is the same as that of the other modules, without the steps in between; a test compares the two.
//! `docs/explanation/parsing.md` has the measurement that justifies it.

use super::bytes::{be16, chunk};
use super::transport::{TCP, UDP};
use super::tunnel::VXLAN_PORT;
use super::{Frame, LinkType};
use crate::{Ecn, Family, FlowKey};

/// Parses the frame, if it is of the common form.
#[inline(always)]
pub(super) fn read(link: LinkType, original_len: u32, data: &[u8]) -> Option<Frame> {
    let (at, vlan) = match (link, be16(data, 12)?) {
        (LinkType::Ethernet, 0x0800 | 0x86dd) => (14, 0),
        (LinkType::Ethernet, 0x8100) if matches!(be16(data, 16)?, 0x0800 | 0x86dd) => (18, be16(data, 14)? & 0x0fff),
        (LinkType::RawIp, _) => (0, 0),
        _ => return None,
    };
    packet(original_len, data, at, vlan)
}

/// Parses the frame whose network header is at `at`, if that and what follows is of the common form.
#[inline(always)]
pub(super) fn packet(original_len: u32, data: &[u8], at: usize, vlan: u16) -> Option<Frame> {
    let packet = data.get(at..)?;
    match packet.first()? {
        0x45 => v4(original_len, packet, at, vlan),
        0x60..=0x6f => v6(original_len, packet, at, vlan),
        _ => None,
    }
}

#[inline(always)]
fn v4(original_len: u32, packet: &[u8], at: usize, vlan: u16) -> Option<Frame> {
    let header = packet.first_chunk::<24>()?;
    let [_, tos, l0, l1, _, _, f0, f1, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3, p0, p1, q0, q1] = *header;
    let length = u32::from(u16::from_be_bytes([l0, l1]));
    let dst_port = u16::from_be_bytes([q0, q1]);
    let end = transport(protocol, dst_port, packet, 20)?;
    // Not a fragment, not shorter than its headers, not longer than the frame.
    if u16::from_be_bytes([f0 & 0x3f, f1]) != 0 || length < end.least || at as u32 + length > original_len {
        return None;
    }
    Some(Frame {
        key: FlowKey {
            src: u128::from(u32::from_be_bytes([s0, s1, s2, s3])),
            dst: u128::from(u32::from_be_bytes([d0, d1, d2, d3])),
            src_port: u16::from_be_bytes([p0, p1]),
            dst_port,
            vlan,
            ethertype: 0,
            protocol,
            dscp: tos >> 2,
            family: Family::V4,
        },
        ecn: Ecn::from_bits(tos),
        size: original_len,
        network_length: length,
        link_header: at as u16,
        headers: (at + end.at) as u16,
        splittable: true,
    })
}

#[inline(always)]
fn v6(original_len: u32, packet: &[u8], at: usize, vlan: u16) -> Option<Frame> {
    let &[v, t, _, _, l0, l1, protocol, _] = packet.first_chunk()?;
    let (src, dst) = (chunk(packet, 8)?, chunk(packet, 24)?);
    let &[p0, p1, q0, q1] = chunk(packet, 40)?;
    let payload = u32::from(u16::from_be_bytes([l0, l1]));
    let length = 40 + payload;
    let dst_port = u16::from_be_bytes([q0, q1]);
    let end = transport(protocol, dst_port, packet, 40)?;
    if length < end.least || at as u32 + length > original_len {
        return None;
    }
    let class = v << 4 | t >> 4;
    Some(Frame {
        key: FlowKey {
            src: u128::from_be_bytes(*src),
            dst: u128::from_be_bytes(*dst),
            src_port: u16::from_be_bytes([p0, p1]),
            dst_port,
            vlan,
            ethertype: 0,
            protocol,
            dscp: class >> 2,
            family: Family::V6,
        },
        ecn: Ecn::from_bits(class),
        size: original_len,
        network_length: length,
        link_header: at as u16,
        headers: (at + end.at) as u16,
        splittable: true,
    })
}

/// The end of a transport header, and the minimum length of a packet that contains it.
struct End {
    at: usize,
    least: u32,
}

/// The end of a TCP or UDP header at `at`.
#[inline(always)]
fn transport(protocol: u8, dst_port: u16, packet: &[u8], at: usize) -> Option<End> {
    match protocol {
        TCP => {
            let length = usize::from(packet.get(at + 12)? >> 4) * 4;
            Some(End { at: at + length.max(20), least: at as u32 + 20 })
        }
        UDP if dst_port != VXLAN_PORT => Some(End { at: at + 8, least: at as u32 + 8 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::link::Link;
    use super::super::{Parser, Tunnel};
    use super::*;
    use proptest::prelude::*;

    /// A plain frame with fewer than `changes` bytes changed, cut somewhere, in a record of some length.
    fn nearly_plain(changes: usize) -> impl Strategy<Value = (LinkType, Vec<u8>, u32)> {
        let changes = prop::collection::vec((0..80usize, any::<u8>()), 0..changes);
        let shape = (any::<bool>(), 0..3usize, prop_oneof![Just(TCP), Just(UDP)], any::<[u8; 80]>());
        let padding = prop_oneof![Just(0), 0..4u32];
        (shape, changes, prop_oneof![Just(200), 0..100usize], padding).prop_map(
            |((v6, tags, protocol, noise), changes, cut, padding)| {
                let ethertype: [u8; 2] = if v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
                let mut data = noise[..12].to_vec();
                (1..tags).for_each(|tag| data.extend([0x81, 0x00, noise[13], tag as u8]));
                let link = if tags == 0 { LinkType::RawIp } else { LinkType::Ethernet };
                match link {
                    LinkType::RawIp => data.clear(),
                    _ => data.extend(ethertype),
                }
                match v6 {
                    true => {
                        data.extend([0x60 | noise[0] >> 4, noise[1], 0, 0, 0, 40, protocol, 64]);
                        data.extend(&noise[20..52]);
                    }
                    false => {
                        data.extend([0x45, noise[0], 0, 60, noise[1], noise[2], 0x40, 0, 64, protocol, 0, 0]);
                        data.extend(&noise[20..28]);
                    }
                }
                data.extend(&noise[40..80]);
                let original_len = data.len() as u32 + padding;
                for (at, byte) in changes {
                    if let Some(place) = data.get_mut(at) {
                        *place = byte;
                    }
                }
                data.truncate(cut);
                (link, data, original_len)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn the_fast_path_agrees_with_the_general_parser((link, data, original_len) in nearly_plain(3)) {
            if let Some(frame) = read(link, original_len, &data) {
                let mut parser = Parser::new(Tunnel::Inner);
                let nothing_remarkable = *parser.stats();
                let link = Link::read(link, &data);
                prop_assert_eq!(frame, parser.parse_packet(&link, original_len, &data));
                prop_assert_eq!(*parser.stats(), nothing_remarkable);
            }
        }

        #[test]
        fn plain_frames_take_the_fast_path((link, data, original_len) in nearly_plain(1)) {
            let unchanged = data.len() as u32 == original_len;
            let mut parser = Parser::new(Tunnel::Outer);
            let frame = parser.parse(link, original_len, &data);
            let remarkable = parser.stats().iter().any(|(name, count, _)| name != "frames" && count > 0);
            if unchanged && frame.splittable && !remarkable && frame.network_length == 60 {
                prop_assert_eq!(read(link, original_len, &data), Some(frame));
            }
        }
    }
}
