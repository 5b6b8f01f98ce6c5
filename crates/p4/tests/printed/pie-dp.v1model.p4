// pie-dp: PIE in the data plane, with shifts for products.
// After Kunze et al., Tofino + P4, IM 2021, section VI.C (PIE_DP).
// The packet generator sends a packet to each port every 117 µs.

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
    bit<1> generated;
}

parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x88b5: parse_generated;
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
    state parse_generated {
        meta.generated = 1;
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
    // The delay of the last packet, in units of 1024 ns.
    register<bit<16>>(128) last_delay;
    // The delay that the last generated packet read.
    register<bit<16>>(128) sampled_delay;
    // The drop probability, in units of 2^-32.
    register<bit<32>>(128) drop_probability;
    // The random number that was drawn for the last packet.
    register<bit<32>>(128) last_random;
    bit<48> enqueued = 0;
    bit<48> dequeued = 0;
    bit<32> amount = 0;
    bit<16> delay = 0;
    bit<16> before = 0;
    bit<16> above = 0;
    bit<16> below = 0;
    bit<32> alpha = 0;
    bit<16> growth = 0;
    bit<16> decline = 0;
    bit<32> beta = 0;
    bit<32> down = 0;
    bit<32> drawn_here = 0;
    bit<32> sojourn = 0;
    bit<32> drawn = 0;
    bit<1> chosen = 0;

    apply {
        // BMv2 has microseconds.
        dequeued = standard_metadata.egress_global_timestamp * 1000;
        enqueued = dequeued - (bit<48>)standard_metadata.deq_timedelta * 1000;
        if (meta.generated == 1 || hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            if (meta.generated == 1w1) {
                // A generated packet changes the probability.
                // read_delay
                @atomic {
                    bit<16> word;
                    last_delay.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                    delay = word;
                    last_delay.write((bit<32>)standard_metadata.egress_port[6:0], word);
                }
                // keep_delay
                @atomic {
                    bit<16> word;
                    sampled_delay.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                    before = word;
                    word = delay;
                    sampled_delay.write((bit<32>)standard_metadata.egress_port[6:0], word);
                }
                // The register's unit of 1024 ns counts as a microsecond.
                above = delay |-| 16w125;
                below = 16w125 |-| delay;
                if (below == 16w0) {
                    alpha = (bit<32>)above << 9;
                } else {
                    alpha = (bit<32>)below << 9;
                }
                growth = delay |-| before;
                decline = before |-| delay;
                if (decline == 16w0) {
                    beta = (bit<32>)growth << 19;
                } else {
                    beta = (bit<32>)decline << 19;
                }
                // If the signs differ, the larger decides, by what it has more.
                if (below == 16w0) {
                    if (decline == 16w0) {
                        amount = alpha |+| beta;
                    } else {
                        amount = alpha |-| beta;
                        down = beta |-| alpha;
                    }
                } else if (decline == 16w0) {
                    amount = beta |-| alpha;
                    down = alpha |-| beta;
                } else {
                    down = alpha |+| beta;
                }
                // change_probability
                @atomic {
                    bit<32> word;
                    drop_probability.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                    bool condition_0 = down == 32w0;
                    if (condition_0) {
                        word = word |+| amount;
                    } else {
                        if (!(condition_0)) {
                            word = word |-| down;
                        }
                    }
                    drop_probability.write((bit<32>)standard_metadata.egress_port[6:0], word);
                }
                random(drawn_here, 0, 32w0xffffffff);
                // keep_random_here
                @atomic {
                    bit<32> word;
                    last_random.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                    word = drawn_here;
                    last_random.write((bit<32>)standard_metadata.egress_port[6:0], word);
                }
                mark_to_drop(standard_metadata);
            } else {
                sojourn = dequeued[31:0] - enqueued[31:0];
                // The delay, in units of 1024 ns.
                // store_delay
                @atomic {
                    bit<16> word;
                    last_delay.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                    word = sojourn[25:10];
                    last_delay.write((bit<32>)standard_metadata.egress_port[6:0], word);
                }
                // One access returns the number that was drawn before, and stores the new one.
                random(drawn, 0, 32w0xffffffff);
                // keep_random
                @atomic {
                    bit<32> word;
                    last_random.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                    amount = word;
                    word = drawn;
                    last_random.write((bit<32>)standard_metadata.egress_port[6:0], word);
                }
                // The register's unit compares: a gateway would need the difference first.
                // compare_probability
                @atomic {
                    bit<32> word;
                    drop_probability.read(word, (bit<32>)standard_metadata.egress_port[6:0]);
                    bool condition_0 = word > amount;
                    drop_probability.write((bit<32>)standard_metadata.egress_port[6:0], word);
                    chosen = condition_0 ? 1w1 : 1w0;
                }
                if (chosen == 1w1) {
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
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
    }
}

V1Switch(MainParser(), MainVerify(), MainIngress(), MainEgress(), MainCompute(), MainDeparser()) main;
