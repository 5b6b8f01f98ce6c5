//! The first lines of a program: what it is, and the headers that it parses.

use super::Printer;
use super::activity::ACTIVITY_HEADER;
use super::off_path::{NUMBERS, NUMBERS_HEADERS, REPORT_HEADER};
use crate::ir::builder::SwitchProgram;
use crate::ir::variable::Input;

impl Printer<'_> {
    pub(super) fn head(&mut self) {
        let SwitchProgram { name, about, source, .. } = self.program;
        let architecture = self.architecture.name();
        self.line(&format!("// {name}: {about}."));
        if !source.is_empty() {
            self.line(&format!("// After {source}."));
        }
        if let Some(period) = self.program.period {
            let to = if self.program.is_off_path { "" } else { " to each port" };
            self.line(&format!("// The packet generator sends a packet{to} every {period}."));
        }
        self.line("");
        self.line("#include <core.p4>");
        self.line(&format!("#include <{architecture}.p4>"));
        self.line("");
        self.lines(HEADERS);
        if self.uses_activity() {
            self.line("");
            self.lines(ACTIVITY_HEADER);
        }
        if self.reads_numbers() {
            self.line("");
            self.lines(NUMBERS_HEADERS);
        }
        if self.reports() {
            self.line("");
            self.lines(REPORT_HEADER);
        }
        if self.reads_tcp() {
            self.line("");
            self.lines(TCP_HEADER);
        }
        self.line("");
    }

    /// Whether the program reads what identifies a flow.
    pub(super) fn reads_flow(&self) -> bool {
        Input::FLOW.iter().any(|input| self.reads(*input))
    }

    /// A template with the parsing of what identifies a flow, if the program reads that.
    pub(super) fn with_flow(&self, template: &str) -> String {
        let mut parts = if self.reads_flow() { FLOW } else { WITHOUT_FLOW }.map(str::to_owned);
        if self.reads(Input::IpLength) {
            parts[0] += "bit<16> ip_length;\n";
            parts[2].insert_str(0, "meta.ip_length = hdr.ipv4.total_length;\n");
            parts[3].insert_str(0, "meta.ip_length = hdr.ipv6.payload_length;\n");
        }
        if self.reads(Input::Identification) {
            parts[0] += "bit<16> identification;\n";
            parts[2].insert_str(0, "meta.identification = hdr.ipv4.identification;\n");
        }
        if self.reads_numbers() {
            let [fields, members, states, emit] = NUMBERS;
            parts[0] += fields;
            parts[1] += members;
            for part in &mut parts[2..4] {
                *part = part.replace("6: parse_ports", "6: parse_tcp").replace("6): parse_ports", "6): parse_tcp");
                *part = part.replace("parse_ports", "parse_udp");
            }
            parts[4] = states.to_owned();
            parts[5] += emit;
        }
        if self.reads(Input::IpWords) {
            parts[0] += "bit<4> ip_words;\n";
            parts[2].insert_str(0, "meta.ip_words = hdr.ipv4.header_words;\n");
        }
        if self.reads_tcp() {
            parts[0] += TCP_FIELDS;
            parts[1] += "tcp_h tcp;\n";
            parts[4] = parts[4].replace("transition accept;\n", TO_TCP) + TCP_STATE;
            parts[5] += "packet.emit(hdr.tcp);\n";
        }
        let marks =
            ["FLOW_FIELDS\n", "PORTS_MEMBER\n", "AFTER_IPV4\n", "AFTER_IPV6\n", "PORTS_STATE\n", "EMIT_PORTS\n"];
        marks.into_iter().zip(parts).fold(template.to_owned(), |text, (mark, part)| text.replace(mark, &part))
    }

    /// A template with the parsing of the activity header, if the program reads that.
    pub(super) fn with_activity(&self, template: &str, parts: [&str; 6]) -> String {
        let parts = if self.uses_activity() { parts } else { [""; 6] };
        let marks = [
            "ACTIVITY_FIELDS\n",
            "ACTIVITY_MEMBER\n",
            "ACTIVITY_SELECT\n",
            "ACTIVITY_STATES\n",
            "EMIT_ACTIVITY\n",
            "ACTIVITY_NESTED\n",
        ];
        marks.into_iter().zip(parts).fold(template.to_owned(), |text, (mark, part)| text.replace(mark, part))
    }

    /// The header in front of that of the activity. A frame of a test build has it behind the header of the test.
    pub(super) fn carrier(&self) -> &'static str {
        if self.is_test { "hdr.carrier" } else { "hdr.ethernet" }
    }
}

/// The headers that all programs parse.
const HEADERS: &str = "\
const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_IPV6 = 0x86dd;
const bit<16> ETHERTYPE_VLAN = 0x8100;

header ethernet_h {
bit<48> destination;
bit<48> source;
bit<16> ether_type;
}

header vlan_h {
bit<3> priority;
bit<1> drop_eligible;
bit<12> id;
bit<16> ether_type;
}

header ipv4_h {
bit<4> version;
bit<4> header_words;
bit<6> dscp;
bit<2> ecn;
bit<16> total_length;
bit<16> identification;
bit<3> flags;
bit<13> fragment_offset;
bit<8> ttl;
bit<8> protocol;
bit<16> checksum;
bit<32> source;
bit<32> destination;
}

header ipv6_h {
bit<4> version;
bit<6> dscp;
bit<2> ecn;
bit<20> flow_label;
bit<16> payload_length;
bit<8> next_header;
bit<8> hop_limit;
bit<96> source_high;
bit<32> source_low;
bit<96> destination_high;
bit<32> destination_low;
}

// The ports of TCP and UDP.
header ports_h {
bit<32> both;
}
";

/// The TCP header behind the ports.
const TCP_HEADER: &str = "\
// The TCP header behind the ports (RFC 9293).
header tcp_h {
bit<32> sequence;
bit<32> acknowledgement;
bit<4> words;
bit<4> reserved;
bit<8> flags;
bit<16> window;
bit<16> checksum;
bit<16> urgent;
}
";
const TCP_FIELDS: &str = "bit<4> tcp_words;\nbit<8> tcp_flags;\nbit<16> window;\nbit<16> tcp_checksum;\n";
const TO_TCP: &str = "transition select(meta.protocol) {\n6: parse_tcp;\ndefault: accept;\n}\n";
const TCP_STATE: &str = "\
state parse_tcp {
packet.extract(hdr.tcp);
meta.tcp_words = hdr.tcp.words;
meta.tcp_flags = hdr.tcp.flags;
meta.window = hdr.tcp.window;
meta.tcp_checksum = hdr.tcp.checksum;
AFTER_TCP
transition accept;
}
";

/// What is added to the parsers of programs that read the flow: its metadata, a header and its place, the ends of the states of both
/// IP headers, the state of the ports, and their place in the deparser.
const FLOW: [&str; 6] = [
    "// What identifies the flow. Of IPv6 addresses, the last 32 bits.\nbit<32> source;\nbit<32> destination;\nbit<32> ports;\n\
     bit<8> protocol;\n",
    "ports_h ports;\n",
    "meta.source = hdr.ipv4.source;\nmeta.destination = hdr.ipv4.destination;\nmeta.protocol = hdr.ipv4.protocol;\n\
     transition select(hdr.ipv4.header_words, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {\n(5, 0, 6): parse_ports;\n\
     (5, 0, 17): parse_ports;\ndefault: accept;\n}\n",
    "meta.source = hdr.ipv6.source_low;\nmeta.destination = hdr.ipv6.destination_low;\nmeta.protocol = hdr.ipv6.next_header;\n\
     transition select(hdr.ipv6.next_header) {\n6: parse_ports;\n17: parse_ports;\ndefault: accept;\n}\n",
    "state parse_ports {\npacket.extract(hdr.ports);\nmeta.ports = hdr.ports.both;\ntransition accept;\n}\n",
    "packet.emit(hdr.ports);\n",
];
const WITHOUT_FLOW: [&str; 6] = ["", "", "transition accept;\n", "transition accept;\n", "", ""];
