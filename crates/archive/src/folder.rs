//! The files of a folder, and the lock for writing to it.
//!
//! `log.toml` marks the folder as a log and gives its format; it is written last when a folder is made. `schema.toml` is the
//! schema, as it was read. `lock` is locked by the process that records, and notes how far it has written. `*.journal` are the records.
//! `alerts.jsonl` is written by the command.

use crate::catalogue::{self, Catalogue};
use crate::definitions;
use crate::error::{Damage, FolderError};
use crate::journal::{Disk, Journal, Medium, Tail};
use crate::names::{ALERTS, LOCK};
use crate::regular;
use crate::store::{Store, Written};
use queuescope_log::Schema;
use serde::Deserialize;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const MANIFEST: &str = "log.toml";
const SCHEMA: &str = "schema.toml";
/// What is wrong if a file is missing that every log has.
const REST: &str = "it is not there, and the rest of a log is";
/// The extension of files that are being written.
pub(crate) const NEW: &str = "new";
/// The extension of files of records.
const JOURNAL: &str = "journal";
/// How often the lock is tried, and the pause between.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// The format that this program reads and writes.
pub(crate) const FORMAT: u32 = 1;

/// The contents of `log.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    /// Read before, as [`Version`]; no other keys are allowed.
    #[serde(rename = "format")]
    _format: u32,
    /// The checksum of the schema's text.
    #[serde(default)]
    schema: u32,
}

/// The format in `log.toml`, whatever else it contains.
#[derive(Debug, Deserialize)]
struct Version {
    format: u32,
}

/// A folder with a log.
#[derive(Debug)]
pub(crate) struct Folder {
    pub path: PathBuf,
    pub schema: Schema,
    /// Where its files are made.
    store: Arc<dyn Store>,
    /// The folder itself, as it was opened: while it is open, no other folder can have its inode.
    itself: File,
}

/// The right to record to a folder, for as long as it is held.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// A second handle of the locked file: the file stays locked until all handles are closed.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

impl Folder {
    /// Makes a folder for a log, if the path [`may_become`](Self::may_become) one.
    pub fn create(path: &Path, schema: &Schema) -> Result<Self, FolderError> {
        let itself = File::open(path).map_err(|error| FolderError::io("open", path, error))?;
        let folder = Self { path: path.to_owned(), schema: schema.clone(), store: Arc::new(Disk), itself };
        folder.whole(&path.join(SCHEMA), schema.text().as_bytes())?;
        Catalogue::default().write(&folder)?;
        definitions::create(&folder)?;
        let manifest = format!("format = {FORMAT}\nschema = {}\n", folder.checksum());
        folder.whole(&path.join(MANIFEST), manifest.as_bytes())?;
        Ok(folder)
    }

    /// Checks that a folder is a log, does not exist, or is empty except for what is left of a log that was never finished.
    pub fn may_become(path: &Path) -> Result<(), FolderError> {
        let listed = match fs::read_dir(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            listed => listed.map_err(|error| FolderError::io("list", path, error))?,
        };
        let mut others = Vec::new();
        for entry in listed {
            let name = entry.map_err(|error| FolderError::io("list", path, error))?.file_name();
            // Definitions that somebody has put there, or that are left of a log without its manifest, are not replaced.
            let own = Path::new(&name).extension().is_some_and(|end| end == NEW)
                || [LOCK, SCHEMA, catalogue::NAME].iter().any(|own| *own == name)
                || (name == definitions::DEFINITIONS && definitions::is_new(path));
            others.extend((!own).then_some(name));
        }
        if Self::is_there(path) || others.is_empty() {
            return Ok(());
        }
        if Self::has_rest(path) {
            return Err(Damage::new(&path.join(MANIFEST), REST).into());
        }
        others.sort_unstable();
        let why = format!("it holds {} and no {MANIFEST}; give an empty folder", others[0].display());
        Err(FolderError::NotALog { path: path.to_owned(), why })
    }

    /// Whether there is a log, or something that cannot be looked at, of which opening it returns the error.
    pub fn is_there(path: &Path) -> bool {
        path.join(MANIFEST).try_exists().unwrap_or(true)
    }

    /// When it was made, in nanoseconds since 1970: its manifest is never written again. 0 if that cannot be read.
    pub fn made_at(&self) -> u64 {
        Self::made_at_path(&self.path).unwrap_or(0)
    }

    /// When the log at a path was made, in nanoseconds since 1970; `None` if there is none, or if that cannot be read.
    pub fn made_at_path(path: &Path) -> Option<u64> {
        let made = fs::metadata(path.join(MANIFEST)).and_then(|manifest| manifest.modified()).ok()?;
        u64::try_from(made.duration_since(std::time::UNIX_EPOCH).ok()?.as_nanos()).ok()
    }

    /// Whether there are files that every log has, even if `log.toml` is missing.
    fn has_rest(path: &Path) -> bool {
        [SCHEMA, catalogue::NAME].iter().any(|name| path.join(name).exists())
    }

    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let not = |why: String| FolderError::NotALog { path: path.to_owned(), why };
        let read = |name: &str, most: u64| {
            let file = path.join(name);
            let bytes = match regular::read(&file, most) {
                Err(error) if error.kind() == ErrorKind::NotFound && Self::has_rest(path) => {
                    Err(FolderError::Damaged(Damage::new(&file, REST)))
                }
                Err(error) if error.kind() == ErrorKind::NotFound => Err(not(format!("there is no {name} in it"))),
                read => read.map_err(|error| FolderError::unread(&file, error)),
            };
            let no_text = |_| FolderError::from(Damage::new(&file, "it is not as it was written: it is not text"));
            String::from_utf8(bytes?).map_err(no_text)
        };
        let text = read(MANIFEST, regular::SMALL)?;
        let broken = |error: toml::de::Error| {
            not(format!("its {MANIFEST} cannot be read: {}; put a copy in its place", error.message()))
        };
        // First, since a later format may have other keys.
        let Version { format } = toml::from_str(&text).map_err(broken)?;
        if format != FORMAT {
            return Err(FolderError::Format { path: path.to_owned(), found: format, known: FORMAT });
        }
        let manifest: Manifest = toml::from_str(&text).map_err(broken)?;
        let (name, text) = (path.join(SCHEMA), read(SCHEMA, regular::TEXT)?);
        if crc32fast::hash(text.as_bytes()) != manifest.schema {
            let why = format!("it is not as it was written, or {MANIFEST} beside it is not");
            return Err(Damage::new(&name, why).into());
        }
        let schema = Schema::parse(&name.display().to_string(), &text).map_err(FolderError::Schema)?;
        let itself = File::open(path).map_err(|error| FolderError::io("open", path, error))?;
        Ok(Self { path: path.to_owned(), schema, store: Arc::new(Disk), itself })
    }

    /// A second handle of the same folder.
    pub fn try_clone(&self) -> Result<Self, FolderError> {
        let itself = self.itself.try_clone().map_err(|error| FolderError::io("open", &self.path, error))?;
        Ok(Self { path: self.path.clone(), schema: self.schema.clone(), store: Arc::clone(&self.store), itself })
    }

    /// The same folder with files that are made by `store`.
    pub fn on(self, store: Arc<dyn Store>) -> Self {
        Self { store, ..self }
    }

    /// A writer of journals with at most `most` records each, that continues behind `tail`.
    pub fn journal<M: Medium>(&self, medium: M, most: u64, tail: Tail) -> Journal<M> {
        Journal::new(medium, &self.path, self.schema.record_size(), self.checksum(), most, tail)
    }

    /// Checks that the path still leads to this folder: nothing is written to another one that took its place.
    pub fn still_there(&self) -> Result<(), FolderError> {
        let opened = self.itself.metadata().map_err(|error| FolderError::io("look at", &self.path, error))?;
        match fs::metadata(&self.path) {
            Ok(now) if is_same(&opened, &now) => Ok(()),
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Err(FolderError::io("look at", &self.path, error))
            }
            _ => Err(FolderError::Gone { path: self.path.clone(), now: self.moved_to() }),
        }
    }

    /// Where the folder is now, if its path no longer leads to it and the kernel knows a path that does.
    pub fn moved_to(&self) -> Option<PathBuf> {
        let opened = self.itself.metadata().ok()?;
        let leads_to_it = |path: &Path| fs::metadata(path).is_ok_and(|found| is_same(&opened, &found));
        let now = fs::read_link(format!("/proc/self/fd/{}", self.itself.as_raw_fd())).ok()?;
        (!leads_to_it(&self.path) && leads_to_it(&now)).then_some(now)
    }

    /// Takes the lock for recording, unless another process holds it.
    pub fn lock(path: &Path) -> Result<Lock, FolderError> {
        make(path).map_err(|error| FolderError::io("make the folder", path, error))?;
        let name = path.join(LOCK);
        let file = regular::open_with(&name, OpenOptions::new().create(true).truncate(false).write(true));
        let file = file.map_err(|error| FolderError::io("open", &name, error))?;
        // A process that checks whether the folder is being recorded to holds it for a moment.
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { file }),
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(error)) => return Err(FolderError::io("lock", &name, error)),
            }
        }
        Err(FolderError::Busy(path.to_owned()))
    }

    /// Whether a process records to the folder.
    pub fn is_locked(path: &Path) -> Result<bool, FolderError> {
        let name = path.join(LOCK);
        match regular::open(&name).map(|file| file.try_lock_shared()) {
            Ok(Ok(())) => Ok(false),
            Ok(Err(TryLockError::WouldBlock)) => Ok(true),
            Ok(Err(TryLockError::Error(error))) => Err(FolderError::io("lock", &name, error)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(FolderError::io("open", &name, error)),
        }
    }

    /// Files without records and without checksum that are not regular files.
    pub fn others(&self) -> Result<Vec<Damage>, FolderError> {
        let mut found = Vec::new();
        for path in [LOCK, ALERTS].map(|name| self.path.join(name)) {
            match regular::check(&path).map_err(|error| FolderError::unread(&path, error)) {
                Err(FolderError::Damaged(damage)) => found.push(damage),
                checked => checked?,
            }
        }
        Ok(found)
    }

    /// The journals whose first record is at `from` or behind it, in the order of their records. Earlier journals are in
    /// volumes.
    pub fn journals(&self, from: u64) -> Result<Vec<PathBuf>, FolderError> {
        let (later, _) = self.all_journals(from)?;
        Ok(later)
    }

    /// All journals: those whose first record is at `from` or behind it, and those before it.
    pub fn all_journals(&self, from: u64) -> Result<(Vec<PathBuf>, Vec<PathBuf>), FolderError> {
        let error = |error| FolderError::io("list", &self.path, error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(error)? {
            let path = entry.map_err(error)?.path();
            if path.extension().is_some_and(|end| end == JOURNAL) {
                found.push(path);
            }
        }
        found.sort_unstable();
        // A journal with an unusual name was not written here. It is read, and reported as damaged.
        Ok(found.into_iter().partition(|path| position(path).is_none_or(|first| first >= from)))
    }

    /// A position above those of all records that exist when this is called: where the last journal would end if it had nothing
    /// but records. It is above the first position of every journal that has any bytes, so a journal without a complete record is read, too.
    pub fn may_end(&self) -> Result<u64, FolderError> {
        // Journals first: those that disappear in the meantime are in the catalogue by then.
        let last = self.journals(0)?.pop();
        let in_journal = last.and_then(|path| {
            let data = fs::symlink_metadata(&path).ok()?;
            // Something that is not a journal, by its kind or its name, is reported as damage by the reader.
            let Some(first) = position(&path).filter(|_| data.is_file()) else { return Some(u64::MAX) };
            Some(first.saturating_add(data.len().div_ceil(self.schema.record_size() as u64)))
        });
        Ok(Catalogue::read(&self.path)?.end().max(in_journal.unwrap_or(0)))
    }

    /// The checksum of the schema's text, which is in each file of records.
    pub fn checksum(&self) -> u32 {
        crc32fast::hash(self.schema.text().as_bytes())
    }
    /// Writes a file that exists completely or not at all, even after a loss of power.
    pub fn whole(&self, path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
        self.place(path, |mut file| {
            file.write_all(bytes).map_err(|error| FolderError::io("write", path, error))?;
            Ok((file, ()))
        })
    }

    /// Like `whole`, with contents that `write` writes; returns what `write` returns.
    pub fn place<T>(
        &self,
        path: &Path,
        write: impl FnOnce(Box<dyn Written>) -> Result<(Box<dyn Written>, T), FolderError>,
    ) -> Result<T, FolderError> {
        let beside = path.with_extension(NEW);
        let io = |error| FolderError::io("write", path, error);
        let written = || -> Result<T, FolderError> {
            let (mut file, result) = write(self.store.create(&beside).map_err(io)?)?;
            file.sync().map_err(io)?;
            self.store.rename(&beside, path).map_err(io)?;
            Ok(result)
        };
        // Half a file would only take up room, and a full disk has none.
        let result = written().inspect_err(|_| drop(self.store.remove(&beside)))?;
        path.parent().map_or(Ok(()), |folder| self.store.sync_folder(folder)).map_err(io)?;
        Ok(result)
    }

    /// Renames a file to an unused name.
    pub fn rename(&self, path: &Path, to: &Path) -> Result<(), FolderError> {
        self.store.rename(path, to).map_err(|error| FolderError::io("rename", path, error))
    }

    /// Removes a file, if it exists.
    pub fn remove(&self, path: &Path) -> Result<(), FolderError> {
        match self.store.remove(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(FolderError::io("remove", path, error)),
            _ => Ok(()),
        }
    }

    /// Removes a folder in it, if that is empty.
    pub fn remove_folder(&self, path: &Path) {
        let _ = self.store.remove_folder(path);
    }

    /// Makes a folder in it, and the folders above. They survive a loss of power.
    pub fn make_folder(&self, within: &Path) -> Result<(), FolderError> {
        let mut path = self.path.clone();
        for part in within {
            let above = path.clone();
            path.push(part);
            let made = match self.store.make_folder(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                made => made,
            };
            made.and_then(|()| self.store.sync_folder(&above))
                .map_err(|error| FolderError::io("make the folder", &path, error))?;
        }
        Ok(())
    }

    /// Returns when all renames and removals in it survive a loss of power.
    pub fn sync(&self) -> Result<(), FolderError> {
        self.store.sync_folder(&self.path).map_err(|error| FolderError::io("sync", &self.path, error))
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Makes a folder, if it does not exist, in a folder that does exist: a path with a typing error makes nothing. The new folder survives
/// a loss of power.
fn make(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let missing = path.ancestors().skip(1).take_while(|above| !above.exists()).last().unwrap_or(path);
            return Err(io::Error::other(format!("there is no folder {}; make it first", missing.display())));
        }
        Err(error) if error.kind() != ErrorKind::AlreadyExists || !path.is_dir() => return Err(error),
        // A process that was stopped before this call may have made a folder without a log.
        Err(_) if Folder::is_there(path) => return Ok(()),
        _ => {}
    }
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(above)?.sync_all()
}

/// The position of a journal's first record, by its name.
fn position(path: &Path) -> Option<u64> {
    path.file_stem()?.to_str()?.parse().ok()
}
