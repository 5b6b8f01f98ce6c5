//! The agent of a host: answers a coordinator about the records that this host keeps.
//!
//! It dials out, and keeps one stream open. When the stream ends it tries again, with pauses that become longer. Recording goes on
//! meanwhile, and alerts stay in the folder until the coordinator has stored them.

mod acts;
mod alerts;
mod around;
mod backoff;
mod dial;
mod folder;
mod part;
mod programs;
mod session;
mod source;

pub use acts::{ActCounts, ActLimits, ActNote, Actor, ActorError, Acts, Touched};
pub use backoff::Backoff;
pub use dial::{AgentConnection, AgentError, AgentEvent};
pub use session::SessionError;

use crate::locked::lock;
use crate::protocol::{LeftOut, UploadState};
use crate::upload::UploadStatus;
use folder::OtherFolder;
use programs::InstalledPrograms;
use queuescope_archive::{FolderError, Recorder};
use queuescope_report::model::Skipped;
use source::{Records, Source};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// What an agent serves: a folder that it records, or that another process records to.
#[derive(Debug, Clone)]
pub struct Served {
    source: Source,
    /// The folder.
    folder: PathBuf,
    /// Where the records come from, for people.
    about: String,
    /// Packets that the source did not record.
    shed: Arc<AtomicU64>,
    /// Records with times before this are recorded, nanoseconds since 1970; none if the source does not say.
    complete: Option<Arc<AtomicU64>>,
    /// What the source left out otherwise, by reason.
    left_out: LeftOutReasons,
    /// Is notified when alerts were written.
    alerted: Arc<Notify>,
    /// What the coordinator's programs compute here.
    programs: Arc<InstalledPrograms>,
    /// What they do to flows.
    acts: Arc<Mutex<Acts>>,
    /// Whether answers should end.
    ends: Arc<AtomicBool>,
    /// The counts of uploads, if the folder is uploaded.
    uploads: Option<Arc<UploadStatus>>,
}

impl Served {
    /// Serves a folder to which `recorder` records. `source` is for people, such as `interface eth0`; the source counts packets that it
    /// does not record in `shed`.
    pub fn new(recorder: Arc<Recorder>, folder: PathBuf, source: String, shed: Arc<AtomicU64>) -> Self {
        let alerted = Arc::new(Notify::new());
        let listener = Arc::clone(&alerted);
        // If there is a listener already, alerts are found when it is time to look for them.
        recorder.when_alerted(move || listener.notify_one());
        Self { shed, alerted, ..Self::of(Source::Own(Records(recorder)), folder, source) }
    }

    /// Serves a folder that another process records to, or has recorded: it is only read. It has no part in cuts, and installs no definitions of programs. `about` is for
    /// people.
    ///
    /// # Errors
    /// Fails if it is not a log.
    pub fn of_folder(folder: PathBuf, about: String) -> Result<Self, FolderError> {
        let other = OtherFolder::open(&folder)?;
        Ok(Self::of(Source::Folder(Arc::new(other)), folder, about))
    }

    fn of(source: Source, folder: PathBuf, about: String) -> Self {
        Self {
            source,
            folder,
            about,
            shed: Arc::default(),
            complete: None,
            left_out: LeftOutReasons::default(),
            alerted: Arc::default(),
            programs: Arc::default(),
            acts: Arc::default(),
            ends: Arc::default(),
            uploads: None,
        }
    }

    /// Also reports what an uploader of the folder does.
    #[must_use]
    pub fn with_uploads(mut self, uploads: Arc<UploadStatus>) -> Self {
        self.uploads = Some(uploads);
        self
    }

    /// Lets control programs act on flows. Without this, all actions are refused.
    #[must_use]
    pub fn acting(self, acts: Acts) -> Self {
        Self { acts: Arc::new(Mutex::new(acts)), ..self }
    }

    /// Also says up to which time records are complete, in nanoseconds since 1970: all records with times before it have been appended. The source raises that now and
    /// then, also without packets.
    #[must_use]
    pub fn completing(self, complete: Arc<AtomicU64>) -> Self {
        Self { complete: Some(complete), ..self }
    }

    /// Also says what the source left out, by reason. The source changes that now and then.
    #[must_use]
    pub fn leaving_out(self, left_out: LeftOutReasons) -> Self {
        Self { left_out, ..self }
    }
}

impl Served {
    /// Ends actions, and answers that are being computed, so that what runs them ends soon.
    pub fn end(&self) {
        self.ends.store(true, Ordering::Relaxed);
        lock(&self.acts).end_all("the agent ended");
    }

    /// What became of the actions that programs asked for.
    pub fn act_counts(&self) -> ActCounts {
        lock(&self.acts).counts()
    }

    /// What is uploaded, for the coordinator.
    fn upload_state(&self) -> Option<UploadState> {
        let counts = self.uploads.as_ref()?.counts();
        let held = self.source.own()?.0.held();
        Some(UploadState {
            waiting: counts.waiting,
            waiting_bytes: counts.waiting_bytes,
            confirmed: counts.confirmed,
            confirmed_bytes: counts.confirmed_bytes,
            retries: counts.retries,
            trouble: counts.trouble.unwrap_or_default(),
            held: held.volumes,
            held_bytes: held.bytes,
        })
    }

    fn is_ending(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    /// The number of records that readers see, with those that were in the folder before.
    pub fn visible(&self) -> u64 {
        self.source.visible()
    }

    /// Records with times before this are recorded, as far as that is known.
    fn complete(&self) -> Option<u64> {
        match &self.complete {
            Some(complete) => Some(complete.load(Ordering::Acquire)),
            None => self.source.has_ended().then_some(u64::MAX),
        }
    }
}

/// What a source left out, by reason, as far as it has said. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct LeftOutReasons(Arc<Mutex<Vec<LeftOut>>>);

impl LeftOutReasons {
    /// What was left out so far, in place of what was said before.
    pub fn set(&self, notes: impl IntoIterator<Item = Skipped>) {
        let left_out = |note: Skipped| LeftOut { reason: note.reason, count: note.count, meaning: note.meaning };
        *lock(&self.0) = notes.into_iter().map(left_out).collect();
    }

    fn get(&self) -> Vec<LeftOut> {
        lock(&self.0).clone()
    }
}
