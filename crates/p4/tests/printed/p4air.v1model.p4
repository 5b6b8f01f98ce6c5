// p4air: groups flows by their congestion control, and slows down those above their share.
// After Turkovic and Kuipers, P4air: Increasing Fairness among Competing Congestion Control Algorithms, ICNP 2020, section III.

#include <core.p4>
#include <v1model.p4>

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

const bit<32> CLONED_AT_INGRESS = 1;
const bit<32> CLONED_AT_EGRESS = 2;
const bit<32> RECIRCULATED = 4;
const bit<32> RESUBMITTED = 6;

struct headers_t {
    ethernet_h ethernet;
    vlan_h vlan;
    ipv4_h ipv4;
    ipv6_h ipv6;
    ports_h ports;
    tcp_h tcp;
}

struct metadata_t {
    bit<2> ecn;
    @field_list(0) bit<1> fed_back;
    @field_list(0) bit<16> entry;
    @field_list(0) bit<16> packets_sent;
    @field_list(0) bit<16> packets_before;
    @field_list(0) bit<16> each_queue;
    @field_list(0) bit<8> round;
    @field_list(0) bit<8> group;
    @field_list(0) bit<8> queue;
    @field_list(0) bit<8> is_newest;
    @field_list(0) bit<8> request;
    @field_list(0) bit<8> to;
    @field_list(0) bit<8> giver;
    @field_list(0) bit<8> passes;
    // What identifies the flow. Of IPv6 addresses, the last 32 bits.
    bit<32> source;
    bit<32> destination;
    bit<32> ports;
    bit<8> protocol;
    bit<16> ip_length;
    bit<4> ip_words;
    bit<4> tcp_words;
    bit<8> tcp_flags;
    bit<16> window;
    bit<16> tcp_checksum;
}

parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
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
        meta.ecn = hdr.ipv4.ecn;
        meta.ip_words = hdr.ipv4.header_words;
        meta.ip_length = hdr.ipv4.total_length;
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
        meta.ecn = hdr.ipv6.ecn;
        meta.ip_length = hdr.ipv6.payload_length;
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
        transition select(meta.protocol) {
            6: parse_tcp;
            default: accept;
        }
    }
    state parse_tcp {
        packet.extract(hdr.tcp);
        meta.tcp_words = hdr.tcp.words;
        meta.tcp_flags = hdr.tcp.flags;
        meta.window = hdr.tcp.window;
        meta.tcp_checksum = hdr.tcp.checksum;
        transition accept;
    }
}

control MainVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // The flow's round-trip time in units of 1024 ns; until it is known, the time of the SYN and bit 31.
    register<bit<32>>(65536) round_trip_time;
    // When the flow's round trip ends, in units of 1024 ns.
    register<bit<32>>(65536) round_end;
    // Packets of the round trip.
    register<bit<16>>(65536) sent;
    // Packets of the previous round trip.
    register<bit<16>>(65536) sent_before;
    // Whether the flow is above its share in this round trip.
    register<bit<8>>(65536) above_share;
    // The flow's group: 0 is short-lived.
    register<bit<8>>(65536) flow_group;
    // The flow's queue; 0 before it has one.
    register<bit<8>>(65536) flow_queue;
    // Delay-based flows.
    register<bit<16>>(128) delay_based_flows;
    // Loss-delay flows.
    register<bit<16>>(128) loss_delay_flows;
    // Loss-based flows.
    register<bit<16>>(128) loss_based_flows;
    // Model-based flows.
    register<bit<16>>(128) model_based_flows;
    // Long-lived flows.
    register<bit<16>>(128) long_lived_flows;
    // The newest flow of a queue, and bit 16; 0 if there is none.
    register<bit<32>>(4096) newest_flow;
    // The first queue of loss-delay flows.
    register<bit<8>>(128) first_loss_delay;
    // The first queue of loss-based flows.
    register<bit<8>>(128) first_loss_based;
    // The first queue of model-based flows.
    register<bit<8>>(128) first_model_based;
    // Flows that still fit into the queues of delay-based flows, less one, with a sign.
    register<bit<32>>(128) delay_based_room;
    // Flows that still fit into the queues of loss-delay flows, less one, with a sign.
    register<bit<32>>(128) loss_delay_room;
    // Flows that still fit into the queues of loss-based flows, less one, with a sign.
    register<bit<32>>(128) loss_based_room;
    // Flows that still fit into the queues of model-based flows, less one, with a sign.
    register<bit<32>>(128) model_based_room;
    // Flows that the gained queue still takes, and in bit 0 whether it is the last of its group.
    register<bit<16>>(1024) gained_takes;
    bit<48> arrived = 0;
    bit<7> home = 0;
    bit<12> newest_at = 0;
    bit<10> gained_at = 0;
    bit<32> flow_number = 0;
    bit<32> mark = 0;
    bit<8> bound_1 = 0;
    bit<8> bound_2 = 0;
    bit<8> bound_3 = 0;
    bit<32> room_change_1 = 0;
    bit<32> room_change_2 = 0;
    bit<32> room_change_3 = 0;
    bit<32> room_change_4 = 0;
    bit<1> has_moved = 0;
    bit<16> flow_change_1 = 0;
    bit<16> flow_change_2 = 0;
    bit<16> flow_change_3 = 0;
    bit<16> flow_change_4 = 0;
    bit<16> joins = 0;
    bit<16> all_flows = 0;
    bit<8> size_1 = 0;
    bit<8> size_2 = 0;
    bit<8> size_3 = 0;
    bit<8> size_4 = 0;
    bit<32> places_1 = 0;
    bit<32> places_2 = 0;
    bit<32> places_3 = 0;
    bit<32> places_4 = 0;
    bit<32> room_1 = 0;
    bit<32> room_2 = 0;
    bit<32> room_3 = 0;
    bit<32> room_4 = 0;
    bit<16> quotient = 0;
    bit<32> each_less_one = 0;
    bit<32> room_1_less_2 = 0;
    bit<32> room_1_less_3 = 0;
    bit<32> room_1_less_4 = 0;
    bit<32> room_2_less_3 = 0;
    bit<32> room_2_less_4 = 0;
    bit<32> room_3_less_4 = 0;
    bit<32> gives_1 = 0;
    bit<32> gives_2 = 0;
    bit<32> gives_3 = 0;
    bit<32> gives_4 = 0;
    bit<32> more_each = 0;
    bit<32> less_each = 0;
    bit<8> bound_change_1 = 0;
    bit<8> bound_change_2 = 0;
    bit<8> bound_change_3 = 0;
    bit<16> side = 0;
    bit<16> twice = 0;
    bit<16> gained_after = 0;
    bit<8> queue_that_moves = 0;
    bit<1> takes = 0;
    bit<32> now = 0;
    bit<1> has_data = 0;
    bit<16> own_flow = 0;
    bit<16> other_flow = 0;
    bit<32> marked = 0;
    bit<16> flows = 0;
    bit<32> rtt = 0;
    bit<32> share = 0;
    bit<32> window_high = 0;
    bit<32> window_low = 0;
    bit<32> next_end = 0;
    bit<1> has_ended = 0;
    bit<32> sent_so_far = 0;
    bit<1> is_over = 0;
    bit<8> first_queue = 0;
    bit<8> end_queue = 0;
    bit<8> count = 0;
    bit<8> place = 0;
    bit<8> other = 0;
    bit<16> gained = 0;
    bit<8> last = 0;
    bit<8> gained_queue = 0;
    bit<8> stored = 0;
    bit<1> is_outside = 0;
    bit<32> newest = 0;
    bit<8> was_above = 0;
    bit<32> window_sum = 0;
    bit<32> window_limit = 0;
    bit<32> window_before = 0;
    bit<16> window_after = 0;

    // Whether there is data: not if the headers are as long as the packet.
    action set_lengths_without_data(bit<1> has_data_of_entry) {
        has_data = has_data_of_entry;
    }
    table lengths_without_data {
        key = {
            meta.ip_length: exact;
            meta.ip_words: exact;
            meta.tcp_words: exact;
        }
        actions = {
            set_lengths_without_data;
        }
        default_action = set_lengths_without_data(1w1);
        size = 22;
    }

    // A queue within a group, by the number of its queues and bits of the flow's hash.
    action set_queue_of_flow(bit<8> place_of_entry) {
        place = place_of_entry;
    }
    table queue_of_flow {
        key = {
            count[4:0]: exact;
            meta.entry[6:0]: exact;
        }
        actions = {
            set_queue_of_flow;
        }
        default_action = set_queue_of_flow(8w0);
        size = 3456;
    }

    // The flows and the room that each group gains or loses.
    action change_0_1() {
        joins = 16w1;
        flow_change_1 = 16w1;
        room_change_1 = 32w0xffffffff;
        flow_change_2 = 16w0;
        room_change_2 = 32w0;
        flow_change_3 = 16w0;
        room_change_3 = 32w0;
        flow_change_4 = 16w0;
        room_change_4 = 32w0;
    }
    action change_1_2() {
        joins = 16w0;
        flow_change_1 = 16w65535;
        room_change_1 = 32w1;
        flow_change_2 = 16w1;
        room_change_2 = 32w0xffffffff;
        flow_change_3 = 16w0;
        room_change_3 = 32w0;
        flow_change_4 = 16w0;
        room_change_4 = 32w0;
    }
    action change_1_4() {
        joins = 16w0;
        flow_change_1 = 16w65535;
        room_change_1 = 32w1;
        flow_change_2 = 16w0;
        room_change_2 = 32w0;
        flow_change_3 = 16w0;
        room_change_3 = 32w0;
        flow_change_4 = 16w1;
        room_change_4 = 32w0xffffffff;
    }
    action change_2_3() {
        joins = 16w0;
        flow_change_1 = 16w0;
        room_change_1 = 32w0;
        flow_change_2 = 16w65535;
        room_change_2 = 32w1;
        flow_change_3 = 16w1;
        room_change_3 = 32w0xffffffff;
        flow_change_4 = 16w0;
        room_change_4 = 32w0;
    }
    action change_2_4() {
        joins = 16w0;
        flow_change_1 = 16w0;
        room_change_1 = 32w0;
        flow_change_2 = 16w65535;
        room_change_2 = 32w1;
        flow_change_3 = 16w0;
        room_change_3 = 32w0;
        flow_change_4 = 16w1;
        room_change_4 = 32w0xffffffff;
    }
    action change_3_4() {
        joins = 16w0;
        flow_change_1 = 16w0;
        room_change_1 = 32w0;
        flow_change_2 = 16w0;
        room_change_2 = 32w0;
        flow_change_3 = 16w65535;
        room_change_3 = 32w1;
        flow_change_4 = 16w1;
        room_change_4 = 32w0xffffffff;
    }
    table change {
        key = {
            meta.group: exact;
            meta.to: exact;
        }
        actions = {
            change_0_1;
            change_1_2;
            change_1_4;
            change_2_3;
            change_2_4;
            change_3_4;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (8w0, 8w1): change_0_1();
            (8w1, 8w2): change_1_2();
            (8w1, 8w4): change_1_4();
            (8w2, 8w3): change_2_3();
            (8w2, 8w4): change_2_4();
            (8w3, 8w4): change_3_4();
        }
    }

    // The group that gives a queue to another one.
    action give_1() {
        meta.giver = 8w1;
    }
    action give_2() {
        meta.giver = 8w2;
    }
    action give_3() {
        meta.giver = 8w3;
    }
    action give_4() {
        meta.giver = 8w4;
    }
    table group_that_gives {
        key = {
            room_1_less_2[31:31]: ternary;
            room_1_less_3[31:31]: ternary;
            room_1_less_4[31:31]: ternary;
            room_2_less_3[31:31]: ternary;
            room_2_less_4[31:31]: ternary;
            room_3_less_4[31:31]: ternary;
            gives_1[31:31]: ternary;
            gives_2[31:31]: ternary;
            gives_3[31:31]: ternary;
            gives_4[31:31]: ternary;
            room_1[31:31]: ternary;
            room_2[31:31]: ternary;
            room_3[31:31]: ternary;
            room_4[31:31]: ternary;
            meta.to: exact;
        }
        actions = {
            give_1;
            give_2;
            give_3;
            give_4;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (_, _, _, _, _, _, _, 1w1, 1w0, 1w0, 1w1, _, _, _, 8w1): give_2();
            (_, _, _, 1w0, _, _, _, 1w1, 1w1, 1w0, 1w1, _, _, _, 8w1): give_2();
            (_, _, _, _, 1w0, _, _, 1w1, 1w0, 1w1, 1w1, _, _, _, 8w1): give_2();
            (_, _, _, 1w0, 1w0, _, _, 1w1, 1w1, 1w1, 1w1, _, _, _, 8w1): give_2();
            (_, _, _, _, _, _, _, 1w0, 1w1, 1w0, 1w1, _, _, _, 8w1): give_3();
            (_, _, _, 1w1, _, _, _, 1w1, 1w1, 1w0, 1w1, _, _, _, 8w1): give_3();
            (_, _, _, _, _, 1w0, _, 1w0, 1w1, 1w1, 1w1, _, _, _, 8w1): give_3();
            (_, _, _, 1w1, _, 1w0, _, 1w1, 1w1, 1w1, 1w1, _, _, _, 8w1): give_3();
            (_, _, _, _, _, _, _, 1w0, 1w0, 1w1, 1w1, _, _, _, 8w1): give_4();
            (_, _, _, _, 1w1, _, _, 1w1, 1w0, 1w1, 1w1, _, _, _, 8w1): give_4();
            (_, _, _, _, _, 1w1, _, 1w0, 1w1, 1w1, 1w1, _, _, _, 8w1): give_4();
            (_, _, _, _, 1w1, 1w1, _, 1w1, 1w1, 1w1, 1w1, _, _, _, 8w1): give_4();
            (_, _, _, _, _, _, 1w1, _, 1w0, 1w0, _, 1w1, _, _, 8w2): give_1();
            (_, 1w0, _, _, _, _, 1w1, _, 1w1, 1w0, _, 1w1, _, _, 8w2): give_1();
            (_, _, 1w0, _, _, _, 1w1, _, 1w0, 1w1, _, 1w1, _, _, 8w2): give_1();
            (_, 1w0, 1w0, _, _, _, 1w1, _, 1w1, 1w1, _, 1w1, _, _, 8w2): give_1();
            (_, _, _, _, _, _, 1w0, _, 1w1, 1w0, _, 1w1, _, _, 8w2): give_3();
            (_, 1w1, _, _, _, _, 1w1, _, 1w1, 1w0, _, 1w1, _, _, 8w2): give_3();
            (_, _, _, _, _, 1w0, 1w0, _, 1w1, 1w1, _, 1w1, _, _, 8w2): give_3();
            (_, 1w1, _, _, _, 1w0, 1w1, _, 1w1, 1w1, _, 1w1, _, _, 8w2): give_3();
            (_, _, _, _, _, _, 1w0, _, 1w0, 1w1, _, 1w1, _, _, 8w2): give_4();
            (_, _, 1w1, _, _, _, 1w1, _, 1w0, 1w1, _, 1w1, _, _, 8w2): give_4();
            (_, _, _, _, _, 1w1, 1w0, _, 1w1, 1w1, _, 1w1, _, _, 8w2): give_4();
            (_, _, 1w1, _, _, 1w1, 1w1, _, 1w1, 1w1, _, 1w1, _, _, 8w2): give_4();
            (_, _, _, _, _, _, 1w1, 1w0, _, 1w0, _, _, 1w1, _, 8w3): give_1();
            (1w0, _, _, _, _, _, 1w1, 1w1, _, 1w0, _, _, 1w1, _, 8w3): give_1();
            (_, _, 1w0, _, _, _, 1w1, 1w0, _, 1w1, _, _, 1w1, _, 8w3): give_1();
            (1w0, _, 1w0, _, _, _, 1w1, 1w1, _, 1w1, _, _, 1w1, _, 8w3): give_1();
            (_, _, _, _, _, _, 1w0, 1w1, _, 1w0, _, _, 1w1, _, 8w3): give_2();
            (1w1, _, _, _, _, _, 1w1, 1w1, _, 1w0, _, _, 1w1, _, 8w3): give_2();
            (_, _, _, _, 1w0, _, 1w0, 1w1, _, 1w1, _, _, 1w1, _, 8w3): give_2();
            (1w1, _, _, _, 1w0, _, 1w1, 1w1, _, 1w1, _, _, 1w1, _, 8w3): give_2();
            (_, _, _, _, _, _, 1w0, 1w0, _, 1w1, _, _, 1w1, _, 8w3): give_4();
            (_, _, 1w1, _, _, _, 1w1, 1w0, _, 1w1, _, _, 1w1, _, 8w3): give_4();
            (_, _, _, _, 1w1, _, 1w0, 1w1, _, 1w1, _, _, 1w1, _, 8w3): give_4();
            (_, _, 1w1, _, 1w1, _, 1w1, 1w1, _, 1w1, _, _, 1w1, _, 8w3): give_4();
            (_, _, _, _, _, _, 1w1, 1w0, 1w0, _, _, _, _, 1w1, 8w4): give_1();
            (1w0, _, _, _, _, _, 1w1, 1w1, 1w0, _, _, _, _, 1w1, 8w4): give_1();
            (_, 1w0, _, _, _, _, 1w1, 1w0, 1w1, _, _, _, _, 1w1, 8w4): give_1();
            (1w0, 1w0, _, _, _, _, 1w1, 1w1, 1w1, _, _, _, _, 1w1, 8w4): give_1();
            (_, _, _, _, _, _, 1w0, 1w1, 1w0, _, _, _, _, 1w1, 8w4): give_2();
            (1w1, _, _, _, _, _, 1w1, 1w1, 1w0, _, _, _, _, 1w1, 8w4): give_2();
            (_, _, _, 1w0, _, _, 1w0, 1w1, 1w1, _, _, _, _, 1w1, 8w4): give_2();
            (1w1, _, _, 1w0, _, _, 1w1, 1w1, 1w1, _, _, _, _, 1w1, 8w4): give_2();
            (_, _, _, _, _, _, 1w0, 1w0, 1w1, _, _, _, _, 1w1, 8w4): give_3();
            (_, 1w1, _, _, _, _, 1w1, 1w0, 1w1, _, _, _, _, 1w1, 8w4): give_3();
            (_, _, _, 1w1, _, _, 1w0, 1w1, 1w1, _, _, _, _, 1w1, 8w4): give_3();
            (_, 1w1, _, 1w1, _, _, 1w1, 1w1, 1w1, _, _, _, _, 1w1, 8w4): give_3();
        }
    }

    // The room and the bounds that change, and whether the queue becomes the last of its group.
    action exchange_1_2() {
        room_change_1 = less_each;
        room_change_2 = more_each;
        room_change_3 = 32w0;
        room_change_4 = 32w0;
        bound_change_1 = 8w255;
        bound_change_2 = 8w0;
        bound_change_3 = 8w0;
        side = 16w0;
    }
    action exchange_1_3() {
        room_change_1 = less_each;
        room_change_2 = 32w0;
        room_change_3 = more_each;
        room_change_4 = 32w0;
        bound_change_1 = 8w255;
        bound_change_2 = 8w255;
        bound_change_3 = 8w0;
        side = 16w0;
    }
    action exchange_1_4() {
        room_change_1 = less_each;
        room_change_2 = 32w0;
        room_change_3 = 32w0;
        room_change_4 = more_each;
        bound_change_1 = 8w255;
        bound_change_2 = 8w255;
        bound_change_3 = 8w255;
        side = 16w0;
    }
    action exchange_2_1() {
        room_change_1 = more_each;
        room_change_2 = less_each;
        room_change_3 = 32w0;
        room_change_4 = 32w0;
        bound_change_1 = 8w1;
        bound_change_2 = 8w0;
        bound_change_3 = 8w0;
        side = 16w1;
    }
    action exchange_2_3() {
        room_change_1 = 32w0;
        room_change_2 = less_each;
        room_change_3 = more_each;
        room_change_4 = 32w0;
        bound_change_1 = 8w0;
        bound_change_2 = 8w255;
        bound_change_3 = 8w0;
        side = 16w0;
    }
    action exchange_2_4() {
        room_change_1 = 32w0;
        room_change_2 = less_each;
        room_change_3 = 32w0;
        room_change_4 = more_each;
        bound_change_1 = 8w0;
        bound_change_2 = 8w255;
        bound_change_3 = 8w255;
        side = 16w0;
    }
    action exchange_3_1() {
        room_change_1 = more_each;
        room_change_2 = 32w0;
        room_change_3 = less_each;
        room_change_4 = 32w0;
        bound_change_1 = 8w1;
        bound_change_2 = 8w1;
        bound_change_3 = 8w0;
        side = 16w1;
    }
    action exchange_3_2() {
        room_change_1 = 32w0;
        room_change_2 = more_each;
        room_change_3 = less_each;
        room_change_4 = 32w0;
        bound_change_1 = 8w0;
        bound_change_2 = 8w1;
        bound_change_3 = 8w0;
        side = 16w1;
    }
    action exchange_3_4() {
        room_change_1 = 32w0;
        room_change_2 = 32w0;
        room_change_3 = less_each;
        room_change_4 = more_each;
        bound_change_1 = 8w0;
        bound_change_2 = 8w0;
        bound_change_3 = 8w255;
        side = 16w0;
    }
    action exchange_4_1() {
        room_change_1 = more_each;
        room_change_2 = 32w0;
        room_change_3 = 32w0;
        room_change_4 = less_each;
        bound_change_1 = 8w1;
        bound_change_2 = 8w1;
        bound_change_3 = 8w1;
        side = 16w1;
    }
    action exchange_4_2() {
        room_change_1 = 32w0;
        room_change_2 = more_each;
        room_change_3 = 32w0;
        room_change_4 = less_each;
        bound_change_1 = 8w0;
        bound_change_2 = 8w1;
        bound_change_3 = 8w1;
        side = 16w1;
    }
    action exchange_4_3() {
        room_change_1 = 32w0;
        room_change_2 = 32w0;
        room_change_3 = more_each;
        room_change_4 = less_each;
        bound_change_1 = 8w0;
        bound_change_2 = 8w0;
        bound_change_3 = 8w1;
        side = 16w1;
    }
    table exchange {
        key = {
            meta.giver: exact;
            meta.to: exact;
        }
        actions = {
            exchange_1_2;
            exchange_1_3;
            exchange_1_4;
            exchange_2_1;
            exchange_2_3;
            exchange_2_4;
            exchange_3_1;
            exchange_3_2;
            exchange_3_4;
            exchange_4_1;
            exchange_4_2;
            exchange_4_3;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (8w1, 8w2): exchange_1_2();
            (8w1, 8w3): exchange_1_3();
            (8w1, 8w4): exchange_1_4();
            (8w2, 8w1): exchange_2_1();
            (8w2, 8w3): exchange_2_3();
            (8w2, 8w4): exchange_2_4();
            (8w3, 8w1): exchange_3_1();
            (8w3, 8w2): exchange_3_2();
            (8w3, 8w4): exchange_3_4();
            (8w4, 8w1): exchange_4_1();
            (8w4, 8w2): exchange_4_2();
            (8w4, 8w3): exchange_4_3();
        }
    }

    // The queue that moves.
    action moved_1_2() {
        queue_that_moves = bound_1;
    }
    action moved_1_3() {
        queue_that_moves = bound_2;
    }
    action moved_1_4() {
        queue_that_moves = bound_3;
    }
    action moved_2_1() {
        queue_that_moves = bound_1 - 8w1;
    }
    action moved_2_3() {
        queue_that_moves = bound_2;
    }
    action moved_2_4() {
        queue_that_moves = bound_3;
    }
    action moved_3_1() {
        queue_that_moves = bound_1 - 8w1;
    }
    action moved_3_2() {
        queue_that_moves = bound_2 - 8w1;
    }
    action moved_3_4() {
        queue_that_moves = bound_3;
    }
    action moved_4_1() {
        queue_that_moves = bound_1 - 8w1;
    }
    action moved_4_2() {
        queue_that_moves = bound_2 - 8w1;
    }
    action moved_4_3() {
        queue_that_moves = bound_3 - 8w1;
    }
    table moved {
        key = {
            meta.giver: exact;
            meta.to: exact;
        }
        actions = {
            moved_1_2;
            moved_1_3;
            moved_1_4;
            moved_2_1;
            moved_2_3;
            moved_2_4;
            moved_3_1;
            moved_3_2;
            moved_3_4;
            moved_4_1;
            moved_4_2;
            moved_4_3;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (8w1, 8w2): moved_1_2();
            (8w1, 8w3): moved_1_3();
            (8w1, 8w4): moved_1_4();
            (8w2, 8w1): moved_2_1();
            (8w2, 8w3): moved_2_3();
            (8w2, 8w4): moved_2_4();
            (8w3, 8w1): moved_3_1();
            (8w3, 8w2): moved_3_2();
            (8w3, 8w4): moved_3_4();
            (8w4, 8w1): moved_4_1();
            (8w4, 8w2): moved_4_2();
            (8w4, 8w3): moved_4_3();
        }
    }

    // How far the round-trip time is shifted to be the flow's share, by the number of flows; a short-lived flow is one more.
    action shift_0() {
        share = rtt;
        window_high = rtt << 3;
        window_low = rtt << 2;
    }
    action shift_1() {
        share = rtt >> 1;
        window_high = rtt << 2;
        window_low = rtt << 1;
    }
    action shift_2() {
        share = rtt >> 2;
        window_high = rtt << 1;
        window_low = rtt;
    }
    action shift_3() {
        share = rtt >> 3;
        window_high = rtt;
        window_low = rtt >> 1;
    }
    action shift_4() {
        share = rtt >> 4;
        window_high = rtt >> 1;
        window_low = rtt >> 2;
    }
    action shift_5() {
        share = rtt >> 5;
        window_high = rtt >> 2;
        window_low = rtt >> 3;
    }
    action shift_6() {
        share = rtt >> 6;
        window_high = rtt >> 3;
        window_low = rtt >> 4;
    }
    action shift_7() {
        share = rtt >> 7;
        window_high = rtt >> 4;
        window_low = rtt >> 5;
    }
    action shift_8() {
        share = rtt >> 8;
        window_high = rtt >> 5;
        window_low = rtt >> 6;
    }
    action shift_9() {
        share = rtt >> 9;
        window_high = rtt >> 6;
        window_low = rtt >> 7;
    }
    action shift_10() {
        share = rtt >> 10;
        window_high = rtt >> 7;
        window_low = rtt >> 8;
    }
    action shift_11() {
        share = rtt >> 11;
        window_high = rtt >> 8;
        window_low = rtt >> 9;
    }
    action shift_12() {
        share = rtt >> 12;
        window_high = rtt >> 9;
        window_low = rtt >> 10;
    }
    action shift_13() {
        share = rtt >> 13;
        window_high = rtt >> 10;
        window_low = rtt >> 11;
    }
    action shift_14() {
        share = rtt >> 14;
        window_high = rtt >> 11;
        window_low = rtt >> 12;
    }
    action shift_15() {
        share = rtt >> 15;
        window_high = rtt >> 12;
        window_low = rtt >> 13;
    }
    action shift_16() {
        share = rtt >> 16;
        window_high = rtt >> 13;
        window_low = rtt >> 14;
    }
    table share_of_flow {
        key = {
            flows: range;
            meta.group: range;
        }
        actions = {
            shift_0;
            shift_1;
            shift_2;
            shift_3;
            shift_4;
            shift_5;
            shift_6;
            shift_7;
            shift_8;
            shift_9;
            shift_10;
            shift_11;
            shift_12;
            shift_13;
            shift_14;
            shift_15;
            shift_16;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (16w0, 8w0): shift_0();
            (16w1 .. 16w2, 8w0): shift_1();
            (16w3 .. 16w5, 8w0): shift_2();
            (16w6 .. 16w12, 8w0): shift_3();
            (16w13 .. 16w26, 8w0): shift_4();
            (16w27 .. 16w53, 8w0): shift_5();
            (16w54 .. 16w108, 8w0): shift_6();
            (16w109 .. 16w217, 8w0): shift_7();
            (16w218 .. 16w435, 8w0): shift_8();
            (16w436 .. 16w872, 8w0): shift_9();
            (16w873 .. 16w1746, 8w0): shift_10();
            (16w1747 .. 16w3494, 8w0): shift_11();
            (16w3495 .. 16w6989, 8w0): shift_12();
            (16w6990 .. 16w13980, 8w0): shift_13();
            (16w13981 .. 16w27961, 8w0): shift_14();
            (16w27962 .. 16w55923, 8w0): shift_15();
            (16w55924 .. 16w65535, 8w0): shift_16();
            (16w0 .. 16w1, 8w1 .. 8w255): shift_0();
            (16w2 .. 16w3, 8w1 .. 8w255): shift_1();
            (16w4 .. 16w6, 8w1 .. 8w255): shift_2();
            (16w7 .. 16w13, 8w1 .. 8w255): shift_3();
            (16w14 .. 16w27, 8w1 .. 8w255): shift_4();
            (16w28 .. 16w54, 8w1 .. 8w255): shift_5();
            (16w55 .. 16w109, 8w1 .. 8w255): shift_6();
            (16w110 .. 16w218, 8w1 .. 8w255): shift_7();
            (16w219 .. 16w436, 8w1 .. 8w255): shift_8();
            (16w437 .. 16w873, 8w1 .. 8w255): shift_9();
            (16w874 .. 16w1747, 8w1 .. 8w255): shift_10();
            (16w1748 .. 16w3495, 8w1 .. 8w255): shift_11();
            (16w3496 .. 16w6990, 8w1 .. 8w255): shift_12();
            (16w6991 .. 16w13981, 8w1 .. 8w255): shift_13();
            (16w13982 .. 16w27962, 8w1 .. 8w255): shift_14();
            (16w27963 .. 16w55924, 8w1 .. 8w255): shift_15();
            (16w55925 .. 16w65535, 8w1 .. 8w255): shift_16();
        }
    }

    // The first queue of the flow's group, and the first behind it.
    action queues_of_1() {
        first_queue = 8w2;
        end_queue = bound_1;
    }
    action queues_of_2() {
        first_queue = bound_1;
        end_queue = bound_2;
    }
    action queues_of_3() {
        first_queue = bound_2;
        end_queue = bound_3;
    }
    action queues_of_4() {
        first_queue = bound_3;
        end_queue = 8w32;
    }
    table queues_of_group {
        key = {
            meta.group: exact;
        }
        actions = {
            queues_of_1;
            queues_of_2;
            queues_of_3;
            queues_of_4;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            8w1: queues_of_1();
            8w2: queues_of_2();
            8w3: queues_of_3();
            8w4: queues_of_4();
        }
    }
    action send(bit<9> port) {
        standard_metadata.egress_spec = port;
    }
    action discard() {
        mark_to_drop(standard_metadata);
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
            if (standard_metadata.instance_type == RECIRCULATED || standard_metadata.instance_type == RESUBMITTED) {
                meta.fed_back = 1;
            }
            // BMv2 has microseconds.
            arrived = standard_metadata.ingress_global_timestamp * 1000;
            if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
                if (meta.fed_back == 1w1) {
                    home = standard_metadata.egress_spec[6:0];
                    if (meta.request == 8w1) {
                        // The flow changes its group, if it is still in the one that the packet had (section III-B).
                        // store_group
                        @atomic {
                            bit<8> word;
                            flow_group.read(word, (bit<32>)meta.entry[15:0]);
                            bool condition_0 = word == meta.group;
                            if (condition_0) {
                                word = meta.to;
                            }
                            flow_group.write((bit<32>)meta.entry[15:0], word);
                            has_moved = condition_0 ? 1w1 : 1w0;
                        }
                        if (has_moved == 1w1) {
                            newest_at = home ++ meta.queue[4:0];
                            flow_number = (bit<32>)meta.entry;
                            mark = flow_number | 32w0x10000;
                            if (meta.group != 8w0) {
                                // leave_newest
                                @atomic {
                                    bit<32> word;
                                    newest_flow.read(word, (bit<32>)newest_at);
                                    bool condition_0 = word == mark;
                                    if (condition_0) {
                                        word = 32w0;
                                    }
                                    newest_flow.write((bit<32>)newest_at, word);
                                }
                            }
                            // The flows of both groups, and their room.
                            change.apply();
                            // count_delay_based_flows
                            @atomic {
                                bit<16> word;
                                delay_based_flows.read(word, (bit<32>)home);
                                word = word + flow_change_1;
                                delay_based_flows.write((bit<32>)home, word);
                            }
                            // count_loss_delay_flows
                            @atomic {
                                bit<16> word;
                                loss_delay_flows.read(word, (bit<32>)home);
                                word = word + flow_change_2;
                                loss_delay_flows.write((bit<32>)home, word);
                            }
                            // count_loss_based_flows
                            @atomic {
                                bit<16> word;
                                loss_based_flows.read(word, (bit<32>)home);
                                word = word + flow_change_3;
                                loss_based_flows.write((bit<32>)home, word);
                            }
                            // count_model_based_flows
                            @atomic {
                                bit<16> word;
                                model_based_flows.read(word, (bit<32>)home);
                                word = word + flow_change_4;
                                model_based_flows.write((bit<32>)home, word);
                            }
                            // count_flows
                            @atomic {
                                bit<16> word;
                                long_lived_flows.read(word, (bit<32>)home);
                                word = word + joins;
                                long_lived_flows.write((bit<32>)home, word);
                                all_flows = word;
                            }
                            // first_loss_delay_of_copy
                            @atomic {
                                bit<8> word;
                                first_loss_delay.read(word, (bit<32>)home);
                                word = word ^ 8w29;
                                bound_1 = word;
                                first_loss_delay.write((bit<32>)home, word ^ 8w29);
                            }
                            // first_loss_based_of_copy
                            @atomic {
                                bit<8> word;
                                first_loss_based.read(word, (bit<32>)home);
                                word = word ^ 8w30;
                                bound_2 = word;
                                first_loss_based.write((bit<32>)home, word ^ 8w30);
                            }
                            // first_model_based_of_copy
                            @atomic {
                                bit<8> word;
                                first_model_based.read(word, (bit<32>)home);
                                word = word ^ 8w31;
                                bound_3 = word;
                                first_model_based.write((bit<32>)home, word ^ 8w31);
                            }
                            size_1 = bound_1 - 8w2;
                            size_2 = bound_2 - bound_1;
                            size_3 = bound_3 - bound_2;
                            size_4 = 8w32 - bound_3;
                            places_1 = (bit<32>)size_1;
                            places_2 = (bit<32>)size_2;
                            places_3 = (bit<32>)size_3;
                            places_4 = (bit<32>)size_4;
                            // At each multiple of the number of queues, each queue takes a flow more (section III-B).
                            if (meta.group == 8w0 && all_flows[4:0] == 5w0) {
                                room_change_1 = room_change_1 + places_1;
                                room_change_2 = room_change_2 + places_2;
                                room_change_3 = room_change_3 + places_3;
                                room_change_4 = room_change_4 + places_4;
                            }
                            // change_delay_based_room
                            @atomic {
                                bit<32> word;
                                delay_based_room.read(word, (bit<32>)home);
                                word = word ^ 32w26;
                                word = word + room_change_1;
                                delay_based_room.write((bit<32>)home, word ^ 32w26);
                                room_1 = word;
                            }
                            // change_loss_delay_room
                            @atomic {
                                bit<32> word;
                                loss_delay_room.read(word, (bit<32>)home);
                                word = word + room_change_2;
                                loss_delay_room.write((bit<32>)home, word);
                                room_2 = word;
                            }
                            // change_loss_based_room
                            @atomic {
                                bit<32> word;
                                loss_based_room.read(word, (bit<32>)home);
                                word = word + room_change_3;
                                loss_based_room.write((bit<32>)home, word);
                                room_3 = word;
                            }
                            // change_model_based_room
                            @atomic {
                                bit<32> word;
                                model_based_room.read(word, (bit<32>)home);
                                word = word + room_change_4;
                                model_based_room.write((bit<32>)home, word);
                                room_4 = word;
                            }
                            quotient = all_flows >> 5;
                            meta.each_queue = quotient + 16w1;
                            // Rooms are less one, so that a sign says whether there is any; and so is what compares with them.
                            each_less_one = (bit<32>)quotient;
                            // The group that gives a queue (section III-B). Signs of differences compare rooms.
                            room_1_less_2 = room_1 - room_2;
                            room_1_less_3 = room_1 - room_3;
                            room_1_less_4 = room_1 - room_4;
                            room_2_less_3 = room_2 - room_3;
                            room_2_less_4 = room_2 - room_4;
                            room_3_less_4 = room_3 - room_4;
                            if (size_1 <= 8w1) {
                                gives_1 = 32w0;
                            } else {
                                gives_1 = each_less_one - room_1;
                            }
                            if (size_2 <= 8w1) {
                                gives_2 = 32w0;
                            } else {
                                gives_2 = each_less_one - room_2;
                            }
                            if (size_3 <= 8w1) {
                                gives_3 = 32w0;
                            } else {
                                gives_3 = each_less_one - room_3;
                            }
                            if (size_4 <= 8w1) {
                                gives_4 = 32w0;
                            } else {
                                gives_4 = each_less_one - room_4;
                            }
                            group_that_gives.apply();
                            if (meta.giver != 8w0) {
                                meta.request = 8w4;
                                resubmit_preserving_field_list(8w0);
                            } else {
                                mark_to_drop(standard_metadata);
                            }
                        } else {
                            mark_to_drop(standard_metadata);
                        }
                    } else if (meta.request == 8w4) {
                        // A queue moves to another group (section III-B). Groups between them keep their number of queues.
                        more_each = (bit<32>)meta.each_queue;
                        less_each = 32w0 - more_each;
                        exchange.apply();
                        // exchange_delay_based_room
                        @atomic {
                            bit<32> word;
                            delay_based_room.read(word, (bit<32>)home);
                            word = word ^ 32w26;
                            word = word + room_change_1;
                            delay_based_room.write((bit<32>)home, word ^ 32w26);
                        }
                        // exchange_loss_delay_room
                        @atomic {
                            bit<32> word;
                            loss_delay_room.read(word, (bit<32>)home);
                            word = word + room_change_2;
                            loss_delay_room.write((bit<32>)home, word);
                        }
                        // exchange_loss_based_room
                        @atomic {
                            bit<32> word;
                            loss_based_room.read(word, (bit<32>)home);
                            word = word + room_change_3;
                            loss_based_room.write((bit<32>)home, word);
                        }
                        // exchange_model_based_room
                        @atomic {
                            bit<32> word;
                            model_based_room.read(word, (bit<32>)home);
                            word = word + room_change_4;
                            model_based_room.write((bit<32>)home, word);
                        }
                        // move_first_loss_delay
                        @atomic {
                            bit<8> word;
                            first_loss_delay.read(word, (bit<32>)home);
                            word = word ^ 8w29;
                            word = word + bound_change_1;
                            first_loss_delay.write((bit<32>)home, word ^ 8w29);
                            bound_1 = word;
                        }
                        // move_first_loss_based
                        @atomic {
                            bit<8> word;
                            first_loss_based.read(word, (bit<32>)home);
                            word = word ^ 8w30;
                            word = word + bound_change_2;
                            first_loss_based.write((bit<32>)home, word ^ 8w30);
                            bound_2 = word;
                        }
                        // move_first_model_based
                        @atomic {
                            bit<8> word;
                            first_model_based.read(word, (bit<32>)home);
                            word = word ^ 8w31;
                            word = word + bound_change_3;
                            first_model_based.write((bit<32>)home, word ^ 8w31);
                            bound_3 = word;
                        }
                        gained_at = home ++ meta.to[2:0];
                        twice = meta.each_queue << 1;
                        gained_after = twice | side;
                        // store_gained
                        @atomic {
                            bit<16> word;
                            gained_takes.read(word, (bit<32>)gained_at);
                            word = gained_after;
                            gained_takes.write((bit<32>)gained_at, word);
                        }
                        moved.apply();
                        newest_at = home ++ queue_that_moves[4:0];
                        flow_number = (bit<32>)meta.entry;
                        mark = flow_number | 32w0x10000;
                        // clear_newest
                        @atomic {
                            bit<32> word;
                            newest_flow.read(word, (bit<32>)newest_at);
                            word = 32w0;
                            newest_flow.write((bit<32>)newest_at, word);
                        }
                        mark_to_drop(standard_metadata);
                    } else if (meta.request == 8w5) {
                        // A delayed packet passes again, or enters its queue (section III-C).
                        meta.passes = meta.passes + 8w1;
                        if (meta.passes < 8w8) {
                            resubmit_preserving_field_list(8w0);
                        } else {
                            // BMv2 has eight priorities: those of the lowest bits of the queue.
                            standard_metadata.priority = (bit<3>)(meta.queue[6:0]);
                        }
                    } else {
                        // The flow has another queue, if a gained queue still takes it (section III-B).
                        gained_at = home ++ meta.group[2:0];
                        if (meta.request == 8w3) {
                            // take_gained
                            @atomic {
                                bit<16> word;
                                gained_takes.read(word, (bit<32>)gained_at);
                                bool condition_0 = word > 16w1;
                                if (condition_0) {
                                    word = word - 16w2;
                                }
                                gained_takes.write((bit<32>)gained_at, word);
                                takes = condition_0 ? 1w1 : 1w0;
                            }
                        } else {
                            takes = 1w1;
                        }
                        newest_at = home ++ meta.to[4:0];
                        flow_number = (bit<32>)meta.entry;
                        mark = flow_number | 32w0x10000;
                        if (takes == 1w1) {
                            // store_queue
                            @atomic {
                                bit<8> word;
                                flow_queue.read(word, (bit<32>)meta.entry[15:0]);
                                word = meta.to;
                                flow_queue.write((bit<32>)meta.entry[15:0], word);
                            }
                            // store_newest
                            @atomic {
                                bit<32> word;
                                newest_flow.read(word, (bit<32>)newest_at);
                                word = mark;
                                newest_flow.write((bit<32>)newest_at, word);
                            }
                        }
                        mark_to_drop(standard_metadata);
                    }
                } else {
                    // The flow: the packet's own if it has data or is a SYN, otherwise that of the other direction.
                    now = arrived[41:10];
                    lengths_without_data.apply();
                    hash(own_flow, HashAlgorithm.crc32, 64w0, {meta.source, meta.destination, meta.ports, meta.protocol}, 64w0x10000);
                    hash(other_flow, HashAlgorithm.crc32, 64w0, {meta.destination, meta.source, meta.ports[15:0], meta.ports[31:16], meta.protocol}, 64w0x10000);
                    if (has_data == 1w1 || meta.tcp_flags[1:1] == 1w1) {
                        meta.entry = own_flow;
                        home = standard_metadata.egress_spec[6:0];
                    } else {
                        meta.entry = other_flow;
                        home = standard_metadata.ingress_port[6:0];
                    }
                    marked = now | 32w0x80000000;
                    if (meta.tcp_flags[1:1] == 1w1) {
                        // A SYN starts the flow's measurements. It does not wait behind mice.
                        // store_syn
                        @atomic {
                            bit<32> word;
                            round_trip_time.read(word, (bit<32>)meta.entry[15:0]);
                            word = word ^ 32w0x17d78;
                            word = marked;
                            round_trip_time.write((bit<32>)meta.entry[15:0], word ^ 32w0x17d78);
                        }
                        // begin_handshake
                        @atomic {
                            bit<32> word;
                            round_end.read(word, (bit<32>)meta.entry[15:0]);
                            word = now;
                            round_end.write((bit<32>)meta.entry[15:0], word);
                        }
                        // clear_sent
                        @atomic {
                            bit<16> word;
                            sent.read(word, (bit<32>)meta.entry[15:0]);
                            word = 16w0;
                            sent.write((bit<32>)meta.entry[15:0], word);
                        }
                        // clear_sent_before
                        @atomic {
                            bit<16> word;
                            sent_before.read(word, (bit<32>)meta.entry[15:0]);
                            word = 16w0;
                            sent_before.write((bit<32>)meta.entry[15:0], word);
                        }
                        // BMv2 has eight priorities: those of the lowest bits of the queue.
                        standard_metadata.priority = 3w0;
                    } else {
                        // read_group
                        @atomic {
                            bit<8> word;
                            flow_group.read(word, (bit<32>)meta.entry[15:0]);
                            meta.group = word;
                            flow_group.write((bit<32>)meta.entry[15:0], word);
                        }
                        // read_flows
                        @atomic {
                            bit<16> word;
                            long_lived_flows.read(word, (bit<32>)home);
                            flows = word;
                            long_lived_flows.write((bit<32>)home, word);
                        }
                        // The first data behind a SYN measures the round-trip time (section III-A).
                        if (has_data == 1w1) {
                            // measure_round_trip
                            @atomic {
                                bit<32> word;
                                round_trip_time.read(word, (bit<32>)meta.entry[15:0]);
                                word = word ^ 32w0x17d78;
                                bool condition_0 = word >= 32w0x80000000;
                                if (condition_0) {
                                    word = marked - word;
                                }
                                round_trip_time.write((bit<32>)meta.entry[15:0], word ^ 32w0x17d78);
                                rtt = word;
                            }
                        } else {
                            // read_round_trip
                            @atomic {
                                bit<32> word;
                                round_trip_time.read(word, (bit<32>)meta.entry[15:0]);
                                word = word ^ 32w0x17d78;
                                rtt = word;
                                round_trip_time.write((bit<32>)meta.entry[15:0], word ^ 32w0x17d78);
                            }
                        }
                        share_of_flow.apply();
                        if (has_data == 1w1) {
                            // Whether it ends a round trip, and the packets of the round trip.
                            next_end = now + rtt;
                            // test_round_end
                            @atomic {
                                bit<32> word;
                                round_end.read(word, (bit<32>)meta.entry[15:0]);
                                bool condition_0 = now - word < 32w0x80000000;
                                if (condition_0) {
                                    word = next_end;
                                }
                                round_end.write((bit<32>)meta.entry[15:0], word);
                                has_ended = condition_0 ? 1w1 : 1w0;
                            }
                            if (has_ended == 1w1) {
                                // begin_round
                                @atomic {
                                    bit<16> word;
                                    sent.read(word, (bit<32>)meta.entry[15:0]);
                                    meta.packets_sent = word;
                                    word = 16w1;
                                    sent.write((bit<32>)meta.entry[15:0], word);
                                }
                                // keep_sent
                                @atomic {
                                    bit<16> word;
                                    sent_before.read(word, (bit<32>)meta.entry[15:0]);
                                    meta.packets_before = word;
                                    word = meta.packets_sent;
                                    sent_before.write((bit<32>)meta.entry[15:0], word);
                                }
                                meta.round = 8w2;
                            } else {
                                // count_sent
                                @atomic {
                                    bit<16> word;
                                    sent.read(word, (bit<32>)meta.entry[15:0]);
                                    word = word |+| 16w1;
                                    sent.write((bit<32>)meta.entry[15:0], word);
                                    meta.packets_sent = word;
                                }
                                meta.round = 8w1;
                            }
                            sent_so_far = (bit<32>)meta.packets_sent;
                            if (meta.group == 8w0) {
                                // Slow start ends if the flow sends less, or fills its share: then it loses a packet (section III-A).
                                if (has_ended == 1w1) {
                                    if (meta.tcp_words != 4w0) {
                                        if (meta.packets_sent < meta.packets_before) {
                                            meta.request = 8w1;
                                            meta.to = 8w1;
                                            clone_preserving_field_list(CloneType.I2E, 32w5, 8w0);
                                        }
                                    }
                                } else if (sent_so_far >= share) {
                                    meta.request = 8w1;
                                    meta.to = 8w1;
                                    clone_preserving_field_list(CloneType.I2E, 32w5, 8w0);
                                    if (meta.tcp_words != 4w0) {
                                        mark_to_drop(standard_metadata);
                                    }
                                }
                                if (meta.tcp_words != 4w0) {
                                    // BMv2 has eight priorities: those of the lowest bits of the queue.
                                    standard_metadata.priority = 3w1;
                                } else {
                                    // BMv2 has eight priorities: those of the lowest bits of the queue.
                                    standard_metadata.priority = 3w0;
                                }
                            } else {
                                if (has_ended == 1w1) {
                                    // end_above
                                    @atomic {
                                        bit<8> word;
                                        above_share.read(word, (bit<32>)meta.entry[15:0]);
                                        word = 8w0;
                                        above_share.write((bit<32>)meta.entry[15:0], word);
                                    }
                                } else if (sent_so_far > share) {
                                    // note_above
                                    @atomic {
                                        bit<8> word;
                                        above_share.read(word, (bit<32>)meta.entry[15:0]);
                                        word = 8w1;
                                        above_share.write((bit<32>)meta.entry[15:0], word);
                                    }
                                    is_over = 1w1;
                                }
                                // The queues of the flow's group (section III-B).
                                // first_loss_delay_of_packet
                                @atomic {
                                    bit<8> word;
                                    first_loss_delay.read(word, (bit<32>)home);
                                    word = word ^ 8w29;
                                    bound_1 = word;
                                    first_loss_delay.write((bit<32>)home, word ^ 8w29);
                                }
                                // first_loss_based_of_packet
                                @atomic {
                                    bit<8> word;
                                    first_loss_based.read(word, (bit<32>)home);
                                    word = word ^ 8w30;
                                    bound_2 = word;
                                    first_loss_based.write((bit<32>)home, word ^ 8w30);
                                }
                                // first_model_based_of_packet
                                @atomic {
                                    bit<8> word;
                                    first_model_based.read(word, (bit<32>)home);
                                    word = word ^ 8w31;
                                    bound_3 = word;
                                    first_model_based.write((bit<32>)home, word ^ 8w31);
                                }
                                queues_of_group.apply();
                                count = end_queue - first_queue;
                                queue_of_flow.apply();
                                other = first_queue + place;
                                // The queue that the group has gained, if it still takes flows: its first or its last (section III-B).
                                gained_at = home ++ meta.group[2:0];
                                // read_gained
                                @atomic {
                                    bit<16> word;
                                    gained_takes.read(word, (bit<32>)gained_at);
                                    gained = word;
                                    gained_takes.write((bit<32>)gained_at, word);
                                }
                                last = end_queue - 8w1;
                                if (gained[0:0] == 1w1) {
                                    gained_queue = last;
                                } else {
                                    gained_queue = first_queue;
                                }
                                // read_queue
                                @atomic {
                                    bit<8> word;
                                    flow_queue.read(word, (bit<32>)meta.entry[15:0]);
                                    stored = word;
                                    flow_queue.write((bit<32>)meta.entry[15:0], word);
                                }
                                if (stored >= first_queue && stored < end_queue) {
                                    meta.queue = stored;
                                } else {
                                    meta.queue = other;
                                    is_outside = 1w1;
                                }
                                if (gained[15:1] != 15w0 && stored != gained_queue) {
                                    meta.request = 8w3;
                                    meta.to = gained_queue;
                                } else if (is_outside == 1w1) {
                                    meta.request = 8w2;
                                    meta.to = other;
                                }
                                newest_at = home ++ meta.queue[4:0];
                                flow_number = (bit<32>)meta.entry;
                                mark = flow_number | 32w0x10000;
                                // test_newest
                                @atomic {
                                    bit<32> word;
                                    newest_flow.read(word, (bit<32>)newest_at);
                                    bool condition_0 = word == 32w0;
                                    if (condition_0) {
                                        word = mark;
                                    }
                                    newest_flow.write((bit<32>)newest_at, word);
                                    newest = word;
                                }
                                if (newest == mark) {
                                    meta.is_newest = 8w1;
                                }
                                // What is done to a flow above its share (section III-C).
                                if (is_over == 1w1 && (meta.group == 8w1)) {
                                    meta.request = 8w5;
                                    resubmit_preserving_field_list(8w0);
                                } else {
                                    if (is_over == 1w1 && (meta.group == 8w2 || meta.group == 8w3)) {
                                        mark_to_drop(standard_metadata);
                                    }
                                    if (meta.request != 8w0) {
                                        clone_preserving_field_list(CloneType.I2E, 32w5, 8w0);
                                    }
                                }
                                // BMv2 has eight priorities: those of the lowest bits of the queue.
                                standard_metadata.priority = (bit<3>)(meta.queue[6:0]);
                            }
                        } else {
                            // The receive window of a flow above its share (section III-C).
                            // read_above
                            @atomic {
                                bit<8> word;
                                above_share.read(word, (bit<32>)meta.entry[15:0]);
                                was_above = word;
                                above_share.write((bit<32>)meta.entry[15:0], word);
                            }
                            window_sum = window_high |+| window_low;
                            window_limit = window_sum > 32w23 ? window_sum : 32w23;
                            window_before = (bit<32>)meta.window;
                            window_after = window_limit[15:0];
                            if (meta.tcp_flags[4:4] == 1w1 && was_above == 8w1 && (meta.group == 8w4)) {
                                if (window_before > window_limit) {
                                    {
                                        // The checksum follows (RFC 1624).
                                        bit<32> window_checksum = (bit<32>)(~hdr.tcp.checksum) + (bit<32>)(~hdr.tcp.window) + (bit<32>)(window_after);
                                        window_checksum = (window_checksum & 32w0xffff) + (window_checksum >> 16);
                                        window_checksum = (window_checksum & 32w0xffff) + (window_checksum >> 16);
                                        hdr.tcp.checksum = ~window_checksum[15:0];
                                        hdr.tcp.window = window_after;
                                    }
                                }
                            }
                            // BMv2 has eight priorities: those of the lowest bits of the queue.
                            standard_metadata.priority = 3w1;
                        }
                    }
                }
            }
        }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // The deepest queue of the round trip, in packets.
    register<bit<16>>(65536) depth;
    // The deepest queue of the previous round trip.
    register<bit<16>>(65536) depth_before;
    // Round trips in a row in which the queue grew.
    register<bit<8>>(65536) aggressiveness;
    // Round trips since a decrease of the rate.
    register<bit<8>>(65536) since_decrease;
    // Round trips in which a decrease still ends a pulse.
    register<bit<8>>(65536) pulse_left;
    // Round trips in which a pulse still counts with the one before.
    register<bit<8>>(65536) period_left;
    // Pulses of the rate.
    register<bit<8>>(65536) pulses;
    bit<19> found = 0;
    bit<16> found_depth = 0;
    bit<16> deepest = 0;
    bit<16> eighth = 0;
    bit<16> least_change = 0;
    bit<16> more = 0;
    bit<16> less = 0;
    bit<16> reduction = 0;
    bit<16> with_reduction = 0;
    bit<1> is_reduced = 0;
    bit<1> has_increased = 0;
    bit<1> has_decreased = 0;
    bit<8> settled = 0;
    bit<8> had_increase = 0;
    bit<8> left_of_period = 0;
    bit<8> pulses_so_far = 0;
    bit<16> deepest_before = 0;
    bit<16> rise = 0;
    bit<16> least_depth = 0;
    bit<1> grows = 0;
    bit<8> most = 0;
    bit<1> is_reached = 0;

    apply {
        if (standard_metadata.instance_type == CLONED_AT_INGRESS || standard_metadata.instance_type == CLONED_AT_EGRESS) {
            recirculate_preserving_field_list(8w0);
        } else {
            if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
                if (meta.round != 8w0) {
                    if (meta.group == 8w0) {
                        // What was found in slow start does not count.
                        // forget_depth
                        @atomic {
                            bit<16> word;
                            depth.read(word, (bit<32>)meta.entry[15:0]);
                            word = 16w0;
                            depth.write((bit<32>)meta.entry[15:0], word);
                        }
                        // forget_depth_before
                        @atomic {
                            bit<16> word;
                            depth_before.read(word, (bit<32>)meta.entry[15:0]);
                            word = 16w0;
                            depth_before.write((bit<32>)meta.entry[15:0], word);
                        }
                        // forget_aggressiveness
                        @atomic {
                            bit<8> word;
                            aggressiveness.read(word, (bit<32>)meta.entry[15:0]);
                            word = 8w0;
                            aggressiveness.write((bit<32>)meta.entry[15:0], word);
                        }
                        // forget_since_decrease
                        @atomic {
                            bit<8> word;
                            since_decrease.read(word, (bit<32>)meta.entry[15:0]);
                            word = 8w0;
                            since_decrease.write((bit<32>)meta.entry[15:0], word);
                        }
                        // forget_pulse_left
                        @atomic {
                            bit<8> word;
                            pulse_left.read(word, (bit<32>)meta.entry[15:0]);
                            word = 8w0;
                            pulse_left.write((bit<32>)meta.entry[15:0], word);
                        }
                        // forget_period_left
                        @atomic {
                            bit<8> word;
                            period_left.read(word, (bit<32>)meta.entry[15:0]);
                            word = 8w0;
                            period_left.write((bit<32>)meta.entry[15:0], word);
                        }
                        // forget_pulses
                        @atomic {
                            bit<8> word;
                            pulses.read(word, (bit<32>)meta.entry[15:0]);
                            word = 8w0;
                            pulses.write((bit<32>)meta.entry[15:0], word);
                        }
                    } else {
                        found = standard_metadata.enq_qdepth < 19w4095 ? standard_metadata.enq_qdepth : 19w4095;
                        found_depth = found[15:0];
                        if (meta.round == 8w1) {
                            // keep_deepest
                            @atomic {
                                bit<16> word;
                                depth.read(word, (bit<32>)meta.entry[15:0]);
                                bool condition_0 = word < found_depth;
                                if (condition_0) {
                                    word = found_depth;
                                }
                                depth.write((bit<32>)meta.entry[15:0], word);
                            }
                        } else {
                            // begin_depth
                            @atomic {
                                bit<16> word;
                                depth.read(word, (bit<32>)meta.entry[15:0]);
                                deepest = word;
                                word = found_depth;
                                depth.write((bit<32>)meta.entry[15:0], word);
                            }
                            // How the rate has changed (section III-A).
                            eighth = meta.packets_before >> 3;
                            least_change = eighth > 16w4 ? eighth : 16w4;
                            more = meta.packets_before |+| least_change;
                            less = meta.packets_sent |+| least_change;
                            reduction = meta.packets_before >> 3;
                            with_reduction = meta.packets_sent |+| reduction;
                            if (with_reduction < meta.packets_before) {
                                is_reduced = 1w1;
                            }
                            if (meta.packets_sent >= more) {
                                has_increased = 1w1;
                            }
                            if (meta.packets_before >= less) {
                                has_decreased = 1w1;
                            }
                            // Pulses of the rate: an increase after a settled rate, and then a decrease (section III-A).
                            if (has_decreased == 1w1) {
                                // begin_settling
                                @atomic {
                                    bit<8> word;
                                    since_decrease.read(word, (bit<32>)meta.entry[15:0]);
                                    word = 8w0;
                                    since_decrease.write((bit<32>)meta.entry[15:0], word);
                                }
                            } else {
                                // settle
                                @atomic {
                                    bit<8> word;
                                    since_decrease.read(word, (bit<32>)meta.entry[15:0]);
                                    word = word |+| 8w1;
                                    since_decrease.write((bit<32>)meta.entry[15:0], word);
                                    settled = word;
                                }
                            }
                            if (has_increased == 1w1 && meta.packets_before != 16w0 && settled > 8w3) {
                                // begin_pulse
                                @atomic {
                                    bit<8> word;
                                    pulse_left.read(word, (bit<32>)meta.entry[15:0]);
                                    word = 8w2;
                                    pulse_left.write((bit<32>)meta.entry[15:0], word);
                                }
                            } else if (has_decreased == 1w1) {
                                // end_pulse
                                @atomic {
                                    bit<8> word;
                                    pulse_left.read(word, (bit<32>)meta.entry[15:0]);
                                    had_increase = word;
                                    word = 8w0;
                                    pulse_left.write((bit<32>)meta.entry[15:0], word);
                                }
                            } else {
                                // age_pulse
                                @atomic {
                                    bit<8> word;
                                    pulse_left.read(word, (bit<32>)meta.entry[15:0]);
                                    word = word |-| 8w1;
                                    pulse_left.write((bit<32>)meta.entry[15:0], word);
                                }
                            }
                            if (had_increase != 8w0) {
                                // begin_period
                                @atomic {
                                    bit<8> word;
                                    period_left.read(word, (bit<32>)meta.entry[15:0]);
                                    left_of_period = word;
                                    word = 8w32;
                                    period_left.write((bit<32>)meta.entry[15:0], word);
                                }
                                if (left_of_period == 8w0) {
                                    // first_pulse
                                    @atomic {
                                        bit<8> word;
                                        pulses.read(word, (bit<32>)meta.entry[15:0]);
                                        word = 8w1;
                                        pulses.write((bit<32>)meta.entry[15:0], word);
                                        pulses_so_far = word;
                                    }
                                } else {
                                    // count_pulse
                                    @atomic {
                                        bit<8> word;
                                        pulses.read(word, (bit<32>)meta.entry[15:0]);
                                        word = word |+| 8w1;
                                        pulses.write((bit<32>)meta.entry[15:0], word);
                                        pulses_so_far = word;
                                    }
                                }
                            } else {
                                // age_period
                                @atomic {
                                    bit<8> word;
                                    period_left.read(word, (bit<32>)meta.entry[15:0]);
                                    word = word |-| 8w1;
                                    period_left.write((bit<32>)meta.entry[15:0], word);
                                }
                                // read_pulses
                                @atomic {
                                    bit<8> word;
                                    pulses.read(word, (bit<32>)meta.entry[15:0]);
                                    pulses_so_far = word;
                                    pulses.write((bit<32>)meta.entry[15:0], word);
                                }
                            }
                            // Round trips in a row in which the deepest queue grew (section III-A).
                            // keep_depth
                            @atomic {
                                bit<16> word;
                                depth_before.read(word, (bit<32>)meta.entry[15:0]);
                                deepest_before = word;
                                word = deepest;
                                depth_before.write((bit<32>)meta.entry[15:0], word);
                            }
                            rise = deepest_before >> 7;
                            least_depth = deepest_before + rise;
                            if (deepest > least_depth) {
                                grows = 1w1;
                            }
                            if (meta.group == 8w1 && is_reduced == 1w1) {
                                grows = 1w0;
                            }
                            if (meta.group == 8w1) {
                                most = 8w3;
                            } else if (meta.group == 8w2) {
                                most = 8w11;
                            } else {
                                most = 8w254;
                            }
                            if (grows == 1w1) {
                                // count_growth
                                @atomic {
                                    bit<8> word;
                                    aggressiveness.read(word, (bit<32>)meta.entry[15:0]);
                                    bool condition_0 = word >= most;
                                    if (condition_0) {
                                        word = 8w0;
                                    } else {
                                        if (!(condition_0)) {
                                            word = word |+| 8w1;
                                        }
                                    }
                                    aggressiveness.write((bit<32>)meta.entry[15:0], word);
                                    is_reached = condition_0 ? 1w1 : 1w0;
                                }
                            } else {
                                // end_growth
                                @atomic {
                                    bit<8> word;
                                    aggressiveness.read(word, (bit<32>)meta.entry[15:0]);
                                    word = 8w0;
                                    aggressiveness.write((bit<32>)meta.entry[15:0], word);
                                }
                            }
                            // The next group: model-based by pulses, or the newest flow of the queue by its growth.
                            if (pulses_so_far >= 8w4 && meta.group < 8w4) {
                                meta.to = 8w4;
                                meta.request = 8w1;
                                clone_preserving_field_list(CloneType.E2E, 32w5, 8w0);
                            } else if (is_reached == 1w1 && meta.is_newest == 8w1 && meta.group < 8w3) {
                                meta.to = meta.group + 8w1;
                                meta.request = 8w1;
                                clone_preserving_field_list(CloneType.E2E, 32w5, 8w0);
                            }
                        }
                    }
                }
            }
        }
    }
}

control MainCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MainDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.ports);
        packet.emit(hdr.tcp);
    }
}

V1Switch(MainParser(), MainVerify(), MainIngress(), MainEgress(), MainCompute(), MainDeparser()) main;
