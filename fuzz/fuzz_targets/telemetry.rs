//! Reports of In-band Network Telemetry, and INT headers in packets.
//!
//! Input: a byte that selects what follows. Either a payload with reports, whose packets are searched for INT headers, or a
//! frame from a link.
#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_wire::parse::{LinkType, Tunnel};
use queuescope_wire::telemetry::{
    DscpMark, Hop, Inner, IntHeader, IntPacket, IntParser, Main, MalformedReport, Marks, Reports, TelemetryReport,
    TlvContents,
};

fuzz_target!(|input: &[u8]| {
    let Some((&choice, data)) = input.split_first() else { return };
    let marks = Marks {
        udp_port: (choice & 1 != 0).then_some(5000),
        dscp: (choice & 2 != 0).then_some(DscpMark { value: 0x17, mask: 0x3f }),
        probe: (choice & 4 != 0).then_some(0x1234_5678_9abc_def0),
        before_tcp_options: choice & 8 != 0,
    };
    let tunnel = if choice & 16 == 0 { Tunnel::Outer } else { Tunnel::Inner };
    let mut parser = IntParser::new(marks, tunnel);
    if choice & 32 != 0 {
        let link = if choice & 64 == 0 { LinkType::Ethernet } else { LinkType::RawIp };
        check(&parser.parse(link, Some(data.len() as u32), data));
        return;
    }
    let Ok(mut reports) = Reports::read(data) else { return };
    let (mut bytes, mut failed) = (8, false);
    for report in &mut reports {
        let Ok(report) = report else {
            failed = true;
            continue;
        };
        bytes += check_report(&report);
        if let Ok(Some(packet)) = report.packet() {
            check(&parser.parse_truncated(&packet));
        }
    }
    // Every byte belongs to a report, or there is an error.
    assert!(if failed { bytes < data.len() } else { bytes == data.len() });
    assert!(reports.next().is_none());
});

/// Checks a report, and returns the bytes that it has.
fn check_report(report: &TelemetryReport) -> usize {
    let main = match &report.main {
        Main::None => 0,
        Main::Int(own) => {
            assert!(own.instructions.words() * 4 + own.hop.domain_specific.len() == own.hop.raw.len());
            8 + check_hop(&own.hop)
        }
        Main::Unread { body, .. } => return 4 + body.len(),
    };
    let inner = match &report.inner {
        Inner::None => 0,
        Inner::DomainSpecific(bytes) | Inner::Unread { bytes, .. } => bytes.len(),
        Inner::Packet(packet) => packet.bytes.len(),
        // Its parts end with it, or with an error that has the rest.
        Inner::Tlvs(tlvs) => {
            let parts = tlvs.clone().map(|tlv| match tlv.map(|tlv| tlv.contents) {
                Ok(TlvContents::DomainSpecific(bytes) | TlvContents::Unread { bytes, .. }) => 4 + bytes.len(),
                Ok(TlvContents::Packet(packet)) => 4 + packet.bytes.len(),
                Err(MalformedReport::CutTlv { bytes, .. }) => bytes,
                Err(other) => panic!("{other}"),
            });
            parts.sum()
        }
    };
    4 + main + inner
}

fn check_hop(hop: &Hop) -> usize {
    assert!(hop.domain_specific.len() <= hop.raw.len());
    assert_eq!(hop.unavailable.and(hop.unknown).0, 0);
    hop.raw.len()
}

fn check(parsed: &IntPacket) {
    assert!(parsed.frame.link_header <= parsed.frame.headers);
    assert!(parsed.frame.network_length <= parsed.frame.size);
    let Ok(Some(headers)) = &parsed.int else {
        assert_eq!(parsed.added, 0);
        return;
    };
    assert!(parsed.added as usize >= headers.length());
    let IntHeader::Md(md) = headers.header else { return };
    assert_eq!(md.stack.len() + headers.missing, md.stack_words * 4);
    let hops: usize = md.hops().map(|hop| check_hop(&hop)).sum();
    assert!(hops <= md.stack.len());
    assert!(md.hops().len() <= md.hop_count());
    if headers.missing == 0 {
        assert_eq!((hops, md.hops().len()), (md.stack.len(), md.hop_count()));
    }
    for source_only in 0..8 {
        if let Ok(all) = md.hops_with(source_only) {
            assert_eq!(all.clone().count(), all.len());
        }
    }
}
