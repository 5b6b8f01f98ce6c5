//! Files of records: one after another in the order of the log, each named after the position of its first record.
//!
//! A file is a header, then *frames*: records that were written at once, with a checksum over them and one over the
//! frame's own header. A frame without records ends a file that was closed. Numbers are little endian; checksums are
//! CRC-32 (that of Ethernet and zip).
//!
//! | file header | bytes | | frame header | bytes |
//! |---|---|---|---|---|
//! | `QSJOURN1` | 8 | | `QSFR` | 4 |
//! | position of the first record | 8 | | records | 4 |
//! | records before it that were lost | 8 | | position of the first | 8 |
//! | bytes of a record | 4 | | checksum of the records | 4 |
//! | checksum of the schema's text | 4 | | checksum of these 20 | 4 |
//! | checksum of these 32 | 4 | | | |
//! | zero | 4 | | | |

mod frame;
mod scan;
mod write;

pub(crate) use scan::{End, Scan};
pub(crate) use write::{Closed, Disk, Journal, Medium, end};

/// Bytes of records in a frame, at most: what is read at once.
pub(crate) const FRAME: usize = 1 << 20;
