//! Files of records: one after another in the order of the log, each named after the position of its first record.
//!
//! A file is a header, then *frames*: records that were written at once, with a checksum over them and one over the
//! frame's own header. A frame without records ends a file that was closed. Numbers are little endian; checksums are
//! CRC-32 (that of Ethernet and zip).
//!
//! | file header | bytes | | frame header | bytes |
//! |---|---|---|---|---|
//! | `QSJOURN2` | 8 | | `QSFR` | 4 |
//! | position of the first record | 8 | | records | 4 |
//! | records before it that were lost | 8 | | position of the first | 8 |
//! | bytes of a record | 4 | | bytes of the file that are synced | 8 |
//! | checksum of the schema's text | 4 | | checksum of the records | 4 |
//! | checksum of these 32 | 4 | | checksum of these 28 | 4 |
//! | zero | 4 | | | |
//!
//! # After a loss of power
//!
//! Unsynced bytes may survive in parts, in any order. Damage must be distinguishable from that. Therefore a file's header is synced
//! before its first frame is written, all frames before the closing frame are synced before that is written, and the closing frame is synced
//! before another file is begun. So only the last file can have an incomplete part, and only behind the bytes that its surviving frames
//! record as synced: then the file is *torn*. Anything else is damage.

mod frame;
mod frame_search;
mod scan;
mod write;

use crate::volume::GROUP;
pub(crate) use frame::{FILE_HEADER, FRAME_HEADER};
pub(crate) use scan::{End, Scan};
pub(crate) use write::{Closed, Disk, Journal, Medium, Tail, end, is_name};

/// Records have positions below this one. It leaves room for adding some up, and is more than ten million records per second
/// for two centuries.
pub(crate) const POSITIONS: u64 = 1 << 56;
/// The most bytes of records in a frame, which is read at once.
pub(crate) const FRAME: usize = 1 << 20;

/// The most bytes of a file with records of this size: as many records as a volume has, each in a frame of its own.
pub(crate) fn longest(record_size: usize) -> u64 {
    FILE_HEADER as u64 + GROUP as u64 * (record_size + FRAME_HEADER) as u64 + FRAME_HEADER as u64
}
