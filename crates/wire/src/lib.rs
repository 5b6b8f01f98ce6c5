//! Headers from bytes, and the records that every other crate uses.
//!
//! This crate is on floor 0 of the workspace: it imports no other crate of it and does no input or output.
//!
//! - [`Nanos`], [`Rate`], [`ByteCount`]: units, with exact integer arithmetic and one way to write each.
//! - [`grouped`]: counts with digits in groups.
//! - [`Packet`] and [`Departure`]: a packet as a queue sees it, and the record that it left one.
//! - [`FlowKey`] and [`Granularity`]: the flow of a packet, from a five-tuple to a prefix.
//! - [`FlowTable`] and [`Flows`]: tables that assign small [`FlowId`]s to keys and reuse them.
//! - [`MetFlows`]: the flows that a reader met lately, by which it names flows to a table on another thread.
//! - [`Distinct`]: the number of distinct values, exact while it is small, and then an estimate in fixed memory.
//! - [`Draws`]: the source of random numbers of a run, our own generator or that of ns-3.
//! - [`parse`]: link, network and transport headers of a captured frame.
//! - [`ActivityHeader`]: the header of ABC on Ethernet frames.
//! - [`telemetry`]: reports and headers of In-band Network Telemetry, from switches that measure each hop.

mod activity;
mod distinct;
mod draws;
mod flows;
mod grouped;
mod key;
mod met;
mod name;
mod packet;
pub mod parse;
pub mod telemetry;
mod units;

pub use activity::{ActivityHeader, MalformedActivity};
pub use distinct::{Distinct, MalformedDistinct};
pub use draws::{Draws, Mrg32k3a};
pub use flows::{FlowTable, Flows};
pub use grouped::grouped;
pub use key::{Family, FlowKey, Granularity, GranularityError, KeyMask, MaskedKey, Prefixes};
pub use met::MetFlows;
pub use packet::{Backlog, Class, Departure, Ecn, FlowId, Packet, PacketId, QueueId};
pub use units::{ByteCount, Nanos, Rate, UnitError};
