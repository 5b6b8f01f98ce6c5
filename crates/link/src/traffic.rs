//! Load over the TCP of this machine: which flows start when, and what became of them. [`queuescope_live::traffic`] sends them.

mod options;
mod plan;
mod tally;

pub use options::{Burst, TrafficOptions};
pub use plan::{PlanError, TrafficPlan};
pub use tally::{Tally, served, served_json};
