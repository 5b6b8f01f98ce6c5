//! Definitions that come and go while records are appended.

use queuescope_log::{ApplyError, Defined, Definitions, Log};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was [installed](super::Recorder::install) under a name.
#[derive(Debug, Clone)]
pub struct Installed {
    /// The name.
    pub name: String,
    /// No other installation has this number, also not a later one of the same name.
    pub number: u64,
    /// The ids of the definitions in the log.
    pub defined: Defined,
}

/// Definitions beside those of the folder, by the names under which they were added.
#[derive(Debug, Default)]
pub(super) struct Installations {
    all: Mutex<BTreeMap<String, (u64, Defined)>>,
    /// Counts the changes.
    changes: AtomicU64,
}

impl Installations {
    pub fn add(&self, log: &Log, name: &str, definitions: &Definitions) -> Result<(), ApplyError> {
        let mut all = self.all();
        let number = self.changes.fetch_add(1, Ordering::Release) + 1;
        if let Some((_, earlier)) = all.remove(name) {
            earlier.remove(log);
        }
        let defined = definitions.apply(log)?;
        all.insert(name.to_owned(), (number, defined));
        Ok(())
    }

    pub fn remove(&self, log: &Log, name: &str) -> bool {
        let mut all = self.all();
        let Some((_, defined)) = all.remove(name) else { return false };
        self.changes.fetch_add(1, Ordering::Release);
        defined.remove(log);
        true
    }

    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The number of changes, and what is there after them: a change is counted before it is made, under the lock that this takes.
    pub fn list(&self) -> (u64, Vec<Installed>) {
        let all = self.all();
        let installed = |(name, (number, defined)): (&String, &(u64, Defined))| Installed {
            name: name.clone(),
            number: *number,
            defined: defined.clone(),
        };
        (self.changes(), all.iter().map(installed).collect())
    }

    /// Each change of the map is one step, so it is whole even if another thread panicked.
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, (u64, Defined)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
