//! Where the files of volumes, the catalogue and all else but journals are made, put in their place and removed.
//!
//! What a [`Folder`](crate::folder::Folder) changes goes through here; tests have others, which fail, or note what is done so
//! that the power can be lost at any moment of it.

use crate::journal::Disk;
use crate::regular;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// What can be done to files.
pub(crate) trait Store: Debug + Send + Sync {
    /// Makes a file, without what it had if it was there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Written>>;
    /// Puts a file in the place of another, whole.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Takes a file away.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a folder in one that is there.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Takes an empty folder away.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
    /// Returns when what was made, put in place and removed in a folder survives a loss of power.
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
