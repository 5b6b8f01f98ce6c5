//! Captures and tables of departures as one stream of packets that left a queue.
//!
//! - [`open`] opens an [`Input`]: a capture that is sent through a queue, or a table of departures.
//! - [`OpenedCapture::replay`] and [`OpenedTable::read`] pass all departures to a [`Listener`], and return a [`Source`]:
//!   what was read, and what was skipped.
//! - [`tap`] reads captures on both sides of a router, also for a [`Listener`].
//! - [`CaptureInput`] is a capture whose reading may block; [`Stop`] is a request by a signal to stop.
//! - [`PacketFilter`] selects packets by an expression. It evaluates the expression on [`records`] of the packets.
//!
//! Tables need the feature `table`, which depends on Arrow and Parquet.
//!
//! ```no_run
//! use queuescope_ingest::{Listener, OpenedCapture, Queue};
//! use queuescope_queue::{Dropped, MarkReason, Sink};
//! use queuescope_sim::Output;
//! use queuescope_wire::{Departure, Flows, Granularity, KeyMask, MaskedKey, FlowId, Nanos, Packet, Rate};
//!
//! /// The longest that any packet waits.
//! struct Longest(Nanos, Flows);
//!
//! impl Output for Longest {
//!     fn departed(&mut self, departure: &Departure) {
//!         self.0 = self.0.max(departure.sojourn());
//!     }
//! }
//! # impl Sink for Longest {
//! #     fn dropped(&mut self, _: &Dropped) {}
//! #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
//! # }
//!
//! impl Listener for Longest {
//!     type Key = MaskedKey;
//!     type Error = std::convert::Infallible;
//!
//!     fn intern(&mut self, key: &MaskedKey, now: Nanos) -> FlowId {
//!         self.1.intern(key, now, |_, _| ())
//!     }
//! }
//!
//! let flows = [Granularity::FiveTuple];
//! let mut longest = Longest(Nanos::ZERO, Flows::masked(KeyMask::covering(&flows), &flows, 1 << 20));
//! let capture = OpenedCapture::open("trace.pcap.gz".as_ref(), "100mbps".parse()?, None, None)?;
//! capture.replay(&Queue::default(), KeyMask::covering(&flows), &mut longest, &mut |_, _| ())?;
//! println!("a packet waited for {}", longest.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod capture;
mod capture_input;
mod clock;
#[cfg(feature = "table")]
mod departures;
mod error;
mod file_identity;
mod input;
mod listener;
mod managed;
pub mod notes;
mod packet_filter;
pub mod records;
#[cfg(feature = "table")]
pub mod rows;
mod sorter;
mod source;
mod stop;
#[cfg(feature = "table")]
mod table;
pub mod tap;

pub use capture_input::{CaptureInput, is_standard_input, length, open_capture};
pub use clock::Clock;
pub use error::{Error, ExpressionError};
pub use file_identity::{FileIdentity, read_text};
pub use input::{How, Input, Queue};
pub use listener::{Listener, SeenFlow};
pub use packet_filter::{Flag, PacketFilter, expression};
pub use sorter::DepartureSorter;
pub use source::{Opened, OpenedCapture, Source, open};
pub use stop::Stop;
#[cfg(feature = "table")]
pub use table::{OpenedTable, open_table};

/// Number of packets between calls of [`Progress`].
pub(crate) const PROGRESS: u64 = 65_536;

/// Is called with the progress of reading: bytes of the input, and packets. The first call is before the first packet, with 0
/// packets, and the last at the end, with all that was read. Between them is one call after every 65 536 packets, or more.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);
