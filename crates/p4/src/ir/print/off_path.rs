//! The parts of programs for a switch beside the path: what is parsed beyond ports, reports, and a Tofino's egress, which does nothing.

/// The headers behind the ports.
pub(super) const NUMBERS_HEADERS: &str = "\
// What follows the ports of TCP.
header tcp_h {
bit<32> sequence;
bit<32> acknowledgement;
}

// What follows the ports of UDP: the length and the checksum.
header udp_h {
bit<32> both;
}
";

/// Fields of the metadata, members of the headers, the states that take the place of that of the ports, and the end of the deparser.
pub(super) const NUMBERS: [&str; 4] = [
    "bit<32> sequence;\nbit<32> acknowledgement;\n",
    "tcp_h tcp;\nudp_h udp;\n",
    "state parse_tcp {\npacket.extract(hdr.ports);\nmeta.ports = hdr.ports.both;\npacket.extract(hdr.tcp);\n\
     meta.sequence = hdr.tcp.sequence;\nmeta.acknowledgement = hdr.tcp.acknowledgement;\ntransition accept;\n}\n\
     state parse_udp {\npacket.extract(hdr.ports);\nmeta.ports = hdr.ports.both;\npacket.extract(hdr.udp);\n\
     meta.sequence = hdr.udp.both;\ntransition accept;\n}\n",
    "packet.emit(hdr.tcp);\npacket.emit(hdr.udp);\n",
];

/// The header of a report. The packet follows as the tap gave it.
pub(super) const REPORT_HEADER: &str = "\
const bit<16> ETHERTYPE_REPORT = 0x88b6;

// How long the packet behind it was in the router, in nanoseconds, and the bytes of its flow that were in the queue before it.
header report_h {
bit<32> delay;
bit<32> estimate;
}
";

/// The members of the headers in front of all others, and what the deparser does with them.
pub(super) const REPORT_MEMBERS: &str = "ethernet_h report_ethernet;\nreport_h report;\n";
pub(super) const EMIT_REPORT: &str = "packet.emit(hdr.report_ethernet);\npacket.emit(hdr.report);\n";

/// A report. The addresses are locally administered ones.
pub(super) const REPORT: &str = "\
hdr.report_ethernet.setValid();
hdr.report_ethernet.destination = 0xffffffffffff;
hdr.report_ethernet.source = 0x020000000001;
hdr.report_ethernet.ether_type = ETHERTYPE_REPORT;
hdr.report.setValid();
hdr.report.delay = DELAY;
hdr.report.estimate = ESTIMATE;";

/// The same in a test build.
pub(super) const REPORT_OF_TEST: &str = "\
hdr.test.reports = 1;
hdr.test.reported_to = (bit<16>)TO_COLLECTOR;
hdr.test.reported_delay = DELAY;
hdr.test.reported_estimate = ESTIMATE;";

/// The fields of a test build's header with a report.
pub(super) const REPORT_FIELDS: &str = "\
bit<16> reports;
bit<16> reported_to;
bit<32> reported_delay;
bit<32> reported_estimate;
";

/// The half behind the queue of a Tofino.
pub(super) const EGRESS_OF_TNA: &str = "\
struct egress_headers_t {
}

struct egress_metadata_t {
}

parser EgressParser(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta, out egress_intrinsic_metadata_t eg_intr_md) {
state start {
packet.extract(eg_intr_md);
transition accept;
}
}

control MainEgress(inout egress_headers_t hdr, inout egress_metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
    in egress_intrinsic_metadata_from_parser_t eg_prsr_md, inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
    inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
apply {
}
}

control EgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta,
    in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
apply {
}
}
";
