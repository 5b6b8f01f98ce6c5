//! Each way in which reports and headers can be malformed.

use queuescope_wire::parse::{LinkType, Tunnel};
use queuescope_wire::telemetry::{
    DscpMark, IntHeaders, IntMd, IntParser, MalformedInt, MalformedReport, Marks, Reports, TelemetryReport,
};

const GROUP: [u8; 8] = [0x20, 0, 0, 1, 0, 0, 0, 7];

fn read(reports: &[u8]) -> Vec<Result<bool, MalformedReport>> {
    let payload = [&GROUP, reports].concat();
    let dropped = |report: TelemetryReport| report.flags.dropped;
    Reports::read(&payload).unwrap().map(|report| report.map(dropped)).collect()
}

#[test]
fn a_payload_that_is_not_a_group_of_reports() {
    for length in 0..8 {
        assert_eq!(Reports::read(&GROUP[..length]).unwrap_err(), MalformedReport::CutGroup { bytes: length });
    }
    assert_eq!(Reports::read(&GROUP).unwrap_err(), MalformedReport::NoReport);
    for version in (0..16).filter(|&version| version != 2) {
        let payload = [version << 4, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0];
        assert_eq!(Reports::read(&payload).unwrap_err(), MalformedReport::Version { version });
    }
}

#[test]
fn a_report_that_is_cut_ends_the_group() {
    let good = [0x00, 0, 0, 0x80];
    for cut in 1..4 {
        let error = MalformedReport::CutHeader { at: 12, bytes: cut };
        assert_eq!(read(&[&good[..], &good[..cut]].concat()), [Ok(true), Err(error)]);
    }
    let error = MalformedReport::CutReport { at: 8, stated: 8, bytes: 7 };
    assert_eq!(read(&[0x02, 2, 0, 0, 1, 2, 3, 4, 5, 6, 7]), [Err(error)]);
    // The length that reaches to the end states at least 255 words.
    let mut to_the_end = vec![0x02, 255, 0, 0x80];
    to_the_end.extend([0; 1019]);
    let error = MalformedReport::CutReport { at: 8, stated: 1020, bytes: 1019 };
    assert_eq!(read(&to_the_end), [Err(error)]);
    to_the_end.extend([0; 4]);
    assert_eq!(read(&to_the_end), [Ok(true)]);
}

#[test]
fn a_report_with_wrong_metadata_does_not_end_the_group() {
    let good = [0x00, 0, 0, 0x80];
    let long = [0x10, 3, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let error = MalformedReport::MetadataTooLong { at: 8, metadata: 2, bytes: 12 };
    assert_eq!(read(&[&long[..], &good].concat()), [Err(error), Ok(true)]);
    let no_fixed = [0x10, 1, 0, 0, 0, 0, 0, 0];
    let error = MalformedReport::MetadataTooLong { at: 8, metadata: 0, bytes: 4 };
    assert_eq!(read(&[&no_fixed[..], &good].concat()), [Err(error), Ok(true)]);
    // The ingress time needs two words.
    let short = [0x10, 3, 1, 0, 0x08, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let error = MalformedReport::MetadataTooShort { at: 8, metadata: 1, needed: 2 };
    assert_eq!(read(&[&short[..], &good].concat()), [Err(error), Ok(true)]);
}

#[test]
fn a_tlv_that_is_too_long_is_an_error_where_the_packet_is_searched() {
    let payload = [&GROUP[..], &[0x01, 3, 0, 0, 0x00, 1, 0, 0, 1, 2, 3, 4, 0x20, 1, 0, 0]].concat();
    let report = Reports::read(&payload).unwrap().next().unwrap().unwrap();
    assert_eq!(report.packet(), Err(MalformedReport::CutTlv { at: 20, bytes: 4 }));
    // Behind a packet, it does not matter for the packet.
    let payload = [&GROUP[..], &[0x01, 3, 0, 0, 0x20, 1, 0, 0, 1, 2, 3, 4, 0x20, 1, 0, 0]].concat();
    let report = Reports::read(&payload).unwrap().next().unwrap().unwrap();
    assert_eq!(report.packet().unwrap().unwrap().bytes, [1, 2, 3, 4]);
}

#[test]
fn headers_that_are_malformed() {
    let read = |bytes: &[u8]| IntHeaders::read(bytes).map(|_| ());
    for length in 0..4 {
        assert_eq!(read(&[0x10, 3, 0, 0][..length]), Err(MalformedInt::CutShim));
    }
    let good = [0x10, 3, 0, 0, 0x20, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(read(&good), Ok(()));
    for length in 4..16 {
        assert_eq!(read(&good[..length]), Err(MalformedInt::CutHeader { bytes: length - 4 }));
    }
    for kind in [0x10, 0x30] {
        assert_eq!(read(&[kind, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(MalformedInt::TooShort { words: 2 }));
        let old = [kind, 3, 0, 0, 0x10, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(read(&old), Err(MalformedInt::Version { version: 1 }));
    }
    let header = |hop_words, bits, domain| [0x20, 0, hop_words, 8, bits, 0, 0, 0, domain, 0, 0, 0];
    let stack = |words: usize, header: [u8; 12]| [&header[..], &vec![0; words * 4]].concat();
    let md = |words, header| {
        let bytes = stack(words, header);
        IntMd::read(&bytes, bytes.len()).map(|md| md.hops().len())
    };
    assert_eq!(md(2, header(1, 0x90, 0)), Err(MalformedInt::HopTooShort { hop_words: 1, needed: 2 }));
    assert_eq!(md(3, header(2, 0x90, 0)), Err(MalformedInt::Stack { stack_words: 3, hop_words: 2, source_only: 0 }));
    // A domain may add metadata at the source, but not without a hop.
    assert_eq!(md(3, header(2, 0x90, 1)), Ok(1));
    assert_eq!(md(1, header(2, 0x90, 1)), Err(MalformedInt::Stack { stack_words: 1, hop_words: 2, source_only: 1 }));
    assert_eq!(md(1, header(0, 0, 1)), Err(MalformedInt::Stack { stack_words: 1, hop_words: 0, source_only: 0 }));
}

#[test]
fn headers_beyond_the_packets_end_are_not_headers() {
    // The payload of a packet to this port is something else: 16 bytes that look like a shim of 255 words.
    let mut packet =
        vec![0x45, 0, 0, 44, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 0x13, 0x88, 0, 24, 0, 0];
    packet.extend([0x10, 0xff, 0, 0, 0x20, 0, 2, 8, 0x90, 0, 0, 0, 0, 0, 0, 0]);
    let mut parser = IntParser::new(Marks { udp_port: Some(5000), ..Marks::default() }, Tunnel::Outer);
    // 252 words for hops of two.
    let parsed = parser.parse(LinkType::RawIp, None, &packet);
    assert_eq!(parsed.int, Err(MalformedInt::TooLong { end: 28 + 4 + 255 * 4, packet: 44 }));
    assert_eq!((parsed.frame.key.dst_port, parsed.added, parser.stats().malformed), (5000, 0, 1));
}

/// A UDP packet of 48 bytes with this DSCP, and a header of INT-MX for its whole payload but 4 bytes.
fn marked(dscp: u8) -> Vec<u8> {
    let mut packet =
        vec![0x45, dscp << 2, 0, 48, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 0x0f, 0xa0];
    packet.extend([0, 28, 0, 0, 0x30, 3, 0, 0, 0x20, 0, 0, 0, 0x90, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
    packet
}

#[test]
fn only_the_masked_bits_of_a_dscp_mark_a_packet() {
    let mark = DscpMark { value: 0x25, mask: 0x21 };
    let mut parser = IntParser::new(Marks { dscp: Some(mark), ..Marks::default() }, Tunnel::Outer);
    for dscp in 0..64 {
        let packet = marked(dscp);
        let parsed = parser.parse(LinkType::RawIp, None, &packet);
        let is_marked = dscp & 0x20 != 0 && dscp & 0x01 != 0;
        assert_eq!(
            (parsed.int.unwrap().is_some(), parsed.added),
            (is_marked, if is_marked { 16 } else { 0 }),
            "{dscp}"
        );
        assert_eq!((parsed.frame.key.dscp, parsed.frame.size), (dscp, 48 - parsed.added));
    }
    assert_eq!((parser.stats().packets, parser.stats().mx, parser.stats().malformed), (64, 16, 0));
}

#[test]
fn what_only_looks_like_ip_has_no_int() {
    let mut parser =
        IntParser::new(Marks { dscp: Some(DscpMark { value: 0x17, mask: 0x3f }), ..Marks::default() }, Tunnel::Outer);
    let mpls = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0x47, 0, 1, 1, 64][..], &marked(0x17)].concat();
    // Below MPLS labels, a packet that does not fit its frame is not IP.
    for (length, is_ip) in [(66, true), (65, false)] {
        let parsed = parser.parse(LinkType::Ethernet, Some(length), &mpls);
        assert_eq!((parsed.int.unwrap().is_some(), parsed.frame.key.protocol == 17), (is_ip, is_ip));
    }
}

#[test]
fn later_fragments_have_the_flow_of_the_first_without_int() {
    let mut parser = IntParser::new(Marks { udp_port: Some(5000), ..Marks::default() }, Tunnel::Outer);
    let mut first = marked(0);
    first[6] = 0x20;
    first[22..24].copy_from_slice(&5000u16.to_be_bytes());
    first[28..32].copy_from_slice(&[0x34, 3, 0x0f, 0xa0]);
    let mut later = first[..20].to_vec();
    later[2..8].copy_from_slice(&[0, 20, 0, 0, 0, 6]);
    let first = parser.parse(LinkType::RawIp, None, &first);
    let later = parser.parse(LinkType::RawIp, None, &later);
    assert_eq!((first.added, later.added), (16, 0));
    assert_eq!((first.frame.key.dst_port, later.frame.key), (4000, first.frame.key));
}

#[test]
fn padding_has_no_int() {
    let marks = Marks { dscp: Some(DscpMark { value: 0x17, mask: 0x3f }), ..Marks::default() };
    let mut parser = IntParser::new(marks, Tunnel::Outer);
    // The packet has no payload: what looks like INT is behind its end.
    let mut packet = marked(0x17);
    packet[3] = 28;
    let parsed = parser.parse(LinkType::RawIp, Some(48), &packet);
    assert_eq!((parsed.int, parsed.added), (Err(MalformedInt::CutShim), 0));
}

#[test]
fn only_a_udp_header_can_have_been_inserted() {
    let marks = Marks { dscp: Some(DscpMark { value: 0x17, mask: 0x3f }), ..Marks::default() };
    let mut parser = IntParser::new(marks, Tunnel::Outer);
    // Behind TCP, the next protocol has no meaning (NPT, INT section 5.7.2): nothing but INT is removed.
    for npt in 0..4 {
        let mut packet = vec![0x45, 0x17 << 2, 0, 60, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([1, 187, 0xc3, 0x5a, 0, 0, 0, 9, 0, 0, 0, 7, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        packet.extend([0x30 | npt << 2, 3, 0, 17, 0x20, 0, 0, 0, 0x90, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
        let parsed = parser.parse(LinkType::RawIp, None, &packet);
        let key = parsed.frame.key;
        assert_eq!((key.protocol, key.src_port, key.dst_port), (6, 443, 50010), "{npt}");
        assert_eq!((parsed.frame.size, parsed.added), (44, 16), "{npt}");
    }
}
