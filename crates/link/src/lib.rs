//! A link in user space: real packets pass the network of a simulation that runs in real time.
//!
//! The network is that of [`queuescope_sim`], with its links, disciplines and switch programs unchanged. The packets
//! are those of real hosts: they are read from the other end of the hosts' interfaces ([`queuescope_live::Tun`]), and delivered to
//! their receiver when the simulation says so. Each event runs as soon after it is due as the machine can.
//! [`Timing`] measures how much later that is. Delays do not add up: the next departure is counted from when the
//! last was due, not from when it was made.
//!
//! - [`RealTime`] moves packets, and reports what happens at the links to a [`Watcher`]. [`HeldBack`] is how long the machine was too slow.
//! - [`PacketRoute`] is where packets enter the network and which end receives them; [`Testbed`] has the network namespaces and interfaces
//!   of one run.
//! - [`command`] runs a program behind a link, and leaves no process behind when either ends. [`CommandLink`] is the link of a command, which
//!   [`LinkOptions`] describe, and [`Program`] the command.
//! - [`traffic`] plans flows over the TCP of this machine, and sums them up.
//! - [`RealHosts`] is the [world](queuescope_run::World) in which the hosts of a scenario are real.
#![cfg(target_os = "linux")]

mod border;
mod carried;
pub mod command;
mod command_link;
mod connections;
mod device;
mod error;
mod frames;
mod held_back;
pub mod hosts;
mod plan;
mod real_hosts;
mod real_time;
mod rewrite;
mod testbed;
mod timing;
pub mod traffic;

pub use border::{Border, BorderCounts, Side};
pub use carried::complete_report;
pub use command_link::{CommandLink, LinkEnds, Program};
pub use device::Device;
pub use error::Error;
pub use frames::Frame;
pub use held_back::HeldBack;
pub use plan::LinkOptions;
pub use real_hosts::RealHosts;
pub use real_time::{LinkError, PacketRoute, PacketRoutes, RealTime, RunState, TransitCounts, Watcher};
pub use testbed::{NetworkEnd, Testbed};
pub use timing::{Sleep, Timing, sleep_exactly};
