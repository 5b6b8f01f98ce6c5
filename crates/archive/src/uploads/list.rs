//! The file `uploads.jsonl`.
//!
//! Its first line names the folder and the store, and has a checksum of itself and of the other lines. Each of these is a volume.

use crate::catalogue::Entry;
use crate::error::{Damage, FolderError};
use crate::folder::Folder;
use crate::names::UPLOADS;
use crate::regular;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The version of the file.
const FORMAT: u32 = 1;
/// What is wrong with every changed file.
const CHANGED: &str = "it is not as it was written";

/// The volumes of a folder whose upload has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UploadList {
    store: u64,
    to: String,
    /// The host whose records they are; absent: not known.
    host: Option<String>,
    compared: bool,
    /// By name: whether the store is known to have it.
    volumes: BTreeMap<String, bool>,
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListHeader {
    format: u32,
    /// When the folder was made, in nanoseconds since 1970: 16 hexadecimal digits.
    store: String,
    to: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// Whether all volumes were compared with what the store has.
    compared: bool,
    /// Checksum of this line, with 0 in place of the checksum, and of all lines that follow.
    crc32: u32,
}

/// A volume.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    volume: String,
    confirmed: bool,
}

impl UploadList {
    pub fn new(store: u64, to: &str) -> Self {
        Self { store, to: to.to_owned(), host: None, compared: false, volumes: BTreeMap::new() }
    }

    /// The path of the file in a folder.
    pub fn path(folder: &Path) -> PathBuf {
        folder.join(UPLOADS)
    }

    /// Reads the list of a folder; `None` if it is not uploaded.
    pub fn read(folder: &Path) -> Result<Option<Self>, FolderError> {
        let path = Self::path(folder);
        let bytes = match regular::read(&path, regular::CATALOGUE) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| FolderError::unread(&path, error))?,
        };
        let list = Self::parse(&bytes).map_err(|why| FolderError::Damaged(Damage::new(&path, why)))?;
        Ok(Some(list))
    }

    /// Writes the list in place of the previous one.
    pub fn write(&self, folder: &Folder) -> Result<(), FolderError> {
        folder.still_there()?;
        let (path, text) = (Self::path(&folder.path), self.text());
        if text.len() as u64 > regular::CATALOGUE {
            return Err(FolderError::io("write", &path, io::Error::other("it would be longer than can be read")));
        }
        folder.whole(&path, text.as_bytes())
    }

    pub fn store(&self) -> u64 {
        self.store
    }

    pub fn to(&self) -> &str {
        &self.to
    }

    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    pub fn set_host(&mut self, host: &str) {
        self.host = Some(host.to_owned());
    }

    /// Whether all volumes were compared with what the store has: until then it may have volumes that this list lacks.
    pub fn is_compared(&self) -> bool {
        self.compared
    }

    pub fn set_compared(&mut self, compared: bool) {
        self.compared = compared;
    }

    /// Whether the upload of a volume has begun.
    pub fn has(&self, volume: &str) -> bool {
        self.volumes.contains_key(volume)
    }

    /// Whether the store has a volume.
    pub fn is_confirmed(&self, volume: &str) -> bool {
        self.volumes.get(volume) == Some(&true)
    }

    /// Notes that an upload begins. Returns whether that is new.
    pub fn begin(&mut self, volume: &str) -> bool {
        let is_new = !self.has(volume);
        if is_new {
            self.volumes.insert(volume.to_owned(), false);
        }
        is_new
    }

    pub fn confirm(&mut self, volume: &str) {
        self.volumes.insert(volume.to_owned(), true);
    }

    pub fn unconfirm(&mut self, volume: &str) {
        self.volumes.insert(volume.to_owned(), false);
    }

    /// Forgets all volumes but these.
    pub fn retain(&mut self, volumes: &BTreeSet<&str>) {
        self.volumes.retain(|name, _| volumes.contains(name.as_str()));
    }

    /// The number of the first of these volumes whose stretches are confirmed completely.
    pub fn confirmed_first(&self, volumes: &[Entry]) -> usize {
        let stretches = crate::catalogue::stretches(volumes);
        let confirmed = stretches.take_while(|stretch| stretch.iter().all(|entry| self.is_confirmed(&entry.name)));
        confirmed.map(<[Entry]>::len).sum()
    }

    fn text(&self) -> String {
        let lines =
            self.volumes.iter().map(|(volume, confirmed)| Line { volume: volume.clone(), confirmed: *confirmed });
        let rest: String = lines.map(|entry| line(&entry)).collect();
        let (store, to, compared) = (format!("{:016x}", self.store), self.to.clone(), self.compared);
        let host = self.host.clone();
        let mut head = ListHeader { format: FORMAT, store, to, host, compared, crc32: 0 };
        let mut sum = crc32fast::Hasher::new();
        sum.update(line(&head).as_bytes());
        sum.update(rest.as_bytes());
        head.crc32 = sum.finalize();
        line(&head) + &rest
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| CHANGED.to_owned())?;
        let mut lines = text.lines();
        let head = lines.next().ok_or_else(|| "it is empty".to_owned())?;
        let head: ListHeader =
            serde_json::from_str(head).map_err(|error| format!("its first line is wrong: {error}"))?;
        if head.format != FORMAT {
            return Err(format!("it has format {}, and this version of queuescope reads format {FORMAT}", head.format));
        }
        let store = u64::from_str_radix(&head.store, 16).map_err(|_| CHANGED.to_owned())?;
        let mut list = Self { host: head.host, compared: head.compared, ..Self::new(store, &head.to) };
        for text in lines {
            let Line { volume, confirmed } =
                serde_json::from_str(text).map_err(|error| format!("a line is wrong: {error}"))?;
            list.volumes.insert(volume, confirmed);
        }
        // One text has one meaning: this compares the checksum, too.
        if list.text() == text { Ok(list) } else { Err(CHANGED.to_owned()) }
    }
}

/// A line of JSON.
fn line(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value);
    text.unwrap_or_else(|error| unreachable!("it has only numbers and texts: {error}")) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list() -> UploadList {
        let mut list = UploadList::new(0x1234, "s3://bucket/fleet");
        assert!(
            list.begin("date=2026-11-22/00000000000000000000") && list.begin("date=2026-11-22/00000000000000000007")
        );
        assert!(!list.begin("date=2026-11-22/00000000000000000007"), "it has begun already");
        list.confirm("date=2026-11-22/00000000000000000000");
        list
    }

    #[test]
    fn a_flipped_bit_or_a_missing_end_is_noticed() {
        let text = list().text();
        assert_eq!(UploadList::parse(text.as_bytes()), Ok(list()));
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(UploadList::parse(&bytes).is_err(), "{bit}");
        }
        for length in 0..text.len() {
            assert!(UploadList::parse(&text.as_bytes()[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_later_format_is_named() {
        let text = list().text().replacen("\"format\":1", "\"format\":2", 1);
        assert!(UploadList::parse(text.as_bytes()).is_err_and(|why| why.contains("format 2")));
    }

    proptest! {
        /// What is written is read, with any destination.
        #[test]
        fn what_is_written_is_read(store in any::<u64>(), to in any::<String>(), host in any::<Option<String>>(), compared in any::<bool>(), volumes in any::<Vec<(String, bool)>>()) {
            let mut list = UploadList::new(store, &to);
            (list.host, list.compared, list.volumes) = (host, compared, volumes.into_iter().collect());
            prop_assert_eq!(UploadList::parse(list.text().as_bytes()), Ok(list));
        }
    }
}
