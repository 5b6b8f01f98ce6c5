//! Which volumes a folder has.
//!
//! `catalogue.jsonl` is written anew whenever a volume comes or goes, and put in its place whole: what it does not list
//! is not there. Its first line has a checksum of the others.

mod possible;

use crate::error::{Damage, FolderError};
use crate::folder::Folder;
use crate::regular;
use crate::volume::sums::{Checked, Sums, check, length};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What it is called.
pub(crate) const NAME: &str = "catalogue.jsonl";

/// The volumes of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Catalogue {
    pub removed: Removed,
    /// What is known by notes in `lock`; `None`: there may be no note.
    pub noted: Option<Noted>,
    /// In the order of their records.
    pub volumes: Vec<Entry>,
}

/// What was taken away, since it was old or too much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Removed {
    /// All records before this position.
    pub before: u64,
    /// How many records.
    pub records: u64,
}

/// What was found missing when recording went on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Noted {
    /// Bytes of alerts.
    pub alerts: u64,
    /// The position of the record that came next when some of these were missing last.
    pub before: u64,
}

impl Noted {
    /// Adds bytes of alerts that are missing before a record comes. Who was stopped may have added the same.
    pub fn add(&mut self, alerts: u64, before: u64) {
        if alerts > 0 {
            let is_same = self.alerts > 0 && self.before == before;
            self.alerts = if is_same { self.alerts.max(alerts) } else { self.alerts.saturating_add(alerts) };
            self.before = before;
        }
    }
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    removed: Removed,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    noted: Option<Noted>,
    /// Of this line, written with 0 in this place, and all that follows.
    crc32: u32,
}

impl Head {
    /// With the checksum of itself and the lines behind it.
    fn sealed(removed: Removed, noted: Option<Noted>, rest: &[u8]) -> Self {
        let mut sum = crc32fast::Hasher::new();
        sum.update(line(&Self { removed, noted, crc32: 0 }).as_bytes());
        sum.update(rest);
        Self { removed, noted, crc32: sum.finalize() }
    }
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Its path in `archive`, without what its name ends with.
    pub name: String,
    /// Bytes of all its files.
    pub bytes: u64,
    /// What is in it, row group by row group.
    pub groups: Vec<GroupEntry>,
    /// The attributes that it has indexes of.
    pub indexes: Vec<String>,
    /// The checksum of its checksums.
    pub sums: u32,
}

/// A row group. Those of the same positions are parts of the same records, which were not all of one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupEntry {
    /// The positions of records, here and in other volumes: from this
    pub first: u64,
    /// to before this.
    pub end: u64,
    /// How many records before these were lost.
    pub lost: u64,
    /// How many of them are here.
    pub records: u64,
    /// The time of the first of them, wherever that is, in nanoseconds, if they have one.
    pub starts: Option<u64>,
    /// The earliest and the latest time of these, in nanoseconds, if they have one.
    pub times: Option<(u64, u64)>,
}

/// The checksums of a volume's files, by what their names end with.
pub(crate) type AllSums = BTreeMap<String, Sums>;

impl Catalogue {
    /// A folder's.
    pub fn read(folder: &Path) -> Result<Self, FolderError> {
        let path = folder.join(NAME);
        let bytes = match regular::read(&path, regular::CATALOGUE) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(FolderError::Damaged(Damage::of(
                    &path,
                    "it is not there, so nothing says which volumes there are",
                )));
            }
            read => read.map_err(|error| FolderError::unread(&path, error))?,
        };
        Self::parse(&bytes).map_err(|why| FolderError::Damaged(Damage::of(&path, why)))
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.is_empty() {
            return Err("it is empty, so nothing says which volumes there are".to_owned());
        }
        let mut lines = bytes;
        let mut head = Vec::new();
        lines.read_until(b'\n', &mut head).map_err(|error| error.to_string())?;
        let head: Head = serde_json::from_slice(&head).map_err(|error| format!("its first line is wrong: {error}"))?;
        if Head::sealed(head.removed, head.noted, lines).crc32 != head.crc32 {
            return Err("it is not as it was written".to_owned());
        }
        let volumes = serde_json::Deserializer::from_slice(lines).into_iter().collect::<Result<Vec<Entry>, _>>();
        let volumes = volumes.map_err(|error| format!("a line is wrong: {error}"))?;
        let catalogue = Self { removed: head.removed, noted: head.noted, volumes };
        possible::check(&catalogue)?;
        Ok(catalogue)
    }

    /// Puts it in place of the one before.
    pub fn write(&self, folder: &Folder) -> Result<(), FolderError> {
        let path = folder.path.join(NAME);
        let rest: String = self.volumes.iter().map(line).collect();
        let text = line(&Head::sealed(self.removed, self.noted, rest.as_bytes())) + &rest;
        if text.len() as u64 > regular::CATALOGUE {
            let why = "it would be longer than can be read; join volumes (queuescope log compact) or keep fewer";
            return Err(FolderError::io("write", &path, io::Error::other(why)));
        }
        folder.whole(&path, text.as_bytes())
    }

    /// Whether the files of all its volumes are there, as long as they were written, and with the checksums that they had. No
    /// more than that is looked at, so that it takes no time to speak of also where there are many.
    pub fn check(&self, folder: &Path) -> Result<(), FolderError> {
        self.volumes.iter().try_for_each(|entry| match entry.check(folder) {
            Err(FolderError::Damaged(damage)) => Err(FolderError::NotWhole { path: folder.to_owned(), damage }),
            checked => checked,
        })
    }

    /// The position behind the last record that it has or had.
    pub fn end(&self) -> u64 {
        let groups = self.volumes.iter().flat_map(|entry| &entry.groups);
        groups.map(|group| group.end).max().unwrap_or(self.removed.before)
    }

    /// Its volumes, those together that have records of the same positions, as the days of a stretch have.
    pub fn stretches(&self) -> impl Iterator<Item = &[Entry]> {
        stretches(&self.volumes)
    }

    /// How many records its volumes have.
    pub fn records(&self) -> u64 {
        self.volumes.iter().map(Entry::records).sum()
    }
}

impl Entry {
    /// How many records it has.
    pub fn records(&self) -> u64 {
        self.groups.iter().map(|group| group.records).sum()
    }

    /// The position of its first record.
    pub fn first(&self) -> u64 {
        self.groups.iter().map(|group| group.first).min().unwrap_or(0)
    }

    /// The position behind its last record.
    pub fn end(&self) -> u64 {
        self.groups.iter().map(|group| group.end).max().unwrap_or(0)
    }

    /// Whether a text is how the names of volumes end: the position of the first record, and of one that was joined of several also
    /// that behind the last.
    pub fn is_positions(text: &str) -> bool {
        let is_position = |text: &str| text.len() == 20 && text.bytes().all(|c| c.is_ascii_digit());
        text.split_once('-').map_or(is_position(text), |(first, end)| is_position(first) && is_position(end))
    }

    /// How many records were lost before and between its own.
    pub fn lost(&self) -> u64 {
        self.groups.iter().map(|group| group.lost).sum()
    }

    /// One of its files, by what its name ends with. Parquet lies by itself, so that other programs read the folder whole.
    pub fn path(&self, folder: &Path, end: &str) -> PathBuf {
        let [archive, beside] = FOLDERS;
        folder.join(format!("{}/{}.{end}", if end == PARQUET { archive } else { beside }, self.name))
    }

    /// All its files.
    pub fn paths(&self, folder: &Path) -> Vec<PathBuf> {
        self.ends().map(|end| self.path(folder, &end)).collect()
    }

    /// What the names of its files end with.
    pub fn ends(&self) -> impl Iterator<Item = String> + '_ {
        let indexes = self.indexes.iter().map(|name| index_end(name));
        [PARQUET.to_owned(), SUMS.to_owned()].into_iter().chain(indexes)
    }

    /// The checksums of its files, which are checked themselves.
    pub fn sums(&self, folder: &Path) -> Result<AllSums, FolderError> {
        let path = self.path(folder, SUMS);
        let bytes = regular::read(&path, regular::SUMS).map_err(|error| FolderError::unread(&path, error))?;
        let damaged = |why: String| FolderError::Damaged(Damage::of(&path, why));
        if crc32fast::hash(&bytes) != self.sums {
            return Err(damaged("it is not as it was written".to_owned()));
        }
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))
    }

    /// One of its files, checked where it is read.
    pub fn open(&self, folder: &Path, end: &str, sums: &AllSums) -> Result<Checked, FolderError> {
        let path = self.path(folder, end);
        let file = regular::open(&path).map_err(|error| FolderError::unread(&path, error))?;
        let sums = sums.get(end).cloned();
        let damaged = |why: String| FolderError::Damaged(Damage::of(&path, why));
        let sums = sums.ok_or_else(|| damaged("it has no checksums".to_owned()))?;
        let bytes = file.metadata().map_err(|error| FolderError::unread(&path, error))?.len();
        // What is read takes memory by what the checksums say.
        length(bytes, &sums).map_or(Ok(()), |why| Err(damaged(why)))?;
        Ok(Checked::new(file, Arc::new(sums)))
    }

    /// Looks at every byte of it.
    pub fn verify(&self, folder: &Path) -> Result<(), FolderError> {
        self.each(folder, |path, sums| check(regular::open(path)?, sums))
    }

    /// Looks at how long its files are, and at its checksums.
    pub fn check(&self, folder: &Path) -> Result<(), FolderError> {
        self.each(folder, |path, sums| Ok(length(regular::open(path)?.metadata()?.len(), sums)))
    }

    /// Looks at its files in some way that tells what is wrong.
    fn each(
        &self,
        folder: &Path,
        look: impl Fn(&Path, &Sums) -> io::Result<Option<String>>,
    ) -> Result<(), FolderError> {
        let sums = self.sums(folder)?;
        for end in self.ends().filter(|end| end != SUMS) {
            let path = self.path(folder, &end);
            let damaged = |why: String| FolderError::Damaged(Damage::of(&path, why));
            let sums = sums.get(&end).ok_or_else(|| damaged("it has no checksums".to_owned()))?;
            if let Some(why) = look(&path, sums).map_err(|error| FolderError::unread(&path, error))? {
                return Err(damaged(why));
            }
        }
        Ok(())
    }
}

/// Volumes that are in the order of their records, those together that have records of the same positions.
pub(crate) fn stretches(volumes: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    volumes.chunk_by(|entry, next| next.first() < entry.end())
}

/// The folders of volumes: of Parquet, and of what lies beside it.
pub(crate) const FOLDERS: [&str; 2] = ["archive", "beside"];
/// What the names of a volume's files end with.
pub(crate) const PARQUET: &str = "parquet";
/// See [`PARQUET`].
pub(crate) const SUMS: &str = "sums";

/// The same of the index of an attribute.
pub(crate) fn index_end(attribute: &str) -> String {
    format!("{attribute}.index")
}

/// A line of JSON.
fn line(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value);
    text.unwrap_or_else(|error| unreachable!("it has only numbers and texts: {error}")) + "\n"
}
