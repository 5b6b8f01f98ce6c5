//! Records of fixed size, what they are made of, and expressions that ask for them.
//!
//! - [`Schema`]: the [`Attribute`]s of a record, each with its [`Kind`] and place. Every value that can be compared has
//!   a *key*, a `u128` in the order of the values, so that an index, a range and a prefix are the same thing for all
//!   kinds.
//! - [`packet`], [`departure`] and [`queued`]: how headers of captured frames, departures, and both together become
//!   records.
//! - [`Scope`] reads the text of an expression to an [`Expr`]; [`Expr::dnf`] normalises it to a [`Dnf`]; [`Filter`]
//!   decides with that on records.
//! - [`Log`]: records in one order, to which any number of threads append; what follows from them (filters, indexes,
//!   aggregates); a [`Snapshot`] of it and a [`Query`] of that. An [`Intake`] stands before it, a [`Monitor`] looks at
//!   [`Trigger`]s.
//! - [`Definitions`]: filters, aggregates, triggers and indexes by names, as people write them and as they are added to a
//!   log.
//! - [`TextError`]: what is wrong with an expression, a schema or definitions, in the text that the user wrote, under a caret.
//!
//! The crate reads no file and no clock. `docs/reference/expressions.md`, `docs/reference/schemas.md` and `docs/reference/definitions.md` are its
//! pages for users.

#[cfg(feature = "arrow")]
pub mod arrow;
mod define;
mod derive;
mod expr;
mod intake;
mod log;
mod primitive;
mod query;
mod schema;
mod store;
mod trigger;

pub use define::{
    AggregateDefinition, ApplyError, DEFAULT_PERIOD, Defined, Definitions, FilterDefinition, NamedMonitor,
    SHORTEST_PERIOD, Single, SingleKind, TriggerDefinition,
};
pub use derive::{Commutative, Function, State, Usage};
pub use expr::{
    AggregateId, AggregateTest, Aggregates, Dnf, DnfError, Expr, Filter, Limits, MaskTest, NameError, NoAggregates,
    Number, Orderings, Predicate, Ranges, Relation, Scope, Term, Test,
};
pub use intake::{Counts, Intake, RatioError, Sampling};
pub use log::{Appended, FilterId, Log, Options, Snapshot};
pub use query::{Explained, Folding, GroupKey, Grouped, Grouping, Matched, Query, Step};
pub use queuescope_text::TextError;
pub use schema::{Attribute, AttributeId, Kind, LAST_TIME, Order, Place, Reader, Schema, departure, packet, queued};
pub use store::{FrozenTail, Memory, MemoryError};
pub use trigger::{Alert, Monitor, Trigger, TriggerError, TriggerId};
