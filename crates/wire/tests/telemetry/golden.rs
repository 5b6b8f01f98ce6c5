//! The worked examples of the specifications. They leave addresses, identifiers and measurements open: these are our own.

use queuescope_wire::Granularity;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::telemetry::{
    DscpMark, Hop, Inner, Instructions, IntHeader, IntMd, IntMx, IntPacket, IntParser, Main, Marks, Next, Reports,
    TelemetryReport, TlvContents,
};

const INT_PORT: u16 = 5000;

/// Bytes from hexadecimal digits.
fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn only(payload: &[u8]) -> TelemetryReport<'_> {
    let mut reports = Reports::read(payload).unwrap();
    let report = reports.next().unwrap().unwrap();
    assert_eq!(reports.next(), None);
    assert!(report.flags.tracked);
    assert!(!report.flags.dropped && !report.flags.congested && !report.flags.intermediate);
    report
}

fn by_port() -> IntParser {
    IntParser::new(Marks { udp_port: Some(INT_PORT), ..Marks::default() }, Tunnel::Outer)
}

fn name(parsed: &IntPacket) -> String {
    Granularity::FiveTuple.name(&parsed.frame.key)
}

fn md<'a>(parsed: &IntPacket<'a>) -> IntMd<'a> {
    match parsed.int.unwrap().unwrap().header {
        IntHeader::Md(md) => md,
        other => panic!("{other:?}"),
    }
}

fn mx<'a>(parsed: &IntPacket<'a>) -> IntMx<'a> {
    match parsed.int.unwrap().unwrap().header {
        IntHeader::Mx(mx) => mx,
        other => panic!("{other:?}"),
    }
}

/// Nodes and the occupancy of their queues.
fn queues<'a>(hops: impl Iterator<Item = Hop<'a>>) -> Vec<(u32, u8, u32)> {
    hops.map(|hop| (hop.node.unwrap(), hop.queue.unwrap(), hop.queue_occupancy.unwrap())).collect()
}

/// An IPv4 header from 10.0.0.1 to 10.0.0.2.
fn ip(length: u16, protocol: u8, dscp: u8) -> String {
    format!("45 {:02x} {length:04x} 0001 0000 40 {protocol:02x} 0000 0a000001 0a000002", dscp << 2)
}

/// A TCP header from port 443 to 50010.
const TCP: &str = "01bb c35a 00000009 00000007 5010 0100 0000 0000";
const FLOW: &str = "10.0.0.1:443 > 10.0.0.2:50010 tcp";
/// A UDP header from port 56789 to the port that marks INT.
const UDP: &str = "ddd5 1388 0000 0000";
/// A header of INT-MD for node and queue, and two hops: node 2 with 512 in queue 3, and node 1 with 256 in queue 4.
const MD: &str = "20000206 90000000 00000000  00000002 03000200  00000001 04000100";
const MX: &str = "20000000 90000000 00000000";

/// TRF section 4.1.
#[test]
fn baseline_metadata_and_ipv4() {
    let payload = bytes(&format!(
        "2040002a 00000003  14 0e 02 20  5000 0000 0000 0000  00030005 07001000 {} {TCP}",
        ip(40, 6, 0)
    ));
    // As it was captured at the collector: in a frame, whose end was filled up.
    let length = payload.len() as u16;
    let headers =
        format!("020000000002 020000000001 0800 {} c000 7d00 {:04x} 0000", ip(28 + length, 17, 0), 8 + length);
    let captured = [bytes(&headers), payload, vec![0; 5]].concat();
    let frame = Parser::new(Tunnel::Outer).parse(LinkType::Ethernet, captured.len() as u32, &captured);
    assert_eq!(frame.key.dst_port, 0x7d00);
    let report = only(frame.payload(&captured));
    assert_eq!((report.group.hardware, report.group.sequence, report.group.node), (1, 42, 3));
    let Main::Int(own) = report.main else { panic!("{report:?}") };
    assert_eq!(own.instructions, Instructions(Instructions::INTERFACES.0 | Instructions::QUEUE.0));
    assert_eq!((own.domain, own.domain_instructions, own.domain_status), (0, 0, 0));
    let expected = Hop {
        node: Some(3),
        ingress_interface: Some(3),
        egress_interface: Some(5),
        queue: Some(7),
        queue_occupancy: Some(4096),
        raw: &[0, 3, 0, 5, 7, 0, 0x10, 0],
        ..Hop::default()
    };
    assert_eq!(own.hop, expected);
    let parsed = by_port().parse_truncated(&report.packet().unwrap().unwrap());
    assert_eq!((name(&parsed).as_str(), parsed.int, parsed.frame.size), (FLOW, Ok(None), 40));
}

/// TRF section 4.2. Its text has an MD Length of 2 for three words of metadata; section 3.3 makes it 3.
#[test]
fn domain_specific_metadata_extension_and_ipv4() {
    let payload = bytes(&format!(
        "20000001 00000003  11 12 03 20  5000 5453 8000 0001  00030005 07001000 cafe0001 \
         00 01 0009 12345678  20 0a 0000 {} {TCP}",
        ip(40, 6, 0)
    ));
    let report = only(&payload);
    let Main::Int(own) = report.main else { panic!("{report:?}") };
    assert_eq!((own.domain, own.domain_instructions, own.domain_status), (0x5453, 0x8000, 1));
    assert_eq!((own.hop.queue_occupancy, own.hop.domain_specific), (Some(4096), &[0xca, 0xfe, 0, 1][..]));
    let Inner::Tlvs(tlvs) = report.inner.clone() else { panic!("{report:?}") };
    let tlvs: Vec<_> = tlvs.map(Result::unwrap).collect();
    assert_eq!(tlvs.len(), 2);
    assert_eq!((tlvs[0].template, tlvs[0].contents), (9, TlvContents::DomainSpecific(&[0x12, 0x34, 0x56, 0x78])));
    let packet = report.packet().unwrap().unwrap();
    assert_eq!(tlvs[1].contents, TlvContents::Packet(packet));
    assert_eq!(name(&by_port().parse_truncated(&packet)), FLOW);
}

/// TRF section 4.3, whose packet is that of INT section 6.3.
#[test]
fn embedded_int_md_in_tcp() {
    let payload = bytes(&format!(
        "20000001 00000003  14 17 01 20  1000 0000 0000 0000  07001000 {} {UDP} 18 07 0006 {MD} {TCP}",
        ip(40 + 8 + 32, 17, 0)
    ));
    let report = only(&payload);
    let Main::Int(own) = report.main else { panic!("{report:?}") };
    let mut parser = by_port();
    let parsed = parser.parse_truncated(&report.packet().unwrap().unwrap());
    assert_eq!((name(&parsed).as_str(), parsed.frame.size, parsed.added), (FLOW, 40, 40));
    assert_eq!(parsed.int.unwrap().unwrap().next, Next::Transport { protocol: 6 });
    let md = md(&parsed);
    assert_eq!((md.hop_words, md.remaining_hops, md.hop_count()), (2, 6, 2));
    assert!(!md.discard && !md.hops_exceeded && !md.mtu_exceeded);
    // The whole path, from the sink back to the source.
    let path = queues(std::iter::once(own.hop).chain(md.hops()));
    assert_eq!(path, [(3, 7, 4096), (2, 3, 512), (1, 4, 256)]);
    let stats = *parser.stats();
    assert_eq!((stats.packets, stats.md, stats.mx, stats.cut), (1, 1, 0, 0));
}

/// TRF section 4.4. The example has UDP as the protocol of the inner packet, and a TCP header.
#[test]
fn embedded_int_md_over_udp_in_vxlan() {
    let inner = "45 00 0028 0001 0000 40 06 0000 0a0a0101 0a0a0202";
    let payload = bytes(&format!(
        "20000001 00000003  04 21 00 20 \
         45 00 0082 0001 0000 40 11 0000 c0a80101 c0a80202  ddd5 1388 006e 0000 \
         14 09 12b5  20000205 c0000000 00000000  00000003 00050006  00000002 00030004  00000001 00010002 \
         08000000 00000700  020000000002 020000000001 0800 {inner} {TCP} 0000"
    ));
    let report = only(&payload);
    assert_eq!(report.main, Main::None);
    let packet = report.packet().unwrap().unwrap();
    for (tunnel, flow) in [
        (Tunnel::Outer, "192.168.1.1:56789 > 192.168.2.2:4789 udp"),
        (Tunnel::Inner, "10.10.1.1:443 > 10.10.2.2:50010 tcp"),
    ] {
        let mut parser = IntParser::new(Marks { udp_port: Some(INT_PORT), ..Marks::default() }, tunnel);
        let parsed = parser.parse_truncated(&packet);
        assert_eq!((name(&parsed).as_str(), parsed.frame.size, parsed.added), (flow, 130 - 40, 40));
        assert_eq!(parsed.int.unwrap().unwrap().next, Next::UdpPayload { port: 4789 });
        let interfaces = |hop: Hop| (hop.node.unwrap(), hop.ingress_interface.unwrap(), hop.egress_interface.unwrap());
        let hops: Vec<_> = md(&parsed).hops().rev().map(interfaces).collect();
        assert_eq!(hops, [(1, 1, 2), (2, 3, 4), (3, 5, 6)]);
    }
}

/// INT sections 6.1 to 6.6: over TCP by DSCP, with a new UDP header, and within UDP.
#[test]
fn int_over_tcp_and_udp() {
    let by_dscp = Marks { dscp: Some(DscpMark { value: 0x17, mask: 0x3f }), ..Marks::default() };
    let by_port = Marks { udp_port: Some(INT_PORT), ..Marks::default() };
    let (dscp, new_udp, udp) =
        (Next::Unchanged { dscp: 10 }, Next::Transport { protocol: 6 }, Next::UdpPayload { port: 4000 });
    let udp_flow = "10.0.0.1:56789 > 10.0.0.2:4000 udp";
    let payload = "cafe0001";
    for (section, marks, next, packet, flow, size) in [
        ("6.1", by_dscp, dscp, format!("{} {TCP} 10 07 0028 {MD} {payload}", ip(76, 6, 0x17)), FLOW, 44),
        ("6.2", by_dscp, dscp, format!("{} {TCP} 30 03 0028 {MX} {payload}", ip(60, 6, 0x17)), FLOW, 44),
        ("6.3", by_port, new_udp, format!("{} {UDP} 18 07 0006 {MD} {TCP}", ip(80, 17, 0)), FLOW, 40),
        ("6.4", by_port, new_udp, format!("{} {UDP} 38 03 0006 {MX} {TCP}", ip(64, 17, 0)), FLOW, 40),
        ("6.5", by_port, udp, format!("{} {UDP} 14 07 0fa0 {MD} {payload}", ip(64, 17, 0)), udp_flow, 32),
        ("6.6", by_port, udp, format!("{} {UDP} 34 03 0fa0 {MX} {payload}", ip(48, 17, 0)), udp_flow, 32),
    ] {
        let packet = bytes(&packet);
        let parsed = IntParser::new(marks, Tunnel::Outer).parse(LinkType::RawIp, Some(packet.len() as u32), &packet);
        assert_eq!((name(&parsed).as_str(), parsed.frame.size), (flow, size), "{section}");
        assert_eq!((size + parsed.added) as usize, packet.len(), "{section}");
        let headers = parsed.int.unwrap().unwrap();
        assert_eq!((headers.next, headers.missing), (next, 0), "{section}");
        match headers.header {
            IntHeader::Md(md) => assert_eq!(queues(md.hops()), [(2, 3, 512), (1, 4, 256)], "{section}"),
            IntHeader::Mx(mx) => {
                assert_eq!((mx.instructions.0, mx.domain, mx.source_inserted), (0x9000, 0, &[][..]), "{section}");
            }
            other => panic!("{section}: {other:?}"),
        }
    }
}

/// INT section 6.7: IPsec in a new IP packet.
#[test]
fn int_before_an_inner_ip_packet() {
    let inner =
        "45 00 0038 0001 0000 40 33 0000 0a0a0101 0a0a0202  06 04 0000 00000001 00000001 000000000000000000000000";
    let packet = bytes(&format!("{} {UDP} 38 03 0004 {MX} {inner} 01bb c35a 00000009", ip(100, 17, 0)));
    for (tunnel, flow) in
        [(Tunnel::Outer, "10.0.0.1 > 10.0.0.2 ipip"), (Tunnel::Inner, "10.10.1.1:443 > 10.10.2.2:50010 tcp")]
    {
        let marks = Marks { udp_port: Some(INT_PORT), ..Marks::default() };
        let parsed = IntParser::new(marks, tunnel).parse(LinkType::RawIp, Some(100), &packet);
        assert_eq!((name(&parsed).as_str(), parsed.frame.size), (flow, 76));
        assert_eq!(mx(&parsed).instructions.0, 0x9000);
    }
}

/// INT sections 6.8, 6.12 and 6.14: behind the shims of GRE, VXLAN-GPE and Geneve.
#[test]
fn int_md_in_other_headers() {
    let header = bytes(MD);
    let md = IntMd::read(&header, 7 * 4).unwrap();
    assert_eq!(queues(md.hops()), [(2, 3, 512), (1, 4, 256)]);
    let three = bytes("20000205 90000000 00000000  00000003 07001000  00000002 03000200  00000001 04000100");
    let md = IntMd::read(&three, 9 * 4).unwrap();
    assert_eq!((queues(md.hops()).len(), md.remaining_hops), (3, 5));
}

/// INT section 6.16.
#[test]
fn int_mx_with_metadata_of_the_source() {
    let packet = format!("{} {UDP} 38 05 0006 20000000 9000abcd c0000000 0000000f 12345678 {TCP}", ip(72, 17, 0));
    let packet = bytes(&packet);
    let parsed = by_port().parse(LinkType::RawIp, Some(72), &packet);
    assert_eq!((name(&parsed).as_str(), parsed.frame.size), (FLOW, 40));
    let mx = mx(&parsed);
    assert_eq!((mx.domain, mx.domain_instructions, mx.domain_flags), (0xabcd, 0xc000, 0));
    assert_eq!(mx.source_inserted, [0, 0, 0, 15, 0x12, 0x34, 0x56, 0x78]);
}

/// INT section 6.17: the source adds two words, more than a hop has. The header does not have their number.
#[test]
fn int_md_with_metadata_of_the_source() {
    let header = bytes("20000105 80005453 80004000  00000003 00000002 00000001 a61af6b1 647d0000");
    let md = IntMd::read(&header, header.len()).unwrap();
    assert_eq!((md.domain, md.domain_instructions, md.domain_flags), (0x5453, 0x8000, 0x4000));
    let hops: Vec<_> = md.hops_with(2).unwrap().collect();
    assert_eq!(hops.iter().map(|hop| hop.node).collect::<Vec<_>>(), [Some(3), Some(2), Some(1)]);
    assert_eq!(hops[2].domain_specific, [0xa6, 0x1a, 0xf6, 0xb1, 0x64, 0x7d, 0, 0]);
    assert_eq!(hops[1].domain_specific, []);
    // Without this knowledge, five hops are possible.
    assert_eq!(md.hops().len(), 5);
}

/// All metadata that there are in version 2.1, in the order of their bits.
#[test]
fn a_hop_with_all_metadata() {
    let metadata = "00000009 00010002 00000bb8 05000a00 0000000100000002 0000000300000004 0000000500000006 \
                    00002710 06000b00 0000c0de 0000beef";
    // Twelve words for bits 0 to 8, one of the domain, and one for the complement.
    let header = bytes(&format!("20000e07 ff815453 80000000 {metadata}"));
    let md = IntMd::read(&header, header.len()).unwrap();
    let expected = Hop {
        node: Some(9),
        ingress_interface: Some(1),
        egress_interface: Some(2),
        latency: Some(3000),
        queue: Some(5),
        queue_occupancy: Some(2560),
        ingress_time: Some(0x0000_0001_0000_0002),
        egress_time: Some(0x0000_0003_0000_0004),
        logical_ingress_interface: Some(5),
        logical_egress_interface: Some(6),
        tx_utilisation: Some(10_000),
        buffer: Some(6),
        buffer_occupancy: Some(2816),
        checksum_complement: Some(0xbeef),
        domain_specific: &[0, 0, 0xc0, 0xde],
        raw: &header[12..],
        ..Hop::default()
    };
    assert_eq!(md.hops().collect::<Vec<_>>(), [expected]);
}
