//! Queue disciplines: what enters a queue, what leaves it, and in which order. Sans-IO: time comes in, nothing else does.
//!
//! [`Discipline`] is one queue, [`Pipeline`] a switch program around queues. A [`Sink`] is told of every packet that is
//! dropped or marked, so that nothing is lost in silence. One file per algorithm, each with its parameters, its state and
//! its counters:
//!
//! - [`TailDrop`]: first in, first out, and what does not fit is dropped.
//! - [`Pie`]: early drops by a PI controller on the delay (RFC 8033).
//! - [`Pi2`]: the same with its output squared; [`DualPi2`]: two queues coupled by it (RFC 9332).
//!
//! Switch programs, behind one type in [`AnyPipeline`]:
//!
//! - [`PieCp`], [`PieDp`], [`PieTable`]: PIE as a switch can run it (Kunze et al., IM 2021).

mod any_pipeline;
mod discipline;
mod dual_pi2;
mod fifo;
mod limit;
mod pi2;
mod pie;
mod pie_cp;
mod pie_dp;
mod pie_switch;
mod pie_table;
mod pipeline;
mod random;
mod tail_drop;
mod update_clock;

pub use any_pipeline::{AnyPipeline, PipelineParams};
pub use discipline::{Discipline, DropReason, Dropped, MarkReason, Outlet, Sink};
pub use dual_pi2::{DualPi2, DualPi2Params, DualPi2Scheduler, DualPi2Stats};
pub use limit::{Limit, LimitError};
pub use pi2::{Pi2, Pi2Params, Pi2Stats};
pub use pie::{Pie, PieActivation, PieBurst, PieDecay, PieDelay, PieParams, PieScaling, PieStats, ShortQueue};
pub use pie_cp::{PieCp, PieCpDecay, PieCpParams, PieCpStats};
pub use pie_dp::{PieDp, PieDpParams, PieDpStats, shifted_step};
pub use pie_switch::{PieGains, PieStep, Trend};
pub use pie_table::{PieRange, PieTable, PieTableLayout, PieTableParams, PieTableStats, PieUpdateTable};
pub use pipeline::{Activity, Egress, Headers, Host, Ingress, Pipeline, Port};
pub use tail_drop::{TailDrop, TailDropParams, TailDropStats};
