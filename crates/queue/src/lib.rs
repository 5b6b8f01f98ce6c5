//! Queue disciplines: what enters a queue, what leaves it, and in which order. Sans-IO: time comes in, nothing else does.
//!
//! [`Discipline`] is one queue, [`Pipeline`] a switch program around queues. A [`Sink`] is told of every packet that is
//! dropped or marked, so that nothing is lost in silence. One file per algorithm, each with its parameters, its state and
//! its counters:
//!
//! - [`TailDrop`]: first in, first out, and what does not fit is dropped.
//! - [`MultiQueue`]: several tail-drop queues of one port and their scheduler, also behind a [`Pipeline`].
//! - [`HashQueues`]: a flow is in one of n queues, served round robin.
//!
//! [`AnyDiscipline`] is any of them, chosen while the program runs.

mod any;
mod discipline;
mod fifo;
mod hash_queues;
mod limit;
mod multi;
mod pipeline;
mod random;
mod tail_drop;

pub use any::{AnyDiscipline, DisciplineParams};
pub use discipline::{Discipline, DropReason, Dropped, MarkReason, Outlet, Sink};
pub use hash_queues::{HashQueues, HashQueuesParams};
pub use limit::{Limit, LimitError};
pub use multi::{MultiQueue, MultiQueueParams, MultiQueueStats, Scheduler};
pub use pipeline::{Activity, Egress, Headers, Host, Ingress, Pipeline, Port};
pub use tail_drop::{TailDrop, TailDropParams, TailDropStats};
