//! Writing records to files.

use super::FRAME;
use super::frame::{FILE_HEADER, FRAME_HEADER, FileHeader, FrameHeader};
use crate::regular;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Where files are made; tests have others, which fail.
pub(crate) trait Medium {
    type File: Write + Send;
    /// Makes a file that is not there yet.
    fn create(&mut self, path: &Path) -> io::Result<Self::File>;
    /// Opens one that is there, to write on at its end.
    fn reopen(&mut self, path: &Path) -> io::Result<Self::File>;
    /// Returns when what was written to it, and that it is there, survives a loss of power.
    fn sync(&mut self, file: &Self::File, path: &Path, new: bool) -> io::Result<()>;
}

/// The system's files.
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
        // The folder has to know of a new file.
        match path.parent().filter(|_| new) {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

/// The files of records of a folder, as who records has them.
#[derive(Debug)]
pub(crate) struct Journal<M: Medium> {
    medium: M,
    folder: PathBuf,
    record_size: usize,
    schema: u32,
    /// Records of a file, at most.
    most: u64,
    open: Option<Open<M::File>>,
    /// Where it goes on; while a file is open, nothing before that is lost.
    tail: Tail,
}

/// Where files of records go on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The position of the record that comes next.
    pub next: u64,
    /// How many before it were lost.
    pub lost: u64,
    /// A file that has nothing but a header, which is synced and says that. It stays until another says it.
    pub told: Option<PathBuf>,
}

/// A journal to which nothing more is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closed {
    pub path: PathBuf,
    /// The positions of its records.
    pub positions: Range<u64>,
    /// Its bytes.
    pub bytes: u64,
}

#[derive(Debug)]
struct Open<F> {
    file: F,
    path: PathBuf,
    first: u64,
    /// Bytes that were written, and those of them that are synced.
    written: u64,
    synced: u64,
}

impl<M: Medium> Journal<M> {
    /// Goes on at a position, with a new file when there is something to write.
    pub fn new(medium: M, folder: &Path, record_size: usize, schema: u32, most: u64, tail: Tail) -> Self {
        Self { medium, folder: folder.to_owned(), record_size, schema, most: most.max(1), open: None, tail }
    }

    /// Writes the records that come next; says which files were closed.
    ///
    /// # Errors
    /// Those of the system, and which file it was. Some of the records may be written then, the last of them torn.
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
            let header = FrameHeader::of(self.tail.next, count, open.synced, part).write();
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
        let begun = if self.tail.told.take().is_some_and(|told| told == path) {
            // This is what its header says.
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

    /// Passes by records that are lost, with another file behind them.
    ///
    /// # Errors
    /// Those of the system.
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
    /// Those of the system.
    pub fn sync(&mut self) -> Result<(), (PathBuf, io::Error)> {
        if let Some(open) = self.open.as_mut().filter(|open| open.synced < open.written) {
            let synced = self.medium.sync(&open.file, &open.path, false);
            synced.map_err(|error| (open.path.clone(), error))?;
            open.synced = open.written;
        }
        Ok(())
    }

    /// Ends the last file. What was lost behind it is told by one without records.
    ///
    /// # Errors
    /// Those of the system.
    pub fn finish(&mut self) -> Result<Option<Closed>, (PathBuf, io::Error)> {
        if self.tail.lost > 0 && self.open.is_none() {
            self.open = Some(self.begin()?);
        }
        self.close()
    }

    /// Ends the file that is written to, so that a reader knows that nothing is missing at its end. All before that is
    /// synced first: whatever is not whole in a file that was ended is damaged.
    ///
    /// # Errors
    /// Those of the system.
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

/// What a file ends with that was closed, behind the record before this position and so many bytes that are synced.
pub(crate) fn end(position: u64, synced: u64) -> [u8; FRAME_HEADER] {
    FrameHeader::of(position, 0, synced, &[]).write()
}

/// What the file is called whose first record has this position: names are in the order of positions.
fn file_name(first: u64) -> String {
    format!("{first:020}.journal")
}

/// Whether a file is called as one of records is.
pub(crate) fn is_name(path: &Path) -> bool {
    let first = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
    first.is_some_and(|first| path.file_name().is_some_and(|name| *name == *file_name(first)))
}
