//! The thread of a recorder that makes volumes of journals, and takes old ones away.
//!
//! What goes wrong with it does not end recording: records are in journals. It is tried again, after pauses that grow, and
//! once more when recording ends. A journal that is not as it was written is not tried again: those behind it cannot become
//! volumes before it, since a catalogue has no gaps. Old volumes go in any case.

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

/// How volumes are made of journals.
#[derive(Debug)]
pub(in crate::recorder) struct Archiving {
    /// Attributes that volumes have indexes of.
    pub indexes: Vec<AttributeId>,
    /// Which volumes stay when another was made.
    pub keep: Retention,
    /// How long to wait after a failure.
    pub pauses: Pauses,
}

/// How long to wait after a failure: twice as long each time.
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
    /// What the thread does.
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
            // Also if there is no new volume: perhaps old ones take the room that it needs.
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
            // Who ends recording does not wait for it.
            drop(self.closed.wait_timeout_while(state, pause, |state| !state.last));
            pause = (pause * 2).min(pauses.most);
        }
    }

    /// Takes volumes away that are not to stay, and counts their records; `again` if it went wrong before.
    fn prune_locked(&self, keep: Retention, again: bool) -> Result<(), FolderError> {
        if keep == Retention::default() {
            return Ok(());
        }
        // The catalogue does not list any more what was not removed then.
        let strays = if again { self.remove_strays() } else { Ok(()) };
        let kept = prune_locked(&self.folder, keep);
        // By the catalogue: they are gone also if something went wrong behind it.
        if let Ok(catalogue) = Catalogue::read(&self.folder.path) {
            self.lock().removed = catalogue.removed.records.saturating_sub(self.removed_before);
        }
        strays.and(kept.map(drop))
    }

    fn remove_strays(&self) -> Result<(), FolderError> {
        let catalogue = Catalogue::read(&self.folder.path)?;
        // Nobody else writes volumes: this thread does, and holds the lock of the folder.
        remove_strays(&self.folder, &catalogue)
    }
}

/// Makes volumes of a journal. What only says how many were lost stays for who records next.
fn make(archiver: &Archiver<'_>, journal: &Closed) -> Result<(), FolderError> {
    if journal.positions.is_empty() { Ok(()) } else { archiver.journal(journal) }
}
