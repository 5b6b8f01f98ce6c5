//! Checks the state of a folder that is recorded to again, and repairs it.

use crate::archived::{Archived, compare};
use crate::aside;
use crate::catalogue::Catalogue;
use crate::derived;
use crate::error::{Damage, FolderError};
use crate::folder::Folder;
use crate::journal::{self, Closed, FILE_HEADER, FRAME_HEADER, POSITIONS, Tail};
use crate::reader::{Part, State, look};
use crate::regular;
use crate::strays::{first_of, strays, unlisted};
use queuescope_log::Log;
use std::fs::{self, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The state of a folder after recovery.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// Records that are there.
    pub records: u64,
    /// Records that were removed.
    pub removed: u64,
    /// Where recording continues.
    pub tail: Tail,
    /// The incomplete end, which was cut off.
    pub cut: Option<Part>,
    /// Journals that are not in volumes yet.
    pub journals: Vec<Closed>,
    /// Files that were set aside.
    pub kept: Vec<PathBuf>,
}

/// Checks the journals of a folder, cuts off an incomplete end, and closes them. Removes files that a stopped process
/// left: volumes that are not in the catalogue, and journals whose records are in volumes. Whole records that are in neither
/// are set aside.
pub(crate) fn recover(folder: &Folder) -> Result<Recovered, FolderError> {
    let catalogue = Catalogue::read(&folder.path)?;
    catalogue.check(&folder.path)?;
    derived::check(folder)?;
    // A process that was stopped may have left a catalogue that the disk does not have yet. Files that it does not list are removed after this.
    folder.sync()?;
    let strays = strays(folder, &catalogue)?;
    let (paths, archived) = folder.all_journals(catalogue.end())?;
    let mut kept = Vec::new();
    for (path, found) in compared(folder, archived, &catalogue)? {
        match found {
            Archived::Done => folder.remove(&path)?,
            _ => kept.push(aside::set_aside(folder, &path)?),
        }
    }
    let (records, removed) = (catalogue.records(), catalogue.removed.records);
    let tail = Tail { next: catalogue.end(), ..Tail::default() };
    let mut found = Recovered { records, removed, tail, kept, ..Recovered::default() };
    let mut empty = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let last = number + 1 == paths.len();
        let file = look(folder, path, found.tail.next, last, &mut |_, _| Ok(()))?;
        match file.state {
            State::Damaged(damage) => return Err(damage.into()),
            State::Torn(part) if part.offset == 0 => {
                // The file had just been created, and the journal before it is the last; or it is something else.
                if part.bytes <= FILE_HEADER as u64 && journal::is_name(path) {
                    remove(path)?;
                } else {
                    found.kept.push(aside::set_aside(folder, path)?);
                }
                let before = recover(folder)?;
                found.kept.extend(before.kept);
                let cut = before.cut.or_else(|| (part.bytes > 0).then_some(part));
                return Ok(Recovered { cut, kept: found.kept, ..before });
            }
            State::Torn(part) => {
                if part.records > 0 {
                    found.kept.push(aside::keep_end(folder, path, part.offset)?);
                }
                found.cut = Some(part);
            }
            State::Open | State::Closed | State::Kept => {}
        }
        found.tail.next = file.first + file.records;
        found.records += file.records;
        if file.records > 0 {
            if last {
                // The journals before it were synced before it was begun.
                end(path, file.bytes, Some(found.tail.next))?;
            }
            let bytes = file.bytes + FRAME_HEADER as u64;
            found.journals.push(Closed { path: path.clone(), positions: file.first..found.tail.next, bytes });
        } else if file.lost > 0 {
            // It only records how many records were lost: recording continues in it, if no more are lost.
            end(path, FILE_HEADER as u64, None)?;
            (found.tail.lost, found.tail.empty_file) = (file.lost, Some(path.clone()));
        } else {
            empty.push(path);
        }
    }
    // Volumes that a stopped process left, whose records are still in a journal or in other volumes. Other files must not be removed.
    let is_new = |path: &&PathBuf| first_of(path).is_some_and(|first| first >= found.tail.next);
    if let Some(stray) = strays.iter().find(is_new) {
        return Err(FolderError::NotWhole { path: folder.path.clone(), damage: unlisted(folder, stray) });
    }
    has_room(folder, found.tail.next)?;
    strays.iter().try_for_each(|path| folder.remove(path))?;
    // The last one records the same losses.
    empty.into_iter().try_for_each(|path| remove(path))?;
    // Creations and removals of files survive a loss of power, too.
    folder.sync()?;
    Ok(found)
}

/// Checks that a log may begin at a position.
pub(crate) fn has_room(folder: &Folder, next: u64) -> Result<(), FolderError> {
    if next <= POSITIONS - Log::POSITIONS {
        return Ok(());
    }
    let why = format!("the next record would be number {next}, and a log does not have as many");
    Err(FolderError::NotWhole { path: folder.path.clone(), damage: Damage::new(&folder.path, why) })
}

/// Compares journals with the volumes that their names say hold their records. If one journal has records behind all volumes, all stay as they
/// are: it may be a part of the log under another name.
fn compared(
    folder: &Folder,
    paths: Vec<PathBuf>,
    catalogue: &Catalogue,
) -> Result<Vec<(PathBuf, Archived)>, FolderError> {
    let mut all = Vec::new();
    for path in paths {
        match compare(folder, &path, catalogue)? {
            Archived::Beyond(damage) => return Err(FolderError::NotWhole { path: folder.path.clone(), damage }),
            found => all.push((path, found)),
        }
    }
    Ok(all)
}

/// Cuts off the incomplete end, and closes the file behind the record before `position`: then all of it
/// is synced.
fn end(path: &Path, offset: u64, position: Option<u64>) -> Result<(), FolderError> {
    let end = || -> io::Result<()> {
        let mut file = regular::open_with(path, OpenOptions::new().write(true))?;
        file.set_len(offset)?;
        file.sync_all()?;
        if let Some(position) = position {
            file.seek(SeekFrom::End(0))?;
            file.write_all(&journal::end(position, offset))?;
            file.sync_all()?;
        }
        Ok(())
    };
    end().map_err(|error| FolderError::io("end", path, error))
}

fn remove(path: &Path) -> Result<(), FolderError> {
    fs::remove_file(path).map_err(|error| FolderError::io("remove", path, error))
}
