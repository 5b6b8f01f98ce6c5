//! Queue disciplines: what enters a queue, what leaves it, and in which order. Sans-IO: time comes in, nothing else does.
//!
//! [`Discipline`] is one queue, [`Sink`] is told of every packet that does not leave it, so that nothing is lost in
//! silence. One file per algorithm, each with its parameters, its state and its counters:
//!
//! - [`TailDrop`]: first in, first out, and what does not fit is dropped.

mod discipline;
mod limit;
mod tail_drop;

pub use discipline::{Discipline, DropReason, Sink};
pub use limit::{Limit, LimitError};
pub use tail_drop::{TailDrop, TailDropParams, TailDropStats};
