//! Reads all records of a folder.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod numbers;

use queuescope_archive::{ArchiveQuery, FolderError, History, Sources};
use queuescope_log::Dnf;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The records of a folder.
#[derive(Debug)]
pub struct Found {
    /// The position of the first record.
    pub first: u64,
    /// All records.
    pub records: Vec<u8>,
    /// What was read for that.
    pub sources: Sources,
}

/// All records of a folder that still has its first record, and what was read for that.
pub fn read(path: &Path) -> Result<(Vec<u8>, Sources), FolderError> {
    let Found { first, records, sources } = all(path)?;
    assert_eq!(first, 0, "a position is missing");
    Ok((records, sources))
}

/// All records of a folder. Their positions are consecutive except for records reported as lost.
pub fn all(path: &Path) -> Result<Found, FolderError> {
    let history = History::open(path)?;
    let needed: Vec<_> = history.schema().iter().map(|(id, _)| id).collect();
    let (mut records, mut first, mut next, mut gaps) = (Vec::new(), 0, None, 0);
    let ask = ArchiveQuery { expression: &Dnf::all(), from: 0, to: u64::MAX, needed: &needed };
    let sources = history.each(ask, &mut |position, record| {
        match next {
            None => first = position,
            Some(next) => {
                assert!(position >= next, "a position is there twice");
                gaps += position - next;
            }
        }
        next = Some(position + 1);
        records.extend_from_slice(record);
        ControlFlow::Continue(())
    })?;
    assert!(gaps <= sources.lost, "a position is missing: {gaps} are, and {} are reported as lost", sources.lost);
    Ok(Found { first, records, sources })
}

/// The files of a folder's volumes.
pub fn files(path: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![path.join("archive"), path.join("beside")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("it is there").path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// The folders of days that have nothing in them.
pub fn empty_folders(path: &Path) -> Vec<PathBuf> {
    let days = ["archive", "beside"].map(|name| fs::read_dir(path.join(name)).into_iter().flatten());
    let days = days.into_iter().flatten().map(|entry| entry.expect("it is there").path());
    days.filter(|day| fs::read_dir(day).is_ok_and(|mut files| files.next().is_none())).collect()
}
