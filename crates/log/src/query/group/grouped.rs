//! Groups that were computed.

use super::{GroupPart, Groups, Rows};
use crate::expr::Number;
use crate::query::group::sums::Sums;
use std::cmp::Ordering;

/// The keys of a group, in the order of the [`GroupKey`](super::GroupKey)s (for an interval its start), and the values of all functions.
pub type Group = (Vec<u128>, Vec<Number>);

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
/// let groups: Vec<_> = groups.iter().collect();
/// println!("{groups:?}");
/// assert_eq!(groups, [(vec![443], vec![Number::Unsigned(6_000)])]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Grouped {
    rows: Rows,
    sums: Vec<Sums>,
    /// The numbers of groups, in order.
    order: Vec<u32>,
    last: Option<Vec<u128>>,
}

impl Grouped {
    pub(super) fn new(groups: Groups, last: Option<Vec<u128>>) -> Self {
        let rows = Rows::new(&groups);
        let order = rows.order();
        Self { rows, sums: groups.sums, order, last }
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The keys of the last group, if there was no memory for groups behind it: a further pass finds those
    /// ([`Grouping::after`](super::Grouping::after)).
    pub fn behind(&self) -> Option<&[u128]> {
        self.last.as_deref()
    }

    /// The groups: sorted by keys, or as [`top`](Self::top) sorted them.
    pub fn iter(&self) -> impl Iterator<Item = Group> + '_ {
        self.order.iter().map(|group| {
            let group = *group as usize;
            (self.rows.keys(group).collect(), self.values(group).collect())
        })
    }

    /// The groups with the states of their functions, in the order of [`iter`](Self::iter), for
    /// [`Grouping::add_part`](super::Grouping::add_part).
    pub fn parts(&self) -> impl Iterator<Item = GroupPart> + '_ {
        self.order.iter().map(|group| {
            let group = *group as usize;
            (self.rows.keys(group).collect(), self.sums.iter().map(|sums| sums.state(group)).collect())
        })
    }

    /// Keeps the `count` groups with the highest value at index `value`, highest first; groups with equal values in the order of their keys.
    ///
    /// # Panics
    /// Panics if there are not as many values.
    pub fn top(&mut self, count: usize, value: usize) {
        let value = |group: u32| self.values(group as usize).nth(value).unwrap_or_else(|| panic!("no value {value}"));
        let mut found: Vec<_> =
            (0u32..).zip(&self.order).map(|(place, group)| (value(*group), place, *group)).collect();
        let order = |a: &(Number, u32, u32), b: &(Number, u32, u32)| b.0.compare(a.0).then(a.1.cmp(&b.1));
        if count < found.len() {
            if count > 0 {
                found.select_nth_unstable_by(count - 1, order);
            }
            found.truncate(count);
        }
        found.sort_unstable_by(order);
        self.order = found.into_iter().map(|(.., group)| group).collect();
    }

    /// Like [`top`](Self::top), for groups of several passes.
    ///
    /// # Panics
    /// Panics if there are not as many values.
    pub fn top_of(groups: &mut Vec<Group>, count: usize, value: usize) {
        let order = |a: &Group, b: &Group| -> Ordering { b.1[value].compare(a.1[value]).then_with(|| a.0.cmp(&b.0)) };
        groups.sort_by(order);
        groups.truncate(count);
    }

    /// The values of a group.
    fn values(&self, group: usize) -> impl Iterator<Item = Number> + '_ {
        self.sums.iter().flat_map(move |sums| (0..sums.way().values()).map(move |value| sums.value(group, value)))
    }
}
