//! How far a folder was written, in its file `lock`: so that what is emptied or cut short at its end is missed.
//!
//! The last journal and the alerts have no end that could be checked: who is killed leaves them open. The recorder notes behind
//! each write how far it is. The note is not synced. After a loss of power it may be an older one, which misses less; or there is
//! none, as in folders of earlier versions, which misses nothing.

use crate::error::{Damage, FolderError, MISSING};
use crate::folder::{ALERTS, Folder, LOCK, Lock};
use crate::regular;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The note, as long as somebody records.
#[derive(Debug)]
pub(crate) struct Mark {
    file: File,
    written: Mutex<Written>,
}

/// How far a folder was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// The position behind the last record.
    pub position: u64,
    /// Bytes of alerts.
    pub alerts: u64,
}

impl Mark {
    /// Of a folder that has so much now: what was noted before is known to whoever asked for it.
    pub fn new(lock: &Lock, folder: &Folder, position: u64) -> Result<Self, FolderError> {
        let path = folder.path.join(LOCK);
        let file = lock.file().map_err(|error| FolderError::io("open", &path, error))?;
        let alerts = length(&folder.path.join(ALERTS))?.unwrap_or(0);
        let mark = Self { file, written: Mutex::new(Written { position, alerts }) };
        mark.note(|_| {});
        Ok(mark)
    }

    /// Records before a position were written.
    pub fn records(&self, position: u64) {
        self.note(|written| written.position = position);
    }

    /// So many bytes of alerts were written.
    pub fn alerts(&self, bytes: u64) {
        self.note(|written| written.alerts = bytes);
    }

    fn note(&self, change: impl FnOnce(&mut Written)) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut written);
        // Without it less is missed, and nothing else is wrong.
        let _ = self.file.write_all_at(written.line().as_bytes(), 0);
    }
}

impl Written {
    /// What was noted last; nothing where there is no note, or none that is whole.
    pub fn of(folder: &Path) -> Self {
        let read = regular::read(&folder.join(LOCK), regular::SMALL).ok();
        read.and_then(|bytes| Self::parse(std::str::from_utf8(&bytes).ok()?)).unwrap_or_default()
    }

    fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.split_ascii_whitespace().map(|number| number.parse().ok());
        let written = Self { position: numbers.next()??, alerts: numbers.next()?? };
        (written.line() == line).then_some(written)
    }

    /// The numbers, and a checksum of both.
    fn line(&self) -> String {
        let numbers = format!("{:020} {:020}", self.position, self.alerts);
        format!("{numbers} {:010}\n", crc32fast::hash(numbers.as_bytes()))
    }

    /// Records that are not there of a folder that ends at a position.
    pub fn missing(&self, end: u64) -> u64 {
        self.position.saturating_sub(end)
    }

    /// What is wrong with a folder's alerts.
    pub fn alerts_damage(&self, folder: &Path) -> Result<Option<Damage>, FolderError> {
        let path = folder.join(ALERTS);
        let had = self.alerts;
        Ok(match length(&path)? {
            Some(now) if now < had => {
                Some(Damage::of(&path, format!("it has {now} bytes, and had {had} when it was written last")))
            }
            None if had > 0 => {
                Some(Damage::of(&path, format!("{MISSING}, and had {had} bytes when it was written last")))
            }
            _ => None,
        })
    }
}

/// The bytes of a file, if it is there. Whatever else stands there is reported by what reads it.
fn length(path: &Path) -> Result<Option<u64>, FolderError> {
    match regular::open(path).and_then(|file| file.metadata()) {
        Ok(data) => Ok(Some(data.len())),
        Err(error) if error.kind() == ErrorKind::NotFound || regular::unusable(&error).is_some() => Ok(None),
        Err(error) => Err(FolderError::io("open", path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_with_any_bit_flipped_is_none() {
        let written = Written { position: 1_000, alerts: u64::MAX };
        let line = written.line();
        assert_eq!(Written::parse(&line), Some(written));
        for bit in 0..line.len() * 8 {
            let mut bytes = line.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(std::str::from_utf8(&bytes).ok().and_then(Written::parse), None, "{bit}");
        }
        for length in 0..line.len() {
            assert_eq!(Written::parse(&line[..length]), None, "{length}");
        }
    }
}
