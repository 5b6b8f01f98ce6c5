//! A link in user space: real packets through the network of a simulation whose time is the real one.
//!
//! The network is that of [`queuescope_sim`], with its links, disciplines and switch programs as they are; but what
//! passes it are packets of real hosts, read from the other end of their interfaces ([`queuescope_live::Tun`]) and given
//! to the one they are for when the simulation says so. What is due is done as soon after that as the machine can: how
//! much later that was is measured ([`Timing`]), and nothing drifts, since the next departure is counted from when the
//! last was due, not from when it was made.
//!
//! - [`RealTime`] moves packets; a [`Watcher`] is told what happens at the links. [`MachineLimit`] says how long the machine was too slow for it.
//! - [`Way`] says which packets go where; [`Testbed`] has the network namespaces and interfaces of one run.
//! - [`command`] runs a program behind a link, and leaves nothing of it when either ends. [`CommandLink`] is the link of a command as
//!   [`LinkOptions`] say, and [`Program`] the command.
//! - [`traffic`]: flows over the TCP of this machine, planned and summed up.
//! - [`RealHosts`] is the [world](queuescope_run::World) in which the hosts of a scenario are real ones.
#![cfg(target_os = "linux")]

mod carried;
pub mod command;
mod command_link;
mod connections;
mod error;
mod frames;
pub mod hosts;
mod machine_limit;
mod plan;
mod real_hosts;
mod real_time;
mod rewrite;
mod testbed;
mod timing;
pub mod traffic;

pub use carried::complete_report;
pub use command_link::{CommandLink, Ends, Program};
pub use error::Error;
pub use frames::Frame;
pub use machine_limit::MachineLimit;
pub use plan::LinkOptions;
pub use real_hosts::RealHosts;
pub use real_time::{Counts, LinkError, RealTime, Running, Watcher, Way, Ways};
pub use testbed::{End, Testbed};
pub use timing::{Sleep, Timing, sleep_exactly};
