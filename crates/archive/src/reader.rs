//! Reads journals, and checks every byte of a folder.

use crate::archived::{Archived, compare};
use crate::aside;
use crate::catalogue::{Catalogue, Entry, PARQUET};
use crate::derived;
use crate::error::{Damage, FolderError};
use crate::folder::Folder;
use crate::journal::{End, POSITIONS, Scan, longest};
use crate::mark::Note;
use crate::regular::{self, Unusable};
use crate::strays::{first_of, strays, unlisted};
use crate::uploads::UploadList;
use queuescope_log::Schema;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// An incomplete end of a file: the process that recorded was stopped, or power was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The file.
    pub path: PathBuf,
    /// The offset where the incomplete part begins.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The number of whole records in it: a loss of power can leave unsynced records that came behind others
    /// that are incomplete.
    pub records: u64,
    /// The position behind the last of these records; 0 if there are none.
    pub end: u64,
}

/// The result of checking every byte.
#[derive(Debug)]
pub struct Verified {
    /// The schema of the records.
    pub schema: Schema,
    /// Volumes and journals, in the order of their records.
    pub files: Vec<FileReport>,
    /// The earliest and the latest time in nanoseconds of whole records, if records have a time.
    pub times: Option<(u64, u64)>,
    /// Records that were removed because they were old or too many.
    pub removed: u64,
    /// The position behind the last record.
    pub end: u64,
    /// Records behind it that were written and are gone: a journal was emptied or cut short, or a loss of power took what was
    /// not synced.
    pub missing: u64,
    /// Bytes of alerts that were missing when recording continued.
    pub alerts_lost: u64,
}

/// The result for a volume or a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// The position of its first record.
    pub first: u64,
    /// Whole records; 0 for a damaged volume.
    pub records: u64,
    /// Records lost before it: the disk could not keep up, or they were missing when recording continued.
    pub lost: u64,
    /// Bytes that are whole; for a volume with its indexes, and 0 if it is damaged.
    pub bytes: u64,
    /// The attributes that it has indexes of; a journal has none.
    pub indexes: Vec<String>,
    /// How it ends.
    pub state: State,
}

/// How a file of records ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It was closed: nothing is missing.
    Closed,
    /// It was not closed: a process records to it, or was stopped.
    Open,
    /// Its end is incomplete, because the process that recorded was stopped. The next recorder cuts this part off, and sets it aside
    /// if it has whole records.
    Torn(Part),
    /// It is not as it was written.
    Damaged(Damage),
    /// It was set aside, because it was in the way of records or behind damage. Nothing reads it.
    Kept,
}

/// The schema of a folder's records.
///
/// # Errors
/// Fails if the folder is not a log.
pub fn schema(path: &Path) -> Result<Schema, FolderError> {
    Folder::open(path).map(|folder| folder.schema)
}

/// Whether a process records to a folder.
///
/// # Errors
/// Fails if the lock cannot be checked.
pub fn is_recorded(path: &Path) -> Result<bool, FolderError> {
    Folder::is_locked(path)
}

/// Checks every byte of a folder's records.
///
/// # Errors
/// Fails if the folder is not a log, or if its contents are unknown. Damaged, missing and unreadable files are reported in the result.
pub fn verify(path: &Path) -> Result<Verified, FolderError> {
    let folder = Folder::open(path)?;
    // Before anything else: more is written in the meantime.
    let note = Note::read(path);
    // Before the catalogue is read: volumes made in the meantime are in it then, or their records in journals.
    let strays = strays(&folder, &Catalogue::default())?;
    let mut catalogue = Catalogue::read(path)?;
    let mut verifying =
        Verification { folder: &folder, files: Vec::new(), times: None, next: catalogue.removed.before };
    loop {
        let looked = verifying.go_on(&catalogue);
        let stopped = verifying.files.pop_if(FileReport::is_damaged_journal);
        // Another process may have made, joined or removed volumes since the catalogue was read.
        let now = Catalogue::read(path)?;
        if looked.is_ok() && stopped.is_none() && now.end() <= verifying.next {
            break;
        }
        if now == catalogue {
            looked?;
            verifying.files.extend(stopped);
            break;
        }
        catalogue = now;
    }
    let Verification { mut files, times, next, .. } = verifying;
    let is_new = |path: &&PathBuf| first_of(path).is_some_and(|first| first >= next);
    if let Some(stray) = strays.iter().find(is_new).filter(|_| !files.iter_mut().any(FileReport::is_damaged_journal)) {
        files.push(FileReport::damaged(unlisted(&folder, stray), next));
    }
    for path in folder.all_journals(catalogue.end())?.1 {
        let found = compare(&folder, &path, &catalogue)?;
        // Volumes may have been joined or removed in the meantime.
        if found == Archived::Done || Catalogue::read(&folder.path)? != catalogue {
            continue;
        }
        let why = "its records differ from those of volumes with the same numbers, or it cannot be read whole: it was put back, renamed \
                   or damaged; it is kept aside when the folder is recorded to again";
        let damage = if let Archived::Beyond(damage) = found { damage } else { Damage::new(&path, why) };
        files.push(FileReport::damaged(damage, next));
    }
    let irregular = folder.others()?;
    // A `lock` that is not a regular file is reported once.
    let of_note = note.damage.clone().filter(|damage| irregular.iter().all(|other| other.path != damage.path));
    let others = derived::verify(&folder)?.into_iter().chain(irregular);
    let uploads = match UploadList::read(path) {
        Err(FolderError::Damaged(damage)) => Some(damage),
        read => read.map(|_| None)?,
    };
    let others = others.chain(note.alerts_damage(path)?).chain(of_note).chain(uploads);
    files.extend(others.map(|damage| FileReport::damaged(damage, next)));
    for path in aside::kept(&folder)? {
        let bytes = fs::symlink_metadata(&path).map_or(0, |data| data.len());
        let state = State::Kept;
        files.push(FileReport { path, first: next, records: 0, lost: 0, bytes, indexes: Vec::new(), state });
    }
    // What is damaged is not counted as missing, too.
    let is_damaged = files.iter_mut().any(FileReport::is_damaged_journal);
    let torn = files.iter().find_map(|file| if let State::Torn(part) = &file.state { Some(part) } else { None });
    let missing = if is_damaged { 0 } else { note.missing(next, torn) };
    let (removed, alerts_lost) = (catalogue.removed.records, catalogue.noted.map_or(0, |noted| noted.alerts));
    Ok(Verified { files, times, removed, end: next, missing, alerts_lost, schema: folder.schema })
}

/// A check of every byte of a folder.
struct Verification<'a> {
    folder: &'a Folder,
    files: Vec<FileReport>,
    times: Option<(u64, u64)>,
    /// All records before this position were checked.
    next: u64,
}

impl Verification<'_> {
    /// Continues with the current files of the folder.
    fn go_on(&mut self, catalogue: &Catalogue) -> Result<(), FolderError> {
        let folder = self.folder;
        self.next = self.next.max(catalogue.removed.before);
        self.files.retain(|file| file.first >= catalogue.removed.before);
        // Several days of the same records are separate volumes.
        for stretch in catalogue.stretches() {
            let end = stretch.iter().map(Entry::end).max().unwrap_or(0);
            if end <= self.next {
                continue;
            }
            // A check that stopped within a stretch checks all of it again.
            self.files.retain(|file| file.first < stretch[0].first());
            for (number, entry) in stretch.iter().enumerate() {
                self.volume(entry, number > 0)?;
            }
            self.next = end;
        }
        let (paths, size) = (folder.journals(catalogue.end().max(self.next))?, folder.schema.record_size());
        let time = folder.schema.time().map(|time| folder.schema.reader(time));
        for (number, path) in paths.iter().enumerate() {
            let mut times = None;
            let file = look(folder, path, self.next, number + 1 == paths.len(), &mut |_, records| {
                for record in records.chunks_exact(size) {
                    let at = time.map(|time| time.key(record) as u64);
                    times = join(times, at.map(|at| (at, at)));
                }
                Ok(())
            })?;
            self.times = join(self.times, times);
            self.next = file.first + file.records;
            let damaged = matches!(file.state, State::Damaged(_));
            self.files.push(file);
            if damaged {
                break;
            }
        }
        Ok(())
    }

    fn volume(&mut self, entry: &Entry, is_part: bool) -> Result<(), FolderError> {
        let (path, first) = (entry.path(&self.folder.path, PARQUET), entry.first());
        let lost = if is_part { 0 } else { entry.lost() };
        let expected = self.next + entry.groups.first().map_or(0, |group| group.lost);
        let state = match entry.verify(&self.folder.path) {
            // It may be gone because another process removed or joined it since the catalogue was read.
            Err(error) if !Catalogue::read(&self.folder.path)?.volumes.contains(entry) => return Err(error),
            Err(error) => State::Damaged(damage(error)?),
            Ok(()) if !is_part && first > expected => State::Damaged(Damage::new(&path, missing(first, self.next))),
            Ok(()) => State::Closed,
        };
        let (mut records, mut bytes) = (0, 0);
        if state == State::Closed {
            self.times = entry.groups.iter().fold(self.times, |times, group| join(times, group.times));
            (records, bytes) = (entry.records(), entry.bytes);
        }
        self.files.push(FileReport { path, first, records, lost, bytes, indexes: entry.indexes.clone(), state });
        Ok(())
    }
}

impl FileReport {
    /// The report of a damaged file, without records of its own.
    fn damaged(damage: Damage, first: u64) -> Self {
        let (path, state) = (damage.path.clone(), State::Damaged(damage));
        Self { path, first, records: 0, lost: 0, bytes: 0, indexes: Vec::new(), state }
    }

    /// Whether it is a volume, and not a journal.
    pub fn is_volume(&self) -> bool {
        self.path.extension().is_some_and(|end| end == PARQUET)
    }

    fn is_damaged_journal(&mut self) -> bool {
        matches!(self.state, State::Damaged(Damage { at: Some(_), .. }))
    }
}

/// Turns a read error into a report, so that other files can still be checked.
fn damage(error: FolderError) -> Result<Damage, FolderError> {
    match error {
        FolderError::Damaged(damage) => Ok(damage),
        FolderError::Io { path, why, .. } => Ok(Damage::new(&path, format!("it cannot be read: {why}"))),
        error => Err(error),
    }
}

/// The earliest and the latest of both.
fn join(a: Option<(u64, u64)>, b: Option<(u64, u64)>) -> Option<(u64, u64)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}

fn missing(first: u64, next: u64) -> String {
    if first <= next {
        return format!(
            "its first record is number {first}, and the one before it ends before {next}: one of both was put back or renamed"
        );
    }
    format!("its first record is number {first}, and the one before it ends before {next}: records are missing")
}

/// Receives the records of a frame, and the position of the first.
type ReceiveFrame<'t> = dyn FnMut(u64, &[u8]) -> Result<(), FolderError> + 't;

/// Checks a journal. Records before `next` are elsewhere. Only the last journal may have an incomplete end.
///
/// # Errors
/// Returns errors of system calls, and errors of `receive`.
pub(crate) fn look(
    folder: &Folder,
    path: &Path,
    next: u64,
    last: bool,
    receive: &mut ReceiveFrame<'_>,
) -> Result<FileReport, FolderError> {
    let io = |error| FolderError::io("read", path, error);
    let report = |(first, lost), records, bytes, state| FileReport {
        path: path.to_owned(),
        first,
        records,
        lost,
        bytes,
        indexes: Vec::new(),
        state,
    };
    let torn = |offset, bytes, (records, end)| State::Torn(Part { path: path.to_owned(), offset, bytes, records, end });
    let damaged = |position, offset, why: &str| {
        State::Damaged(Damage { path: path.to_owned(), why: why.to_owned(), at: Some((offset, position)) })
    };
    let opened = regular::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    let (length, file) = match opened.map_err(|error| (regular::unusable(&error).cloned(), error)) {
        Ok(opened) => opened,
        Err((Some(unusable), _)) => return Ok(report((next, 0), 0, 0, damaged(next, 0, &unusable.to_string()))),
        Err((None, error)) => return Err(io(error)),
    };
    let most = longest(folder.schema.record_size());
    if length > most {
        let why = Unusable::TooLong { bytes: length, most }.to_string();
        return Ok(report((next, 0), 0, 0, damaged(next, 0, &why)));
    }
    let mut scan = match Scan::new(BufReader::new(file), length).map_err(io)? {
        Ok(scan) => scan,
        Err(end) => {
            let state = match end {
                End::Torn { bytes, behind } if last => torn(0, bytes, behind),
                End::Damaged(why) => damaged(next, 0, why),
                _ => damaged(next, 0, "it ends within its first bytes"),
            };
            return Ok(report((next, 0), 0, 0, state));
        }
    };
    let header = scan.header();
    if header.record_size as usize != folder.schema.record_size() || header.schema != folder.checksum() {
        return Ok(report((next, 0), 0, 0, damaged(next, 0, "its records are not of the folder's schema")));
    }
    if header.first > POSITIONS {
        return Ok(report((next, 0), 0, 0, damaged(next, 0, "its positions are higher than those of any log")));
    }
    if header.first != next.saturating_add(header.lost) {
        return Ok(report((next, 0), 0, 0, damaged(next, 0, &missing(header.first, next))));
    }
    let place = (header.first, header.lost);
    loop {
        let first = scan.next_position();
        let Some(records) = scan.next_frame().map_err(io)? else { break };
        receive(first, records)?;
    }
    let (offset, end) = (scan.offset(), scan.next_position());
    if !last && scan.frames() == 0 && matches!(scan.end(), Some(End::Open | End::Closed)) {
        // Its header records the losses, and so does that of the journal behind it.
        return Ok(report((next, 0), 0, offset, State::Closed));
    }
    let state = match scan.end() {
        Some(End::Closed) => State::Closed,
        Some(End::Open) | None if last => State::Open,
        Some(End::Torn { bytes, behind }) if last => torn(offset, bytes, behind),
        Some(End::Damaged(why)) => damaged(end, offset, why),
        _ => damaged(end, offset, "it ends too early, and another file follows"),
    };
    Ok(report(place, end - header.first, offset, state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::tests::{DAY, Part as Recorded, write};

    #[test]
    fn all_days_of_a_stretch_are_checked_again_after_a_change() {
        let folder = tempfile::tempdir().expect("there is room");
        write(folder.path(), &[Recorded { times: vec![1, DAY + 1, 2 * DAY + 1], lost: 0 }], 0, 0, true);
        let catalogue = Catalogue::read(folder.path()).expect("it is whole");
        let folder = Folder::open(folder.path()).expect("it is one");
        let mut verifying = Verification { folder: &folder, files: Vec::new(), times: None, next: 0 };
        // As if the catalogue had been read before other volumes replaced those of the last days.
        let mut old = catalogue.clone();
        old.volumes[1].name = "elsewhere".to_owned();
        assert!(catalogue.volumes.len() == 3 && verifying.go_on(&old).is_err());
        verifying.go_on(&catalogue).expect("it is whole");
        let looked: Vec<_> = verifying.files.iter().map(|file| (file.records, file.state.clone())).collect();
        assert_eq!(looked, vec![(1, State::Closed); 3]);
    }
}
