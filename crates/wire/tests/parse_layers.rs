//! Hand-made frames, one of each kind.

use etherparse::PacketBuilder;
use queuescope_wire::parse::{Frame, LLC, LinkType, ParseStats, Parser, Segments, Tunnel};
use queuescope_wire::{Ecn, Family, FlowKey};

const SRC: [u8; 4] = [10, 0, 0, 1];
const DST: [u8; 4] = [10, 0, 0, 2];
const FAR_SRC: [u8; 4] = [192, 168, 0, 1];
const FAR_DST: [u8; 4] = [192, 168, 0, 2];
const MAC_SRC: u128 = 0x02_00_00_00_00_01;
const MAC_DST: u128 = 0x02_00_00_00_00_02;

/// An IPv4 packet with UDP from port 1000 to 2000 and 32 bytes of payload.
fn udp4() -> Vec<u8> {
    let mut packet = Vec::new();
    let headers = etherparse::IpHeaders::Ipv4(
        etherparse::Ipv4Header::new(0, 64, etherparse::IpNumber::UDP, SRC, DST).unwrap(),
        Default::default(),
    );
    PacketBuilder::ip(headers).udp(1000, 2000).write(&mut packet, &[0; 32]).unwrap();
    packet
}

fn udp4_key() -> FlowKey {
    key4(SRC, DST, 17, 1000, 2000)
}

/// The same in IPv6.
fn udp6() -> Vec<u8> {
    let mut packet = Vec::new();
    PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(1000, 2000).write(&mut packet, &[0; 32]).unwrap();
    packet
}

fn udp6_key() -> FlowKey {
    let (src, dst) = (u128::from_be_bytes([1; 16]), u128::from_be_bytes([2; 16]));
    FlowKey { src, dst, family: Family::V6, ..udp4_key() }
}

fn key4(src: [u8; 4], dst: [u8; 4], protocol: u8, src_port: u16, dst_port: u16) -> FlowKey {
    let [src, dst] = [src, dst].map(|address| u128::from(u32::from_be_bytes(address)));
    FlowKey { src, dst, src_port, dst_port, protocol, family: Family::V4, ..FlowKey::default() }
}

/// An IPv4 header of 20 bytes between the far addresses, for DSCP EF and ECT(0), and a payload.
fn ip4(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let [l0, l1] = (20 + payload.len() as u16).to_be_bytes();
    let [f0, f1] = fragment.to_be_bytes();
    let header = [&[0x45, 46 << 2 | 2, l0, l1, 0xab, 0xcd, f0, f1, 64, protocol, 0, 0], &FAR_SRC[..], &FAR_DST[..]];
    [header.concat(), payload.to_vec()].concat()
}

fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], &ethertype.to_be_bytes()[..], payload].concat()
}

fn far_key(protocol: u8, src_port: u16, dst_port: u16) -> FlowKey {
    FlowKey { dscp: 46, ..key4(FAR_SRC, FAR_DST, protocol, src_port, dst_port) }
}

fn link_key(ethertype: u16) -> FlowKey {
    FlowKey { src: MAC_SRC, dst: MAC_DST, ethertype, ..FlowKey::default() }
}

fn parse(link: LinkType, data: &[u8]) -> (Frame, ParseStats) {
    parse_with(Tunnel::Outer, link, data)
}

fn parse_with(tunnel: Tunnel, link: LinkType, data: &[u8]) -> (Frame, ParseStats) {
    let mut parser = Parser::new(tunnel);
    let frame = parser.parse(link, data.len() as u32, data);
    (frame, *parser.stats())
}

/// Parses a frame that must hold the packet of [`udp4`] or [`udp6`] after `link_header` bytes, with nothing irregular.
fn assert_plain(link: LinkType, data: &[u8], key: FlowKey) {
    let (frame, stats) = parse(link, data);
    assert_eq!(frame.key, key);
    assert_eq!(stats, ParseStats { frames: 1, ..ParseStats::default() });
    let length = if key.family == Family::V6 { 80 } else { 60 };
    assert_eq!(frame.network_length, length);
    assert_eq!(usize::from(frame.link_header), data.len() - length as usize);
    assert_eq!(usize::from(frame.headers), data.len() - 32);
    assert!(frame.splittable);
}

#[test]
fn vlan_tags_give_the_outermost_identifier() {
    let tagged = [&[0x60, 7, 0x08, 0], &udp4()[..]].concat();
    assert_plain(LinkType::Ethernet, &ethernet(0x8100, &tagged), FlowKey { vlan: 7, ..udp4_key() });
    let twice = [&[0x01, 0x00, 0x81, 0], &tagged[..]].concat();
    for outer in [0x88a8, 0x8100, 0x9100] {
        assert_plain(LinkType::Ethernet, &ethernet(outer, &twice), FlowKey { vlan: 256, ..udp4_key() });
    }
    let many = [[0, 9, 0x81, 0].repeat(40), vec![0x08, 0]].concat();
    let (frame, stats) = parse(LinkType::Ethernet, &ethernet(0x8100, &many));
    assert_eq!((frame.key, stats.non_ip), (FlowKey { vlan: 9, ..link_key(0x8100) }, 1));
}

#[test]
fn mpls_labels_end_in_ip_or_ethernet() {
    let labels = [0, 1, 0x00, 64, 0, 2, 0x01, 64];
    assert_plain(LinkType::Ethernet, &ethernet(0x8847, &[&labels, &udp4()[..]].concat()), udp4_key());
    assert_plain(LinkType::Ethernet, &ethernet(0x8848, &[&labels, &udp6()[..]].concat()), udp6_key());
    let wire = [&labels, &[0; 4][..], &ethernet(0x0800, &udp4())].concat();
    assert_plain(LinkType::Ethernet, &ethernet(0x8847, &wire), udp4_key());
    let tagged = [&labels, &[0; 4][..], &ethernet(0x8100, &[&[0, 5, 0x08, 0], &udp4()[..]].concat())].concat();
    assert_plain(LinkType::Ethernet, &ethernet(0x8847, &tagged), udp4_key());
    // Bytes that look like IP, but whose length exceeds the frame, are not IP.
    let guess = [&labels, &[0x45, 0, 0xff, 0xff][..], &[0; 40]].concat();
    let (frame, stats) = parse(LinkType::Ethernet, &ethernet(0x8847, &guess));
    assert_eq!((frame.key, stats.non_ip, stats.length_corrected), (link_key(0x8847), 1, 0));
}

#[test]
fn pppoe_sessions_carry_ip() {
    let session = |protocol: [u8; 2], packet: &[u8]| {
        let length = (packet.len() as u16 + 2).to_be_bytes();
        ethernet(0x8864, &[&[0x11, 0, 0, 1], &length[..], &protocol, packet].concat())
    };
    assert_plain(LinkType::Ethernet, &session([0x00, 0x21], &udp4()), udp4_key());
    assert_plain(LinkType::Ethernet, &session([0x00, 0x57], &udp6()), udp6_key());
    let (frame, stats) = parse(LinkType::Ethernet, &session([0xc0, 0x21], &[1, 2, 3, 4]));
    assert_eq!((frame.key, stats.non_ip), (link_key(0x8864), 1));
}

#[test]
fn snap_is_followed_and_other_llc_is_one_flow() {
    let snap = [&[0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0], &udp4()[..]].concat();
    assert_plain(LinkType::Ethernet, &ethernet(snap.len() as u16, &snap), udp4_key());
    for length in [38, 39] {
        let (frame, stats) = parse(LinkType::Ethernet, &ethernet(length, &[0x42, 0x42, 3, 0, 0, 0, 0, 0]));
        assert_eq!((frame.key, stats.non_ip), (link_key(LLC), 1));
    }
    let (frame, stats) = parse(LinkType::Ethernet, &ethernet(0x0806, &[0; 28]));
    assert_eq!((frame.key, frame.size, stats.non_ip), (link_key(0x0806), 42, 1));
}

#[test]
fn other_link_types_lead_to_the_same_packet() {
    let sll = [&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0], &udp4()[..]].concat();
    assert_plain(LinkType::LinuxSll, &sll, udp4_key());
    let sll2 = [&[0x86, 0xdd, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], &udp6()[..]].concat();
    assert_plain(LinkType::LinuxSll2, &sll2, udp6_key());
    let mut arp = sll[..16].to_vec();
    arp[15] = 6;
    assert_eq!(parse(LinkType::LinuxSll, &arp).0.key, FlowKey { dst: 0, ..link_key(0x0806) });
    for family in [[2, 0, 0, 0], [0, 0, 0, 2]] {
        assert_plain(LinkType::Null, &[&family, &udp4()[..]].concat(), udp4_key());
    }
    for family in [10, 23, 24, 28, 30] {
        assert_plain(LinkType::Loop, &[&[0, 0, 0, family], &udp6()[..]].concat(), udp6_key());
    }
    assert_eq!(parse(LinkType::Null, &[7, 0, 0, 0, 1, 2]).1.non_ip, 1);
    assert_plain(LinkType::RawIp, &udp4(), udp4_key());
    assert_plain(LinkType::RawIp, &udp6(), udp6_key());
    let (frame, stats) = parse(LinkType::from_dlt(127), &udp4());
    assert_eq!((frame.key, frame.size, stats.unsupported_link), (FlowKey::default(), 60, 1));
    let known = [0, 1, 12, 14, 101, 108, 113, 228, 229, 276];
    assert!(known.iter().all(|&number| !matches!(LinkType::from_dlt(number), LinkType::Other(_))));
}

/// Every supported tunnel around [`udp4`] or [`udp6`], with its protocol, outer ports and the headers up to UDP.
fn tunnels() -> Vec<(&'static str, Vec<u8>, FlowKey, FlowKey)> {
    let gre = far_key(47, 0, 0);
    let bridged = [&[0, 0, 0x65, 0x58], &ethernet(0x0800, &udp4())[..]].concat();
    let keyed = [&[0xb0, 0, 0x86, 0xdd, 1, 1, 0, 0, 2, 2, 2, 2, 3, 3, 3, 3], &udp6()[..]].concat();
    let inner = ethernet(0x8100, &[&[0, 3, 0x08, 0], &udp4()[..]].concat());
    let vxlan = |port: u16| {
        let length = (16 + inner.len() as u16).to_be_bytes();
        [&[0x30, 0x39], &port.to_be_bytes()[..], &length, &[0, 0, 8, 0, 0, 0, 0, 0, 1, 0], &inner].concat()
    };
    vec![
        ("GRE", ip4(47, 0, &[&[0, 0, 0x08, 0], &udp4()[..]].concat()), gre, udp4_key()),
        ("GRE with checksum, key and sequence number", ip4(47, 0, &keyed), gre, udp6_key()),
        ("Ethernet over GRE", ip4(47, 0, &bridged), gre, udp4_key()),
        ("VXLAN", ip4(17, 0, &vxlan(4789)), far_key(17, 12345, 4789), udp4_key()),
        ("IP in IP", ip4(4, 0, &udp4()), far_key(4, 0, 0), udp4_key()),
        ("IPv6 in IP", ip4(41, 0, &udp6()), far_key(41, 0, 0), udp6_key()),
        ("IP in IP in GRE", ip4(47, 0, &[&[0, 0, 0x08, 0], &ip4(4, 0, &udp4())[..]].concat()), gre, udp4_key()),
    ]
}

#[test]
fn a_tunnel_is_the_outer_flow_or_on_request_the_inner_one() {
    for (name, packet, outer, inner) in tunnels() {
        let data = ethernet(0x8100, &[&[0, 9, 0x08, 0], &packet[..]].concat());
        for (tunnel, key) in [(Tunnel::Outer, outer), (Tunnel::Inner, inner)] {
            let (frame, stats) = parse_with(tunnel, LinkType::Ethernet, &data);
            assert_eq!(frame.key, FlowKey { vlan: 9, dscp: 46, ..key }, "{name}");
            assert_eq!(frame.ecn, Ecn::Ect0, "{name}: the outer header's");
            assert_eq!(stats, ParseStats { frames: 1, tunnels: 1, ..ParseStats::default() }, "{name}");
            assert_eq!(usize::from(frame.headers), data.len() - 32, "{name}: all headers up to the innermost payload");
            assert_eq!((frame.link_header, frame.network_length as usize), (18, packet.len()), "{name}");
            assert!(frame.splittable, "{name}");
        }
    }
}

#[test]
fn a_tunnel_that_cannot_be_followed_keeps_the_outer_flow() {
    let deep = (0..8).fold(udp4(), |packet, _| ip4(4, 0, &packet));
    let others = [
        ("routing and version 1", ip4(47, 0, &[0x40, 0, 0x08, 0, 0, 0, 0, 0])),
        ("version 1", ip4(47, 0, &[0x30, 1, 0x88, 0x0b, 0, 0, 0, 0, 0, 0, 0, 0])),
        ("not IP", ip4(47, 0, &[&[0, 0, 0x65, 0x58], &ethernet(0x0806, &[0; 28])[..]].concat())),
        ("cut", ip4(4, 0, &udp4()[..10])),
        ("not VXLAN", ip4(17, 0, &[0x30, 0x39, 0x12, 0xb5, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
        ("too deep", deep),
    ];
    for (name, packet) in others {
        let (frame, stats) = parse_with(Tunnel::Inner, LinkType::RawIp, &packet);
        assert_eq!(stats.tunnels_not_followed, 1, "{name}");
        assert_eq!(frame.key.src, far_key(0, 0, 0).src, "{name}");
    }
}

#[test]
fn fragments_join_the_flow_of_the_first() {
    let mut parser = Parser::new(Tunnel::Outer);
    let datagram = udp4()[20..].to_vec();
    let first = parser.parse(LinkType::RawIp, 44, &ip4(17, 0x2000, &datagram[..24]));
    assert_eq!(first.key, far_key(17, 1000, 2000));
    assert!(!first.splittable);
    let middle = parser.parse(LinkType::RawIp, 28, &ip4(17, 0x2003, &datagram[24..32]));
    let last = parser.parse(LinkType::RawIp, 28, &ip4(17, 0x0004, &datagram[32..]));
    assert_eq!((middle.key, last.key), (first.key, first.key));
    assert!(!middle.splittable && !last.splittable);
    let other = parser.parse(LinkType::RawIp, 28, &ip4(6, 0x0004, &datagram[32..]));
    assert_eq!(other.key, far_key(6, 0, 0));
    let stats = parser.stats();
    assert_eq!((stats.first_fragments, stats.later_fragments_matched, stats.later_fragments_unmatched), (1, 2, 1));

    // A first fragment whose ports were not captured is not stored.
    let mut parser = Parser::new(Tunnel::Outer);
    parser.parse(LinkType::RawIp, 44, &ip4(17, 0x2000, &datagram[..24])[..22]);
    parser.parse(LinkType::RawIp, 28, &ip4(17, 0x0003, &datagram[24..32]));
    let stats = parser.stats();
    assert_eq!((stats.cut_before_ports, stats.later_fragments_unmatched), (1, 1));
}

#[test]
fn fragments_of_a_tunnel_join_the_inner_flow() {
    let packet = ip4(47, 0x2000, &[&[0, 0, 0x08, 0], &udp4()[..40]].concat());
    let mut parser = Parser::new(Tunnel::Inner);
    let first = parser.parse(LinkType::RawIp, packet.len() as u32, &packet);
    assert_eq!(first.key, FlowKey { dscp: 46, ..udp4_key() });
    assert!(!first.splittable);
    let later = parser.parse(LinkType::RawIp, 40, &ip4(47, 0x0005, &udp4()[40..]));
    assert_eq!(later.key, first.key);
    assert_eq!(parser.stats().later_fragments_matched, 1);
}

#[test]
fn fragments_of_ipv6_join_the_flow_of_the_first() {
    let fragment = |offset_and_more: u16, next: u8, payload: &[u8]| {
        let mut packet = udp6()[..40].to_vec();
        packet[4..6].copy_from_slice(&(8 + payload.len() as u16).to_be_bytes());
        packet[6] = 44;
        let [o0, o1] = offset_and_more.to_be_bytes();
        [&packet[..], &[next, 0, o0, o1, 1, 2, 3, 4], payload].concat()
    };
    // Destination options before UDP: a later fragment only states that these come first.
    let datagram = [&[17, 0, 1, 4, 0, 0, 0, 0], &udp6()[40..]].concat();
    let mut parser = Parser::new(Tunnel::Outer);
    let first = parser.parse(LinkType::RawIp, 72, &fragment(1, 60, &datagram[..24]));
    assert_eq!(first.key, udp6_key());
    let later = parser.parse(LinkType::RawIp, 72, &fragment(24, 60, &datagram[24..]));
    assert_eq!(later.key, udp6_key());
    // An atomic fragment (RFC 6946) is a complete datagram.
    let atomic = parser.parse(LinkType::RawIp, 96, &fragment(0, 60, &datagram));
    assert_eq!((atomic.key, atomic.splittable), (udp6_key(), true));
    let stats = parser.stats();
    assert_eq!((stats.first_fragments, stats.later_fragments_matched, stats.later_fragments_unmatched), (1, 1, 0));
}

#[test]
fn transports_have_ports_or_none() {
    let ports = [3, 0xe8, 7, 0xd0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0];
    for protocol in [6, 17, 33, 132, 136] {
        assert_eq!(parse(LinkType::RawIp, &ip4(protocol, 0, &ports)).0.key, far_key(protocol, 1000, 2000));
    }
    for protocol in [1, 2, 50, 89, 255] {
        let (frame, stats) = parse(LinkType::RawIp, &ip4(protocol, 0, &ports));
        assert_eq!(frame.key, far_key(protocol, 0, 0));
        assert_eq!(stats, ParseStats { frames: 1, ..ParseStats::default() });
    }
    // The packet that an ICMP error quotes is not its flow.
    let error = [&[3, 1, 0, 0, 0, 0, 0, 0], &udp4()[..]].concat();
    assert_eq!(parse_with(Tunnel::Inner, LinkType::RawIp, &ip4(1, 0, &error)).0.key, far_key(1, 0, 0));
    // An authentication header is skipped.
    let authenticated = [&[17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1], &udp4()[20..]].concat();
    assert_eq!(parse(LinkType::RawIp, &ip4(51, 0, &authenticated)).0.key, far_key(17, 1000, 2000));
}

#[test]
fn missing_headers_are_counted_by_cause() {
    let count = |data: &[u8], original_len: u32| {
        let mut parser = Parser::new(Tunnel::Outer);
        let frame = parser.parse(LinkType::RawIp, original_len, data);
        let counted = parser.stats().iter().filter(|(name, count, _)| *name != "frames" && *count > 0);
        (frame, counted.map(|(name, ..)| name).collect::<Vec<_>>())
    };
    assert_eq!(count(&udp4()[..22], 60).1, ["cut_before_ports"]);
    assert_eq!(count(&ip4(17, 0, &[1, 2]), 22).1, ["short_transport"]);
    // Padding is not read as ports.
    assert_eq!(count(&[ip4(17, 0, &[1, 2]), vec![3; 20]].concat(), 42).0.key, far_key(17, 0, 0));
    assert_eq!(count(&[], 60).1, ["cut_before_network_header"]);
    assert_eq!(count(&[0x75; 60], 60).1, ["bad_ip_header"]);
    assert_eq!(count(&[0x44; 60], 60).1, ["bad_ip_header"]);
    let mut short = udp4();
    short[3] = 19;
    let (frame, counted) = count(&short, 60);
    assert_eq!((frame.key, counted), (key4(SRC, DST, 17, 0, 0), vec!["bad_ip_header"]));
    let mut chain = udp6()[..40].to_vec();
    chain[6] = 60;
    chain.extend([60, 0, 1, 4, 0, 0, 0, 0].repeat(20));
    chain[5] = 160;
    assert_eq!(count(&chain, 200).1, ["extensions_not_followed"]);
    // A length field that was captured is used, even if the addresses were not captured.
    let (frame, counted) = count(&udp4()[..4], 4);
    assert_eq!((frame.size, counted), (60, vec!["cut_before_network_header", "length_corrected"]));
}

#[test]
fn super_packets_are_split_as_the_wire_carries_them() {
    let mut packet = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4(SRC, DST, 64)
        .tcp(1000, 2000, 1, 2)
        .write(&mut packet, &[0; 1460 * 3 + 100])
        .unwrap();
    let (frame, _) = parse(LinkType::Ethernet, &packet);
    assert_eq!(frame.segments(1500), Some(Segments { count: 4, full: 1514, last: 154 }));
    let segments = frame.segments(1500).unwrap();
    assert_eq!(segments.sizes().collect::<Vec<_>>(), [1514, 1514, 1514, 154]);
    assert_eq!(segments.total(), u64::from(frame.size) + 3 * 54);
    assert_eq!(frame.segments(65535), None);
    assert_eq!(frame.segments(40), None, "no room for a payload");
    // Cutting after the headers does not change the result, and neither does the length of zero that offload leaves.
    let mut parser = Parser::new(Tunnel::Outer);
    let original_len = packet.len() as u32;
    assert_eq!(parser.parse(LinkType::Ethernet, original_len, &packet[..54]), frame);
    packet[16..18].fill(0);
    assert_eq!(parser.parse(LinkType::Ethernet, original_len, &packet[..54]), frame);
    assert_eq!((parser.stats().length_from_record, parser.stats().length_corrected), (1, 0));
    // An exact multiple leaves no small packet at the end.
    let exact = Frame { network_length: 40 + 1460 * 2, ..frame };
    assert_eq!(exact.segments(1500), Some(Segments { count: 2, full: 1514, last: 1514 }));
    // A frame with a check sequence at its end is not a super-packet.
    let trailed = Frame { network_length: 1500, size: 1518, ..frame };
    assert_eq!(trailed.segments(1500), None);
}
