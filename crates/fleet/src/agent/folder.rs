//! A folder that another process records to. It can be removed, and another recording can take its place.

use super::alerts::first_line;
use crate::protocol::LeftOut;
use arc_swap::ArcSwap;
use queuescope_archive::{End, FolderError, History, is_recorded};
use queuescope_recording::query::Held;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder that another process records to, or has recorded. It is only read.
#[derive(Debug)]
pub(super) struct OtherFolder {
    path: PathBuf,
    now: ArcSwap<OpenFolder>,
    /// Names its file of alerts: the last that was served.
    first_line: AtomicU64,
    /// How often another recording, or another file of alerts, took the place of an earlier one.
    replaced: AtomicU64,
    /// Alerts that were read from earlier ones, and that the coordinator did not store.
    lost_alerts: AtomicU64,
}

/// One recording in the folder.
#[derive(Debug)]
pub(super) struct OpenFolder {
    pub held: Held,
    made_at: u64,
}

/// What has become of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looked {
    /// It has the same recording, or cannot be read now.
    Same,
    /// It has another recording, which is served from now on.
    Replaced,
}

impl OtherFolder {
    /// # Errors
    /// Fails if it is not a log.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let now = ArcSwap::from_pointee(OpenFolder::open(path)?);
        let [first_line, replaced, lost_alerts] = [0; 3].map(AtomicU64::new);
        let open = Self { path: path.to_owned(), now, first_line, replaced, lost_alerts };
        open.look_at_alerts();
        Ok(open)
    }

    /// Looks which file of alerts is there, to serve it from now on.
    pub fn look_at_alerts(&self) {
        // One that cannot be read is an error when its alerts are read.
        self.first_line.store(first_line(&self.path).unwrap_or(0), Ordering::Relaxed);
    }

    /// Names the file of alerts that is served, by its first line.
    pub fn first_line(&self) -> u64 {
        self.first_line.load(Ordering::Relaxed)
    }

    /// The recording that it has.
    pub fn open_folder(&self) -> Arc<OpenFolder> {
        self.now.load_full()
    }

    /// Names its alerts: their numbers begin with 1 in another recording, and in another file of alerts.
    pub fn store(&self) -> u64 {
        self.now.load().made_at.wrapping_add(self.first_line())
    }

    /// The name of its alerts in versions that did not name the file; 0 if it is the same.
    pub fn earlier_store(&self) -> u64 {
        if self.first_line() == 0 { 0 } else { self.now.load().made_at }
    }

    /// The number of records that were written.
    pub fn visible(&self) -> u64 {
        // What cannot be read is damage in the next answer.
        self.now.load().held.end().map_or(0, |end: End| end.position())
    }

    /// Whether no process records to it.
    pub fn has_ended(&self) -> bool {
        is_recorded(&self.path).is_ok_and(|is_recorded| !is_recorded)
    }

    /// Looks whether another recording has taken its place, and serves that one from now on.
    pub fn look(&self) -> Looked {
        match History::made_at_path(&self.path) {
            None => Looked::Same,
            Some(made_at) if made_at == self.now.load().made_at => Looked::Same,
            // One that cannot be opened is being made, or is no log: the next look tries again.
            Some(_) => OpenFolder::open(&self.path).map_or(Looked::Same, |open| {
                self.now.store(Arc::new(open));
                self.replaced.fetch_add(1, Ordering::Relaxed);
                Looked::Replaced
            }),
        }
    }

    /// Another file of alerts took the place of an earlier one.
    pub fn alerts_replaced(&self) {
        self.replaced.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes alerts of an earlier recording that the coordinator did not store.
    pub fn lose_alerts(&self, count: u64) {
        self.lost_alerts.fetch_add(count, Ordering::Relaxed);
    }

    /// Why it cannot answer, if it cannot.
    pub fn trouble(&self) -> Option<String> {
        let path = self.path.display();
        match History::made_at_path(&self.path) {
            Some(made_at) if made_at == self.now.load().made_at => None,
            Some(_) => {
                let why = OpenFolder::open(&self.path).err().map_or_else(String::new, |why| format!(": {why}"));
                Some(format!("its folder {path} has another recording, which is not read yet{why}"))
            }
            None => Some(format!("its folder {path} is gone: no log is at this path any more")),
        }
    }

    /// What it left out, by reason.
    pub fn left_out(&self) -> Vec<LeftOut> {
        let of = |reason: &str, count: &AtomicU64, meaning: &str| {
            let count = count.load(Ordering::Relaxed);
            let (reason, meaning) = (reason.to_owned(), meaning.to_owned());
            (count > 0).then_some(LeftOut { reason, count, meaning })
        };
        let replaced = "times another recording or file of alerts took the place of the one that was served";
        let lost = "alerts of these were read, and were not stored by the coordinator before";
        let all = [of("folder_replaced", &self.replaced, replaced), of("alerts_replaced", &self.lost_alerts, lost)];
        all.into_iter().flatten().collect()
    }
}

impl OpenFolder {
    fn open(path: &Path) -> Result<Self, FolderError> {
        let history = History::open(path)?;
        let made_at = history.made_at();
        Ok(Self { held: Held::Folder(Box::new(history)), made_at })
    }
}
