//! The parts of programs that parse, push and remove activity headers.

/// The header with a packet's activity, between that of Ethernet and what that carries.
pub(super) const ACTIVITY_HEADER: &str = "\
const bit<16> ETHERTYPE_ACTIVITY = 0x88b5;

// The activity in two's complement, with 8 fraction bits, and what is behind this header.
header activity_h {
bit<16> activity;
bit<16> ether_type;
}
";
pub(super) const PUSH: &str = "\
hdr.activity.setValid();
hdr.activity.activity = VALUE;
hdr.activity.ether_type = CARRIER.ether_type;
CARRIER.ether_type = ETHERTYPE_ACTIVITY;";
/// What the parser would find of it.
pub(super) const FOR_EGRESS: &str = "\nmeta.has_activity = 1;\nmeta.activity = VALUE;";
pub(super) const STRIP: &str = "\
CARRIER.ether_type = hdr.activity.ether_type;
hdr.activity.setInvalid();";

/// The parts of a parser that reads activity headers: fields of the metadata, the header, the selection, the states, the place in the deparser, and
/// the selection behind a VLAN tag, where no activity header may be.
pub(super) const ACTIVITY: [&str; 6] = [
    "bit<1> has_activity;\nbit<1> malformed;\nbit<16> activity;\n",
    "activity_h activity;\n",
    "ETHERTYPE_ACTIVITY: parse_activity;\n",
    "state parse_activity {\n// A header that is cut short, or followed by another one, leaves this as it is.\nmeta.malformed = 1;\npacket.extract(hdr.activity);\n\
     transition select(hdr.activity.ether_type) {\nETHERTYPE_ACTIVITY: accept;\ndefault: parse_carried;\n}\n}\n\
     state parse_nested {\nmeta.malformed = 1;\ntransition accept;\n}\n\
     state parse_carried {\nmeta.malformed = 0;\nmeta.has_activity = 1;\nmeta.activity = hdr.activity.activity;\nCARRIED\n}\n",
    "packet.emit(hdr.activity);\n",
    "ETHERTYPE_ACTIVITY: parse_nested;\n",
];

/// The same for Tofino, whose parser drops a packet with a header that is cut short.
pub(super) const ACTIVITY_OF_TNA: [&str; 6] = [
    ACTIVITY[0],
    ACTIVITY[1],
    ACTIVITY[2],
    "state parse_activity {\npacket.extract(hdr.activity);\ntransition select(hdr.activity.ether_type) {\n\
     ETHERTYPE_ACTIVITY: parse_nested;\ndefault: parse_carried;\n}\n}\n\
     state parse_nested {\nmeta.malformed = 1;\ntransition accept;\n}\n\
     state parse_carried {\nmeta.has_activity = 1;\nmeta.activity = hdr.activity.activity;\nCARRIED\n}\n",
    ACTIVITY[4],
    ACTIVITY[5],
];

/// Where the parser goes on behind an activity header.
pub(super) const CARRIED: &str = "\
transition select(hdr.activity.ether_type) {
ETHERTYPE_VLAN: parse_vlan;
ETHERTYPE_IPV4: parse_ipv4;
ETHERTYPE_IPV6: parse_ipv6;
default: accept;
}";
