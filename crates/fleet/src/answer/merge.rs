//! The parts of several hosts become one answer.

use super::asked::Asked;
use super::partial::Partial;
use queuescope_log::{Folding, Group, Grouping, Number, PartError};

/// Joins the parts of an answer, in any order: the result is the same, except for the last bits of sums, means and deviations of fractions, which
/// each addition rounds.
#[derive(Debug)]
pub struct Merging<'a> {
    asked: &'a Asked,
    grouping: Grouping<'a>,
    packets: u64,
    records: u64,
    left_out: u64,
}

/// The answer of several hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The groups, and the values of the question's functions: the highest ones first, if only those are wanted, or sorted by keys. Without
    /// keys, there is one group.
    pub groups: Vec<Group>,
    /// The number of matching packets.
    pub packets: u64,
    /// Records examined.
    pub records: u64,
    /// Groups that hosts left out. If there are any, totals of other groups may be too low.
    pub left_out: u64,
}

impl<'a> Merging<'a> {
    /// No parts yet.
    pub fn new(asked: &'a Asked) -> Self {
        let grouping = Grouping::new(asked.schema(), asked.keys(), &asked.counted());
        Self { asked, grouping, packets: 0, records: 0, left_out: 0 }
    }

    /// Adds the part of a host.
    ///
    /// # Errors
    /// Fails if it is a part of another answer; then nothing of it is added.
    pub fn add(&mut self, part: &Partial) -> Result<(), PartError> {
        part.groups.iter().try_for_each(|(keys, states)| self.grouping.check_part(keys, states))?;
        part.groups.iter().try_for_each(|(keys, states)| self.grouping.add_part(keys, states))?;
        self.packets = self.packets.saturating_add(part.packets);
        self.records = self.records.saturating_add(part.records);
        self.left_out = self.left_out.saturating_add(part.left_out);
        Ok(())
    }

    /// The answer.
    pub fn finish(self) -> Merged {
        let Self { asked, grouping, packets, records, left_out } = self;
        let mut grouped = grouping.finish();
        if let Some(top) = asked.top() {
            grouped.top(top, 0);
        }
        let without_count = |(keys, mut values): (Vec<u128>, Vec<Number>)| {
            values.pop();
            (keys, values)
        };
        let mut groups: Vec<_> = grouped.iter().map(without_count).collect();
        if asked.keys().is_empty() && groups.is_empty() {
            groups.push((Vec::new(), Folding::new(asked.schema(), asked.functions()).finish()));
        }
        Merged { groups, packets, records, left_out }
    }
}
