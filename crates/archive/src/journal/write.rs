//! Writing records to files.

use super::FRAME;
use super::frame::{FRAME_HEADER, FileHeader, FrameHeader};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Where files are made; tests have others, which fail.
pub(crate) trait Medium {
    type File: Write + Send;
    /// Makes a file that is not there yet.
    fn create(&mut self, path: &Path) -> io::Result<Self::File>;
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
    next: u64,
    /// How many before the next were lost, if no file is open.
    lost: u64,
}

/// A journal to which nothing more is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closed {
    pub path: PathBuf,
    /// The positions of its records.
    pub positions: Range<u64>,
}

#[derive(Debug)]
struct Open<F> {
    file: F,
    path: PathBuf,
    first: u64,
    /// Whether the folder knows of it for sure.
    known: bool,
}

impl<M: Medium> Journal<M> {
    /// Goes on at a position, with a new file when there is something to write.
    pub fn new(medium: M, folder: &Path, (record_size, schema): (usize, u32), most: u64, next: u64, lost: u64) -> Self {
        Self { medium, folder: folder.to_owned(), record_size, schema, most: most.max(1), open: None, next, lost }
    }

    /// Writes the records that come next; says which files were closed.
    ///
    /// # Errors
    /// Those of the system, and which file it was. Some of the records may be written then, the last of them torn.
    pub fn write(&mut self, records: &[u8], closed: &mut Vec<Closed>) -> Result<(), (PathBuf, io::Error)> {
        let size = self.record_size;
        let mut left = records;
        while !left.is_empty() {
            let room = self.open.as_ref().map_or(self.most, |open| self.most - (self.next - open.first));
            if room == 0 {
                closed.extend(self.close()?);
                continue;
            }
            let most = (room as usize).min((FRAME / size).max(1));
            let part;
            (part, left) = left.split_at(left.len().min(most * size));
            let count = (part.len() / size) as u32;
            let header = FrameHeader::of(self.next, count, part).write();
            let open = match &mut self.open {
                Some(open) => open,
                None => {
                    let file = self.begin()?;
                    self.open.insert(file)
                }
            };
            open.file
                .write_all(&header)
                .and_then(|()| open.file.write_all(part))
                .map_err(|error| (open.path.clone(), error))?;
            self.next += u64::from(count);
        }
        Ok(())
    }

    /// Begins a file.
    fn begin(&mut self) -> Result<Open<M::File>, (PathBuf, io::Error)> {
        let path = self.folder.join(file_name(self.next));
        let mut file = self.medium.create(&path).map_err(|error| (path.clone(), error))?;
        let (record_size, lost) = (self.record_size as u32, std::mem::take(&mut self.lost));
        let header = FileHeader { first: self.next, lost, record_size, schema: self.schema }.write();
        file.write_all(&header).map_err(|error| (path.clone(), error))?;
        Ok(Open { file, path, first: self.next, known: false })
    }

    /// Passes by records that are lost, with another file behind them.
    ///
    /// # Errors
    /// Those of the system.
    pub fn pass_by(&mut self, records: u64, closed: &mut Vec<Closed>) -> Result<(), (PathBuf, io::Error)> {
        if records > 0 {
            closed.extend(self.close()?);
            self.next += records;
            self.lost += records;
        }
        Ok(())
    }

    /// Returns when all that was written survives a loss of power.
    ///
    /// # Errors
    /// Those of the system.
    pub fn sync(&mut self) -> Result<(), (PathBuf, io::Error)> {
        if let Some(open) = &mut self.open {
            let synced = self.medium.sync(&open.file, &open.path, !open.known);
            synced.map_err(|error| (open.path.clone(), error))?;
            open.known = true;
        }
        Ok(())
    }

    /// Ends the last file. What was lost behind it is told by one without records.
    ///
    /// # Errors
    /// Those of the system.
    pub fn finish(&mut self) -> Result<Option<Closed>, (PathBuf, io::Error)> {
        if self.lost > 0 && self.open.is_none() {
            self.open = Some(self.begin()?);
        }
        self.close()
    }

    /// Ends the file that is written to, so that a reader knows that nothing is missing at its end.
    ///
    /// # Errors
    /// Those of the system.
    pub fn close(&mut self) -> Result<Option<Closed>, (PathBuf, io::Error)> {
        if let Some(open) = &mut self.open {
            open.file.write_all(&end(self.next)).map_err(|error| (open.path.clone(), error))?;
        }
        self.sync()?;
        Ok(self.open.take().map(|open| Closed { path: open.path, positions: open.first..self.next }))
    }
}

/// What a file ends with that was closed, behind the record before this position.
pub(crate) fn end(position: u64) -> [u8; FRAME_HEADER] {
    FrameHeader::of(position, 0, &[]).write()
}

/// What the file is called whose first record has this position: names are in the order of positions.
fn file_name(first: u64) -> String {
    format!("{first:020}.journal")
}
