// conquest-legacy: measures the queue of a router beside it, by taps, and reports flows that have too much of it.
// After Chen et al., Fine-Grained Queue Measurement in the Data Plane, CoNEXT 2019, section 6.
// The packet generator sends a packet every 16.4 µs.

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

struct waiting_t {
    bit<32> first;
    bit<32> second;
}

struct metadata_t {
    bit<2> ecn;
    bit<32> now;
    bit<32> fingerprint;
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

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.ecn = 0;
        meta.now = 0;
        meta.fingerprint = 0;
        meta.generated = 0;
        meta.source = 0;
        meta.destination = 0;
        meta.ports = 0;
        meta.protocol = 0;
        meta.ip_length = 0;
        meta.identification = 0;
        meta.sequence = 0;
        meta.acknowledgement = 0;
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        transition select(ig_intr_md.ingress_port) {
            68: parse_generated;
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

control MainIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md, inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    bit<2> role = 0;
    bit<3> fate = 0;
    bit<16> slot = 0;
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
    bit<32> compared_0 = 0;
    bit<32> compared_1 = 0;
    bit<32> compared_2 = 0;
    CRCPolynomial<bit<32>>(32w0xa833982b, true, false, false, 32w0xffffffff, 32w0xffffffff) polynomial_of_slot;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, polynomial_of_slot) hash_of_slot;
    CRCPolynomial<bit<32>>(32w0xf4acfb13, true, false, false, 32w0xffffffff, 32w0xffffffff) polynomial_of_fingerprint;
    Hash<bit<32>>(HashAlgorithm_t.CUSTOM, polynomial_of_fingerprint) hash_of_fingerprint;
    CRCPolynomial<bit<32>>(32w0x4c11db7, true, false, false, 32w0xffffffff, 32w0xffffffff) polynomial_of_hash_0;
    Hash<bit<6>>(HashAlgorithm_t.CUSTOM, polynomial_of_hash_0) hash_of_hash_0;
    CRCPolynomial<bit<32>>(32w0x1edc6f41, true, false, false, 32w0xffffffff, 32w0xffffffff) polynomial_of_hash_1;
    Hash<bit<6>>(HashAlgorithm_t.CUSTOM, polynomial_of_hash_1) hash_of_hash_1;

    // The digest of a packet in the router, and when it came.
    Register<waiting_t, bit<16>>(65536, {0, 4294967295}) waiting;
    RegisterAction<waiting_t, bit<16>, bit<1>>(waiting) insert = {
        void apply(inout waiting_t words, out bit<1> result) {
            result = 0;
            if (meta.now - words.second > 32w0x400000 || words.second > meta.now) {
                result = 1;
                words.first = meta.fingerprint;
                words.second = meta.now;
            }
        }
    };
    RegisterAction<waiting_t, bit<16>, bit<32>>(waiting) take = {
        void apply(inout waiting_t words, out bit<32> result) {
            result = 0;
            if (words.first == meta.fingerprint) {
                result = words.second;
                words.first = 32w0;
                words.second = 32w0xffffffff;
            }
        }
    };

    // The number of packets so far.
    Register<bit<32>, bit<1>>(1, 0) packets;
    RegisterAction<bit<32>, bit<1>, bit<32>>(packets) count_packet = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = word + 32w1;
        }
    };

    // Row 0 of snapshot 0.
    Register<bit<32>, bit<6>>(64, 0) snapshot_0_0;
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_0_0) write_0_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = word |+| (bit<32>)meta.ip_length;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_0_0) read_0_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_0_0) clear_0_0 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Row 1 of snapshot 0.
    Register<bit<32>, bit<6>>(64, 0) snapshot_0_1;
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_0_1) write_0_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = word |+| (bit<32>)meta.ip_length;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_0_1) read_0_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_0_1) clear_0_1 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Row 0 of snapshot 1.
    Register<bit<32>, bit<6>>(64, 0) snapshot_1_0;
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_1_0) write_1_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = word |+| (bit<32>)meta.ip_length;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_1_0) read_1_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_1_0) clear_1_0 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Row 1 of snapshot 1.
    Register<bit<32>, bit<6>>(64, 0) snapshot_1_1;
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_1_1) write_1_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = word |+| (bit<32>)meta.ip_length;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_1_1) read_1_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_1_1) clear_1_1 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Row 0 of snapshot 2.
    Register<bit<32>, bit<6>>(64, 0) snapshot_2_0;
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_2_0) write_2_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = word |+| (bit<32>)meta.ip_length;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_2_0) read_2_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_2_0) clear_2_0 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Row 1 of snapshot 2.
    Register<bit<32>, bit<6>>(64, 0) snapshot_2_1;
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_2_1) write_2_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = word |+| (bit<32>)meta.ip_length;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_2_1) read_2_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_2_1) clear_2_1 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Row 0 of snapshot 3.
    Register<bit<32>, bit<6>>(64, 0) snapshot_3_0;
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_3_0) write_3_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = word |+| (bit<32>)meta.ip_length;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_3_0) read_3_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_3_0) clear_3_0 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Row 1 of snapshot 3.
    Register<bit<32>, bit<6>>(64, 0) snapshot_3_1;
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_3_1) write_3_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = word |+| (bit<32>)meta.ip_length;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_3_1) read_3_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
        }
    };
    RegisterAction<bit<32>, bit<6>, bit<32>>(snapshot_3_1) clear_3_1 = {
        void apply(inout bit<32> word) {
            word = 32w0;
        }
    };

    // Packets by what became of them.
    Register<bit<32>, bit<3>>(8, 0) fates;
    RegisterAction<bit<32>, bit<3>, bit<32>>(fates) count_fate = {
        void apply(inout bit<32> word) {
            word = word |+| 32w1;
        }
    };

    // The link that a port has a tap of: 1 into the router, 2 out of it.
    action set_taps(bit<2> role_of_entry) {
        role = role_of_entry;
    }
    table taps {
        key = {
            ig_intr_md.ingress_port: exact @name("arrival_port");
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
        size = 1;
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
            ig_prsr_md.global_tstamp[21:20]: exact @name("arrived");
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
        count_0_0 = write_0_0.execute(entry_0_0);
    }
    action do_read_0_0() {
        count_0_0 = read_0_0.execute(entry_0_0);
    }
    action do_clear_0_0() {
        clear_0_0.execute(entry_0_0);
    }
    table role_0_0 {
        key = {
            ig_prsr_md.global_tstamp[21:20]: exact @name("arrived");
            before_window[31:20]: range @name("before_window");
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
            (2w1, 12w1 .. 12w2047, 1w0): do_read_0_0();
            (2w2, 12w2 .. 12w2047, 1w0): do_read_0_0();
            (2w3, _, _): do_clear_0_0();
        }
        size = 4;
    }

    // What the packet does with row 1 of snapshot 0.
    action do_write_0_1() {
        count_0_1 = write_0_1.execute(entry_0_1);
    }
    action do_read_0_1() {
        count_0_1 = read_0_1.execute(entry_0_1);
    }
    action do_clear_0_1() {
        clear_0_1.execute(entry_0_1);
    }
    table role_0_1 {
        key = {
            ig_prsr_md.global_tstamp[21:20]: exact @name("arrived");
            before_window[31:20]: range @name("before_window");
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
            (2w1, 12w1 .. 12w2047, 1w0): do_read_0_1();
            (2w2, 12w2 .. 12w2047, 1w0): do_read_0_1();
            (2w3, _, _): do_clear_0_1();
        }
        size = 4;
    }

    // What the packet does with row 0 of snapshot 1.
    action do_write_1_0() {
        count_1_0 = write_1_0.execute(entry_1_0);
    }
    action do_read_1_0() {
        count_1_0 = read_1_0.execute(entry_1_0);
    }
    action do_clear_1_0() {
        clear_1_0.execute(entry_1_0);
    }
    table role_1_0 {
        key = {
            ig_prsr_md.global_tstamp[21:20]: exact @name("arrived");
            before_window[31:20]: range @name("before_window");
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
            (2w2, 12w1 .. 12w2047, 1w0): do_read_1_0();
            (2w3, 12w2 .. 12w2047, 1w0): do_read_1_0();
        }
        size = 4;
    }

    // What the packet does with row 1 of snapshot 1.
    action do_write_1_1() {
        count_1_1 = write_1_1.execute(entry_1_1);
    }
    action do_read_1_1() {
        count_1_1 = read_1_1.execute(entry_1_1);
    }
    action do_clear_1_1() {
        clear_1_1.execute(entry_1_1);
    }
    table role_1_1 {
        key = {
            ig_prsr_md.global_tstamp[21:20]: exact @name("arrived");
            before_window[31:20]: range @name("before_window");
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
            (2w2, 12w1 .. 12w2047, 1w0): do_read_1_1();
            (2w3, 12w2 .. 12w2047, 1w0): do_read_1_1();
        }
        size = 4;
    }

    // What the packet does with row 0 of snapshot 2.
    action do_write_2_0() {
        count_2_0 = write_2_0.execute(entry_2_0);
    }
    action do_read_2_0() {
        count_2_0 = read_2_0.execute(entry_2_0);
    }
    action do_clear_2_0() {
        clear_2_0.execute(entry_2_0);
    }
    table role_2_0 {
        key = {
            ig_prsr_md.global_tstamp[21:20]: exact @name("arrived");
            before_window[31:20]: range @name("before_window");
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
            (2w0, 12w2 .. 12w2047, 1w0): do_read_2_0();
            (2w1, _, _): do_clear_2_0();
            (2w2, _, 1w0): do_write_2_0();
            (2w3, 12w1 .. 12w2047, 1w0): do_read_2_0();
        }
        size = 4;
    }

    // What the packet does with row 1 of snapshot 2.
    action do_write_2_1() {
        count_2_1 = write_2_1.execute(entry_2_1);
    }
    action do_read_2_1() {
        count_2_1 = read_2_1.execute(entry_2_1);
    }
    action do_clear_2_1() {
        clear_2_1.execute(entry_2_1);
    }
    table role_2_1 {
        key = {
            ig_prsr_md.global_tstamp[21:20]: exact @name("arrived");
            before_window[31:20]: range @name("before_window");
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
            (2w0, 12w2 .. 12w2047, 1w0): do_read_2_1();
            (2w1, _, _): do_clear_2_1();
            (2w2, _, 1w0): do_write_2_1();
            (2w3, 12w1 .. 12w2047, 1w0): do_read_2_1();
        }
        size = 4;
    }

    // What the packet does with row 0 of snapshot 3.
    action do_write_3_0() {
        count_3_0 = write_3_0.execute(entry_3_0);
    }
    action do_read_3_0() {
        count_3_0 = read_3_0.execute(entry_3_0);
    }
    action do_clear_3_0() {
        clear_3_0.execute(entry_3_0);
    }
    table role_3_0 {
        key = {
            ig_prsr_md.global_tstamp[21:20]: exact @name("arrived");
            before_window[31:20]: range @name("before_window");
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
            (2w0, 12w1 .. 12w2047, 1w0): do_read_3_0();
            (2w1, 12w2 .. 12w2047, 1w0): do_read_3_0();
            (2w2, _, _): do_clear_3_0();
            (2w3, _, 1w0): do_write_3_0();
        }
        size = 4;
    }

    // What the packet does with row 1 of snapshot 3.
    action do_write_3_1() {
        count_3_1 = write_3_1.execute(entry_3_1);
    }
    action do_read_3_1() {
        count_3_1 = read_3_1.execute(entry_3_1);
    }
    action do_clear_3_1() {
        clear_3_1.execute(entry_3_1);
    }
    table role_3_1 {
        key = {
            ig_prsr_md.global_tstamp[21:20]: exact @name("arrived");
            before_window[31:20]: range @name("before_window");
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
            (2w0, 12w1 .. 12w2047, 1w0): do_read_3_1();
            (2w1, 12w2 .. 12w2047, 1w0): do_read_3_1();
            (2w2, _, _): do_clear_3_1();
            (2w3, _, 1w0): do_write_3_1();
        }
        size = 4;
    }

    action assign_now_0() {
        meta.now = ig_prsr_md.global_tstamp[31:0];
    }
    table compute_now_0 {
        actions = {
            assign_now_0;
        }
        default_action = assign_now_0();
        size = 1;
    }
    action assign_slot_1() {
        slot = hash_of_slot.get({meta.source, meta.destination, meta.ports, meta.protocol, meta.ip_length, meta.identification, meta.sequence, meta.acknowledgement});
    }
    table compute_slot_1 {
        actions = {
            assign_slot_1;
        }
        default_action = assign_slot_1();
        size = 1;
    }
    action assign_fingerprint_2() {
        meta.fingerprint = hash_of_fingerprint.get({meta.source, meta.destination, meta.ports, meta.protocol, meta.ip_length, meta.identification, meta.sequence, meta.acknowledgement});
    }
    table compute_fingerprint_2 {
        actions = {
            assign_fingerprint_2;
        }
        default_action = assign_fingerprint_2();
        size = 1;
    }
    action assign_delay_3() {
        delay = meta.now - came;
    }
    table compute_delay_3 {
        actions = {
            assign_delay_3;
        }
        default_action = assign_delay_3();
        size = 1;
    }
    action assign_hash_0_4() {
        hash_0 = hash_of_hash_0.get({meta.source, meta.destination, meta.ports, meta.protocol});
    }
    table compute_hash_0_4 {
        actions = {
            assign_hash_0_4;
        }
        default_action = assign_hash_0_4();
        size = 1;
    }
    action assign_hash_1_5() {
        hash_1 = hash_of_hash_1.get({meta.source, meta.destination, meta.ports, meta.protocol});
    }
    table compute_hash_1_5 {
        actions = {
            assign_hash_1_5;
        }
        default_action = assign_hash_1_5();
        size = 1;
    }
    action assign_window_end_6() {
        window_end = meta.now | 32w0xfffff;
    }
    table compute_window_end_6 {
        actions = {
            assign_window_end_6;
        }
        default_action = assign_window_end_6();
        size = 1;
    }
    action assign_before_window_7() {
        before_window = window_end - came;
    }
    table compute_before_window_7 {
        actions = {
            assign_before_window_7;
        }
        default_action = assign_before_window_7();
        size = 1;
    }
    action assign_count_0_0_8() {
        count_0_0 = min(count_0_0, count_0_1);
    }
    table compute_count_0_0_8 {
        actions = {
            assign_count_0_0_8;
        }
        default_action = assign_count_0_0_8();
        size = 1;
    }
    action assign_count_1_0_9() {
        count_1_0 = min(count_1_0, count_1_1);
    }
    table compute_count_1_0_9 {
        actions = {
            assign_count_1_0_9;
        }
        default_action = assign_count_1_0_9();
        size = 1;
    }
    action assign_count_2_0_10() {
        count_2_0 = min(count_2_0, count_2_1);
    }
    table compute_count_2_0_10 {
        actions = {
            assign_count_2_0_10;
        }
        default_action = assign_count_2_0_10();
        size = 1;
    }
    action assign_count_3_0_11() {
        count_3_0 = min(count_3_0, count_3_1);
    }
    table compute_count_3_0_11 {
        actions = {
            assign_count_3_0_11;
        }
        default_action = assign_count_3_0_11();
        size = 1;
    }
    action assign_count_0_0_12() {
        count_0_0 = count_0_0 |+| count_1_0;
    }
    table compute_count_0_0_12 {
        actions = {
            assign_count_0_0_12;
        }
        default_action = assign_count_0_0_12();
        size = 1;
    }
    action assign_count_0_0_13() {
        count_0_0 = count_0_0 |+| count_2_0;
    }
    table compute_count_0_0_13 {
        actions = {
            assign_count_0_0_13;
        }
        default_action = assign_count_0_0_13();
        size = 1;
    }
    action assign_count_3_0_14() {
        count_3_0 = count_3_0 |+| count_0_0;
    }
    table compute_count_3_0_14 {
        actions = {
            assign_count_3_0_14;
        }
        default_action = assign_count_3_0_14();
        size = 1;
    }
    action assign_compared_0_15() {
        compared_0 = delay |-| 32w0x400000;
    }
    table compute_compared_0_15 {
        actions = {
            assign_compared_0_15;
        }
        default_action = assign_compared_0_15();
        size = 1;
    }
    action assign_compared_1_16() {
        compared_1 = delay |-| tau;
    }
    table compute_compared_1_16 {
        actions = {
            assign_compared_1_16;
        }
        default_action = assign_compared_1_16();
        size = 1;
    }
    action assign_compared_2_17() {
        compared_2 = threshold |-| count_3_0;
    }
    table compute_compared_2_17 {
        actions = {
            assign_compared_2_17;
        }
        default_action = assign_compared_2_17();
        size = 1;
    }
    apply {
        // The switch is beside the path of packets.
        ig_dprsr_md.drop_ctl = 1;
        // Which ports have taps (section 6.1): 1 of links into the router, 2 of the link out of it.
        taps.apply();
        compute_now_0.apply();
        // What a router does not change of a packet gives its place, and a digest that is compared there.
        compute_slot_1.apply();
        compute_fingerprint_2.apply();
        if (role == 2w1 && meta.ip_length != 16w0) {
            // An entry is replaced if its packet came longer ago than the longest delay, or later than now: before times of 32 bits wrapped, or never.
            inserted = insert.execute(slot);
            if (inserted == 1w1) {
                fate = 3w2;
            } else {
                fate = 3w3;
            }
        } else if (role == 2w2 && meta.ip_length != 16w0) {
            // The entry is cleared. It was the packet's if it has its digest.
            came = take.execute(slot);
        } else if (role != 2w0) {
            fate = 3w1;
        }
        compute_delay_3.apply();
        compute_hash_0_4.apply();
        compute_hash_1_5.apply();
        // The windows from that of the packet's enqueuing on, before that in which it leaves (section 3.3, rounded outwards).
        compute_window_end_6.apply();
        compute_before_window_7.apply();
        if (meta.generated == 1w1 || (role == 2w2 && meta.ip_length != 16w0)) {
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
        }
        // The least over the rows, and the sum over the snapshots, in place.
        compute_count_0_0_8.apply();
        compute_count_1_0_9.apply();
        compute_count_2_0_10.apply();
        compute_count_3_0_11.apply();
        compute_count_0_0_12.apply();
        compute_count_0_0_13.apply();
        compute_count_3_0_14.apply();
        parameters.apply();
        // Whether the time of its arrival is known, and whether it waited long.
        compute_compared_0_15.apply();
        if (came != 32w0 && compared_0 == 32w0) {
            seen = 1w1;
        }
        compute_compared_1_16.apply();
        if (compared_1 != 32w0) {
            long = 1w1;
        }
        if (role == 2w2 && meta.ip_length != 16w0) {
            if (seen == 1w1) {
                if (long == 1w1) {
                    compute_compared_2_17.apply();
                    if (compared_2 == 32w0) {
                        fate = 3w7;
                        hdr.report_ethernet.setValid();
                        hdr.report_ethernet.destination = 0xffffffffffff;
                        hdr.report_ethernet.source = 0x020000000001;
                        hdr.report_ethernet.ether_type = ETHERTYPE_REPORT;
                        hdr.report.setValid();
                        hdr.report.delay = delay;
                        hdr.report.estimate = count_3_0;
                        ig_tm_md.ucast_egress_port = collector;
                        ig_dprsr_md.drop_ctl = 0;
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
            count_fate.execute(fate);
        }
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
        in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    apply {
        packet.emit(hdr);
    }
}

struct egress_headers_t {
}

struct egress_metadata_t {
}

parser EgressParser(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta, out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        transition accept;
    }
}

control MainEgress(inout egress_headers_t hdr, inout egress_metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
        in egress_intrinsic_metadata_from_parser_t eg_prsr_md, inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
        inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    apply {
    }
}

control EgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta,
        in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply {
    }
}

Pipeline(IngressParser(), MainIngress(), IngressDeparser(), EgressParser(), MainEgress(), EgressDeparser()) pipe;
Switch(pipe) main;
