// printqueue-monitor: records which flow last brought the queue to each of its levels.
// After Lei et al., PrintQueue: Performance Diagnosis via Queue Measurement in the Data Plane, SIGCOMM 2022.

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
    ports_h ports;
}

struct metadata_t {
    bit<2> ecn;
    bit<32> level;
    bit<32> number;
    // What identifies the flow. Of IPv6 addresses, the last 32 bits.
    bit<32> source;
    bit<32> destination;
    bit<32> ports;
    bit<8> protocol;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.ecn = 0;
        meta.level = 0;
        meta.number = 0;
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
        meta.level = 0;
        meta.number = 0;
        meta.source = 0;
        meta.destination = 0;
        meta.ports = 0;
        meta.protocol = 0;
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

control MainEgress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
        in egress_intrinsic_metadata_from_parser_t eg_prsr_md, inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
        inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    bit<9> measured = 0;
    bit<32> steps = 0;
    bit<1> changes = 0;

    // The level that the last packet found.
    Register<bit<32>, bit<1>>(1, 4294967295) top;
    RegisterAction<bit<32>, bit<1>, bit<1>>(top) change_top = {
        void apply(inout bit<32> word, out bit<1> result) {
            result = 0;
            if (word != meta.level) {
                result = 1;
                word = meta.level;
            }
        }
    };

    // The number of packets.
    Register<bit<32>, bit<1>>(1, 0) packets;
    RegisterAction<bit<32>, bit<1>, bit<32>>(packets) count_packet = {
        void apply(inout bit<32> word, out bit<32> result) {
            word = word + 32w1;
            result = word;
        }
    };

    // The source address of the packet at each level.
    Register<bit<32>, bit<15>>(32768, 0) sources;
    RegisterAction<bit<32>, bit<15>, bit<32>>(sources) store_source = {
        void apply(inout bit<32> word) {
            word = meta.source;
        }
    };

    // The destination address of the packet at each level.
    Register<bit<32>, bit<15>>(32768, 0) destinations;
    RegisterAction<bit<32>, bit<15>, bit<32>>(destinations) store_destination = {
        void apply(inout bit<32> word) {
            word = meta.destination;
        }
    };

    // The number of the packet at each level.
    Register<bit<32>, bit<15>>(32768, 0) numbers;
    RegisterAction<bit<32>, bit<15>, bit<32>>(numbers) store_number = {
        void apply(inout bit<32> word) {
            word = meta.number;
        }
    };

    // The port that is measured.
    action set_parameters(bit<9> measured_of_entry) {
        measured = measured_of_entry;
    }
    table parameters {
        actions = {
            set_parameters;
        }
        default_action = set_parameters(9w0);
        size = 1;
    }

    action assign_steps_0() {
        steps = (bit<32>)eg_intr_md.enq_qdepth[18:0];
    }
    table compute_steps_0 {
        actions = {
            assign_steps_0;
        }
        default_action = assign_steps_0();
        size = 1;
    }
    action assign_level_1() {
        meta.level = min(steps, 32w32767);
    }
    table compute_level_1 {
        actions = {
            assign_level_1;
        }
        default_action = assign_level_1();
        size = 1;
    }
    apply {
        if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            parameters.apply();
            // The level that the packet found. A deeper queue is at the last level.
            compute_steps_0.apply();
            compute_level_1.apply();
            if (eg_intr_md.egress_port == measured) {
                changes = change_top.execute(1w0);
                meta.number = count_packet.execute(1w0);
                if (changes == 1w1) {
                    store_source.execute(meta.level[14:0]);
                    store_destination.execute(meta.level[14:0]);
                    store_number.execute(meta.level[14:0]);
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
