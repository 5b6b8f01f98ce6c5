// conquest-legacy: measures the queue of a router beside it, by taps, and reports flows that have too much of it.
// After Chen et al., Fine-Grained Queue Measurement in the Data Plane, CoNEXT 2019, section 6.
// The packet generator sends a packet every 16.4 µs.

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

// What follows the ports of TCP.
header tcp_h {
    bit<32> sequence;
    bit<32> acknowledgement;
}

// What follows the ports of UDP: the length and the checksum.
header udp_h {
    bit<32> both;
}

const bit<16> ETHERTYPE_REPORT = 0x88b6;

// How long the packet behind it was in the router, in nanoseconds, and the bytes of its flow that were in the queue before it.
header report_h {
    bit<32> delay;
    bit<32> estimate;
}

struct headers_t {
    ethernet_h report_ethernet;
    report_h report;
    ethernet_h ethernet;
    vlan_h vlan;
    ipv4_h ipv4;
    ipv6_h ipv6;
    ports_h ports;
    tcp_h tcp;
    udp_h udp;
}

struct metadata_t {
    bit<2> ecn;
    bit<1> generated;
    // What identifies the flow. Of IPv6 addresses, the last 32 bits.
    bit<32> source;
    bit<32> destination;
    bit<32> ports;
    bit<8> protocol;
    bit<16> ip_length;
    bit<16> identification;
    bit<32> sequence;
    bit<32> acknowledgement;
}

parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x88b5: parse_generated;
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
        meta.identification = hdr.ipv4.identification;
        meta.ip_length = hdr.ipv4.total_length;
        meta.source = hdr.ipv4.source;
        meta.destination = hdr.ipv4.destination;
        meta.protocol = hdr.ipv4.protocol;
        transition select(hdr.ipv4.header_words, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, 6): parse_tcp;
            (5, 0, 17): parse_udp;
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
            6: parse_tcp;
            17: parse_udp;
            default: accept;
        }
    }
    state parse_tcp {
        packet.extract(hdr.ports);
        meta.ports = hdr.ports.both;
        packet.extract(hdr.tcp);
        meta.sequence = hdr.tcp.sequence;
        meta.acknowledgement = hdr.tcp.acknowledgement;
        transition accept;
    }
    state parse_udp {
        packet.extract(hdr.ports);
        meta.ports = hdr.ports.both;
        packet.extract(hdr.udp);
        meta.sequence = hdr.udp.both;
        transition accept;
    }
    state parse_generated {
        meta.generated = 1;
        transition accept;
    }
}

control MainVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // The digest of a packet in the router, and when it came.
    register<bit<64>>(65536) waiting;
    // The number of packets so far.
    register<bit<32>>(1) packets;
    // Row 0 of snapshot 0.
    register<bit<32>>(64) snapshot_0_0;
    // Row 1 of snapshot 0.
    register<bit<32>>(64) snapshot_0_1;
    // Row 0 of snapshot 1.
    register<bit<32>>(64) snapshot_1_0;
    // Row 1 of snapshot 1.
    register<bit<32>>(64) snapshot_1_1;
    // Row 0 of snapshot 2.
    register<bit<32>>(64) snapshot_2_0;
    // Row 1 of snapshot 2.
    register<bit<32>>(64) snapshot_2_1;
    // Row 0 of snapshot 3.
    register<bit<32>>(64) snapshot_3_0;
    // Row 1 of snapshot 3.
    register<bit<32>>(64) snapshot_3_1;
    // Packets by what became of them.
    register<bit<32>>(8) fates;
    bit<48> arrived = 0;
    bit<2> role = 0;
    bit<32> now = 0;
    bit<3> fate = 0;
    bit<16> slot = 0;
    bit<32> fingerprint = 0;
    bit<1> inserted = 0;
    bit<32> came = 0;
    bit<32> delay = 0;
    bit<6> hash_0 = 0;
    bit<6> hash_1 = 0;
    bit<32> window_end = 0;
    bit<32> before_window = 0;
    bit<32> next = 0;
    bit<6> entry_0_0 = 0;
    bit<6> entry_0_1 = 0;
    bit<6> entry_1_0 = 0;
    bit<6> entry_1_1 = 0;
    bit<6> entry_2_0 = 0;
    bit<6> entry_2_1 = 0;
    bit<6> entry_3_0 = 0;
    bit<6> entry_3_1 = 0;
    bit<32> count_0_0 = 0;
    bit<32> count_0_1 = 0;
    bit<32> count_1_0 = 0;
    bit<32> count_1_1 = 0;
    bit<32> count_2_0 = 0;
    bit<32> count_2_1 = 0;
    bit<32> count_3_0 = 0;
    bit<32> count_3_1 = 0;
    bit<32> tau = 0;
    bit<32> threshold = 0;
    bit<9> collector = 0;
    bit<1> seen = 0;
    bit<1> long = 0;

    // The link that a port has a tap of: 1 into the router, 2 out of it.
    action set_taps(bit<2> role_of_entry) {
        role = role_of_entry;
    }
    table taps {
        key = {
            standard_metadata.ingress_port: exact;
        }
        actions = {
            set_taps;
        }
        default_action = set_taps(2w0);
        size = 4;
    }

    // The longest delay without a report, the least bytes of a flow with one, and the port of the collector.
    action set_parameters(bit<32> tau_of_entry, bit<32> threshold_of_entry, bit<9> collector_of_entry) {
        tau = tau_of_entry;
        threshold = threshold_of_entry;
        collector = collector_of_entry;
    }
    table parameters {
        actions = {
            set_parameters;
        }
        default_action = set_parameters(32w0x7a120, 32w62500, 9w5);
    }

    // The entry that the packet reaches of each snapshot.
    action clean_0() {
        entry_0_0 = next[5:0];
        entry_0_1 = next[5:0];
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
        entry_1_0 = next[5:0];
        entry_1_1 = next[5:0];
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
        entry_2_0 = next[5:0];
        entry_2_1 = next[5:0];
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
        entry_3_0 = next[5:0];
        entry_3_1 = next[5:0];
    }
    table reached {
        key = {
            arrived[21:20]: exact;
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
    }

    // What the packet does with row 0 of snapshot 0.
    action do_write_0_0() {
        // write_0_0
        {
            bit<32> word;
            snapshot_0_0.read(word, (bit<32>)entry_0_0);
            count_0_0 = word;
            word = word |+| (bit<32>)meta.ip_length;
            snapshot_0_0.write((bit<32>)entry_0_0, word);
        }
    }
    action do_read_0_0() {
        // read_0_0
        {
            bit<32> word;
            snapshot_0_0.read(word, (bit<32>)entry_0_0);
            count_0_0 = word;
            snapshot_0_0.write((bit<32>)entry_0_0, word);
        }
    }
    action do_clear_0_0() {
        // clear_0_0
        {
            bit<32> word;
            snapshot_0_0.read(word, (bit<32>)entry_0_0);
            word = 32w0;
            snapshot_0_0.write((bit<32>)entry_0_0, word);
        }
    }
    table role_0_0 {
        key = {
            arrived[21:20]: exact;
            before_window[31:20]: range;
            meta.generated: ternary;
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
            (2w1, 12w1 .. 12w2047, 1w0): do_read_0_0();
            (2w2, 12w2 .. 12w2047, 1w0): do_read_0_0();
            (2w3, _, _): do_clear_0_0();
        }
    }

    // What the packet does with row 1 of snapshot 0.
    action do_write_0_1() {
        // write_0_1
        {
            bit<32> word;
            snapshot_0_1.read(word, (bit<32>)entry_0_1);
            count_0_1 = word;
            word = word |+| (bit<32>)meta.ip_length;
            snapshot_0_1.write((bit<32>)entry_0_1, word);
        }
    }
    action do_read_0_1() {
        // read_0_1
        {
            bit<32> word;
            snapshot_0_1.read(word, (bit<32>)entry_0_1);
            count_0_1 = word;
            snapshot_0_1.write((bit<32>)entry_0_1, word);
        }
    }
    action do_clear_0_1() {
        // clear_0_1
        {
            bit<32> word;
            snapshot_0_1.read(word, (bit<32>)entry_0_1);
            word = 32w0;
            snapshot_0_1.write((bit<32>)entry_0_1, word);
        }
    }
    table role_0_1 {
        key = {
            arrived[21:20]: exact;
            before_window[31:20]: range;
            meta.generated: ternary;
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
            (2w1, 12w1 .. 12w2047, 1w0): do_read_0_1();
            (2w2, 12w2 .. 12w2047, 1w0): do_read_0_1();
            (2w3, _, _): do_clear_0_1();
        }
    }

    // What the packet does with row 0 of snapshot 1.
    action do_write_1_0() {
        // write_1_0
        {
            bit<32> word;
            snapshot_1_0.read(word, (bit<32>)entry_1_0);
            count_1_0 = word;
            word = word |+| (bit<32>)meta.ip_length;
            snapshot_1_0.write((bit<32>)entry_1_0, word);
        }
    }
    action do_read_1_0() {
        // read_1_0
        {
            bit<32> word;
            snapshot_1_0.read(word, (bit<32>)entry_1_0);
            count_1_0 = word;
            snapshot_1_0.write((bit<32>)entry_1_0, word);
        }
    }
    action do_clear_1_0() {
        // clear_1_0
        {
            bit<32> word;
            snapshot_1_0.read(word, (bit<32>)entry_1_0);
            word = 32w0;
            snapshot_1_0.write((bit<32>)entry_1_0, word);
        }
    }
    table role_1_0 {
        key = {
            arrived[21:20]: exact;
            before_window[31:20]: range;
            meta.generated: ternary;
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
            (2w2, 12w1 .. 12w2047, 1w0): do_read_1_0();
            (2w3, 12w2 .. 12w2047, 1w0): do_read_1_0();
        }
    }

    // What the packet does with row 1 of snapshot 1.
    action do_write_1_1() {
        // write_1_1
        {
            bit<32> word;
            snapshot_1_1.read(word, (bit<32>)entry_1_1);
            count_1_1 = word;
            word = word |+| (bit<32>)meta.ip_length;
            snapshot_1_1.write((bit<32>)entry_1_1, word);
        }
    }
    action do_read_1_1() {
        // read_1_1
        {
            bit<32> word;
            snapshot_1_1.read(word, (bit<32>)entry_1_1);
            count_1_1 = word;
            snapshot_1_1.write((bit<32>)entry_1_1, word);
        }
    }
    action do_clear_1_1() {
        // clear_1_1
        {
            bit<32> word;
            snapshot_1_1.read(word, (bit<32>)entry_1_1);
            word = 32w0;
            snapshot_1_1.write((bit<32>)entry_1_1, word);
        }
    }
    table role_1_1 {
        key = {
            arrived[21:20]: exact;
            before_window[31:20]: range;
            meta.generated: ternary;
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
            (2w2, 12w1 .. 12w2047, 1w0): do_read_1_1();
            (2w3, 12w2 .. 12w2047, 1w0): do_read_1_1();
        }
    }

    // What the packet does with row 0 of snapshot 2.
    action do_write_2_0() {
        // write_2_0
        {
            bit<32> word;
            snapshot_2_0.read(word, (bit<32>)entry_2_0);
            count_2_0 = word;
            word = word |+| (bit<32>)meta.ip_length;
            snapshot_2_0.write((bit<32>)entry_2_0, word);
        }
    }
    action do_read_2_0() {
        // read_2_0
        {
            bit<32> word;
            snapshot_2_0.read(word, (bit<32>)entry_2_0);
            count_2_0 = word;
            snapshot_2_0.write((bit<32>)entry_2_0, word);
        }
    }
    action do_clear_2_0() {
        // clear_2_0
        {
            bit<32> word;
            snapshot_2_0.read(word, (bit<32>)entry_2_0);
            word = 32w0;
            snapshot_2_0.write((bit<32>)entry_2_0, word);
        }
    }
    table role_2_0 {
        key = {
            arrived[21:20]: exact;
            before_window[31:20]: range;
            meta.generated: ternary;
        }
        actions = {
            do_write_2_0;
            do_read_2_0;
            do_clear_2_0;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (2w0, 12w2 .. 12w2047, 1w0): do_read_2_0();
            (2w1, _, _): do_clear_2_0();
            (2w2, _, 1w0): do_write_2_0();
            (2w3, 12w1 .. 12w2047, 1w0): do_read_2_0();
        }
    }

    // What the packet does with row 1 of snapshot 2.
    action do_write_2_1() {
        // write_2_1
        {
            bit<32> word;
            snapshot_2_1.read(word, (bit<32>)entry_2_1);
            count_2_1 = word;
            word = word |+| (bit<32>)meta.ip_length;
            snapshot_2_1.write((bit<32>)entry_2_1, word);
        }
    }
    action do_read_2_1() {
        // read_2_1
        {
            bit<32> word;
            snapshot_2_1.read(word, (bit<32>)entry_2_1);
            count_2_1 = word;
            snapshot_2_1.write((bit<32>)entry_2_1, word);
        }
    }
    action do_clear_2_1() {
        // clear_2_1
        {
            bit<32> word;
            snapshot_2_1.read(word, (bit<32>)entry_2_1);
            word = 32w0;
            snapshot_2_1.write((bit<32>)entry_2_1, word);
        }
    }
    table role_2_1 {
        key = {
            arrived[21:20]: exact;
            before_window[31:20]: range;
            meta.generated: ternary;
        }
        actions = {
            do_write_2_1;
            do_read_2_1;
            do_clear_2_1;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (2w0, 12w2 .. 12w2047, 1w0): do_read_2_1();
            (2w1, _, _): do_clear_2_1();
            (2w2, _, 1w0): do_write_2_1();
            (2w3, 12w1 .. 12w2047, 1w0): do_read_2_1();
        }
    }

    // What the packet does with row 0 of snapshot 3.
    action do_write_3_0() {
        // write_3_0
        {
            bit<32> word;
            snapshot_3_0.read(word, (bit<32>)entry_3_0);
            count_3_0 = word;
            word = word |+| (bit<32>)meta.ip_length;
            snapshot_3_0.write((bit<32>)entry_3_0, word);
        }
    }
    action do_read_3_0() {
        // read_3_0
        {
            bit<32> word;
            snapshot_3_0.read(word, (bit<32>)entry_3_0);
            count_3_0 = word;
            snapshot_3_0.write((bit<32>)entry_3_0, word);
        }
    }
    action do_clear_3_0() {
        // clear_3_0
        {
            bit<32> word;
            snapshot_3_0.read(word, (bit<32>)entry_3_0);
            word = 32w0;
            snapshot_3_0.write((bit<32>)entry_3_0, word);
        }
    }
    table role_3_0 {
        key = {
            arrived[21:20]: exact;
            before_window[31:20]: range;
            meta.generated: ternary;
        }
        actions = {
            do_write_3_0;
            do_read_3_0;
            do_clear_3_0;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (2w0, 12w1 .. 12w2047, 1w0): do_read_3_0();
            (2w1, 12w2 .. 12w2047, 1w0): do_read_3_0();
            (2w2, _, _): do_clear_3_0();
            (2w3, _, 1w0): do_write_3_0();
        }
    }

    // What the packet does with row 1 of snapshot 3.
    action do_write_3_1() {
        // write_3_1
        {
            bit<32> word;
            snapshot_3_1.read(word, (bit<32>)entry_3_1);
            count_3_1 = word;
            word = word |+| (bit<32>)meta.ip_length;
            snapshot_3_1.write((bit<32>)entry_3_1, word);
        }
    }
    action do_read_3_1() {
        // read_3_1
        {
            bit<32> word;
            snapshot_3_1.read(word, (bit<32>)entry_3_1);
            count_3_1 = word;
            snapshot_3_1.write((bit<32>)entry_3_1, word);
        }
    }
    action do_clear_3_1() {
        // clear_3_1
        {
            bit<32> word;
            snapshot_3_1.read(word, (bit<32>)entry_3_1);
            word = 32w0;
            snapshot_3_1.write((bit<32>)entry_3_1, word);
        }
    }
    table role_3_1 {
        key = {
            arrived[21:20]: exact;
            before_window[31:20]: range;
            meta.generated: ternary;
        }
        actions = {
            do_write_3_1;
            do_read_3_1;
            do_clear_3_1;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (2w0, 12w1 .. 12w2047, 1w0): do_read_3_1();
            (2w1, 12w2 .. 12w2047, 1w0): do_read_3_1();
            (2w2, _, _): do_clear_3_1();
            (2w3, _, 1w0): do_write_3_1();
        }
    }
    apply {
        // The switch is beside the path of packets.
        mark_to_drop(standard_metadata);
        // BMv2 has microseconds.
        arrived = standard_metadata.ingress_global_timestamp * 1000;
        // Which ports have taps (section 6.1): 1 of links into the router, 2 of the link out of it.
        taps.apply();
        now = arrived[31:0];
        // What a router does not change of a packet gives its place, and a digest that is compared there.
        hash(slot, HashAlgorithm.crc32_custom, 64w0, {meta.source, meta.destination, meta.ports, meta.protocol, meta.ip_length, meta.identification, meta.sequence, meta.acknowledgement}, 64w0x10000);
        hash(fingerprint, HashAlgorithm.crc32_custom, 64w0, {meta.source, meta.destination, meta.ports, meta.protocol, meta.ip_length, meta.identification, meta.sequence, meta.acknowledgement}, 64w0x100000000);
        if (role == 2w1 && meta.ip_length != 16w0) {
            // An entry is replaced if its packet came longer ago than the longest delay, or later than now: before times of 32 bits wrapped, or never.
            // insert
            @atomic {
                bit<64> pair;
                waiting.read(pair, (bit<32>)slot);
                pair = pair ^ 64w0xffffffff00000000;
                bit<32> second = pair[63:32];
                inserted = 0;
                if (now - second > 32w0x400000 || second > now) {
                    inserted = 1;
                    pair = now ++ fingerprint;
                    waiting.write((bit<32>)slot, pair ^ 64w0xffffffff00000000);
                }
            }
            if (inserted == 1w1) {
                fate = 3w2;
            } else {
                fate = 3w3;
            }
        } else if (role == 2w2 && meta.ip_length != 16w0) {
            // The entry is cleared. It was the packet's if it has its digest.
            // take
            @atomic {
                bit<64> pair;
                waiting.read(pair, (bit<32>)slot);
                pair = pair ^ 64w0xffffffff00000000;
                bit<32> first = pair[31:0];
                bit<32> second = pair[63:32];
                came = 0;
                if (first == fingerprint) {
                    came = second;
                    pair = 32w0xffffffff ++ 32w0;
                    waiting.write((bit<32>)slot, pair ^ 64w0xffffffff00000000);
                }
            }
        } else if (role != 2w0) {
            fate = 3w1;
        }
        delay = now - came;
        hash(hash_0, HashAlgorithm.crc32, 64w0, {meta.source, meta.destination, meta.ports, meta.protocol}, 64w64);
        hash(hash_1, HashAlgorithm.crc32_custom, 64w0, {meta.source, meta.destination, meta.ports, meta.protocol}, 64w64);
        // The windows from that of the packet's enqueuing on, before that in which it leaves (section 3.3, rounded outwards).
        window_end = now | 32w0xfffff;
        before_window = window_end - came;
        if (meta.generated == 1w1 || (role == 2w2 && meta.ip_length != 16w0)) {
            // A count of packets names the next entry to clean (section 3.4).
            // count_packet
            @atomic {
                bit<32> word;
                packets.read(word, 32w0);
                next = word;
                word = word + 32w1;
                packets.write(32w0, word);
            }
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
        }
        // The least over the rows, and the sum over the snapshots, in place.
        count_0_0 = count_0_0 < count_0_1 ? count_0_0 : count_0_1;
        count_1_0 = count_1_0 < count_1_1 ? count_1_0 : count_1_1;
        count_2_0 = count_2_0 < count_2_1 ? count_2_0 : count_2_1;
        count_3_0 = count_3_0 < count_3_1 ? count_3_0 : count_3_1;
        count_0_0 = count_0_0 |+| count_1_0;
        count_0_0 = count_0_0 |+| count_2_0;
        count_3_0 = count_3_0 |+| count_0_0;
        parameters.apply();
        // Whether the time of its arrival is known, and whether it waited long.
        if (came != 32w0 && delay <= 32w0x400000) {
            seen = 1w1;
        }
        if (delay > tau) {
            long = 1w1;
        }
        if (role == 2w2 && meta.ip_length != 16w0) {
            if (seen == 1w1) {
                if (long == 1w1) {
                    if (count_3_0 >= threshold) {
                        fate = 3w7;
                        hdr.report_ethernet.setValid();
                        hdr.report_ethernet.destination = 0xffffffffffff;
                        hdr.report_ethernet.source = 0x020000000001;
                        hdr.report_ethernet.ether_type = ETHERTYPE_REPORT;
                        hdr.report.setValid();
                        hdr.report.delay = delay;
                        hdr.report.estimate = count_3_0;
                        standard_metadata.egress_spec = collector;
                    } else {
                        fate = 3w6;
                    }
                } else {
                    fate = 3w5;
                }
            } else {
                // It was not seen on its way in, or failed to be inserted. It counts in the snapshots all the same.
                fate = 3w4;
            }
        }
        if (meta.generated == 1w0) {
            // count_fate
            @atomic {
                bit<32> word;
                fates.read(word, (bit<32>)fate);
                word = word |+| 32w1;
                fates.write((bit<32>)fate, word);
            }
        }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {

    apply {
    }
}

control MainCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MainDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.report_ethernet);
        packet.emit(hdr.report);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.ports);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
    }
}

V1Switch(MainParser(), MainVerify(), MainIngress(), MainEgress(), MainCompute(), MainDeparser()) main;
