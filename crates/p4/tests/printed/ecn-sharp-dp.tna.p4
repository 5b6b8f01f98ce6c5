// ecn-sharp-dp: ECN# behind the queue, with a table in place of the root.
// After Zhang, Bai and Chen, ECN#, CoNEXT 2019, with a schedule of marks in a table.

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
    bit<32> scheduled;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.ecn = 0;
        meta.scheduled = 0;
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
        meta.scheduled = 0;
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
    bit<1> due = 0;
    bit<32> elapsed = 0;
    bit<32> within = 0;
    bit<32> in_table = 0;
    bit<32> late = 0;
    bit<32> beyond = 0;
    bit<32> further = 0;
    bit<32> compared_0 = 0;
    bit<32> compared_1 = 0;

    // When the last packet below target left, in units of 1024 ns.
    Register<bit<32>, bit<7>>(128, 0) last_below;
    RegisterAction<bit<32>, bit<7>, bit<32>>(last_below) keep_time = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = eg_prsr_md.global_tstamp[41:10];
        }
    };
    RegisterAction<bit<32>, bit<7>, bit<32>>(last_below) time_since = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = eg_prsr_md.global_tstamp[41:10] - word;
        }
    };

    // How many packets were chosen since then; at first, the highest number.
    Register<bit<32>, bit<7>>(128, 4294967295) count;
    RegisterAction<bit<32>, bit<7>, bit<32>>(count) begin_count = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = 32w0;
        }
    };
    RegisterAction<bit<32>, bit<7>, bit<1>>(count) count_one = {
        void apply(inout bit<32> word, out bit<1> result) {
            result = 0;
            if (word < meta.scheduled) {
                result = 1;
                word = word + 32w1;
            }
        }
    };

    // How many are due after a time of a standing queue, by CoDel's control law.
    action set_schedule(bit<32> in_table_of_entry) {
        in_table = in_table_of_entry;
    }
    table schedule {
        key = {
            within[15:0]: range @name("within");
        }
        actions = {
            set_schedule;
        }
        default_action = set_schedule(32w0);
        size = 512;
    }

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
    action assign_compared_0_1() {
        compared_0 = 32w0x14c08 |-| sojourn;
    }
    table compute_compared_0_1 {
        actions = {
            assign_compared_0_1;
        }
        default_action = assign_compared_0_1();
        size = 1;
    }
    action assign_within_2() {
        within = min(elapsed, 32w8731);
    }
    table compute_within_2 {
        actions = {
            assign_within_2;
        }
        default_action = assign_within_2();
        size = 1;
    }
    action assign_late_3() {
        late = max(elapsed, 32w8731);
    }
    table compute_late_3 {
        actions = {
            assign_late_3;
        }
        default_action = assign_late_3();
        size = 1;
    }
    action assign_beyond_4() {
        beyond = late - 32w8731;
    }
    table compute_beyond_4 {
        actions = {
            assign_beyond_4;
        }
        default_action = assign_beyond_4();
        size = 1;
    }
    action assign_further_5() {
        further = beyond >> 3;
    }
    table compute_further_5 {
        actions = {
            assign_further_5;
        }
        default_action = assign_further_5();
        size = 1;
    }
    action assign_scheduled_6() {
        meta.scheduled = in_table |+| further;
    }
    table compute_scheduled_6 {
        actions = {
            assign_scheduled_6;
        }
        default_action = assign_scheduled_6();
        size = 1;
    }
    action assign_compared_1_7() {
        compared_1 = sojourn |-| 32w0x30d40;
    }
    table compute_compared_1_7 {
        actions = {
            assign_compared_1_7;
        }
        default_action = assign_compared_1_7();
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
            compute_compared_0_1.apply();
            if (compared_0 != 32w0) {
                keep_time.execute(eg_intr_md.egress_port[6:0]);
                begin_count.execute(eg_intr_md.egress_port[6:0]);
            } else {
                // The unit computes the difference: as a step of its own, it would tie the time's bits from 10 on to other containers than the sojourn time does.
                elapsed = time_since.execute(eg_intr_md.egress_port[6:0]);
                // Within the table, whose times are multiples of a power of two of 1024 ns.
                compute_within_2.apply();
                schedule.apply();
                // Behind the end of the table, they keep a distance.
                compute_late_3.apply();
                compute_beyond_4.apply();
                compute_further_5.apply();
                compute_scheduled_6.apply();
                // If fewer were chosen, this packet is the next.
                due = count_one.execute(eg_intr_md.egress_port[6:0]);
            }
            compute_compared_1_7.apply();
            if ((due == 1w1 || compared_1 != 32w0) && meta.ecn != 2w0) {
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
