//! The queue of a Linux interface, measured while packets are in it.
//!
//! An eBPF [`Probe`] stamps each packet before a qdisc and measures it when it leaves: its sojourn time and, with ConQuest
//! snapshots in the kernel, how many bytes of its flow left meanwhile. Only packets of flows that fill a congested queue
//! are handed over one by one; all others are counted. Later packets of such flows can be marked, dropped or limited to a
//! rate before the queue ([`Acting`]); so can flows that the caller names ([`FlowActs`]).
//!
//! Also in this crate: network namespaces ([`Namespace`]), their [`Interfaces`], and interfaces whose other end is a
//! program ([`Tun`]), or whose frames a program carries ([`EthernetPort`]); [`capture`] copies packets of an interface, and [`traffic`] generates flows.
#![cfg(target_os = "linux")]

mod abilities;
pub mod capabilities;
pub mod capture;
mod clock;
mod controls;
mod error;
mod ethernet;
mod interface;
mod named;
mod namespace;
mod option;
mod owners;
mod p4air;
mod probe;
pub mod traffic;
mod tun;

pub use abilities::{Ability, Gain, Grant, abilities, abilities_seen_by};
pub use clock::{now, thread_time, timespec, to_epoch};
pub use controls::{Control, ControlError, Controls};
pub use error::ProbeError;
pub use ethernet::{EthernetError, EthernetPort, Transfer};
pub use interface::{Address, Interfaces};
pub use named::{FlowAction, FlowActs, FlowMatch, FlowOrder, FlowOutcome};
pub use namespace::Namespace;
pub use owners::{Owner, OwnerCounts, Owners};
pub use p4air::{
    GuardCommand, P4air, P4airAction, P4airCounters, P4airDivision, P4airError, P4airFlow, P4airGroup, P4airParams,
    Shape, guard,
};
pub use probe::{Acted, Acting, ActingError, Action, Victim, Weigh};
pub use probe::{Condition, Field, Never, NeverError};
pub use probe::{Counters, Headers, Left, Probe, ProbeParams, Slice};
pub use tun::{Incoming, Tun};
