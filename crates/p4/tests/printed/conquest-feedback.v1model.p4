// conquest-feedback: measures each flow's part of the queue, and limits flows that have too much of it to a rate, before the queue.
// After Chen et al., Fine-Grained Queue Measurement in the Data Plane, CoNEXT 2019.
// The packet generator sends a packet to each port every 1.02 µs.

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

const bit<32> CLONED_AT_EGRESS = 2;
const bit<32> RECIRCULATED = 4;

struct headers_t {
    ethernet_h ethernet;
    vlan_h vlan;
    ipv4_h ipv4;
    ipv6_h ipv6;
    ports_h ports;
}

struct metadata_t {
    bit<2> ecn;
    bit<1> generated;
    @field_list(0) bit<1> fed_back;
    // What identifies the flow. Of IPv6 addresses, the last 32 bits.
    bit<32> source;
    bit<32> destination;
    bit<32> ports;
    bit<8> protocol;
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

control MainVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // The flow that is acted on.
    register<bit<32>>(1024) held_flow;
    // The last time at which it is.
    register<bit<32>>(1024) held_until;
    // How far a flow's packets have come at the rate of its limit.
    register<bit<32>>(1024) flow_time;
    bit<48> arrived = 0;
    bit<10> held_entry = 0;
    bit<31> flow_hash = 0;
    bit<32> flow = 0;
    bit<32> last = 0;
    bit<32> origin = 0;
    bit<32> restart = 0;
    bit<1> is_same = 0;
    bit<32> until = 0;
    bit<32> left = 0;
    bit<1> passes = 0;
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
            if (standard_metadata.instance_type == RECIRCULATED) {
                meta.fed_back = 1;
            }
            // BMv2 has microseconds.
            arrived = standard_metadata.ingress_global_timestamp * 1000;
            if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
                hash(held_entry, HashAlgorithm.crc32_custom, 64w0, {meta.source, meta.destination, meta.ports, meta.protocol}, 64w1024);
                hash(flow_hash, HashAlgorithm.crc32_custom, 64w0, {meta.source, meta.destination, meta.ports, meta.protocol}, 64w0x80000000);
                // No flow is zero, which an entry without a flow is.
                flow = (bit<32>)flow_hash | 32w0x80000000;
                last = arrived[31:0] + 32w0x1e847f;
                origin = arrived[31:0] + 32w0x80017700;
                if (meta.fed_back == 1w1) {
                    // It goes no further. The newest flow takes the entry.
                    // hold_flow
                    @atomic {
                        bit<32> word;
                        held_flow.read(word, (bit<32>)held_entry);
                        word = flow;
                        held_flow.write((bit<32>)held_entry, word);
                    }
                    // hold_until
                    @atomic {
                        bit<32> word;
                        held_until.read(word, (bit<32>)held_entry);
                        word = last;
                        held_until.write((bit<32>)held_entry, word);
                    }
                    restart = arrived[31:0];
                    // begin_time
                    @atomic {
                        bit<32> word;
                        flow_time.read(word, (bit<32>)held_entry);
                        bool condition_0 = word - origin < 32w0x7ffe8900;
                        bool condition_1 = word - origin > 32w0x80000000;
                        if (condition_0) {
                            word = restart;
                        } else {
                            if (condition_1) {
                                word = restart;
                            }
                        }
                        flow_time.write((bit<32>)held_entry, word);
                    }
                    mark_to_drop(standard_metadata);
                } else {
                    // test_flow
                    @atomic {
                        bit<32> word;
                        held_flow.read(word, (bit<32>)held_entry);
                        bool condition_0 = word == flow;
                        held_flow.write((bit<32>)held_entry, word);
                        is_same = condition_0 ? 1w1 : 1w0;
                    }
                    // read_until
                    @atomic {
                        bit<32> word;
                        held_until.read(word, (bit<32>)held_entry);
                        until = word;
                        held_until.write((bit<32>)held_entry, word);
                    }
                    // The time that is left is below the hold, and beyond its end very large.
                    left = until - arrived[31:0];
                    restart = arrived[31:0] + 32w12000;
                    if (is_same == 1w1 && left < 32w0x1e8480) {
                        // pass_time
                        @atomic {
                            bit<32> word;
                            flow_time.read(word, (bit<32>)held_entry);
                            bool condition_0 = word - origin < 32w0x7ffe8900;
                            bool condition_1 = word - origin <= 32w0x7fffd120;
                            if (condition_0) {
                                word = restart;
                            } else {
                                if (condition_1) {
                                    word = word + 32w12000;
                                }
                            }
                            flow_time.write((bit<32>)held_entry, word);
                            passes = condition_1 ? 1w1 : 1w0;
                        }
                        if (passes == 1w0) {
                            mark_to_drop(standard_metadata);
                        }
                    }
                }
            }
        }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // The number of packets so far.
    register<bit<32>>(1) packets;
    // Row 0 of snapshot 0.
    register<bit<32>>(2048) snapshot_0_0;
    // Row 1 of snapshot 0.
    register<bit<32>>(2048) snapshot_0_1;
    // Row 0 of snapshot 1.
    register<bit<32>>(2048) snapshot_1_0;
    // Row 1 of snapshot 1.
    register<bit<32>>(2048) snapshot_1_1;
    // Row 0 of snapshot 2.
    register<bit<32>>(2048) snapshot_2_0;
    // Row 1 of snapshot 2.
    register<bit<32>>(2048) snapshot_2_1;
    // Row 0 of snapshot 3.
    register<bit<32>>(2048) snapshot_3_0;
    // Row 1 of snapshot 3.
    register<bit<32>>(2048) snapshot_3_1;
    bit<48> enqueued = 0;
    bit<48> dequeued = 0;
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
            dequeued[22:21]: exact;
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
            word = word |+| 32w1;
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
            dequeued[22:21]: exact;
            before_window[31:21]: range;
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
            (2w1, 11w1 .. 11w1023, 1w0): do_read_0_0();
            (2w2, 11w2 .. 11w1023, 1w0): do_read_0_0();
            (2w3, _, _): do_clear_0_0();
        }
    }

    // What the packet does with row 1 of snapshot 0.
    action do_write_0_1() {
        // write_0_1
        {
            bit<32> word;
            snapshot_0_1.read(word, (bit<32>)entry_0_1);
            word = word |+| 32w1;
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
            dequeued[22:21]: exact;
            before_window[31:21]: range;
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
            (2w1, 11w1 .. 11w1023, 1w0): do_read_0_1();
            (2w2, 11w2 .. 11w1023, 1w0): do_read_0_1();
            (2w3, _, _): do_clear_0_1();
        }
    }

    // What the packet does with row 0 of snapshot 1.
    action do_write_1_0() {
        // write_1_0
        {
            bit<32> word;
            snapshot_1_0.read(word, (bit<32>)entry_1_0);
            word = word |+| 32w1;
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
            dequeued[22:21]: exact;
            before_window[31:21]: range;
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
            (2w2, 11w1 .. 11w1023, 1w0): do_read_1_0();
            (2w3, 11w2 .. 11w1023, 1w0): do_read_1_0();
        }
    }

    // What the packet does with row 1 of snapshot 1.
    action do_write_1_1() {
        // write_1_1
        {
            bit<32> word;
            snapshot_1_1.read(word, (bit<32>)entry_1_1);
            word = word |+| 32w1;
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
            dequeued[22:21]: exact;
            before_window[31:21]: range;
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
            (2w2, 11w1 .. 11w1023, 1w0): do_read_1_1();
            (2w3, 11w2 .. 11w1023, 1w0): do_read_1_1();
        }
    }

    // What the packet does with row 0 of snapshot 2.
    action do_write_2_0() {
        // write_2_0
        {
            bit<32> word;
            snapshot_2_0.read(word, (bit<32>)entry_2_0);
            word = word |+| 32w1;
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
            dequeued[22:21]: exact;
            before_window[31:21]: range;
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
            (2w0, 11w2 .. 11w1023, 1w0): do_read_2_0();
            (2w1, _, _): do_clear_2_0();
            (2w2, _, 1w0): do_write_2_0();
            (2w3, 11w1 .. 11w1023, 1w0): do_read_2_0();
        }
    }

    // What the packet does with row 1 of snapshot 2.
    action do_write_2_1() {
        // write_2_1
        {
            bit<32> word;
            snapshot_2_1.read(word, (bit<32>)entry_2_1);
            word = word |+| 32w1;
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
            dequeued[22:21]: exact;
            before_window[31:21]: range;
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
            (2w0, 11w2 .. 11w1023, 1w0): do_read_2_1();
            (2w1, _, _): do_clear_2_1();
            (2w2, _, 1w0): do_write_2_1();
            (2w3, 11w1 .. 11w1023, 1w0): do_read_2_1();
        }
    }

    // What the packet does with row 0 of snapshot 3.
    action do_write_3_0() {
        // write_3_0
        {
            bit<32> word;
            snapshot_3_0.read(word, (bit<32>)entry_3_0);
            word = word |+| 32w1;
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
            dequeued[22:21]: exact;
            before_window[31:21]: range;
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
            (2w0, 11w1 .. 11w1023, 1w0): do_read_3_0();
            (2w1, 11w2 .. 11w1023, 1w0): do_read_3_0();
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
            word = word |+| 32w1;
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
            dequeued[22:21]: exact;
            before_window[31:21]: range;
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
            (2w0, 11w1 .. 11w1023, 1w0): do_read_3_1();
            (2w1, 11w2 .. 11w1023, 1w0): do_read_3_1();
            (2w2, _, _): do_clear_3_1();
            (2w3, _, 1w0): do_write_3_1();
        }
    }

    apply {
        if (standard_metadata.instance_type == CLONED_AT_EGRESS) {
            recirculate_preserving_field_list(8w0);
        } else {
            // BMv2 has microseconds.
            dequeued = standard_metadata.egress_global_timestamp * 1000;
            enqueued = dequeued - (bit<48>)standard_metadata.deq_timedelta * 1000;
            if (meta.generated == 1 || hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
                hash(hash_0, HashAlgorithm.crc32, 64w0, {meta.source, meta.destination, meta.ports, meta.protocol}, 64w2048);
                hash(hash_1, HashAlgorithm.crc32_custom, 64w0, {meta.source, meta.destination, meta.ports, meta.protocol}, 64w2048);
                // The windows between the packet's enqueuing and the window in which it leaves (section 3.3).
                window_start = dequeued[31:0] & 32w0xffe00000;
                before_window = window_start - enqueued[31:0];
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
                // The least over the rows, and the sum over the snapshots, in place.
                count_0_0 = count_0_0 < count_0_1 ? count_0_0 : count_0_1;
                count_1_0 = count_1_0 < count_1_1 ? count_1_0 : count_1_1;
                count_2_0 = count_2_0 < count_2_1 ? count_2_0 : count_2_1;
                count_3_0 = count_3_0 < count_3_1 ? count_3_0 : count_3_1;
                count_0_0 = count_0_0 |+| count_1_0;
                count_0_0 = count_0_0 |+| count_2_0;
                count_3_0 = count_3_0 |+| count_0_0;
                sojourn = dequeued[31:0] - enqueued[31:0];
                if (meta.generated == 1w1) {
                    // It has no other purpose than cleaning (section 3.4).
                    mark_to_drop(standard_metadata);
                } else {
                    parameters.apply();
                    if (sojourn > tau && count_3_0 >= threshold) {
                        clone_preserving_field_list(CloneType.E2E, 32w5, 8w0);
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
    }
}

V1Switch(MainParser(), MainVerify(), MainIngress(), MainEgress(), MainCompute(), MainDeparser()) main;
