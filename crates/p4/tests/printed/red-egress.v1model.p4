// red-egress: drops or marks behind the queue, by an average of its length.
// After Floyd and Jacobson, Random Early Detection Gateways, 1993, section IV.

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
}

struct metadata_t {
    bit<2> ecn;
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
        transition accept;
    }
    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        meta.ecn = hdr.ipv6.ecn;
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
    // The average length of the queue, in units of 2^-16 packets.
    register<bit<32>>(128) average_queue;
    bit<32> shorter = 0;
    bit<32> found = 0;
    bit<32> average = 0;
    bit<32> chance = 0;
    bit<1> certain = 0;
    bit<32> drawn = 0;

    // The probability for an average, in units of 2^-32, and whether it is one.
    action set_probability(bit<32> chance_of_entry, bit<1> certain_of_entry) {
        chance = chance_of_entry;
        certain = certain_of_entry;
    }
    table probability {
        key = {
            average[24:13]: range;
        }
        actions = {
            set_probability;
        }
        default_action = set_probability(32w0, 1w0);
        size = 202;
    }

    apply {
        if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            shorter = (bit<32>)standard_metadata.enq_qdepth < 32w511 ? (bit<32>)standard_metadata.enq_qdepth : 32w511;
            // In units of 2^-16 packets, as the average is.
            found = shorter << 16;
            // average_length
            @atomic {
                bit<32> word;
                average_queue.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                word = word + (bit<32>)(bit<33>)(((int<33>)(bit<33>)found - (int<33>)(bit<33>)word) >> 9);
                average_queue.write((bit<32>)standard_metadata.egress_port[6:0], word);
                average = word;
            }
            probability.apply();
            random(drawn, 0, 32w0xffffffff);
            if (certain == 1w1) {
                mark_to_drop(standard_metadata);
            } else if (drawn < chance) {
                mark_to_drop(standard_metadata);
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
    }
}

V1Switch(MainParser(), MainVerify(), MainIngress(), MainEgress(), MainCompute(), MainDeparser()) main;
