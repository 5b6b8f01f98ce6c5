//! How far a sink came: a small file for each.

use super::address::SinkAddress;
use super::error::SinkError;
use crate::protocol::Alert;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The most bytes of the file: an address and three numbers.
const LONGEST: u64 = 64 << 10;

/// How far a sink came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// The sink, for people: the name of the file has only a digest of it.
    pub sink: String,
    /// The number of the last alert that is done with; 0 if none is.
    pub position: u64,
    /// Alerts from this number on were sent or were repeats. Those before may have been left out for other reasons.
    pub since: u64,
    /// [`digest`] of the alert at the position, which recognises a file of alerts that was replaced; empty at 0.
    pub last: String,
}

/// The file of a sink's position.
#[derive(Debug)]
pub(super) struct PositionFile {
    path: PathBuf,
}

impl PositionFile {
    /// The file of this sink in a folder, which is made if it is not there.
    ///
    /// # Errors
    /// Fails if the folder cannot be made.
    pub fn new(folder: &Path, sink: &SinkAddress) -> Result<Self, SinkError> {
        let failed = |why| SinkError::File { what: "make", path: folder.to_owned(), why };
        fs::DirBuilder::new().recursive(true).create(folder).map_err(failed)?;
        let name = format!("{}-{}.json", sink.kind(), short_digest(sink.to_string().as_bytes()));
        Ok(Self { path: folder.join(name) })
    }

    /// Reads the position; `None` if the sink is new.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or has something else in it.
    #[expect(clippy::disallowed_methods, reason = "the coordinator's folder is this crate's own")]
    pub fn read(&self) -> Result<Option<Position>, SinkError> {
        let failed = |why| SinkError::File { what: "read", path: self.path.clone(), why };
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let mut text = Vec::new();
        file.take(LONGEST).read_to_end(&mut text).map_err(failed)?;
        let damaged = |why| SinkError::Damaged { path: self.path.clone(), why };
        serde_json::from_slice(&text).map(Some).map_err(damaged)
    }

    /// Replaces the position: after a crash, the file has this one or the one before.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn write(&self, position: &Position) -> Result<(), SinkError> {
        let new = self.path.with_extension("new");
        let mut text = serde_json::to_vec(position).unwrap_or_default();
        text.push(b'\n');
        let written = File::create(&new)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&new, &self.path));
        written.map_err(|why| SinkError::File { what: "write", path: self.path.clone(), why })
    }
}

/// 16 hexadecimal digits of an alert's SHA-256.
pub(super) fn digest(alert: &Alert) -> String {
    let Alert { number, member, sequence, store, trigger, at, .. } = alert;
    short_digest(format!("{number} {sequence} {store} {at} {member} {trigger}").as_bytes())
}

/// 16 hexadecimal digits of a SHA-256.
pub(super) fn short_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = PositionFile::new(&dir.path().join("sinks"), &"jsonl:a/b".parse().unwrap()).unwrap();
        assert_eq!(file.read().unwrap(), None);
        for number in [0, 7] {
            let position = Position { sink: "jsonl:a/b".to_owned(), position: number, since: 1, last: String::new() };
            file.write(&position).unwrap();
            assert_eq!(file.read().unwrap(), Some(position));
        }
        let text = fs::read_to_string(&file.path).unwrap();
        assert_eq!(text, "{\"sink\":\"jsonl:a/b\",\"position\":7,\"since\":1,\"last\":\"\"}\n");
    }

    #[test]
    fn a_crash_while_it_is_written_leaves_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let file = PositionFile::new(dir.path(), &"jsonl:-".parse().unwrap()).unwrap();
        let position = Position { sink: "jsonl:-".to_owned(), position: 7, since: 1, last: "0".to_owned() };
        file.write(&position).unwrap();
        fs::write(file.path.with_extension("new"), "{\"sink\":\"js").unwrap();
        assert_eq!(file.read().unwrap(), Some(position.clone()));
        file.write(&position).unwrap();
        assert_eq!(file.read().unwrap(), Some(position));
    }

    #[test]
    fn a_damaged_file_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let file = PositionFile::new(dir.path(), &"jsonl:-".parse().unwrap()).unwrap();
        for text in ["", "{}", "{\"sink\":\"jsonl:-\",\"position\":-1,\"since\":1,\"last\":\"\"}", "\0\0\0"] {
            fs::write(&file.path, text).unwrap();
            let error = file.read().unwrap_err().to_string();
            assert!(error.contains("remove it"), "{error}");
        }
    }

    #[test]
    fn sinks_have_files_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = |text: &str| PositionFile::new(dir.path(), &text.parse().unwrap()).unwrap().path;
        assert_ne!(path("jsonl:a"), path("jsonl:b"));
        assert_ne!(path("webhook:http://a/b"), path("alertmanager:http://a/b"));
    }
}
