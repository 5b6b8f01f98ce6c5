//! Bytes of a file or stream, decompressed if they are gzip, zstd or xz. The first bytes identify the format.
//!
//! ```
//! use queuescope_unpack::{Compression, Unpacked};
//! use std::io::Read as _;
//!
//! # fn main() -> std::io::Result<()> {
//! let gzip: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\x02\xff\xcb\x48\xcd\xc9\xc9\x07\0\x86\xa6\x10\x36\x05\0\0\0";
//! let mut bytes = Unpacked::new(Box::new(gzip))?;
//! assert_eq!(bytes.compression(), Compression::Gzip);
//! let mut text = String::new();
//! bytes.read_to_string(&mut text)?;
//! assert_eq!(text, "hello");
//! # Ok(())
//! # }
//! ```

mod unpacked;

pub use unpacked::{Compression, Unpacked};
