//! The values of a function for each group.

use super::way::{PartState, Way};
use crate::columns::{KeyBatch, Selected};
use crate::derive::{Function, State};
use crate::expr::Number;
use crate::schema::{AttributeId, Kind, Schema};
use queuescope_wire::Distinct;

/// A function, and its state for each group, by the group's number. Frequent functions have small states.
#[derive(Debug)]
pub(super) struct Sums {
    way: Way,
    attribute: Option<AttributeId>,
    states: States,
}

#[derive(Debug)]
enum States {
    Counts(Vec<u64>),
    /// Sums of unsigned numbers.
    Sums(Vec<u128>),
    /// The same, and how many there are.
    Means(Vec<(u128, u64)>),
    /// Extremes of keys of at most 64 bits.
    Lows(Vec<u64>),
    Highs(Vec<u64>),
    /// Counts of distinct values, and the bytes of heap memory that they take.
    Distinct(Vec<Distinct>, usize),
    Others(Vec<State>),
}

impl Sums {
    pub fn new(function: &Function, schema: &Schema) -> Self {
        let attribute = function.attribute();
        let of = attribute.map(|id| schema.attribute(id));
        let is_unsigned = of.is_some_and(|of| !matches!(of.kind, Kind::Signed | Kind::Float));
        let is_narrow = of.is_some_and(|of| of.place.bits <= 64);
        let states = match function {
            Function::Count => States::Counts(Vec::new()),
            Function::Sum(_) if is_unsigned => States::Sums(Vec::new()),
            Function::Mean(_) if is_unsigned => States::Means(Vec::new()),
            Function::Min(_) if is_narrow => States::Lows(Vec::new()),
            Function::Max(_) if is_narrow => States::Highs(Vec::new()),
            Function::Distinct(_) => States::Distinct(Vec::new(), 0),
            _ => States::Others(Vec::new()),
        };
        Self { way: Way::new(function, schema), attribute, states }
    }

    pub fn way(&self) -> &Way {
        &self.way
    }

    /// Makes room for this many groups.
    fn grow(&mut self, groups: usize) {
        // Only distinct counts have no words.
        let empty = self.way.empty().words().copied().unwrap_or_default();
        match &mut self.states {
            States::Counts(counts) => counts.resize(groups, 0),
            States::Sums(sums) => sums.resize(groups, 0),
            States::Means(means) => means.resize(groups, (0, 0)),
            States::Lows(lows) => lows.resize(groups, empty[0] as u64),
            States::Highs(highs) => highs.resize(groups, 0),
            States::Distinct(states, _) => states.resize_with(groups, Distinct::of_values),
            States::Others(states) => states.resize(groups, empty),
        }
    }

    /// Adds the selected records of a batch, whose group numbers are `of` and less than `groups`. `size` is the size of a record.
    pub fn add(&mut self, batch: &KeyBatch, selected: Selected<'_>, of: &[u32], groups: usize, size: usize) {
        self.grow(groups);
        let Self { way, attribute, states } = self;
        let keys = attribute.map(|id| batch.keys(id));
        let mut of = of.iter().map(|group| *group as usize);
        // A macro, so that each kind of state has a loop of its own.
        macro_rules! with_keys {
            ($group:ident, $key:ident, $do:expr) => {
                if let Some(keys) = keys {
                    keys.each(selected, |$key| {
                        if let Some($group) = of.next() {
                            $do;
                        }
                    });
                }
            };
        }
        match states {
            States::Counts(counts) => of.for_each(|group| counts[group] += 1),
            States::Sums(sums) => with_keys!(group, key, sums[group] = sums[group].saturating_add(key)),
            States::Means(means) => with_keys!(group, key, {
                let (sum, count) = &mut means[group];
                (*sum, *count) = (sum.saturating_add(key), *count + 1);
            }),
            States::Lows(lows) => with_keys!(group, key, lows[group] = lows[group].min(key as u64)),
            States::Highs(highs) => with_keys!(group, key, highs[group] = highs[group].max(key as u64)),
            States::Distinct(states, heap) => with_keys!(group, key, {
                let distinct = &mut states[group];
                let before = distinct.heap();
                distinct.insert_value(key);
                *heap = (*heap + distinct.heap()).saturating_sub(before);
            }),
            States::Others(states) => {
                let Way::Words(working) = way else { return };
                if attribute.is_some() {
                    with_keys!(group, key, working.add_key(&mut states[group], key));
                    return;
                }
                selected.places(|place| {
                    if let Some(group) = of.next() {
                        working.add(&mut states[group], batch.record(place, size));
                    }
                });
            }
        }
    }

    /// The state of a group.
    pub fn state(&self, group: usize) -> PartState {
        let words = match &self.states {
            States::Counts(counts) => [counts[group].into(), 0, 0, 0],
            States::Sums(sums) => [sums[group], 0, 0, 0],
            States::Means(means) => [means[group].0, means[group].1.into(), 0, 0],
            States::Lows(ends) | States::Highs(ends) => [ends[group].into(), 0, 0, 0],
            States::Distinct(states, _) => return PartState::Distinct(states[group].clone()),
            States::Others(states) => states[group],
        };
        PartState::Words(words)
    }

    /// One of the values of a group.
    pub fn value(&self, group: usize, value: usize) -> Number {
        match &self.states {
            // Without a copy of the state.
            States::Distinct(states, _) => Number::Unsigned(states[group].count().into()),
            _ => self.way.value(&self.state(group), value),
        }
    }

    /// Adds the state of other records to that of a group, of which there are `groups`.
    pub fn join(&mut self, group: usize, other: &PartState, groups: usize) {
        self.grow(groups);
        let other = match (&mut self.states, other) {
            (States::Distinct(states, heap), PartState::Distinct(other)) => {
                let distinct = &mut states[group];
                let before = distinct.heap();
                distinct.join(other);
                *heap = (*heap + distinct.heap()).saturating_sub(before);
                return;
            }
            (_, PartState::Words(other)) => other,
            (_, PartState::Distinct(_)) => return,
        };
        match &mut self.states {
            States::Counts(counts) => counts[group] = counts[group].saturating_add(other[0] as u64),
            States::Sums(sums) => sums[group] = sums[group].saturating_add(other[0]),
            States::Means(means) => {
                let (sum, count) = &mut means[group];
                (*sum, *count) = (sum.saturating_add(other[0]), count.saturating_add(other[1] as u64));
            }
            States::Lows(lows) => lows[group] = lows[group].min(other[0] as u64),
            States::Highs(highs) => highs[group] = highs[group].max(other[0] as u64),
            States::Others(states) => {
                if let Way::Words(working) = &self.way {
                    working.join(&mut states[group], other);
                }
            }
            States::Distinct(..) => {}
        }
    }

    /// Bytes of heap memory that it takes.
    pub fn heap(&self) -> usize {
        match &self.states {
            States::Counts(each) | States::Lows(each) | States::Highs(each) => each.capacity() * size_of::<u64>(),
            States::Sums(each) => each.capacity() * size_of::<u128>(),
            States::Means(each) => each.capacity() * size_of::<(u128, u64)>(),
            States::Distinct(each, heap) => each.capacity() * size_of::<Distinct>() + heap,
            States::Others(each) => each.capacity() * size_of::<State>(),
        }
    }
}
