//! Files that a user named: whether two paths are the same file, and reading a file as text.

use queuescope_wire::grouped;
use std::fs::{File, metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The file that a path leads to, under any name; or, if it does not exist, where it would be created. Two paths with equal
/// places are the same file.
#[derive(Debug, PartialEq, Eq)]
pub enum FileIdentity {
    /// An existing file, by device and inode: hard links are one file.
    Exists(u64, u64),
    /// A new file, by its path with all symbolic links resolved.
    New(PathBuf),
}

impl FileIdentity {
    /// The place of `path`.
    pub fn from_path(path: &Path) -> Self {
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

/// Reads a file as text, up to `most` bytes. The file may be a pipe; the limit ends the reading of a device without an end.
///
/// # Errors
/// Returns the error of the system call. Also fails if the file is longer, or not UTF-8.
#[expect(clippy::disallowed_methods, reason = "a user names the file")]
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let mut text = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {} bytes", grouped(most))));
    }
    String::from_utf8(text).map_err(|_| io::Error::other("it is not UTF-8 text"))
}
