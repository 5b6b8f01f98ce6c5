//! The catalogue: which volumes a folder has.
//!
//! `catalogue.jsonl` is rewritten and replaced as a whole whenever a volume is added or removed. A volume that it does not list does not
//! count. Its first line has a checksum of the other lines.

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

/// The file name of the catalogue.
pub(crate) const NAME: &str = "catalogue.jsonl";

/// The volumes of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Catalogue {
    pub removed: Removed,
    /// Losses that were found by the note in `lock`; `None`: the folder may have no note.
    pub noted: Option<Noted>,
    /// In the order of their records.
    pub volumes: Vec<Entry>,
}

/// Records that were removed because they were old or took too much room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Removed {
    /// All records before this position were removed.
    pub before: u64,
    /// The number of removed records.
    pub records: u64,
}

/// Losses that were found when recording continued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Noted {
    /// Bytes of alerts that are missing.
    pub alerts: u64,
    /// The position of the next record when alerts were last found missing.
    pub before: u64,
}

impl Noted {
    /// Adds bytes of alerts that are missing before the record at `before`. A process that was stopped may have added the same bytes already.
    pub fn add(&mut self, alerts: u64, before: u64) {
        if alerts > 0 {
            let is_same = self.alerts > 0 && self.before == before;
            self.alerts = if is_same { self.alerts.max(alerts) } else { self.alerts.saturating_add(alerts) };
            self.before = before;
        }
    }
}

/// The first line of the catalogue.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogueHeader {
    removed: Removed,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    noted: Option<Noted>,
    /// Checksum of this line, with 0 in place of the checksum, and of all lines that follow.
    crc32: u32,
}

impl CatalogueHeader {
    /// A first line with the checksum of itself and of the lines behind it.
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
    /// Its path in `archive`, without extension.
    pub name: String,
    /// Total size of its files in bytes.
    pub bytes: u64,
    /// Its contents, one entry for each row group.
    pub groups: Vec<GroupEntry>,
    /// The attributes that it has indexes of.
    pub indexes: Vec<String>,
    /// The checksum of its file of checksums.
    pub sums: u32,
}

/// A row group. Groups with the same positions are parts of the same records, which were of several days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupEntry {
    /// The first position of the records, here and in other volumes.
    pub first: u64,
    /// The position behind the last of them.
    pub end: u64,
    /// The number of records lost before these.
    pub lost: u64,
    /// How many of the records are in this group.
    pub records: u64,
    /// The time in nanoseconds of the first of the records, in whichever volume it is; `None` if records have no time.
    pub starts: Option<u64>,
    /// The earliest and the latest time in nanoseconds of this group's records; `None` if records have no time.
    pub times: Option<(u64, u64)>,
}

/// The checksums of a volume's files, by file extension.
pub(crate) type AllSums = BTreeMap<String, Sums>;

impl Catalogue {
    /// Reads the catalogue of a folder.
    pub fn read(folder: &Path) -> Result<Self, FolderError> {
        let path = folder.join(NAME);
        let bytes = match regular::read(&path, regular::CATALOGUE) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(FolderError::Damaged(Damage::new(
                    &path,
                    "it is not there, so nothing says which volumes there are",
                )));
            }
            read => read.map_err(|error| FolderError::unread(&path, error))?,
        };
        Self::parse(&bytes).map_err(|why| FolderError::Damaged(Damage::new(&path, why)))
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.is_empty() {
            return Err("it is empty, so nothing says which volumes there are".to_owned());
        }
        let mut lines = bytes;
        let mut head = Vec::new();
        lines.read_until(b'\n', &mut head).map_err(|error| error.to_string())?;
        let head: CatalogueHeader =
            serde_json::from_slice(&head).map_err(|error| format!("its first line is wrong: {error}"))?;
        if CatalogueHeader::sealed(head.removed, head.noted, lines).crc32 != head.crc32 {
            return Err("it is not as it was written".to_owned());
        }
        let volumes = serde_json::Deserializer::from_slice(lines).into_iter().collect::<Result<Vec<Entry>, _>>();
        let volumes = volumes.map_err(|error| format!("a line is wrong: {error}"))?;
        let catalogue = Self { removed: head.removed, noted: head.noted, volumes };
        possible::check(&catalogue)?;
        Ok(catalogue)
    }

    /// Writes the catalogue in place of the previous one.
    pub fn write(&self, folder: &Folder) -> Result<(), FolderError> {
        let path = folder.path.join(NAME);
        let rest: String = self.volumes.iter().map(line).collect();
        let text = line(&CatalogueHeader::sealed(self.removed, self.noted, rest.as_bytes())) + &rest;
        if text.len() as u64 > regular::CATALOGUE {
            let why = "it would be longer than can be read; join volumes (queuescope log compact) or keep fewer";
            return Err(FolderError::io("write", &path, io::Error::other(why)));
        }
        folder.whole(&path, text.as_bytes())
    }

    /// Checks that all files of all volumes are there with the right length and the right checksums. It reads no more than that, so it is fast
    /// even with many volumes.
    pub fn check(&self, folder: &Path) -> Result<(), FolderError> {
        self.volumes.iter().try_for_each(|entry| match entry.check(folder) {
            Err(FolderError::Damaged(damage)) => Err(FolderError::NotWhole { path: folder.to_owned(), damage }),
            checked => checked,
        })
    }

    /// The position behind the last record that the folder has or had.
    pub fn end(&self) -> u64 {
        let groups = self.volumes.iter().flat_map(|entry| &entry.groups);
        groups.map(|group| group.end).max().unwrap_or(self.removed.before)
    }

    /// Its volumes, grouped by positions: the days of one stretch are volumes with the same positions.
    pub fn stretches(&self) -> impl Iterator<Item = &[Entry]> {
        stretches(&self.volumes)
    }

    /// The number of records in its volumes.
    pub fn records(&self) -> u64 {
        self.volumes.iter().map(Entry::records).sum()
    }
}

impl Entry {
    /// The number of records in this volume.
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

    /// Whether a text is a valid end of a volume's name: the position of the first record; for a joined volume also the position behind the
    /// last.
    pub fn is_positions(text: &str) -> bool {
        let is_position = |text: &str| text.len() == 20 && text.bytes().all(|c| c.is_ascii_digit());
        text.split_once('-').map_or(is_position(text), |(first, end)| is_position(first) && is_position(end))
    }

    /// The number of records lost before and between its own.
    pub fn lost(&self) -> u64 {
        self.groups.iter().map(|group| group.lost).sum()
    }

    /// The path of one of its files, by extension. Parquet files have a folder of their own, so that other programs can read that whole folder.
    pub fn path(&self, folder: &Path, end: &str) -> PathBuf {
        let [archive, beside] = FOLDERS;
        folder.join(format!("{}/{}.{end}", if end == PARQUET { archive } else { beside }, self.name))
    }

    /// The paths of all its files.
    pub fn paths(&self, folder: &Path) -> Vec<PathBuf> {
        self.ends().map(|end| self.path(folder, &end)).collect()
    }

    /// The extensions of its files.
    pub fn ends(&self) -> impl Iterator<Item = String> + '_ {
        let indexes = self.indexes.iter().map(|name| index_end(name));
        [PARQUET.to_owned(), SUMS.to_owned()].into_iter().chain(indexes)
    }

    /// The checksums of its files, after checking the checksums themselves.
    pub fn sums(&self, folder: &Path) -> Result<AllSums, FolderError> {
        let path = self.path(folder, SUMS);
        let bytes = regular::read(&path, regular::SUMS).map_err(|error| FolderError::unread(&path, error))?;
        let damaged = |why: String| FolderError::Damaged(Damage::new(&path, why));
        if crc32fast::hash(&bytes) != self.sums {
            return Err(damaged("it is not as it was written".to_owned()));
        }
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))
    }

    /// Opens one of its files; every read is checked.
    pub fn open(&self, folder: &Path, end: &str, sums: &AllSums) -> Result<Checked, FolderError> {
        let path = self.path(folder, end);
        let file = regular::open(&path).map_err(|error| FolderError::unread(&path, error))?;
        let sums = sums.get(end).cloned();
        let damaged = |why: String| FolderError::Damaged(Damage::new(&path, why));
        let sums = sums.ok_or_else(|| damaged("it has no checksums".to_owned()))?;
        let bytes = file.metadata().map_err(|error| FolderError::unread(&path, error))?.len();
        // The checksums decide how much memory a read takes.
        length(bytes, &sums).map_or(Ok(()), |why| Err(damaged(why)))?;
        Ok(Checked::new(file, Arc::new(sums)))
    }

    /// Checks every byte of it.
    pub fn verify(&self, folder: &Path) -> Result<(), FolderError> {
        self.each(folder, |path, sums| check(regular::open(path)?, sums))
    }

    /// Checks the lengths of its files, and its checksums.
    pub fn check(&self, folder: &Path) -> Result<(), FolderError> {
        self.each(folder, |path, sums| Ok(length(regular::open(path)?.metadata()?.len(), sums)))
    }

    /// Runs a check on each of its files and returns what is wrong.
    fn each(
        &self,
        folder: &Path,
        look: impl Fn(&Path, &Sums) -> io::Result<Option<String>>,
    ) -> Result<(), FolderError> {
        let sums = self.sums(folder)?;
        for end in self.ends().filter(|end| end != SUMS) {
            let path = self.path(folder, &end);
            let damaged = |why: String| FolderError::Damaged(Damage::new(&path, why));
            let sums = sums.get(&end).ok_or_else(|| damaged("it has no checksums".to_owned()))?;
            if let Some(why) = look(&path, sums).map_err(|error| FolderError::unread(&path, error))? {
                return Err(damaged(why));
            }
        }
        Ok(())
    }
}

/// Volumes in the order of their records, grouped by positions.
pub(crate) fn stretches(volumes: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    volumes.chunk_by(|entry, next| next.first() < entry.end())
}

/// The folders of volumes: for Parquet files, and for the files beside them.
pub(crate) const FOLDERS: [&str; 2] = ["archive", "beside"];
/// The extension of a volume's Parquet file.
pub(crate) const PARQUET: &str = "parquet";
/// The extension of a volume's checksums.
pub(crate) const SUMS: &str = "sums";

/// The extension of the index of an attribute.
pub(crate) fn index_end(attribute: &str) -> String {
    format!("{attribute}.index")
}

/// A line of JSON.
fn line(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value);
    text.unwrap_or_else(|error| unreachable!("it has only numbers and texts: {error}")) + "\n"
}
