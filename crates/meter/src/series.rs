//! Queue depth over time by flow, for a picture of bounded size.
//!
//! A packet of `s` bytes that waited from `a` to `d` adds `s` to the depth over `[a, d)`. Time is divided into buckets of one length; when
//! there are too many, neighbours are joined and the length doubles. So the area under the curve is exact at any length, and so is a
//! flow's part of it while the flow is among the heaviest of its bucket.

use hashbrown::HashMap;
use queuescope_wire::Nanos;
use std::hash::Hash;

/// Queue depth over time, filled from departures in any order.
#[derive(Debug)]
pub struct DepthSeries<K> {
    start: Nanos,
    width: u64,
    most: usize,
    buckets: Vec<Bucket<K>>,
}

/// Queue depth over time, ready to be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture<K> {
    /// The start of the first bucket.
    pub start: Nanos,
    /// The length of a bucket.
    pub width: Nanos,
    /// The mean depth in each bucket, bytes.
    pub mean: Vec<f64>,
    /// The longest sojourn time of the packets that came in each bucket.
    pub peak_delay: Vec<Nanos>,
    /// Drops in each bucket.
    pub drops: Vec<u64>,
    /// The parts of the heaviest flows.
    pub parts: Vec<Part<K>>,
}

/// One flow's part of a picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Part<K> {
    /// The flow.
    pub key: K,
    /// The mean bytes that it had in the queue, for each bucket.
    pub mean: Vec<f64>,
}

#[derive(Debug)]
struct Bucket<K> {
    /// Byte-nanoseconds of all flows.
    area: f64,
    flows: HashMap<K, f64, foldhash::fast::FixedState>,
    peak_delay: Nanos,
    drops: u64,
}

/// Half the largest number of flows in a bucket.
const FLOWS_KEPT: usize = 24;

/// The largest number of buckets that a packet's sojourn time is spread over; otherwise buckets are made longer.
const WIDEST_SPREAD: u64 = 32;

impl<K: Eq + Hash + Clone + Ord> DepthSeries<K> {
    /// Creates an empty series from `start`, with at most `most` buckets.
    pub fn new(start: Nanos, most: usize) -> Self {
        Self { start, width: 1_024, most: most.max(2), buckets: Vec::new() }
    }

    /// A packet left. The part of its sojourn time before the start of the series is not shown.
    pub fn departed(&mut self, key: &K, size: u32, enqueued: Nanos, dequeued: Nanos) {
        let (from, to) = (self.offset(enqueued), self.offset(dequeued));
        while (to - from) / self.width > WIDEST_SPREAD {
            self.widen();
        }
        self.reach(to);
        let first = self.reach(from);
        let sojourn = dequeued.saturating_sub(enqueued);
        self.buckets[first].peak_delay = self.buckets[first].peak_delay.max(sojourn);
        let mut from = from;
        while from < to {
            let index = (from / self.width) as usize;
            let end = (from - from % self.width + self.width).min(to);
            self.buckets[index].add(key, f64::from(size) * (end - from) as f64);
            from = end;
        }
    }

    /// Packets were dropped.
    pub fn dropped(&mut self, now: Nanos, packets: u64) {
        let index = self.reach(self.offset(now));
        self.buckets[index].drops += packets;
    }

    /// The picture, with the parts of the `most` heaviest flows.
    pub fn finish(self, most: usize) -> Picture<K> {
        let width = self.width as f64;
        let mut sums = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0));
        for bucket in &self.buckets {
            for (key, area) in &bucket.flows {
                *sums.entry(key).or_insert(0.0) += area;
            }
        }
        let mut heaviest: Vec<(&K, f64)> = sums.into_iter().collect();
        heaviest.sort_unstable_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| a.cmp(b)));
        heaviest.truncate(most);
        let part = |key: &K| Part {
            key: key.clone(),
            mean: self.buckets.iter().map(|bucket| bucket.flows.get(key).map_or(0.0, |area| area / width)).collect(),
        };
        Picture {
            start: self.start,
            width: Nanos(self.width),
            mean: self.buckets.iter().map(|bucket| bucket.area / width).collect(),
            peak_delay: self.buckets.iter().map(|bucket| bucket.peak_delay).collect(),
            drops: self.buckets.iter().map(|bucket| bucket.drops).collect(),
            parts: heaviest.iter().map(|(key, _)| part(key)).collect(),
        }
    }

    fn offset(&self, time: Nanos) -> u64 {
        time.saturating_sub(self.start).0
    }

    /// The index of the bucket at an offset from the start, which is created if needed.
    fn reach(&mut self, offset: u64) -> usize {
        while offset / self.width >= self.most as u64 {
            self.widen();
        }
        let index = (offset / self.width) as usize;
        if self.buckets.len() <= index {
            self.buckets.resize_with(index + 1, Bucket::new);
        }
        index
    }

    fn widen(&mut self) {
        self.width *= 2;
        let old = std::mem::take(&mut self.buckets);
        let mut old = old.into_iter();
        while let Some(mut bucket) = old.next() {
            if let Some(second) = old.next() {
                bucket.join(second);
            }
            self.buckets.push(bucket);
        }
    }
}

impl<K: Eq + Hash + Clone + Ord> Bucket<K> {
    fn new() -> Self {
        let flows = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0));
        Self { area: 0.0, flows, peak_delay: Nanos::ZERO, drops: 0 }
    }

    fn add(&mut self, key: &K, area: f64) {
        self.area += area;
        self.part(key, area);
    }

    fn join(&mut self, other: Self) {
        self.area += other.area;
        self.peak_delay = self.peak_delay.max(other.peak_delay);
        self.drops += other.drops;
        let mut parts: Vec<_> = other.flows.into_iter().collect();
        parts.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (key, area) in parts {
            self.part(&key, area);
        }
    }

    fn part(&mut self, key: &K, area: f64) {
        match self.flows.get_mut(key) {
            Some(sum) => *sum += area,
            None => {
                self.flows.insert(key.clone(), area);
                if self.flows.len() >= 2 * FLOWS_KEPT {
                    self.prune();
                }
            }
        }
    }

    /// Keeps the heaviest flows; the others remain only in `area`.
    fn prune(&mut self) {
        let mut parts: Vec<_> = self.flows.drain().collect();
        parts.sort_unstable_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| a.cmp(b)));
        parts.truncate(FLOWS_KEPT);
        self.flows.extend(parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn depth_is_the_sum_of_waiting_packets() {
        let mut series = DepthSeries::new(Nanos(1_000), 8);
        series.departed(&'a', 100, Nanos(1_000), Nanos(1_000 + 1_024));
        series.departed(&'b', 50, Nanos(1_000 + 512), Nanos(1_000 + 1_536));
        series.dropped(Nanos(1_000 + 1_100), 1);
        let picture = series.finish(8);
        assert_eq!(picture.mean, [125.0, 25.0]);
        assert_eq!(picture.parts[0], Part { key: 'a', mean: vec![100.0, 0.0] });
        assert_eq!(picture.parts[1], Part { key: 'b', mean: vec![25.0, 25.0] });
        assert_eq!(picture.peak_delay, [Nanos(1_024), Nanos(0)]);
        assert_eq!(picture.drops, [0, 1]);
    }

    proptest! {
        /// However often buckets are joined, the area is the sum of size times sojourn time, for all flows and for each.
        #[test]
        fn joining_buckets_keeps_the_area(
            waits in prop::collection::vec((0..6u8, 1..1500u32, 0..1_000_000_000u64, 0..10_000_000u64), 1..100)
        ) {
            let mut series = DepthSeries::new(Nanos::ZERO, 16);
            let mut truth = std::collections::BTreeMap::<u8, f64>::new();
            for (flow, size, enqueued, sojourn) in &waits {
                series.departed(flow, *size, Nanos(*enqueued), Nanos(enqueued + sojourn));
                *truth.entry(*flow).or_default() += f64::from(*size) * *sojourn as f64;
            }
            let picture = series.finish(6);
            prop_assert!(picture.mean.len() <= 16);
            let area = |mean: &[f64]| mean.iter().sum::<f64>() * picture.width.0 as f64;
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.max(1.0);
            prop_assert!(close(area(&picture.mean), truth.values().sum()));
            for part in &picture.parts {
                prop_assert!(close(area(&part.mean), truth[&part.key]));
            }
            let longest = waits.iter().map(|(.., sojourn)| *sojourn).max();
            prop_assert_eq!(picture.peak_delay.iter().max().map(|delay| delay.0), longest);
        }
    }
}
