//! Capture files in and out: pcap and pcapng, plain or compressed with gzip, zstd or xz, in constant memory.
//!
//! This is floor 1 of the house: it imports `queuescope-wire` for its units and nothing else of the workspace. It is one
//! of the doors through which files are opened, and it holds no opinion about what is inside a packet.
//!
//! - [`CaptureReader`] streams [`Record`]s out of a file or any other source, lending each from its buffer.
//! - [`PcapngWriter`] and [`PcapWriter`] write what Wireshark and tcpdump open.
//! - [`OpenError`] and [`ReadError`] say what is wrong with a file, and where.

mod buffer;
mod error;
mod legacy;
mod pcapng;
mod reader;
mod write;
mod zeros;

pub use error::{Behind, Damage, OpenError, ReadError};
pub use queuescope_unpack::Compression;
pub use reader::{CaptureReader, Container, Format, ReadStats, Record};
pub use write::{PcapWriter, PcapngWriter, Statistics};
