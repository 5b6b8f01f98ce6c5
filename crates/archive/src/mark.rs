//! Notes in the file `lock` how far a folder was written, so that a reader notices if its end was emptied or cut short.
//!
//! The last journal and the alerts have no end that can be checked: a process that is killed leaves them open. So the recorder notes after
//! each write how far it is. The first note is synced, later ones are not: after a loss of power an older note may be left,
//! so fewer losses are noticed. The catalogue records that there is a note, so that a lost note is noticed, too. Folders of earlier versions
//! have no note.
//!
//! Losses that were found stay known after recording continues: lost records as a gap in the positions, lost alerts in the catalogue.

use crate::catalogue::Catalogue;
use crate::error::{Damage, FolderError, MISSING};
use crate::folder::{Folder, Lock};
use crate::journal::POSITIONS;
use crate::names::{ALERTS, LOCK};
use crate::reader::Part;
use crate::regular;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often an incomplete note is read again: a process may be writing it.
const TRIES: u32 = 5;

/// The note of a folder that is being recorded to.
#[derive(Debug)]
pub(crate) struct Mark {
    file: File,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// How far the folder is written.
    written: Written,
    /// Bytes of alerts that are missing and that the catalogue does not list yet.
    lost: u64,
    /// Whether recording has begun. Until then the earlier note stays.
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

/// The last note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// Zero if there is no note, or no complete one.
    pub written: Written,
    /// What is wrong with the note.
    pub damage: Option<Damage>,
}

impl Mark {
    /// For a folder that ends at `position` and lacks `lost` bytes of alerts. Nothing is noted yet.
    pub fn new(lock: &Lock, folder: &Folder, position: u64, lost: u64) -> Result<Self, FolderError> {
        let file = lock.file().map_err(|error| FolderError::io("open", &folder.path.join(LOCK), error))?;
        let alerts = length(&folder.path.join(ALERTS))?.unwrap_or(0);
        let state = State { written: Written { position, alerts }, lost, has_begun: false };
        Ok(Self { file, state: Mutex::new(state) })
    }

    /// Call this when recording begins: losses stay known, and from now on writes are noted. Until this call no other process changes the
    /// catalogue. If the catalogue cannot be written, the next recorder tries again: it notices fewer losses, or the same again.
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

    /// Notes that all records before a position were written.
    pub fn records(&self, position: u64) {
        self.note(|written| written.position = position);
    }

    /// Notes that this many bytes of alerts were written.
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
            // Without the note fewer losses are noticed, and nothing else is wrong.
            let _ = file.write_all_at(self.line().as_bytes(), 0);
        }
    }

    fn line(&self) -> String {
        let alerts = self.written.alerts.saturating_add(self.lost);
        Written { alerts, ..self.written }.line()
    }
}

impl Note {
    /// Reads the note of a folder.
    pub fn read(folder: &Path) -> Self {
        let mut note = Self::default();
        for _ in 0..TRIES {
            let why = match read(folder) {
                Ok(Some(written)) => return Self { written, damage: None },
                Ok(None) if !is_expected(folder) => return Self::default(),
                Ok(None) => "it is missing or empty".to_owned(),
                Err(error) => error.to_string(),
            };
            let why = format!("{why}; so missing last records or alerts would not be noticed");
            note.damage = Some(Damage::new(&folder.join(LOCK), why));
        }
        note
    }

    /// The number of records missing from a folder that ends at `end`, with an incomplete part behind it if `torn` is given.
    pub fn missing(&self, end: u64, torn: Option<&Part>) -> u64 {
        self.written.position.max(torn.map_or(0, |part| part.end)).saturating_sub(end)
    }

    /// Bytes of alerts that are missing.
    pub fn alerts_missing(&self, folder: &Path) -> Result<u64, FolderError> {
        Ok(self.written.alerts.saturating_sub(length(&folder.join(ALERTS))?.unwrap_or(0)))
    }

    /// What is wrong with a folder's alerts.
    pub fn alerts_damage(&self, folder: &Path) -> Result<Option<Damage>, FolderError> {
        let (path, had) = (folder.join(ALERTS), self.written.alerts);
        let now = length(&path)?;
        let is = now.map_or_else(|| MISSING.to_owned(), |now| format!("it has {now} bytes"));
        let lacks = had > now.unwrap_or(0);
        Ok(lacks.then(|| Damage::new(&path, format!("{is}, and had {had} bytes when it was written last"))))
    }
}

/// Reads `lock`; `None` if it is missing or empty.
fn read(folder: &Path) -> io::Result<Option<Written>> {
    let bytes = match regular::read(&folder.join(LOCK), regular::SMALL) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let written = std::str::from_utf8(&bytes).ok().and_then(Written::parse);
    let damaged = || io::Error::other("it is not as it was written");
    if bytes.is_empty() { Ok(None) } else { written.ok_or_else(damaged).map(Some) }
}

/// Whether a folder should have a note. The note is written before the catalogue says that there is one.
fn is_expected(folder: &Path) -> bool {
    Catalogue::read(folder).is_ok_and(|catalogue| catalogue.noted.is_some())
}

impl Written {
    fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.split_ascii_whitespace().map(|number| number.parse().ok());
        let written = Self { position: numbers.next()??, alerts: numbers.next()?? };
        (written.line() == line && written.position <= POSITIONS).then_some(written)
    }

    /// Both numbers, and a checksum of them.
    fn line(&self) -> String {
        let numbers = format!("{:020} {:020}", self.position, self.alerts);
        format!("{numbers} {:010}\n", crc32fast::hash(numbers.as_bytes()))
    }
}

/// The length of a file in bytes, if it exists. Anything else in its place is reported by the code that reads it.
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
    fn a_note_with_a_flipped_bit_is_rejected() {
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
        // No log has as many records.
        assert_eq!(Written::parse(&Written { position: POSITIONS + 1, alerts: 0 }.line()), None);
    }
}
