//! Joins small files: many short recordings leave many small volumes.
//!
//! Journals that are not in volumes yet become volumes. Then volumes are joined whose records follow each other without a
//! gap and that have a day in common: their records are read, checked, and written again as one stretch. The new
//! volumes have other names. The catalogue replaces the old ones by the new ones in one step; the old files are removed after that. A process
//! that reads at the same time reads the catalogue again. Files left by a process that was stopped are removed here, or when the folder is
//! recorded to again. Volumes whose upload to object storage has begun are not joined: the store would have their records twice.

use crate::archive::{Archiver, Stretch, remove};
use crate::catalogue::{Catalogue, Entry, stretches};
use crate::definitions;
use crate::error::FolderError;
use crate::folder::Folder;
use crate::history::History;
use crate::journal::Disk;
use crate::reader::Part;
use crate::recorder::{VOLUME_RECORDS, recover};
use crate::uploads::UploadList;
use queuescope_log::{AttributeId, Schema};
use std::fs;
use std::mem;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The files before and after compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacted {
    /// Before.
    pub before: Files,
    /// After.
    pub after: Files,
    /// The incomplete end of the last journal, which was cut off.
    pub cut: Option<Part>,
    /// Files that were set aside, as in [`Recovery`](crate::Recovery).
    pub kept: Vec<PathBuf>,
}

/// Files of records: journals, and volumes with their indexes and checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Files {
    /// The number of files.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

/// Turns all journals into volumes and joins small volumes. Volumes get the indexes that the last volume has and that the folder's
/// definitions name. It needs two and a half times the memory of the records of the largest volume that it writes.
///
/// # Errors
/// Fails if the folder is not a log, is being recorded to, is damaged, or cannot be written. What was done before stays, and
/// no record is lost.
pub fn compact(path: &Path) -> Result<Compacted, FolderError> {
    compact_to(path, VOLUME_RECORDS)
}

/// Like [`compact`], with volumes of at most `most` records.
fn compact_to(path: &Path, most: u64) -> Result<Compacted, FolderError> {
    compact_in(Folder::open(path)?, most)
}

/// Like [`compact_to`], for a folder that is open.
pub(crate) fn compact_in(folder: Folder, most: u64) -> Result<Compacted, FolderError> {
    let history = History::from_folder(folder);
    let folder = history.folder();
    let _lock = Folder::lock(&folder.path)?;
    let before = files(folder)?;
    let (cut, kept) = make_volumes(folder)?;
    let mut catalogue = Catalogue::read(&folder.path)?;
    let uploads = UploadList::read(&folder.path)?;
    let stays = |volumes: &[Entry]| uploads.iter().any(|list| volumes.iter().any(|entry| list.has(&entry.name)));
    // From the last run to the first, so that the indices of earlier runs stay valid.
    for run in runs(&catalogue.volumes, most, &stays).into_iter().rev() {
        let joined = join(&history, &catalogue.volumes[run.clone()])?;
        let old: Vec<_> = catalogue.volumes.splice(run, joined).collect();
        catalogue.write(folder)?;
        remove(folder, &old)?;
    }
    Ok(Compacted { before, after: files(folder)?, cut, kept })
}

/// Turns journals into volumes, as a recording does. Returns what was cut off, and which files were set aside.
fn make_volumes(folder: &Folder) -> Result<(Option<Part>, Vec<PathBuf>), FolderError> {
    let recovered = recover(folder)?;
    let left_out = (recovered.cut, recovered.kept);
    // Records lost behind the last record are recorded in a journal without records.
    let mut rest = folder.journal(Disk, VOLUME_RECORDS, recovered.tail);
    rest.finish().map_err(|(path, error)| FolderError::io("write", &path, error))?;
    if recovered.journals.is_empty() {
        return Ok(left_out);
    }
    let last = Catalogue::read(&folder.path)?.volumes.pop();
    let mut indexes = last.map_or_else(Vec::new, |entry| indexes(&folder.schema, &entry));
    let defined = definitions::read(folder)?;
    indexes.extend(defined.indexes());
    indexes.sort_unstable();
    indexes.dedup();
    let archiver = Archiver::new(folder, indexes, VOLUME_RECORDS);
    recovered.journals.iter().try_for_each(|journal| archiver.journal(journal))?;
    Ok(left_out)
}

/// Ranges of the catalogue's volumes that are joined into one stretch each. Stretches that stay are not joined.
fn runs(volumes: &[Entry], most: u64, stays: &dyn Fn(&[Entry]) -> bool) -> Vec<Range<usize>> {
    let (mut runs, mut run, mut at) = (Vec::new(), 0..0, 0);
    for stretch in stretches(volumes) {
        let end = at + stretch.len();
        let may_change = !stays(&volumes[run.clone()]) && !stays(stretch);
        if may_change && follows(&volumes[run.clone()], stretch, most) {
            run.end = end;
        } else {
            runs.push(mem::replace(&mut run, at..end));
        }
        at = end;
    }
    runs.push(run);
    runs.retain(|run| stretches(&volumes[run.clone()]).count() > 1);
    runs
}

/// Whether a stretch joins a run. Large stretches do not: otherwise few new records would cause many to be written again.
fn follows(run: &[Entry], next: &[Entry], most: u64) -> bool {
    let is_small = |volumes: &[Entry]| records(volumes) <= most / 2;
    let (Some(last), Some(first)) = (run.last(), next.first()) else { return false };
    let fits = is_small(next) && records(run) + records(next) <= most;
    let is_next = last.end() == first.first() && first.lost() == 0;
    let a_day_in_common = next.iter().any(|next| run.iter().any(|entry| day(entry) == day(next)));
    let starts_small = stretches(run).next().is_some_and(is_small);
    fits && starts_small && is_next && last.indexes == first.indexes && a_day_in_common
}

/// Writes the records of volumes again, as one stretch.
fn join(history: &History, volumes: &[Entry]) -> Result<Vec<Entry>, FolderError> {
    let Some(entry) = volumes.first() else { return Ok(Vec::new()) };
    let rows = history.records_of(volumes)?;
    let archiver = Archiver::new(history.folder(), indexes(history.schema(), entry), VOLUME_RECORDS);
    archiver.volumes(Stretch { rows: &rows, first: entry.first(), lost: entry.lost(), joined: true })
}

/// The attributes that a volume has indexes of.
fn indexes(schema: &Schema, entry: &Entry) -> Vec<AttributeId> {
    entry.indexes.iter().filter_map(|name| schema.find(name)).collect()
}

/// The folder that a volume lies in.
fn day(entry: &Entry) -> Option<&Path> {
    Path::new(&entry.name).parent()
}

fn records(volumes: &[Entry]) -> u64 {
    volumes.iter().map(Entry::records).sum()
}

fn files(folder: &Folder) -> Result<Files, FolderError> {
    let catalogue = Catalogue::read(&folder.path)?;
    let mut found = Files::default();
    for entry in &catalogue.volumes {
        found.files += entry.ends().count() as u64;
        found.bytes += entry.bytes;
    }
    for path in folder.journals(catalogue.end())? {
        let metadata = fs::metadata(&path).map_err(|error| FolderError::io("read", &path, error))?;
        found.files += 1;
        found.bytes += metadata.len();
    }
    Ok(found)
}

#[cfg(test)]
pub(crate) mod tests;
