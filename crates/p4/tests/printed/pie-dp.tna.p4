// pie-dp: PIE in the data plane, with shifts for products.
// After Kunze et al., Tofino + P4, IM 2021, section VI.C (PIE_DP).
// The packet generator sends a packet to each port every 117 µs.

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
    bit<8> generated;
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
    bit<16> delay;
    bit<32> step;
    bit<1> up;
    bit<32> drawn_here;
    bit<32> sojourn;
    bit<32> drawn;
    bit<1> generated;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.ecn = 0;
        meta.delay = 0;
        meta.step = 0;
        meta.up = 0;
        meta.drawn_here = 0;
        meta.sojourn = 0;
        meta.drawn = 0;
        meta.generated = 0;
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
        hdr.bridge.generated = 0;
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
        // The packet generator. A copy goes to each port.
        if (ig_intr_md.ingress_port == 68) {
            hdr.bridge.setValid();
            hdr.bridge.enqueued = 0;
            hdr.bridge.generated = 1;
            ig_tm_md.mcast_grp_a = 1;
        } else {
            forward.apply();
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
        meta.delay = 0;
        meta.step = 0;
        meta.up = 0;
        meta.drawn_here = 0;
        meta.sojourn = 0;
        meta.drawn = 0;
        meta.generated = 0;
        packet.extract(eg_intr_md);
        packet.extract(hdr.bridge);
        transition select(hdr.bridge.generated) {
            1: parse_generated;
            default: parse_ethernet;
        }
    }
    state parse_ethernet {
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
    state parse_generated {
        meta.generated = 1;
        transition accept;
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
        in egress_intrinsic_metadata_from_parser_t eg_prsr_md, inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
        inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    bit<16> before = 0;
    bit<16> distance = 0;
    bit<1> above = 0;
    bit<16> change = 0;
    bit<1> grows = 0;
    bit<32> alpha = 0;
    bit<32> beta = 0;
    bit<32> probability = 0;
    bit<32> drawn_before = 0;
    bit<16> compared_0 = 0;
    bit<16> compared_1 = 0;
    bit<32> compared_2 = 0;
    bit<32> compared_3 = 0;
    Random<bit<32>>() random_drawn_here;
    Random<bit<32>>() random_drawn;

    // The delay of the last packet, in units of 1024 ns.
    Register<bit<16>, bit<7>>(128, 0) last_delay;
    RegisterAction<bit<16>, bit<7>, bit<16>>(last_delay) read_delay = {
        void apply(inout bit<16> word, out bit<16> result) {
            result = word;
        }
    };
    RegisterAction<bit<16>, bit<7>, bit<16>>(last_delay) store_delay = {
        void apply(inout bit<16> word, out bit<16> result) {
            result = word;
            word = meta.sojourn[25:10];
        }
    };

    // The delay that the last generated packet read.
    Register<bit<16>, bit<7>>(128, 0) sampled_delay;
    RegisterAction<bit<16>, bit<7>, bit<16>>(sampled_delay) keep_delay = {
        void apply(inout bit<16> word, out bit<16> result) {
            result = word;
            word = meta.delay;
        }
    };

    // The drop probability, in units of 2^-32.
    Register<bit<32>, bit<7>>(128, 0) drop_probability;
    RegisterAction<bit<32>, bit<7>, bit<32>>(drop_probability) change_probability = {
        void apply(inout bit<32> word, out bit<32> result) {
            if ((bit<32>)meta.up == 32w1) {
                word = word |+| meta.step;
            } else {
                if (!((bit<32>)meta.up == 32w1)) {
                    word = word |-| meta.step;
                }
            }
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<7>, bit<32>>(drop_probability) read_probability = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };

    // The random number that was drawn for the last packet.
    Register<bit<32>, bit<7>>(128, 0) last_random;
    RegisterAction<bit<32>, bit<7>, bit<32>>(last_random) keep_random_here = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.drawn_here;
        }
    };
    RegisterAction<bit<32>, bit<7>, bit<32>>(last_random) keep_random = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.drawn;
        }
    };

    action assign_compared_0_0() {
        compared_0 = 16w125 |-| meta.delay;
    }
    table compute_compared_0_0 {
        actions = {
            assign_compared_0_0;
        }
        default_action = assign_compared_0_0();
        size = 1;
    }
    action assign_distance_1() {
        distance = meta.delay - 16w125;
    }
    table compute_distance_1 {
        actions = {
            assign_distance_1;
        }
        default_action = assign_distance_1();
        size = 1;
    }
    action assign_distance_2() {
        distance = 16w125 - meta.delay;
    }
    table compute_distance_2 {
        actions = {
            assign_distance_2;
        }
        default_action = assign_distance_2();
        size = 1;
    }
    action assign_compared_1_3() {
        compared_1 = before |-| meta.delay;
    }
    table compute_compared_1_3 {
        actions = {
            assign_compared_1_3;
        }
        default_action = assign_compared_1_3();
        size = 1;
    }
    action assign_change_4() {
        change = meta.delay - before;
    }
    table compute_change_4 {
        actions = {
            assign_change_4;
        }
        default_action = assign_change_4();
        size = 1;
    }
    action assign_change_5() {
        change = before - meta.delay;
    }
    table compute_change_5 {
        actions = {
            assign_change_5;
        }
        default_action = assign_change_5();
        size = 1;
    }
    action assign_alpha_6() {
        alpha = (bit<32>)distance << 9;
    }
    table compute_alpha_6 {
        actions = {
            assign_alpha_6;
        }
        default_action = assign_alpha_6();
        size = 1;
    }
    action assign_beta_7() {
        beta = (bit<32>)change << 19;
    }
    table compute_beta_7 {
        actions = {
            assign_beta_7;
        }
        default_action = assign_beta_7();
        size = 1;
    }
    action assign_step_8() {
        meta.step = alpha |+| beta;
    }
    table compute_step_8 {
        actions = {
            assign_step_8;
        }
        default_action = assign_step_8();
        size = 1;
    }
    action assign_compared_2_9() {
        compared_2 = beta |-| alpha;
    }
    table compute_compared_2_9 {
        actions = {
            assign_compared_2_9;
        }
        default_action = assign_compared_2_9();
        size = 1;
    }
    action assign_step_10() {
        meta.step = alpha - beta;
    }
    table compute_step_10 {
        actions = {
            assign_step_10;
        }
        default_action = assign_step_10();
        size = 1;
    }
    action assign_step_11() {
        meta.step = beta - alpha;
    }
    table compute_step_11 {
        actions = {
            assign_step_11;
        }
        default_action = assign_step_11();
        size = 1;
    }
    action assign_sojourn_12() {
        meta.sojourn = eg_prsr_md.global_tstamp[31:0] - hdr.bridge.enqueued[31:0];
    }
    table compute_sojourn_12 {
        actions = {
            assign_sojourn_12;
        }
        default_action = assign_sojourn_12();
        size = 1;
    }
    action assign_compared_3_13() {
        compared_3 = probability |-| drawn_before;
    }
    table compute_compared_3_13 {
        actions = {
            assign_compared_3_13;
        }
        default_action = assign_compared_3_13();
        size = 1;
    }
    apply {
        if (meta.generated == 1 || hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            if (meta.generated == 1w1) {
                // A generated packet changes the probability.
                meta.delay = read_delay.execute(eg_intr_md.egress_port[6:0]);
                before = keep_delay.execute(eg_intr_md.egress_port[6:0]);
                // The register's unit of 1024 ns counts as a microsecond.
                compute_compared_0_0.apply();
                if (compared_0 == 16w0) {
                    compute_distance_1.apply();
                    above = 1w1;
                } else {
                    compute_distance_2.apply();
                }
                compute_compared_1_3.apply();
                if (compared_1 == 16w0) {
                    compute_change_4.apply();
                    grows = 1w1;
                } else {
                    compute_change_5.apply();
                }
                compute_alpha_6.apply();
                compute_beta_7.apply();
                // If the signs differ, the smaller is subtracted from the larger.
                if (above == grows) {
                    compute_step_8.apply();
                    meta.up = above;
                } else {
                    compute_compared_2_9.apply();
                    if (compared_2 == 32w0) {
                        compute_step_10.apply();
                        meta.up = above;
                    } else {
                        compute_step_11.apply();
                        meta.up = grows;
                    }
                }
                change_probability.execute(eg_intr_md.egress_port[6:0]);
                meta.drawn_here = random_drawn_here.get();
                keep_random_here.execute(eg_intr_md.egress_port[6:0]);
                eg_dprsr_md.drop_ctl = 1;
            } else {
                compute_sojourn_12.apply();
                // The delay, in units of 1024 ns.
                store_delay.execute(eg_intr_md.egress_port[6:0]);
                probability = read_probability.execute(eg_intr_md.egress_port[6:0]);
                // One access returns the number that was drawn before, and stores the new one.
                meta.drawn = random_drawn.get();
                drawn_before = keep_random.execute(eg_intr_md.egress_port[6:0]);
                compute_compared_3_13.apply();
                if (compared_3 != 32w0) {
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
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
    }
}

Pipeline(IngressParser(), MainIngress(), IngressDeparser(), EgressParser(), MainEgress(), EgressDeparser()) pipe;
Switch(pipe) main;
