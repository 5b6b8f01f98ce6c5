//! `queuescope agent`: records the packets of an interface, and answers a coordinator about them.

use crate::args::Agent as AgentArgs;
use crate::capture_live::{Limits, LiveCapture};
use crate::expressions::recording_error;
use crate::fleet::{Access, runtime};
use crate::outcome::{Outcome, print};
use crate::terminal::note;
use anyhow::{Result, anyhow};
use queuescope_fleet::agent::{AgentConnection, AgentEvent, Served};
use queuescope_ingest::Stop;
use queuescope_ingest::records::{Frames, Records};
use queuescope_live::capture::CaptureParams;
use queuescope_recording::{CpuBudget, Error, Headers, IntoFolder, into_folder};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use tokio::sync::Notify;

/// Bytes that are copied of each packet: the headers.
const SNAPLEN: u32 = 128;

/// Runs `agent`.
///
/// # Errors
/// Fails if nothing could be recorded, or if the coordinator refuses this host.
pub fn run(args: &AgentArgs) -> Result<Outcome> {
    let headers = Headers::of(args.recorded.chosen.as_deref(), args.recorded.inner, None)?;
    let access = Access::open(&args.access)?;
    let stop = Stop::on_signals()?;
    let params = CaptureParams { snaplen: SNAPLEN, direction: args.direction.into(), ring: args.buffer.0 };
    let limits = Limits { duration: args.run_time.duration, most: u64::MAX };
    let mut live = LiveCapture::open(&args.interface, params, headers, stop.clone(), limits)?;
    if let Some(share) = args.cpu {
        live.limit(CpuBudget::new(share));
    }
    let connection =
        AgentConnection { coordinator: access.coordinator, credentials: access.credentials, folder: access.folder };
    let refused = Arc::new(Mutex::new(None));
    let put = |folder: &mut IntoFolder<'_>| {
        folder.take_installed()?;
        let shed = Arc::new(AtomicU64::new(0));
        let source = format!("interface {}", args.interface);
        let served = Served::new(folder.recorder(), args.log.clone(), source, Arc::clone(&shed));
        let network = Network::start(served, connection, stop, Arc::clone(&refused))
            .map_err(|error| Error::Source(error.into()))?;
        let ended = live.to_folder(folder, &mut |packets| shed.store(packets, Ordering::Relaxed));
        network.end();
        ended
    };
    let (keeping, derived) = (args.keeping.options(Frames::schema())?, args.derived.options()?);
    let (ended, kept) = into_folder(&args.log, &keeping, &derived, Box::new(note), put).map_err(recording_error)?;
    let counted = live.counted();
    let notes = live.notes(counted, Some(&kept));
    let to = kept.recorded.path.display().to_string();
    let missing = kept.recorded.unwritten.as_ref().map_or(0, |unwritten| unwritten.packets);
    print(false, |_| Ok(()), |out| live.write_summary(&to, missing, &notes, out))?;
    let refused = refused.lock().unwrap_or_else(PoisonError::into_inner).take();
    match refused {
        Some(why) => Err(anyhow!("{why}")),
        None => Ok(Outcome::from_damage(ended?.or_else(|| kept.recorded.damage()))),
    }
}

/// The thread that serves the coordinator.
struct Network {
    thread: JoinHandle<()>,
    over: Arc<Notify>,
    served: Served,
}

impl Network {
    /// Serves it until [`end`](Self::end). If it refuses this host, says why in `refused` and stops the capture.
    fn start(
        served: Served,
        connection: AgentConnection,
        stop: Stop,
        refused: Arc<Mutex<Option<String>>>,
    ) -> std::io::Result<Self> {
        let over = Arc::new(Notify::new());
        let (ends, serving) = (Arc::clone(&over), served.clone());
        let runtime = runtime()?;
        let serve = move || {
            let report = |event: AgentEvent| note(&described(&event, &connection.coordinator));
            runtime.block_on(async {
                tokio::select! {
                    ended = serving.serve(&connection, &report) => {
                        let Err(why) = ended;
                        refused.lock().unwrap_or_else(PoisonError::into_inner).replace(why.to_string());
                        stop.request();
                    }
                    () = ends.notified() => {}
                }
            });
        };
        let thread = thread::Builder::new().name("coordinator".to_owned()).spawn(serve)?;
        Ok(Self { thread, over, served })
    }

    /// Ends the thread; nothing of the folder is in use afterwards.
    fn end(self) {
        self.served.end();
        self.over.notify_one();
        // If it panicked, the panic was printed then.
        let _ = self.thread.join();
    }
}

/// What happened, as a note.
fn described(event: &AgentEvent, coordinator: &str) -> String {
    match event {
        AgentEvent::Attached => format!("attached to the coordinator at {coordinator}"),
        AgentEvent::Detached { why, pause } => format!("{why}; the next try is in {pause}, and recording goes on"),
        AgentEvent::Renewed => "the certificate was renewed".to_owned(),
        AgentEvent::NotRenewed(why) => format!("the certificate was not renewed, and the old one stays: {why}"),
    }
}
