//! Uploads to object storage: beside a recording, and of a folder that nobody records to.

use super::Access;
use crate::args::{FleetManifest, FleetUpload};
use crate::outcome::{Outcome, print};
use crate::paths::read_text;
use crate::terminal::note;
use anyhow::{Context, Result, anyhow};
use queuescope_archive::{Recorder, Uploads};
use queuescope_fleet::identity::MemberName;
use queuescope_fleet::protocol::{Member, UploadState};
use queuescope_fleet::upload::{
    CutManifest, UploadCounts, UploadError, UploadEvent, UploadParams, UploadStatus, UploadTarget, Uploader,
};
use queuescope_recording::check_log;
use queuescope_report::format::count;
use queuescope_wire::ByteCount;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::time::timeout;

/// How long an agent that ends uploads the rest. What is left then waits for the next start.
const LAST: Duration = Duration::from_secs(10);
/// The longest line of a cut, in bytes.
const LONGEST: u64 = 16 << 20;

/// Where a host uploads its records to.
pub struct HostUploads {
    target: UploadTarget,
    host: MemberName,
}

impl HostUploads {
    /// # Errors
    /// Fails if the URL is not a place to upload to, or if these are not the credentials of a member.
    pub fn of(access: &Access, url: &str) -> Result<Self> {
        let credentials = access.credentials.get();
        let host = credentials.subject().member().map_err(|error| anyhow!(error.with_causes()))?.name.clone();
        Ok(Self { target: target(url)?, host })
    }

    /// Uploads in a thread of its own while a folder is recorded to.
    ///
    /// # Errors
    /// Fails if the folder cannot be uploaded, or if the system starts no thread.
    pub fn beside(&self, recorder: &Recorder) -> Result<Uploading> {
        let uploader = self.uploader(Uploads::beside(recorder, self.target.url())?)?;
        let place = self.target.url().to_owned();
        Uploading::start(uploader, place)
    }

    /// After the recording: uploads the last volumes for a while, and notes what was uploaded and what waits. `before` are the counts of
    /// the recording.
    pub fn rest(&self, log: &Path, before: &UploadCounts) {
        let place = self.target.url();
        let counts = match self.last(log) {
            Ok(counts) => counts,
            Err(why) => {
                note(&format!("the last volumes were not uploaded to {place}, and wait for the next start: {why:#}"));
                before.clone()
            }
        };
        let (confirmed, bytes) = (before.confirmed + counts.confirmed, before.confirmed_bytes + counts.confirmed_bytes);
        let retries = before.retries + counts.retries;
        let all = UploadCounts { confirmed, confirmed_bytes: bytes, retries, ..counts };
        note(&format!("{} in {place}", described(&all)));
    }

    fn last(&self, log: &Path) -> Result<UploadCounts> {
        let mut uploader = self.uploader(Uploads::open(log, self.target.url())?)?;
        let status = uploader.status();
        // Its error is in the status.
        let _ = runtime()?.block_on(async { timeout(LAST, uploader.pass()).await });
        Ok(status.counts())
    }

    fn uploader(&self, uploads: Uploads) -> Result<Uploader, UploadError> {
        Uploader::new(uploads, self.target.clone(), self.host.clone(), UploadParams::default())
    }
}

/// The thread that uploads. It ends when this is dropped.
pub struct Uploading {
    thread: Option<JoinHandle<()>>,
    over: Arc<Notify>,
    status: Arc<UploadStatus>,
}

impl Uploading {
    fn start(mut uploader: Uploader, place: String) -> Result<Self> {
        let (over, status, runtime) = (Arc::new(Notify::new()), uploader.status(), runtime()?);
        let ends = Arc::clone(&over);
        let upload = move || {
            let report = |event: UploadEvent| match event {
                UploadEvent::Failed { why, pause } => {
                    note(&format!("{why}; the next try is in {pause}, and recording goes on"));
                }
                UploadEvent::Recovered => note(&format!("everything that waited is uploaded to {place}")),
            };
            runtime.block_on(async {
                tokio::select! {
                    never = uploader.run(&report) => match never {},
                    () = ends.notified() => {}
                }
            });
        };
        let thread = thread::Builder::new().name("upload".to_owned()).spawn(upload).context("cannot start a thread")?;
        Ok(Self { thread: Some(thread), over, status })
    }

    /// Its counts.
    pub fn status(&self) -> Arc<UploadStatus> {
        Arc::clone(&self.status)
    }

    /// Ends the thread; nothing of the folder is in use afterwards.
    pub fn end(self) -> UploadCounts {
        let status = self.status();
        drop(self);
        status.counts()
    }
}

impl Drop for Uploading {
    fn drop(&mut self) {
        self.over.notify_one();
        // If it panicked, the panic was printed then.
        self.thread.take().map(JoinHandle::join);
    }
}

/// A place, with the variables of the environment.
fn target(url: &str) -> Result<UploadTarget> {
    let variables = std::env::vars_os();
    let variables = variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Ok(UploadTarget::parse(url, &variables.collect::<Vec<_>>())?)
}

/// Runs `fleet upload`.
///
/// # Errors
/// Fails if the folder has no log or is being recorded to, or if the place cannot be used.
pub fn folder(args: &FleetUpload) -> Result<Outcome> {
    check_log(&args.folder)?;
    let target = target(&args.to)?;
    let uploads = Uploads::open(&args.folder, target.url())?;
    let mut uploader = Uploader::new(uploads, target.clone(), args.host.clone(), UploadParams::default())?;
    let status = uploader.status();
    let passed = runtime()?.block_on(uploader.pass());
    let counts = UploadCounts { trouble: None, ..status.counts() };
    print(false, |_| Ok(()), |out| writeln!(out, "{} in {}", described(&counts), target.url()))?;
    Ok(Outcome::from_damage(passed.err().map(|error| error.to_string())))
}

/// Runs `fleet manifest`.
///
/// # Errors
/// Fails if the file is not a cut, or if the store cannot be listed.
pub fn manifest(args: &FleetManifest) -> Result<Outcome> {
    let target = target(&args.store)?;
    let cut = if args.cut.as_os_str() == "-" {
        io::read_to_string(io::stdin())?
    } else {
        read_text(&args.cut, LONGEST).with_context(|| format!("cannot read {}", args.cut.display()))?
    };
    let manifest = runtime()?.block_on(CutManifest::make(&cut, &target))?;
    let text = serde_json::to_string_pretty(&manifest)?;
    print(false, |_| Ok(()), |out| writeln!(out, "{text}"))?;
    let lacking = manifest.hosts.iter().filter(|host| host.position.is_none() || !host.missing.is_empty());
    let names: Vec<_> = lacking.map(|host| host.host.as_str()).collect();
    let why = format!("the store does not have all records of the cut: {} is not complete", names.join(", "));
    Ok(Outcome::from_damage((!manifest.is_complete).then_some(why)))
}

/// Writes what a member uploads, if it uploads.
pub fn write_state(member: &Member, out: &mut dyn Write) -> io::Result<()> {
    let Some(state) = &member.uploads else { return Ok(()) };
    let trouble = Some(state.trouble.clone()).filter(|trouble| !trouble.is_empty());
    let counts = UploadCounts {
        waiting: state.waiting,
        waiting_bytes: state.waiting_bytes,
        confirmed: state.confirmed,
        confirmed_bytes: state.confirmed_bytes,
        retries: state.retries,
        trouble,
    };
    let held = match state.held {
        0 => String::new(),
        held => format!("; {} ({}) are kept beyond the limit", volumes(held), ByteCount(state.held_bytes)),
    };
    writeln!(out, "{}: {}{held}", member.name, described(&counts))
}

/// What a member uploads, as JSON.
pub fn state_json(state: &UploadState) -> Value {
    json!({
        "waiting": state.waiting, "waiting_bytes": state.waiting_bytes, "confirmed": state.confirmed,
        "confirmed_bytes": state.confirmed_bytes, "retries": state.retries,
        "trouble": (!state.trouble.is_empty()).then_some(&state.trouble), "held": state.held, "held_bytes": state.held_bytes,
    })
}

/// Counts as text: `3 volumes (12MB) uploaded, 1 volume (4MB) waits`.
fn described(counts: &UploadCounts) -> String {
    let mut text = format!("{} ({}) uploaded", volumes(counts.confirmed), ByteCount(counts.confirmed_bytes));
    if counts.waiting > 0 {
        text += &format!(", {} ({}) to upload", volumes(counts.waiting), ByteCount(counts.waiting_bytes));
    }
    if counts.retries > 0 {
        text += &format!(", tried again {} times", count(counts.retries));
    }
    if let Some(trouble) = &counts.trouble {
        text += &format!(", last error: {trouble}");
    }
    text
}

fn volumes(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "volume" } else { "volumes" })
}

/// A runtime for calls to a store: one thread, apart from that of the coordinator's stream, because cuts must not wait for it.
fn runtime() -> Result<Runtime> {
    Builder::new_current_thread().enable_all().build().context("cannot start threads")
}
