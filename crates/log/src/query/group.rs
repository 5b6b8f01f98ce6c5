//! Groups records by what they have in common.

use super::Matched;
use crate::derive::{Function, State, Working};
use crate::expr::Number;
use crate::schema::{AttributeId, Schema};
use hashbrown::HashMap;
use std::cmp::Ordering;

/// What the records of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKey {
    /// An attribute's value.
    Attribute(AttributeId),
    /// An interval of time: intervals are adjacent, and one of them begins at the origin.
    Time {
        /// The attribute.
        attribute: AttributeId,
        /// The length in nanoseconds; zero counts as one.
        width: u64,
        /// Where one interval begins.
        origin: u64,
    },
}

impl GroupKey {
    /// The attribute.
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
                // An interval that would begin before zero begins at zero.
                if at >= origin {
                    origin + (at - origin) / width * width
                } else {
                    origin.saturating_sub((origin - at).div_ceil(width) * width)
                }
            }
        }
    }
}

/// Groups of records, and the values computed for each.
///
/// ```
/// use queuescope_log::{Function, GroupKey, Log, Memory, Number, Options, Schema, departure};
/// use queuescope_wire::{ByteCount, Departure, FlowKey, Packet};
///
/// let log = Log::new(Schema::departure().clone(), Options { records: 1_000, memory: Memory::Lazy })?;
/// let mut record = [0; departure::SIZE];
/// for n in 0..90 {
///     let packet = Packet { size: ByteCount(100), ..Packet::default() };
///     let key = FlowKey { dst_port: if n % 3 == 0 { 53 } else { 443 }, ..FlowKey::default() };
///     departure::fill(&mut record, &Departure { packet, ..Departure::default() }, &key);
///     log.append(&record);
/// }
/// let port = log.schema().find("dst_port").ok_or("unknown attribute")?;
/// let length = log.schema().find("length").ok_or("unknown attribute")?;
/// let mut groups = log.snapshot().query().matched().group(&[GroupKey::Attribute(port)], &[Function::Sum(length)]);
/// groups.top(1, 0);
/// println!("{:?}", groups.groups);
/// assert_eq!(groups.groups, [(vec![443], vec![Number::Unsigned(6_000)])]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Grouped {
    /// For each group the keys, in the order of the [`GroupKey`]s (for an interval its start), and the values of all
    /// functions; sorted by keys.
    pub groups: Vec<(Vec<u128>, Vec<Number>)>,
}

impl Grouped {
    /// The `count` groups with the highest value at index `value`, highest first; groups with equal values in the order of their keys.
    ///
    /// # Panics
    /// Panics if there are not as many values.
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

/// Computes functions for each group of records, which are added one by one.
#[derive(Debug)]
pub struct Grouping<'a> {
    schema: &'a Schema,
    keys: &'a [GroupKey],
    working: Vec<Working>,
    empty: Vec<State>,
    groups: HashMap<Vec<u128>, Vec<State>, foldhash::fast::FixedState>,
    /// The keys of the last record.
    key: Vec<u128>,
}

impl<'a> Grouping<'a> {
    /// No groups yet.
    ///
    /// # Panics
    /// Panics if an attribute belongs to another schema, or is not comparable.
    pub fn new(schema: &'a Schema, keys: &'a [GroupKey], functions: &[Function]) -> Self {
        let working: Vec<_> = functions.iter().map(|function| Working::new(function, schema)).collect();
        let empty = working.iter().map(Working::empty).collect();
        Self { schema, keys, working, empty, groups: HashMap::default(), key: Vec::with_capacity(keys.len()) }
    }

    /// Adds a record.
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

/// Computes functions over records, which are added one by one.
///
/// ```
/// use queuescope_log::{Folding, Function, Number, Schema, departure};
///
/// let schema = Schema::departure();
/// let length = schema.find("length").ok_or("unknown attribute")?;
/// let mut folding = Folding::new(schema, &[Function::Count, Function::Sum(length)]);
/// for _ in 0..3 {
///     folding.add(&[0; departure::SIZE]);
/// }
/// assert_eq!(folding.finish(), [Number::Unsigned(3), Number::Unsigned(0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Folding {
    working: Vec<Working>,
    states: Vec<State>,
}

impl Folding {
    /// No records yet.
    ///
    /// # Panics
    /// Panics if an attribute belongs to another schema, or is not comparable.
    pub fn new(schema: &Schema, functions: &[Function]) -> Self {
        let working: Vec<_> = functions.iter().map(|function| Working::new(function, schema)).collect();
        Self { states: working.iter().map(Working::empty).collect(), working }
    }

    /// Adds a record.
    #[inline]
    pub fn add(&mut self, record: &[u8]) {
        for (working, state) in self.working.iter().zip(&mut self.states) {
            working.add(state, record);
        }
    }

    /// The values of all functions, one after another.
    pub fn finish(self) -> Vec<Number> {
        values(&self.working, &self.states)
    }
}

fn values(working: &[Working], states: &[State]) -> Vec<Number> {
    let each = working.iter().zip(states);
    each.flat_map(|(working, state)| (0..working.values()).map(|value| working.value(state, value))).collect()
}

impl Matched<'_> {
    /// Computes functions for each group of records.
    ///
    /// # Panics
    /// Panics if an attribute belongs to another schema, or is not comparable.
    pub fn group(self, keys: &[GroupKey], functions: &[Function]) -> Grouped {
        let mut grouping = Grouping::new(self.schema(), keys, functions);
        self.for_each(|_, record| grouping.add(record));
        grouping.finish()
    }

    /// Computes functions over all records: the values of all functions, one after another.
    ///
    /// # Panics
    /// Panics if an attribute belongs to another schema, or is not comparable.
    pub fn fold(self, functions: &[Function]) -> Vec<Number> {
        let mut folding = Folding::new(self.schema(), functions);
        self.for_each(|_, record| folding.add(record));
        folding.finish()
    }
}
