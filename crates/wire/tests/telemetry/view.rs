//! What the library reads, in the form of the reference.

use super::reference::{Fields, Group, hex};
use queuescope_wire::parse::LinkType;
use queuescope_wire::telemetry::{
    Hop, Inner, IntHeader, IntHeaders, Main, MalformedInt, MalformedReport, Next, Reports, TelemetryReport,
    TlvContents, Truncated,
};

fn put<T: ToString>(fields: &mut Fields, name: &'static str, value: Option<T>) {
    if let Some(value) = value {
        fields.insert(name, value.to_string());
    }
}

pub fn hop(hop: &Hop) -> Fields {
    let mut fields = Fields::new();
    put(&mut fields, "node", hop.node);
    put(&mut fields, "ingress_interface", hop.ingress_interface);
    put(&mut fields, "egress_interface", hop.egress_interface);
    put(&mut fields, "latency", hop.latency);
    put(&mut fields, "queue", hop.queue);
    put(&mut fields, "queue_occupancy", hop.queue_occupancy);
    put(&mut fields, "ingress_time", hop.ingress_time);
    put(&mut fields, "egress_time", hop.egress_time);
    put(&mut fields, "logical_ingress_interface", hop.logical_ingress_interface);
    put(&mut fields, "logical_egress_interface", hop.logical_egress_interface);
    put(&mut fields, "tx_utilisation", hop.tx_utilisation);
    put(&mut fields, "buffer", hop.buffer);
    put(&mut fields, "buffer_occupancy", hop.buffer_occupancy);
    put(&mut fields, "checksum_complement", hop.checksum_complement);
    put(&mut fields, "drop_queue", hop.drop_reason.map(|drop| drop.queue));
    put(&mut fields, "drop_reason", hop.drop_reason.map(|drop| drop.reason));
    fields.insert("unavailable", hop.unavailable.0.to_string());
    fields.insert("unknown", hop.unknown.0.to_string());
    fields.insert("domain_specific", hex(hop.domain_specific));
    fields.insert("raw", hex(hop.raw));
    fields
}

pub fn report(report: &TelemetryReport) -> Fields {
    let mut fields = Fields::new();
    let flags = report.flags;
    fields.insert("dropped", u8::from(flags.dropped).to_string());
    fields.insert("congested", u8::from(flags.congested).to_string());
    fields.insert("tracked", u8::from(flags.tracked).to_string());
    fields.insert("intermediate", u8::from(flags.intermediate).to_string());
    match &report.main {
        Main::None => {}
        Main::Int(own) => {
            fields.extend(hop(&own.hop));
            fields.insert("instructions", own.instructions.0.to_string());
            fields.insert("domain", own.domain.to_string());
            fields.insert("domain_instructions", own.domain_instructions.to_string());
            fields.insert("domain_status", own.domain_status.to_string());
        }
        Main::Unread { report_type, inner_type, body } => {
            assert_eq!(report.inner, Inner::None);
            fields.insert("unread_report", format!("{report_type} {inner_type} {}", hex(body)));
            return fields;
        }
    }
    let inner = match &report.inner {
        Inner::None => String::new(),
        Inner::Tlvs(tlvs) => tlvs.clone().fold("tlvs".to_owned(), |text, tlv| match tlv {
            Ok(tlv) => {
                let (kind, bytes) = match tlv.contents {
                    TlvContents::DomainSpecific(bytes) => ("domain".to_owned(), bytes),
                    TlvContents::Packet(packet) => (link(&packet).to_owned(), packet.bytes),
                    TlvContents::Unread { tlv_type, bytes } => (format!("unread {tlv_type}"), bytes),
                };
                text + &format!("; {kind} {} {}", tlv.template, hex(bytes))
            }
            Err(why) => {
                assert!(matches!(why, MalformedReport::CutTlv { .. }), "{why}");
                text + "; cut"
            }
        }),
        Inner::DomainSpecific(bytes) => format!("domain {}", hex(bytes)),
        Inner::Packet(packet) => format!("{} {}", link(packet), hex(packet.bytes)),
        Inner::Unread { inner_type, bytes } => format!("unread {inner_type} {}", hex(bytes)),
    };
    fields.insert("inner", inner);
    fields
}

fn link(packet: &Truncated) -> &'static str {
    match packet.link {
        LinkType::Ethernet => "ethernet",
        LinkType::RawIp => "ip",
        other => panic!("{other:?}"),
    }
}

/// As [`super::reference::reports`].
pub fn reports(payload: &[u8]) -> Group {
    let reports = Reports::read(payload).map_err(malformed)?;
    let header = *reports.header();
    let mut group = Fields::new();
    group.insert("hardware", header.hardware.to_string());
    group.insert("sequence", header.sequence.to_string());
    group.insert("node", header.node.to_string());
    let reports = reports.map(|read| {
        let read = read.map_err(malformed)?;
        assert_eq!(read.group, header);
        Ok(report(&read))
    });
    Ok((group, reports.collect()))
}

pub fn int(data: &[u8]) -> Result<(Fields, Vec<Fields>), &'static str> {
    match IntHeaders::read(data) {
        Ok(headers) => Ok(headers_and_hops(&headers)),
        Err(why) => Err(malformed_int(why)),
    }
}

/// As [`super::reference::int`].
pub fn headers_and_hops(headers: &IntHeaders) -> (Fields, Vec<Fields>) {
    let mut fields = Fields::new();
    let next = match headers.next {
        Next::Unchanged { dscp } => format!("unchanged {dscp}"),
        Next::UdpPayload { port } => format!("port {port}"),
        Next::Transport { protocol } => format!("protocol {protocol}"),
        Next::Unknown { value } => format!("unknown {value}"),
    };
    fields.insert("next", next);
    fields.insert("words", headers.words.to_string());
    fields.insert("missing", headers.missing.to_string());
    let mut common = |kind: &str, numbers: [u16; 4], discard: bool| {
        fields.insert("kind", kind.to_owned());
        for (name, number) in ["instructions", "domain", "domain_instructions", "domain_flags"].iter().zip(numbers) {
            fields.insert(name, number.to_string());
        }
        fields.insert("discard", u8::from(discard).to_string());
    };
    match headers.header {
        IntHeader::Md(md) => {
            common("md", [md.instructions.0, md.domain, md.domain_instructions, md.domain_flags], md.discard);
            fields.insert("hops_exceeded", u8::from(md.hops_exceeded).to_string());
            fields.insert("mtu_exceeded", u8::from(md.mtu_exceeded).to_string());
            fields.insert("hop_words", md.hop_words.to_string());
            fields.insert("remaining_hops", md.remaining_hops.to_string());
            fields.insert("hop_count", md.hop_count().to_string());
            let hops: Vec<Fields> = md.hops().map(|own| hop(&own)).collect();
            assert_eq!(hops.len(), md.hops().len());
            let mut backwards: Vec<Fields> = md.hops().rev().map(|own| hop(&own)).collect();
            backwards.reverse();
            assert_eq!(hops, backwards);
            return (fields, hops);
        }
        IntHeader::Mx(mx) => {
            common("mx", [mx.instructions.0, mx.domain, mx.domain_instructions, mx.domain_flags], mx.discard);
            fields.insert("source_inserted", hex(mx.source_inserted));
        }
        IntHeader::Destination(bytes) => _ = fields.insert("destination", hex(bytes)),
        IntHeader::Unread { int_type, bytes } => _ = fields.insert("unread", format!("{int_type} {}", hex(bytes))),
    }
    (fields, Vec::new())
}

pub fn malformed(why: MalformedReport) -> &'static str {
    match why {
        MalformedReport::CutGroup { .. } => "cut group",
        MalformedReport::Version { .. } => "version",
        MalformedReport::NoReport => "no report",
        MalformedReport::CutHeader { .. } => "cut header",
        MalformedReport::CutReport { .. } => "cut report",
        MalformedReport::MetadataTooLong { .. } => "metadata too long",
        MalformedReport::MetadataTooShort { .. } => "metadata too short",
        MalformedReport::CutTlv { .. } => "cut tlv",
    }
}

pub fn malformed_int(why: MalformedInt) -> &'static str {
    match why {
        MalformedInt::CutShim => "cut shim",
        MalformedInt::CutHeader { .. } => "cut header",
        MalformedInt::TooShort { .. } => "too short",
        MalformedInt::TooLong { .. } => "too long",
        MalformedInt::Version { .. } => "version",
        MalformedInt::HopTooShort { .. } => "hop too short",
        MalformedInt::Stack { .. } => "stack",
    }
}
