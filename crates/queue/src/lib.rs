//! Queue disciplines: what enters a queue, what leaves it, and in which order. Sans-IO: time comes in, nothing else does.
//!
//! [`Discipline`] is one queue, [`Pipeline`] a switch program around queues. A [`Sink`] is told of every packet that is
//! dropped or marked, so that nothing is lost in silence. One file per algorithm, each with its parameters, its state and
//! its counters:
//!
//! - [`TailDrop`]: first in, first out, and what does not fit is dropped.
//!
//! Switch programs:
//!
//! - [`HashToQueues`]: flows spread over the queues of a port.
//! - [`AckWindow`]: receive windows of ACKs are bounded by a flow's share of the bottleneck.
//! - [`ConQuestAqm`]: flows that have too much of the queue are marked or dropped.
//! - [`Abc`]: who sends much is dropped first, by the activity that packets carry.

mod abc;
mod ack_window;
mod conquest_aqm;
mod discipline;
mod fifo;
mod hash_to_queues;
mod limit;
mod pipeline;
mod random;
mod tail_drop;

pub use abc::{
    Abc, AbcError, AbcParams, AbcStats, ActivityAqm, ActivityAqmParams, Aggregates, Average, Contract, DelayClass,
    MeterParams, Missing, Others, PortRole, QueueLength, RateMeter, activity,
};
pub use ack_window::{AckWindow, AckWindowError, AckWindowParams, AckWindowStats};
pub use conquest_aqm::{
    ActAt, ConQuestAqm, ConQuestAqmParams, ConQuestAqmStats, Curve, HoldParams, Response, Step, Steps, StepsError,
    WeightUnit,
};
pub use discipline::{Discipline, DropReason, Dropped, MarkReason, Outlet, Sink};
pub use hash_to_queues::{HashToQueues, HashToQueuesParams, HashToQueuesStats};
pub use limit::{Limit, LimitError};
pub use pipeline::{Activity, Egress, Headers, Host, Ingress, Pipeline, Port};
pub use tail_drop::{TailDrop, TailDropParams, TailDropStats};
