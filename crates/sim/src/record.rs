//! Simulated packets as records of the schema `packet`: known header fields, and the telemetry of their path.
//!
//! Switches have the numbers of their nodes, which also appear in the addresses of hosts. The queue of a packet's own
//! host is not telemetry of a switch, and is left out. The packet's class is its DSCP.

use crate::telemetry::Journey;
use queuescope_log::packet::{self, Known, Segment, fill_known, fill_telemetry};
use queuescope_queue::Headers;

/// Makes records of simulated packets.
///
/// ```
/// use queuescope_log::{Schema, packet};
/// use queuescope_sim::{Journey, Records};
///
/// /// Appends a packet of a simulation to records; [`Telemetry`](queuescope_sim::Telemetry) calls it.
/// fn keep(rows: &mut Vec<u8>, records: &mut Records, journey: &Journey<'_>) {
///     if journey.dropped.is_none() {
///         rows.extend_from_slice(records.fill(journey));
///     }
/// }
/// assert_eq!(Schema::packet().record_size(), packet::SIZE);
/// # let _ = (keep as fn(&mut Vec<u8>, &mut Records, &Journey<'_>), Records::default());
/// ```
#[derive(Debug, Clone)]
pub struct Records {
    record: Box<[u8; packet::SIZE]>,
    hops: Vec<packet::Hop>,
}

impl Default for Records {
    fn default() -> Self {
        Self { record: Box::new([0; packet::SIZE]), hops: Vec::new() }
    }
}

impl Records {
    /// The record of a packet at the end of its journey, with telemetry of the switches. A dropped packet also gets a
    /// record; the caller decides whether to use it.
    pub fn fill(&mut self, journey: &Journey<'_>) -> &[u8; packet::SIZE] {
        let Journey { packet, headers, at, .. } = *journey;
        let mut key = packet.key();
        key.dscp = packet.class.0 & 0x3f;
        fill_known(
            &mut self.record,
            &Known { at, length: packet.bytes, key: &key, ecn: packet.ecn, tcp: segment(headers) },
        );
        let source = packet.hosts[0];
        let switches = || journey.hops.iter().filter(|hop| hop.node.0 != source.0);
        self.hops.clear();
        self.hops.extend(switches().map(|hop| packet::Hop {
            switch: hop.node.0,
            queue: u32::try_from(hop.backlog_in.bytes.0).unwrap_or(u32::MAX),
        }));
        let ingress = switches().next().map_or(at, |hop| hop.ingress);
        let egress = switches().next_back().map_or(at, |hop| hop.egress);
        fill_telemetry(&mut self.record, &packet::Telemetry { ingress, egress, hops: &self.hops });
        &self.record
    }
}

/// The record fields of a packet's TCP header, if it has one.
pub fn segment(headers: &Headers) -> Option<Segment> {
    headers.tcp.map(|segment| Segment {
        // Sequence numbers wrap on the wire.
        seq: segment.seq as u32,
        ack: segment.ack as u32,
        flags: segment.flags.bits(),
        words: (segment.header_bytes() / 4) as u8,
        payload: segment.length,
    })
}
