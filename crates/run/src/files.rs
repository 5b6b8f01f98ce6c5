//! Opens files that a user or another file names.

use std::fs::{File, Metadata, OpenOptions, metadata};
use std::io;
use std::path::Path;

/// Opens a regular file that another file or a folder names. Never waits, unlike a plain open of a named pipe.
///
/// # Errors
/// Returns the error of the system call. Also fails if the path is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let is_regular = |data: Metadata| {
        let other = "must be a regular file, because it is reread or named by another file";
        if data.is_file() { Ok(()) } else { Err(io::Error::other(other)) }
    };
    // Check before opening, since the open itself may act on a device; and after, since the path may point to another file by then.
    is_regular(metadata(path)?)?;
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    is_regular(file.metadata()?)?;
    Ok(file)
}
