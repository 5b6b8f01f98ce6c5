//! Capture files in and out: pcap and pcapng, plain or compressed with gzip, zstd or xz, in constant memory.
//!
//! This crate is on floor 1 of the workspace: it imports `queuescope-wire` for its units and `queuescope-unpack`. It is
//! one of the crates that open files, and does not interpret packets.
//!
//! - [`CaptureReader`] streams [`Record`]s out of a file or any other source, lending each from its buffer.
//! - [`PcapngWriter`] and [`PcapWriter`] write what Wireshark and tcpdump open.
//! - [`OpenError`] and [`ReadError`] describe what is wrong with a file, and where.

mod buffer;
mod error;
mod legacy;
mod pcapng;
mod reader;
mod timeline;
mod write;
mod zeros;

pub use error::{Behind, Damage, OpenError, ReadError};
pub use queuescope_unpack::Compression;
pub use reader::{CaptureReader, Container, Format, ReadStats, Record};
pub use write::{PcapWriter, PcapngWriter, Statistics};
