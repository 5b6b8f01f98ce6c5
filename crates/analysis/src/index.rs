//! Flow ids for the keys of packets at several granularities, or for the flow names of a table.

use crate::show::Show;
use queuescope_meter::{Amount, Group, GroupParams, Sampled, Share, group};
use queuescope_report::model::{self, Skipped};
use queuescope_wire::{FlowId, FlowKey, FlowTable, Flows, Nanos};
use std::hash::{BuildHasher, Hash};

/// The default number of live flows from which idle ones are freed.
pub const FLOWS: usize = 1 << 14;

/// Ids for flows, at one granularity or several.
pub trait FlowIndex {
    /// What identifies a flow outside the index.
    type Key: Eq + Hash + Ord + Clone;

    /// The names of the granularities.
    fn granularities(&self) -> Vec<String>;
    /// The id at a granularity of the flow with the finest id `flow`.
    fn project(&self, level: usize, flow: FlowId) -> FlowId;
    /// The key of an id at a granularity.
    fn key(&self, level: usize, flow: FlowId) -> &Self::Key;
    /// The hash of that key, which is the same in every run.
    fn digest(&self, level: usize, flow: FlowId) -> u64;
    /// The name of a key of a granularity, for people.
    fn name(&self, level: usize, key: &Self::Key) -> String;
    /// The complete flow key of the flow with the finest id `flow`; `None` if it cannot be parsed from the flow's name.
    fn whole(&self, flow: FlowId) -> Option<FlowKey>;
    /// Whether the filter `show` can be applied to the flows of a granularity.
    fn can_show(&self, show: &Show, level: usize) -> bool;
    /// A note on granularities to which `show` cannot be applied, so that all their flows are listed. `names` are those of
    /// all granularities.
    fn note(&self, show: &Show, names: &[String]) -> Option<Skipped> {
        let unfiltered = names.iter().enumerate().filter(|(level, _)| !self.can_show(show, *level));
        show.note(unfiltered.map(|(_, name)| name.as_str()))
    }
    /// Whether `show` lists a key of a granularity.
    fn shows(&self, show: &Show, level: usize, key: &Self::Key) -> bool;
    /// The live ids at a granularity.
    fn flows(&self, level: usize) -> Vec<FlowId>;
    /// Groups of flows of the first granularity that have something in common, and together explain what no single flow
    /// does. `flows` are all flows, unless `sampled` describes the others. For the flow names of a table, there are no
    /// groups.
    fn groups(&self, flows: &[(Self::Key, Share)], sampled: Option<Sampled<'_>>) -> Vec<model::Group>;
    /// Whether flows should be freed before the next new one.
    fn is_full(&self) -> bool;
    /// The number of live flows at the finest granularity.
    fn live(&self) -> usize;
    /// Frees the flows that were last seen before `before`. Calls `forget` with the granularity, id and key of each.
    fn expire(&mut self, before: Nanos, forget: impl FnMut(usize, FlowId, &Self::Key));
}

impl FlowIndex for Flows {
    type Key = FlowKey;

    fn granularities(&self) -> Vec<String> {
        Self::granularities(self).iter().map(ToString::to_string).collect()
    }

    #[inline]
    fn project(&self, level: usize, flow: FlowId) -> FlowId {
        Self::project(self, level, flow)
    }

    #[inline]
    fn key(&self, level: usize, flow: FlowId) -> &FlowKey {
        self.level(level).key(flow)
    }

    #[inline]
    fn digest(&self, level: usize, flow: FlowId) -> u64 {
        self.level(level).digest(flow)
    }

    fn name(&self, level: usize, key: &FlowKey) -> String {
        Self::granularities(self)[level].name(key)
    }

    fn whole(&self, flow: FlowId) -> Option<FlowKey> {
        Some(*self.finest().key(flow))
    }

    fn can_show(&self, show: &Show, level: usize) -> bool {
        show.applies(Self::granularities(self)[level])
    }

    fn shows(&self, show: &Show, level: usize, key: &FlowKey) -> bool {
        show.lists(Self::granularities(self)[level], key)
    }

    fn flows(&self, level: usize) -> Vec<FlowId> {
        self.level(level).ids().collect()
    }

    fn groups(&self, flows: &[(FlowKey, Share)], sampled: Option<Sampled<'_>>) -> Vec<model::Group> {
        let granularity = Self::granularities(self)[0];
        let grouped = group(flows, sampled, granularity, &GroupParams::default());
        let sum = |total: Amount, (_, share): &(_, Share)| Amount {
            bytes: total.bytes + share.bytes,
            packets: total.packets + share.packets,
        };
        let all = || flows.iter().fold(Amount::default(), sum);
        let Amount { bytes, packets } = sampled.map_or_else(all, |sampled| sampled.total);
        let part = |amount: u64, whole: u64| if whole > 0 { amount as f64 / whole as f64 } else { 0.0 };
        let heavy = |(key, share): &(FlowKey, Share)| model::Part {
            flow: granularity.name(key),
            bytes: share.bytes,
            packets: Some(share.packets),
            share: part(share.bytes, bytes),
        };
        let row = |row: &Group, overlaps: bool| model::Group {
            description: row.reading(granularity),
            explosion: row.explosion.map(|explosion| explosion.to_string()),
            overlaps,
            remainder: row.remainder,
            flows: row.weight.flows,
            sources: row.sources,
            destinations: row.destinations,
            counted: sampled.is_none(),
            bytes: row.weight.bytes,
            packets: row.weight.packets,
            share: part(row.weight.bytes, bytes),
            share_error: part(row.error.bytes, bytes),
            packets_share: part(row.weight.packets, packets),
            packets_share_error: part(row.error.packets, packets),
            heavy: row.heavy.iter().map(heavy).collect(),
        };
        // A single flow is listed only if it has few of the bytes: one with many bytes is among the culprits anyway.
        let rows = grouped.rows.iter().filter(|row| row.flow.is_none() || row.weight.bytes < bytes.div_ceil(10));
        rows.map(|group| row(group, false)).chain(grouped.overlaps.iter().map(|group| row(group, true))).collect()
    }

    #[inline]
    fn is_full(&self) -> bool {
        Self::is_full(self)
    }

    fn live(&self) -> usize {
        Self::len(self)
    }

    fn expire(&mut self, before: Nanos, forget: impl FnMut(usize, FlowId, &FlowKey)) {
        Self::expire(self, before, forget);
    }
}

/// The flow column of a table is its only granularity.
impl FlowIndex for FlowTable<Box<str>> {
    type Key = Box<str>;

    fn granularities(&self) -> Vec<String> {
        vec!["flow".to_owned()]
    }

    fn project(&self, _level: usize, flow: FlowId) -> FlowId {
        flow
    }

    fn key(&self, _level: usize, flow: FlowId) -> &Box<str> {
        Self::key(self, flow)
    }

    fn digest(&self, _level: usize, flow: FlowId) -> u64 {
        Self::digest(self, flow)
    }

    fn name(&self, _level: usize, key: &Box<str>) -> String {
        key.to_string()
    }

    fn whole(&self, flow: FlowId) -> Option<FlowKey> {
        FlowKey::named(Self::key(self, flow)).map(|(_, key)| key)
    }

    fn can_show(&self, _show: &Show, _level: usize) -> bool {
        true
    }

    fn shows(&self, show: &Show, _level: usize, name: &Box<str>) -> bool {
        FlowKey::named(name).is_some_and(|(granularity, key)| show.lists(granularity, &key))
    }

    fn flows(&self, _level: usize) -> Vec<FlowId> {
        self.ids().collect()
    }

    fn groups(&self, _flows: &[(Box<str>, Share)], _sampled: Option<Sampled<'_>>) -> Vec<model::Group> {
        Vec::new()
    }

    fn is_full(&self) -> bool {
        Self::is_full(self)
    }

    fn live(&self) -> usize {
        Self::len(self)
    }

    fn expire(&mut self, before: Nanos, mut forget: impl FnMut(usize, FlowId, &Box<str>)) {
        Self::expire(self, before, |flow, key| forget(0, flow, key));
    }
}

/// The hash of a flow's name, the same in every run.
pub fn name_digest(name: &str) -> u64 {
    foldhash::fast::FixedState::with_seed(0).hash_one(name)
}
