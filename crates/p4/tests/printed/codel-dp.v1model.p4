// codel-dp: CoDel behind the queue, with a table in place of the root.
// After RFC 8289, section 5, with a schedule of drops in a table.

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
    // When the last packet below target left, in units of 1024 ns.
    register<bit<32>>(128) last_below;
    // How many packets were chosen since then; at first, the highest number.
    register<bit<32>>(128) count;
    bit<48> enqueued = 0;
    bit<48> dequeued = 0;
    bit<32> sojourn = 0;
    bit<1> due = 0;
    bit<32> elapsed = 0;
    bit<32> within = 0;
    bit<32> in_table = 0;
    bit<32> late = 0;
    bit<32> beyond = 0;
    bit<32> further = 0;
    bit<32> scheduled = 0;

    // How many are due after a time of a standing queue, by CoDel's control law.
    action set_schedule(bit<32> in_table_of_entry) {
        in_table = in_table_of_entry;
    }
    table schedule {
        key = {
            within[16:1]: range;
        }
        actions = {
            set_schedule;
        }
        default_action = set_schedule(32w0);
        size = 512;
    }

    apply {
        // BMv2 has microseconds.
        dequeued = standard_metadata.egress_global_timestamp * 1000;
        enqueued = dequeued - (bit<48>)standard_metadata.deq_timedelta * 1000;
        if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            sojourn = dequeued[31:0] - enqueued[31:0];
            if (sojourn < 32w0x1e848) {
                // keep_time
                @atomic {
                    bit<32> word;
                    last_below.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                    word = dequeued[41:10];
                    last_below.write((bit<32>)standard_metadata.egress_port[6:0], word);
                }
                // begin_count
                @atomic {
                    bit<32> word;
                    count.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                    word = word ^ 32w0xffffffff;
                    word = 32w0;
                    count.write((bit<32>)standard_metadata.egress_port[6:0], word ^ 32w0xffffffff);
                }
            } else {
                // The unit computes the difference: as a step of its own, it would tie the time's bits from 10 on to other containers than the sojourn time does.
                // time_since
                @atomic {
                    bit<32> word;
                    last_below.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                    last_below.write((bit<32>)standard_metadata.egress_port[6:0], word);
                    elapsed = dequeued[41:10] - word;
                }
                // Within the table, whose times are multiples of a power of two of 1024 ns.
                within = elapsed < 32w0x1aaea ? elapsed : 32w0x1aaea;
                schedule.apply();
                // Behind the end of the table, they keep a distance.
                late = elapsed > 32w0x1aaea ? elapsed : 32w0x1aaea;
                beyond = late - 32w0x1aaea;
                further = beyond >> 7;
                scheduled = in_table |+| further;
                // If fewer were chosen, this packet is the next.
                // count_one
                @atomic {
                    bit<32> word;
                    count.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                    word = word ^ 32w0xffffffff;
                    bool condition_0 = word < scheduled;
                    if (condition_0) {
                        word = word + 32w1;
                    }
                    count.write((bit<32>)standard_metadata.egress_port[6:0], word ^ 32w0xffffffff);
                    due = condition_0 ? 1w1 : 1w0;
                }
            }
            if (due == 1w1) {
                if (meta.ecn == 2w0) {
                    mark_to_drop(standard_metadata);
                } else {
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
