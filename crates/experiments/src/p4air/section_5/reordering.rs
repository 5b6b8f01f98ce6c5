//! Counts packets that overtake one another on their way.

use queuescope_queue::Headers;
use queuescope_sim::{InFlight, Observer, number};
use queuescope_wire::{FlowId, Nanos, PacketId};
use std::collections::BTreeMap;

/// Counts data that arrives after a packet of its flow that was sent later (RFC 4737, with the order of sending: a
/// retransmission is a later packet, and a loss is no reordering).
#[derive(Debug)]
pub struct Reordering {
    /// Counts from here on.
    since: Nanos,
    /// The last sent packet of each flow that has arrived.
    latest: BTreeMap<FlowId, u64>,
    arrived: u64,
    late: u64,
}

impl Reordering {
    pub fn new(since: Nanos) -> Self {
        Self { since, latest: BTreeMap::new(), arrived: 0, late: 0 }
    }

    /// The percentage of packets that came late.
    pub fn percent(&self) -> f64 {
        100.0 * self.late as f64 / self.arrived.max(1) as f64
    }

    fn arrive(&mut self, flow: FlowId, number: u64, now: Nanos) {
        let latest = self.latest.entry(flow).or_insert(number);
        let is_late = number < *latest;
        *latest = number.max(*latest);
        if now >= self.since {
            self.arrived += 1;
            self.late += u64::from(is_late);
        }
    }
}

impl Observer for Reordering {
    fn delivered(&mut self, id: PacketId, packet: &InFlight, headers: &Headers, now: Nanos) {
        if headers.tcp.is_some_and(|tcp| tcp.length > 0) {
            self.arrive(packet.flow, number(id), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_late_if_one_of_its_flow_that_was_sent_later_has_arrived() {
        let mut reordering = Reordering::new(Nanos(10));
        // Before the warm-up ends, nothing counts; the order does.
        for (flow, number, now) in
            [(1, 5, 1), (2, 4, 11), (1, 3, 12), (1, 6, 13), (2, 9, 14), (2, 8, 15), (2, 7, 16), (1, 10, 17)]
        {
            reordering.arrive(FlowId(flow), number, Nanos(now));
        }
        assert_eq!((reordering.arrived, reordering.late), (7, 3));
        assert_eq!(Reordering::new(Nanos(0)).percent(), 0.0);
    }
}
