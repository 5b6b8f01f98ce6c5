//! Queries: find matching records the cheapest way, and compute aggregates over them.

mod explain;
mod group;
mod matched;
mod plan;

pub use explain::{Explained, Step};
pub use group::{Folding, Group, GroupKey, GroupPart, Grouped, Grouping, PartError, PartState};
pub use matched::Matched;

use crate::derive::{FilterState, Reading};
use crate::expr::Dnf;
use crate::schema::Schema;
use plan::Plan;
use std::sync::Arc;

/// A query on a snapshot: an expression, a filter, or all records; within a time range.
///
/// ```
/// # use queuescope_log::{Log, Memory, Options, Schema, Scope};
/// # let log = Log::new(Schema::packet().clone(), Options { records: 1000, memory: Memory::Lazy })?;
/// let scope = log.scope();
/// let expression = scope.parse("dst_port == 443 and length > 1000B")?.dnf(&scope)?;
/// let snapshot = log.snapshot();
/// let query = snapshot.query().matching(&expression).from(1_000_000).to(2_000_000);
/// println!("{}: {} records", query.explain(), query.matched().count());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Query<'a> {
    reading: &'a Reading,
    schema: &'a Schema,
    what: Selection<'a>,
    /// Further expressions that must hold, in turn.
    then: Vec<&'a Dnf>,
    from: u64,
    to: u64,
}

/// The selected records, at any time.
#[derive(Debug, Clone)]
enum Selection<'a> {
    All,
    Expression(&'a Dnf),
    Filter(Arc<FilterState>),
}

impl<'a> Query<'a> {
    pub(crate) fn new(reading: &'a Reading, schema: &'a Schema) -> Self {
        Self { reading, schema, what: Selection::All, then: Vec::new(), from: 0, to: u64::MAX }
    }

    pub(crate) fn of_filter(self, state: &Arc<FilterState>) -> Self {
        Self { what: Selection::Filter(Arc::clone(state)), ..self }
    }

    /// Narrows the query to records that match an expression. It may use only attributes of the log:
    /// add an expression with aggregates to the log as a filter.
    ///
    /// # Panics
    /// Panics if it names an aggregate.
    #[must_use]
    pub fn matching(mut self, expression: &'a Dnf) -> Self {
        assert!(
            expression.aggregates().is_empty(),
            "an expression with aggregates must be added as a filter of the log"
        );
        match self.what {
            Selection::All => self.what = Selection::Expression(expression),
            Selection::Filter(_) | Selection::Expression(_) => self.then.push(expression),
        }
        self
    }

    /// Narrows the query to records from a time on, in nanoseconds since the records' epoch. No effect for records without a time.
    #[must_use]
    pub fn from(self, time: u64) -> Self {
        Self { from: time, ..self }
    }

    /// Narrows the query to records before a time; `u64::MAX` means no end, so a record with that time is found, too.
    #[must_use]
    pub fn to(self, time: u64) -> Self {
        Self { to: time, ..self }
    }

    /// The records, in the order of the log.
    pub fn matched(&self) -> Matched<'a> {
        Matched::new(Plan::new(self))
    }

    /// The records by their own time, records with equal times in the order of the log: captures of several links have only the time in
    /// common. All positions are computed first.
    ///
    /// # Panics
    /// Panics if records have no time.
    pub fn by_time(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let time = self.schema.time().unwrap_or_else(|| panic!("records of `{}` have no time", self.schema.name()));
        let (time, view) = (self.schema.reader(time), self.reading.view());
        let mut found: Vec<_> = self.matched().map(|(position, record)| (time.key(record) as u64, position)).collect();
        found.sort_unstable();
        found.into_iter().map(move |(_, position)| (position, view.record(position)))
    }

    /// How the records are found.
    pub fn explain(&self) -> Explained {
        Plan::new(self).explain()
    }
}
