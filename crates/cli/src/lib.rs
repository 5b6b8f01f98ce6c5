//! The command `queuescope`: its arguments and its subcommands.
//!
//! - [`source`] opens what the command line names; `queuescope-ingest` reads it, and `queuescope-analysis` analyses it.
//! - [`args`], [`analyze`], [`why`], [`tap`], [`query`], [`record`], [`watch`], [`folder`], [`sim`], [`merge`], `experiment`,
//!   [`p4`], `live`, `link`, `compare`, `doctor`, `traffic`, `capture_live` and [`generate`] are the subcommands.

#[cfg(all(target_os = "linux", feature = "fleet"))]
pub mod agent;
pub mod analyze;
pub mod args;
#[cfg(target_os = "linux")]
pub mod capture_live;
#[cfg(target_os = "linux")]
pub mod compare;
#[cfg(all(target_os = "linux", feature = "fleet"))]
pub mod coordinator;
#[cfg(all(target_os = "linux", feature = "fleet"))]
mod coordinator_metrics;
#[cfg(target_os = "linux")]
pub mod doctor;
#[cfg(feature = "experiments")]
pub mod experiment;
mod export;
mod expressions;
#[cfg(all(target_os = "linux", feature = "fleet"))]
pub mod fleet;
#[cfg(all(target_os = "linux", feature = "fleet"))]
mod flow_acts;
pub mod folder;
pub mod generate;
#[cfg(target_os = "linux")]
pub mod granted;
#[cfg(target_os = "linux")]
pub mod link;
#[cfg(target_os = "linux")]
pub mod live;
pub mod merge;
pub mod outcome;
pub mod p4;
#[cfg(target_os = "linux")]
pub mod p4air;
mod paths;
pub mod progress;
pub mod query;
mod queued;
pub mod record;
mod setup;
pub mod sim;
pub mod source;
mod sweep;
pub mod tap;
mod terminal;
#[cfg(target_os = "linux")]
pub mod traffic;
mod views;
pub mod watch;
pub mod why;
