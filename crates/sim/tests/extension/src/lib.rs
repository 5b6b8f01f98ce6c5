//! Custom disciplines, a switch program and a congestion control. Each is simulated and compared with its known
//! behaviour.

pub mod fixed_window;
pub mod head_drop;
pub mod token_bucket;
pub mod urgent_first;
