//! Maps flow keys to small [`FlowId`]s, and reuses an id after its flow has aged out.
//!
//! Memory is bounded by the number of active flows, not by the number of flows that pass: before a table grows, it
//! frees the ids of flows that were idle since the oldest packet that is still in use. A caller must not keep an id
//! longer than that. To remember a flow for longer, keep its key.

use crate::{FlowId, FlowKey, Granularity, KeyMask, MaskedKey, Nanos};
use hashbrown::HashTable;
use std::borrow::Borrow;

/// Maps keys to ids and back, for one granularity.
///
/// ```
/// use queuescope_wire::{FlowId, FlowKey, FlowTable, Nanos};
///
/// let mut table: FlowTable<FlowKey> = FlowTable::with_limit(1000);
/// let web = FlowKey { dst_port: 443, ..FlowKey::default() };
/// assert_eq!(table.intern(&web, web.digest(), Nanos(0)), (FlowId(0), true));
/// assert_eq!(table.intern(&web, web.digest(), Nanos(5)), (FlowId(0), false));
/// assert_eq!(table.key(FlowId(0)).dst_port, 443);
///
/// table.expire(Nanos(6), |id, key| println!("{id:?} of port {} is free", key.dst_port));
/// assert!(table.is_empty());
/// ```
#[derive(Debug)]
pub struct FlowTable<K> {
    index: HashTable<u32>,
    slots: Vec<Slot<K>>,
    free: Vec<u32>,
    limit: usize,
    /// The ids that were looked up last, by low bits of the digest.
    recent: Box<[u32; RECENT]>,
}

/// Number of ids that can be found without the index: 4 KiB of them.
const RECENT: usize = 1 << 10;

/// Sixty-four bytes for a [`FlowKey`]: one cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Slot<K> {
    key: K,
    digest: u64,
    /// [`FREE`] while the id is not in use.
    last_seen: Nanos,
}

/// The largest time marks a free slot. A flow that is seen at that time is recorded as seen just before.
const FREE: Nanos = Nanos::MAX;
const LATEST: Nanos = Nanos(u64::MAX - 1);

impl<K> Slot<K> {
    fn is_live(&self) -> bool {
        self.last_seen != FREE
    }
}

impl<K: Eq> FlowTable<K> {
    /// A table that frees idle flows before it holds more than `limit`.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            index: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            limit: limit.max(1),
            recent: Box::new([u32::MAX; RECENT]),
        }
    }

    /// Returns the id of `key`, whose digest is `digest`, and whether the flow is new in this table.
    #[inline]
    pub fn intern<Q>(&mut self, key: &Q, digest: u64, now: Nanos) -> (FlowId, bool)
    where
        K: Borrow<Q>,
        Q: Eq + ToOwned<Owned: Into<K>> + ?Sized,
    {
        let slots = &mut self.slots;
        // Packets of a flow come in trains, and a busy flow soon sends its next one.
        let recent = &mut self.recent[digest as usize % RECENT];
        if let Some(slot) = slots.get_mut(*recent as usize)
            && slot.digest == digest
            && slot.is_live()
            && slot.key.borrow() == key
        {
            slot.last_seen = now.min(LATEST);
            return (FlowId(*recent), false);
        }
        if let Some(&id) = self.index.find(digest, |&id| {
            let slot = &slots[id as usize];
            slot.digest == digest && slot.key.borrow() == key
        }) {
            slots[id as usize].last_seen = now.min(LATEST);
            *recent = id;
            return (FlowId(id), false);
        }
        let slot = Slot { key: key.to_owned().into(), digest, last_seen: now.min(LATEST) };
        let id = match self.free.pop() {
            Some(id) => {
                slots[id as usize] = slot;
                id
            }
            None => {
                slots.push(slot);
                u32::try_from(slots.len() - 1).expect("fewer than 2^32 flows are active at once")
            }
        };
        *recent = id;
        self.index.insert_unique(digest, id, |&id| slots[id as usize].digest);
        (FlowId(id), true)
    }

    /// The id of a live flow with this key and digest.
    pub fn find(&self, key: &K, digest: u64) -> Option<FlowId> {
        let found = self.index.find(digest, |&id| {
            let slot = &self.slots[id as usize];
            slot.digest == digest && slot.key == *key
        });
        found.copied().map(FlowId)
    }

    /// The flow of a live id was seen again, as by [`intern`](Self::intern).
    #[inline]
    pub fn seen(&mut self, id: FlowId, now: Nanos) {
        let slot = &mut self.slots[id.index()];
        debug_assert!(slot.is_live());
        slot.last_seen = now.min(LATEST);
    }

    /// Whether the next new flow should be preceded by [`expire`](Self::expire).
    #[inline]
    pub fn is_full(&self) -> bool {
        self.index.len() >= self.limit
    }

    /// Frees the id of every flow last seen before `before`, and calls `forget` for each while its key can still be
    /// read. If that frees less than half of the table, the limit doubles, because the other flows are active.
    pub fn expire(&mut self, before: Nanos, forget: impl FnMut(FlowId, &K)) {
        self.expire_if(|_, last_seen| last_seen < before, forget);
    }

    /// Frees flows while there are more than `most`: first those last seen before the first of `times`, then those
    /// before the second, and so on.
    pub fn shrink(&mut self, most: usize, times: impl IntoIterator<Item = Nanos>, mut forget: impl FnMut(FlowId, &K)) {
        for before in times {
            if self.len() <= most {
                return;
            }
            self.expire(before, &mut forget);
        }
    }

    fn expire_if(&mut self, idle: impl Fn(usize, Nanos) -> bool, mut forget: impl FnMut(FlowId, &K)) {
        for (position, slot) in self.slots.iter_mut().enumerate() {
            if slot.is_live() && idle(position, slot.last_seen) {
                let id = position as u32;
                forget(FlowId(id), &slot.key);
                slot.last_seen = FREE;
                if let Ok(entry) = self.index.find_entry(slot.digest, |&other| other == id) {
                    entry.remove();
                }
                self.free.push(id);
            }
        }
        if self.index.len() > self.limit / 2 {
            self.limit *= 2;
        }
    }

    /// The key of a live id.
    #[inline]
    pub fn key(&self, id: FlowId) -> &K {
        &self.slots[id.index()].key
    }

    /// The live ids, in ascending order.
    pub fn ids(&self) -> impl Iterator<Item = FlowId> {
        self.slots.iter().enumerate().filter(|(_, slot)| slot.is_live()).map(|(position, _)| FlowId(position as u32))
    }

    /// The digest of a live id.
    #[inline]
    pub fn digest(&self, id: FlowId) -> u64 {
        self.slots[id.index()].digest
    }

    /// The number of live flows.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no flow is live.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// One more than the largest id in use so far: the length of a per-flow table.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }
}

/// Maps keys to ids at several granularities in one pass. Packets carry the id of the finest key, and each granularity
/// is a projection of it.
///
/// ```
/// use queuescope_wire::{FlowKey, Flows, Granularity, KeyMask, Nanos};
///
/// let granularities: [Granularity; 2] = ["5tuple".parse()?, "dst".parse()?];
/// let mask = KeyMask::covering(&granularities);
/// let mut flows = Flows::new(&granularities, 1000);
/// let mut id = |port| {
///     let key = FlowKey { src_port: port, dst: 1, protocol: 6, ..FlowKey::default() };
///     flows.intern(&mask.mask(&key), Nanos::ZERO, |_, _| ())
/// };
/// let (first, second) = (id(1), id(2));
/// assert_ne!(first, second);
/// assert_eq!(flows.project(1, first), flows.project(1, second), "they have one destination");
/// assert_eq!(flows.find(&mask.mask(&FlowKey::default())), None, "it was not seen");
/// assert_eq!((flows.level(0).len(), flows.level(1).len()), (2, 1));
/// # Ok::<(), queuescope_wire::GranularityError>(())
/// ```
#[derive(Debug)]
pub struct Flows {
    finest: FlowTable<FlowKey>,
    granularities: Vec<Granularity>,
    levels: Vec<Level>,
}

#[derive(Debug)]
enum Level {
    /// This granularity is the finest: its ids are those of the packets.
    Finest,
    Coarser {
        flows: FlowTable<FlowKey>,
        /// From finest ids to ids of this level.
        projection: Vec<FlowId>,
    },
}

impl Flows {
    /// Tables for these granularities, which free idle flows before they hold more than `limit` of them.
    pub fn new(granularities: &[Granularity], limit: usize) -> Self {
        Self::masked(KeyMask::covering(granularities), granularities, limit)
    }

    /// Like [`new`](Self::new), for packets whose keys keep more than the granularities need: the fields that `mask`
    /// keeps.
    pub fn masked(mask: KeyMask, granularities: &[Granularity], limit: usize) -> Self {
        let level = |granularity: &Granularity| {
            if *granularity != Granularity::Connection && KeyMask::covering(&[*granularity]) == mask {
                return Level::Finest;
            }
            Level::Coarser { flows: FlowTable::with_limit(usize::MAX), projection: Vec::new() }
        };
        Self {
            finest: FlowTable::with_limit(limit),
            granularities: granularities.to_vec(),
            levels: granularities.iter().map(level).collect(),
        }
    }

    /// Returns the id of the finest flow that a packet belongs to. `key` is the packet's key after a [`KeyMask`] that
    /// covers the granularities. Calls `fresh` with the number of the granularity and the key's digest for each
    /// granularity at which the flow was not live before.
    #[inline]
    pub fn intern(&mut self, key: &MaskedKey, now: Nanos, mut fresh: impl FnMut(usize, u64)) -> FlowId {
        let (key, digest) = (key.key, key.digest);
        let (id, new) = self.finest.intern(&key, digest, now);
        if new {
            for (number, (level, granularity)) in self.levels.iter_mut().zip(&self.granularities).enumerate() {
                match level {
                    Level::Finest => fresh(number, digest),
                    Level::Coarser { flows, projection } => {
                        let projected = granularity.project(&key);
                        let digest = projected.digest();
                        let (own, own_new) = flows.intern(&projected, digest, now);
                        if projection.len() <= id.index() {
                            projection.resize(id.index() + 1, own);
                        }
                        projection[id.index()] = own;
                        if own_new {
                            fresh(number, digest);
                        }
                    }
                }
            }
        }
        id
    }

    /// The finest id of a live flow, by a key as [`intern`](Self::intern) takes it.
    pub fn find(&self, key: &MaskedKey) -> Option<FlowId> {
        self.finest.find(&key.key, key.digest)
    }

    /// The flow with a live finest id was seen again, as by [`intern`](Self::intern).
    #[inline]
    pub fn seen(&mut self, flow: FlowId, now: Nanos) {
        self.finest.seen(flow, now);
    }

    /// Whether the next new flow should be preceded by [`expire`](Self::expire).
    #[inline]
    pub fn is_full(&self) -> bool {
        self.finest.is_full()
    }

    /// Frees the flows last seen before `before`. Calls `forget` with the number of the granularity, the id and the key
    /// of each flow onto which no live flow projects any longer.
    pub fn expire(&mut self, before: Nanos, mut forget: impl FnMut(usize, FlowId, &FlowKey)) {
        let finest = self.levels.iter().position(|level| matches!(level, Level::Finest));
        self.finest.expire(before, |id, key| {
            if let Some(number) = finest {
                forget(number, id, key);
            }
        });
        for (number, level) in self.levels.iter_mut().enumerate() {
            let Level::Coarser { flows, projection } = level else { continue };
            let mut used = vec![false; flows.capacity()];
            for (slot, projected) in self.finest.slots.iter().zip(projection) {
                if slot.is_live() {
                    used[projected.index()] = true;
                }
            }
            flows.expire_if(|position, _| !used[position], |id, key| forget(number, id, key));
        }
    }

    /// The id at granularity number `level` of the flow with the finest id `flow`.
    #[inline]
    pub fn project(&self, level: usize, flow: FlowId) -> FlowId {
        match &self.levels[level] {
            Level::Finest => flow,
            Level::Coarser { projection, .. } => projection[flow.index()],
        }
    }

    /// The flows of granularity number `level`.
    #[inline]
    pub fn level(&self, level: usize) -> &FlowTable<FlowKey> {
        match &self.levels[level] {
            Level::Finest => &self.finest,
            Level::Coarser { flows, .. } => flows,
        }
    }

    /// The finest flows: their keys have all fields that the mask keeps.
    #[inline]
    pub fn finest(&self) -> &FlowTable<FlowKey> {
        &self.finest
    }

    /// The granularities, in the order of their numbers.
    pub fn granularities(&self) -> &[Granularity] {
        &self.granularities
    }

    /// The number of live finest flows.
    pub fn len(&self) -> usize {
        self.finest.len()
    }

    /// Whether no flow is live.
    pub fn is_empty(&self) -> bool {
        self.finest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Family;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn key(n: u8) -> FlowKey {
        let (src, dst) = (u128::from(n), u128::from(n % 4));
        FlowKey { src, dst, src_port: 1, protocol: 17, family: Family::V4, dscp: n % 3, ..FlowKey::default() }
    }

    #[test]
    fn a_table_of_active_flows_grows_and_one_of_idle_flows_does_not() {
        let mut table = FlowTable::with_limit(4);
        for n in 0..64u64 {
            if table.is_full() {
                table.expire(Nanos(n), |_, _: &u64| {});
            }
            table.intern(&n, n, Nanos(n));
        }
        assert!(table.len() <= 4 && table.capacity() <= 4);
        for n in 0..64u64 {
            if table.is_full() {
                table.expire(Nanos::ZERO, |_, _| panic!("no flow was idle"));
            }
            table.intern(&n, n, Nanos(64 + n));
        }
        assert!(table.len() >= 64);
    }

    proptest! {
        /// Against plain maps: equal keys have equal ids while they live, at every granularity, and nothing that is
        /// younger than the bound is ever taken back.
        #[test]
        fn ids_are_names_for_keys(
            steps in prop::collection::vec((0..40u8, 0..3u64, prop::option::of(0..20u64)), 1..200),
            limit in 1..20usize
        ) {
            let granularities = ["5tuple", "dst", "conn"].map(|text| text.parse().unwrap());
            let mut flows = Flows::new(&granularities, limit);
            let mask = KeyMask::covering(&granularities);
            let mut live = BTreeMap::<u8, (FlowId, u64)>::new();
            let (mut now, mut fresh) = (0, [0; 3]);
            let mut gone = [0; 3];
            for (n, gap, expire) in steps {
                now += gap;
                if let Some(age) = expire {
                    let before = now.saturating_sub(age);
                    flows.expire(Nanos(before), |level, _, _| gone[level] += 1);
                    live.retain(|_, (_, seen)| *seen >= before);
                }
                let id = flows.intern(&mask.mask(&key(n)), Nanos(now), |level, _| fresh[level] += 1);
                if let Some((known, _)) = live.get(&n) {
                    prop_assert_eq!(id, *known);
                }
                live.insert(n, (id, now));
                prop_assert_eq!(flows.len(), live.len());
                for (number, granularity) in granularities.iter().enumerate() {
                    for (n, (id, _)) in &live {
                        let own = flows.project(number, *id);
                        prop_assert_eq!(*flows.level(number).key(own), granularity.project(&key(*n)));
                        prop_assert_eq!(flows.level(number).digest(own), granularity.project(&key(*n)).digest());
                    }
                    prop_assert_eq!(fresh[number] - gone[number], flows.level(number).len());
                }
            }
        }
    }
}
