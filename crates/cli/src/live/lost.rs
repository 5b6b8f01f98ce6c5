//! Which burst lost what the qdisc dropped.

use queuescope_live::Slice;
use queuescope_report::model::Burst;
use queuescope_wire::Nanos;
use std::collections::BTreeMap;

/// Bursts whose drops are remembered for the report.
const BURSTS: usize = 1 << 16;

/// Drops by slice of time, as the kernel counts them: each is of the first burst in that slice.
#[derive(Debug, Default)]
pub struct Lost {
    /// What is a burst's already, by the beginning of the slice and the queue.
    taken: BTreeMap<(Nanos, u32), u64>,
    /// By the number of the burst.
    of: BTreeMap<u64, u64>,
}

impl Lost {
    /// Says of bursts that ended what they lost. Slices are those of all queues, and times of bursts count from `origin`.
    pub fn bursts(&mut self, bursts: &mut [Burst], slices: &[(u32, Slice)], origin: Nanos) {
        for burst in bursts.iter_mut() {
            let start = origin.saturating_add(Nanos(burst.start_ns));
            let end = start.saturating_add(Nanos(burst.length_ns));
            for (queue, slice) in slices {
                if slice.drops > 0 && slice.start <= end && slice.start.saturating_add(Slice::LENGTH) > start {
                    let taken = self.taken.entry((slice.start, *queue)).or_default();
                    burst.drops += slice.drops.saturating_sub(*taken);
                    *taken = slice.drops;
                }
            }
            if burst.drops > 0 && self.of.len() < BURSTS {
                self.of.insert(burst.number, burst.drops);
            }
        }
        // The kernel forgets as soon.
        if let Some(first) = slices.iter().map(|(_, slice)| slice.start).min() {
            self.taken.retain(|(start, _), _| *start >= first);
        }
    }

    /// The same of bursts that were told before.
    pub fn again(&self, bursts: &mut [Burst]) {
        bursts.iter_mut().for_each(|burst| burst.drops = self.of.get(&burst.number).copied().unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(number: u64, drops: u64) -> Slice {
        Slice {
            start: Nanos(number * Slice::LENGTH.0),
            packets: 1,
            bytes: 1,
            congested: 1,
            delay_sum: Nanos(1),
            delay_max: Nanos(1),
            backlog_max: 1,
            length_max: 1,
            drops,
        }
    }

    fn burst(number: u64, start: u64, length: u64) -> Burst {
        Burst {
            number,
            start_ns: start,
            length_ns: length,
            peak_delay_ns: 0,
            peak_at_ns: 0,
            peak_depth_bytes: 0,
            peak_depth_packets: 0,
            tau_ns: 0,
            packets_hit: 0,
            packets: 0,
            bytes: 0,
            drops: 0,
            culprits: Vec::new(),
            groups: Vec::new(),
            worst: None,
            series: None,
        }
    }

    #[test]
    fn each_drop_is_of_one_burst() {
        let length = Slice::LENGTH.0;
        let (origin, mut lost) = (Nanos(10 * length), Lost::default());
        // From the slice 10 to 12; in the slice 12 only; in 20.
        let mut bursts = [burst(1, 5, 2 * length), burst(2, 2 * length + 10, 5), burst(3, 10 * length, 5)];
        let slices = [(0, slice(9, 100)), (0, slice(10, 1)), (1, slice(10, 2)), (0, slice(12, 4)), (0, slice(13, 50))];
        lost.bursts(&mut bursts, &slices, origin);
        assert_eq!(bursts.each_ref().map(|burst| burst.drops), [7, 0, 0]);
        // More of a slice is known later, and more slices.
        let mut later = [burst(4, 2 * length + 100, 5), burst(5, 10 * length, 5)];
        lost.bursts(&mut later, &[(0, slice(12, 9)), (0, slice(20, 3))], origin);
        assert_eq!(later.each_ref().map(|burst| burst.drops), [5, 3]);
        let mut told = [burst(1, 0, 0), burst(2, 0, 0), burst(4, 0, 0)];
        lost.again(&mut told);
        assert_eq!(told.map(|burst| burst.drops), [7, 0, 5]);
    }
}
