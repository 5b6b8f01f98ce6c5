//! Captured frames as records of the schema `packet`.
//!
//! The flow (addresses, protocol, ports) comes from the parser, so that later fragments have their first fragment's ports;
//! all else is read from the frame's bytes, from its outermost network header. A parser that looks into tunnels
//! (`Tunnel::Inner`) puts the inner flow into the record of the outer packet.

mod known;

pub use known::{Known, Segment, fill_identity, fill_known};

use super::Schema;
use queuescope_wire::parse::{Frame, LinkType, VLAN_TAGS};
use queuescope_wire::{Family, Nanos};
use std::net::Ipv4Addr;

/// Size of a record in bytes.
pub const SIZE: usize = 185;

/// The most hops whose telemetry a record holds.
pub const HOPS: usize = 5;

/// A captured frame and its capture time.
#[derive(Debug, Clone, Copy)]
pub struct Captured<'a> {
    /// The capture time, since the Unix epoch.
    pub at: Nanos,
    /// The type of its first header.
    pub link: LinkType,
    /// Bytes on the wire.
    pub original_len: u32,
    /// The captured bytes.
    pub data: &'a [u8],
}

/// In-band telemetry of a packet from the switches on its path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Telemetry<'a> {
    /// When it entered the network.
    pub ingress: Nanos,
    /// When it left the network.
    pub egress: Nanos,
    /// The path. A record holds the first [`HOPS`] and the number of hops, up to 255.
    pub hops: &'a [Hop],
}

/// A switch on the path of a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hop {
    /// The switch's number.
    pub switch: u32,
    /// Bytes in its queue.
    pub queue: u32,
}

/// Bits of the schema for the headers that a frame has.
const HAS_ETHERNET: u16 = 1 << 15;
const HAS_VLAN: u16 = 1 << 14;
const HAS_INNER_VLAN: u16 = 1 << 13;
const HAS_IPV4: u16 = 1 << 12;
const HAS_IPV6: u16 = 1 << 11;
const HAS_TCP: u16 = 1 << 10;
const HAS_UDP: u16 = 1 << 9;
const HAS_ICMP: u16 = 1 << 8;
const HAS_TELEMETRY: u16 = 1 << 7;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const ICMP6: u8 = 58;

/// The most extension headers and VLAN tags that are followed, as in `queuescope_wire::parse`.
const MOST_STEPS: usize = 12;

/// The schema of the records.
pub fn schema() -> &'static Schema {
    Schema::packet()
}

/// Fills `record` with a frame that was parsed to `frame`. All earlier contents are overwritten.
///
/// ```
/// use queuescope_log::{Schema, packet};
/// use queuescope_wire::Nanos;
/// use queuescope_wire::parse::{LinkType, Parser, Tunnel};
///
/// let data = [
///     0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
///     0, 53, 0x0f, 0xa0, 0, 8, 0, 0, // UDP
/// ];
/// let frame = Parser::new(Tunnel::Outer).parse(LinkType::RawIp, 28, &data);
/// let captured = packet::Captured { at: Nanos(7), link: LinkType::RawIp, original_len: 28, data: &data };
/// let mut record = [0; packet::SIZE];
/// packet::fill(&mut record, &captured, &frame, None);
/// let value = |name: &str| Schema::packet().find(name).map(|id| Schema::packet().key(id, &record));
/// assert_eq!((value("has_udp"), value("src_port"), value("ttl")), (Some(1), Some(53), Some(64)));
/// ```
pub fn fill(record: &mut [u8; SIZE], captured: &Captured, frame: &Frame, telemetry: Option<&Telemetry>) {
    *record = [0; SIZE];
    let mut to = Writer { record, has: 0 };
    to.put(0, captured.at.0.to_le_bytes());
    to.put(8, captured.original_len.max(frame.size).to_le_bytes());
    to.put(12, (captured.data.len() as u32).to_le_bytes());
    to.link(captured, frame);
    let key = &frame.key;
    if key.family != Family::Link {
        to.put(40, address(key.src, key.family));
        to.put(56, address(key.dst, key.family));
        to.network(captured.data, frame);
        to.put(75, [key.protocol]);
        to.put(92, key.src_port.to_le_bytes());
        to.put(94, key.dst_port.to_le_bytes());
    }
    if let Some(telemetry) = telemetry {
        to.telemetry(telemetry);
    }
    to.put(16, to.has.to_be_bytes());
}

/// Sets the time in the record of a packet.
pub fn fill_time(record: &mut [u8; SIZE], at: Nanos) {
    record[..8].copy_from_slice(&at.0.to_le_bytes());
}

/// Sets the length on the wire in the record of a packet: that of one packet of a split super-packet. The other fields stay those of the
/// super-packet.
pub fn fill_length(record: &mut [u8; SIZE], length: u32) {
    let has = u16::from_be_bytes([record[16], record[17]]);
    Writer { record, has }.put(8, length.to_le_bytes());
}

/// Writes telemetry into the record of a packet.
pub fn fill_telemetry(record: &mut [u8; SIZE], telemetry: &Telemetry) {
    let has = u16::from_be_bytes([record[16], record[17]]);
    let mut to = Writer { record, has };
    to.telemetry(telemetry);
    to.put(16, to.has.to_be_bytes());
}

/// An address in the representation of the schema.
fn address(address: u128, family: Family) -> [u8; 16] {
    match family {
        Family::V4 => Ipv4Addr::from_bits(address as u32).to_ipv6_mapped().octets(),
        _ => address.to_be_bytes(),
    }
}

/// A record that is being filled. Offsets are the schema's; a test compares them.
struct Writer<'a> {
    record: &'a mut [u8; SIZE],
    has: u16,
}

impl Writer<'_> {
    #[inline]
    fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        self.record[at..at + N].copy_from_slice(&bytes);
    }

    fn link(&mut self, captured: &Captured, frame: &Frame) {
        if captured.link != LinkType::Ethernet {
            let ethertype = match frame.key.family {
                Family::Link => frame.key.ethertype,
                Family::V4 => 0x0800,
                Family::V6 => 0x86dd,
            };
            self.put(30, ethertype.to_le_bytes());
            if frame.key.vlan != 0 {
                self.has |= HAS_VLAN;
                self.put(34, frame.key.vlan.to_be_bytes());
            }
            return;
        }
        let data = captured.data;
        let Some(&[macs @ .., e0, e1]) = data.first_chunk::<14>() else { return };
        self.has |= HAS_ETHERNET;
        self.put::<12>(18, macs);
        let (mut ethertype, mut at) = (u16::from_be_bytes([e0, e1]), 14);
        for tag in 0..MOST_STEPS {
            let (true, Some(&[t0, t1, e0, e1])) = (VLAN_TAGS.contains(&ethertype), chunk(data, at)) else { break };
            match tag {
                0 => {
                    self.has |= HAS_VLAN;
                    self.put(32, ethertype.to_le_bytes());
                    self.put(34, [t0, t1]);
                }
                1 => {
                    self.has |= HAS_INNER_VLAN;
                    self.put(36, ethertype.to_le_bytes());
                    self.put(38, [t0, t1]);
                }
                _ => {}
            }
            ethertype = u16::from_be_bytes([e0, e1]);
            at += 4;
        }
        self.put(30, ethertype.to_le_bytes());
    }

    fn network(&mut self, data: &[u8], frame: &Frame) {
        let at = usize::from(frame.link_header);
        let Some(packet) = data.get(at..) else { return };
        // Bytes behind the packet are padding.
        let packet = packet.get(..frame.network_length as usize).unwrap_or(packet);
        self.put(76, frame.network_length.to_le_bytes());
        let payload = match packet.first().map(|byte| byte >> 4) {
            Some(4) => self.v4(packet),
            Some(6) => self.v6(packet),
            _ => None,
        };
        let Some(Payload { protocol, at, starts }) = payload else { return };
        let end = if starts { self.transport(protocol, packet, at) } else { at };
        self.put(124, frame.network_length.saturating_sub(end as u32).to_le_bytes());
    }

    fn v4(&mut self, packet: &[u8]) -> Option<Payload> {
        let &[words, tos, _, _, i0, i1, f0, f1, ttl, protocol, c0, c1] = packet.first_chunk()?;
        self.has |= HAS_IPV4;
        self.put(72, [words, tos, ttl]);
        self.put(80, u32::from(u16::from_be_bytes([i0, i1])).to_le_bytes());
        self.put(84, [f0, f1]);
        self.put(86, u16::from_be_bytes([c0, c1]).to_le_bytes());
        let at = usize::from(words & 0x0f) * 4;
        let first = f0 & 0x1f == 0 && f1 == 0;
        let payload = Payload { protocol, at, starts: first && at >= 20 };
        Some(if first { payload.follow(packet, |protocol| protocol == AUTHENTICATION, self) } else { payload })
    }

    fn v6(&mut self, packet: &[u8]) -> Option<Payload> {
        let &[v, t, l0, l1, _, _, protocol, hops] = packet.first_chunk()?;
        self.has |= HAS_IPV6;
        self.put(72, [v & 0xf0, v << 4 | t >> 4, hops]);
        self.put(88, u32::from_be_bytes([0, t & 0x0f, l0, l1]).to_le_bytes());
        Some(Payload { protocol, at: 40, starts: true }.follow(packet, is_extension, self))
    }

    /// Reads the transport header at `at`, and returns where it ends.
    fn transport(&mut self, protocol: u8, packet: &[u8], at: usize) -> usize {
        let found = match protocol {
            TCP => self.tcp(packet, at),
            UDP => self.udp(packet, at),
            ICMP | ICMP6 => self.icmp(packet, at),
            _ => None,
        };
        found.unwrap_or(at)
    }

    fn tcp(&mut self, packet: &[u8], at: usize) -> Option<usize> {
        let &[s0, s1, s2, s3, a0, a1, a2, a3, words, flags, w0, w1, c0, c1, u0, u1] = chunk(packet, at + 4)?;
        self.has |= HAS_TCP;
        self.put(96, u32::from_be_bytes([s0, s1, s2, s3]).to_le_bytes());
        self.put(100, u32::from_be_bytes([a0, a1, a2, a3]).to_le_bytes());
        self.put(104, [words, flags]);
        self.put(106, u16::from_be_bytes([w0, w1]).to_le_bytes());
        self.put(108, u16::from_be_bytes([c0, c1]).to_le_bytes());
        self.put(110, u16::from_be_bytes([u0, u1]).to_le_bytes());
        Some(at + (usize::from(words >> 4) * 4).max(20))
    }

    fn udp(&mut self, packet: &[u8], at: usize) -> Option<usize> {
        let &[l0, l1, c0, c1] = chunk(packet, at + 4)?;
        self.has |= HAS_UDP;
        self.put(112, u16::from_be_bytes([l0, l1]).to_le_bytes());
        self.put(114, u16::from_be_bytes([c0, c1]).to_le_bytes());
        Some(at + 8)
    }

    fn icmp(&mut self, packet: &[u8], at: usize) -> Option<usize> {
        let &[class, code, c0, c1, r0, r1, r2, r3] = chunk(packet, at)?;
        self.has |= HAS_ICMP;
        self.put(116, [class, code]);
        self.put(118, u16::from_be_bytes([c0, c1]).to_le_bytes());
        self.put(120, u32::from_be_bytes([r0, r1, r2, r3]).to_le_bytes());
        Some(at + 8)
    }

    fn telemetry(&mut self, telemetry: &Telemetry) {
        self.has |= HAS_TELEMETRY;
        self.put(128, telemetry.ingress.0.to_le_bytes());
        self.put(136, telemetry.egress.0.to_le_bytes());
        self.put(144, [telemetry.hops.len().min(255) as u8]);
        for (index, hop) in telemetry.hops.iter().take(HOPS).enumerate() {
            self.put(145 + 4 * index, hop.switch.to_le_bytes());
            self.put(165 + 4 * index, hop.queue.to_le_bytes());
        }
    }
}

/// The payload of a network header.
struct Payload {
    protocol: u8,
    /// Its offset from the network header.
    at: usize,
    /// Whether its own header is there: not in later fragments.
    starts: bool,
}

impl Payload {
    /// Follows extension headers (RFC 8200 section 4, RFC 4302), and remembers the fields of a fragment header.
    fn follow(mut self, packet: &[u8], followed: fn(u8) -> bool, to: &mut Writer) -> Self {
        for _ in 0..MOST_STEPS {
            if !self.starts || !followed(self.protocol) {
                return self;
            }
            let Some(&[next, length, o0, o1]) = chunk(packet, self.at) else {
                self.starts = false;
                return self;
            };
            match self.protocol {
                FRAGMENT => {
                    let [o1, more] = [o1 & 0xf8, o1 & 1];
                    let offset = u16::from_be_bytes([o0, o1]) >> 3;
                    to.put(84, (offset | u16::from(more) << 13).to_be_bytes());
                    if let Some(id) = chunk(packet, self.at + 4) {
                        to.put(80, u32::from_be_bytes(*id).to_le_bytes());
                    }
                    self.starts = offset == 0;
                    self.at += 8;
                }
                AUTHENTICATION => self.at += (usize::from(length) + 2) * 4,
                _ => self.at += (usize::from(length) + 1) * 8,
            }
            self.protocol = next;
        }
        self.starts &= !followed(self.protocol);
        self
    }
}

/// Whether an IPv6 header with this number is followed by another header that can be found.
fn is_extension(protocol: u8) -> bool {
    matches!(protocol, 0 | 43 | FRAGMENT | AUTHENTICATION | 60 | 139 | 140)
}

/// `N` bytes from `at` on, if they were captured.
fn chunk<const N: usize>(data: &[u8], at: usize) -> Option<&[u8; N]> {
    data.get(at..)?.first_chunk()
}
