//! Removes old records: whole volumes, those with the lowest positions first.
//!
//! The catalogue is written before files are removed, so that readers know. A process that is stopped in between leaves files that no
//! catalogue lists; they are removed when the folder is recorded to again. The volumes of the newest records always stay.

use crate::archive::remove;
use crate::catalogue::{Catalogue, Entry};
use crate::error::FolderError;
use crate::folder::Folder;
use crate::strays::remove_archived;
use std::path::Path;

/// Which volumes to keep. Records in journals stay in any case. The default keeps all volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Keep volumes with a record that is at most this many nanoseconds older than the newest record of a volume. Records without a
    /// time are never too old.
    pub age: Option<u64>,
    /// Keep volumes of at most this many bytes in total, but those of the newest records in any case.
    pub bytes: Option<u64>,
}

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// The number of removed volumes.
    pub volumes: u64,
    /// The number of their records.
    pub records: u64,
    /// The size of their files in bytes.
    pub bytes: u64,
    /// The size in bytes of the volumes that stay.
    pub left: u64,
}

/// Removes the volumes of a folder that are too old or too many.
///
/// # Errors
/// Fails if the folder is not a log, is being recorded to, or cannot be written.
pub fn prune(path: &Path, retention: Retention) -> Result<Pruned, FolderError> {
    let folder = Folder::open(path)?;
    let _lock = Folder::lock(path)?;
    // While the volumes to compare them with are still there.
    remove_archived(&folder, &Catalogue::read(&folder.path)?)?;
    // This does not check whether volumes are whole: damaged ones may be removed.
    prune_locked(&folder, retention)
}

/// Like [`prune`], for a folder that is locked.
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

/// How many of the first volumes to remove. They go in the order of positions: an old record behind a new one stays.
fn too_old(catalogue: &Catalogue, retention: Retention) -> usize {
    let oldest = retention.age.zip(newest(&catalogue.volumes)).map(|(age, newest)| newest.saturating_sub(age));
    let mut left = bytes(&catalogue.volumes);
    let (mut gone, stretches) = (0, catalogue.stretches().collect::<Vec<_>>());
    // The last stretch stays: a limit that is smaller than it does not mean an empty folder.
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
