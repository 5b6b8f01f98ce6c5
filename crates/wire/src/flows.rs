//! The door: hands out a small [`FlowId`] for a key, and takes it back when the flow has aged out.
//!
//! Memory is bounded by the flows that are active, not by the flows that pass: before a table grows, what has been idle
//! since the oldest packet that anyone still remembers is taken back. Nobody may keep an id longer than that; who wants
//! to remember a flow beyond it keeps its key.

use crate::{FlowId, FlowKey, Granularity, Nanos};
use hashbrown::HashTable;

/// Keys to ids and back, for one granularity.
#[derive(Debug)]
pub struct FlowTable<K> {
    index: HashTable<u32>,
    slots: Vec<Slot<K>>,
    free: Vec<u32>,
    limit: usize,
    expired: u64,
}

#[derive(Debug)]
struct Slot<K> {
    key: K,
    digest: u64,
    last_seen: Nanos,
    live: bool,
}

impl<K: Eq + Clone> FlowTable<K> {
    /// A table that takes idle flows back before it holds more than `limit`.
    pub fn with_limit(limit: usize) -> Self {
        Self { index: HashTable::new(), slots: Vec::new(), free: Vec::new(), limit: limit.max(1), expired: 0 }
    }

    /// The id of `key`, whose digest is `digest`, and whether it is new here.
    pub fn intern(&mut self, key: &K, digest: u64, now: Nanos) -> (FlowId, bool) {
        let slots = &mut self.slots;
        if let Some(&id) = self.index.find(digest, |&id| {
            let slot = &slots[id as usize];
            slot.digest == digest && slot.key == *key
        }) {
            slots[id as usize].last_seen = now;
            return (FlowId(id), false);
        }
        let slot = Slot { key: key.clone(), digest, last_seen: now, live: true };
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
        self.index.insert_unique(digest, id, |&id| slots[id as usize].digest);
        (FlowId(id), true)
    }

    /// Whether the next new flow should be preceded by [`expire`](Self::expire).
    pub fn is_full(&self) -> bool {
        self.index.len() >= self.limit
    }

    /// Takes back every flow last seen before `before`, telling `forget` of each while its key can still be read.
    /// Where that frees less than half of the table, the limit doubles: the flows are active, and there are more.
    pub fn expire(&mut self, before: Nanos, forget: impl FnMut(FlowId, &K)) {
        self.expire_if(|_, last_seen| last_seen < before, forget);
    }

    fn expire_if(&mut self, idle: impl Fn(usize, Nanos) -> bool, mut forget: impl FnMut(FlowId, &K)) {
        for (position, slot) in self.slots.iter_mut().enumerate() {
            if slot.live && idle(position, slot.last_seen) {
                let id = position as u32;
                forget(FlowId(id), &slot.key);
                slot.live = false;
                if let Ok(entry) = self.index.find_entry(slot.digest, |&other| other == id) {
                    entry.remove();
                }
                self.free.push(id);
                self.expired += 1;
            }
        }
        if self.index.len() > self.limit / 2 {
            self.limit *= 2;
        }
    }

    /// The key of an id that is live.
    pub fn key(&self, id: FlowId) -> &K {
        &self.slots[id.index()].key
    }

    /// The digest of an id that is live.
    pub fn digest(&self, id: FlowId) -> u64 {
        self.slots[id.index()].digest
    }

    /// How many flows are live.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no flow is live.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// One more than the largest id handed out so far: the length of a per-flow table.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// How many ids were taken back so far.
    pub fn expired(&self) -> u64 {
        self.expired
    }
}

/// Keys to ids at several granularities in one pass: packets carry the id of the finest key, and each granularity is a
/// projection of it.
#[derive(Debug)]
pub struct Flows {
    granularities: Vec<Granularity>,
    finest: FlowTable<FlowKey>,
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    granularity: Granularity,
    flows: FlowTable<FlowKey>,
    /// From finest ids to this level's.
    projection: Vec<FlowId>,
}

impl Flows {
    /// A door for these granularities, that takes idle flows back before it holds more than `limit` of them.
    pub fn new(granularities: &[Granularity], limit: usize) -> Self {
        let level =
            |&granularity| Level { granularity, flows: FlowTable::with_limit(usize::MAX), projection: Vec::new() };
        Self {
            granularities: granularities.to_vec(),
            finest: FlowTable::with_limit(limit),
            levels: granularities.iter().map(level).collect(),
        }
    }

    /// The id of the finest flow that a packet with all of `key`'s fields belongs to; `fresh` hears each level's key
    /// where that flow was not live before.
    pub fn intern(&mut self, key: &FlowKey, now: Nanos, mut fresh: impl FnMut(usize, &FlowKey)) -> FlowId {
        let key = Granularity::finest(&self.granularities, key);
        let (id, new) = self.finest.intern(&key, key.digest(), now);
        if new {
            for (index, level) in self.levels.iter_mut().enumerate() {
                let projected = level.granularity.project(&key);
                let (own, own_new) = level.flows.intern(&projected, projected.digest(), now);
                if level.projection.len() <= id.index() {
                    level.projection.resize(id.index() + 1, own);
                }
                level.projection[id.index()] = own;
                if own_new {
                    fresh(index, &projected);
                }
            }
        }
        id
    }

    /// Whether the next new flow should be preceded by [`expire`](Self::expire).
    pub fn is_full(&self) -> bool {
        self.finest.is_full()
    }

    /// Takes back the flows last seen before `before`; `forget` hears level, id and key of each that no live flow
    /// projects onto any longer.
    pub fn expire(&mut self, before: Nanos, mut forget: impl FnMut(usize, FlowId, &FlowKey)) {
        self.finest.expire(before, |_, _| {});
        for (index, level) in self.levels.iter_mut().enumerate() {
            let mut used = vec![false; level.flows.capacity()];
            for (slot, projected) in self.finest.slots.iter().zip(&level.projection) {
                if slot.live {
                    used[projected.index()] = true;
                }
            }
            level.flows.expire_if(|position, _| !used[position], |id, key| forget(index, id, key));
        }
    }

    /// The id at granularity number `level` of the flow with the finest id `flow`.
    pub fn project(&self, level: usize, flow: FlowId) -> FlowId {
        self.levels[level].projection[flow.index()]
    }

    /// The flows of granularity number `level`.
    pub fn level(&self, level: usize) -> &FlowTable<FlowKey> {
        &self.levels[level].flows
    }

    /// The granularities, in the order of their numbers.
    pub fn granularities(&self) -> &[Granularity] {
        &self.granularities
    }

    /// How many finest flows are live.
    pub fn len(&self) -> usize {
        self.finest.len()
    }

    /// Whether no flow is live.
    pub fn is_empty(&self) -> bool {
        self.finest.is_empty()
    }

    /// How many finest ids were taken back so far.
    pub fn expired(&self) -> u64 {
        self.finest.expired()
    }
}
