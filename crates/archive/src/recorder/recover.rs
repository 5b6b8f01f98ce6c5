//! What a folder that is recorded to again is in, and putting it right.

use crate::archived::{Archived, compare};
use crate::aside;
use crate::catalogue::{self, Catalogue, Entry, FOLDERS, PARQUET, SUMS};
use crate::derived;
use crate::error::{Damage, FolderError};
use crate::folder::{Folder, NEW};
use crate::journal::{self, Closed, FILE_HEADER, FRAME_HEADER, POSITIONS, Tail};
use crate::reader::{Part, State, look};
use crate::regular;
use queuescope_log::{Log, Schema};
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A folder that is whole.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// Records that are there.
    pub records: u64,
    /// Records that were taken away.
    pub removed: u64,
    /// Where recording goes on.
    pub tail: Tail,
    /// What was cut off.
    pub cut: Option<Part>,
    /// Journals that no volume was made of.
    pub journals: Vec<Closed>,
    /// Files that were kept aside.
    pub kept: Vec<PathBuf>,
}

/// Checks the journals of a folder, cuts off what is not whole at their end, ends them, and takes away what was made as
/// somebody was stopped: volumes that are not in the catalogue, and journals of those that are. Whole records that are in neither
/// are kept aside.
pub(crate) fn recover(folder: &Folder) -> Result<Recovered, FolderError> {
    let catalogue = Catalogue::read(&folder.path)?;
    catalogue.check(&folder.path)?;
    derived::check(folder)?;
    // Who was stopped may have left a catalogue that the disk does not know of yet: what it does not list goes after that.
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
                // It was about to be begun, and the one before it is the last; or it is something else.
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
                // Those before it were synced before it was begun.
                end(path, file.bytes, Some(found.tail.next))?;
            }
            let bytes = file.bytes + FRAME_HEADER as u64;
            found.journals.push(Closed { path: path.clone(), positions: file.first..found.tail.next, bytes });
        } else if file.lost > 0 {
            // Nothing but how many were lost is in it: recording goes on in it, if no more are.
            end(path, FILE_HEADER as u64, None)?;
            (found.tail.lost, found.tail.told) = (file.lost, Some(path.clone()));
        } else {
            empty.push(path);
        }
    }
    // What somebody who was stopped left is of records that are in a journal still, or in other volumes. Others are nobody's to take.
    let is_new = |path: &&PathBuf| first_of(path).is_some_and(|first| first >= found.tail.next);
    if let Some(stray) = strays.iter().find(is_new) {
        return Err(FolderError::NotWhole { path: folder.path.clone(), damage: unlisted(folder, stray) });
    }
    has_room(folder, found.tail.next)?;
    strays.iter().try_for_each(|path| folder.remove(path))?;
    // What they say, the last one does, too.
    empty.into_iter().try_for_each(|path| remove(path))?;
    // That files are there, or gone, survives, too.
    folder.sync()?;
    Ok(found)
}

/// Whether a log may begin at a position.
pub(crate) fn has_room(folder: &Folder, next: u64) -> Result<(), FolderError> {
    if next <= POSITIONS - Log::POSITIONS {
        return Ok(());
    }
    let why = format!("the next record would be number {next}, and a log does not have as many");
    Err(FolderError::NotWhole { path: folder.path.clone(), damage: Damage::of(&folder.path, why) })
}

/// Compares journals to the volumes that were made of them, by their names. None is touched if one has records behind all volumes: it
/// may be a part of the log that has another name.
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

/// Removes journals of which all is in volumes: before these are taken away.
pub(crate) fn remove_archived(folder: &Folder, catalogue: &Catalogue) -> Result<(), FolderError> {
    for path in folder.all_journals(catalogue.end())?.1 {
        if compare(folder, &path, catalogue)? == Archived::Done {
            folder.remove(&path)?;
        }
    }
    Ok(())
}

/// Cuts off what is not whole, and ends the file as if it had been closed behind the record before a position: all of it
/// is synced then.
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

/// Removes files of volumes that are in the catalogue no more.
pub(crate) fn remove_strays(folder: &Folder, catalogue: &Catalogue) -> Result<(), FolderError> {
    let strays = strays(folder, catalogue)?;
    let mut gone = strays.iter().filter(|path| first_of(path).is_some_and(|first| first < catalogue.end()));
    gone.try_for_each(|path| folder.remove(path))
}

/// What is wrong if no catalogue lists a volume, and no journal has its records.
pub(crate) fn unlisted(folder: &Folder, stray: &Path) -> Damage {
    let stray = stray.strip_prefix(&folder.path).unwrap_or(stray).display();
    let why = format!("it does not list {stray}, whose records are in no journal either, so it may be an older one");
    Damage::of(&folder.path.join(catalogue::NAME), why)
}

/// The position of the first record of a volume's file.
pub(crate) fn first_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.get(..20)?.parse().ok()
}

/// Files of volumes that the catalogue does not list.
pub(crate) fn strays(folder: &Folder, catalogue: &Catalogue) -> Result<Vec<PathBuf>, FolderError> {
    let mut found = Vec::new();
    let known: BTreeSet<PathBuf> = catalogue.volumes.iter().flat_map(|entry| entry.paths(&folder.path)).collect();
    let mut folders = FOLDERS.map(|name| folder.path.join(name)).to_vec();
    while let Some(path) = folders.pop() {
        let listed = match fs::read_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            listed => listed.map_err(|error| FolderError::io("list", &path, error))?,
        };
        for entry in listed {
            let entry = entry.map_err(|error| FolderError::io("list", &path, error))?;
            let path = entry.path();
            // A link to a folder leads to what may be another log's.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if is_ours(&folder.schema, &path) && !known.contains(&path) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// Whether a file is named as those of volumes are, written whole or not. What somebody has set aside under another name is his.
fn is_ours(schema: &Schema, path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_index = |end: &str| {
        let attribute = end.strip_suffix(".index").or_else(|| end.strip_suffix(".new"));
        attribute.is_some_and(|name| schema.find(name).is_some())
    };
    let is_end = |end: &str| [PARQUET, SUMS, NEW].contains(&end) || is_index(end);
    name.split_once('.').is_some_and(|(positions, end)| Entry::is_positions(positions) && is_end(end))
}

fn remove(path: &Path) -> Result<(), FolderError> {
    fs::remove_file(path).map_err(|error| FolderError::io("remove", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_as_volumes_are_is_ours() {
        let schema = Schema::ethernet_tcp();
        let (_, attribute) = schema.iter().next().expect("it has some");
        let (one, joined) = ("00000000000000000000", "00000000000000000000-00000000000000000040");
        let is_ours = |name: String| is_ours(schema, Path::new(&name));
        for positions in [one, joined] {
            for end in
                ["parquet", "sums", "new", &format!("{}.index", attribute.name), &format!("{}.new", attribute.name)]
            {
                assert!(is_ours(format!("{positions}.{end}")), "{positions}.{end}");
                for more in [".damaged", ".bak", "~", ".new.bak"] {
                    assert!(!is_ours(format!("{positions}.{end}{more}")), "{positions}.{end}{more}");
                }
            }
            for end in ["", "nobody.index", "nobody.new", "parquet.new", "index", "txt"] {
                assert!(!is_ours(format!("{positions}.{end}")), "{positions}.{end}");
            }
            assert!(!is_ours(positions.to_owned()) && !is_ours(format!("{positions}-{one}-{one}.parquet")));
        }
        assert!(!is_ours("0.parquet".to_owned()) && !is_ours(format!("copy-{one}.parquet")));
    }
}
