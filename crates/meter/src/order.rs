//! Whether packets overtake one another: then there is more than one queue.

use queuescope_wire::Nanos;

/// Watches the order of departure. A packet was overtaken if one that came after it left before it; in a FIFO none ever is. What
/// came or left at the same time is in no order.
#[derive(Debug, Clone)]
pub struct Overtaking {
    /// Arrivals that are no further apart are in no order: clocks are no better.
    tolerance: Nanos,
    /// The latest arrival of what left before `at`, and of what left then.
    before: Nanos,
    then: Nanos,
    at: Nanos,
    overtaken: u64,
}

impl Overtaking {
    /// Nothing has left yet.
    pub fn new(tolerance: Nanos) -> Self {
        Self { tolerance, before: Nanos::ZERO, then: Nanos::ZERO, at: Nanos::ZERO, overtaken: 0 }
    }

    /// A packet left: by how much the latest of those that overtook it came after it, if one did. Of a packet that is told too late,
    /// after others that left later, nothing is known.
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

    /// How many packets were overtaken.
    pub fn overtaken(&self) -> u64 {
        self.overtaken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Packets of queues that each send a packet in its time, with a gap before each and what it takes; in the order of departure, by
    /// when they came and left.
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
        /// Of each packet it is known whether and by how much it was overtaken, as if all were looked at together.
        #[test]
        fn what_is_overtaken_is_found_and_nothing_else(
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

        /// In a FIFO nothing is overtaken: not where times are equal, and not where reports come in another order.
        #[test]
        fn in_a_fifo_nothing_is_overtaken(queue in queue(), late in prop::collection::vec(0..4usize, 60)) {
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
