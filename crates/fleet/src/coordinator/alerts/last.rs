//! The last alert of each member's store: an alert that is not behind it came before.

use crate::protocol::Alert;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Stores of a member that are remembered. A member has a new one when it begins another folder.
const STORES: usize = 16;

/// For each member and store its last alert.
#[derive(Debug, Clone, Default)]
pub struct LastAlerts(BTreeMap<String, BTreeMap<u64, LastAlert>>);

/// The last alert of a store.
#[derive(Debug, Clone, Copy)]
struct LastAlert {
    sequence: u64,
    number: u64,
}

/// The same as a list.
#[derive(Debug, Serialize, Deserialize)]
pub struct LastLine {
    member: String,
    store: u64,
    sequence: u64,
    number: u64,
}

impl LastAlerts {
    /// The sequence number of the last alert of a member's store; 0 if it has none.
    pub fn of(&self, member: &str, store: u64) -> u64 {
        self.0.get(member).and_then(|stores| stores.get(&store)).map_or(0, |last| last.sequence)
    }

    /// The same for a store that had another name: if that has the last alert of the member, the store goes on behind it. Only one store can: another file of alerts begins
    /// with 1.
    pub fn renamed(&mut self, member: &str, store: u64, earlier: u64) -> u64 {
        if let Some(stores) = self.0.get_mut(member)
            && !stores.contains_key(&store)
            && let Some(last) = stores.get(&earlier).copied()
            && stores.iter().all(|(other, known)| *other == earlier || known.number < last.number)
        {
            stores.insert(store, last);
        }
        self.of(member, store)
    }

    /// Notes an alert, which has a number.
    pub fn note(&mut self, alert: &Alert) {
        let last = LastAlert { sequence: alert.sequence, number: alert.number };
        match self.0.get_mut(&alert.member) {
            Some(stores) => _ = stores.insert(alert.store, last),
            None => _ = self.0.insert(alert.member.clone(), BTreeMap::from([(alert.store, last)])),
        }
    }

    /// Takes newer ones.
    pub fn append(&mut self, new: Self) {
        for (member, stores) in new.0 {
            self.0.entry(member).or_default().extend(stores);
        }
    }

    /// Forgets the oldest stores of members that have many.
    pub fn forget_old(&mut self) {
        for stores in self.0.values_mut().filter(|stores| stores.len() > STORES) {
            let mut numbers: Vec<u64> = stores.values().map(|last| last.number).collect();
            numbers.sort_unstable_by(|a, b| b.cmp(a));
            stores.retain(|_, last| last.number >= numbers[STORES - 1]);
        }
    }

    /// As a list.
    pub fn lines(&self) -> Vec<LastLine> {
        let line = |(member, stores): (&String, &BTreeMap<u64, LastAlert>)| {
            let line = |(store, last): (&u64, &LastAlert)| LastLine {
                member: member.clone(),
                store: *store,
                sequence: last.sequence,
                number: last.number,
            };
            stores.iter().map(line).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(line).collect()
    }

    /// From a list.
    pub fn of_lines(lines: Vec<LastLine>) -> Self {
        let mut last = Self::default();
        for LastLine { member, store, sequence, number } in lines {
            last.0.entry(member).or_default().insert(store, LastAlert { sequence, number });
        }
        last
    }
}

/// What changes if alerts are written.
#[derive(Debug)]
pub struct NewLast<'a> {
    before: &'a LastAlerts,
    new: LastAlerts,
}

impl<'a> NewLast<'a> {
    /// Nothing changed yet.
    pub fn new(before: &'a LastAlerts) -> Self {
        Self { before, new: LastAlerts::default() }
    }

    /// The sequence number of the last alert of a member's store; 0 if it has none.
    pub fn of(&self, member: &str, store: u64) -> u64 {
        self.new.of(member, store).max(self.before.of(member, store))
    }

    /// Notes an alert, unless it came before; returns whether it is new.
    pub fn note(&mut self, alert: &Alert) -> bool {
        let is_new = alert.sequence > self.of(&alert.member, alert.store);
        if is_new {
            self.new.note(alert);
        }
        is_new
    }

    /// What changed.
    pub fn into_new(self) -> LastAlerts {
        self.new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_with_a_new_name_goes_on_once() {
        let alert =
            |number, store, sequence| Alert { member: "host".to_owned(), number, store, sequence, ..Alert::default() };
        let mut last = LastAlerts::default();
        assert_eq!(last.renamed("host", 12, 7), 0, "nobody knows the member");
        (1..=3).for_each(|number| last.note(&alert(number, 7, number)));
        assert_eq!(last.renamed("host", 12, 0), 0, "it had no other name");
        assert_eq!(last.renamed("host", 12, 8), 0, "that one is unknown");
        assert_eq!(last.renamed("other", 12, 7), 0, "another member");
        assert_eq!((last.renamed("host", 12, 7), last.renamed("host", 12, 7)), (3, 3));
        // Another file of alerts of the same folder.
        assert_eq!(last.renamed("host", 13, 7), 0);
        last.note(&alert(4, 12, 4));
        assert_eq!((last.renamed("host", 12, 7), last.renamed("host", 14, 7)), (4, 0));
    }
}
