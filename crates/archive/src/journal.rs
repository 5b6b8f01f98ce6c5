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
//! # What a loss of power leaves
//!
//! What is not synced may be there in parts, in any order. So that this is told from damage, a file's header is synced
//! before its first frame is written, all frames before the one that closes it, and that before another file is begun.
//! Therefore only the last file may have something that is not whole, and only behind what the frames that are there
//! know to be synced: then it is *torn*. Anything else is damage.

mod behind;
mod frame;
mod scan;
mod write;

use crate::volume::GROUP;
pub(crate) use frame::{FILE_HEADER, FRAME_HEADER};
pub(crate) use scan::{End, Scan};
pub(crate) use write::{Closed, Disk, Journal, Medium, Tail, end, is_name};

/// Positions that records can have: those before this. It leaves room to add some up, and is more than ten million records a second
/// for two centuries.
pub(crate) const POSITIONS: u64 = 1 << 56;
/// Bytes of records in a frame, at most: what is read at once.
pub(crate) const FRAME: usize = 1 << 20;

/// Bytes of a file of records of a size, at most: as many as a volume has, each in a frame of its own.
pub(crate) fn longest(record_size: usize) -> u64 {
    FILE_HEADER as u64 + GROUP as u64 * (record_size + FRAME_HEADER) as u64 + FRAME_HEADER as u64
}
