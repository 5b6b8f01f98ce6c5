//! Files that a user named: which are one, and the text of one.

use queuescope_wire::grouped;
use std::fs::{File, metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Which file a path leads to, by whatever name; or where it would be.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// Device and inode: hard links are one file.
    Exists(u64, u64),
    /// A path without links in it.
    New(PathBuf),
}

impl Place {
    /// The place of a path.
    pub fn of(path: &Path) -> Self {
        #[cfg(unix)]
        if let Ok(metadata) = metadata(path) {
            use std::os::unix::fs::MetadataExt;
            return Self::Exists(metadata.dev(), metadata.ino());
        }
        let parent = || {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some(parent.canonicalize().ok()?.join(path.file_name()?))
        };
        Self::New(path.canonicalize().ok().or_else(parent).unwrap_or_else(|| path.to_owned()))
    }
}

/// Reads a file that was named, which may be a pipe, and has so many bytes at most: a device without an end is not read for ever.
///
/// # Errors
/// Those of the system; also if it is longer, or no text.
#[expect(clippy::disallowed_methods, reason = "a user names the file")]
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let mut text = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {} bytes", grouped(most))));
    }
    String::from_utf8(text).map_err(|_| io::Error::other("it is no text"))
}
