//! Taking old records away: whole volumes, those whose records came first before others.
//!
//! The catalogue is written before files go, so that readers know. What somebody leaves who is stopped between is in no
//! catalogue, and goes when the folder is recorded to again. The volumes of the newest records always stay.

use crate::archive::remove;
use crate::catalogue::{Catalogue, Entry};
use crate::error::FolderError;
use crate::folder::Folder;
use crate::strays::remove_archived;
use std::path::Path;

/// Which volumes stay. What is in journals does in any case; the default is all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Those with a record at most so many nanoseconds older than the newest that is in a volume. Records without a
    /// time are never too old.
    pub age: Option<u64>,
    /// As many as have at most so many bytes together; those of the newest records in any case.
    pub bytes: Option<u64>,
}

/// What was taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Volumes.
    pub volumes: u64,
    /// Their records.
    pub records: u64,
    /// The bytes of their files.
    pub bytes: u64,
    /// The bytes of the volumes that stay.
    pub left: u64,
}

/// Takes volumes of a folder away that are not to stay.
///
/// # Errors
/// If it is no log, somebody records to it, or it cannot be written.
pub fn prune(path: &Path, retention: Retention) -> Result<Pruned, FolderError> {
    let folder = Folder::open(path)?;
    let _lock = Folder::lock(path)?;
    // While there is something to compare them to.
    remove_archived(&folder, &Catalogue::read(&folder.path)?)?;
    // Not whether volumes are whole: those that are damaged may go.
    prune_locked(&folder, retention)
}

/// The same of a folder that is locked.
pub(crate) fn prune_locked(folder: &Folder, retention: Retention) -> Result<Pruned, FolderError> {
    folder.still_there()?;
    let mut catalogue = Catalogue::read(&folder.path)?;
    let gone = too_old(&catalogue, retention);
    let gone: Vec<_> = catalogue.volumes.drain(..gone).collect();
    let left = bytes(&catalogue.volumes);
    let Some(before) = gone.iter().map(Entry::end).max() else { return Ok(Pruned { left, ..Pruned::default() }) };
    let taken = Pruned {
        volumes: gone.len() as u64,
        records: gone.iter().map(Entry::records).sum(),
        bytes: bytes(&gone),
        left,
    };
    catalogue.removed.before = before;
    catalogue.removed.records += taken.records;
    catalogue.write(folder)?;
    remove(folder, &gone)?;
    Ok(taken)
}

/// How many of the first volumes go. Records go in the order of their positions: an old one behind a new one stays.
fn too_old(catalogue: &Catalogue, retention: Retention) -> usize {
    let oldest = retention.age.zip(newest(&catalogue.volumes)).map(|(age, newest)| newest.saturating_sub(age));
    let mut left = bytes(&catalogue.volumes);
    let (mut gone, stretches) = (0, catalogue.stretches().collect::<Vec<_>>());
    // The last stays: who gave too few bytes for it did not ask for an empty folder.
    for stretch in stretches.iter().take(stretches.len().saturating_sub(1)) {
        let is_old = oldest.zip(newest(stretch)).is_some_and(|(oldest, newest)| newest < oldest);
        if !is_old && retention.bytes.is_none_or(|most| left <= most) {
            break;
        }
        gone += stretch.len();
        left -= bytes(stretch);
    }
    gone
}

/// The latest time of their records.
fn newest(volumes: &[Entry]) -> Option<u64> {
    volumes.iter().flat_map(|entry| &entry.groups).filter_map(|group| Some(group.times?.1)).max()
}

fn bytes(volumes: &[Entry]) -> u64 {
    volumes.iter().map(|entry| entry.bytes).sum()
}
