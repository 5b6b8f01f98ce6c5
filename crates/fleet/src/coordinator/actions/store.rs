//! Actions in a file: a line of JSON for each decision, and one for each end. Later lines of an action replace earlier ones.

use super::{ActionRecord, ActionState};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Actions that are kept in memory, and in the file when it is written again.
const KEPT: usize = 4_096;
/// The length of the file from which it is written again.
const LONGEST: u64 = 16 << 20;
/// Troubles that wait.
const TROUBLES: usize = 16;

/// The newest actions, and the file that has them.
#[derive(Debug, Default)]
pub struct ActionStore {
    file: Option<Stored>,
    records: BTreeMap<u64, ActionRecord>,
    last: u64,
    troubles: Vec<String>,
}

#[derive(Debug)]
struct Stored {
    path: PathBuf,
    file: File,
    length: u64,
    longest: u64,
}

/// Why actions cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum ActionStoreError {
    /// The file cannot be read or written.
    #[error("cannot {what} {}: {why}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// A line of the file is not an action.
    #[error("{}, line {line}, is not an action: {why}; move the file away to begin a new one", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: u64,
        /// What is wrong with it.
        why: serde_json::Error,
    },
}

impl ActionStore {
    /// Opens the file, or creates it. Actions that were in progress are over: the coordinator that took them has ended. An incomplete last line,
    /// which a crash leaves, is cut off.
    ///
    /// # Errors
    /// Fails if it cannot be read or written, or has something else in it.
    pub fn open(path: &Path) -> Result<Self, ActionStoreError> {
        Self::with(path, LONGEST)
    }

    pub(super) fn with(path: &Path, longest: u64) -> Result<Self, ActionStoreError> {
        let failed = failed(path);
        // A crash between two renamings.
        let new = path.with_extension("new");
        if !path.exists() && new.exists() {
            fs::rename(&new, path).map_err(failed("rename a file to"))?;
        }
        let file = opened(path).map_err(failed("open"))?;
        let (mut records, mut last, mut length, mut number) = (BTreeMap::new(), 0, 0, 0);
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).map_err(failed("read"))?;
            if !line.ends_with(b"\n") {
                break;
            }
            (number, length) = (number + 1, length + read as u64);
            let wrong = |why| ActionStoreError::Line { path: path.to_owned(), line: number, why };
            let record: ActionRecord = serde_json::from_slice(&line).map_err(wrong)?;
            last = last.max(record.id);
            records.insert(record.id, record);
            while records.len() > KEPT {
                records.pop_first();
            }
        }
        file.set_len(length).map_err(failed("shorten"))?;
        let stored = Stored { path: path.to_owned(), file, length, longest };
        let mut store = Self { file: Some(stored), records, last, troubles: Vec::new() };
        let open: Vec<_> = store.records.values().filter(|record| record.state.is_open()).cloned().collect();
        for mut record in open {
            record.end(ActionState::Undone, "the coordinator ended");
            store.finish(record)?;
        }
        Ok(store)
    }

    /// A number that no action has had.
    pub(super) fn next_id(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// An action, if it is among the newest.
    pub(super) fn get(&self, id: u64) -> Option<&ActionRecord> {
        self.records.get(&id)
    }

    /// Stores a decision: it is on the disk afterwards.
    pub(super) fn decide(&mut self, record: ActionRecord) -> Result<(), ActionStoreError> {
        self.write(&record)?;
        if let Some(stored) = &self.file {
            stored.file.sync_data().map_err(failed(&stored.path)("write"))?;
        }
        self.update(record);
        Ok(())
    }

    /// Stores an end. What a crash loses of it, the next start says.
    pub(super) fn finish(&mut self, record: ActionRecord) -> Result<(), ActionStoreError> {
        let written = self.write(&record);
        self.update(record);
        written
    }

    /// Changes an action in memory only.
    pub(super) fn update(&mut self, record: ActionRecord) {
        self.records.insert(record.id, record);
        while self.records.len() > KEPT {
            // Those in progress stay, so that their ends are known.
            let Some(id) = self.records.values().find(|record| !record.state.is_open()).map(|record| record.id) else {
                return;
            };
            self.records.remove(&id);
        }
    }

    /// The newest actions, the oldest first.
    pub(super) fn newest(&self, most: usize) -> Vec<ActionRecord> {
        self.records.values().skip(self.records.len().saturating_sub(most)).cloned().collect()
    }

    /// Notes that something went wrong.
    pub(super) fn troubled(&mut self, why: String) {
        if self.troubles.len() < TROUBLES {
            self.troubles.push(why);
        }
    }

    /// What went wrong since the last call.
    pub(super) fn troubles(&mut self) -> Vec<String> {
        std::mem::take(&mut self.troubles)
    }

    fn write(&mut self, record: &ActionRecord) -> Result<(), ActionStoreError> {
        let Some(stored) = &mut self.file else { return Ok(()) };
        if stored.length > stored.longest {
            stored.begin_another(self.records.values())?;
        }
        let line = line(record);
        if let Err(why) = stored.file.write_all(&line) {
            // A part of the line must not stand in front of the next.
            let _ = stored.file.set_len(stored.length);
            return Err(failed(&stored.path)("write")(why));
        }
        stored.length += line.len() as u64;
        Ok(())
    }
}

impl Stored {
    /// Writes the newest actions to a new file; the earlier one stays beside it, in place of an even earlier one.
    fn begin_another<'a>(&mut self, records: impl Iterator<Item = &'a ActionRecord>) -> Result<(), ActionStoreError> {
        let failed = failed(&self.path);
        let new = self.path.with_extension("new");
        let text: Vec<u8> = records.flat_map(line).collect();
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&new).map_err(failed("write"))?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed("write"))?;
        fs::rename(&self.path, self.path.with_extension("1.jsonl")).map_err(failed("rename"))?;
        fs::rename(&new, &self.path).map_err(failed("rename a file to"))?;
        // If not even these fit, it grows by as much before it is written again.
        self.longest = self.longest.max(2 * text.len() as u64);
        (self.file, self.length) = (opened(&self.path).map_err(failed("open"))?, text.len() as u64);
        Ok(())
    }
}

fn line(record: &ActionRecord) -> Vec<u8> {
    let mut line = serde_json::to_vec(record).unwrap_or_default();
    line.push(b'\n');
    line
}

fn opened(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

fn failed(path: &Path) -> impl Fn(&'static str) -> Box<dyn FnOnce(io::Error) -> ActionStoreError> {
    let path = path.to_owned();
    move |what| {
        let path = path.clone();
        Box::new(move |why| ActionStoreError::File { what, path, why })
    }
}
