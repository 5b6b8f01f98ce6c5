//! Counts the records of a folder after recording ended: the recorder reports only records whose files are really there.

use crate::catalogue::{Catalogue, Entry};
use crate::error::{Damage, FolderError};
use crate::folder::Folder;
use crate::journal::Closed;
use crate::reader::{State, look};
use crate::regular;

/// The records of a folder's volumes and of some journals, if all their files exist and have the right length.
pub(crate) fn all<'a>(folder: &Folder, journals: impl Iterator<Item = &'a Closed>) -> Result<u64, FolderError> {
    folder.still_there()?;
    let catalogue = Catalogue::read(&folder.path)?;
    catalogue.check(&folder.path)?;
    let mut records = catalogue.records();
    for Closed { path, positions, bytes } in journals.filter(|journal| journal.positions.end > catalogue.end()) {
        let opened = regular::open(path).and_then(|file| file.metadata());
        let now = opened.map_err(|error| FolderError::unread(path, error))?.len();
        if now != *bytes {
            return Err(Damage::new(path, format!("it has {now} bytes, and should have {bytes}")).into());
        }
        records += positions.end - positions.start;
    }
    Ok(records)
}

/// How many records of a folder are there and whole, judged by the lengths of their files.
pub(crate) fn count(folder: &Folder) -> Result<u64, FolderError> {
    folder.still_there()?;
    loop {
        let catalogue = Catalogue::read(&folder.path)?;
        let counted = in_journals(folder, catalogue.end());
        // Another process may have made volumes since the catalogue was read.
        if Catalogue::read(&folder.path)? == catalogue {
            let whole = catalogue.volumes.iter().filter(|entry| entry.check(&folder.path).is_ok());
            return Ok(whole.map(Entry::records).sum::<u64>() + counted?);
        }
    }
}

fn in_journals(folder: &Folder, mut next: u64) -> Result<u64, FolderError> {
    let (paths, mut records) = (folder.journals(next)?, 0);
    for (number, path) in paths.iter().enumerate() {
        let file = look(folder, path, next, number + 1 == paths.len(), &mut |_, _| Ok(()))?;
        records += file.records;
        next = file.first + file.records;
        if matches!(file.state, State::Damaged(_)) {
            break;
        }
    }
    Ok(records)
}
