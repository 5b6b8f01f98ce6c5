//! A minimal reader of capture files in pcap format, so that the tests of the parser do not depend on the crate that
//! reads captures.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A frame from a file.
pub struct Record {
    pub original_len: u32,
    pub data: Vec<u8>,
}

/// The directory of captures, if this machine has it.
pub fn directory() -> Option<PathBuf> {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    if !directory.is_dir() {
        println!("skipped: there are no captures at {}", directory.display());
        return None;
    }
    Some(directory.to_owned())
}

/// The link type and the records of a capture, decompressed by `xz` if its name ends so; none if it is not pcap.
pub fn read(path: &Path) -> Option<(u32, Vec<Record>)> {
    #[allow(clippy::disallowed_methods, reason = "a test may read files")]
    let bytes = match path.extension().is_some_and(|extension| extension == "xz") {
        true => Command::new("xz").arg("-dc").arg(path).output().ok()?.stdout,
        false => std::fs::read(path).ok()?,
    };
    let big = match bytes.first_chunk()? {
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => true,
        [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => false,
        _ => return None,
    };
    let word = |at: usize| {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    };
    let (link, mut at, mut records) = (word(20)? & 0x0fff_ffff, 24, Vec::new());
    while let (Some(captured), Some(original_len)) = (word(at + 8), word(at + 12)) {
        let data = bytes.get(at + 16..at + 16 + captured as usize)?.to_vec();
        records.push(Record { original_len, data });
        at += 16 + captured as usize;
    }
    Some((link, records))
}
