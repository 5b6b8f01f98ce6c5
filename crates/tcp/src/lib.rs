//! TCP for simulations: congestion controls, a sender and a receiver. Sans-IO: the caller passes in segments and times,
//! and takes segments out.
//!
//! - [`Segment`]: a TCP header and the length of its payload.
//! - [`Sender`] and [`Receiver`], built from [`TcpParams`]: the two ends of a connection that carries data one way.
//! - [`CongestionControl`]: one file per algorithm. [`Controller`] is any of them; a [`ControlFactory`] adds your own.

mod clock;
pub mod congestion;
mod params;
mod pieces;
mod receiver;
mod recent;
mod rtt;
mod segment;
mod sender;

pub use congestion::{Ack, Congestion, CongestionControl, EcnUse, Phase, RateSample};
pub use congestion::{Algorithm, AlgorithmParams, ControlFactory, Controller, InitialValues, Profile};
pub use params::{
    LossDetection, Pacing, RateMethod, ReductionBase, ReductionBound, Rescue, RtoFloor, RttMethod, TcpParams,
};
pub use receiver::{Receiver, ReceiverStats};
pub use segment::{Flags, Sacks, Segment, Timestamps};
pub use sender::{Sender, SenderStats};
