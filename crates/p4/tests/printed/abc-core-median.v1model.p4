// abc-core-median: drops behind the queue, by activity, its median and the length of the queue.
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
}

struct metadata_t {
    bit<2> ecn;
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
        transition accept;
    }
    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        meta.ecn = hdr.ipv6.ecn;
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
    bit<1> outside = 0;

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
        default_action = set_domain(1w0);
        size = 512;
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
                }
            }
        }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // The average activity of accepted packets, in units of 2^-24 above -128.
    register<bit<32>>(128) average_activity;
    bit<19> shorter = 0;
    bit<16> queue = 0;
    bit<16> distance = 0;
    bit<16> behind = 0;
    bit<16> limit = 0;
    bit<32> wide_limit = 0;
    bit<32> wide_own = 0;
    bit<32> own = 0;
    bit<32> level = 0;
    bit<32> average = 0;

    apply {
        if (meta.has_activity == 1 || hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            shorter = standard_metadata.enq_qdepth < 19w511 ? standard_metadata.enq_qdepth : 19w511;
            // Fields of other widths are moved by a hash unit, so that no field is cut for another one.
            queue = shorter[15:0];
            if (meta.has_activity == 1w1) {
                // The average at which the packet's threshold is the length of the queue: A - (Q_base - Q) / gamma.
                distance = 16w20 - queue;
                behind = distance << 4;
                limit = (bit<16>)((int<16>)meta.activity |-| (int<16>)behind);
                wide_limit = (bit<32>)limit << 16;
                wide_own = (bit<32>)meta.activity << 16;
                own = wide_own ^ 32w0x80000000;
                // No average is below 0: a packet that finds at most Q_min is not dropped.
                if (queue > 16w6) {
                    level = wide_limit ^ 32w0x80000000;
                }
                // average_accepted
                @atomic {
                    bit<32> word;
                    average_activity.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                    word = word ^ 32w0x80000000;
                    bool condition_0 = word < level;
                    bool condition_1 = word < own;
                    average = word;
                    if (condition_0) {
                        word = word;
                    } else {
                        if (condition_1) {
                            word = word |+| 32w0x40000;
                        } else {
                            word = word |-| 32w0x40000;
                        }
                    }
                    average_activity.write((bit<32>)standard_metadata.egress_port[6:0], word ^ 32w0x80000000);
                }
                if (average < level) {
                    mark_to_drop(standard_metadata);
                }
            } else {
                // A packet without activity counts as average.
                if (queue > 16w20) {
                    mark_to_drop(standard_metadata);
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
        packet.emit(hdr.activity);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
    }
}

V1Switch(MainParser(), MainVerify(), MainIngress(), MainEgress(), MainCompute(), MainDeparser()) main;
