//! The flows that waited in the queue in the last second, and in the one before.

use super::history::{SECOND, slice_of};
use queuescope_analysis::Show;
use queuescope_report::model::Owner;
use queuescope_wire::{FlowId, FlowKey, FlowTable, Granularity, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of flows.
const FLOWS: usize = 2048;
/// The maximum number of remembered digests; the kernel's flows may be finer than the view's.
const DIGESTS: usize = 4 * FLOWS;
/// The number of slices that are kept: two seconds, and the current slice.
const KEPT: u64 = 2 * SECOND + 2;

/// The flows of the last two seconds.
pub struct FlowsNow {
    granularity: Granularity,
    /// The flows that are listed; all if none.
    show: Option<Show>,
    table: FlowTable<FlowKey>,
    /// Indexed by flow id.
    recent: Vec<RecentSlices>,
    all: RecentSlices,
    /// Flows by the kernel's digests.
    by_digest: BTreeMap<u64, FlowId>,
}

/// A flow over the last second.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRow {
    pub name: String,
    /// The owner, if it is known.
    pub owner: Option<Owner>,
    /// Bytes in the last second.
    pub bytes: u64,
    /// Bytes in the second before.
    pub before: u64,
    /// The longest sojourn time in the last second.
    pub delay: Nanos,
    /// The probability that a packet of the flow is chosen to be acted on, if the flow is acted on.
    pub chosen: Option<f64>,
    /// Whether `--show` lists the flow.
    pub is_listed: bool,
}

/// Bytes and the longest sojourn time of the last slices.
#[derive(Debug, Clone, Default)]
struct RecentSlices {
    /// The slice of the last packet.
    last: u64,
    bytes: [u64; KEPT as usize],
    delay: [u64; KEPT as usize],
}

impl FlowsNow {
    pub fn new(granularity: Granularity, show: Option<Show>) -> Self {
        let table = FlowTable::with_limit(FLOWS);
        let show = show.filter(|show| show.applies(granularity));
        Self { granularity, show, table, recent: Vec::new(), all: RecentSlices::default(), by_digest: BTreeMap::new() }
    }

    /// Counts a packet. The flow's id is valid until the next packet.
    pub fn departed(&mut self, key: &FlowKey, bytes: u64, delay: Nanos, at: Nanos) -> FlowId {
        let key = self.granularity.project(key);
        let (flow, is_new) = self.table.intern(&key, key.digest(), at);
        if self.recent.len() <= flow.index() {
            self.recent.resize_with(flow.index() + 1, RecentSlices::default);
        }
        let recent = &mut self.recent[flow.index()];
        if is_new {
            *recent = RecentSlices::default();
        }
        recent.add(slice_of(at), bytes, delay);
        self.all.add(slice_of(at), bytes, delay);
        if is_new {
            // Remove idle flows, or all others if none is idle; the totals still count them.
            let mut gone = BTreeSet::new();
            let times = [at.saturating_sub(Nanos(2_000_000_000)), at];
            self.table.shrink(FLOWS, times, |flow, _| _ = gone.insert(flow));
            if !gone.is_empty() {
                // The next flow may get the same id.
                self.by_digest.retain(|_, flow| !gone.contains(flow));
            }
        }
        flow
    }

    /// Remembers the kernel's digest of a flow, or of a part of it.
    pub fn known_by(&mut self, digest: u64, flow: FlowId) {
        // Digests of active flows come back with their next packets.
        if self.by_digest.len() >= DIGESTS {
            self.by_digest.clear();
        }
        self.by_digest.insert(digest, flow);
    }

    /// The flows of the last two seconds, and the bytes of all flows in the last one. `chosen` has the kernel's probabilities; a flow
    /// with several digests has the highest of theirs.
    pub fn rows(&self, now: Nanos, owners: &BTreeMap<FlowKey, Owner>, chosen: &[(u64, f64)]) -> (Vec<FlowRow>, u64) {
        let end = slice_of(now);
        let mut probabilities = BTreeMap::<FlowId, f64>::new();
        for (flow, probability) in chosen.iter().filter_map(|(digest, p)| Some((self.by_digest.get(digest)?, p))) {
            let highest = probabilities.entry(*flow).or_default();
            *highest = highest.max(*probability);
        }
        let rows = self.table.ids().filter_map(|flow| {
            let (bytes, before, delay) = self.recent[flow.index()].seconds(end);
            let key = self.table.key(flow);
            let name = || self.granularity.name(key);
            let chosen = probabilities.get(&flow).copied();
            (bytes + before > 0).then(|| FlowRow {
                name: name(),
                owner: owners.get(key).cloned(),
                bytes,
                before,
                delay,
                chosen,
                is_listed: self.show.as_ref().is_none_or(|show| show.lists(self.granularity, key)),
            })
        });
        (rows.collect(), self.all.seconds(end).0)
    }
}

impl FlowRow {
    /// Whether the name or the owner contains `wanted`, which is in lower case.
    pub fn has(&self, wanted: &str) -> bool {
        let has = |text: String| text.to_lowercase().contains(wanted);
        has(self.name.clone()) || self.owner.as_ref().is_some_and(|owner| has(owner.to_string()))
    }

    /// The growth since the second before, in thousandths; the maximum for a new flow.
    pub fn growth(&self) -> u64 {
        (self.bytes * 1000).checked_div(self.before).unwrap_or(u64::MAX)
    }
}

impl RecentSlices {
    fn add(&mut self, slice: u64, bytes: u64, delay: Nanos) {
        // Clear the slices that were skipped.
        for passed in (self.last + 1..=slice).rev().take(KEPT as usize) {
            self.bytes[(passed % KEPT) as usize] = 0;
            self.delay[(passed % KEPT) as usize] = 0;
        }
        self.last = self.last.max(slice);
        if slice + KEPT > self.last {
            let place = (slice % KEPT) as usize;
            self.bytes[place] += bytes;
            self.delay[place] = self.delay[place].max(delay.0);
        }
    }

    /// The bytes in the second before slice `end`, the bytes in the second before that, and the longest sojourn time in the former.
    fn seconds(&self, end: u64) -> (u64, u64, Nanos) {
        let is_kept = |slice: &u64| *slice <= self.last && slice + KEPT > self.last;
        let places = |from: u64, to: u64| (from..to).filter(is_kept).map(|slice| (slice % KEPT) as usize);
        let (middle, begin) = (end.saturating_sub(SECOND), end.saturating_sub(2 * SECOND));
        let bytes = |from, to| places(from, to).map(|place| self.bytes[place]).sum();
        let delay = places(middle, end).map(|place| self.delay[place]).max();
        (bytes(middle, end), bytes(begin, middle), Nanos(delay.unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Compares with a list of all packets; they may arrive slightly out of order.
        #[test]
        fn seconds_match_a_list_of_all_packets(
            steps in prop::collection::vec((0u64..40, 0u64..3, 1u64..2000, 1u64..5000), 1..60),
            later in 0u64..40,
        ) {
            let (mut recent, mut packets, mut now) = (RecentSlices::default(), Vec::new(), 1000);
            for (step, late, bytes, delay) in steps {
                now += step;
                // The slices in question are never older than the ones that are kept.
                let slice = now - late.min(1);
                recent.add(slice, bytes, Nanos(delay));
                packets.push((slice, bytes, delay));
            }
            let end = now + 1 + later;
            let of = |from: u64, to: u64| packets.iter().filter(move |packet| (from..to).contains(&packet.0));
            let sum = |from, to| of(from, to).map(|packet| packet.1).sum::<u64>();
            let (middle, begin) = (end - SECOND, end - 2 * SECOND);
            let delay = of(middle, end).map(|packet| packet.2).max().unwrap_or(0);
            prop_assert_eq!(recent.seconds(end), (sum(middle, end), sum(begin, middle), Nanos(delay)));
        }
    }

    #[test]
    fn flows_beyond_the_maximum_count_in_the_total() {
        let mut flows = FlowsNow::new(Granularity::FiveTuple, None);
        let at = Nanos(10_000_000_000);
        for number in 0..5000u32 {
            let key = FlowKey { src_port: number as u16, dst_port: 9, ..FlowKey::default() };
            flows.departed(&key, 100, Nanos(1), Nanos(at.0 + u64::from(number)));
        }
        let (rows, total) = flows.rows(Nanos(at.0 + 100_000_000), &BTreeMap::new(), &[]);
        assert!(rows.len() <= FLOWS, "{}", rows.len());
        assert_eq!(total, 500_000);
    }
}
