//! Headers between an outer and an inner packet: GRE, VXLAN, IP in IP.

use super::bytes::chunk;
use super::link::{Link, Payload};
use super::transport::{Transport, UDP};

const IPV4: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;
/// RFC 7348 section 5.
pub(super) const VXLAN_PORT: u16 = 4789;

/// Whether a packet of this protocol, to this port, carries another packet.
#[inline]
pub(super) fn is_tunnel(protocol: u8, transport: &Transport) -> bool {
    matches!(protocol, IPV4 | IPV6 | GRE) || (protocol == UDP && transport.dst_port == VXLAN_PORT)
}

/// The link header of the packet inside a tunnel.
pub(super) fn inside(protocol: u8, data: &[u8], at: usize) -> Link {
    let cut = Link { payload: Payload::Cut, ..Link::ip(at) };
    let other = Link { payload: Payload::Other, ..Link::ip(at) };
    match protocol {
        // RFC 2003, RFC 4213, RFC 2473.
        IPV4 | IPV6 => Link::ip(at),
        GRE => match chunk(data, at) {
            // RFC 2784 and RFC 2890: the flags for checksum, key and sequence number each add a word. Routing and
            // recursion (RFC 1701) and versions other than 0 are not followed.
            Some(&[flags, version, e0, e1]) if flags & 0x4f == 0 && version & 0x07 == 0 => {
                let words = (flags & 0xb0).count_ones() as usize;
                Link::ethertype(data, at + 4 + words * 4, u16::from_be_bytes([e0, e1]))
            }
            Some(_) => other,
            None => cut,
        },
        // RFC 7348 section 5: the flag I must be set.
        UDP => match chunk::<8>(data, at) {
            Some(&[flags, ..]) if flags & 0x08 != 0 => Link::ethernet(data, at + 8),
            Some(_) => other,
            None => cut,
        },
        _ => other,
    }
}
