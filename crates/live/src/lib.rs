//! The queue of a Linux interface, while packets are in it.
//!
//! An eBPF [`Probe`] stamps each packet before a qdisc and measures it as it leaves: how long it waited, and by ConQuest
//! snapshots kept in the kernel, how much of its flow left meanwhile. Only packets of flows that fill a congested queue
//! are told one by one; all others are counted. Packets of such flows that come later can be marked, dropped or held to a
//! rate before the queue ([`Acting`]).
//!
//! Beside it: a [`Namespace`] of one's own with [`Interfaces`], and such whose other end is a program ([`Tun`]);
//! [`capture`] copies packets of an interface, [`traffic`] makes some.
#![cfg(target_os = "linux")]

mod abilities;
pub mod capabilities;
pub mod capture;
mod clock;
mod controls;
mod error;
mod interface;
mod namespace;
mod option;
mod owners;
mod probe;
pub mod traffic;
mod tun;

pub use abilities::{Ability, Gain, Grant, abilities, abilities_seen_by};
pub use clock::{now, thread_time, timespec, to_epoch};
pub use controls::{Control, ControlError, Controls};
pub use error::ProbeError;
pub use interface::{Address, Interfaces};
pub use namespace::Namespace;
pub use owners::{Owner, OwnerCounts, Owners};
pub use probe::{Acted, Acting, ActingError, Action, Victim, Weigh};
pub use probe::{Condition, Field, Never, NeverError};
pub use probe::{Counters, Left, Probe, ProbeParams, Slice, sketch};
pub use tun::{Incoming, Tun};
