//! Words that mean something in every expression.

/// Words between and before tests; in any case of letters.
const OPERATORS: &[&str] = &["and", "or", "not", "in", "like", "true", "false"];

/// Words with which a test of pcap's begins, other than those that are names of attributes too.
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

/// Whether a word can name nothing else.
pub(crate) fn is_reserved(word: &str) -> bool {
    is_operator(word) || PCAP.contains(&word)
}

/// All words of pcap's, for the nearest one.
pub(super) fn pcap_words<'a>() -> impl Iterator<Item = &'a str> {
    PCAP.iter().copied()
}
