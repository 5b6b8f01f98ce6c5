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
    bit<32> amount;
    bit<16> delay;
    bit<32> down;
    bit<32> drawn_here;
    bit<32> sojourn;
    bit<32> drawn;
    bit<1> generated;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.ecn = 0;
        meta.amount = 0;
        meta.delay = 0;
        meta.down = 0;
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
        meta.amount = 0;
        meta.delay = 0;
        meta.down = 0;
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
    bit<16> above = 0;
    bit<16> below = 0;
    bit<32> alpha = 0;
    bit<16> growth = 0;
    bit<16> decline = 0;
    bit<32> beta = 0;
    bit<1> chosen = 0;
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
            if (meta.down == 32w0) {
                word = word |+| meta.amount;
            } else {
                if (!(meta.down == 32w0)) {
                    word = word |-| meta.down;
                }
            }
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<7>, bit<1>>(drop_probability) compare_probability = {
        void apply(inout bit<32> word, out bit<1> result) {
            result = 0;
            if (word > meta.amount) {
                result = 1;
            }
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

    action assign_above_0() {
        above = meta.delay |-| 16w125;
    }
    table compute_above_0 {
        actions = {
            assign_above_0;
        }
        default_action = assign_above_0();
        size = 1;
    }
    action assign_below_1() {
        below = 16w125 |-| meta.delay;
    }
    table compute_below_1 {
        actions = {
            assign_below_1;
        }
        default_action = assign_below_1();
        size = 1;
    }
    action assign_alpha_2() {
        alpha = (bit<32>)above << 9;
    }
    table compute_alpha_2 {
        actions = {
            assign_alpha_2;
        }
        default_action = assign_alpha_2();
        size = 1;
    }
    action assign_alpha_3() {
        alpha = (bit<32>)below << 9;
    }
    table compute_alpha_3 {
        actions = {
            assign_alpha_3;
        }
        default_action = assign_alpha_3();
        size = 1;
    }
    action assign_growth_4() {
        growth = meta.delay |-| before;
    }
    table compute_growth_4 {
        actions = {
            assign_growth_4;
        }
        default_action = assign_growth_4();
        size = 1;
    }
    action assign_decline_5() {
        decline = before |-| meta.delay;
    }
    table compute_decline_5 {
        actions = {
            assign_decline_5;
        }
        default_action = assign_decline_5();
        size = 1;
    }
    action assign_beta_6() {
        beta = (bit<32>)growth << 19;
    }
    table compute_beta_6 {
        actions = {
            assign_beta_6;
        }
        default_action = assign_beta_6();
        size = 1;
    }
    action assign_beta_7() {
        beta = (bit<32>)decline << 19;
    }
    table compute_beta_7 {
        actions = {
            assign_beta_7;
        }
        default_action = assign_beta_7();
        size = 1;
    }
    action assign_amount_8() {
        meta.amount = alpha |+| beta;
    }
    table compute_amount_8 {
        actions = {
            assign_amount_8;
        }
        default_action = assign_amount_8();
        size = 1;
    }
    action assign_amount_9() {
        meta.amount = alpha |-| beta;
    }
    table compute_amount_9 {
        actions = {
            assign_amount_9;
        }
        default_action = assign_amount_9();
        size = 1;
    }
    action assign_down_10() {
        meta.down = beta |-| alpha;
    }
    table compute_down_10 {
        actions = {
            assign_down_10;
        }
        default_action = assign_down_10();
        size = 1;
    }
    action assign_amount_11() {
        meta.amount = beta |-| alpha;
    }
    table compute_amount_11 {
        actions = {
            assign_amount_11;
        }
        default_action = assign_amount_11();
        size = 1;
    }
    action assign_down_12() {
        meta.down = alpha |-| beta;
    }
    table compute_down_12 {
        actions = {
            assign_down_12;
        }
        default_action = assign_down_12();
        size = 1;
    }
    action assign_down_13() {
        meta.down = alpha |+| beta;
    }
    table compute_down_13 {
        actions = {
            assign_down_13;
        }
        default_action = assign_down_13();
        size = 1;
    }
    action assign_sojourn_14() {
        meta.sojourn = eg_prsr_md.global_tstamp[31:0] - hdr.bridge.enqueued[31:0];
    }
    table compute_sojourn_14 {
        actions = {
            assign_sojourn_14;
        }
        default_action = assign_sojourn_14();
        size = 1;
    }
    apply {
        if (meta.generated == 1 || hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            if (meta.generated == 1w1) {
                // A generated packet changes the probability.
                meta.delay = read_delay.execute(eg_intr_md.egress_port[6:0]);
                before = keep_delay.execute(eg_intr_md.egress_port[6:0]);
                // The register's unit of 1024 ns counts as a microsecond.
                compute_above_0.apply();
                compute_below_1.apply();
                if (below == 16w0) {
                    compute_alpha_2.apply();
                } else {
                    compute_alpha_3.apply();
                }
                compute_growth_4.apply();
                compute_decline_5.apply();
                if (decline == 16w0) {
                    compute_beta_6.apply();
                } else {
                    compute_beta_7.apply();
                }
                // If the signs differ, the larger decides, by what it has more.
                if (below == 16w0) {
                    if (decline == 16w0) {
                        compute_amount_8.apply();
                    } else {
                        compute_amount_9.apply();
                        compute_down_10.apply();
                    }
                } else if (decline == 16w0) {
                    compute_amount_11.apply();
                    compute_down_12.apply();
                } else {
                    compute_down_13.apply();
                }
                change_probability.execute(eg_intr_md.egress_port[6:0]);
                meta.drawn_here = random_drawn_here.get();
                keep_random_here.execute(eg_intr_md.egress_port[6:0]);
                eg_dprsr_md.drop_ctl = 1;
            } else {
                compute_sojourn_14.apply();
                // The delay, in units of 1024 ns.
                store_delay.execute(eg_intr_md.egress_port[6:0]);
                // One access returns the number that was drawn before, and stores the new one.
                meta.drawn = random_drawn.get();
                meta.amount = keep_random.execute(eg_intr_md.egress_port[6:0]);
                // The register's unit compares: a gateway would need the difference first.
                chosen = compare_probability.execute(eg_intr_md.egress_port[6:0]);
                if (chosen == 1w1) {
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
