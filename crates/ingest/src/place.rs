//! Which file a path leads to.

use std::fs::metadata;
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
