//! Flow ids that stay valid after the flow index has freed its own.

use queuescope_wire::FlowId;
use std::collections::BTreeMap;

/// Flow ids that are not reused, for meters that remember flows longer than the index does. It keeps the keys of the newest
/// flows that the index has freed.
#[derive(Debug)]
pub struct Lasting<K> {
    /// The lasting id of each id of the index.
    ids: Vec<Option<FlowId>>,
    next: u32,
    gone: BTreeMap<FlowId, K>,
}

/// Number of keys that are kept of freed flows. Most of what a monitor remembers is younger.
const GONE_KEPT: usize = 1 << 16;

impl<K: Clone> Default for Lasting<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Clone> Lasting<K> {
    /// Creates a table without flows.
    pub fn new() -> Self {
        Self { ids: Vec::new(), next: 0, gone: BTreeMap::new() }
    }

    /// The lasting id of a flow. Ids wrap around after 2^32 flows.
    #[inline]
    pub fn id(&mut self, flow: FlowId) -> FlowId {
        if self.ids.len() <= flow.index() {
            self.ids.resize(flow.index() + 1, None);
        }
        *self.ids[flow.index()].get_or_insert_with(|| {
            let id = FlowId(self.next);
            self.next = self.next.wrapping_add(1);
            id
        })
    }

    /// The index frees the id of a flow: its key is kept.
    pub fn forget(&mut self, flow: FlowId, key: &K) {
        let Some(id) = self.ids.get_mut(flow.index()).and_then(Option::take) else { return };
        self.gone.insert(id, key.clone());
        if self.gone.len() > GONE_KEPT {
            self.gone.pop_first();
        }
    }

    /// The keys of lasting ids, each `None` if it was forgotten. `key` returns the keys of the index's live ids.
    pub fn keys(&self, of: impl Iterator<Item = FlowId>, key: impl Fn(FlowId) -> K) -> Vec<Option<K>> {
        let mut wanted: BTreeMap<FlowId, Option<K>> = BTreeMap::new();
        let order: Vec<_> = of.inspect(|id| _ = wanted.insert(*id, self.gone.get(id).cloned())).collect();
        for (position, id) in self.ids.iter().enumerate() {
            if let Some(found) = id.and_then(|id| wanted.get_mut(&id)) {
                *found = Some(key(FlowId(position as u32)));
            }
        }
        order.iter().map(|id| wanted.get(id).cloned().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_outlasts_the_id_of_the_index() {
        let mut lasting = Lasting::new();
        let first = lasting.id(FlowId(3));
        assert_eq!(lasting.id(FlowId(3)), first);
        lasting.forget(FlowId(3), &"old");
        let second = lasting.id(FlowId(3));
        assert_ne!(first, second);
        let never = FlowId(99);
        assert_eq!(lasting.keys([second, first, never].into_iter(), |_| "new"), [Some("new"), Some("old"), None]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut lasting = Lasting::new();
        for n in 0..2 * GONE_KEPT as u32 {
            lasting.id(FlowId(n % 5));
            lasting.forget(FlowId(n % 5), &n);
        }
        assert_eq!((lasting.gone.len(), lasting.ids.len()), (GONE_KEPT, 5));
    }
}
