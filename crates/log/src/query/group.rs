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

impl Matched<'_> {
    /// Works functions out for each group of records.
    ///
    /// # Panics
    /// If an attribute is another schema's, or has no order.
    pub fn group(self, keys: &[GroupKey], functions: &[Function]) -> Grouped {
        let schema = self.schema();
        let working: Vec<_> = functions.iter().map(|function| Working::new(function, schema)).collect();
        let empty: Vec<State> = working.iter().map(Working::empty).collect();
        let mut groups: HashMap<Vec<u128>, Vec<State>, foldhash::fast::FixedState> = HashMap::default();
        let mut key = Vec::with_capacity(keys.len());
        for (_, record) in self {
            key.clear();
            key.extend(keys.iter().map(|key| key.of(schema, record)));
            let states = match groups.get_mut(&key) {
                Some(states) => states,
                None => groups.entry(key.clone()).or_insert(empty.clone()),
            };
            for (working, state) in working.iter().zip(states) {
                working.add(state, record);
            }
        }
        let value = |states: Vec<State>| {
            let each = working.iter().zip(&states);
            each.flat_map(|(working, state)| (0..working.values()).map(|value| working.value(state, value))).collect()
        };
        let mut groups: Vec<_> = groups.into_iter().map(|(key, states)| (key, value(states))).collect();
        groups.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Grouped { groups }
    }
}
