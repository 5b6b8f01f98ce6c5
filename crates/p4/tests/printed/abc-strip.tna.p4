// abc-strip: removes activity headers where packets leave the domain.
// After Menth et al., P4-ABC, Future Internet 2019, section 3.

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

const bit<16> ETHERTYPE_ACTIVITY = 0x88b5;

// The activity in two's complement, with 8 fraction bits, and what is behind this header.
header activity_h {
    bit<16> activity;
    bit<16> ether_type;
}

header bridge_h {
    bit<48> enqueued;
}

struct headers_t {
    bridge_h bridge;
    ethernet_h ethernet;
    activity_h activity;
    vlan_h vlan;
    ipv4_h ipv4;
    ipv6_h ipv6;
}

struct metadata_t {
    bit<2> ecn;
    bit<1> has_activity;
    bit<1> malformed;
    bit<16> activity;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.ecn = 0;
        meta.has_activity = 0;
        meta.malformed = 0;
        meta.activity = 0;
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_ACTIVITY: parse_activity;
            ETHERTYPE_VLAN: parse_vlan;
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }
    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.ether_type) {
            ETHERTYPE_ACTIVITY: parse_nested;
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
    state parse_activity {
        packet.extract(hdr.activity);
        transition select(hdr.activity.ether_type) {
            ETHERTYPE_ACTIVITY: parse_nested;
            default: parse_carried;
        }
    }
    state parse_nested {
        meta.malformed = 1;
        transition accept;
    }
    state parse_carried {
        meta.has_activity = 1;
        meta.activity = hdr.activity.activity;
        transition select(hdr.activity.ether_type) {
            ETHERTYPE_VLAN: parse_vlan;
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md, inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    bit<1> outside = 0;

    // Packets that came to the port with an activity header that is malformed or forged.
    Register<bit<32>, bit<7>>(128, 0) refused;
    RegisterAction<bit<32>, bit<7>, bit<32>>(refused) count_refused = {
        void apply(inout bit<32> word) {
            word = word |+| 32w1;
        }
    };

    // Whether packets that arrive at a port come from outside of the domain.
    action set_domain(bit<1> outside_of_entry) {
        outside = outside_of_entry;
    }
    table domain {
        key = {
            ig_intr_md.ingress_port: exact @name("arrival_port");
        }
        actions = {
            set_domain;
        }
        default_action = set_domain(1w0);
        size = 512;
    }

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
        if (forward.apply().hit) {
            if (meta.has_activity == 1 || meta.malformed == 1 || hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
                domain.apply();
                if (meta.malformed == 1w1 || (meta.has_activity == 1w1 && outside == 1w1)) {
                    // Only the domain writes activities.
                    count_refused.execute(ig_intr_md.ingress_port[6:0]);
                    ig_dprsr_md.drop_ctl = 1;
                }
            }
        }
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
        meta.has_activity = 0;
        meta.malformed = 0;
        meta.activity = 0;
        packet.extract(eg_intr_md);
        packet.extract(hdr.bridge);
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_ACTIVITY: parse_activity;
            ETHERTYPE_VLAN: parse_vlan;
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }
    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.ether_type) {
            ETHERTYPE_ACTIVITY: parse_nested;
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
    state parse_activity {
        packet.extract(hdr.activity);
        transition select(hdr.activity.ether_type) {
            ETHERTYPE_ACTIVITY: parse_nested;
            default: parse_carried;
        }
    }
    state parse_nested {
        meta.malformed = 1;
        transition accept;
    }
    state parse_carried {
        meta.has_activity = 1;
        meta.activity = hdr.activity.activity;
        transition select(hdr.activity.ether_type) {
            ETHERTYPE_VLAN: parse_vlan;
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
        in egress_intrinsic_metadata_from_parser_t eg_prsr_md, inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
        inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {

    apply {
        if (meta.has_activity == 1 || hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            if (meta.has_activity == 1w1) {
                hdr.ethernet.ether_type = hdr.activity.ether_type;
                hdr.activity.setInvalid();
            }
        }
    }
}

control EgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
        in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.activity);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
    }
}

Pipeline(IngressParser(), MainIngress(), IngressDeparser(), EgressParser(), MainEgress(), EgressDeparser()) pipe;
Switch(pipe) main;
