//! A custom discipline, switch program and congestion control. Each is simulated and compared with its known
//! behaviour.

pub mod fixed_window;
pub mod head_drop;
pub mod urgent_first;
