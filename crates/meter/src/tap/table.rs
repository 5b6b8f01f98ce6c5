//! The packets that came in and may still come out: a table of fixed size, from which they expire.

use super::TapPacket;
use hashbrown::HashTable;
use queuescope_wire::Nanos;

/// No entry.
const NONE: u32 = u32::MAX;

/// Entries by fingerprint, those of each fingerprint in the order of their arrival, and all of them in that order.
///
/// Among the entries with one fingerprint, a matched one is skipped as soon as another one follows it, so that many packets with the same
/// fingerprint cost no more than few.
#[derive(Debug)]
pub(super) struct Table {
    /// The oldest entry of each fingerprint.
    index: HashTable<u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// The ends of the list of all entries.
    oldest: u32,
    newest: u32,
    limit: usize,
}

/// A packet that came in.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub seen: TapPacket,
    pub digest: u64,
    /// The arrival, by the clock behind the router.
    pub time: Nanos,
    pub link: u32,
    /// Whether it was captured on its way out; it stays in the table, to recognise copies.
    pub matched: bool,
    /// Whether a copy of it was captured on its way out.
    pub copy_matched: bool,
    next: u32,
    /// The next entry with the same fingerprint, and in the first one, the last.
    next_same: u32,
    last_same: u32,
}

impl Entry {
    pub fn new(seen: &TapPacket, digest: u64, time: Nanos, link: u32) -> Self {
        let (next, next_same, last_same) = (NONE, NONE, NONE);
        Self { seen: *seen, digest, time, link, matched: false, copy_matched: false, next, next_same, last_same }
    }
}

impl Table {
    /// Creates a table for at most `limit` entries.
    pub fn new(limit: usize) -> Self {
        let limit = limit.clamp(1, NONE as usize - 1);
        let (index, entries, free) = (HashTable::new(), Vec::new(), Vec::new());
        Self { index, entries, free, oldest: NONE, newest: NONE, limit }
    }

    pub fn is_full(&self) -> bool {
        self.entries.len() - self.free.len() >= self.limit
    }

    pub fn oldest(&self) -> Option<&Entry> {
        self.entries.get(self.oldest as usize)
    }

    /// Adds an entry, for which there must be room; returns whether there was one with its fingerprint.
    pub fn push(&mut self, entry: Entry) -> bool {
        let digest = entry.digest;
        let id = match self.free.pop() {
            Some(id) => {
                self.entries[id as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        match self.entries.get_mut(self.newest as usize) {
            Some(newest) => newest.next = id,
            None => self.oldest = id,
        }
        self.newest = id;
        match self.first(digest) {
            Some(first) => {
                let last = self.entries[first as usize].last_same;
                self.entries[last as usize].next_same = id;
                self.entries[first as usize].last_same = id;
                true
            }
            None => {
                self.entries[id as usize].last_same = id;
                let entries = &self.entries;
                self.index.insert_unique(digest, id, |&other| entries[other as usize].digest);
                false
            }
        }
    }

    /// Removes the oldest entry.
    pub fn pop(&mut self) -> Option<Entry> {
        let id = self.oldest;
        let entry = self.entries.get(id as usize)?.clone();
        self.oldest = entry.next;
        if self.oldest == NONE {
            self.newest = NONE;
        }
        // As the oldest entry, it is also the first with its fingerprint, unless it was skipped.
        if !self.skip(id)
            && let Ok(found) = self.index.find_entry(entry.digest, |&other| other == id)
        {
            found.remove();
        }
        self.free.push(id);
        Some(entry)
    }

    /// Marks an entry as captured on its way out.
    pub fn set_matched(&mut self, id: u32) {
        self.entries[id as usize].matched = true;
        self.skip(id);
    }

    /// Skips an entry of its fingerprint if it is the first and not the last; returns whether it was skipped.
    fn skip(&mut self, id: u32) -> bool {
        let Entry { digest, next_same, last_same, .. } = self.entries[id as usize];
        if next_same == NONE {
            return false;
        }
        let Some(first) = self.index.find_mut(digest, |&other| other == id) else { return false };
        *first = next_same;
        self.entries[next_same as usize].last_same = last_same;
        true
    }

    fn first(&self, digest: u64) -> Option<u32> {
        self.index.find(digest, |&other| self.entries[other as usize].digest == digest).copied()
    }

    /// The entries with a fingerprint, oldest first, by number: all unmatched ones, and possibly some matched ones.
    pub fn same(&self, digest: u64) -> impl Iterator<Item = (u32, &Entry)> {
        std::iter::successors(self.first(digest), |&id| {
            Some(self.entries[id as usize].next_same).filter(|&next| next != NONE)
        })
        .map(|id| (id, &self.entries[id as usize]))
    }

    /// Marks the entries with a fingerprint that are copies of a packet that came out.
    pub fn set_copy_matched(&mut self, digest: u64, is_copy: impl Fn(&Entry) -> bool) {
        let mut at = self.first(digest).unwrap_or(NONE);
        while let Some(entry) = self.entries.get_mut(at as usize) {
            entry.copy_matched |= is_copy(entry);
            at = entry.next_same;
        }
    }
}
