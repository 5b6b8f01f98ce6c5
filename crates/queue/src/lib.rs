//! Queue disciplines: what enters a queue, what leaves it, and in which order. Sans-IO: time comes in, nothing else does.
//!
//! [`Discipline`] is one queue, [`Pipeline`] a switch program around queues. A [`Sink`] is told of every packet that is
//! dropped or marked, so that nothing is lost in silence. One file per algorithm, each with its parameters, its state and
//! its counters:
//!
//! - [`TailDrop`]: first in, first out, and what does not fit is dropped.
//! - [`Codel`]: keeps the time that packets wait near a target (RFC 8289).
//! - [`FqCodel`]: fair among flows, each under CoDel (RFC 8290).
//! - [`MultiQueue`]: several tail-drop queues of one port and their scheduler, also behind a [`Pipeline`].
//! - [`HashQueues`]: a flow is in one of n queues, served round robin.
//! - [`Red`]: drops or marks at random, the more probably the longer the queue is on average (with ARED and others).
//! - [`Pie`]: early drops by a PI controller on the delay (RFC 8033).
//! - [`Pi2`]: the same with its output squared; [`DualPi2`]: two queues coupled by it (RFC 9332).
//!
//! [`AnyDiscipline`] is any of them, chosen while the program runs.
//!
//! Switch programs, behind one type in [`AnyPipeline`]:
//!
//! - [`HashToQueues`]: flows spread over the queues of a port.
//! - [`AckWindow`]: receive windows of ACKs are bounded by a flow's share of the bottleneck.
//! - [`PieCp`], [`PieDp`], [`PieTable`]: PIE as a switch can run it (Kunze et al., IM 2021).
//! - [`ConQuestAqm`]: flows that have too much of the queue are marked or dropped (Chen et al., CoNEXT 2019).
//! - [`Abc`]: who sends much is dropped first, by the activity that packets carry (Menth et al., Future Internet 2019).

mod abc;
mod ack_window;
mod any;
mod any_pipeline;
mod codel;
mod conquest_aqm;
mod discipline;
mod dual_pi2;
mod egress_pi;
mod fifo;
mod fq_codel;
mod hash_queues;
mod hash_to_queues;
mod limit;
mod multi;
mod pi2;
mod pie;
mod pie_cp;
mod pie_data_plane;
mod pie_dp;
mod pie_switch;
mod pie_table;
mod pipeline;
mod random;
mod red;
mod tail_drop;
mod update_clock;

pub use abc::{
    Abc, AbcError, AbcParams, AbcStats, ActivityAqm, ActivityAqmParams, Aggregates, Average, Contract, DelayClass,
    MeterParams, Missing, Others, PortRole, QueueLength, RateMeter, activity,
};
pub use ack_window::{AckWindow, AckWindowError, AckWindowParams, AckWindowStats};
pub use any::{AnyDiscipline, DisciplineParams};
pub use any_pipeline::{AnyPipeline, PipelineError, PipelineParams};
pub use codel::{Codel, CodelFlavour, CodelParams, CodelStats};
pub use conquest_aqm::{
    ActAt, ConQuestAqm, ConQuestAqmParams, ConQuestAqmStats, ConQuestChange, Curve, HoldParams, Response, Step, Steps,
    StepsError, WeightUnit,
};
pub use discipline::{Discipline, DropReason, Dropped, MarkReason, Outlet, Sink};
pub use dual_pi2::{DualPi2, DualPi2Params, DualPi2Scheduler, DualPi2Stats};
pub use egress_pi::{EgressPi, EgressPiParams, EgressPiStats};
pub use fq_codel::{FqCodel, FqCodelParams, FqCodelStats, Placement};
pub use hash_queues::{HashQueues, HashQueuesParams};
pub use hash_to_queues::{HashToQueues, HashToQueuesParams, HashToQueuesStats};
pub use limit::{Limit, LimitError};
pub use multi::{MultiQueue, MultiQueueParams, MultiQueueStats, Scheduler};
pub use pi2::{Pi2, Pi2Params, Pi2Stats};
pub use pie::{Pie, PieActivation, PieBurst, PieDecay, PieDelay, PieParams, PieScaling, PieStats, ShortQueue};
pub use pie_cp::{PieCp, PieCpDecay, PieCpParams, PieCpStats};
pub use pie_data_plane::{PieDataPlane, PieDataPlaneStats, UpdateRule};
pub use pie_dp::{PieDp, PieDpParams, ShiftedUpdate, shifted_step};
pub use pie_switch::{PieGains, PieStep, Trend};
pub use pie_table::{PieRange, PieTable, PieTableLayout, PieTableParams, PieUpdateTable, TableUpdate};
pub use pipeline::{Activity, Egress, Headers, Host, Ingress, Pipeline, Port};
pub use red::{AredParams, Red, RedAdaptation, RedParams, RedStats, RedThresholds, RedUnit};
pub use tail_drop::{TailDrop, TailDropParams, TailDropStats};
