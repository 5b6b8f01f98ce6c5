//! How far a folder was written, in its file `lock`: so that what is emptied or cut short at its end is missed.
//!
//! The last journal and the alerts have no end that could be checked: who is killed leaves them open. The recorder notes behind
//! each write how far it is. What is noted first is synced, and what follows is not: after a loss of power it may be an older note,
//! which misses less. The catalogue says that there is one, so that it is missed itself; folders of earlier versions have none.
//!
//! What is found missing stays known once recording goes on: records as a gap in their numbers, alerts in the catalogue.

use crate::catalogue::Catalogue;
use crate::error::{Damage, FolderError, MISSING};
use crate::folder::{Folder, Lock};
use crate::journal::POSITIONS;
use crate::names::{ALERTS, LOCK};
use crate::reader::Part;
use crate::regular::{self, Unusable};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often a note is read that is not whole: somebody may be writing it.
const TRIES: u32 = 5;

/// The note, as long as somebody records.
#[derive(Debug)]
pub(crate) struct Mark {
    file: File,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// How far the folder is written.
    written: Written,
    /// Bytes of alerts that are missing, and that the catalogue does not know of yet.
    lost: u64,
    /// Whether recording has begun. Until then, what was noted before stays.
    has_begun: bool,
}

/// How far a folder was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// The position behind the last record.
    pub position: u64,
    /// Bytes of alerts.
    pub alerts: u64,
}

/// What was noted last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// Nothing where there is no note, or none that is whole.
    pub written: Written,
    /// What is wrong with it.
    pub damage: Option<Damage>,
}

impl Mark {
    /// Of a folder that has so much now, and of whose alerts so many bytes are missing. Nothing is noted yet.
    pub fn new(lock: &Lock, folder: &Folder, position: u64, lost: u64) -> Result<Self, FolderError> {
        let file = lock.file().map_err(|error| FolderError::io("open", &folder.path.join(LOCK), error))?;
        let alerts = length(&folder.path.join(ALERTS))?.unwrap_or(0);
        let state = State { written: Written { position, alerts }, lost, has_begun: false };
        Ok(Self { file, state: Mutex::new(state) })
    }

    /// Recording begins: what is missing stays known, and what is written is noted from now on. Before this, nobody else changes the
    /// catalogue. What cannot be written is tried again by whoever records next: less is missed then, or the same once more.
    pub fn begin(&self, folder: &Folder) {
        let mut state = self.lock();
        if state.lost > 0 && self.note_in_catalogue(folder, &state).is_ok() {
            state.lost = 0;
        }
        state.has_begun = true;
        let length = state.line().len() as u64;
        state.note(&self.file);
        let synced = self.file.set_len(length).and_then(|()| self.file.sync_all());
        if state.lost == 0 && synced.is_ok() && folder.sync().is_ok() {
            let _ = self.note_in_catalogue(folder, &state);
        }
    }

    /// Writes into the catalogue that there is a note, and that alerts are missing.
    fn note_in_catalogue(&self, folder: &Folder, state: &State) -> Result<(), FolderError> {
        folder.still_there()?;
        let mut catalogue = Catalogue::read(&folder.path)?;
        if catalogue.noted.is_none() || state.lost > 0 {
            catalogue.noted.get_or_insert_default().add(state.lost, state.written.position);
            catalogue.write(folder)?;
        }
        Ok(())
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
        let mut state = self.lock();
        change(&mut state.written);
        state.note(&self.file);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note(&self, file: &File) {
        if self.has_begun {
            // Without it less is missed, and nothing else is wrong.
            let _ = file.write_all_at(self.line().as_bytes(), 0);
        }
    }

    fn line(&self) -> String {
        let alerts = self.written.alerts.saturating_add(self.lost);
        Written { alerts, ..self.written }.line()
    }
}

impl Note {
    /// That of a folder.
    pub fn of(folder: &Path) -> Self {
        let mut note = Self::default();
        for _ in 0..TRIES {
            let why = match read(folder) {
                Ok(Some(written)) => return Self { written, damage: None },
                Ok(None) if !is_expected(folder) => return Self::default(),
                Ok(None) => "it is missing or empty".to_owned(),
                // Whatever else stands there is reported by what it is.
                Err(error) if matches!(regular::unusable(&error), Some(Unusable::NotRegular(_))) => {
                    return Self::default();
                }
                Err(error) => error.to_string(),
            };
            let why = format!("{why}; nothing shows whether records or alerts that were written last are missing");
            note.damage = Some(Damage::of(&folder.join(LOCK), why));
        }
        note
    }

    /// Records that are not there of a folder that ends at a position, and at its end is not whole.
    pub fn missing(&self, end: u64, torn: Option<&Part>) -> u64 {
        self.written.position.max(torn.map_or(0, |part| part.end)).saturating_sub(end)
    }

    /// Bytes of alerts that are not there.
    pub fn alerts_missing(&self, folder: &Path) -> Result<u64, FolderError> {
        Ok(self.written.alerts.saturating_sub(length(&folder.join(ALERTS))?.unwrap_or(0)))
    }

    /// What is wrong with a folder's alerts.
    pub fn alerts_damage(&self, folder: &Path) -> Result<Option<Damage>, FolderError> {
        let (path, had) = (folder.join(ALERTS), self.written.alerts);
        let now = length(&path)?;
        let is = now.map_or_else(|| MISSING.to_owned(), |now| format!("it has {now} bytes"));
        let lacks = had > now.unwrap_or(0);
        Ok(lacks.then(|| Damage::of(&path, format!("{is}, and had {had} bytes when it was written last"))))
    }
}

/// What `lock` says; nothing where it is not there or empty.
fn read(folder: &Path) -> io::Result<Option<Written>> {
    let bytes = match regular::read(&folder.join(LOCK), regular::SMALL) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let written = std::str::from_utf8(&bytes).ok().and_then(Written::parse);
    let damaged = || io::Error::other("it is not as it was written");
    if bytes.is_empty() { Ok(None) } else { written.ok_or_else(damaged).map(Some) }
}

/// Whether a folder should have a note. It was there before the catalogue says so.
fn is_expected(folder: &Path) -> bool {
    Catalogue::read(folder).is_ok_and(|catalogue| catalogue.noted.is_some())
}

impl Written {
    fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.split_ascii_whitespace().map(|number| number.parse().ok());
        let written = Self { position: numbers.next()??, alerts: numbers.next()?? };
        (written.line() == line && written.position <= POSITIONS).then_some(written)
    }

    /// The numbers, and a checksum of both.
    fn line(&self) -> String {
        let numbers = format!("{:020} {:020}", self.position, self.alerts);
        format!("{numbers} {:010}\n", crc32fast::hash(numbers.as_bytes()))
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
        // No log has as many.
        assert_eq!(Written::parse(&Written { position: POSITIONS + 1, alerts: 0 }.line()), None);
    }
}
