// abc-edge: meters activity before the queue, and writes it into packets.
// After Menth et al., P4-ABC, Future Internet 2019, section 3.

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

const bit<16> ETHERTYPE_ACTIVITY = 0x88b5;

// The activity in two's complement, with 8 fraction bits, and what is behind this header.
header activity_h {
    bit<16> activity;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_h ethernet;
    activity_h activity;
    vlan_h vlan;
    ipv4_h ipv4;
    ipv6_h ipv6;
    ports_h ports;
}

struct metadata_t {
    bit<2> ecn;
    // What identifies the flow. Of IPv6 addresses, the last 32 bits.
    bit<32> source;
    bit<32> destination;
    bit<32> ports;
    bit<8> protocol;
    bit<16> ip_length;
    bit<1> has_activity;
    bit<1> malformed;
    bit<16> activity;
}

parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
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
        meta.ecn = hdr.ipv4.ecn;
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
        transition accept;
    }
    state parse_activity {
        // A header that is cut short, or followed by another one, leaves this as it is.
        meta.malformed = 1;
        packet.extract(hdr.activity);
        transition select(hdr.activity.ether_type) {
            ETHERTYPE_ACTIVITY: accept;
            default: parse_carried;
        }
    }
    state parse_nested {
        meta.malformed = 1;
        transition accept;
    }
    state parse_carried {
        meta.malformed = 0;
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

control MainVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Packets that came to the port with an activity header that is malformed or forged.
    register<bit<32>>(128) refused;
    // The epoch of the aggregate's last packet.
    register<bit<16>>(4096) last_epoch;
    // Weighted bytes of even epochs.
    register<bit<32>>(4096) sum_of_even;
    // Weighted bytes of odd epochs.
    register<bit<32>>(4096) sum_of_odd;
    // Where the time of even epochs begins to count.
    register<bit<32>>(4096) begin_of_even;
    // Where the time of odd epochs begins to count.
    register<bit<32>>(4096) begin_of_odd;
    bit<48> arrived = 0;
    bit<1> outside = 0;
    bit<16> epoch = 0;
    bit<32> within = 0;
    bit<32> mark = 0;
    bit<32> octets = 0;
    bit<16> last = 0;
    bit<16> silent = 0;
    bit<32> weighted = 0;
    bit<32> place = 0;
    bit<32> least = 0;
    bit<32> sum_even = 0;
    bit<32> sum_odd = 0;
    bit<32> begin_even = 0;
    bit<32> begin_odd = 0;
    bit<32> newer = 0;
    bit<32> older = 0;
    bit<32> start = 0;
    bit<32> before = 0;
    bit<32> bytes = 0;
    bit<32> span = 0;
    bit<32> counted = 0;
    bit<32> time = 0;
    bit<32> ticks = 0;
    bit<16> reference = 0;
    bit<16> log_bytes = 0;
    bit<16> above = 0;
    bit<16> log_ticks = 0;
    bit<16> own_activity = 0;

    // Whether packets that arrive at a port come from outside of the domain.
    action set_domain(bit<1> outside_of_entry) {
        outside = outside_of_entry;
    }
    table domain {
        key = {
            standard_metadata.ingress_port: exact;
        }
        actions = {
            set_domain;
        }
        default_action = set_domain(1w1);
        size = 512;
    }

    // The logarithm of the reference rate of a source host, in bytes per tick.
    action set_contracts(bit<16> reference_of_entry) {
        reference = reference_of_entry;
    }
    table contracts {
        key = {
            meta.source: exact;
        }
        actions = {
            set_contracts;
        }
        default_action = set_contracts(16w63332);
        size = 1024;
    }

    // The logarithm of weighted bytes, with 8 fraction bits.
    action set_logarithms_of_bytes(bit<16> log_bytes_of_entry) {
        log_bytes = log_bytes_of_entry;
    }
    table logarithms_of_bytes {
        key = {
            bytes: ternary;
        }
        actions = {
            set_logarithms_of_bytes;
        }
        default_action = set_logarithms_of_bytes(16w0);
        size = 3327;
    }

    // The logarithm of weighted ticks, with 8 fraction bits.
    action set_logarithms_of_ticks(bit<16> log_ticks_of_entry) {
        log_ticks = log_ticks_of_entry;
    }
    table logarithms_of_ticks {
        key = {
            ticks: ternary;
        }
        actions = {
            set_logarithms_of_ticks;
        }
        default_action = set_logarithms_of_ticks(16w0);
        size = 3327;
    }

    // The weight of the window.
    action weigh_0() {
        weighted = octets;
        place = mark;
        least = 32w14648;
    }
    action weigh_1() {
        weighted = octets << 1;
        place = mark << 1;
        least = 32w29296;
    }
    action weigh_2() {
        weighted = octets << 2;
        place = mark << 2;
        least = 32w58592;
    }
    action weigh_3() {
        weighted = octets << 3;
        place = mark << 3;
        least = 32w0x1c9c0;
    }
    table weight {
        key = {
            arrived[32:31]: exact;
        }
        actions = {
            weigh_0;
            weigh_1;
            weigh_2;
            weigh_3;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            2w0: weigh_0();
            2w1: weigh_1();
            2w2: weigh_2();
            2w3: weigh_3();
        }
    }

    // What happens to the bytes of even epochs, by the epoch and the silence before it.
    action do_add_bytes_even() {
        // add_bytes_even
        {
            bit<32> word;
            sum_of_even.read(word, (bit<32>)meta.source[11:0]);
            word = word |+| weighted;
            sum_of_even.write((bit<32>)meta.source[11:0], word);
            sum_even = word;
        }
    }
    action do_start_bytes_even() {
        // start_bytes_even
        {
            bit<32> word;
            sum_of_even.read(word, (bit<32>)meta.source[11:0]);
            word = weighted;
            sum_of_even.write((bit<32>)meta.source[11:0], word);
            sum_even = word;
        }
    }
    action do_keep_bytes_even() {
        // keep_bytes_even
        {
            bit<32> word;
            sum_of_even.read(word, (bit<32>)meta.source[11:0]);
            sum_even = word;
            sum_of_even.write((bit<32>)meta.source[11:0], word);
        }
    }
    action do_empty_bytes_even() {
        // empty_bytes_even
        {
            bit<32> word;
            sum_of_even.read(word, (bit<32>)meta.source[11:0]);
            word = 32w0;
            sum_of_even.write((bit<32>)meta.source[11:0], word);
            sum_even = word;
        }
    }
    table bytes_of_even {
        key = {
            arrived[33:33]: exact;
            silent: range;
        }
        actions = {
            do_add_bytes_even;
            do_start_bytes_even;
            do_keep_bytes_even;
            do_empty_bytes_even;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (1w0, 16w0): do_add_bytes_even();
            (1w0, 16w1 .. 16w65535): do_start_bytes_even();
            (1w1, 16w0 .. 16w1): do_keep_bytes_even();
            (1w1, 16w2 .. 16w65535): do_empty_bytes_even();
        }
    }

    // What happens to the bytes of odd epochs, by the epoch and the silence before it.
    action do_add_bytes_odd() {
        // add_bytes_odd
        {
            bit<32> word;
            sum_of_odd.read(word, (bit<32>)meta.source[11:0]);
            word = word |+| weighted;
            sum_of_odd.write((bit<32>)meta.source[11:0], word);
            sum_odd = word;
        }
    }
    action do_start_bytes_odd() {
        // start_bytes_odd
        {
            bit<32> word;
            sum_of_odd.read(word, (bit<32>)meta.source[11:0]);
            word = weighted;
            sum_of_odd.write((bit<32>)meta.source[11:0], word);
            sum_odd = word;
        }
    }
    action do_keep_bytes_odd() {
        // keep_bytes_odd
        {
            bit<32> word;
            sum_of_odd.read(word, (bit<32>)meta.source[11:0]);
            sum_odd = word;
            sum_of_odd.write((bit<32>)meta.source[11:0], word);
        }
    }
    action do_empty_bytes_odd() {
        // empty_bytes_odd
        {
            bit<32> word;
            sum_of_odd.read(word, (bit<32>)meta.source[11:0]);
            word = 32w0;
            sum_of_odd.write((bit<32>)meta.source[11:0], word);
            sum_odd = word;
        }
    }
    table bytes_of_odd {
        key = {
            arrived[33:33]: exact;
            silent: range;
        }
        actions = {
            do_add_bytes_odd;
            do_start_bytes_odd;
            do_keep_bytes_odd;
            do_empty_bytes_odd;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (1w1, 16w0): do_add_bytes_odd();
            (1w1, 16w1 .. 16w65535): do_start_bytes_odd();
            (1w0, 16w0 .. 16w1): do_keep_bytes_odd();
            (1w0, 16w2 .. 16w65535): do_empty_bytes_odd();
        }
    }

    // What happens to the time of even epochs, by the epoch and the silence before it.
    action do_keep_time_even() {
        // keep_time_even
        {
            bit<32> word;
            begin_of_even.read(word, (bit<32>)meta.source[11:0]);
            word = word ^ 32w0x100000;
            begin_even = word;
            begin_of_even.write((bit<32>)meta.source[11:0], word ^ 32w0x100000);
        }
    }
    action do_begin_time_even() {
        // begin_time_even
        {
            bit<32> word;
            begin_of_even.read(word, (bit<32>)meta.source[11:0]);
            word = word ^ 32w0x100000;
            word = 32w0x100000;
            begin_of_even.write((bit<32>)meta.source[11:0], word ^ 32w0x100000);
            begin_even = word;
        }
    }
    action do_join_time_even() {
        // join_time_even
        {
            bit<32> word;
            begin_of_even.read(word, (bit<32>)meta.source[11:0]);
            word = word ^ 32w0x100000;
            word = place;
            begin_of_even.write((bit<32>)meta.source[11:0], word ^ 32w0x100000);
            begin_even = word;
        }
    }
    action do_empty_time_even() {
        // empty_time_even
        {
            bit<32> word;
            begin_of_even.read(word, (bit<32>)meta.source[11:0]);
            word = word ^ 32w0x100000;
            word = 32w0x1000000;
            begin_of_even.write((bit<32>)meta.source[11:0], word ^ 32w0x100000);
            begin_even = word;
        }
    }
    table time_of_even {
        key = {
            arrived[33:33]: exact;
            silent: range;
        }
        actions = {
            do_keep_time_even;
            do_begin_time_even;
            do_join_time_even;
            do_empty_time_even;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (1w0, 16w0): do_keep_time_even();
            (1w0, 16w1): do_begin_time_even();
            (1w0, 16w2 .. 16w65535): do_join_time_even();
            (1w1, 16w0 .. 16w1): do_keep_time_even();
            (1w1, 16w2 .. 16w65535): do_empty_time_even();
        }
    }

    // What happens to the time of odd epochs, by the epoch and the silence before it.
    action do_keep_time_odd() {
        // keep_time_odd
        {
            bit<32> word;
            begin_of_odd.read(word, (bit<32>)meta.source[11:0]);
            word = word ^ 32w0x100000;
            begin_odd = word;
            begin_of_odd.write((bit<32>)meta.source[11:0], word ^ 32w0x100000);
        }
    }
    action do_begin_time_odd() {
        // begin_time_odd
        {
            bit<32> word;
            begin_of_odd.read(word, (bit<32>)meta.source[11:0]);
            word = word ^ 32w0x100000;
            word = 32w0x100000;
            begin_of_odd.write((bit<32>)meta.source[11:0], word ^ 32w0x100000);
            begin_odd = word;
        }
    }
    action do_join_time_odd() {
        // join_time_odd
        {
            bit<32> word;
            begin_of_odd.read(word, (bit<32>)meta.source[11:0]);
            word = word ^ 32w0x100000;
            word = place;
            begin_of_odd.write((bit<32>)meta.source[11:0], word ^ 32w0x100000);
            begin_odd = word;
        }
    }
    action do_empty_time_odd() {
        // empty_time_odd
        {
            bit<32> word;
            begin_of_odd.read(word, (bit<32>)meta.source[11:0]);
            word = word ^ 32w0x100000;
            word = 32w0x1000000;
            begin_of_odd.write((bit<32>)meta.source[11:0], word ^ 32w0x100000);
            begin_odd = word;
        }
    }
    table time_of_odd {
        key = {
            arrived[33:33]: exact;
            silent: range;
        }
        actions = {
            do_keep_time_odd;
            do_begin_time_odd;
            do_join_time_odd;
            do_empty_time_odd;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (1w1, 16w0): do_keep_time_odd();
            (1w1, 16w1): do_begin_time_odd();
            (1w1, 16w2 .. 16w65535): do_join_time_odd();
            (1w0, 16w0 .. 16w1): do_keep_time_odd();
            (1w0, 16w2 .. 16w65535): do_empty_time_odd();
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
            // BMv2 has microseconds.
            arrived = standard_metadata.ingress_global_timestamp * 1000;
            if (meta.has_activity == 1 || meta.malformed == 1 || hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
                domain.apply();
                if (meta.malformed == 1w1 || (meta.has_activity == 1w1 && outside == 1w1)) {
                    // Only the domain writes activities.
                    // count_refused
                    @atomic {
                        bit<32> word;
                        refused.read(word, (bit<32>)standard_metadata.ingress_port[6:0]);
                        word = word |+| 32w1;
                        refused.write((bit<32>)standard_metadata.ingress_port[6:0], word);
                    }
                    mark_to_drop(standard_metadata);
                } else if (outside == 1w1) {
                    // The window, the epoch of four windows, and the time within the window. A hash unit moves them to containers of their own.
                    epoch = (bit<16>)arrived[47:33];
                    within = (bit<32>)arrived[30:11];
                    mark = within | 32w0x100000;
                    octets = (bit<32>)meta.ip_length;
                    // The epochs since the aggregate's last packet.
                    // store_epoch
                    @atomic {
                        bit<16> word;
                        last_epoch.read(word, (bit<32>)meta.source[11:0]);
                        word = word ^ 16w32768;
                        last = word;
                        word = epoch;
                        last_epoch.write((bit<32>)meta.source[11:0], word ^ 16w32768);
                    }
                    silent = epoch - last;
                    // The weight doubles with each window: that of the bytes, of the time, and of the shortest time.
                    weight.apply();
                    // A sum of each epoch. Its time begins with the epoch, or with the first packet.
                    bytes_of_even.apply();
                    bytes_of_odd.apply();
                    time_of_even.apply();
                    time_of_odd.apply();
                    // The epoch before counts a sixteenth.
                    if (arrived[33:33] == 1w0) {
                        newer = sum_even;
                        older = sum_odd >> 4;
                        start = begin_even;
                        before = begin_odd >> 4;
                    } else {
                        newer = sum_odd;
                        older = sum_even >> 4;
                        start = begin_odd;
                        before = begin_even >> 4;
                    }
                    bytes = newer |+| older;
                    span = place - start;
                    counted = 32w0x100000 - before;
                    time = span + counted;
                    ticks = time > least ? time : least;
                    contracts.apply();
                    logarithms_of_bytes.apply();
                    above = (bit<16>)((int<16>)log_bytes |-| (int<16>)reference);
                    logarithms_of_ticks.apply();
                    own_activity = (bit<16>)((int<16>)above |-| (int<16>)log_ticks);
                    hdr.activity.setValid();
                    hdr.activity.activity = own_activity;
                    hdr.activity.ether_type = hdr.ethernet.ether_type;
                    hdr.ethernet.ether_type = ETHERTYPE_ACTIVITY;
                }
            }
        }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {

    apply {
        if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
        }
    }
}

control MainCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MainDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.activity);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.ports);
    }
}

V1Switch(MainParser(), MainVerify(), MainIngress(), MainEgress(), MainCompute(), MainDeparser()) main;
