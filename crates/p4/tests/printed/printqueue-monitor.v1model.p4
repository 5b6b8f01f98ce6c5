// printqueue-monitor: records which flow last brought the queue to each of its levels.
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
    // The level that the last packet found.
    register<bit<32>>(1) top;
    // The number of packets.
    register<bit<32>>(1) packets;
    // The source address of the packet at each level.
    register<bit<32>>(32768) sources;
    // The destination address of the packet at each level.
    register<bit<32>>(32768) destinations;
    // The number of the packet at each level.
    register<bit<32>>(32768) numbers;
    bit<19> depth = 0;
    bit<9> measured = 0;
    bit<32> steps = 0;
    bit<32> level = 0;
    bit<1> changes = 0;
    bit<32> number = 0;

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
        // BMv2 counts packets.
        depth = standard_metadata.enq_qdepth;
        if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            parameters.apply();
            // The level that the packet found. A deeper queue is at the last level.
            steps = (bit<32>)depth[18:0];
            level = steps < 32w32767 ? steps : 32w32767;
            if (standard_metadata.egress_port == measured) {
                // change_top
                @atomic {
                    bit<32> word;
                    top.read(word, 32w0);
                    word = word ^ 32w0xffffffff;
                    bool condition_0 = word != level;
                    if (condition_0) {
                        word = level;
                    }
                    top.write(32w0, word ^ 32w0xffffffff);
                    changes = condition_0 ? 1w1 : 1w0;
                }
                // count_packet
                @atomic {
                    bit<32> word;
                    packets.read(word, 32w0);
                    word = word + 32w1;
                    packets.write(32w0, word);
                    number = word;
                }
                if (changes == 1w1) {
                    // store_source
                    @atomic {
                        bit<32> word;
                        sources.read(word, (bit<32>)level[14:0]);
                        word = meta.source;
                        sources.write((bit<32>)level[14:0], word);
                    }
                    // store_destination
                    @atomic {
                        bit<32> word;
                        destinations.read(word, (bit<32>)level[14:0]);
                        word = meta.destination;
                        destinations.write((bit<32>)level[14:0], word);
                    }
                    // store_number
                    @atomic {
                        bit<32> word;
                        numbers.read(word, (bit<32>)level[14:0]);
                        word = number;
                        numbers.write((bit<32>)level[14:0], word);
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
