// abc-core-median: drops behind the queue, by activity, its median and the length of the queue.
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
    bit<32> own;
    bit<32> level;
    bit<1> has_activity;
    bit<1> malformed;
    bit<16> activity;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.ecn = 0;
        meta.own = 0;
        meta.level = 0;
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
        meta.own = 0;
        meta.level = 0;
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
    bit<19> shorter = 0;
    bit<16> queue = 0;
    bit<16> distance = 0;
    bit<16> behind = 0;
    bit<16> limit = 0;
    bit<32> wide_limit = 0;
    bit<32> wide_own = 0;
    bit<32> average = 0;
    bit<19> queue_length = 0;
    Hash<bit<19>>(HashAlgorithm_t.IDENTITY) bits_of_queue_length;
    bit<16> compared_0 = 0;
    bit<32> compared_1 = 0;
    bit<16> compared_2 = 0;
    Hash<bit<16>>(HashAlgorithm_t.IDENTITY) bits_of_queue;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) bits_of_wide_limit;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) bits_of_wide_own;

    // The average activity of accepted packets, in units of 2^-24 above -128.
    Register<bit<32>, bit<7>>(128, 2147483648) average_activity;
    RegisterAction<bit<32>, bit<7>, bit<32>>(average_activity) average_accepted = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            if (word < meta.level) {
                word = word;
            } else {
                if (word < meta.own) {
                    word = word |+| 32w0x40000;
                } else {
                    word = word |-| 32w0x40000;
                }
            }
        }
    };

    action assign_shorter_0() {
        shorter = min(queue_length, 19w511);
    }
    table compute_shorter_0 {
        actions = {
            assign_shorter_0;
        }
        default_action = assign_shorter_0();
        size = 1;
    }
    action assign_queue_1() {
        queue = bits_of_queue.get({shorter[15:0]});
    }
    table compute_queue_1 {
        actions = {
            assign_queue_1;
        }
        default_action = assign_queue_1();
        size = 1;
    }
    action assign_distance_2() {
        distance = 16w20 - queue;
    }
    table compute_distance_2 {
        actions = {
            assign_distance_2;
        }
        default_action = assign_distance_2();
        size = 1;
    }
    action assign_behind_3() {
        behind = distance << 4;
    }
    table compute_behind_3 {
        actions = {
            assign_behind_3;
        }
        default_action = assign_behind_3();
        size = 1;
    }
    action assign_limit_4() {
        limit = (bit<16>)((int<16>)meta.activity |-| (int<16>)behind);
    }
    table compute_limit_4 {
        actions = {
            assign_limit_4;
        }
        default_action = assign_limit_4();
        size = 1;
    }
    action assign_wide_limit_5() {
        wide_limit = bits_of_wide_limit.get({limit, 16w0});
    }
    table compute_wide_limit_5 {
        actions = {
            assign_wide_limit_5;
        }
        default_action = assign_wide_limit_5();
        size = 1;
    }
    action assign_wide_own_6() {
        wide_own = bits_of_wide_own.get({meta.activity, 16w0});
    }
    table compute_wide_own_6 {
        actions = {
            assign_wide_own_6;
        }
        default_action = assign_wide_own_6();
        size = 1;
    }
    action assign_own_7() {
        meta.own = wide_own ^ 32w0x80000000;
    }
    table compute_own_7 {
        actions = {
            assign_own_7;
        }
        default_action = assign_own_7();
        size = 1;
    }
    action assign_compared_0_8() {
        compared_0 = queue |-| 16w6;
    }
    table compute_compared_0_8 {
        actions = {
            assign_compared_0_8;
        }
        default_action = assign_compared_0_8();
        size = 1;
    }
    action assign_level_9() {
        meta.level = wide_limit ^ 32w0x80000000;
    }
    table compute_level_9 {
        actions = {
            assign_level_9;
        }
        default_action = assign_level_9();
        size = 1;
    }
    action assign_compared_1_10() {
        compared_1 = meta.level |-| average;
    }
    table compute_compared_1_10 {
        actions = {
            assign_compared_1_10;
        }
        default_action = assign_compared_1_10();
        size = 1;
    }
    action assign_compared_2_11() {
        compared_2 = queue |-| 16w20;
    }
    table compute_compared_2_11 {
        actions = {
            assign_compared_2_11;
        }
        default_action = assign_compared_2_11();
        size = 1;
    }
    apply {
        // Sixteen cells of 80 bytes count as a packet.
        queue_length = bits_of_queue_length.get({eg_intr_md.enq_qdepth[18:4]});
        if (meta.has_activity == 1 || hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            compute_shorter_0.apply();
            // Fields of other widths are moved by a hash unit, so that no field is cut for another one.
            compute_queue_1.apply();
            if (meta.has_activity == 1w1) {
                // The average at which the packet's threshold is the length of the queue: A - (Q_base - Q) / gamma.
                compute_distance_2.apply();
                compute_behind_3.apply();
                compute_limit_4.apply();
                compute_wide_limit_5.apply();
                compute_wide_own_6.apply();
                compute_own_7.apply();
                // No average is below 0: a packet that finds at most Q_min is not dropped.
                compute_compared_0_8.apply();
                if (compared_0 != 16w0) {
                    compute_level_9.apply();
                }
                average = average_accepted.execute(eg_intr_md.egress_port[6:0]);
                compute_compared_1_10.apply();
                if (compared_1 != 32w0) {
                    eg_dprsr_md.drop_ctl = 1;
                }
            } else {
                // A packet without activity counts as average.
                compute_compared_2_11.apply();
                if (compared_2 != 16w0) {
                    eg_dprsr_md.drop_ctl = 1;
                }
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
