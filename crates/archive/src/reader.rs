//! What a folder holds.

use crate::error::{Damage, FolderError};
use crate::folder::Folder;
use crate::journal::{End, Scan};
use queuescope_log::{Log, Memory, Options, Schema};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// A folder's records in memory.
#[derive(Debug)]
pub struct Found {
    /// The records, with as much room as was asked for.
    pub log: Log,
    /// Records for which there was no room.
    pub refused: u64,
    /// What is not whole at its end.
    pub torn: Option<Part>,
}

/// Bytes of a file that are the beginning of something that was not written to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Which file.
    pub path: PathBuf,
    /// From where on.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// What a look at every byte found.
#[derive(Debug)]
pub struct Verified {
    /// The kind of records.
    pub schema: Schema,
    /// Its files, in the order of their records.
    pub files: Vec<FileReport>,
    /// The earliest and the latest time of whole records, in nanoseconds, if they have one.
    pub times: Option<(u64, u64)>,
}

/// A file of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Which.
    pub path: PathBuf,
    /// The position of its first record.
    pub first: u64,
    /// Whole records.
    pub records: u64,
    /// How often something was written to it.
    pub frames: u64,
    /// Bytes that are whole.
    pub bytes: u64,
    /// How it ends.
    pub state: State,
}

/// How a file of records ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It was closed: nothing is missing.
    Closed,
    /// It was not: somebody records to it, or was stopped.
    Open,
    /// So many bytes at its end are not whole.
    Torn(u64),
    /// Not as it was written.
    Damaged(Damage),
}

/// What the records of a folder are made of.
///
/// # Errors
/// If it is no log.
pub fn schema(path: &Path) -> Result<Schema, FolderError> {
    Folder::open(path).map(|folder| folder.schema)
}

/// Reads a folder into a log with room for so many records, also while somebody records to it.
///
/// # Errors
/// If it is no log, is damaged, or cannot be read.
pub fn read(path: &Path, records: u64) -> Result<Found, FolderError> {
    let folder = Folder::open(path)?;
    let log = Log::new(folder.schema.clone(), Options { records, memory: Memory::Lazy })?;
    let mut refused = 0;
    let torn = walk(&folder, |bytes| refused += log.append(bytes).refused)?.torn;
    Ok(Found { log, refused, torn })
}

/// Looks at every byte of a folder's records.
///
/// # Errors
/// If it is no log or cannot be read. What is damaged is told of the file.
pub fn verify(path: &Path) -> Result<Verified, FolderError> {
    let folder = Folder::open(path)?;
    let (paths, mut files, mut next, mut times) = (folder.journals()?, Vec::new(), 0, None);
    let time = folder.schema.time().map(|time| folder.schema.reader(time));
    let mut see = |records: &[u8]| {
        for record in records.chunks_exact(folder.schema.record_size()) {
            if let Some(at) = time.map(|time| time.key(record) as u64) {
                let (first, last) = times.unwrap_or((at, at));
                times = Some((first.min(at), last.max(at)));
            }
        }
    };
    for (index, path) in paths.iter().enumerate() {
        let file = look(&folder, path, next, index + 1 == paths.len(), &mut see)?;
        next = file.first + file.records;
        files.push(file);
    }
    Ok(Verified { schema: folder.schema, files, times })
}

/// Where a folder's records end.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// The position behind the last.
    pub end: u64,
    /// What is not whole.
    pub torn: Option<Part>,
    /// The last file, if it was not closed and has records, and where they end in it.
    pub open: Option<(PathBuf, u64)>,
}

/// Tells the records of a folder, frame by frame.
pub(crate) fn walk(folder: &Folder, mut tell: impl FnMut(&[u8])) -> Result<Walked, FolderError> {
    let (paths, mut walked, mut next) = (folder.journals()?, Walked::default(), 0);
    for (index, path) in paths.iter().enumerate() {
        let file = look(folder, path, next, index + 1 == paths.len(), &mut tell)?;
        walked.end = file.first + file.records;
        next = walked.end;
        match file.state {
            State::Damaged(damage) => return Err(damage.into()),
            State::Torn(bytes) => walked.torn = Some(Part { path: path.clone(), offset: file.bytes, bytes }),
            State::Open => {}
            State::Closed => continue,
        }
        walked.open = (file.records > 0).then(|| (path.clone(), file.bytes));
    }
    Ok(walked)
}

/// One file. Only the last may end in the middle of something.
fn look(
    folder: &Folder,
    path: &Path,
    next: u64,
    last: bool,
    tell: &mut impl FnMut(&[u8]),
) -> Result<FileReport, FolderError> {
    let io = |error| FolderError::io("read", path, error);
    let file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let report = |first, records, frames, bytes, state| FileReport {
        path: path.to_owned(),
        first,
        records,
        frames,
        bytes,
        state,
    };
    let damaged = |position, offset, why| State::Damaged(Damage { path: path.to_owned(), offset, position, why });
    let mut scan = match Scan::new(BufReader::new(file)).map_err(io)? {
        Ok(Some(scan)) => scan,
        Ok(None) if last => return Ok(report(next, 0, 0, 0, State::Torn(length))),
        Ok(None) => return Ok(report(next, 0, 0, 0, damaged(next, 0, "it ends within its first bytes"))),
        Err(why) => return Ok(report(next, 0, 0, 0, damaged(next, 0, why))),
    };
    let header = scan.header();
    let wrong = if header.record_size as usize != folder.schema.record_size() || header.schema != folder.checksum() {
        Some("its records are not of the folder's schema")
    } else if header.first != next {
        Some("its first record is not the one that comes next")
    } else {
        None
    };
    if let Some(why) = wrong {
        return Ok(report(next, 0, 0, 0, damaged(next, 0, why)));
    }
    while let Some(records) = scan.next_frame().map_err(io)? {
        tell(records);
    }
    let (first, offset, end) = (header.first, scan.offset(), scan.next_position());
    if last && scan.frames() == 0 && matches!(scan.end(), Some(End::Open | End::Torn(_))) {
        return Ok(report(first, 0, 0, 0, State::Torn(length)));
    }
    let state = match scan.end() {
        Some(End::Closed) => State::Closed,
        Some(End::Open) | None if last => State::Open,
        Some(End::Torn(bytes)) if last => State::Torn(bytes),
        Some(End::Damaged(why)) => damaged(end, offset, why),
        _ => damaged(end, offset, "it ends too early, and another file follows"),
    };
    Ok(report(first, end - first, scan.frames(), offset, state))
}
