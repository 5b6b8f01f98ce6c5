// egress-pi: marks or drops behind the queue, by the square of what follows the delay.
// After docs/explanation/egress-pi.md of queuescope.

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
    // When the probability was last updated.
    register<bit<32>>(128) last_update;
    // The delay of the last update, shifted by beta.
    register<bit<32>>(128) last_delay;
    // p', from the lowest number in two's complement, which is 0, to the highest, which is 1.
    register<bit<32>>(128) base_probability;
    bit<48> enqueued = 0;
    bit<48> dequeued = 0;
    bit<32> sojourn = 0;
    bit<32> capped = 0;
    bit<32> delay = 0;
    bit<1> due = 0;
    bit<32> near = 0;
    bit<32> alpha = 0;
    bit<32> beta = 0;
    bit<32> both = 0;
    bit<32> distance = 0;
    bit<32> before = 0;
    bit<32> change = 0;
    bit<32> probability = 0;
    bit<32> one = 0;
    bit<32> other = 0;
    bit<32> larger = 0;
    bit<32> half = 0;
    bit<32> number = 0;
    bit<32> excess = 0;
    bit<1> long = 0;

    apply {
        // BMv2 has microseconds.
        dequeued = standard_metadata.egress_global_timestamp * 1000;
        enqueued = dequeued - (bit<48>)standard_metadata.deq_timedelta * 1000;
        if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            sojourn = dequeued[31:0] - enqueued[31:0];
            // The delay, in units of 1024 ns. It is bounded in nanoseconds, so that a hash unit shifts the units once, to where each is needed.
            capped = sojourn < 32w0x7fffff ? sojourn : 32w0x7fffff;
            delay = (bit<32>)capped[22:10];
            // Whether an update is due.
            // start_update
            @atomic {
                bit<32> word;
                last_update.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                bool condition_0 = dequeued[41:10] - word >= 32w122;
                if (condition_0) {
                    word = dequeued[41:10];
                }
                last_update.write((bit<32>)standard_metadata.egress_port[6:0], word);
                due = condition_0 ? 1w1 : 1w0;
            }
            // The change of p': ((delay - target) << alpha) + ((delay - delay before) << beta).
            near = sojourn < 32w0xfffff ? sojourn : 32w0xfffff;
            alpha = (bit<32>)near[19:10] << 9;
            beta = (bit<32>)capped[22:10] << 17;
            both = alpha + beta;
            distance = both - 32w62464;
            if (due == 1w1) {
                // keep_delay
                @atomic {
                    bit<32> word;
                    last_delay.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                    before = word;
                    word = beta;
                    last_delay.write((bit<32>)standard_metadata.egress_port[6:0], word);
                }
                change = distance - before;
            }
            // change_probability
            @atomic {
                bit<32> word;
                base_probability.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                word = word ^ 32w0x80000000;
                word = (bit<32>)((int<32>)word |+| (int<32>)change);
                base_probability.write((bit<32>)standard_metadata.egress_port[6:0], word ^ 32w0x80000000);
                probability = word;
            }
            // Two random numbers are both below p' with probability p' squared.
            random(one, 0, 32w0xffffffff);
            random(other, 0, 32w0xffffffff);
            larger = one > other ? one : other;
            half = one >> 1;
            // Flipping the highest bit makes the lowest number in two's complement of zero.
            if (meta.ecn == 2w1) {
                number = half ^ 32w0x80000000;
            } else if (meta.ecn == 2w0 && larger[31:31] == 1w1) {
                number = 32w0x7fffffff;
            } else {
                number = larger ^ 32w0x80000000;
            }
            // The packet is chosen if its number is below p'. Numbers in two's complement begin at the lowest, as p' does.
            excess = (bit<32>)((int<32>)probability |-| (int<32>)number);
            if ((probability[31:29] == 3w4 && delay[12:0] >= 13w91) || (probability[31:29] != 3w4 && delay[12:0] >= 13w30)) {
                long = 1w1;
            }
            if (excess != 32w0 && excess[31:31] == 1w0 && long == 1w1) {
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
