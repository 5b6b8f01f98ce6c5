//! A discipline, a switch program and a congestion control from outside queuescope, each simulated and held against what is
//! known of it.

pub mod fixed_window;
pub mod head_drop;
pub mod urgent_first;
