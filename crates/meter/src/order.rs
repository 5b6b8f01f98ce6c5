//! Whether packets overtake one another, which means that there is more than one queue.

use queuescope_wire::Nanos;

/// Observes the order of departures. A packet was overtaken if one that came after it left before it; in a FIFO queue this never happens.
/// Arrivals or departures at the same time have no order.
#[derive(Debug, Clone)]
pub struct Overtaking {
    /// Arrivals that are no further apart than this have no order, because clocks are not more accurate.
    tolerance: Nanos,
    /// The latest arrival among departures before `at`, and among departures at `at`.
    before: Nanos,
    then: Nanos,
    at: Nanos,
    overtaken: u64,
}

impl Overtaking {
    /// Creates an observer without departures.
    pub fn new(tolerance: Nanos) -> Self {
        Self { tolerance, before: Nanos::ZERO, then: Nanos::ZERO, at: Nanos::ZERO, overtaken: 0 }
    }

    /// A packet left. If it was overtaken, returns by how much the latest packet that overtook it came after it. For a packet that is
    /// reported too late, after others that left later, the result is none.
    #[inline]
    pub fn departed(&mut self, enqueued: Nanos, dequeued: Nanos) -> Option<Nanos> {
        if dequeued < self.at {
            return None;
        }
        if dequeued > self.at {
            self.before = self.before.max(self.then);
            self.at = dequeued;
        }
        self.then = self.then.max(enqueued);
        let by = self.before.saturating_sub(enqueued);
        let is_overtaken = by > self.tolerance;
        self.overtaken += u64::from(is_overtaken);
        is_overtaken.then_some(by)
    }

    /// The number of packets that were overtaken.
    pub fn overtaken(&self) -> u64 {
        self.overtaken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Packets of queues that each send one packet at a time, from the gap before each packet and its transmission time; the arrivals and
    /// departures, in the order of departure.
    fn schedule(queues: &[Vec<(u64, u64)>]) -> Vec<(u64, u64)> {
        let mut packets = Vec::new();
        for queue in queues {
            let (mut now, mut free) = (0, 0);
            for (gap, time) in queue {
                now += gap;
                let left = free.max(now);
                free = left + time;
                packets.push((now, left));
            }
        }
        packets.sort_by_key(|(_, left)| *left);
        packets
    }

    fn queue() -> impl Strategy<Value = Vec<(u64, u64)>> {
        prop::collection::vec((0..6u64, 0..6u64), 0..60)
    }

    proptest! {
        /// Each packet's result must match a comparison with all other packets.
        #[test]
        fn exactly_the_overtaken_packets_are_found(
            queues in prop::collection::vec(queue(), 1..4), tolerance in 0..8u64
        ) {
            let packets = schedule(&queues);
            let mut order = Overtaking::new(Nanos(tolerance));
            let mut overtaken = 0;
            for (came, left) in &packets {
                let later = packets.iter().filter(|other| other.1 < *left).map(|other| other.0.saturating_sub(*came)).max();
                let by = later.filter(|by| *by > tolerance).map(Nanos);
                overtaken += u64::from(by.is_some());
                prop_assert_eq!(order.departed(Nanos(*came), Nanos(*left)), by);
            }
            prop_assert_eq!(order.overtaken(), overtaken);
        }

        /// In a FIFO queue no packet is overtaken, even with equal times, and with reports in another order.
        #[test]
        fn in_a_fifo_no_packet_is_overtaken(queue in queue(), late in prop::collection::vec(0..4usize, 60)) {
            let packets = schedule(&[queue]);
            let mut reports: Vec<_> = packets.iter().zip(&late).enumerate().map(|(n, (packet, late))| (n + late, *packet)).collect();
            reports.sort_by_key(|(place, _)| *place);
            let mut order = Overtaking::new(Nanos::ZERO);
            for (_, (came, left)) in reports {
                prop_assert_eq!(order.departed(Nanos(came), Nanos(left)), None);
            }
        }
    }
}
