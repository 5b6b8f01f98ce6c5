//! Which records are meant, found the cheapest way, and what is worked out of them.

mod explain;
mod group;
mod matched;
mod plan;

pub use explain::{Explained, Step};
pub use group::{Folding, GroupKey, Grouped, Grouping};
pub use matched::Matched;

use crate::derive::{FilterState, Reading};
use crate::expr::Dnf;
use crate::schema::Schema;
use plan::Plan;
use std::sync::Arc;

/// What is asked of a snapshot: an expression, a filter, or all; within a time.
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
    what: What<'a>,
    /// What must hold of these besides, in turn.
    then: Vec<&'a Dnf>,
    from: u64,
    to: u64,
}

/// Which records are asked for, whenever they were.
#[derive(Debug, Clone)]
enum What<'a> {
    All,
    Expression(&'a Dnf),
    Filter(Arc<FilterState>),
}

impl<'a> Query<'a> {
    pub(crate) fn new(reading: &'a Reading, schema: &'a Schema) -> Self {
        Self { reading, schema, what: What::All, then: Vec::new(), from: 0, to: u64::MAX }
    }

    pub(crate) fn of_filter(self, state: &Arc<FilterState>) -> Self {
        Self { what: What::Filter(Arc::clone(state)), ..self }
    }

    /// Of the records that were asked for before, those of which an expression holds. It is about the log's attributes
    /// only: what compares with aggregates is added to the log as a filter.
    ///
    /// # Panics
    /// If it names an aggregate.
    #[must_use]
    pub fn matching(mut self, expression: &'a Dnf) -> Self {
        assert!(expression.aggregates().is_empty(), "an expression with aggregates is to be a filter of the log");
        match self.what {
            What::All => self.what = What::Expression(expression),
            What::Filter(_) | What::Expression(_) => self.then.push(expression),
        }
        self
    }

    /// From a time on, in nanoseconds as the records have it. It means nothing for records without a time.
    #[must_use]
    pub fn from(self, time: u64) -> Self {
        Self { from: time, ..self }
    }

    /// Before a time; `u64::MAX` is no end, so that a record of that time is found, too.
    #[must_use]
    pub fn to(self, time: u64) -> Self {
        Self { to: time, ..self }
    }

    /// The records, in the order of the log.
    pub fn matched(&self) -> Matched<'a> {
        Matched::new(Plan::new(self))
    }

    /// The records by their own time, equal ones in the order of the log: captures of several links have none other in
    /// common. All positions are worked out first.
    ///
    /// # Panics
    /// If records have no time.
    pub fn by_time(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let time = self.schema.time().unwrap_or_else(|| panic!("records of `{}` have no time", self.schema.name()));
        let (time, view) = (self.schema.reader(time), self.reading.view());
        let mut found: Vec<_> = self.matched().map(|(position, record)| (time.key(record) as u64, position)).collect();
        found.sort_unstable();
        found.into_iter().map(move |(_, position)| (position, view.record(position)))
    }

    /// How they are found.
    pub fn explain(&self) -> Explained {
        Plan::new(self).explain()
    }
}
