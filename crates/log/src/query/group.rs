//! Records by what they have in common.

use super::Matched;
use crate::derive::{Function, State, Working};
use crate::expr::Number;
use crate::schema::{AttributeId, Schema};
use hashbrown::HashMap;
use std::cmp::Ordering;

/// What records of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKey {
    /// An attribute's value.
    Attribute(AttributeId),
    /// A stretch of time: each begins where the one before ends, one of them at the origin.
    Time {
        /// The attribute.
        attribute: AttributeId,
        /// How long, in nanoseconds; zero is one.
        width: u64,
        /// Where one begins.
        origin: u64,
    },
}

impl GroupKey {
    /// Whose values they are.
    pub fn attribute(&self) -> AttributeId {
        let (Self::Attribute(attribute) | Self::Time { attribute, .. }) = self;
        *attribute
    }

    fn of(&self, schema: &Schema, record: &[u8]) -> u128 {
        match self {
            Self::Attribute(id) => schema.key(*id, record),
            Self::Time { attribute, width, origin } => {
                let (at, width, origin) =
                    (schema.key(*attribute, record), u128::from(*width).max(1), u128::from(*origin));
                // What begins before time did begins with it.
                if at >= origin {
                    origin + (at - origin) / width * width
                } else {
                    origin.saturating_sub((origin - at).div_ceil(width) * width)
                }
            }
        }
    }
}

/// Groups of records, and what is worked out of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouped {
    /// Of each group the keys, in the order of the [`GroupKey`]s (a stretch of time by its begin), and the values of all
    /// functions; in the order of the keys.
    pub groups: Vec<(Vec<u128>, Vec<Number>)>,
}

impl Grouped {
    /// The groups with the highest of their values at a place, highest first; equals in the order of their keys.
    ///
    /// # Panics
    /// If there are not as many values.
    pub fn top(&mut self, count: usize, value: usize) {
        let order = |a: &(Vec<u128>, Vec<Number>), b: &(Vec<u128>, Vec<Number>)| -> Ordering {
            b.1[value].compare(a.1[value]).then_with(|| a.0.cmp(&b.0))
        };
        if count < self.groups.len() {
            if count > 0 {
                self.groups.select_nth_unstable_by(count - 1, order);
            }
            self.groups.truncate(count);
        }
        self.groups.sort_by(order);
    }
}

/// Functions that are being worked out for each group of records, which come one by one.
#[derive(Debug)]
pub struct Grouping<'a> {
    schema: &'a Schema,
    keys: &'a [GroupKey],
    working: Vec<Working>,
    empty: Vec<State>,
    groups: HashMap<Vec<u128>, Vec<State>, foldhash::fast::FixedState>,
    /// Of the record that came last.
    key: Vec<u128>,
}

impl<'a> Grouping<'a> {
    /// No groups yet.
    ///
    /// # Panics
    /// If an attribute is another schema's, or has no order.
    pub fn new(schema: &'a Schema, keys: &'a [GroupKey], functions: &[Function]) -> Self {
        let working: Vec<_> = functions.iter().map(|function| Working::new(function, schema)).collect();
        let empty = working.iter().map(Working::empty).collect();
        Self { schema, keys, working, empty, groups: HashMap::default(), key: Vec::with_capacity(keys.len()) }
    }

    /// Takes a record in.
    #[inline]
    pub fn add(&mut self, record: &[u8]) {
        let Self { schema, keys, working, empty, groups, key } = self;
        key.clear();
        key.extend(keys.iter().map(|key| key.of(schema, record)));
        let states = match groups.get_mut(key) {
            Some(states) => states,
            None => groups.entry(key.clone()).or_insert(empty.clone()),
        };
        for (working, state) in working.iter().zip(states) {
            working.add(state, record);
        }
    }

    /// The groups, and the values of each.
    pub fn finish(self) -> Grouped {
        let Self { working, groups, .. } = self;
        let mut groups: Vec<_> = groups.into_iter().map(|(key, states)| (key, values(&working, &states))).collect();
        groups.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Grouped { groups }
    }
}

/// Functions that are being worked out of records, which come one by one.
#[derive(Debug)]
pub struct Folding {
    working: Vec<Working>,
    states: Vec<State>,
}

impl Folding {
    /// Of no records yet.
    ///
    /// # Panics
    /// If an attribute is another schema's, or has no order.
    pub fn new(schema: &Schema, functions: &[Function]) -> Self {
        let working: Vec<_> = functions.iter().map(|function| Working::new(function, schema)).collect();
        Self { states: working.iter().map(Working::empty).collect(), working }
    }

    /// Takes a record in.
    #[inline]
    pub fn add(&mut self, record: &[u8]) {
        for (working, state) in self.working.iter().zip(&mut self.states) {
            working.add(state, record);
        }
    }

    /// Of each function all its values, one behind the other.
    pub fn finish(self) -> Vec<Number> {
        values(&self.working, &self.states)
    }
}

fn values(working: &[Working], states: &[State]) -> Vec<Number> {
    let each = working.iter().zip(states);
    each.flat_map(|(working, state)| (0..working.values()).map(|value| working.value(state, value))).collect()
}

impl Matched<'_> {
    /// Works functions out for each group of records.
    ///
    /// # Panics
    /// If an attribute is another schema's, or has no order.
    pub fn group(self, keys: &[GroupKey], functions: &[Function]) -> Grouped {
        let mut grouping = Grouping::new(self.schema(), keys, functions);
        self.for_each(|_, record| grouping.add(record));
        grouping.finish()
    }

    /// Folds records into functions' values: of each function all its values, one behind the other.
    ///
    /// # Panics
    /// If an attribute is another schema's, or has no order.
    pub fn fold(self, functions: &[Function]) -> Vec<Number> {
        let mut folding = Folding::new(self.schema(), functions);
        self.for_each(|_, record| folding.add(record));
        folding.finish()
    }
}
