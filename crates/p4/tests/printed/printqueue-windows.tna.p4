// printqueue-windows: records which flows left the queue when, with fewer and fewer records of the past.
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
    bit<32> time;
    bit<32> old_times_0;
    bit<32> old_sources_0;
    bit<32> old_destinations_0;
    bit<32> old_flow_ports_0;
    bit<32> old_times_1;
    bit<32> old_sources_1;
    bit<32> old_destinations_1;
    bit<32> old_flow_ports_1;
    bit<32> old_times_2;
    bit<32> old_sources_2;
    bit<32> old_destinations_2;
    bit<32> old_flow_ports_2;
    // What identifies the flow. Of IPv6 addresses, the last 32 bits.
    bit<32> source;
    bit<32> destination;
    bit<32> ports;
    bit<8> protocol;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        meta.ecn = 0;
        meta.time = 0;
        meta.old_times_0 = 0;
        meta.old_sources_0 = 0;
        meta.old_destinations_0 = 0;
        meta.old_flow_ports_0 = 0;
        meta.old_times_1 = 0;
        meta.old_sources_1 = 0;
        meta.old_destinations_1 = 0;
        meta.old_flow_ports_1 = 0;
        meta.old_times_2 = 0;
        meta.old_sources_2 = 0;
        meta.old_destinations_2 = 0;
        meta.old_flow_ports_2 = 0;
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
        meta.time = 0;
        meta.old_times_0 = 0;
        meta.old_sources_0 = 0;
        meta.old_destinations_0 = 0;
        meta.old_flow_ports_0 = 0;
        meta.old_times_1 = 0;
        meta.old_sources_1 = 0;
        meta.old_destinations_1 = 0;
        meta.old_flow_ports_1 = 0;
        meta.old_times_2 = 0;
        meta.old_sources_2 = 0;
        meta.old_destinations_2 = 0;
        meta.old_flow_ports_2 = 0;
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
    bit<32> cycle_before_0 = 0;
    bit<32> cycle_before_1 = 0;
    bit<32> cycle_before_2 = 0;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) bits_of_time;

    // The times of the records in window 0.
    Register<bit<32>, bit<12>>(4096, 0) times_0;
    RegisterAction<bit<32>, bit<12>, bit<32>>(times_0) exchange_times_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.time;
        }
    };

    // The source addresses of the records in window 0.
    Register<bit<32>, bit<12>>(4096, 0) sources_0;
    RegisterAction<bit<32>, bit<12>, bit<32>>(sources_0) exchange_sources_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.source;
        }
    };

    // The destination addresses of the records in window 0.
    Register<bit<32>, bit<12>>(4096, 0) destinations_0;
    RegisterAction<bit<32>, bit<12>, bit<32>>(destinations_0) exchange_destinations_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.destination;
        }
    };

    // The ports of the records in window 0.
    Register<bit<32>, bit<12>>(4096, 0) flow_ports_0;
    RegisterAction<bit<32>, bit<12>, bit<32>>(flow_ports_0) exchange_flow_ports_0 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.ports;
        }
    };

    // The times of the records in window 1.
    Register<bit<32>, bit<12>>(4096, 0) times_1;
    RegisterAction<bit<32>, bit<12>, bit<32>>(times_1) exchange_times_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.old_times_0;
        }
    };

    // The source addresses of the records in window 1.
    Register<bit<32>, bit<12>>(4096, 0) sources_1;
    RegisterAction<bit<32>, bit<12>, bit<32>>(sources_1) exchange_sources_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.old_sources_0;
        }
    };

    // The destination addresses of the records in window 1.
    Register<bit<32>, bit<12>>(4096, 0) destinations_1;
    RegisterAction<bit<32>, bit<12>, bit<32>>(destinations_1) exchange_destinations_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.old_destinations_0;
        }
    };

    // The ports of the records in window 1.
    Register<bit<32>, bit<12>>(4096, 0) flow_ports_1;
    RegisterAction<bit<32>, bit<12>, bit<32>>(flow_ports_1) exchange_flow_ports_1 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.old_flow_ports_0;
        }
    };

    // The times of the records in window 2.
    Register<bit<32>, bit<12>>(4096, 0) times_2;
    RegisterAction<bit<32>, bit<12>, bit<32>>(times_2) exchange_times_2 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.old_times_1;
        }
    };

    // The source addresses of the records in window 2.
    Register<bit<32>, bit<12>>(4096, 0) sources_2;
    RegisterAction<bit<32>, bit<12>, bit<32>>(sources_2) exchange_sources_2 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.old_sources_1;
        }
    };

    // The destination addresses of the records in window 2.
    Register<bit<32>, bit<12>>(4096, 0) destinations_2;
    RegisterAction<bit<32>, bit<12>, bit<32>>(destinations_2) exchange_destinations_2 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.old_destinations_1;
        }
    };

    // The ports of the records in window 2.
    Register<bit<32>, bit<12>>(4096, 0) flow_ports_2;
    RegisterAction<bit<32>, bit<12>, bit<32>>(flow_ports_2) exchange_flow_ports_2 = {
        void apply(inout bit<32> word, out bit<32> result) {
            result = word;
            word = meta.old_flow_ports_1;
        }
    };

    // The times of the records in window 3.
    Register<bit<32>, bit<12>>(4096, 0) times_3;
    RegisterAction<bit<32>, bit<12>, bit<32>>(times_3) exchange_times_3 = {
        void apply(inout bit<32> word) {
            word = meta.old_times_2;
        }
    };

    // The source addresses of the records in window 3.
    Register<bit<32>, bit<12>>(4096, 0) sources_3;
    RegisterAction<bit<32>, bit<12>, bit<32>>(sources_3) exchange_sources_3 = {
        void apply(inout bit<32> word) {
            word = meta.old_sources_2;
        }
    };

    // The destination addresses of the records in window 3.
    Register<bit<32>, bit<12>>(4096, 0) destinations_3;
    RegisterAction<bit<32>, bit<12>, bit<32>>(destinations_3) exchange_destinations_3 = {
        void apply(inout bit<32> word) {
            word = meta.old_destinations_2;
        }
    };

    // The ports of the records in window 3.
    Register<bit<32>, bit<12>>(4096, 0) flow_ports_3;
    RegisterAction<bit<32>, bit<12>, bit<32>>(flow_ports_3) exchange_flow_ports_3 = {
        void apply(inout bit<32> word) {
            word = meta.old_flow_ports_2;
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

    action assign_time_0() {
        meta.time = bits_of_time.get({eg_prsr_md.global_tstamp[41:10]});
    }
    table compute_time_0 {
        actions = {
            assign_time_0;
        }
        default_action = assign_time_0();
        size = 1;
    }
    action assign_cycle_before_0_1() {
        cycle_before_0 = meta.time - 32w4096;
    }
    table compute_cycle_before_0_1 {
        actions = {
            assign_cycle_before_0_1;
        }
        default_action = assign_cycle_before_0_1();
        size = 1;
    }
    action assign_cycle_before_1_2() {
        cycle_before_1 = meta.old_times_0 - 32w8192;
    }
    table compute_cycle_before_1_2 {
        actions = {
            assign_cycle_before_1_2;
        }
        default_action = assign_cycle_before_1_2();
        size = 1;
    }
    action assign_cycle_before_2_3() {
        cycle_before_2 = meta.old_times_1 - 32w16384;
    }
    table compute_cycle_before_2_3 {
        actions = {
            assign_cycle_before_2_3;
        }
        default_action = assign_cycle_before_2_3();
        size = 1;
    }
    apply {
        if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            parameters.apply();
            // The time in cells of the first window.
            compute_time_0.apply();
            if (eg_intr_md.egress_port == measured) {
                meta.old_times_0 = exchange_times_0.execute(meta.time[11:0]);
                meta.old_sources_0 = exchange_sources_0.execute(meta.time[11:0]);
                meta.old_destinations_0 = exchange_destinations_0.execute(meta.time[11:0]);
                meta.old_flow_ports_0 = exchange_flow_ports_0.execute(meta.time[11:0]);
                compute_cycle_before_0_1.apply();
                if (meta.old_times_0 != 32w0) {
                    if (meta.old_times_0 == cycle_before_0) {
                        meta.old_times_1 = exchange_times_1.execute(meta.old_times_0[12:1]);
                        meta.old_sources_1 = exchange_sources_1.execute(meta.old_times_0[12:1]);
                        meta.old_destinations_1 = exchange_destinations_1.execute(meta.old_times_0[12:1]);
                        meta.old_flow_ports_1 = exchange_flow_ports_1.execute(meta.old_times_0[12:1]);
                        compute_cycle_before_1_2.apply();
                        if (meta.old_times_1 != 32w0) {
                            if (meta.old_times_1[31:1] == cycle_before_1[31:1]) {
                                meta.old_times_2 = exchange_times_2.execute(meta.old_times_1[13:2]);
                                meta.old_sources_2 = exchange_sources_2.execute(meta.old_times_1[13:2]);
                                meta.old_destinations_2 = exchange_destinations_2.execute(meta.old_times_1[13:2]);
                                meta.old_flow_ports_2 = exchange_flow_ports_2.execute(meta.old_times_1[13:2]);
                                compute_cycle_before_2_3.apply();
                                if (meta.old_times_2 != 32w0) {
                                    if (meta.old_times_2[31:2] == cycle_before_2[31:2]) {
                                        exchange_times_3.execute(meta.old_times_2[14:3]);
                                        exchange_sources_3.execute(meta.old_times_2[14:3]);
                                        exchange_destinations_3.execute(meta.old_times_2[14:3]);
                                        exchange_flow_ports_3.execute(meta.old_times_2[14:3]);
                                    }
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
