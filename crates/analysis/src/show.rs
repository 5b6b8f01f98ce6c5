//! Chooses the flows that a report lists, by an expression. Shares are still of the whole queue.

use queuescope_ingest::notes::noted;
use queuescope_ingest::{ExpressionError, expression};
use queuescope_log::{Filter, NoAggregates, Schema, departure};
use queuescope_report::model::Skipped;
use queuescope_wire::{
    Backlog, ByteCount, Class, Departure, Ecn, FlowId, FlowKey, Granularity, Nanos, Packet, PacketId, QueueId,
};

/// A filter for the flows that a report lists.
#[derive(Debug, Clone)]
pub struct Show {
    filter: Filter,
    /// The attributes that the expression uses.
    attributes: Vec<&'static str>,
    /// The expression.
    text: String,
}

/// The attributes that an expression about flows can use.
const FLOW_ATTRIBUTES: [&str; 11] = [
    "src_ip",
    "dst_ip",
    "src_mac",
    "dst_mac",
    "src_port",
    "dst_port",
    "vlan",
    "ethertype",
    "protocol",
    "ip_version",
    "dscp",
];

impl Show {
    /// Parses the expression, if there is one.
    ///
    /// # Errors
    /// Fails if the expression is invalid, or if it uses attributes of packets.
    pub fn from_text(text: Option<&str>) -> Result<Option<Self>, ShowError> {
        let Some(text) = text else { return Ok(None) };
        let schema: &'static Schema = departure::schema();
        let expression = expression(schema, text)?;
        let attributes: Vec<_> =
            expression.attributes().into_iter().map(|id| schema.attribute(id).name.as_str()).collect();
        if let Some(name) = attributes.iter().find(|name| !FLOW_ATTRIBUTES.contains(name)) {
            return Err(ShowError::OfPackets { attribute: (*name).to_owned(), known: FLOW_ATTRIBUTES.join(", ") });
        }
        Ok(Some(Self { filter: Filter::new(&expression, schema), attributes, text: text.to_owned() }))
    }

    /// The expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the filter can be applied to flows of a granularity. It cannot if their keys lack an attribute that the
    /// expression uses; then all flows are listed.
    pub fn applies(&self, granularity: Granularity) -> bool {
        self.attributes.iter().all(|name| has_attribute(granularity, name))
    }

    /// A note on granularities whose flows are all listed, because their keys lack attributes that the expression uses.
    pub fn note<'a>(&self, unfiltered: impl Iterator<Item = &'a str>) -> Option<Skipped> {
        let names: Vec<_> = unfiltered.collect();
        let meaning = format!(
            "lists that --show does not filter (by {}), because their flows lack attributes that it uses ({})",
            names.join(", "),
            self.attributes.join(", ")
        );
        noted("show_not_applied", names.len() as u64, &meaning)
    }

    /// Whether a flow is listed. A connection is listed if the expression matches either direction.
    pub fn lists(&self, granularity: Granularity, key: &FlowKey) -> bool {
        let reversed =
            || FlowKey { src: key.dst, dst: key.src, src_port: key.dst_port, dst_port: key.src_port, ..*key };
        self.holds(key) || granularity == Granularity::Connection && self.holds(&reversed())
    }

    fn holds(&self, key: &FlowKey) -> bool {
        let mut record = [0; departure::SIZE];
        departure::fill(&mut record, &NO_PACKET, key);
        self.filter.matches(&record, &NoAggregates)
    }
}

/// Why an expression cannot choose flows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShowError {
    /// The expression is invalid.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// The expression uses an attribute of packets.
    #[error("`{attribute}` differs from packet to packet, so it chooses no flows: use {known}")]
    OfPackets {
        /// The attribute.
        attribute: String,
        /// The attributes that it can use, separated by commas.
        known: String,
    },
}

/// Whether the keys of a granularity have an attribute.
fn has_attribute(granularity: Granularity, name: &str) -> bool {
    match granularity {
        Granularity::FiveTuple | Granularity::Connection => !["vlan", "dscp"].contains(&name),
        Granularity::Pair => ["src_ip", "dst_ip", "src_mac", "dst_mac", "ethertype", "ip_version"].contains(&name),
        Granularity::Source(_) => ["src_ip", "src_mac", "ethertype", "ip_version"].contains(&name),
        Granularity::Destination(_) => ["dst_ip", "dst_mac", "ethertype", "ip_version"].contains(&name),
        Granularity::Dscp => ["dscp", "ethertype", "ip_version"].contains(&name),
        Granularity::Vlan => name == "vlan",
    }
}

/// A departure with no other values than its flow.
const NO_PACKET: Departure = {
    let none = Backlog { packets: 0, bytes: ByteCount(0) };
    Departure {
        packet: Packet { id: PacketId(0), flow: FlowId(0), size: ByteCount(0), class: Class(0), ecn: Ecn::NotEct },
        queue: QueueId(0),
        enqueued: Nanos(0),
        dequeued: Nanos(0),
        backlog_in: none,
        backlog_out: none,
    }
};

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_wire::Family;

    fn show(text: &str) -> Show {
        Show::from_text(Some(text)).expect("it means something").expect("there is one")
    }

    #[test]
    fn a_granularity_is_filtered_if_it_has_the_attributes() {
        let granularities = ["5tuple", "conn", "src-dst", "src/24", "dst", "dscp", "vlan"];
        let applies = |text: &str| {
            let show = show(text);
            granularities.map(|name| show.applies(name.parse().expect("it is one")))
        };
        assert_eq!(applies("udp and dst_port == 10"), [true, true, false, false, false, false, false]);
        assert_eq!(applies("dst_ip == 10.0.0.1"), [true, true, true, false, true, false, false]);
        assert_eq!(applies("dscp == 46"), [false, false, false, false, false, true, false]);
        assert_eq!(applies("vlan == 7"), [false, false, false, false, false, false, true]);
    }

    #[test]
    fn a_connection_is_listed_by_either_direction() {
        let key = FlowKey { src_port: 443, dst_port: 50_000, protocol: 6, family: Family::V4, ..FlowKey::default() };
        let show = show("tcp and dst_port == 443");
        assert!(show.lists(Granularity::Connection, &key) && !show.lists(Granularity::FiveTuple, &key));
    }

    #[test]
    fn attributes_of_packets_are_refused() {
        for text in ["delay > 1ms", "udp and length > 100B", "class == 1", "ecn == 3", "flow == 1"] {
            let error = Show::from_text(Some(text)).expect_err("no flow has that").to_string();
            assert!(error.contains("differs from packet to packet"), "{error}");
        }
    }
}
