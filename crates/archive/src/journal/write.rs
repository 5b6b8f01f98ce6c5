//! Writing records to files.

use super::FRAME;
use super::frame::{FRAME_HEADER, FileHeader, FrameHeader};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
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
    /// Bytes of records of a file, at most; of one record more if it does not fit.
    longest: u64,
    open: Option<Open<M::File>>,
    next: u64,
}

#[derive(Debug)]
struct Open<F> {
    file: F,
    path: PathBuf,
    bytes: u64,
    /// Whether the folder knows of it for sure.
    known: bool,
}

impl<M: Medium> Journal<M> {
    /// Goes on at a position, with a new file when there is something to write.
    pub fn new(medium: M, folder: &Path, (record_size, schema): (usize, u32), longest: u64, next: u64) -> Self {
        Self { medium, folder: folder.to_owned(), record_size, schema, longest, open: None, next }
    }

    /// Writes the records that come next.
    ///
    /// # Errors
    /// Those of the system, and which file it was. Some of the records may be written then, the last of them torn.
    pub fn write(&mut self, records: &[u8]) -> Result<(), (PathBuf, io::Error)> {
        let size = self.record_size;
        let mut left = records;
        while !left.is_empty() {
            if self.open.as_ref().is_some_and(|open| open.bytes >= self.longest) {
                self.close()?;
            }
            let room = self.longest - self.open.as_ref().map_or(0, |open| open.bytes);
            let most = usize::try_from(room).unwrap_or(FRAME).min(FRAME);
            let part;
            (part, left) = left.split_at(left.len().min((most / size).max(1) * size));
            let count = (part.len() / size) as u32;
            let header = FrameHeader::of(self.next, count, part).write();
            let open = match &mut self.open {
                Some(open) => open,
                None => {
                    let path = self.folder.join(file_name(self.next));
                    let mut file = self.medium.create(&path).map_err(|error| (path.clone(), error))?;
                    let header = FileHeader { first: self.next, record_size: size as u32, schema: self.schema }.write();
                    file.write_all(&header).map_err(|error| (path.clone(), error))?;
                    self.open.insert(Open { file, path, bytes: 0, known: false })
                }
            };
            open.file
                .write_all(&header)
                .and_then(|()| open.file.write_all(part))
                .map_err(|error| (open.path.clone(), error))?;
            open.bytes += part.len() as u64;
            self.next += u64::from(count);
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

    /// Ends the file that is written to, so that a reader knows that nothing is missing at its end.
    ///
    /// # Errors
    /// Those of the system.
    pub fn close(&mut self) -> Result<(), (PathBuf, io::Error)> {
        if let Some(open) = &mut self.open {
            open.file.write_all(&end(self.next)).map_err(|error| (open.path.clone(), error))?;
        }
        self.sync()?;
        self.open = None;
        Ok(())
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
