//! A process that records, as a host of a fleet.

use super::{Access, runtime};
use crate::terminal::note;
use anyhow::{Result, anyhow};
use queuescope_fleet::agent::{AgentConnection, AgentEvent, Served};
use queuescope_ingest::Stop;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use tokio::sync::Notify;

/// The thread that serves the coordinator.
pub struct Network {
    thread: JoinHandle<()>,
    over: Arc<Notify>,
    served: Served,
}

impl Network {
    /// Serves it until [`end`](Self::end). If it refuses this host, says why in `refused` and requests a stop.
    ///
    /// # Errors
    /// Fails if the system starts no threads.
    pub fn start(served: Served, access: Access, stop: Stop, refused: Refused) -> std::io::Result<Self> {
        let Access { coordinator, credentials, folder } = access;
        let connection = AgentConnection { coordinator, credentials, folder };
        let over = Arc::new(Notify::new());
        let (ends, serving) = (Arc::clone(&over), served.clone());
        let runtime = runtime()?;
        let serve = move || {
            let report = |event: AgentEvent| note(&described(&event, &connection.coordinator));
            runtime.block_on(async {
                tokio::select! {
                    ended = serving.serve(&connection, &report) => {
                        let Err(why) = ended;
                        refused.0.lock().unwrap_or_else(PoisonError::into_inner).replace(why.to_string());
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
    pub fn end(self) {
        self.served.end();
        self.over.notify_one();
        // If it panicked, the panic was printed then.
        let _ = self.thread.join();
    }
}

/// Why the coordinator refused this host, if it did.
#[derive(Debug, Clone, Default)]
pub struct Refused(Arc<Mutex<Option<String>>>);

impl Refused {
    /// # Errors
    /// Fails if it refused it.
    pub fn check(&self) -> Result<()> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(why) => Err(anyhow!("{why}")),
            None => Ok(()),
        }
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
