// printqueue-windows: records which flows left the queue when, with fewer and fewer records of the past.
// After Lei et al., PrintQueue: Performance Diagnosis via Queue Measurement in the Data Plane, SIGCOMM 2022.

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

struct headers_t {
    ethernet_h ethernet;
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
}

control MainVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
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
        forward.apply();
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // The times of the records in window 0.
    register<bit<32>>(4096) times_0;
    // The source addresses of the records in window 0.
    register<bit<32>>(4096) sources_0;
    // The destination addresses of the records in window 0.
    register<bit<32>>(4096) destinations_0;
    // The ports of the records in window 0.
    register<bit<32>>(4096) flow_ports_0;
    // The times of the records in window 1.
    register<bit<32>>(4096) times_1;
    // The source addresses of the records in window 1.
    register<bit<32>>(4096) sources_1;
    // The destination addresses of the records in window 1.
    register<bit<32>>(4096) destinations_1;
    // The ports of the records in window 1.
    register<bit<32>>(4096) flow_ports_1;
    // The times of the records in window 2.
    register<bit<32>>(4096) times_2;
    // The source addresses of the records in window 2.
    register<bit<32>>(4096) sources_2;
    // The destination addresses of the records in window 2.
    register<bit<32>>(4096) destinations_2;
    // The ports of the records in window 2.
    register<bit<32>>(4096) flow_ports_2;
    // The times of the records in window 3.
    register<bit<32>>(4096) times_3;
    // The source addresses of the records in window 3.
    register<bit<32>>(4096) sources_3;
    // The destination addresses of the records in window 3.
    register<bit<32>>(4096) destinations_3;
    // The ports of the records in window 3.
    register<bit<32>>(4096) flow_ports_3;
    bit<48> enqueued = 0;
    bit<48> dequeued = 0;
    bit<9> measured = 0;
    bit<32> time = 0;
    bit<32> old_times_0 = 0;
    bit<32> old_sources_0 = 0;
    bit<32> old_destinations_0 = 0;
    bit<32> old_flow_ports_0 = 0;
    bit<32> cycle_before_0 = 0;
    bit<32> old_times_1 = 0;
    bit<32> old_sources_1 = 0;
    bit<32> old_destinations_1 = 0;
    bit<32> old_flow_ports_1 = 0;
    bit<32> cycle_before_1 = 0;
    bit<32> old_times_2 = 0;
    bit<32> old_sources_2 = 0;
    bit<32> old_destinations_2 = 0;
    bit<32> old_flow_ports_2 = 0;
    bit<32> cycle_before_2 = 0;

    // The port that is measured.
    action set_parameters(bit<9> measured_of_entry) {
        measured = measured_of_entry;
    }
    table parameters {
        actions = {
            set_parameters;
        }
        default_action = set_parameters(9w0);
    }

    apply {
        // BMv2 has microseconds.
        dequeued = standard_metadata.egress_global_timestamp * 1000;
        enqueued = dequeued - (bit<48>)standard_metadata.deq_timedelta * 1000;
        if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            parameters.apply();
            // The time in cells of the first window.
            time = dequeued[41:10];
            if (standard_metadata.egress_port == measured) {
                // exchange_times_0
                @atomic {
                    bit<32> word;
                    times_0.read(word, (bit<32>)time[11:0]);
                    old_times_0 = word;
                    word = time;
                    times_0.write((bit<32>)time[11:0], word);
                }
                // exchange_sources_0
                @atomic {
                    bit<32> word;
                    sources_0.read(word, (bit<32>)time[11:0]);
                    old_sources_0 = word;
                    word = meta.source;
                    sources_0.write((bit<32>)time[11:0], word);
                }
                // exchange_destinations_0
                @atomic {
                    bit<32> word;
                    destinations_0.read(word, (bit<32>)time[11:0]);
                    old_destinations_0 = word;
                    word = meta.destination;
                    destinations_0.write((bit<32>)time[11:0], word);
                }
                // exchange_flow_ports_0
                @atomic {
                    bit<32> word;
                    flow_ports_0.read(word, (bit<32>)time[11:0]);
                    old_flow_ports_0 = word;
                    word = meta.ports;
                    flow_ports_0.write((bit<32>)time[11:0], word);
                }
                cycle_before_0 = time - 32w4096;
                if (old_times_0 != 32w0) {
                    if (old_times_0 == cycle_before_0) {
                        // exchange_times_1
                        @atomic {
                            bit<32> word;
                            times_1.read(word, (bit<32>)old_times_0[12:1]);
                            old_times_1 = word;
                            word = old_times_0;
                            times_1.write((bit<32>)old_times_0[12:1], word);
                        }
                        // exchange_sources_1
                        @atomic {
                            bit<32> word;
                            sources_1.read(word, (bit<32>)old_times_0[12:1]);
                            old_sources_1 = word;
                            word = old_sources_0;
                            sources_1.write((bit<32>)old_times_0[12:1], word);
                        }
                        // exchange_destinations_1
                        @atomic {
                            bit<32> word;
                            destinations_1.read(word, (bit<32>)old_times_0[12:1]);
                            old_destinations_1 = word;
                            word = old_destinations_0;
                            destinations_1.write((bit<32>)old_times_0[12:1], word);
                        }
                        // exchange_flow_ports_1
                        @atomic {
                            bit<32> word;
                            flow_ports_1.read(word, (bit<32>)old_times_0[12:1]);
                            old_flow_ports_1 = word;
                            word = old_flow_ports_0;
                            flow_ports_1.write((bit<32>)old_times_0[12:1], word);
                        }
                        cycle_before_1 = old_times_0 - 32w8192;
                        if (old_times_1 != 32w0) {
                            if (old_times_1[31:1] == cycle_before_1[31:1]) {
                                // exchange_times_2
                                @atomic {
                                    bit<32> word;
                                    times_2.read(word, (bit<32>)old_times_1[13:2]);
                                    old_times_2 = word;
                                    word = old_times_1;
                                    times_2.write((bit<32>)old_times_1[13:2], word);
                                }
                                // exchange_sources_2
                                @atomic {
                                    bit<32> word;
                                    sources_2.read(word, (bit<32>)old_times_1[13:2]);
                                    old_sources_2 = word;
                                    word = old_sources_1;
                                    sources_2.write((bit<32>)old_times_1[13:2], word);
                                }
                                // exchange_destinations_2
                                @atomic {
                                    bit<32> word;
                                    destinations_2.read(word, (bit<32>)old_times_1[13:2]);
                                    old_destinations_2 = word;
                                    word = old_destinations_1;
                                    destinations_2.write((bit<32>)old_times_1[13:2], word);
                                }
                                // exchange_flow_ports_2
                                @atomic {
                                    bit<32> word;
                                    flow_ports_2.read(word, (bit<32>)old_times_1[13:2]);
                                    old_flow_ports_2 = word;
                                    word = old_flow_ports_1;
                                    flow_ports_2.write((bit<32>)old_times_1[13:2], word);
                                }
                                cycle_before_2 = old_times_1 - 32w16384;
                                if (old_times_2 != 32w0) {
                                    if (old_times_2[31:2] == cycle_before_2[31:2]) {
                                        // exchange_times_3
                                        @atomic {
                                            bit<32> word;
                                            times_3.read(word, (bit<32>)old_times_2[14:3]);
                                            word = old_times_2;
                                            times_3.write((bit<32>)old_times_2[14:3], word);
                                        }
                                        // exchange_sources_3
                                        @atomic {
                                            bit<32> word;
                                            sources_3.read(word, (bit<32>)old_times_2[14:3]);
                                            word = old_sources_2;
                                            sources_3.write((bit<32>)old_times_2[14:3], word);
                                        }
                                        // exchange_destinations_3
                                        @atomic {
                                            bit<32> word;
                                            destinations_3.read(word, (bit<32>)old_times_2[14:3]);
                                            word = old_destinations_2;
                                            destinations_3.write((bit<32>)old_times_2[14:3], word);
                                        }
                                        // exchange_flow_ports_3
                                        @atomic {
                                            bit<32> word;
                                            flow_ports_3.read(word, (bit<32>)old_times_2[14:3]);
                                            word = old_flow_ports_2;
                                            flow_ports_3.write((bit<32>)old_times_2[14:3], word);
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
