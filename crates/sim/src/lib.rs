//! Packets through queues and links.
//!
//! - [`Replay`]: a stream of packets with their arrival times through one discipline, drained at a rate.
//! - [`Transmitter`]: a link that sends one packet at a time, in exact integer arithmetic.
//! - [`Speedup`]: arrival times, compressed by an exact ratio.
//! - [`RateTrace`] and [`Varying`]: a link whose rate varies.
//! - [`workload`]: who sends how much to whom, and when.
//! - [`summary`]: fairness, percentiles and utilisation.

mod replay;
mod speedup;
pub mod summary;
mod trace;
mod transmitter;
pub mod workload;

pub use replay::{Output, Replay};
pub use speedup::{Speedup, SpeedupError};
pub use trace::{RateTrace, TraceError, Varying};
pub use transmitter::Transmitter;
