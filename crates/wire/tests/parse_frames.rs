//! Frames that etherparse builds and parses, also cut anywhere, and arbitrary bytes.

use crate::common;
use etherparse::{
    IpAuthHeader, IpDscp, IpEcn, IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv4Options, Ipv6Extensions,
    Ipv6Header, Ipv6RawExtHeader, Ipv6RoutingExtensions, PacketBuilder, PacketBuilderStep, TcpHeader, VlanId,
};
use proptest::prelude::*;
use queuescope_wire::parse::{LinkType, ParseStats, Parser, Tunnel};
use queuescope_wire::{Ecn, Family, FlowKey};

/// A frame, the expected result, and how many bytes it takes to get that.
#[derive(Debug, Clone)]
struct Made {
    data: Vec<u8>,
    key: FlowKey,
    ecn: Ecn,
    /// Offset of the network header, and of the transport header.
    network: usize,
    transport: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Upper {
    Tcp,
    Udp,
    Icmp,
}

fn ip(v6: bool, src: [u8; 16], dst: [u8; 16], class: u8, options: [Option<u8>; 4]) -> IpHeaders {
    if v6 {
        let raw = |units: u8| Ipv6RawExtHeader::new_raw(IpNumber(59), &vec![0; 6 + 8 * usize::from(units)]).unwrap();
        let [hop, destination, routing, auth] = options;
        let header = Ipv6Header { traffic_class: class, source: src, destination: dst, ..Ipv6Header::default() };
        let extensions = Ipv6Extensions {
            hop_by_hop_options: hop.map(raw),
            destination_options: destination.map(raw),
            routing: routing.map(|n| Ipv6RoutingExtensions { routing: raw(n), final_destination_options: None }),
            fragment: None,
            auth: auth.map(auth_header),
        };
        return IpHeaders::Ipv6(header, extensions);
    }
    let [length, _, _, auth] = options;
    // No-operation options, as many words as there is room for.
    let bytes = vec![1; 4 * usize::from(length.unwrap_or(0)).min(10)];
    let header = Ipv4Header {
        dscp: IpDscp::try_new(class >> 2).unwrap(),
        ecn: IpEcn::try_new(class & 3).unwrap(),
        source: *src.first_chunk().unwrap(),
        destination: *dst.first_chunk().unwrap(),
        options: Ipv4Options::try_from(&bytes[..]).unwrap(),
        ..Ipv4Header::default()
    };
    IpHeaders::Ipv4(header, Ipv4Extensions { auth: auth.map(auth_header) })
}

fn auth_header(words: u8) -> IpAuthHeader {
    IpAuthHeader::new(IpNumber(59), 1, 2, &vec![0; 4 * usize::from(words)]).unwrap()
}

fn made() -> impl Strategy<Value = Made> {
    let upper = prop_oneof![Just(Upper::Tcp), Just(Upper::Udp), Just(Upper::Icmp)];
    let option = || prop::option::weighted(0.3, 0..5u8);
    let options = [option(), option(), option(), option()];
    let link = (0..3usize, 0..4096u16, 0..4096u16);
    let ports = (any::<u16>(), any::<u16>().prop_filter("VXLAN has its own tests", |port| *port != 4789));
    let ip_fields = (any::<bool>(), any::<[u8; 16]>(), any::<[u8; 16]>(), any::<u8>());
    (link, ip_fields, options, upper, ports, 0..80usize).prop_map(
        |((tags, outer, inner), (v6, src, dst, class), options, upper, (src_port, dst_port), payload)| {
            let ethernet = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
            let vlan = |id| VlanId::try_new(id).unwrap();
            let headers = ip(v6, src, dst, class, options);
            let builder = match tags {
                0 => ethernet.ip(headers),
                1 => ethernet.single_vlan(vlan(outer)).ip(headers),
                _ => ethernet.double_vlan(vlan(outer), vlan(inner)).ip(headers),
            };
            let (data, transport_length) = write(builder, upper, v6, src_port, dst_port, &vec![7; payload]);
            let has_ports = upper != Upper::Icmp;
            let address = |bytes: [u8; 16]| match v6 {
                true => u128::from_be_bytes(bytes),
                false => u128::from(u32::from_be_bytes(*bytes.first_chunk().unwrap())),
            };
            let key = FlowKey {
                src: address(src),
                dst: address(dst),
                src_port: if has_ports { src_port } else { 0 },
                dst_port: if has_ports { dst_port } else { 0 },
                vlan: if tags > 0 { outer } else { 0 },
                ethertype: 0,
                protocol: match upper {
                    Upper::Tcp => 6,
                    Upper::Udp => 17,
                    Upper::Icmp if v6 => 58,
                    Upper::Icmp => 1,
                },
                dscp: class >> 2,
                family: if v6 { Family::V6 } else { Family::V4 },
            };
            let transport = data.len() - payload - transport_length;
            Made { data, key, ecn: Ecn::from_bits(class), network: 14 + 4 * tags, transport }
        },
    )
}

/// The frame, and how long its transport header is.
fn write(
    builder: PacketBuilderStep<IpHeaders>,
    upper: Upper,
    v6: bool,
    src_port: u16,
    dst_port: u16,
    payload: &[u8],
) -> (Vec<u8>, usize) {
    let mut data = Vec::new();
    let length = match upper {
        Upper::Tcp => {
            let mut header = TcpHeader::new(src_port, dst_port, 1, 2);
            // The timestamps that nearly all TCP segments carry.
            header.set_options_raw(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]).unwrap();
            builder.tcp_header(header).write(&mut data, payload).unwrap();
            32
        }
        Upper::Udp => {
            builder.udp(src_port, dst_port).write(&mut data, payload).unwrap();
            8
        }
        Upper::Icmp if v6 => {
            builder.icmpv6_echo_request(1, 2).write(&mut data, payload).unwrap();
            8
        }
        Upper::Icmp => {
            builder.icmpv4_echo_request(1, 2).write(&mut data, payload).unwrap();
            8
        }
    };
    (data, length)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn keys_match_the_frame_and_etherparse(made in made()) {
        let mut parser = Parser::new(Tunnel::Outer);
        let length = made.data.len() as u32;
        let frame = parser.parse(LinkType::Ethernet, length, &made.data);
        prop_assert_eq!(frame.key, made.key);
        prop_assert_eq!(frame.key, common::reference::key(&made.data));
        prop_assert_eq!(frame.ecn, made.ecn);
        prop_assert_eq!(frame.size, length);
        prop_assert_eq!(usize::from(frame.link_header), made.network);
        prop_assert_eq!(frame.network_length as usize, made.data.len() - made.network);
        let transport_length = match made.key.protocol { 6 => 32, 17 => 8, _ => 0 };
        prop_assert_eq!(usize::from(frame.headers), made.transport + transport_length);
        prop_assert_eq!(frame.splittable, transport_length > 0);
        prop_assert_eq!(*parser.stats(), ParseStats { frames: 1, ..ParseStats::default() });
    }

    #[test]
    fn a_cut_frame_keeps_its_key_and_its_size(made in made(), padding in 0..10u32) {
        let length = made.data.len() as u32 + padding;
        let whole = Parser::new(Tunnel::Inner).parse(LinkType::Ethernet, length, &made.data);
        let ports = if matches!(made.key.protocol, 6 | 17) { 4 } else { 0 };
        for cut in 0..made.data.len() {
            let mut parser = Parser::new(Tunnel::Inner);
            let frame = parser.parse(LinkType::Ethernet, length, &made.data[..cut]);
            prop_assert_eq!(frame.size, length);
            if cut >= made.transport + ports {
                prop_assert_eq!(frame.key, made.key, "cut to {}", cut);
                prop_assert_eq!(frame.network_length, whole.network_length);
            } else {
                // A cut frame has less information, and is counted. A frame without ports may already be fully parsed.
                let stats = parser.stats();
                let counted = stats.cut_before_network_header + stats.cut_before_ports;
                prop_assert!(counted == 1 || ports == 0 && frame.key == made.key, "cut to {}", cut);
            }
        }
    }

    #[test]
    fn a_record_too_short_for_its_packet_is_corrected(made in made(), missing in 1..40u32) {
        let length = made.data.len() as u32;
        for cut in made.transport + 4..made.data.len() {
            let mut parser = Parser::new(Tunnel::Outer);
            let frame = parser.parse(LinkType::Ethernet, length - missing, &made.data[..cut]);
            prop_assert_eq!(frame.size, length);
            prop_assert_eq!(parser.stats().length_corrected, 1);
        }
    }

    #[test]
    fn arbitrary_bytes_are_a_frame(
        (number, inner) in (prop::sample::select(vec![0u32, 1, 12, 101, 108, 113, 276, 9999]), any::<bool>()),
        frames in prop::collection::vec((any::<u32>(), prop::collection::vec(any::<u8>(), 0..200)), 1..20),
    ) {
        let mut parser = Parser::new(if inner { Tunnel::Inner } else { Tunnel::Outer });
        for (original_len, data) in &frames {
            let frame = parser.parse(LinkType::from_dlt(number), *original_len, data);
            prop_assert!(frame.size >= *original_len);
            prop_assert!(frame.link_header <= frame.headers);
            prop_assert!(frame.network_length <= frame.size);
            for mtu in [0, 68, 1500, u32::MAX] {
                if let Some(segments) = frame.segments(mtu) {
                    prop_assert!(segments.count > 1 && segments.last <= segments.full && segments.last > frame.headers.into());
                }
            }
        }
        prop_assert_eq!(parser.stats().frames, frames.len() as u64);
    }

    #[test]
    fn a_frame_with_changed_bytes_is_still_a_frame(
        mut made in made(),
        changes in prop::collection::vec((0..120usize, any::<u8>()), 1..6),
    ) {
        for (at, byte) in changes {
            if let Some(place) = made.data.get_mut(at) {
                *place = byte;
            }
        }
        let length = made.data.len() as u32;
        let frame = Parser::new(Tunnel::Inner).parse(LinkType::Ethernet, length, &made.data);
        prop_assert!(frame.size >= length && frame.link_header <= frame.headers);
    }
}
