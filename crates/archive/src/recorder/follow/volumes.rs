//! The thread of a recorder that turns journals into volumes, and removes old volumes.
//!
//! Its errors do not end recording: the records are in journals. It tries again after growing pauses, and
//! once more when recording ends. It does not try again for a damaged journal. Later journals cannot become
//! volumes before that one, because a catalogue has no gaps. Old volumes are removed in any case.

use super::Shared;
use crate::archive::Archiver;
use crate::catalogue::Catalogue;
use crate::error::FolderError;
use crate::journal::Closed;
use crate::prune::{Retention, prune_locked};
use crate::strays::remove_strays;
use queuescope_log::AttributeId;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// How journals become volumes.
#[derive(Debug)]
pub(in crate::recorder) struct Archiving {
    /// Attributes that volumes get indexes of.
    pub indexes: Vec<AttributeId>,
    /// Which volumes to keep whenever another one was made.
    pub keep: Retention,
    /// How long to wait after a failure.
    pub pauses: Pauses,
}

/// How long to wait after failures: twice as long each time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pauses {
    pub first: Duration,
    pub most: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), most: Duration::from_secs(60) }
    }
}

impl Shared {
    /// The loop of the thread.
    pub(super) fn archive(&self, archiving: Archiving) {
        let Archiving { indexes, keep, pauses } = archiving;
        let archiver = Archiver::new(&self.folder, indexes, self.volume);
        if catch_unwind(AssertUnwindSafe(|| self.make_volumes(&archiver, keep, pauses))).is_err() {
            let why = io::Error::other("the thread that makes volumes has stopped");
            self.lock().troubled = Some(Arc::new(FolderError::io("make volumes of", &self.folder.path, why)));
        }
    }

    fn make_volumes(&self, archiver: &Archiver<'_>, keep: Retention, pauses: Pauses) {
        let (mut pause, mut keeps_too_much, mut damaged) = (pauses.first, false, None);
        loop {
            let mut state = self.lock();
            while !state.last && (!state.begun || ((state.journals.is_empty() || damaged.is_some()) && !keeps_too_much))
            {
                state = self.closed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let (journal, last) = (state.journals.front().filter(|_| damaged.is_none()).cloned(), state.last);
            drop(state);
            if journal.is_none() && !keeps_too_much {
                return;
            }
            let made = journal.as_ref().map_or(Ok(()), |journal| make(archiver, journal));
            // Even without a new volume: old ones may take the room that it needs.
            let kept = self.prune_locked(keep, keeps_too_much);
            keeps_too_much = kept.is_err();
            let gives_up = last && (made.is_err() || journal.is_none());
            let is_damaged = matches!((&made, &journal),
                (Err(FolderError::Damaged(damage)), Some(journal)) if damage.path == journal.path);
            let mut state = self.lock();
            if made.is_ok() && journal.is_some() {
                state.journals.pop_front();
            }
            let trouble = made.and(kept).err().map(Arc::new);
            if is_damaged {
                damaged.clone_from(&trouble);
            }
            let is_well = trouble.is_none();
            state.troubled = trouble.or_else(|| damaged.clone());
            if is_well {
                pause = pauses.first;
                continue;
            }
            if gives_up {
                return;
            }
            if is_damaged && !keeps_too_much {
                continue;
            }
            // The end of recording interrupts this wait.
            drop(self.closed.wait_timeout_while(state, pause, |state| !state.last));
            pause = (pause * 2).min(pauses.most);
        }
    }

    /// Removes volumes that are too old or too many, and counts their records; `again` if the last attempt failed.
    fn prune_locked(&self, keep: Retention, again: bool) -> Result<(), FolderError> {
        if keep == Retention::default() {
            return Ok(());
        }
        // The catalogue no longer lists the files that could not be removed then.
        let strays = if again { self.remove_strays() } else { Ok(()) };
        let kept = prune_locked(&self.folder, keep);
        // Counted by the catalogue: the records are gone even if an error came after it was written.
        if let Ok(catalogue) = Catalogue::read(&self.folder.path) {
            self.lock().removed = catalogue.removed.records.saturating_sub(self.removed_before);
        }
        if let Ok(kept) = &kept {
            self.lock().held = kept.held;
        }
        strays.and(kept.map(drop))
    }

    fn remove_strays(&self) -> Result<(), FolderError> {
        let catalogue = Catalogue::read(&self.folder.path)?;
        // No other code writes volumes: this thread does, and holds the lock of the folder.
        remove_strays(&self.folder, &catalogue)
    }
}

/// Turns a journal into volumes. A journal that only records losses stays for the next recorder.
fn make(archiver: &Archiver<'_>, journal: &Closed) -> Result<(), FolderError> {
    if journal.positions.is_empty() { Ok(()) } else { archiver.journal(journal) }
}
