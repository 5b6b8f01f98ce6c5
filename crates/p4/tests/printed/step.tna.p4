// step: marks behind the queue what waited longer than a constant.
// After Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010, section 3.1.

#include <core.p4>
#include <tna.p4>

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

header bridge_h {
    bit<48> enqueued;
}

struct headers_t {
    bridge_h bridge;
    ethernet_h ethernet;
    vlan_h vlan;
    ipv4_h ipv4;
    ipv6_h ipv6;
}

struct metadata_t {
    bit<2> ecn;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.ecn = 0;
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md, inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    action send(PortId_t port) {
        ig_tm_md.ucast_egress_port = port;
        hdr.bridge.setValid();
        hdr.bridge.enqueued = ig_prsr_md.global_tstamp;
    }
    action discard() {
        ig_dprsr_md.drop_ctl = 1;
    }
    table forward {
        key = {
            hdr.ethernet.destination: exact;
        }
        actions = {
            send;
            discard;
        }
        default_action = discard();
        size = 1024;
    }
    apply {
        forward.apply();
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
        in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    apply {
        packet.emit(hdr);
    }
}

parser EgressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        meta.ecn = 0;
        packet.extract(eg_intr_md);
        packet.extract(hdr.bridge);
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_VLAN: parse_vlan;
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }
    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        transition accept;
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
        in egress_intrinsic_metadata_from_parser_t eg_prsr_md, inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
        inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    bit<32> sojourn = 0;
    bit<32> threshold = 0;
    bit<32> compared_0 = 0;

    // The longest sojourn time without a mark.
    action set_parameters(bit<32> threshold_of_entry) {
        threshold = threshold_of_entry;
    }
    table parameters {
        actions = {
            set_parameters;
        }
        default_action = set_parameters(32w0x130b0);
        size = 1;
    }

    action assign_sojourn_0() {
        sojourn = eg_prsr_md.global_tstamp[31:0] - hdr.bridge.enqueued[31:0];
    }
    table compute_sojourn_0 {
        actions = {
            assign_sojourn_0;
        }
        default_action = assign_sojourn_0();
        size = 1;
    }
    action assign_compared_0_1() {
        compared_0 = sojourn |-| threshold;
    }
    table compute_compared_0_1 {
        actions = {
            assign_compared_0_1;
        }
        default_action = assign_compared_0_1();
        size = 1;
    }
    apply {
        if (hdr.ipv4.isValid()) {
            meta.ecn = hdr.ipv4.ecn;
        } else {
            meta.ecn = hdr.ipv6.ecn;
        }
        if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            compute_sojourn_0.apply();
            parameters.apply();
            compute_compared_0_1.apply();
            if (compared_0 != 32w0 && meta.ecn != 2w0) {
                if (hdr.ipv4.isValid()) {
                    // The header checksum follows (RFC 1624).
                    if (hdr.ipv4.ecn == 2) {
                        if (hdr.ipv4.checksum == 0) {
                            hdr.ipv4.checksum = 0xfffe;
                        } else {
                            hdr.ipv4.checksum = hdr.ipv4.checksum - 1;
                        }
                    } else if (hdr.ipv4.ecn == 1) {
                        if (hdr.ipv4.checksum == 0) {
                            hdr.ipv4.checksum = 0xfffd;
                        } else if (hdr.ipv4.checksum == 1) {
                            hdr.ipv4.checksum = 0xfffe;
                        } else {
                            hdr.ipv4.checksum = hdr.ipv4.checksum - 2;
                        }
                    }
                    hdr.ipv4.ecn = 3;
                } else {
                    hdr.ipv6.ecn = 3;
                }
            }
        }
    }
}

control EgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
        in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
    }
}

Pipeline(IngressParser(), MainIngress(), IngressDeparser(), EgressParser(), MainEgress(), EgressDeparser()) pipe;
Switch(pipe) main;
