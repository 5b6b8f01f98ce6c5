//! What happens to a folder when the disk fails, or power is lost, while volumes are made, joined and removed.

mod disks;
mod power;
mod recording;

use crate::archive::Archiver;
use crate::catalogue::Catalogue;
use crate::compact::compact_in;
use crate::compact::tests::{DAY, Part, PositionedRecords, ask, contents, is_whole, write};
use crate::error::FolderError;
use crate::folder::Folder;
use crate::prune::{Retention, prune_locked};
use crate::recorder::recover;
use crate::store::Store;
use disks::{Failing, Fault, Pieces};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// A change of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Journals become volumes.
    Archive,
    /// Volumes are also joined.
    Compact,
    /// The older half is removed.
    Keep,
}

const CHANGES: [Change; 3] = [Change::Archive, Change::Compact, Change::Keep];

impl Change {
    fn run(self, path: &Path, store: Arc<dyn Store>) -> Result<(), FolderError> {
        let folder = Folder::open(path)?.on(store);
        match self {
            Self::Archive => {
                let recovered = recover(&folder)?;
                let key = folder.schema.find("key").expect("it is there");
                let archiver = Archiver::new(&folder, vec![key], 5);
                recovered.journals.iter().try_for_each(|journal| archiver.journal(journal))
            }
            Self::Compact => compact_in(folder, 30).map(drop),
            Self::Keep => {
                let bytes = Catalogue::read(path)?.volumes.iter().map(|entry| entry.bytes).sum::<u64>() / 2;
                prune_locked(&folder, Retention { age: None, bytes: Some(bytes) }).map(drop)
            }
        }
    }

    /// Whether a folder has what it had: all records except those reported as removed, each once, at its position.
    fn is_right(self, path: &Path, before: &PositionedRecords) -> Result<(), String> {
        let (returned, sources) = all(path);
        let gone = before.len() - returned.len().min(before.len());
        if !before.ends_with(&returned) || sources.0 != gone as u64 || sources.1 != 3 {
            return Err(format!(
                "{} of {} are returned, {sources:?} are removed and lost",
                returned.len(),
                before.len()
            ));
        }
        if gone > 0 && self != Self::Keep { Err(format!("{gone} are gone")) } else { Ok(()) }
    }
}

/// All records of a folder; how many were removed, and how many lost.
fn all(path: &Path) -> (PositionedRecords, (u64, u64)) {
    let (returned, sources) = ask(path, "true", (0, u64::MAX), usize::MAX, &|| ());
    (returned, (sources.removed, sources.lost))
}

/// A folder of three volumes, of which the second is of two days, and two journals, with some records lost between.
fn folder(path: &Path) -> PositionedRecords {
    let part = |times: &[u64], lost| Part { times: times.to_vec(), lost };
    let parts = [
        part(&[1, 2, 3], 0),
        part(&[4, DAY + 1, 5, DAY + 2], 0),
        part(&[DAY + 3], 0),
        part(&[DAY + 4, DAY + 5], 3),
        part(&[DAY + 6, 2 * DAY], 0),
    ];
    write(path, &parts, 2, 0, true);
    all(path).0
}

/// Copies the folder.
fn copy(from: &Path, to: &Path) {
    for (path, bytes) in contents(from) {
        let path = to.join(path.strip_prefix(from).expect("it is below"));
        fs::create_dir_all(path.parent().expect("it is below")).expect("there is room");
        fs::write(path, bytes).expect("there is room");
    }
}

/// Whether there are no files that the catalogue does not list.
fn has_no_strays(path: &Path) -> bool {
    let catalogue = Catalogue::read(path).expect("it is whole");
    let known: Vec<_> = catalogue.volumes.iter().flat_map(|entry| entry.paths(path)).collect();
    let is_of_volumes = |file: &Path| ["archive", "beside"].iter().any(|name| file.starts_with(path.join(name)));
    contents(path).into_keys().all(|file| !is_of_volumes(&file) || known.contains(&file))
}

/// Whether a folder is right, and is right again after the next process has recovered it and repeated the change.
fn goes_on(change: Change, path: &Path, before: &PositionedRecords) -> Result<(), String> {
    change.is_right(path, before).map_err(|why| format!("as it was left: {why}"))?;
    let quick = || Arc::new(Failing::later(Fault::Io));
    recover(&Folder::open(path).expect("it is one").on(quick())).map_err(|error| format!("recovered: {error}"))?;
    if !is_whole(path) || !has_no_strays(path) {
        return Err("it is not whole, or something was left".to_owned());
    }
    change.is_right(path, before).map_err(|why| format!("recovered: {why}"))?;
    change.run(path, quick()).map_err(|error| format!("once more: {error}"))?;
    change.is_right(path, before).map_err(|why| format!("once more: {why}"))?;
    if is_whole(path) && has_no_strays(path) { Ok(()) } else { Err("once more: something was left".to_owned()) }
}

#[test]
fn the_disk_fails_at_any_call() {
    let original = tempfile::tempdir().expect("there is room");
    let before = folder(original.path());
    for change in CHANGES {
        let mut failures = 0;
        for at in 1.. {
            let (fault, lasting) = (if at % 2 == 0 { Fault::Io } else { Fault::Full }, at % 3 == 0);
            let (folder, store) = (tempfile::tempdir().expect("there is room"), Failing::new(fault, at, lasting));
            let path = folder.path();
            copy(original.path(), path);
            let done = change.run(path, Arc::new(store.clone()));
            if !store.has_failed() {
                assert!(done.is_ok(), "{done:?}");
                break;
            }
            failures += usize::from(done.is_err());
            // If the disk works again after the error, no half-written files are left on it.
            let halves = contents(path).into_keys().filter(|file| file.extension().is_some_and(|end| end == "new"));
            assert!(lasting || halves.count() == 0, "{change:?}, call {at}");
            if let Err(FolderError::Io { path: of, why, .. }) = &done {
                assert!(of.starts_with(path) && why.raw_os_error().is_some(), "{done:?}");
            } else {
                // An empty folder that stays is not an error.
                assert!(done.is_ok(), "{done:?}");
            }
            goes_on(change, path, &before).unwrap_or_else(|why| panic!("{change:?}, call {at}, {lasting}: {why}"));
        }
        assert!(failures > 10, "{change:?} failed {failures} times");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn short_writes_do_no_harm(most in 1..200usize, change in prop::sample::select(&CHANGES[..])) {
        let (one, other) = (tempfile::tempdir().expect("there is room"), tempfile::tempdir().expect("there is room"));
        folder(one.path());
        copy(one.path(), other.path());
        change.run(one.path(), Arc::new(Failing::later(Fault::Io))).unwrap_or_else(|error| panic!("{error}"));
        change.run(other.path(), Arc::new(Pieces(most))).unwrap_or_else(|error| panic!("{error}"));
        let files = |path: &Path| -> Vec<_> {
            let name = |file: &Path| file.strip_prefix(path).expect("it is below").to_owned();
            contents(path).into_iter().map(|(file, bytes)| (name(&file), bytes)).collect()
        };
        prop_assert_eq!(files(one.path()), files(other.path()));
    }
}
