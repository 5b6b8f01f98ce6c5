//! Power is lost at any moment. The disk has what was synced. Of the unsynced changes of each folder it has only the first ones, and of the
//! unsynced bytes of each file it has only the beginning, or zeros.

use super::*;
use crate::journal::Disk;
use crate::store::Written;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Mutex;

/// An operation, in order; files by numbers.
#[derive(Debug, Clone)]
enum Done {
    Create(PathBuf, usize),
    Write(usize, Vec<u8>),
    Sync(usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    MakeFolder(PathBuf),
    RemoveFolder(PathBuf),
    SyncFolder(PathBuf),
}

impl Done {
    /// The folder that it changes.
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Create(path, _) | Self::Rename(path, _) | Self::Remove(path) => path.parent(),
            Self::MakeFolder(path) | Self::RemoveFolder(path) => path.parent(),
            Self::Write(..) | Self::Sync(_) | Self::SyncFolder(_) => None,
        }
    }
}

/// A disk that notes its operations.
#[derive(Debug, Clone, Default)]
struct Noted(Arc<Mutex<Vec<Done>>>);

struct NotedFile(Box<dyn Written>, usize, Noted);

impl Noted {
    fn note(&self, done: Done) -> usize {
        let mut all = self.0.lock().expect("nobody panics");
        all.push(done);
        all.len()
    }
}

impl Store for Noted {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Written>> {
        let file = Disk.create(path)?;
        // The index of the operation serves as the number of the file.
        let number = self.0.lock().expect("nobody panics").len();
        self.note(Done::Create(path.to_owned(), number));
        Ok(Box::new(NotedFile(file, number, self.clone())))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)?;
        self.note(Done::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)?;
        self.note(Done::Remove(path.to_owned()));
        Ok(())
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        Disk.make_folder(path)?;
        self.note(Done::MakeFolder(path.to_owned()));
        Ok(())
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        Disk.remove_folder(path)?;
        self.note(Done::RemoveFolder(path.to_owned()));
        Ok(())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.note(Done::SyncFolder(path.to_owned()));
        Ok(())
    }
}

impl Write for NotedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        self.2.note(Done::Write(self.1, bytes[..count].to_vec()));
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Written for NotedFile {
    fn sync(&mut self) -> io::Result<()> {
        self.2.note(Done::Sync(self.1));
        Ok(())
    }
}

/// Which unsynced changes the disk has.
#[derive(Debug, Clone)]
struct Survivors {
    /// The part of each folder's changes, in turn, in 256ths.
    changes: Vec<u8>,
    /// The part of each file's bytes, in 256ths; the rest is as long as it was and zero, or missing.
    bytes: u8,
    zeroed: bool,
}

/// The files of a folder.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// What is left of a folder.
fn left(before: &Files, root: &Path, done: &[Done], luck: &Survivors) -> Files {
    let mut folders: BTreeSet<PathBuf> = before
        .keys()
        .flat_map(|file| file.ancestors().skip(1))
        .filter(|at| at.starts_with(root))
        .map(Path::to_owned)
        .collect();
    let mut written: BTreeMap<usize, (Vec<u8>, usize)> = BTreeMap::new();
    let (mut changes, mut synced): (BTreeMap<&Path, Vec<usize>>, BTreeSet<usize>) = Default::default();
    for (at, done) in done.iter().enumerate() {
        match done {
            Done::Write(file, bytes) => written.entry(*file).or_default().0.extend_from_slice(bytes),
            Done::Sync(file) => {
                let (bytes, synced) = written.entry(*file).or_default();
                *synced = bytes.len();
            }
            Done::SyncFolder(folder) => synced.extend(changes.remove(folder.as_path()).unwrap_or_default()),
            change => changes.entry(change.folder().expect("it changes one")).or_default().push(at),
        }
    }
    let share = |all: usize, of: u8| (all * (usize::from(of) + 1)) >> 8;
    for ((_, pending), of) in changes.into_iter().zip(luck.changes.iter().cycle()) {
        let count = share(pending.len(), *of);
        synced.extend(&pending[..count]);
    }
    let mut files = before.clone();
    let content = |file: &usize| {
        let (mut bytes, synced) = written.get(file).cloned().unwrap_or_default();
        let all = bytes.len();
        bytes.truncate(synced + share(all - synced, luck.bytes));
        bytes.resize(if luck.zeroed { all } else { bytes.len() }, 0);
        bytes
    };
    for (_, change) in done.iter().enumerate().filter(|(at, _)| synced.contains(at)) {
        match change {
            Done::Create(path, file) => drop(files.insert(path.clone(), content(file))),
            Done::Rename(from, to) => {
                let bytes = files.remove(from).expect("it was created before, in the same folder");
                files.insert(to.clone(), bytes);
            }
            Done::Remove(path) => drop(files.remove(path)),
            Done::MakeFolder(path) => drop(folders.insert(path.clone())),
            Done::RemoveFolder(path) => folders.retain(|folder| !folder.starts_with(path)),
            Done::Write(..) | Done::Sync(_) | Done::SyncFolder(_) => {}
        }
    }
    files.retain(|file, _| {
        file.ancestors().skip(1).take_while(|at| at.starts_with(root)).all(|at| folders.contains(at))
    });
    files
}

/// Loses power in the middle of a change.
fn lose(change: Change, moment: impl Fn(usize) -> Vec<usize>, lucks: &[Survivors]) {
    let folder = tempfile::tempdir().expect("there is room");
    let (path, noted) = (folder.path(), Noted::default());
    let records = super::folder(path);
    let before = contents(path);
    change.run(path, Arc::new(noted.clone())).unwrap_or_else(|error| panic!("{error}"));
    let done = noted.0.lock().expect("nobody panics").clone();
    assert!(done.len() > 10, "{change:?} does {}", done.len());
    // Between two writes nothing happens that a loss of bytes does not cover.
    let moments = (0..=done.len()).filter(|at| !matches!(done.get(*at), Some(Done::Write(..)))).collect::<Vec<_>>();
    for at in moment(moments.len()).into_iter().map(|place| moments[place]) {
        // In turn: all unsynced changes are lost, or all are there except the bytes, or some are there.
        let lucks = if lucks.len() > 2 { &lucks[at % lucks.len()..][..1] } else { lucks };
        for luck in lucks {
            let after = tempfile::tempdir().expect("there is room");
            for (file, bytes) in left(&before, path, &done[..at], luck) {
                let file = after.path().join(file.strip_prefix(path).expect("it is below"));
                fs::create_dir_all(file.parent().expect("it is below")).expect("there is room");
                fs::write(file, bytes).expect("there is room");
            }
            let last = &done[..at].last();
            goes_on(change, after.path(), &records)
                .unwrap_or_else(|why| panic!("{change:?}, {last:?}, {luck:?}: {why}"));
        }
    }
}

#[test]
fn the_power_is_lost_at_any_moment() {
    let luck = |changes, bytes, zeroed| Survivors { changes: vec![changes], bytes, zeroed };
    let lucks = [luck(0, 0, false), luck(255, 0, false), luck(255, 0, true), luck(127, 127, false)];
    CHANGES.into_iter().for_each(|change| lose(change, |moments| (0..moments).collect(), &lucks));
}

fn luck() -> impl Strategy<Value = Survivors> {
    (prop::collection::vec(any::<u8>(), 1..6), any::<u8>(), any::<bool>())
        .prop_map(|(changes, bytes, zeroed)| Survivors { changes, bytes, zeroed })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn any_part_of_the_unsynced_changes_may_be_there(
        change in prop::sample::select(&CHANGES[..]),
        at in prop::collection::vec(any::<prop::sample::Index>(), 4),
        lucks in prop::collection::vec(luck(), 2),
    ) {
        lose(change, |moments| at.iter().map(|at| at.index(moments)).collect(), &lucks);
    }
}
