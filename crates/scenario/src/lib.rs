//! Scenario files: links, disciplines, flows, meters, duration and seed, as typed values.
//!
//! A scenario is a TOML file. [`Scenario::parse`] reads it, with [`Override`]s; errors point into the text that the
//! user wrote ([`TextError`]). [`Scenario::explain`] writes it back with all defaults. [`Scenario::schema`] describes
//! all keys for editors, [`Scenario::reference`] for readers. All four come from one list of keys (`keys.rs`).
//!
//! [`Network`] has the switches and links of a scenario, for every kind of topology.

mod aqm;
mod check;
mod describe;
mod dom;
mod explain;
mod keys;
mod link;
mod network;
mod observe;
mod overhead;
mod parameters;
mod params;
mod plain;
mod profile;
mod read;
mod scenario;
mod set;
mod sizes;
mod sweep;
mod topology;
mod traffic;
mod value;
mod workload;

pub use aqm::Management;
pub use link::{Access, Capacity, Link};
pub use network::{Hop, Network, NetworkLink};
pub use observe::{Meter, Record};
pub use overhead::{Overhead, OverheadError};
pub use parameters::Parameter;
pub use profile::Profile;
pub use queuescope_text::TextError;
pub use scenario::Scenario;
pub use set::Override;
pub use sizes::{Lognormal, NamedSizes, Sizes};
pub use sweep::{Cell, Sweep};
pub use topology::{Topology, Wire};
pub use traffic::{FlowGroup, Spacing, Traffic, Udp};
pub use value::{Buffer, BufferError, Frequency};
pub use workload::{Arrivals, Bursts, Capture, Datagrams, Incast, Intensity, Poisson, Workload};
