//! Bytes to headers, and the records that every other part speaks.
//!
//! This is floor 0 of the house: it imports no other crate of the workspace and does no input or output.
//!
//! - [`Nanos`], [`Rate`], [`ByteCount`]: units, with exact integer arithmetic and one way to write each.
//! - [`grouped`]: counts as people read them.
//! - [`Packet`] and [`Departure`]: a packet as a queue sees it, and the record that it left one.
//! - [`FlowKey`] and [`Granularity`]: who a packet belongs to, from a five-tuple to a prefix.
//! - [`FlowTable`] and [`Flows`]: the door that hands out small [`FlowId`]s and takes them back.
//! - [`Draws`]: whose random numbers a run draws, its own or those of ns-3.
//! - [`parse`]: link, network and transport headers of a captured frame.

mod draws;
mod flows;
mod grouped;
mod key;
mod name;
mod packet;
pub mod parse;
mod units;

pub use draws::{Draws, Mrg32k3a};
pub use flows::{FlowTable, Flows};
pub use grouped::grouped;
pub use key::{Family, FlowKey, Granularity, GranularityError, KeyMask, MaskedKey, Prefixes};
pub use packet::{Backlog, Class, Departure, Ecn, FlowId, Packet, PacketId, QueueId};
pub use units::{ByteCount, Nanos, Rate, UnitError};
