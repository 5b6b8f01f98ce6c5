//! Records of fixed size, their schemas, expressions that select them, and an in-memory log of them.
//!
//! - [`Schema`]: the [`Attribute`]s of a record, each with its [`Kind`] and place. Every comparable value has
//!   a *key*, a `u128` in the order of the values, so that indexes, ranges and prefixes work alike for all
//!   kinds.
//! - [`packet`], [`departure`] and [`queued`]: turn headers of captured frames, departures, and both together into
//!   records.
//! - [`Scope`] parses the text of an expression to an [`Expr`]; [`Expr::dnf`] normalises it to a [`Dnf`]; a [`Filter`]
//!   evaluates that on records.
//! - [`Log`]: records in one order, appended by any number of threads, and data derived from them (filters, indexes,
//!   aggregates); a [`Snapshot`] of it, and a [`Query`] on that. An [`Intake`] filters and samples records before a log; a [`Monitor`] checks
//!   [`Trigger`]s.
//! - [`Definitions`]: named filters, aggregates, triggers and indexes, as people write them and as they are added to a
//!   log.
//! - [`TextError`]: what is wrong with an expression, a schema or definitions, shown in the user's text under a caret.
//!
//! The crate reads no file and no clock. `docs/reference/expressions.md`, `docs/reference/schemas.md` and `docs/reference/definitions.md` are its
//! user documentation.

#[cfg(feature = "arrow")]
pub mod arrow;
mod columns;
mod define;
mod derive;
mod expr;
mod frozen;
mod intake;
mod log;
mod primitive;
mod query;
mod schema;
mod store;
mod trigger;

pub use columns::{BATCH, BatchFilter, KeyBatch, KeyGather, Keys, Selected};
pub use define::{
    AggregateDefinition, AggregateTable, ApplyError, DEFAULT_PERIOD, Defined, Definitions, FilterDefinition,
    FilterTable, NamedMonitor, SHORTEST_PERIOD, Single, SingleKind, Tables, TriggerDefinition, TriggerTable,
    fill_parameters,
};
pub use derive::{Commutative, Function, State, Usage};
pub use expr::{
    AggregateId, AggregateTest, Aggregates, Dnf, DnfError, Expr, Filter, Limits, MaskTest, NameError, NoAggregates,
    Number, Orderings, Predicate, Ranges, Relation, Scope, Term, Test,
};
pub use frozen::FrozenTail;
pub use intake::{Counts, Intake, RatioError, Sampling};
pub use log::{Appended, FilterId, Log, Options, Snapshot};
pub use query::{
    Explained, Folding, Group, GroupKey, GroupPart, Grouped, Grouping, Matched, PartError, PartState, Query, Step,
};
pub use queuescope_text::TextError;
pub use schema::{
    Attribute, AttributeId, DateError, Kind, LAST_TIME, Order, Place, Reader, Schema, begins_as_date, date_text,
    departure, name_problem, packet, parse_date, queued, toml_problem,
};
pub use store::{Memory, MemoryError};
pub use trigger::{Alert, Monitor, Trigger, TriggerError, TriggerId};
