//! The built-in schemas, written as users write theirs.

use super::Schema;
use std::sync::LazyLock;

static PACKET: LazyLock<Schema> = LazyLock::new(|| built_in("packet.toml", include_str!("packet.toml")));
static ETHERNET_TCP: LazyLock<Schema> =
    LazyLock::new(|| built_in("ethernet-tcp.toml", include_str!("ethernet-tcp.toml")));
static DEPARTURE: LazyLock<Schema> = LazyLock::new(|| built_in("departure.toml", include_str!("departure.toml")));
static QUEUED: LazyLock<Schema> = LazyLock::new(|| built_in("queued.toml", &queued_text()));

impl Schema {
    /// A captured frame: all fields of its headers, and telemetry. [`packet`](super::packet) fills its records.
    pub fn packet() -> &'static Self {
        &PACKET
    }

    /// The first 54 bytes of a frame on the wire: Ethernet, IPv4 and TCP without options, exactly as they are.
    pub fn ethernet_tcp() -> &'static Self {
        &ETHERNET_TCP
    }

    /// A packet that left a queue. [`departure`](super::departure) fills its records.
    pub fn departure() -> &'static Self {
        &DEPARTURE
    }

    /// A packet that passed a queue: its headers, as in [`packet`](Self::packet), and what the queue did to it.
    /// [`queued`](super::queued) fills its records.
    pub fn queued() -> &'static Self {
        &QUEUED
    }

    /// The built-in schema of this name: `packet`, `ethernet-tcp`, `departure` or `queued`.
    pub fn built_in(name: &str) -> Option<&'static Self> {
        match name {
            "packet" => Some(Self::packet()),
            "ethernet-tcp" => Some(Self::ethernet_tcp()),
            "departure" => Some(Self::departure()),
            "queued" => Some(Self::queued()),
            _ => None,
        }
    }
}

/// The text of `queued`, with the attributes of `packet` at its marker: headers are described once.
fn queued_text() -> String {
    let (packet, queued) = (include_str!("packet.toml"), include_str!("queued.toml"));
    let attributes = packet.find("[[attribute]]").map_or("", |first| &packet[first..]);
    queued.replacen("# ----\n", attributes, 1)
}

/// Reads a text that is part of the program.
fn built_in(name: &str, text: &str) -> Schema {
    Schema::parse(name, text)
        .unwrap_or_else(|error| panic!("a built-in schema is wrong, which tests rule out\n{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_schemas_are_valid_and_describe_each_attribute() {
        use super::super::{departure, packet, queued};
        let sizes =
            [("packet", packet::SIZE), ("ethernet-tcp", 54), ("departure", departure::SIZE), ("queued", queued::SIZE)];
        for (name, size) in sizes {
            let schema = Schema::built_in(name).expect("it is there");
            assert_eq!((schema.record_size(), schema.doc().is_empty()), (size, false), "{name}");
            for attribute in schema.attributes() {
                assert!(!attribute.doc.is_empty(), "{name}: {} is not described", attribute.name);
            }
        }
        assert_eq!(Schema::built_in("nothing"), None);
    }

    #[test]
    fn queued_begins_as_a_packet_does() {
        let (packet, queued) = (Schema::packet().attributes(), Schema::queued().attributes());
        assert_eq!(packet, &queued[..packet.len()]);
        assert_eq!(Schema::queued().time(), Schema::queued().find("dequeued"));
    }

    #[test]
    fn names_of_the_paper_are_known() {
        let names = [
            "srcIP", "dstIP", "srcPort", "dstPort", "protocol", "ipTTL", "pktSize", "ipTOS", "ecn", "seqNo", "ts",
            "tcpRxWin",
        ];
        for name in names {
            assert!(Schema::packet().find(name).is_some(), "{name}");
        }
        let time = Schema::packet().time().map(|id| Schema::packet().attribute(id).name.as_str());
        assert_eq!(time, Some("ts"));
    }
}
