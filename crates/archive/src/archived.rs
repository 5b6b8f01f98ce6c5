//! Checks whether volumes really hold the records of a journal that its name says they hold.
//!
//! Such a journal remains if a process was stopped after a volume counted and before it removed the journal. But somebody may also have put
//! the journal back or renamed it after other records got its numbers. Then it may be the only copy of its records.

use crate::catalogue::{Catalogue, stretches};
use crate::error::{Damage, FolderError};
use crate::folder::Folder;
use crate::history::History;
use crate::journal::{End, Scan, longest};
use crate::regular;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::ops::ControlFlow;
use std::path::Path;

/// What a journal holds whose name says that its records are in volumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Archived {
    /// Volumes have all its records, each under its number; or it has no records.
    Done,
    /// It has other records, or not all of it can be read or compared.
    Other,
    /// It has records behind those of all volumes.
    Beyond(Damage),
}

/// Compares a journal with the volumes.
///
/// # Errors
/// Returns the errors of system calls on the journal.
pub(crate) fn compare(folder: &Folder, path: &Path, catalogue: &Catalogue) -> Result<Archived, FolderError> {
    let io = |error| FolderError::io("read", path, error);
    let (length, file) = match regular::open(path).and_then(|file| Ok((file.metadata()?.len(), file))) {
        Ok(opened) => opened,
        // Somebody removed it in the meantime, as they should.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Archived::Done),
        Err(error) if regular::unusable(&error).is_some() => return Ok(Archived::Other),
        Err(error) => return Err(io(error)),
    };
    if length == 0 {
        return Ok(Archived::Done);
    }
    if length > longest(folder.schema.record_size()) {
        return Ok(Archived::Other);
    }
    let Ok(mut scan) = Scan::new(BufReader::new(file), length).map_err(io)? else { return Ok(Archived::Other) };
    let (header, end) = (scan.header(), catalogue.end());
    if header.record_size as usize != folder.schema.record_size() || header.schema != folder.checksum() {
        return Ok(Archived::Other);
    }
    while scan.next_frame().map_err(io)?.is_some() {}
    let last = scan.next_position();
    if last > end && scan.frames() > 0 {
        let why = format!(
            "it has records from number {} to {last}, and volumes end before {end}: it was put back, or renamed; give it the name \
             {:020}.journal if nothing else has these numbers, or move it out of the folder",
            header.first.max(end),
            header.first
        );
        return Ok(Archived::Beyond(Damage::new(path, why)));
    }
    let is_whole = matches!(scan.end(), Some(End::Closed)) || (scan.frames() == 0 && scan.end() == Some(End::Open));
    let is_done = is_whole && Records::open(path, length).is_ok_and(|records| are_in(folder, catalogue, records));
    Ok(if is_done { Archived::Done } else { Archived::Other })
}

/// Whether volumes have all these records. Records of volumes that cannot be read do not count.
fn are_in(folder: &Folder, catalogue: &Catalogue, mut records: Records) -> bool {
    let Ok(history) = Folder::open(&folder.path).map(History::from_folder) else { return false };
    let mut next = records.next();
    for stretch in stretches(&catalogue.volumes) {
        let Ok(Some((first, _))) = next else { break };
        if stretch.iter().all(|entry| entry.end() <= first) {
            continue;
        }
        let read = history.each_of(stretch, &mut |position, record| match &next {
            Ok(Some((at, _))) if position < *at => ControlFlow::Continue(()),
            Ok(Some((at, own))) if position == *at && own == record => {
                next = records.next();
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        });
        if read.is_err() {
            return false;
        }
    }
    matches!(next, Ok(None))
}

/// The records of a journal, one after another.
struct Records {
    scan: Scan<BufReader<File>>,
    /// The records of a frame, how many of its bytes were returned, and the position of the next record.
    frame: Vec<u8>,
    returned: usize,
    position: u64,
}

impl Records {
    fn open(path: &Path, length: u64) -> io::Result<Self> {
        let scan = Scan::new(BufReader::new(regular::open(path)?), length)?;
        let scan = scan.map_err(|_| io::Error::other("its header is not as it was"))?;
        Ok(Self { scan, frame: Vec::new(), returned: 0, position: 0 })
    }

    /// The next record and its position.
    fn next(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        if self.returned == self.frame.len() {
            (self.position, self.returned) = (self.scan.next_position(), 0);
            let Some(records) = self.scan.next_frame()? else { return Ok(None) };
            self.frame.clear();
            self.frame.extend_from_slice(records);
        }
        let size = self.scan.header().record_size as usize;
        let record = self.frame[self.returned..self.returned + size].to_vec();
        let position = self.position;
        (self.returned, self.position) = (self.returned + size, position + 1);
        Ok(Some((position, record)))
    }
}
