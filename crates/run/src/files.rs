//! Files that a user or another file names.

use std::fs::{File, Metadata, OpenOptions, metadata};
use std::io;
use std::path::Path;

/// Opens a file that another file or a folder names, which is not waited for: it is a regular file.
///
/// # Errors
/// Those of the system; also if it is something else.
pub fn open_regular(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let is_regular = |data: Metadata| {
        let other = "it is no regular file, and is read more than once or named by another file";
        if data.is_file() { Ok(()) } else { Err(io::Error::other(other)) }
    };
    // Before it is opened, since that alone may do something to a device; and what was opened, since it may be another by then.
    is_regular(metadata(path)?)?;
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    is_regular(file.metadata()?)?;
    Ok(file)
}
