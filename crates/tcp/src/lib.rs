//! TCP for simulations: congestion controls, and a sender and receiver. Sans-IO: segments and time come in, segments go out.
//!
//! - [`Segment`]: a TCP header, with the length of what it carries.
//! - [`CongestionControl`]: what a sender asks and tells; one file per algorithm.

pub mod congestion;
mod segment;

pub use congestion::{Ack, Congestion, CongestionControl, EcnUse, Phase, RateSample};
pub use congestion::{Algorithm, AlgorithmParams, Controller, Profile};
pub use segment::{Flags, Sacks, Segment, Timestamps};
