//! Stray files: files of volumes that the catalogue does not list, and journals whose records are all in volumes.

use crate::archived::{Archived, compare};
use crate::catalogue::{self, Catalogue, Entry, FOLDERS, PARQUET, SUMS};
use crate::error::{Damage, FolderError};
use crate::folder::{Folder, NEW};
use queuescope_log::Schema;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Removes journals whose records are all in volumes. Call it before these volumes are removed.
pub(crate) fn remove_archived(folder: &Folder, catalogue: &Catalogue) -> Result<(), FolderError> {
    for path in folder.all_journals(catalogue.end())?.1 {
        if compare(folder, &path, catalogue)? == Archived::Done {
            folder.remove(&path)?;
        }
    }
    Ok(())
}

/// Removes files of volumes that the catalogue no longer lists.
pub(crate) fn remove_strays(folder: &Folder, catalogue: &Catalogue) -> Result<(), FolderError> {
    let strays = strays(folder, catalogue)?;
    let mut gone = strays.iter().filter(|path| first_of(path).is_some_and(|first| first < catalogue.end()));
    gone.try_for_each(|path| folder.remove(path))
}

/// The damage if no catalogue lists a volume, and no journal has its records.
pub(crate) fn unlisted(folder: &Folder, stray: &Path) -> Damage {
    let stray = stray.strip_prefix(&folder.path).unwrap_or(stray).display();
    let why = format!("it does not list {stray}, whose records are in no journal either, so it may be an older one");
    Damage::new(&folder.path.join(catalogue::NAME), why)
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
            // A link to a folder may lead to another log.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if is_ours(&folder.schema, &path) && !known.contains(&path) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// Whether a file has the name of a volume's file, complete or not. Files that somebody set aside under other names are not ours.
fn is_ours(schema: &Schema, path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_index = |end: &str| {
        let attribute = end.strip_suffix(".index").or_else(|| end.strip_suffix(".new"));
        attribute.is_some_and(|name| schema.find(name).is_some())
    };
    let is_end = |end: &str| [PARQUET, SUMS, NEW].contains(&end) || is_index(end);
    name.split_once('.').is_some_and(|(positions, end)| Entry::is_positions(positions) && is_end(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_with_names_of_volumes_are_ours() {
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
