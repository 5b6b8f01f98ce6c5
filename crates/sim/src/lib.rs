//! Packets through queues and links.
//!
//! - [`Replay`]: a stream of packets with their arrival times through one discipline, drained at a rate.
//! - [`Transmitter`]: a link that sends one packet at a time, in exact integer arithmetic.
//! - [`Speedup`]: arrival times, compressed by an exact ratio.

mod replay;
mod speedup;
mod transmitter;

pub use replay::{Output, Replay};
pub use speedup::{Speedup, SpeedupError};
pub use transmitter::Transmitter;
