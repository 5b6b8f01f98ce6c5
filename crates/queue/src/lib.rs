//! Queue disciplines: what enters a queue, what leaves it, and in which order. Sans-IO: time comes in, nothing else does.
//!
//! [`Discipline`] is one queue, [`Pipeline`] a switch program around queues. A [`Sink`] learns of every packet that is
//! dropped or marked, so that nothing is lost in silence. One file per algorithm, each with its parameters, its state and
//! its counters.
//!
//! [`AnyDiscipline`] is any discipline and [`AnyPipeline`] any switch program, chosen while the program runs. The two lists
//! below say which there are; a [`DisciplineFactory`] or a [`PipelineFactory`] adds one from outside this crate.

// Every discipline: its parameters, its name in scenarios and reports, and what it is.
any::disciplines! {
    TailDrop(TailDropParams) "tail-drop": "First in, first out, and what does not fit is dropped.";
    Red(RedParams) "red": "Random early detection (Floyd and Jacobson 1993), also adaptive.";
    Codel(CodelParams) "codel": "CoDel (RFC 8289): the wait is kept near a target.";
    FqCodel(FqCodelParams) "fq-codel": "FQ-CoDel (RFC 8290): fair among flows, each under CoDel.";
    Pie(PieParams) "pie": "PIE (RFC 8033): early drops by a controller on the delay.";
    Pi2(Pi2Params) "pi2": "PI2 (De Schepper et al. 2016): as PIE, with its output squared.";
    DualPi2(DualPi2Params) "dual-pi2": "DualPI2 (RFC 9332): a queue for L4S and one for the rest, coupled.";
    MultiQueue(MultiQueueParams) "multi-queue":
        "A queue for each class of service. `limit` of the link is for all together.";
    HashQueues(HashQueuesParams) "hash-queues":
        "A queue for each hash of the flow, served round robin. `limit` of the link is for all together.";
}

// Every switch program, likewise.
any_pipeline::pipelines! {
    HashToQueues(HashToQueuesParams) "hash-to-queues":
        "Flows spread over the queues of a port by a hash, served round robin.";
    AckWindow(AckWindowParams) "ack-window":
        "Receive windows of ACKs are bounded by a flow's share of the link with the program that its data passes.";
    PieCp(PieCpParams) "pie-cp": "PIE with its controller in the control plane (Kunze et al., IM 2021).";
    PieDp(PieDpParams) "pie-dp": "PIE in the data plane, by shifts.";
    PieTable(PieTableParams) "pie-table": "PIE in the data plane, by tables.";
    EgressPi(EgressPiParams) "egress-pi": "A squared PI controller behind the queue, of integers and shifts only.";
    ConQuestAqm(ConQuestAqmParams) "conquest-aqm":
        "Flows that have too much of the queue are marked or dropped (Chen et al., CoNEXT 2019).";
    Abc(AbcParams) "abc":
        "Activity-based congestion management: who sends much is dropped first (Menth and Zeitler 2018, Brummer et al. 2019).";
}

mod abc;
mod ack_window;
mod any;
mod any_pipeline;
mod codel;
mod conquest_aqm;
mod counters;
mod custom_discipline;
mod custom_pipeline;
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
pub use any_pipeline::PipelineError;
pub use codel::{Codel, CodelFlavour, CodelParams, CodelStats};
pub use conquest_aqm::{
    ActAt, ConQuestAqm, ConQuestAqmParams, ConQuestAqmStats, ConQuestChange, Curve, HoldParams, Response, Step, Steps,
    StepsError, WeightUnit,
};
pub use custom_discipline::{CustomDiscipline, DisciplineFactory};
pub use custom_pipeline::{CustomPipeline, PipelineFactory};
pub use discipline::{Discipline, DropReason, Dropped, MarkReason, Outlet, Sink};
pub use dual_pi2::{DualPi2, DualPi2Params, DualPi2Scheduler, DualPi2Stats};
pub use egress_pi::{EgressPi, EgressPiParams, EgressPiStats};
pub use fifo::{Fifo, Waiting};
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
