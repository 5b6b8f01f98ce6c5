//! TCP for simulations: congestion controls, and a sender and receiver. Sans-IO: segments and time come in, segments go out.
//!
//! - [`Segment`]: a TCP header, with the length of what it carries.
//! - [`Sender`] and [`Receiver`], made of [`TcpParams`]: the two ends of a connection that sends one way.
//! - [`CongestionControl`]: one file per algorithm, behind one type in [`Controller`]; a [`ControlFactory`] makes one of your own.

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
pub use congestion::{Algorithm, AlgorithmParams, ControlFactory, Controller, Opening, Profile};
pub use params::{
    LossDetection, Pacing, RateMethod, ReductionBase, ReductionBound, Rescue, RtoFloor, RttMethod, TcpParams,
};
pub use receiver::{Receiver, ReceiverStats};
pub use segment::{Flags, Sacks, Segment, Timestamps};
pub use sender::{Sender, SenderStats};
