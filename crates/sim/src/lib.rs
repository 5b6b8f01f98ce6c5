//! Simulates packets that pass queues and links.
//!
//! - [`Replay`]: a stream of packets with arrival times through one discipline, drained at a rate.
//! - [`Aqm`]: any discipline or switch program, chosen at run time; [`Managed`]: a queue with it.
//! - [`Transmitter`]: a link that sends one packet at a time, in exact integer arithmetic.
//! - [`Speedup`]: arrival times, compressed by an exact ratio.
//! - [`Simulation`]: traffic over a [`Topology`] of links with any discipline, event by event.
//! - [`Entrance`]: where real packets enter a simulation that runs in real time.
//! - [`RateTrace`] and [`Varying`]: a link whose rate varies.
//! - [`Telemetry`]: the hops of each packet; [`Records`]: these as records of a log.
//! - [`workload`]: the senders, receivers, sizes and times of flows.
//! - [`summary`]: fairness and percentiles.

mod aqm;
mod build;
mod choice;
mod connection;
mod detour;
mod error;
mod event;
mod link;
mod network;
mod observer;
mod outside;
mod packets;
mod program;
mod record;
mod replay;
mod sample;
mod seed;
pub mod shapes;
mod simulation;
mod speedup;
pub mod summary;
mod telemetry;
mod topology;
mod trace;
mod traffic;
mod transmitter;
pub mod workload;

pub use aqm::{Aqm, AqmError, Managed};
pub use build::{
    Built, Files, Group, NamedFiles, Own, TrafficSource, build, build_with, build_without_traffic, files_of,
    traffic as traffic_of,
};
pub use choice::{Choice, ControlChoice, DisciplineChoice, PipelineChoice};
pub use connection::{FlowRecord, Progress, Transport};
pub use detour::DetourParams;
pub use error::BuildError;
pub use link::{GroupStats, LinkRate, LinkStats};
pub use observer::Observer;
pub use outside::{Entrance, EntranceParams, ExternalPacket};
pub use packets::{InFlight, connection_key, number};
pub use program::ReplayedProgram;
pub use record::{Records, segment};
pub use replay::{Output, Replay};
pub use sample::{FlowSample, LinkSample, Sample};
pub use simulation::Simulation;
pub use speedup::{Speedup, SpeedupError};
pub use telemetry::{Hop, Journey, Telemetry};
pub use topology::{LinkId, LinkParams, NodeId, Routes, SwitchParams, Topology};
pub use trace::{RateTrace, TraceError, Varying};
pub use traffic::{Datagram, DatagramParams, DatagramRecord};
pub use transmitter::Transmitter;
