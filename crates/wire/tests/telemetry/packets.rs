//! INT headers within packets: the packet without them is parsed as if they had never been there.

use super::model::{Model, int};
use super::reference::{Fields, hex};
use super::view;
use proptest::collection::vec;
use proptest::prelude::*;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::telemetry::{DscpMark, IntParser, Marks, Truncated};

const TCP: u8 = 6;
const UDP: u8 = 17;
const INT_PORT: u16 = 5000;
const INT_DSCP: u8 = 0x17;
const PROBE: u64 = 0xfeed_beef_1234_5678;
const VXLAN: u16 = 4789;

/// How INT is carried.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Carrier {
    Port,
    NewUdp,
    Dscp,
    Probe,
}

const CARRIERS: [Carrier; 4] = [Carrier::Port, Carrier::NewUdp, Carrier::Dscp, Carrier::Probe];

/// A packet in parts.
#[derive(Debug, Clone)]
struct Packet {
    ethernet: bool,
    vlan: Option<u16>,
    v6: bool,
    /// An IPv6 extension header, or IPv4 options.
    more: bool,
    dscp: u8,
    protocol: u8,
    ports: [u16; 2],
    tcp_options: Vec<u8>,
    payload: Vec<u8>,
}

impl Packet {
    fn link(&self) -> LinkType {
        if self.ethernet { LinkType::Ethernet } else { LinkType::RawIp }
    }

    /// The headers before the transport header, for `length` bytes behind them.
    fn network(&self, protocol: u8, length: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.ethernet {
            bytes.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
            if let Some(vlan) = self.vlan {
                bytes.extend([0x81, 0, (vlan >> 8) as u8, vlan as u8]);
            }
            bytes.extend(if self.v6 { [0x86, 0xdd] } else { [0x08, 0x00] });
        }
        if self.v6 {
            let more = if self.more { 16 } else { 0 };
            let first = if self.more { 60 } else { protocol };
            let [l0, l1] = ((length + more) as u16).to_be_bytes();
            bytes.extend([0x60 | self.dscp >> 2, self.dscp << 6, 0, 0, l0, l1, first, 64]);
            bytes.extend([0x20; 16]);
            bytes.extend([0x30; 16]);
            if self.more {
                // Destination options: 8 bytes more than the first 8.
                bytes.extend([protocol, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            }
        } else {
            let words = if self.more { 6 } else { 5 };
            let [l0, l1] = ((words * 4 + length) as u16).to_be_bytes();
            bytes.extend([0x40 | words as u8, self.dscp << 2, l0, l1, 1, 2, 0, 0, 64, protocol, 0, 0]);
            bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
            bytes.extend(vec![1; if self.more { 4 } else { 0 }]);
        }
        bytes
    }

    /// The transport header, in two parts: up to TCP's options, and those. `length` is that of the payload.
    fn transport(&self, destination: u16, length: usize) -> [Vec<u8>; 2] {
        let [source, destination] = [self.ports[0], destination].map(u16::to_be_bytes);
        if self.protocol == TCP {
            let words = 5 + self.tcp_options.len() as u8 / 4;
            let rest = [0, 0, 0, 9, 0, 0, 0, 7, words << 4, 0x10, 1, 0, 0, 0, 0, 0];
            return [[&source, &destination, &rest[..]].concat(), self.tcp_options.clone()];
        }
        let own = (8 + length) as u16;
        [[&source, &destination, &own.to_be_bytes()[..], &[0, 0]].concat(), Vec::new()]
    }

    /// The packet as its host sent it.
    fn plain(&self) -> Vec<u8> {
        let behind = [&self.transport(self.ports[1], self.payload.len()).concat()[..], &self.payload].concat();
        [self.network(self.protocol, behind.len()), behind].concat()
    }

    /// The packet with INT headers.
    fn with(&self, carrier: Carrier, int: &[u8], before_options: bool) -> Vec<u8> {
        let mut inserted = int.to_vec();
        if carrier == Carrier::Probe {
            inserted = [&PROBE.to_be_bytes()[..], int].concat();
        }
        let payload = [&inserted[..], &self.payload].concat();
        let (protocol, behind) = match carrier {
            Carrier::Port => (UDP, [&self.transport(INT_PORT, payload.len()).concat()[..], &payload].concat()),
            Carrier::NewUdp => {
                let own = [&self.transport(self.ports[1], self.payload.len()).concat()[..], &self.payload].concat();
                let [l0, l1] = ((8 + int.len() + own.len()) as u16).to_be_bytes();
                let [p0, p1] = INT_PORT.to_be_bytes();
                (UDP, [&[0xc0, 0, p0, p1, l0, l1, 0, 0][..], int, &own].concat())
            }
            Carrier::Dscp | Carrier::Probe => {
                let [header, options] = self.transport(self.ports[1], payload.len());
                let behind = if before_options {
                    [&header[..], &inserted, &options, &self.payload].concat()
                } else {
                    [&header[..], &options, &payload].concat()
                };
                (self.protocol, behind)
            }
        };
        [self.network(protocol, behind.len()), behind].concat()
    }
}

fn packet() -> impl Strategy<Value = Packet> {
    let network = (any::<bool>(), proptest::option::of(0..4096u16), any::<bool>(), any::<bool>(), 0..64u8);
    let options = (0..4usize).prop_map(|words| vec![1; words * 4]);
    let transport = (any::<bool>(), any::<[u16; 2]>(), options, vec(any::<u8>(), 0..60), 0..4u8);
    (network, transport).prop_map(|((ethernet, vlan, v6, more, dscp), (tcp, ports, tcp_options, payload, tunnel))| {
        let mut packet = Packet {
            ethernet,
            vlan,
            v6,
            more,
            dscp,
            protocol: if tcp { TCP } else { UDP },
            ports,
            tcp_options,
            payload,
        };
        // Neither of these ports by chance.
        packet.ports[1] = packet.ports[1].min(60_000) | 0x2000;
        if tunnel == 0 && !tcp {
            let inner = Packet { ethernet: true, vlan: None, protocol: TCP, ..packet.clone() };
            packet.ports[1] = VXLAN;
            packet.payload = [&[8, 0, 0, 0, 0, 0, 7, 0], &inner.plain()[..]].concat();
        }
        packet
    })
}

/// A packet, how it carries INT, and the headers.
fn carried() -> impl Strategy<Value = (Packet, Carrier, bool, Model<(Fields, Vec<Fields>)>)> {
    (packet(), prop::sample::select(&CARRIERS[..]), any::<bool>()).prop_flat_map(|(mut packet, carrier, before)| {
        if carrier == Carrier::Port {
            packet.protocol = UDP;
        }
        if carrier == Carrier::Dscp {
            packet.dscp = INT_DSCP;
        }
        let (npt, value) = match carrier {
            Carrier::Port => (1, packet.ports[1]),
            Carrier::NewUdp => (2, packet.protocol.into()),
            Carrier::Dscp | Carrier::Probe => (0, 9 << 2),
        };
        (Just(packet), Just(carrier), Just(before), int(npt, value))
    })
}

fn marks(carrier: Carrier, before_tcp_options: bool) -> Marks {
    let marks = Marks { before_tcp_options, ..Marks::default() };
    match carrier {
        Carrier::Port | Carrier::NewUdp => Marks { udp_port: Some(INT_PORT), ..marks },
        Carrier::Dscp => Marks { dscp: Some(DscpMark { value: INT_DSCP, mask: 0x3f }), ..marks },
        Carrier::Probe => Marks { probe: Some(PROBE), ..marks },
    }
}

proptest! {
    #[test]
    fn a_packet_is_parsed_as_without_int(
        (packet, carrier, before, headers) in carried(), inner: bool, padding in 0..20u32
    ) {
        let (plain, with) = (packet.plain(), packet.with(carrier, &headers.bytes, before));
        let tunnel = if inner { Tunnel::Inner } else { Tunnel::Outer };
        let mut parser = IntParser::new(marks(carrier, before), tunnel);
        for (length, padding) in [(None, 0), (Some(with.len() as u32 + padding), padding)] {
            let expected = Parser::new(tunnel).parse(packet.link(), plain.len() as u32 + padding, &plain);
            let parsed = parser.parse(packet.link(), length, &with);
            prop_assert_eq!(parsed.frame, expected);
            let found = parsed.int.map(|found| found.map(|found| view::headers_and_hops(&found)));
            prop_assert_eq!(found, Ok(Some(headers.expected.clone())));
            prop_assert_eq!(parsed.added as usize, with.len() - plain.len());
        }
        // A packet of another kind, or without a mark, is not searched.
        let unmarked = IntParser::new(Marks::default(), tunnel).parse(packet.link(), None, &with);
        prop_assert_eq!((unmarked.int, unmarked.added), (Ok(None), 0));
        let as_it_is = Parser::new(tunnel).parse(packet.link(), with.len() as u32, &with);
        prop_assert_eq!(unmarked.frame, as_it_is);
        let stats = *parser.stats();
        prop_assert_eq!((stats.packets, stats.md + stats.mx + stats.unread), (2, 2));
        prop_assert_eq!((stats.cut, stats.malformed), (0, 0));
    }

    /// A packet that is cut has the same flow as long as its ports are there, and the first hops.
    #[test]
    fn a_cut_packet_has_the_same_flow(
        (packet, carrier, before, headers) in carried()
    ) {
        let (plain, with) = (packet.plain(), packet.with(carrier, &headers.bytes, before));
        let expected = Parser::new(Tunnel::Outer).parse(packet.link(), plain.len() as u32, &plain);
        let network = with.len() - packet.network(UDP, 0).len();
        let header = with.len() - network;
        let int_end = headers.bytes.len() + hex(&with).find(&hex(&headers.bytes)).unwrap() / 2;
        let mut parser = IntParser::new(marks(carrier, before), Tunnel::Outer);
        let (_, hops) = &headers.expected;
        for length in 0..with.len() {
            let parsed = parser.parse_truncated(&Truncated { link: packet.link(), bytes: &with[..length] });
            let ports = match carrier {
                // They are behind INT.
                Carrier::NewUdp => int_end + 4,
                // The port is in the shim, whose header must be readable.
                Carrier::Port => header + 8 + headers.bytes.len().min(16),
                Carrier::Dscp | Carrier::Probe => header + 4,
            };
            if length >= ports {
                prop_assert_eq!(parsed.frame.key, expected.key);
            }
            if let Ok(Some(found)) = parsed.int {
                prop_assert_eq!(found.missing, int_end.saturating_sub(length));
                let (_, read) = view::headers_and_hops(&found);
                prop_assert_eq!(&read[..], &hops[..read.len()]);
                prop_assert_eq!(parsed.frame.size, expected.size);
            }
        }
        prop_assert_eq!(parser.stats().packets as usize, with.len());
    }

    #[test]
    fn any_packet_has_a_flow(
        (packet, carrier, before, headers) in carried(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        original_len: Option<u32>
    ) {
        let mut bytes = packet.with(carrier, &headers.bytes, before);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let mut parser = IntParser::new(marks(carrier, before), Tunnel::Inner);
        let parsed = parser.parse(packet.link(), original_len, &bytes);
        let stats = *parser.stats();
        let read = stats.md + stats.mx + stats.unread;
        prop_assert_eq!(stats.malformed, u64::from(parsed.int.is_err()));
        prop_assert_eq!(read, u64::from(matches!(parsed.int, Ok(Some(_)))));
        prop_assert_eq!(parser.parser().stats().frames, 1);
        if parsed.added == 0 {
            let plain = Parser::new(Tunnel::Inner).parse(packet.link(), original_len.unwrap_or(0), &bytes);
            prop_assert_eq!(parsed.frame.key, plain.key);
        }
    }
}
