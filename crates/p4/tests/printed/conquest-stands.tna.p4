// conquest-stands: marks or drops packets of flows that have half of a queue which stands.
// After Chen et al., Fine-Grained Queue Measurement in the Data Plane, CoNEXT 2019.
// The packet generator sends a packet to each port every 512 ns.

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
    ports_h ports;
}

struct metadata_t {
    bit<2> ecn;
    bit<1> generated;
    // What identifies the flow. Of IPv6 addresses, the last 32 bits.
    bit<32> source;
    bit<32> destination;
    bit<32> ports;
    bit<8> protocol;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.ecn = 0;
        meta.generated = 0;
        meta.source = 0;
        meta.destination = 0;
        meta.ports = 0;
        meta.protocol = 0;
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
        meta.generated = 0;
        meta.source = 0;
        meta.destination = 0;
        meta.ports = 0;
        meta.protocol = 0;
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
    bit<19> least_behind = 0;
    bit<32> more = 0;
    bit<32> half = 0;
    bit<19> queue_length = 0;
    Hash<bit<19>>(HashAlgorithm_t.IDENTITY) bits_of_queue_length;
    bit<19> length_behind = 0;
    Hash<bit<19>>(HashAlgorithm_t.IDENTITY) bits_of_length_behind;
    bit<32> compared_0 = 0;
    bit<19> compared_1 = 0;
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

    // The longest sojourn time without a reaction, and the fewest packets behind a packet with one.
    action set_parameters(bit<32> tau_of_entry, bit<19> least_behind_of_entry) {
        tau = tau_of_entry;
        least_behind = least_behind_of_entry;
    }
    table parameters {
        actions = {
            set_parameters;
        }
        default_action = set_parameters(32w0xf4240, 19w833);
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
            eg_prsr_md.global_tstamp[21:20]: exact @name("dequeued");
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
            eg_prsr_md.global_tstamp[21:20]: exact @name("dequeued");
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
            eg_prsr_md.global_tstamp[21:20]: exact @name("dequeued");
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
            eg_prsr_md.global_tstamp[21:20]: exact @name("dequeued");
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
            eg_prsr_md.global_tstamp[21:20]: exact @name("dequeued");
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
            eg_prsr_md.global_tstamp[21:20]: exact @name("dequeued");
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
            eg_prsr_md.global_tstamp[21:20]: exact @name("dequeued");
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
            eg_prsr_md.global_tstamp[21:20]: exact @name("dequeued");
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
            eg_prsr_md.global_tstamp[21:20]: exact @name("dequeued");
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

    action assign_queue_length_0() {
        queue_length = bits_of_queue_length.get({eg_intr_md.enq_qdepth[18:4]});
    }
    table compute_queue_length_0 {
        actions = {
            assign_queue_length_0;
        }
        default_action = assign_queue_length_0();
        size = 1;
    }
    action assign_length_behind_1() {
        length_behind = bits_of_length_behind.get({eg_intr_md.deq_qdepth[18:4]});
    }
    table compute_length_behind_1 {
        actions = {
            assign_length_behind_1;
        }
        default_action = assign_length_behind_1();
        size = 1;
    }
    action assign_hash_0_2() {
        hash_0 = hash_of_hash_0.get({meta.source, meta.destination, meta.ports, meta.protocol});
    }
    table compute_hash_0_2 {
        actions = {
            assign_hash_0_2;
        }
        default_action = assign_hash_0_2();
        size = 1;
    }
    action assign_hash_1_3() {
        hash_1 = hash_of_hash_1.get({meta.source, meta.destination, meta.ports, meta.protocol});
    }
    table compute_hash_1_3 {
        actions = {
            assign_hash_1_3;
        }
        default_action = assign_hash_1_3();
        size = 1;
    }
    action assign_window_start_4() {
        window_start = eg_prsr_md.global_tstamp[31:0] & 32w0xfff00000;
    }
    table compute_window_start_4 {
        actions = {
            assign_window_start_4;
        }
        default_action = assign_window_start_4();
        size = 1;
    }
    action assign_before_window_5() {
        before_window = window_start - hdr.bridge.enqueued[31:0];
    }
    table compute_before_window_5 {
        actions = {
            assign_before_window_5;
        }
        default_action = assign_before_window_5();
        size = 1;
    }
    action assign_count_0_0_6() {
        count_0_0 = min(count_0_0, count_0_1);
    }
    table compute_count_0_0_6 {
        actions = {
            assign_count_0_0_6;
        }
        default_action = assign_count_0_0_6();
        size = 1;
    }
    action assign_count_1_0_7() {
        count_1_0 = min(count_1_0, count_1_1);
    }
    table compute_count_1_0_7 {
        actions = {
            assign_count_1_0_7;
        }
        default_action = assign_count_1_0_7();
        size = 1;
    }
    action assign_count_2_0_8() {
        count_2_0 = min(count_2_0, count_2_1);
    }
    table compute_count_2_0_8 {
        actions = {
            assign_count_2_0_8;
        }
        default_action = assign_count_2_0_8();
        size = 1;
    }
    action assign_count_3_0_9() {
        count_3_0 = min(count_3_0, count_3_1);
    }
    table compute_count_3_0_9 {
        actions = {
            assign_count_3_0_9;
        }
        default_action = assign_count_3_0_9();
        size = 1;
    }
    action assign_count_0_0_10() {
        count_0_0 = count_0_0 |+| count_1_0;
    }
    table compute_count_0_0_10 {
        actions = {
            assign_count_0_0_10;
        }
        default_action = assign_count_0_0_10();
        size = 1;
    }
    action assign_count_0_0_11() {
        count_0_0 = count_0_0 |+| count_2_0;
    }
    table compute_count_0_0_11 {
        actions = {
            assign_count_0_0_11;
        }
        default_action = assign_count_0_0_11();
        size = 1;
    }
    action assign_count_3_0_12() {
        count_3_0 = count_3_0 |+| count_0_0;
    }
    table compute_count_3_0_12 {
        actions = {
            assign_count_3_0_12;
        }
        default_action = assign_count_3_0_12();
        size = 1;
    }
    action assign_sojourn_13() {
        sojourn = eg_prsr_md.global_tstamp[31:0] - hdr.bridge.enqueued[31:0];
    }
    table compute_sojourn_13 {
        actions = {
            assign_sojourn_13;
        }
        default_action = assign_sojourn_13();
        size = 1;
    }
    action assign_more_14() {
        more = (bit<32>)queue_length + 32w1;
    }
    table compute_more_14 {
        actions = {
            assign_more_14;
        }
        default_action = assign_more_14();
        size = 1;
    }
    action assign_half_15() {
        half = more >> 1;
    }
    table compute_half_15 {
        actions = {
            assign_half_15;
        }
        default_action = assign_half_15();
        size = 1;
    }
    action assign_compared_0_16() {
        compared_0 = sojourn |-| tau;
    }
    table compute_compared_0_16 {
        actions = {
            assign_compared_0_16;
        }
        default_action = assign_compared_0_16();
        size = 1;
    }
    action assign_compared_1_17() {
        compared_1 = least_behind |-| length_behind;
    }
    table compute_compared_1_17 {
        actions = {
            assign_compared_1_17;
        }
        default_action = assign_compared_1_17();
        size = 1;
    }
    action assign_compared_2_18() {
        compared_2 = half |-| count_3_0;
    }
    table compute_compared_2_18 {
        actions = {
            assign_compared_2_18;
        }
        default_action = assign_compared_2_18();
        size = 1;
    }
    apply {
        if (hdr.ipv4.isValid()) {
            meta.ecn = hdr.ipv4.ecn;
        } else {
            meta.ecn = hdr.ipv6.ecn;
        }
        // Sixteen cells of 80 bytes count as a packet.
        compute_queue_length_0.apply();
        // Sixteen cells of 80 bytes count as a packet.
        compute_length_behind_1.apply();
        if (meta.generated == 1 || hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            compute_hash_0_2.apply();
            compute_hash_1_3.apply();
            // The windows between the packet's enqueuing and the window in which it leaves (section 3.3).
            compute_window_start_4.apply();
            compute_before_window_5.apply();
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
            compute_count_0_0_6.apply();
            compute_count_1_0_7.apply();
            compute_count_2_0_8.apply();
            compute_count_3_0_9.apply();
            compute_count_0_0_10.apply();
            compute_count_0_0_11.apply();
            compute_count_3_0_12.apply();
            compute_sojourn_13.apply();
            if (meta.generated == 1w1) {
                // It has no other purpose than cleaning (section 3.4).
                eg_dprsr_md.drop_ctl = 1;
            } else {
                parameters.apply();
                // Half of what it found, rounded up.
                compute_more_14.apply();
                compute_half_15.apply();
                compute_compared_0_16.apply();
                compute_compared_1_17.apply();
                compute_compared_2_18.apply();
                if (compared_0 != 32w0) {
                    if (queue_length != 19w0) {
                        if (compared_1 == 19w0) {
                            if (compared_2 == 32w0) {
                                if (meta.ecn != 2w0) {
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
                                } else {
                                    eg_dprsr_md.drop_ctl = 1;
                                }
                            }
                        }
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
        packet.emit(hdr.ports);
    }
}

Pipeline(IngressParser(), MainIngress(), IngressDeparser(), EgressParser(), MainEgress(), EgressDeparser()) pipe;
Switch(pipe) main;
