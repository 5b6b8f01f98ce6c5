//! Words with a meaning in every expression.

/// Words between and before tests; letter case does not matter.
const OPERATORS: &[&str] = &["and", "or", "not", "in", "like", "true", "false"];

/// Words that begin one of pcap's tests, except those that are also names of attributes.
const PCAP: &[&str] = &[
    "arp",
    "broadcast",
    "dst",
    "ether",
    "greater",
    "host",
    "icmp",
    "icmp6",
    "igmp",
    "ip",
    "ip6",
    "less",
    "mask",
    "multicast",
    "net",
    "port",
    "portrange",
    "proto",
    "rarp",
    "sctp",
    "src",
    "tcp",
    "udp",
];

/// Whether a word is an operator or a constant.
pub(crate) fn is_operator(word: &str) -> bool {
    OPERATORS.iter().any(|operator| operator.eq_ignore_ascii_case(word))
}

/// Whether a word is one of pcap's.
pub(crate) fn is_pcap(word: &str) -> bool {
    PCAP.contains(&word) || word == "vlan"
}

/// Whether a word cannot be a name.
pub(crate) fn is_reserved(word: &str) -> bool {
    is_operator(word) || PCAP.contains(&word)
}

/// All words of pcap, to find the nearest one.
pub(super) fn pcap_words<'a>() -> impl Iterator<Item = &'a str> {
    PCAP.iter().copied()
}
