//! Writes records to journals.

use super::FRAME;
use super::frame::{FILE_HEADER, FRAME_HEADER, FileHeader, FrameHeader};
use crate::regular;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Where journals are made; tests use implementations that fail.
pub(crate) trait Medium {
    type File: Write + Send;
    /// Makes a file that does not exist yet.
    fn create(&mut self, path: &Path) -> io::Result<Self::File>;
    /// Opens an existing file to append to it.
    fn reopen(&mut self, path: &Path) -> io::Result<Self::File>;
    /// Returns when the file and all that was written to it survive a loss of power.
    fn sync(&mut self, file: &Self::File, path: &Path, new: bool) -> io::Result<()>;
}

/// The file system.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Disk;

impl Medium for Disk {
    type File = File;

    fn create(&mut self, path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(path)
    }

    fn reopen(&mut self, path: &Path) -> io::Result<File> {
        regular::open_with(path, OpenOptions::new().append(true))
    }

    fn sync(&mut self, file: &File, path: &Path, new: bool) -> io::Result<()> {
        file.sync_data()?;
        // A new file also needs an entry in the folder.
        match path.parent().filter(|_| new) {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

/// The journals of a folder, for the process that records.
#[derive(Debug)]
pub(crate) struct Journal<M: Medium> {
    medium: M,
    folder: PathBuf,
    record_size: usize,
    schema: u32,
    /// The most records of a file.
    most: u64,
    open: Option<Open<M::File>>,
    /// Where it continues. While a file is open, no record before this point is lost.
    tail: Tail,
}

/// Where journals continue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The position of the next record.
    pub next: u64,
    /// The number of records lost before it.
    pub lost: u64,
    /// A synced file with nothing but a header, which records these losses. It stays until another file records them.
    pub empty_file: Option<PathBuf>,
}

/// A journal that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closed {
    pub path: PathBuf,
    /// The positions of its records.
    pub positions: Range<u64>,
    /// Its size in bytes.
    pub bytes: u64,
}

#[derive(Debug)]
struct Open<F> {
    file: F,
    path: PathBuf,
    first: u64,
    /// Bytes that were written, and how many of them are synced.
    written: u64,
    synced: u64,
}

impl<M: Medium> Journal<M> {
    /// Continues at a position, with a new file once there is something to write.
    pub fn new(medium: M, folder: &Path, record_size: usize, schema: u32, most: u64, tail: Tail) -> Self {
        Self { medium, folder: folder.to_owned(), record_size, schema, most: most.max(1), open: None, tail }
    }

    /// Writes the records that come next; appends to `closed` the files that became full.
    ///
    /// # Errors
    /// Returns the error of the system call and the path. Some of the records may have been written, the last of them torn.
    pub fn write(&mut self, records: &[u8], closed: &mut Vec<Closed>) -> Result<(), (PathBuf, io::Error)> {
        let size = self.record_size;
        let mut left = records;
        while !left.is_empty() {
            let room = self.open.as_ref().map_or(self.most, |open| self.most - (self.tail.next - open.first));
            if room == 0 {
                closed.extend(self.close()?);
                continue;
            }
            let most = (room as usize).min((FRAME / size).max(1));
            let part;
            (part, left) = left.split_at(left.len().min(most * size));
            let count = (part.len() / size) as u32;
            let open = match &mut self.open {
                Some(open) => open,
                None => {
                    let file = self.begin()?;
                    self.open.insert(file)
                }
            };
            let header = FrameHeader::new(self.tail.next, count, open.synced, part).write();
            open.file
                .write_all(&header)
                .and_then(|()| open.file.write_all(part))
                .map_err(|error| (open.path.clone(), error))?;
            open.written += (FRAME_HEADER + part.len()) as u64;
            self.tail.next += u64::from(count);
        }
        Ok(())
    }

    /// Begins a file. Its header is synced before anything is written behind it.
    fn begin(&mut self) -> Result<Open<M::File>, (PathBuf, io::Error)> {
        let (path, first) = (self.folder.join(file_name(self.tail.next)), self.tail.next);
        let lost = std::mem::take(&mut self.tail.lost);
        let begun = if self.tail.empty_file.take().is_some_and(|file| file == path) {
            // Its header already records these losses.
            self.medium.reopen(&path)
        } else {
            let header = FileHeader { first, lost, record_size: self.record_size as u32, schema: self.schema };
            self.medium.create(&path).and_then(|mut file| {
                file.write_all(&header.write())?;
                self.medium.sync(&file, &path, true)?;
                Ok(file)
            })
        };
        let file = begun.map_err(|error| (path.clone(), error))?;
        Ok(Open { file, path, first, written: FILE_HEADER as u64, synced: FILE_HEADER as u64 })
    }

    /// Skips records that are lost, and continues with another file behind them.
    ///
    /// # Errors
    /// Returns the error of the system call and the path.
    pub fn pass_by(&mut self, records: u64, closed: &mut Vec<Closed>) -> Result<(), (PathBuf, io::Error)> {
        if records > 0 {
            closed.extend(self.close()?);
            self.tail.next += records;
            self.tail.lost += records;
        }
        Ok(())
    }

    /// Returns when all that was written survives a loss of power.
    ///
    /// # Errors
    /// Returns the error of the system call and the path.
    pub fn sync(&mut self) -> Result<(), (PathBuf, io::Error)> {
        if let Some(open) = self.open.as_mut().filter(|open| open.synced < open.written) {
            let synced = self.medium.sync(&open.file, &open.path, false);
            synced.map_err(|error| (open.path.clone(), error))?;
            open.synced = open.written;
        }
        Ok(())
    }

    /// Closes the last file. Losses behind it are recorded by a file without records.
    ///
    /// # Errors
    /// Returns the error of the system call and the path.
    pub fn finish(&mut self) -> Result<Option<Closed>, (PathBuf, io::Error)> {
        if self.tail.lost > 0 && self.open.is_none() {
            self.open = Some(self.begin()?);
        }
        self.close()
    }

    /// Closes the file that is written to, so that a reader knows that nothing is missing at its end. Everything before that end is
    /// synced first: any incomplete part of a closed file is damage.
    ///
    /// # Errors
    /// Returns the error of the system call and the path.
    pub fn close(&mut self) -> Result<Option<Closed>, (PathBuf, io::Error)> {
        self.sync()?;
        if let Some(open) = &mut self.open {
            let end = end(self.tail.next, open.synced);
            open.file.write_all(&end).map_err(|error| (open.path.clone(), error))?;
            open.written += end.len() as u64;
        }
        self.sync()?;
        Ok(self.open.take().map(|open| Closed {
            path: open.path,
            positions: open.first..self.tail.next,
            bytes: open.written,
        }))
    }
}

/// The closing frame of a file, behind the record before this position and this many synced bytes.
pub(crate) fn end(position: u64, synced: u64) -> [u8; FRAME_HEADER] {
    FrameHeader::new(position, 0, synced, &[]).write()
}

/// The name of the file whose first record has this position. Names sort in the order of positions.
fn file_name(first: u64) -> String {
    format!("{first:020}.journal")
}

/// Whether a file has the name of a journal.
pub(crate) fn is_name(path: &Path) -> bool {
    let first = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
    first.is_some_and(|first| path.file_name().is_some_and(|name| *name == *file_name(first)))
}
