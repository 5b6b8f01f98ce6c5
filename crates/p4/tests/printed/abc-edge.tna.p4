// abc-edge: meters activity before the queue, and writes it into packets.
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
    ports_h ports;
}

struct metadata_t {
    bit<2> ecn;
    bit<16> epoch;
    bit<32> weighted;
    bit<32> place;
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

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.ecn = 0;
        meta.epoch = 0;
        meta.weighted = 0;
        meta.place = 0;
        meta.source = 0;
        meta.destination = 0;
        meta.ports = 0;
        meta.protocol = 0;
        meta.ip_length = 0;
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
    bit<32> within = 0;
    bit<32> mark = 0;
    bit<32> octets = 0;
    bit<16> last = 0;
    bit<16> silent = 0;
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
    Hash<bit<16>>(HashAlgorithm_t.IDENTITY) bits_of_epoch;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) bits_of_within;

    // Packets that came to the port with an activity header that is malformed or forged.
    Register<bit<32>, bit<7>>(128, 0) refused;
    RegisterAction<bit<32>, bit<7>, bit<32>>(refused) count_refused = {
        void apply(inout bit<32> word) {
            word = word |+| 32w1;
        }
    };

    // The epoch of the aggregate's last packet.
    Register<bit<16>, bit<12>>(4096, 32768) last_epoch;
    RegisterAction<bit<16>, bit<12>, bit<16>>(last_epoch) store_epoch = {
        void apply(inout bit<16> word, out bit<16> result) {
            result = word;
            word = meta.epoch;
        }
    };

    // Weighted bytes of even epochs.
    Register<bit<32>, bit<12>>(4096, 0) sum_of_even;
    RegisterAction<bit<32>, bit<12>, bit<32>>(sum_of_even) add_bytes_even = {
        void apply(inout bit<32> word, out bit<32> result) {
            word = word |+| meta.weighted;
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<12>, bit<32>>(sum_of_even) start_bytes_even = {
        void apply(inout bit<32> word, out bit<32> result) {
            word = meta.weighted;
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<12>, bit<32>>(sum_of_even) keep_bytes_even = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<12>, bit<32>>(sum_of_even) empty_bytes_even = {
        void apply(inout bit<32> word, out bit<32> result) {
            word = 32w0;
            result = word;
        }
    };

    // Weighted bytes of odd epochs.
    Register<bit<32>, bit<12>>(4096, 0) sum_of_odd;
    RegisterAction<bit<32>, bit<12>, bit<32>>(sum_of_odd) add_bytes_odd = {
        void apply(inout bit<32> word, out bit<32> result) {
            word = word |+| meta.weighted;
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<12>, bit<32>>(sum_of_odd) start_bytes_odd = {
        void apply(inout bit<32> word, out bit<32> result) {
            word = meta.weighted;
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<12>, bit<32>>(sum_of_odd) keep_bytes_odd = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<12>, bit<32>>(sum_of_odd) empty_bytes_odd = {
        void apply(inout bit<32> word, out bit<32> result) {
            word = 32w0;
            result = word;
        }
    };

    // Where the time of even epochs begins to count.
    Register<bit<32>, bit<12>>(4096, 1048576) begin_of_even;
    RegisterAction<bit<32>, bit<12>, bit<32>>(begin_of_even) keep_time_even = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<12>, bit<32>>(begin_of_even) begin_time_even = {
        void apply(inout bit<32> word, out bit<32> result) {
            word = 32w0x100000;
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<12>, bit<32>>(begin_of_even) join_time_even = {
        void apply(inout bit<32> word, out bit<32> result) {
            word = meta.place;
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<12>, bit<32>>(begin_of_even) empty_time_even = {
        void apply(inout bit<32> word, out bit<32> result) {
            word = 32w0x1000000;
            result = word;
        }
    };

    // Where the time of odd epochs begins to count.
    Register<bit<32>, bit<12>>(4096, 1048576) begin_of_odd;
    RegisterAction<bit<32>, bit<12>, bit<32>>(begin_of_odd) keep_time_odd = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<12>, bit<32>>(begin_of_odd) begin_time_odd = {
        void apply(inout bit<32> word, out bit<32> result) {
            word = 32w0x100000;
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<12>, bit<32>>(begin_of_odd) join_time_odd = {
        void apply(inout bit<32> word, out bit<32> result) {
            word = meta.place;
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<12>, bit<32>>(begin_of_odd) empty_time_odd = {
        void apply(inout bit<32> word, out bit<32> result) {
            word = 32w0x1000000;
            result = word;
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
        default_action = set_domain(1w1);
        size = 512;
    }

    // The logarithm of the reference rate of a source host, in bytes per tick.
    action set_contracts(bit<16> reference_of_entry) {
        reference = reference_of_entry;
    }
    table contracts {
        key = {
            meta.source: exact @name("source");
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
        meta.weighted = octets;
        meta.place = mark;
        least = 32w14648;
    }
    action weigh_1() {
        meta.weighted = octets << 1;
        meta.place = mark << 1;
        least = 32w29296;
    }
    action weigh_2() {
        meta.weighted = octets << 2;
        meta.place = mark << 2;
        least = 32w58592;
    }
    action weigh_3() {
        meta.weighted = octets << 3;
        meta.place = mark << 3;
        least = 32w0x1c9c0;
    }
    table weight {
        key = {
            ig_prsr_md.global_tstamp[32:31]: exact @name("arrived");
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
        size = 4;
    }

    // What happens to the bytes of even epochs, by the epoch and the silence before it.
    action do_add_bytes_even() {
        sum_even = add_bytes_even.execute(meta.source[11:0]);
    }
    action do_start_bytes_even() {
        sum_even = start_bytes_even.execute(meta.source[11:0]);
    }
    action do_keep_bytes_even() {
        sum_even = keep_bytes_even.execute(meta.source[11:0]);
    }
    action do_empty_bytes_even() {
        sum_even = empty_bytes_even.execute(meta.source[11:0]);
    }
    table bytes_of_even {
        key = {
            ig_prsr_md.global_tstamp[33:33]: exact @name("arrived");
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
        size = 4;
    }

    // What happens to the bytes of odd epochs, by the epoch and the silence before it.
    action do_add_bytes_odd() {
        sum_odd = add_bytes_odd.execute(meta.source[11:0]);
    }
    action do_start_bytes_odd() {
        sum_odd = start_bytes_odd.execute(meta.source[11:0]);
    }
    action do_keep_bytes_odd() {
        sum_odd = keep_bytes_odd.execute(meta.source[11:0]);
    }
    action do_empty_bytes_odd() {
        sum_odd = empty_bytes_odd.execute(meta.source[11:0]);
    }
    table bytes_of_odd {
        key = {
            ig_prsr_md.global_tstamp[33:33]: exact @name("arrived");
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
        size = 4;
    }

    // What happens to the time of even epochs, by the epoch and the silence before it.
    action do_keep_time_even() {
        begin_even = keep_time_even.execute(meta.source[11:0]);
    }
    action do_begin_time_even() {
        begin_even = begin_time_even.execute(meta.source[11:0]);
    }
    action do_join_time_even() {
        begin_even = join_time_even.execute(meta.source[11:0]);
    }
    action do_empty_time_even() {
        begin_even = empty_time_even.execute(meta.source[11:0]);
    }
    table time_of_even {
        key = {
            ig_prsr_md.global_tstamp[33:33]: exact @name("arrived");
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
        size = 5;
    }

    // What happens to the time of odd epochs, by the epoch and the silence before it.
    action do_keep_time_odd() {
        begin_odd = keep_time_odd.execute(meta.source[11:0]);
    }
    action do_begin_time_odd() {
        begin_odd = begin_time_odd.execute(meta.source[11:0]);
    }
    action do_join_time_odd() {
        begin_odd = join_time_odd.execute(meta.source[11:0]);
    }
    action do_empty_time_odd() {
        begin_odd = empty_time_odd.execute(meta.source[11:0]);
    }
    table time_of_odd {
        key = {
            ig_prsr_md.global_tstamp[33:33]: exact @name("arrived");
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
        size = 5;
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
    action assign_epoch_0() {
        meta.epoch = bits_of_epoch.get({ig_prsr_md.global_tstamp[47:33]});
    }
    table compute_epoch_0 {
        actions = {
            assign_epoch_0;
        }
        default_action = assign_epoch_0();
        size = 1;
    }
    action assign_within_1() {
        within = bits_of_within.get({ig_prsr_md.global_tstamp[30:11]});
    }
    table compute_within_1 {
        actions = {
            assign_within_1;
        }
        default_action = assign_within_1();
        size = 1;
    }
    action assign_mark_2() {
        mark = within | 32w0x100000;
    }
    table compute_mark_2 {
        actions = {
            assign_mark_2;
        }
        default_action = assign_mark_2();
        size = 1;
    }
    action assign_silent_3() {
        silent = meta.epoch - last;
    }
    table compute_silent_3 {
        actions = {
            assign_silent_3;
        }
        default_action = assign_silent_3();
        size = 1;
    }
    action assign_older_4() {
        older = sum_odd >> 4;
    }
    table compute_older_4 {
        actions = {
            assign_older_4;
        }
        default_action = assign_older_4();
        size = 1;
    }
    action assign_before_5() {
        before = begin_odd >> 4;
    }
    table compute_before_5 {
        actions = {
            assign_before_5;
        }
        default_action = assign_before_5();
        size = 1;
    }
    action assign_older_6() {
        older = sum_even >> 4;
    }
    table compute_older_6 {
        actions = {
            assign_older_6;
        }
        default_action = assign_older_6();
        size = 1;
    }
    action assign_before_7() {
        before = begin_even >> 4;
    }
    table compute_before_7 {
        actions = {
            assign_before_7;
        }
        default_action = assign_before_7();
        size = 1;
    }
    action assign_bytes_8() {
        bytes = newer |+| older;
    }
    table compute_bytes_8 {
        actions = {
            assign_bytes_8;
        }
        default_action = assign_bytes_8();
        size = 1;
    }
    action assign_span_9() {
        span = meta.place - start;
    }
    table compute_span_9 {
        actions = {
            assign_span_9;
        }
        default_action = assign_span_9();
        size = 1;
    }
    action assign_counted_10() {
        counted = 32w0x100000 - before;
    }
    table compute_counted_10 {
        actions = {
            assign_counted_10;
        }
        default_action = assign_counted_10();
        size = 1;
    }
    action assign_time_11() {
        time = span + counted;
    }
    table compute_time_11 {
        actions = {
            assign_time_11;
        }
        default_action = assign_time_11();
        size = 1;
    }
    action assign_ticks_12() {
        ticks = max(time, least);
    }
    table compute_ticks_12 {
        actions = {
            assign_ticks_12;
        }
        default_action = assign_ticks_12();
        size = 1;
    }
    action assign_above_13() {
        above = (bit<16>)((int<16>)log_bytes |-| (int<16>)reference);
    }
    table compute_above_13 {
        actions = {
            assign_above_13;
        }
        default_action = assign_above_13();
        size = 1;
    }
    action assign_own_activity_14() {
        own_activity = (bit<16>)((int<16>)above |-| (int<16>)log_ticks);
    }
    table compute_own_activity_14 {
        actions = {
            assign_own_activity_14;
        }
        default_action = assign_own_activity_14();
        size = 1;
    }
    apply {
        if (forward.apply().hit) {
            if (meta.has_activity == 1 || meta.malformed == 1 || hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
                domain.apply();
                if (meta.malformed == 1w1 || (meta.has_activity == 1w1 && outside == 1w1)) {
                    // Only the domain writes activities.
                    count_refused.execute(ig_intr_md.ingress_port[6:0]);
                    ig_dprsr_md.drop_ctl = 1;
                } else if (outside == 1w1) {
                    // The window, the epoch of four windows, and the time within the window. A hash unit moves them to containers of their own.
                    compute_epoch_0.apply();
                    compute_within_1.apply();
                    compute_mark_2.apply();
                    octets = (bit<32>)meta.ip_length;
                    // The epochs since the aggregate's last packet.
                    last = store_epoch.execute(meta.source[11:0]);
                    compute_silent_3.apply();
                    // The weight doubles with each window: that of the bytes, of the time, and of the shortest time.
                    weight.apply();
                    // A sum of each epoch. Its time begins with the epoch, or with the first packet.
                    bytes_of_even.apply();
                    bytes_of_odd.apply();
                    time_of_even.apply();
                    time_of_odd.apply();
                    // The epoch before counts a sixteenth.
                    if (ig_prsr_md.global_tstamp[33:33] == 1w0) {
                        newer = sum_even;
                        compute_older_4.apply();
                        start = begin_even;
                        compute_before_5.apply();
                    } else {
                        newer = sum_odd;
                        compute_older_6.apply();
                        start = begin_odd;
                        compute_before_7.apply();
                    }
                    compute_bytes_8.apply();
                    compute_span_9.apply();
                    compute_counted_10.apply();
                    compute_time_11.apply();
                    compute_ticks_12.apply();
                    contracts.apply();
                    logarithms_of_bytes.apply();
                    compute_above_13.apply();
                    logarithms_of_ticks.apply();
                    compute_own_activity_14.apply();
                    hdr.activity.setValid();
                    hdr.activity.activity = own_activity;
                    hdr.activity.ether_type = hdr.ethernet.ether_type;
                    hdr.ethernet.ether_type = ETHERTYPE_ACTIVITY;
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
        meta.epoch = 0;
        meta.weighted = 0;
        meta.place = 0;
        meta.source = 0;
        meta.destination = 0;
        meta.ports = 0;
        meta.protocol = 0;
        meta.ip_length = 0;
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
        if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
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
        packet.emit(hdr.ports);
    }
}

Pipeline(IngressParser(), MainIngress(), IngressDeparser(), EgressParser(), MainEgress(), EgressDeparser()) pipe;
Switch(pipe) main;
