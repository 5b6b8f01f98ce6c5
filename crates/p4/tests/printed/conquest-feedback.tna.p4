// conquest-feedback: measures each flow's part of the queue, and limits flows that have too much of it to a rate, before the queue.
// After Chen et al., Fine-Grained Queue Measurement in the Data Plane, CoNEXT 2019.
// The packet generator sends a packet to each port every 1.02 µs.

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
    // 0: the packet comes from the ingress. Copies that go back begin with 1.
    bit<8> kind;
    bit<48> enqueued;
    bit<8> generated;
}

header feedback_h {
    bit<8> kind;
}

struct headers_t {
    bridge_h bridge;
    feedback_h feedback;
    ethernet_h ethernet;
    vlan_h vlan;
    ipv4_h ipv4;
    ipv6_h ipv6;
    ports_h ports;
}

struct metadata_t {
    bit<2> ecn;
    bit<32> flow;
    bit<32> last;
    bit<32> origin;
    bit<32> restart;
    bit<1> generated;
    bit<1> fed_back;
    // The mirror session that sends copies back, and the first byte of these.
    bit<10> session;
    bit<8> kind;
    // What identifies the flow. Of IPv6 addresses, the last 32 bits.
    bit<32> source;
    bit<32> destination;
    bit<32> ports;
    bit<8> protocol;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.ecn = 0;
        meta.flow = 0;
        meta.last = 0;
        meta.origin = 0;
        meta.restart = 0;
        meta.generated = 0;
        meta.fed_back = 0;
        meta.session = 0;
        meta.kind = 0;
        meta.source = 0;
        meta.destination = 0;
        meta.ports = 0;
        meta.protocol = 0;
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        transition select(ig_intr_md.ingress_port) {
            70: parse_feedback;
            default: parse_ethernet;
        }
    }
    state parse_feedback {
        packet.extract(hdr.feedback);
        meta.fed_back = 1;
        transition parse_ethernet;
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
        meta.source = hdr.ipv4.source;
        meta.destination = hdr.ipv4.destination;
        meta.protocol = hdr.ipv4.protocol;
        transition select(hdr.ipv4.header_words, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, 6): parse_ports;
            (5, 0, 17): parse_ports;
            default: accept;
        }
    }
    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        meta.source = hdr.ipv6.source_low;
        meta.destination = hdr.ipv6.destination_low;
        meta.protocol = hdr.ipv6.next_header;
        transition select(hdr.ipv6.next_header) {
            6: parse_ports;
            17: parse_ports;
            default: accept;
        }
    }
    state parse_ports {
        packet.extract(hdr.ports);
        meta.ports = hdr.ports.both;
        transition accept;
    }
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md, inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    bit<10> held_entry = 0;
    bit<31> flow_hash = 0;
    bit<1> is_same = 0;
    bit<32> until = 0;
    bit<32> left = 0;
    bit<1> passes = 0;
    bit<32> compared_0 = 0;
    CRCPolynomial<bit<32>>(32w0xa833982b, true, false, false, 32w0xffffffff, 32w0xffffffff) polynomial_of_held_entry;
    Hash<bit<10>>(HashAlgorithm_t.CUSTOM, polynomial_of_held_entry) hash_of_held_entry;
    CRCPolynomial<bit<32>>(32w0xf4acfb13, true, false, false, 32w0xffffffff, 32w0xffffffff) polynomial_of_flow_hash;
    Hash<bit<31>>(HashAlgorithm_t.CUSTOM, polynomial_of_flow_hash) hash_of_flow_hash;

    // The flow that is acted on.
    Register<bit<32>, bit<10>>(1024, 0) held_flow;
    RegisterAction<bit<32>, bit<10>, bit<32>>(held_flow) hold_flow = {
        void apply(inout bit<32> word) {
            word = meta.flow;
        }
    };
    RegisterAction<bit<32>, bit<10>, bit<1>>(held_flow) test_flow = {
        void apply(inout bit<32> word, out bit<1> result) {
            result = 0;
            if (word == meta.flow) {
                result = 1;
            }
        }
    };

    // The last time at which it is.
    Register<bit<32>, bit<10>>(1024, 0) held_until;
    RegisterAction<bit<32>, bit<10>, bit<32>>(held_until) hold_until = {
        void apply(inout bit<32> word) {
            word = meta.last;
        }
    };
    RegisterAction<bit<32>, bit<10>, bit<32>>(held_until) read_until = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };

    // How far a flow's packets have come at the rate of its limit.
    Register<bit<32>, bit<10>>(1024, 0) flow_time;
    RegisterAction<bit<32>, bit<10>, bit<32>>(flow_time) begin_time = {
        void apply(inout bit<32> word) {
            if (word - meta.origin < 32w0x7ffe8900) {
                word = meta.restart;
            } else {
                if (word - meta.origin > 32w0x80000000) {
                    word = meta.restart;
                }
            }
        }
    };
    RegisterAction<bit<32>, bit<10>, bit<1>>(flow_time) pass_time = {
        void apply(inout bit<32> word, out bit<1> result) {
            result = 0;
            if (word - meta.origin <= 32w0x7fffd120) {
                result = 1;
            }
            if (word - meta.origin < 32w0x7ffe8900) {
                word = meta.restart;
            } else {
                if (word - meta.origin <= 32w0x7fffd120) {
                    word = word + 32w12000;
                }
            }
        }
    };

    action send(PortId_t port) {
        ig_tm_md.ucast_egress_port = port;
        hdr.bridge.setValid();
        hdr.bridge.enqueued = ig_prsr_md.global_tstamp;
        hdr.bridge.generated = 0;
        hdr.bridge.kind = 0;
        hdr.feedback.setInvalid();
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
    action assign_held_entry_0() {
        held_entry = hash_of_held_entry.get({meta.source, meta.destination, meta.ports, meta.protocol});
    }
    table compute_held_entry_0 {
        actions = {
            assign_held_entry_0;
        }
        default_action = assign_held_entry_0();
        size = 1;
    }
    action assign_flow_hash_1() {
        flow_hash = hash_of_flow_hash.get({meta.source, meta.destination, meta.ports, meta.protocol});
    }
    table compute_flow_hash_1 {
        actions = {
            assign_flow_hash_1;
        }
        default_action = assign_flow_hash_1();
        size = 1;
    }
    action assign_flow_2() {
        meta.flow = (bit<32>)flow_hash | 32w0x80000000;
    }
    table compute_flow_2 {
        actions = {
            assign_flow_2;
        }
        default_action = assign_flow_2();
        size = 1;
    }
    action assign_last_3() {
        meta.last = ig_prsr_md.global_tstamp[31:0] + 32w0x1e847f;
    }
    table compute_last_3 {
        actions = {
            assign_last_3;
        }
        default_action = assign_last_3();
        size = 1;
    }
    action assign_origin_4() {
        meta.origin = ig_prsr_md.global_tstamp[31:0] + 32w0x80017700;
    }
    table compute_origin_4 {
        actions = {
            assign_origin_4;
        }
        default_action = assign_origin_4();
        size = 1;
    }
    action assign_restart_5() {
        meta.restart = ig_prsr_md.global_tstamp[31:0];
    }
    table compute_restart_5 {
        actions = {
            assign_restart_5;
        }
        default_action = assign_restart_5();
        size = 1;
    }
    action assign_left_6() {
        left = until - ig_prsr_md.global_tstamp[31:0];
    }
    table compute_left_6 {
        actions = {
            assign_left_6;
        }
        default_action = assign_left_6();
        size = 1;
    }
    action assign_restart_7() {
        meta.restart = ig_prsr_md.global_tstamp[31:0] + 32w12000;
    }
    table compute_restart_7 {
        actions = {
            assign_restart_7;
        }
        default_action = assign_restart_7();
        size = 1;
    }
    action assign_compared_0_8() {
        compared_0 = 32w0x1e8480 |-| left;
    }
    table compute_compared_0_8 {
        actions = {
            assign_compared_0_8;
        }
        default_action = assign_compared_0_8();
        size = 1;
    }
    apply {
        // The packet generator. A copy goes to each port.
        if (ig_intr_md.ingress_port == 68) {
            hdr.bridge.setValid();
            hdr.bridge.enqueued = 0;
            hdr.bridge.generated = 1;
            hdr.bridge.kind = 0;
            ig_tm_md.mcast_grp_a = 1;
        } else {
            if (forward.apply().hit) {
                if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
                    compute_held_entry_0.apply();
                    compute_flow_hash_1.apply();
                    // No flow is zero, which an entry without a flow is.
                    compute_flow_2.apply();
                    compute_last_3.apply();
                    compute_origin_4.apply();
                    if (meta.fed_back == 1w1) {
                        // It goes no further. The newest flow takes the entry.
                        hold_flow.execute(held_entry);
                        hold_until.execute(held_entry);
                        compute_restart_5.apply();
                        begin_time.execute(held_entry);
                        ig_dprsr_md.drop_ctl = 1;
                    } else {
                        is_same = test_flow.execute(held_entry);
                        until = read_until.execute(held_entry);
                        // The time that is left is below the hold, and beyond its end very large.
                        compute_left_6.apply();
                        compute_restart_7.apply();
                        compute_compared_0_8.apply();
                        if (is_same == 1w1 && compared_0 != 32w0) {
                            passes = pass_time.execute(held_entry);
                            if (passes == 1w0) {
                                ig_dprsr_md.drop_ctl = 1;
                            }
                        }
                    }
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
        meta.flow = 0;
        meta.last = 0;
        meta.origin = 0;
        meta.restart = 0;
        meta.generated = 0;
        meta.fed_back = 0;
        meta.session = 0;
        meta.kind = 0;
        meta.source = 0;
        meta.destination = 0;
        meta.ports = 0;
        meta.protocol = 0;
        packet.extract(eg_intr_md);
        transition select(packet.lookahead<bit<8>>()) {
            // A copy on its way back passes.
            1: accept;
            default: parse_bridge;
        }
    }
    state parse_bridge {
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
        meta.source = hdr.ipv4.source;
        meta.destination = hdr.ipv4.destination;
        meta.protocol = hdr.ipv4.protocol;
        transition select(hdr.ipv4.header_words, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, 6): parse_ports;
            (5, 0, 17): parse_ports;
            default: accept;
        }
    }
    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        meta.source = hdr.ipv6.source_low;
        meta.destination = hdr.ipv6.destination_low;
        meta.protocol = hdr.ipv6.next_header;
        transition select(hdr.ipv6.next_header) {
            6: parse_ports;
            17: parse_ports;
            default: accept;
        }
    }
    state parse_ports {
        packet.extract(hdr.ports);
        meta.ports = hdr.ports.both;
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
    bit<11> hash_0 = 0;
    bit<11> hash_1 = 0;
    bit<32> window_start = 0;
    bit<32> before_window = 0;
    bit<32> next = 0;
    bit<11> entry_0_0 = 0;
    bit<11> entry_0_1 = 0;
    bit<11> entry_1_0 = 0;
    bit<11> entry_1_1 = 0;
    bit<11> entry_2_0 = 0;
    bit<11> entry_2_1 = 0;
    bit<11> entry_3_0 = 0;
    bit<11> entry_3_1 = 0;
    bit<32> count_0_0 = 0;
    bit<32> count_0_1 = 0;
    bit<32> count_1_0 = 0;
    bit<32> count_1_1 = 0;
    bit<32> count_2_0 = 0;
    bit<32> count_2_1 = 0;
    bit<32> count_3_0 = 0;
    bit<32> count_3_1 = 0;
    bit<32> sojourn = 0;
    bit<32> tau = 0;
    bit<32> threshold = 0;
    bit<32> compared_1 = 0;
    bit<32> compared_2 = 0;
    CRCPolynomial<bit<32>>(32w0x4c11db7, true, false, false, 32w0xffffffff, 32w0xffffffff) polynomial_of_hash_0;
    Hash<bit<11>>(HashAlgorithm_t.CUSTOM, polynomial_of_hash_0) hash_of_hash_0;
    CRCPolynomial<bit<32>>(32w0x1edc6f41, true, false, false, 32w0xffffffff, 32w0xffffffff) polynomial_of_hash_1;
    Hash<bit<11>>(HashAlgorithm_t.CUSTOM, polynomial_of_hash_1) hash_of_hash_1;

    // The number of packets so far.
    Register<bit<32>, bit<1>>(1, 0) packets;
    RegisterAction<bit<32>, bit<1>, bit<32>>(packets) count_packet = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = word + 32w1;
        }
    };

    // Row 0 of snapshot 0.
    Register<bit<32>, bit<11>>(2048, 0) snapshot_0_0;
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_0_0) write_0_0 = {
        void apply(inout bit<32> word) {
            word = word |+| 32w1;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_0_0) read_0_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_0_0) clear_0_0 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Row 1 of snapshot 0.
    Register<bit<32>, bit<11>>(2048, 0) snapshot_0_1;
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_0_1) write_0_1 = {
        void apply(inout bit<32> word) {
            word = word |+| 32w1;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_0_1) read_0_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_0_1) clear_0_1 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Row 0 of snapshot 1.
    Register<bit<32>, bit<11>>(2048, 0) snapshot_1_0;
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_1_0) write_1_0 = {
        void apply(inout bit<32> word) {
            word = word |+| 32w1;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_1_0) read_1_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_1_0) clear_1_0 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Row 1 of snapshot 1.
    Register<bit<32>, bit<11>>(2048, 0) snapshot_1_1;
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_1_1) write_1_1 = {
        void apply(inout bit<32> word) {
            word = word |+| 32w1;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_1_1) read_1_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_1_1) clear_1_1 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Row 0 of snapshot 2.
    Register<bit<32>, bit<11>>(2048, 0) snapshot_2_0;
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_2_0) write_2_0 = {
        void apply(inout bit<32> word) {
            word = word |+| 32w1;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_2_0) read_2_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_2_0) clear_2_0 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Row 1 of snapshot 2.
    Register<bit<32>, bit<11>>(2048, 0) snapshot_2_1;
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_2_1) write_2_1 = {
        void apply(inout bit<32> word) {
            word = word |+| 32w1;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_2_1) read_2_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_2_1) clear_2_1 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Row 0 of snapshot 3.
    Register<bit<32>, bit<11>>(2048, 0) snapshot_3_0;
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_3_0) write_3_0 = {
        void apply(inout bit<32> word) {
            word = word |+| 32w1;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_3_0) read_3_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_3_0) clear_3_0 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Row 1 of snapshot 3.
    Register<bit<32>, bit<11>>(2048, 0) snapshot_3_1;
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_3_1) write_3_1 = {
        void apply(inout bit<32> word) {
            word = word |+| 32w1;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_3_1) read_3_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(snapshot_3_1) clear_3_1 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // The longest sojourn time without a reaction, and the least weight of a flow with one.
    action set_parameters(bit<32> tau_of_entry, bit<32> threshold_of_entry) {
        tau = tau_of_entry;
        threshold = threshold_of_entry;
    }
    table parameters {
        actions = {
            set_parameters;
        }
        default_action = set_parameters(32w0x1e8480, 32w512);
        size = 1;
    }

    // The entry that the packet reaches of each snapshot.
    action clean_0() {
        entry_0_0 = next[10:0];
        entry_0_1 = next[10:0];
        entry_1_0 = hash_0;
        entry_1_1 = hash_1;
        entry_2_0 = hash_0;
        entry_2_1 = hash_1;
        entry_3_0 = hash_0;
        entry_3_1 = hash_1;
    }
    action clean_1() {
        entry_0_0 = hash_0;
        entry_0_1 = hash_1;
        entry_1_0 = next[10:0];
        entry_1_1 = next[10:0];
        entry_2_0 = hash_0;
        entry_2_1 = hash_1;
        entry_3_0 = hash_0;
        entry_3_1 = hash_1;
    }
    action clean_2() {
        entry_0_0 = hash_0;
        entry_0_1 = hash_1;
        entry_1_0 = hash_0;
        entry_1_1 = hash_1;
        entry_2_0 = next[10:0];
        entry_2_1 = next[10:0];
        entry_3_0 = hash_0;
        entry_3_1 = hash_1;
    }
    action clean_3() {
        entry_0_0 = hash_0;
        entry_0_1 = hash_1;
        entry_1_0 = hash_0;
        entry_1_1 = hash_1;
        entry_2_0 = hash_0;
        entry_2_1 = hash_1;
        entry_3_0 = next[10:0];
        entry_3_1 = next[10:0];
    }
    table reached {
        key = {
            eg_prsr_md.global_tstamp[22:21]: exact @name("dequeued");
        }
        actions = {
            clean_0;
            clean_1;
            clean_2;
            clean_3;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            2w0: clean_1();
            2w1: clean_2();
            2w2: clean_3();
            2w3: clean_0();
        }
        size = 4;
    }

    // What the packet does with row 0 of snapshot 0.
    action do_write_0_0() {
        write_0_0.execute(entry_0_0);
    }
    action do_read_0_0() {
        count_0_0 = read_0_0.execute(entry_0_0);
    }
    action do_clear_0_0() {
        clear_0_0.execute(entry_0_0);
    }
    table role_0_0 {
        key = {
            eg_prsr_md.global_tstamp[22:21]: exact @name("dequeued");
            before_window[31:21]: range @name("before_window");
            meta.generated: ternary @name("generated");
        }
        actions = {
            do_write_0_0;
            do_read_0_0;
            do_clear_0_0;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (2w0, _, 1w0): do_write_0_0();
            (2w1, 11w1 .. 11w1023, 1w0): do_read_0_0();
            (2w2, 11w2 .. 11w1023, 1w0): do_read_0_0();
            (2w3, _, _): do_clear_0_0();
        }
        size = 4;
    }

    // What the packet does with row 1 of snapshot 0.
    action do_write_0_1() {
        write_0_1.execute(entry_0_1);
    }
    action do_read_0_1() {
        count_0_1 = read_0_1.execute(entry_0_1);
    }
    action do_clear_0_1() {
        clear_0_1.execute(entry_0_1);
    }
    table role_0_1 {
        key = {
            eg_prsr_md.global_tstamp[22:21]: exact @name("dequeued");
            before_window[31:21]: range @name("before_window");
            meta.generated: ternary @name("generated");
        }
        actions = {
            do_write_0_1;
            do_read_0_1;
            do_clear_0_1;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (2w0, _, 1w0): do_write_0_1();
            (2w1, 11w1 .. 11w1023, 1w0): do_read_0_1();
            (2w2, 11w2 .. 11w1023, 1w0): do_read_0_1();
            (2w3, _, _): do_clear_0_1();
        }
        size = 4;
    }

    // What the packet does with row 0 of snapshot 1.
    action do_write_1_0() {
        write_1_0.execute(entry_1_0);
    }
    action do_read_1_0() {
        count_1_0 = read_1_0.execute(entry_1_0);
    }
    action do_clear_1_0() {
        clear_1_0.execute(entry_1_0);
    }
    table role_1_0 {
        key = {
            eg_prsr_md.global_tstamp[22:21]: exact @name("dequeued");
            before_window[31:21]: range @name("before_window");
            meta.generated: ternary @name("generated");
        }
        actions = {
            do_write_1_0;
            do_read_1_0;
            do_clear_1_0;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (2w0, _, _): do_clear_1_0();
            (2w1, _, 1w0): do_write_1_0();
            (2w2, 11w1 .. 11w1023, 1w0): do_read_1_0();
            (2w3, 11w2 .. 11w1023, 1w0): do_read_1_0();
        }
        size = 4;
    }

    // What the packet does with row 1 of snapshot 1.
    action do_write_1_1() {
        write_1_1.execute(entry_1_1);
    }
    action do_read_1_1() {
        count_1_1 = read_1_1.execute(entry_1_1);
    }
    action do_clear_1_1() {
        clear_1_1.execute(entry_1_1);
    }
    table role_1_1 {
        key = {
            eg_prsr_md.global_tstamp[22:21]: exact @name("dequeued");
            before_window[31:21]: range @name("before_window");
            meta.generated: ternary @name("generated");
        }
        actions = {
            do_write_1_1;
            do_read_1_1;
            do_clear_1_1;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (2w0, _, _): do_clear_1_1();
            (2w1, _, 1w0): do_write_1_1();
            (2w2, 11w1 .. 11w1023, 1w0): do_read_1_1();
            (2w3, 11w2 .. 11w1023, 1w0): do_read_1_1();
        }
        size = 4;
    }

    // What the packet does with row 0 of snapshot 2.
    action do_write_2_0() {
        write_2_0.execute(entry_2_0);
    }
    action do_read_2_0() {
        count_2_0 = read_2_0.execute(entry_2_0);
    }
    action do_clear_2_0() {
        clear_2_0.execute(entry_2_0);
    }
    table role_2_0 {
        key = {
            eg_prsr_md.global_tstamp[22:21]: exact @name("dequeued");
            before_window[31:21]: range @name("before_window");
            meta.generated: ternary @name("generated");
        }
        actions = {
            do_write_2_0;
            do_read_2_0;
            do_clear_2_0;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (2w0, 11w2 .. 11w1023, 1w0): do_read_2_0();
            (2w1, _, _): do_clear_2_0();
            (2w2, _, 1w0): do_write_2_0();
            (2w3, 11w1 .. 11w1023, 1w0): do_read_2_0();
        }
        size = 4;
    }

    // What the packet does with row 1 of snapshot 2.
    action do_write_2_1() {
        write_2_1.execute(entry_2_1);
    }
    action do_read_2_1() {
        count_2_1 = read_2_1.execute(entry_2_1);
    }
    action do_clear_2_1() {
        clear_2_1.execute(entry_2_1);
    }
    table role_2_1 {
        key = {
            eg_prsr_md.global_tstamp[22:21]: exact @name("dequeued");
            before_window[31:21]: range @name("before_window");
            meta.generated: ternary @name("generated");
        }
        actions = {
            do_write_2_1;
            do_read_2_1;
            do_clear_2_1;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (2w0, 11w2 .. 11w1023, 1w0): do_read_2_1();
            (2w1, _, _): do_clear_2_1();
            (2w2, _, 1w0): do_write_2_1();
            (2w3, 11w1 .. 11w1023, 1w0): do_read_2_1();
        }
        size = 4;
    }

    // What the packet does with row 0 of snapshot 3.
    action do_write_3_0() {
        write_3_0.execute(entry_3_0);
    }
    action do_read_3_0() {
        count_3_0 = read_3_0.execute(entry_3_0);
    }
    action do_clear_3_0() {
        clear_3_0.execute(entry_3_0);
    }
    table role_3_0 {
        key = {
            eg_prsr_md.global_tstamp[22:21]: exact @name("dequeued");
            before_window[31:21]: range @name("before_window");
            meta.generated: ternary @name("generated");
        }
        actions = {
            do_write_3_0;
            do_read_3_0;
            do_clear_3_0;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (2w0, 11w1 .. 11w1023, 1w0): do_read_3_0();
            (2w1, 11w2 .. 11w1023, 1w0): do_read_3_0();
            (2w2, _, _): do_clear_3_0();
            (2w3, _, 1w0): do_write_3_0();
        }
        size = 4;
    }

    // What the packet does with row 1 of snapshot 3.
    action do_write_3_1() {
        write_3_1.execute(entry_3_1);
    }
    action do_read_3_1() {
        count_3_1 = read_3_1.execute(entry_3_1);
    }
    action do_clear_3_1() {
        clear_3_1.execute(entry_3_1);
    }
    table role_3_1 {
        key = {
            eg_prsr_md.global_tstamp[22:21]: exact @name("dequeued");
            before_window[31:21]: range @name("before_window");
            meta.generated: ternary @name("generated");
        }
        actions = {
            do_write_3_1;
            do_read_3_1;
            do_clear_3_1;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (2w0, 11w1 .. 11w1023, 1w0): do_read_3_1();
            (2w1, 11w2 .. 11w1023, 1w0): do_read_3_1();
            (2w2, _, _): do_clear_3_1();
            (2w3, _, 1w0): do_write_3_1();
        }
        size = 4;
    }

    action assign_hash_0_0() {
        hash_0 = hash_of_hash_0.get({meta.source, meta.destination, meta.ports, meta.protocol});
    }
    table compute_hash_0_0 {
        actions = {
            assign_hash_0_0;
        }
        default_action = assign_hash_0_0();
        size = 1;
    }
    action assign_hash_1_1() {
        hash_1 = hash_of_hash_1.get({meta.source, meta.destination, meta.ports, meta.protocol});
    }
    table compute_hash_1_1 {
        actions = {
            assign_hash_1_1;
        }
        default_action = assign_hash_1_1();
        size = 1;
    }
    action assign_window_start_2() {
        window_start = eg_prsr_md.global_tstamp[31:0] & 32w0xffe00000;
    }
    table compute_window_start_2 {
        actions = {
            assign_window_start_2;
        }
        default_action = assign_window_start_2();
        size = 1;
    }
    action assign_before_window_3() {
        before_window = window_start - hdr.bridge.enqueued[31:0];
    }
    table compute_before_window_3 {
        actions = {
            assign_before_window_3;
        }
        default_action = assign_before_window_3();
        size = 1;
    }
    action assign_count_0_0_4() {
        count_0_0 = min(count_0_0, count_0_1);
    }
    table compute_count_0_0_4 {
        actions = {
            assign_count_0_0_4;
        }
        default_action = assign_count_0_0_4();
        size = 1;
    }
    action assign_count_1_0_5() {
        count_1_0 = min(count_1_0, count_1_1);
    }
    table compute_count_1_0_5 {
        actions = {
            assign_count_1_0_5;
        }
        default_action = assign_count_1_0_5();
        size = 1;
    }
    action assign_count_2_0_6() {
        count_2_0 = min(count_2_0, count_2_1);
    }
    table compute_count_2_0_6 {
        actions = {
            assign_count_2_0_6;
        }
        default_action = assign_count_2_0_6();
        size = 1;
    }
    action assign_count_3_0_7() {
        count_3_0 = min(count_3_0, count_3_1);
    }
    table compute_count_3_0_7 {
        actions = {
            assign_count_3_0_7;
        }
        default_action = assign_count_3_0_7();
        size = 1;
    }
    action assign_count_0_0_8() {
        count_0_0 = count_0_0 |+| count_1_0;
    }
    table compute_count_0_0_8 {
        actions = {
            assign_count_0_0_8;
        }
        default_action = assign_count_0_0_8();
        size = 1;
    }
    action assign_count_0_0_9() {
        count_0_0 = count_0_0 |+| count_2_0;
    }
    table compute_count_0_0_9 {
        actions = {
            assign_count_0_0_9;
        }
        default_action = assign_count_0_0_9();
        size = 1;
    }
    action assign_count_3_0_10() {
        count_3_0 = count_3_0 |+| count_0_0;
    }
    table compute_count_3_0_10 {
        actions = {
            assign_count_3_0_10;
        }
        default_action = assign_count_3_0_10();
        size = 1;
    }
    action assign_sojourn_11() {
        sojourn = eg_prsr_md.global_tstamp[31:0] - hdr.bridge.enqueued[31:0];
    }
    table compute_sojourn_11 {
        actions = {
            assign_sojourn_11;
        }
        default_action = assign_sojourn_11();
        size = 1;
    }
    action assign_compared_1_12() {
        compared_1 = sojourn |-| tau;
    }
    table compute_compared_1_12 {
        actions = {
            assign_compared_1_12;
        }
        default_action = assign_compared_1_12();
        size = 1;
    }
    action assign_compared_2_13() {
        compared_2 = threshold |-| count_3_0;
    }
    table compute_compared_2_13 {
        actions = {
            assign_compared_2_13;
        }
        default_action = assign_compared_2_13();
        size = 1;
    }
    apply {
        if (meta.generated == 1 || hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            compute_hash_0_0.apply();
            compute_hash_1_1.apply();
            // The windows between the packet's enqueuing and the window in which it leaves (section 3.3).
            compute_window_start_2.apply();
            compute_before_window_3.apply();
            // A count of packets names the next entry to clean (section 3.4).
            next = count_packet.execute(1w0);
            reached.apply();
            // Each snapshot is written, read or cleaned, by the window (section 3.4).
            role_0_0.apply();
            role_0_1.apply();
            role_1_0.apply();
            role_1_1.apply();
            role_2_0.apply();
            role_2_1.apply();
            role_3_0.apply();
            role_3_1.apply();
            // The least over the rows, and the sum over the snapshots, in place.
            compute_count_0_0_4.apply();
            compute_count_1_0_5.apply();
            compute_count_2_0_6.apply();
            compute_count_3_0_7.apply();
            compute_count_0_0_8.apply();
            compute_count_0_0_9.apply();
            compute_count_3_0_10.apply();
            compute_sojourn_11.apply();
            if (meta.generated == 1w1) {
                // It has no other purpose than cleaning (section 3.4).
                eg_dprsr_md.drop_ctl = 1;
            } else {
                parameters.apply();
                compute_compared_1_12.apply();
                compute_compared_2_13.apply();
                if (compared_1 != 32w0 && compared_2 == 32w0) {
                    eg_dprsr_md.mirror_type = 1;
                    meta.session = 5;
                    meta.kind = 1;
                }
            }
        }
    }
}

control EgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
        in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    Mirror() mirror;
    apply {
        if (eg_dprsr_md.mirror_type == 1) {
            mirror.emit<feedback_h>(meta.session, {meta.kind});
        }
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.ports);
    }
}

Pipeline(IngressParser(), MainIngress(), IngressDeparser(), EgressParser(), MainEgress(), EgressDeparser()) pipe;
Switch(pipe) main;
