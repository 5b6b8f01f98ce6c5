// egress-pi: marks or drops behind the queue, by the square of what follows the delay.
// After docs/explanation/egress-pi.md of queuescope.

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
    bit<32> beta;
    bit<32> change;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.ecn = 0;
        meta.beta = 0;
        meta.change = 0;
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
        meta.beta = 0;
        meta.change = 0;
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
    bit<32> capped = 0;
    bit<32> delay = 0;
    bit<1> due = 0;
    bit<32> near = 0;
    bit<32> alpha = 0;
    bit<32> both = 0;
    bit<32> distance = 0;
    bit<32> before = 0;
    bit<32> probability = 0;
    bit<32> one = 0;
    bit<32> other = 0;
    bit<32> larger = 0;
    bit<32> half = 0;
    bit<32> number = 0;
    bit<32> excess = 0;
    bit<1> long = 0;
    bit<13> compared_0 = 0;
    bit<13> compared_1 = 0;
    Random<bit<32>>() random_one;
    Random<bit<32>>() random_other;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) bits_of_delay;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) bits_of_alpha;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) bits_of_beta;

    // When the probability was last updated.
    Register<bit<32>, bit<7>>(128, 0) last_update;
    RegisterAction<bit<32>, bit<7>, bit<1>>(last_update) start_update = {
        void apply(inout bit<32> word, out bit<1> result) {
            result = 0;
            if (eg_prsr_md.global_tstamp[41:10] - word >= 32w122) {
                result = 1;
                word = eg_prsr_md.global_tstamp[41:10];
            }
        }
    };

    // The delay of the last update, shifted by beta.
    Register<bit<32>, bit<7>>(128, 0) last_delay;
    RegisterAction<bit<32>, bit<7>, bit<32>>(last_delay) keep_delay = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.beta;
        }
    };

    // p', from the lowest number in two's complement, which is 0, to the highest, which is 1.
    Register<bit<32>, bit<7>>(128, 2147483648) base_probability;
    RegisterAction<bit<32>, bit<7>, bit<32>>(base_probability) change_probability = {
        void apply(inout bit<32> word, out bit<32> result) {
            word = (bit<32>)((int<32>)word |+| (int<32>)meta.change);
            result = word;
        }
    };

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
    action assign_capped_1() {
        capped = min(sojourn, 32w0x7fffff);
    }
    table compute_capped_1 {
        actions = {
            assign_capped_1;
        }
        default_action = assign_capped_1();
        size = 1;
    }
    action assign_delay_2() {
        delay = bits_of_delay.get({capped[22:10]});
    }
    table compute_delay_2 {
        actions = {
            assign_delay_2;
        }
        default_action = assign_delay_2();
        size = 1;
    }
    action assign_near_3() {
        near = min(sojourn, 32w0xfffff);
    }
    table compute_near_3 {
        actions = {
            assign_near_3;
        }
        default_action = assign_near_3();
        size = 1;
    }
    action assign_alpha_4() {
        alpha = bits_of_alpha.get({near[19:10], 9w0});
    }
    table compute_alpha_4 {
        actions = {
            assign_alpha_4;
        }
        default_action = assign_alpha_4();
        size = 1;
    }
    action assign_beta_5() {
        meta.beta = bits_of_beta.get({capped[22:10], 17w0});
    }
    table compute_beta_5 {
        actions = {
            assign_beta_5;
        }
        default_action = assign_beta_5();
        size = 1;
    }
    action assign_both_6() {
        both = alpha + meta.beta;
    }
    table compute_both_6 {
        actions = {
            assign_both_6;
        }
        default_action = assign_both_6();
        size = 1;
    }
    action assign_distance_7() {
        distance = both - 32w62464;
    }
    table compute_distance_7 {
        actions = {
            assign_distance_7;
        }
        default_action = assign_distance_7();
        size = 1;
    }
    action assign_change_8() {
        meta.change = distance - before;
    }
    table compute_change_8 {
        actions = {
            assign_change_8;
        }
        default_action = assign_change_8();
        size = 1;
    }
    action assign_larger_9() {
        larger = max(one, other);
    }
    table compute_larger_9 {
        actions = {
            assign_larger_9;
        }
        default_action = assign_larger_9();
        size = 1;
    }
    action assign_half_10() {
        half = one >> 1;
    }
    table compute_half_10 {
        actions = {
            assign_half_10;
        }
        default_action = assign_half_10();
        size = 1;
    }
    action assign_number_11() {
        number = half ^ 32w0x80000000;
    }
    table compute_number_11 {
        actions = {
            assign_number_11;
        }
        default_action = assign_number_11();
        size = 1;
    }
    action assign_number_12() {
        number = larger ^ 32w0x80000000;
    }
    table compute_number_12 {
        actions = {
            assign_number_12;
        }
        default_action = assign_number_12();
        size = 1;
    }
    action assign_excess_13() {
        excess = (bit<32>)((int<32>)probability |-| (int<32>)number);
    }
    table compute_excess_13 {
        actions = {
            assign_excess_13;
        }
        default_action = assign_excess_13();
        size = 1;
    }
    action assign_compared_0_14() {
        compared_0 = 13w91 |-| delay[12:0];
    }
    table compute_compared_0_14 {
        actions = {
            assign_compared_0_14;
        }
        default_action = assign_compared_0_14();
        size = 1;
    }
    action assign_compared_1_15() {
        compared_1 = 13w30 |-| delay[12:0];
    }
    table compute_compared_1_15 {
        actions = {
            assign_compared_1_15;
        }
        default_action = assign_compared_1_15();
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
            // The delay, in units of 1024 ns. It is bounded in nanoseconds, so that a hash unit shifts the units once, to where each is needed.
            compute_capped_1.apply();
            compute_delay_2.apply();
            // Whether an update is due.
            due = start_update.execute(eg_intr_md.egress_port[6:0]);
            // The change of p': ((delay - target) << alpha) + ((delay - delay before) << beta).
            compute_near_3.apply();
            compute_alpha_4.apply();
            compute_beta_5.apply();
            compute_both_6.apply();
            compute_distance_7.apply();
            if (due == 1w1) {
                before = keep_delay.execute(eg_intr_md.egress_port[6:0]);
                compute_change_8.apply();
            }
            probability = change_probability.execute(eg_intr_md.egress_port[6:0]);
            // Two random numbers are both below p' with probability p' squared.
            one = random_one.get();
            other = random_other.get();
            compute_larger_9.apply();
            compute_half_10.apply();
            // Flipping the highest bit makes the lowest number in two's complement of zero.
            if (meta.ecn == 2w1) {
                compute_number_11.apply();
            } else if (meta.ecn == 2w0 && larger[31:31] == 1w1) {
                number = 32w0x7fffffff;
            } else {
                compute_number_12.apply();
            }
            // The packet is chosen if its number is below p'. Numbers in two's complement begin at the lowest, as p' does.
            compute_excess_13.apply();
            compute_compared_0_14.apply();
            compute_compared_1_15.apply();
            if ((probability[31:29] == 3w4 && compared_0 == 13w0) || (probability[31:29] != 3w4 && compared_1 == 13w0)) {
                long = 1w1;
            }
            if (excess != 32w0 && excess[31:31] == 1w0 && long == 1w1) {
                if (meta.ecn == 2w0) {
                    eg_dprsr_md.drop_ctl = 1;
                } else {
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
