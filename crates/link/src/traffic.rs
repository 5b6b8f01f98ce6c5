//! Load over the TCP of this machine: plans which flows start when, and sums up their results. [`queuescope_live::traffic`] sends them.

mod options;
mod plan;
mod tally;

pub use options::{Burst, TrafficOptions};
pub use plan::{PlanError, TrafficPlan};
pub use tally::{Tally, served, served_json};
