//! The flows that waited in the queue in the last second, and in the one before.

use super::history::{SECOND, slice_of};
use queuescope_analysis::Show;
use queuescope_report::model::Owner;
use queuescope_wire::{FlowId, FlowKey, FlowTable, Granularity, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// Flows that are told apart.
const FLOWS: usize = 2048;
/// Digests whose flow is remembered: flows of the kernel may be finer.
const DIGESTS: usize = 4 * FLOWS;
/// Two seconds, and the slice that has begun.
const KEPT: u64 = 2 * SECOND + 2;

/// What was told of flows lately.
pub struct FlowsNow {
    granularity: Granularity,
    /// Which flows are listed; all if there is none.
    show: Option<Show>,
    table: FlowTable<FlowKey>,
    /// By flow id.
    lately: Vec<Lately>,
    all: Lately,
    /// Flows by the digests that the kernel knows them by.
    known: BTreeMap<u64, FlowId>,
}

/// A flow in the last second.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRow {
    pub name: String,
    /// Who sends it, if that is known.
    pub owner: Option<Owner>,
    /// Bytes in the last second,
    pub bytes: u64,
    /// and in the one before.
    pub before: u64,
    /// The longest that a packet waited in the last second.
    pub delay: Nanos,
    /// The probability by which a packet of it is chosen to be acted on, if it is.
    pub chosen: Option<f64>,
    /// Whether it is listed.
    pub is_listed: bool,
}

/// Bytes and the longest delay of the last slices.
#[derive(Debug, Clone, Default)]
struct Lately {
    /// The slice of the last packet.
    last: u64,
    bytes: [u64; KEPT as usize],
    delay: [u64; KEPT as usize],
}

impl FlowsNow {
    pub fn new(granularity: Granularity, show: Option<Show>) -> Self {
        let table = FlowTable::with_limit(FLOWS);
        let show = show.filter(|show| show.applies(granularity));
        Self { granularity, show, table, lately: Vec::new(), all: Lately::default(), known: BTreeMap::new() }
    }

    /// Counts a packet; of which flow it is, until another packet comes.
    pub fn departed(&mut self, key: &FlowKey, bytes: u64, delay: Nanos, at: Nanos) -> FlowId {
        let key = self.granularity.project(key);
        let (flow, is_new) = self.table.intern(&key, key.digest(), at);
        if self.lately.len() <= flow.index() {
            self.lately.resize_with(flow.index() + 1, Lately::default);
        }
        let lately = &mut self.lately[flow.index()];
        if is_new {
            *lately = Lately::default();
        }
        lately.add(slice_of(at), bytes, delay);
        self.all.add(slice_of(at), bytes, delay);
        if is_new {
            // Idle ones, or if that is not enough, all others; they still count in the whole.
            let mut gone = BTreeSet::new();
            let times = [at.saturating_sub(Nanos(2_000_000_000)), at];
            self.table.shrink(FLOWS, times, |flow, _| _ = gone.insert(flow));
            if !gone.is_empty() {
                // Another flow may have its number from now on.
                self.known.retain(|_, flow| !gone.contains(flow));
            }
        }
        flow
    }

    /// The kernel knows a flow, or a part of it, by a digest.
    pub fn known_by(&mut self, digest: u64, flow: FlowId) {
        // Those that there are come again with their next packets.
        if self.known.len() >= DIGESTS {
            self.known.clear();
        }
        self.known.insert(digest, flow);
    }

    /// Flows of the last two seconds, and how many bytes were told in the last one. Some are chosen, each with a probability: a flow is
    /// as its part with the highest.
    pub fn rows(&self, now: Nanos, owners: &BTreeMap<FlowKey, Owner>, chosen: &[(u64, f64)]) -> (Vec<FlowRow>, u64) {
        let end = slice_of(now);
        let mut probabilities = BTreeMap::<FlowId, f64>::new();
        for (flow, probability) in chosen.iter().filter_map(|(digest, p)| Some((self.known.get(digest)?, p))) {
            let highest = probabilities.entry(*flow).or_default();
            *highest = highest.max(*probability);
        }
        let rows = self.table.ids().filter_map(|flow| {
            let (bytes, before, delay) = self.lately[flow.index()].seconds(end);
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
    /// Whether its name, or its owner, has a text in small letters.
    pub fn has(&self, wanted: &str) -> bool {
        let has = |text: String| text.to_lowercase().contains(wanted);
        has(self.name.clone()) || self.owner.as_ref().is_some_and(|owner| has(owner.to_string()))
    }

    /// By what factor it grew since the second before, in thousandths; the most if it was not there.
    pub fn growth(&self) -> u64 {
        (self.bytes * 1000).checked_div(self.before).unwrap_or(u64::MAX)
    }
}

impl Lately {
    fn add(&mut self, slice: u64, bytes: u64, delay: Nanos) {
        // What was there is older than is kept.
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

    /// Bytes of the second before slice `end` and of the one before that, and the longest delay of the first.
    fn seconds(&self, end: u64) -> (u64, u64, Nanos) {
        let known = |slice: &u64| *slice <= self.last && slice + KEPT > self.last;
        let places = |from: u64, to: u64| (from..to).filter(known).map(|slice| (slice % KEPT) as usize);
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

        /// As if all packets were kept, and asked anew; they may come a little late.
        #[test]
        fn seconds_are_those_of_all_packets(
            steps in prop::collection::vec((0u64..40, 0u64..3, 1u64..2000, 1u64..5000), 1..60),
            later in 0u64..40,
        ) {
            let (mut lately, mut packets, mut now) = (Lately::default(), Vec::new(), 1000);
            for (step, late, bytes, delay) in steps {
                now += step;
                // The slices that a question is about reach less far back than is kept.
                let slice = now - late.min(1);
                lately.add(slice, bytes, Nanos(delay));
                packets.push((slice, bytes, delay));
            }
            let end = now + 1 + later;
            let of = |from: u64, to: u64| packets.iter().filter(move |packet| (from..to).contains(&packet.0));
            let sum = |from, to| of(from, to).map(|packet| packet.1).sum::<u64>();
            let (middle, begin) = (end - SECOND, end - 2 * SECOND);
            let delay = of(middle, end).map(|packet| packet.2).max().unwrap_or(0);
            prop_assert_eq!(lately.seconds(end), (sum(middle, end), sum(begin, middle), Nanos(delay)));
        }
    }

    #[test]
    fn more_flows_than_there_is_room_for_count_in_the_whole() {
        let mut flows = FlowsNow::new(Granularity::FiveTuple, None);
        let at = Nanos(10_000_000_000);
        for number in 0..5000u32 {
            let key = FlowKey { src_port: number as u16, dst_port: 9, ..FlowKey::default() };
            flows.departed(&key, 100, Nanos(1), Nanos(at.0 + u64::from(number)));
        }
        let (rows, told) = flows.rows(Nanos(at.0 + 100_000_000), &BTreeMap::new(), &[]);
        assert!(rows.len() <= FLOWS, "{}", rows.len());
        assert_eq!(told, 500_000);
    }
}
