//! Queue disciplines: which packets enter a queue, which leave it, and in which order. Sans-IO: the only input besides
//! packets is the time.
//!
//! [`Discipline`] is one queue; [`Pipeline`] is a switch program around queues. Both report every packet that they drop
//! or mark to a [`Sink`]. There is one file per algorithm, with its parameters, its state and its counters.
//!
//! [`AnyDiscipline`] is any discipline and [`AnyPipeline`] any switch program, chosen at run time. The two lists below
//! define them. A [`DisciplineFactory`] or a [`PipelineFactory`] adds one from outside this crate.

// The disciplines. Each has its name in scenarios and reports, the exports of its file (the type, its parameters, all
// others), and a description.
any::disciplines! {
    "tail-drop" tail_drop::{TailDrop, TailDropParams, TailDropStats}:
        "First in, first out, and what does not fit is dropped.";
    "red" red::{
        Red, RedParams, AredParams, RedAdaptation, RedStats, RedThresholds, RedUnit, SwitchRed, SwitchVerdict,
    }:
        "Random early detection (Floyd and Jacobson 1993), also adaptive.";
    "codel" codel::{Codel, CodelParams, CodelFlavour, CodelStats}:
        "CoDel (RFC 8289): the wait is kept near a target.";
    "fq-codel" fq_codel::{FqCodel, FqCodelParams, FqCodelStats, Placement}:
        "FQ-CoDel (RFC 8290): fair among flows, each under CoDel.";
    "ecn-sharp" ecn_sharp::{EcnSharp, EcnSharpParams, EcnSharpStats}:
        "ECN# (Zhang et al., CoNEXT 2019): marks bursts at once, and a standing queue now and then.";
    "pie" pie::{Pie, PieParams, PieActivation, PieBurst, PieDecay, PieDelay, PieScaling, PieStats, ShortQueue}:
        "PIE (RFC 8033): early drops by a controller on the delay.";
    "pi2" pi2::{Pi2, Pi2Params, Pi2Stats}:
        "PI2 (De Schepper et al. 2016): as PIE, with its output squared.";
    "dual-pi2" dual_pi2::{DualPi2, DualPi2Params, DualPi2Scheduler, DualPi2Stats}:
        "DualPI2 (RFC 9332): a queue for L4S and one for the rest, coupled.";
    "multi-queue" multi::{MultiQueue, MultiQueueParams, MultiQueueStats, Scheduler}:
        "A queue for each class of service. `limit` of the link is for all together.";
    "hash-queues" hash_queues::{HashQueues, HashQueuesParams}:
        "A queue for each hash of the flow, served round robin. `limit` of the link is for all together.";
}

// The switch programs, in the same form.
any_pipeline::pipelines! {
    "hash-to-queues" hash_to_queues::{HashToQueues, HashToQueuesParams, HashToQueuesStats}:
        "Flows spread over the queues of a port by a hash, served round robin.";
    "ack-window" ack_window::{AckWindow, AckWindowParams, AckWindowError, AckWindowStats}:
        "Receive windows of ACKs are bounded by a flow's share of the link with the program that its data passes.";
    "pie-cp" pie_cp::{PieCp, PieCpParams, PieCpDecay, PieCpStats}:
        "PIE with its controller in the control plane (Kunze et al., IM 2021).";
    "pie-dp" pie_dp::{PieDp, PieDpParams, ShiftedUpdate, shifted_step}:
        "PIE in the data plane, by shifts.";
    "pie-table" pie_table::{PieTable, PieTableParams, PieRange, PieTableLayout, PieUpdateTable, TableUpdate}:
        "PIE in the data plane, by tables.";
    "egress-pi" egress_pi::{EgressPi, EgressPiParams, EgressPiStats}:
        "A squared PI controller behind the queue, of integers and shifts only.";
    "codel-dp" codel_dp::{CodelDp, CodelDpParams, CodelDpStats}:
        "CoDel behind the queue, with a table in place of the root.";
    "ecn-sharp-dp" ecn_sharp_dp::{EcnSharpDp, EcnSharpDpParams, EcnSharpDpStats}:
        "ECN# behind the queue, with a table in place of the root.";
    "conquest-aqm" conquest_aqm::{
        ConQuestAqm, ConQuestAqmParams, ActAt, ConQuestAqmStats, ConQuestChange, Curve, FlowLimit, HeldAction, HoldParams, Response, Step,
        Steps, StepsError, WeightUnit,
    }:
        "Flows that have too much of the queue are marked or dropped (Chen et al., CoNEXT 2019).";
    "abc" abc::{
        Abc, AbcParams, AbcError, AbcStats, ActivityAqm, ActivityAqmParams, Aggregates, Average, Contract, DelayClass,
        MeterParams, Missing, Others, PortRole, QueueLength, RateMeter, SwitchAqm, SwitchAqmParams, SwitchAverage,
        SwitchMeter, SwitchMeterParams, activity, switch_log2, switch_log2_blocks,
    }:
        "Activity-based congestion management: the most active senders are dropped first (Menth and Zeitler 2018, Brummer et al. 2019).";
    "p4air" p4air::{
        P4air, P4airParams, ActEvery, ActOn, Assignment, FlowAction, FlowTable, GroupActions, GroupMove, Newest, P4airError,
        P4airStats, Queueing, RegisterOf, RttFilter, RttSource, ShareForm, Start, SwitchFate, SwitchNote, SwitchP4air,
        SwitchP4airError, SwitchP4airParams, SwitchPacket, SwitchRegister, SwitchRequest, SwitchShift, SwitchTcp,
    }:
        "Flows are grouped by their congestion control, and each group has its own queues (Turkovic and Kuipers, ICNP 2020).";
}

mod abc;
mod ack_window;
mod any;
mod any_pipeline;
mod checked;
mod codel;
mod codel_dp;
mod conquest_aqm;
mod counters;
mod custom_discipline;
mod custom_pipeline;
mod discipline;
mod drop_schedule;
mod dual_pi2;
mod ecn_sharp;
mod ecn_sharp_dp;
mod egress_pi;
mod fifo;
mod fq_codel;
mod hash_queues;
mod hash_to_queues;
mod limit;
mod multi;
mod p4air;
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

pub use any_pipeline::PipelineError;
pub use checked::Checked;
pub use custom_discipline::{CustomDiscipline, DisciplineFactory};
pub use custom_pipeline::{CustomPipeline, PipelineFactory};
pub use discipline::{Discipline, DropReason, Dropped, MarkReason, Outlet, Sink};
pub use drop_schedule::{DropSchedule, ScheduledDrops};
pub use fifo::{Fifo, Waiting};
pub use limit::{Limit, LimitError};
pub use pie_data_plane::{PieDataPlane, PieDataPlaneStats, UpdateRule};
pub use pie_switch::{LONGEST_PIE_TARGET, PieGains, PieStep, Trend};
pub use pipeline::{Activity, Egress, Headers, Host, Ingress, Pipeline, Port};
