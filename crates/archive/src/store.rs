//! Creates, renames and removes the files of volumes, the catalogue, and everything else except journals.
//!
//! All changes of a [`Folder`](crate::folder::Folder) go through this trait. Tests use implementations that fail, or that note
//! each operation, to simulate a loss of power at any moment.

use crate::journal::Disk;
use crate::regular;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Operations on files.
pub(crate) trait Store: Debug + Send + Sync {
    /// Creates a file, or empties an existing one.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Written>>;
    /// Renames a file in one step, over an existing one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a folder in an existing one.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
    /// Returns when all creations, renames and removals in a folder survive a loss of power.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// A file that is written.
pub(crate) trait Written: Write + Send {
    /// Returns when all that was written survives a loss of power.
    fn sync(&mut self) -> io::Result<()>;
}

impl Store for Disk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Written>> {
        Ok(Box::new(regular::create(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

impl Written for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

#[cfg(test)]
mod tests;
