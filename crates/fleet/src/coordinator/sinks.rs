//! Sends alerts to other systems: files, webhooks, Prometheus Alertmanager, syslog.
//!
//! Each sink has a thread and a position of its own, so a sink that does not answer delays nothing else. The position is the number of the last
//! alert that is done with: the receiver took or refused it, it repeats one that was sent, or too many waited. It is saved after each attempt. So
//! each alert is sent at least once, in order; after a crash between sending and saving it is sent again.

mod address;
mod alertmanager;
mod delivery;
mod error;
#[cfg(test)]
mod examples;
mod http;
mod json;
mod lines;
mod options;
mod position;
mod repeats;
mod sender;
mod sockets;
mod syslog;
#[cfg(test)]
mod tests;
mod text;
mod worker;

pub use address::{HostPort, HttpUrl, SinkAddress, SinkAddressError};
pub use delivery::SinkStats;
pub use error::SinkError;
pub use http::retry_after;
pub use options::{SinkLimits, SinkOptions};
pub(super) use worker::SinkHost;
pub use worker::SinkReport;

use delivery::{Delivery, DeliveryParams};
use position::PositionFile;
use sender::{Sender, Trusted};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::watch;
use worker::Worker;

/// The most alerts and bytes of text that are sent together.
const BATCH: usize = 100;
const BATCH_BYTES: usize = 256 << 10;
/// Alerts among which repeats are recognised.
const AMONG: u64 = 100_000;
/// Time for all sinks to end, which is more than each of them takes unless its system call does not return.
const LAST: Duration = Duration::from_secs(2);

/// What each sink did.
pub(super) type SinkReports = Vec<Arc<Mutex<SinkReport>>>;

/// Sinks whose files and options were checked.
#[derive(Debug)]
pub struct PreparedSinks {
    options: SinkOptions,
    senders: Vec<Sender>,
}

/// Sinks that run, until this is dropped or [stopped](Self::stop).
#[derive(Debug)]
pub struct Sinks {
    stop: watch::Sender<bool>,
    /// Closed when the last thread has ended.
    ended: Receiver<()>,
    /// What each did.
    reports: SinkReports,
}

impl PreparedSinks {
    /// Looks for mistakes that need no connection, and opens files.
    ///
    /// # Errors
    /// Fails if a sink is given twice, if a file cannot be used, or if a token would go to several hosts or be readable on its way.
    pub fn new(options: SinkOptions) -> Result<Self, SinkError> {
        let mut seen = BTreeSet::new();
        if let Some(twice) = options.sinks.iter().find(|sink| !seen.insert(sink.to_string())) {
            return Err(SinkError::Twice(twice.to_string()));
        }
        let mut urls = options.sinks.iter().filter_map(SinkAddress::url);
        if options.authority.is_some() && !urls.clone().any(|url| url.is_secure) {
            return Err(SinkError::Unused("the authority", " over https"));
        }
        if options.token.is_some() {
            let first = urls.next().ok_or(SinkError::Unused("the token", ""))?;
            if let Some(other) = urls.find(|url| url.host != first.host) {
                return Err(SinkError::SharedToken(first.host.clone(), other.host.clone()));
            }
        }
        let mut trust = Trusted::default();
        let senders = options.sinks.iter().map(|sink| Sender::new(sink, &options, &mut trust));
        let senders = senders.collect::<Result<_, _>>()?;
        Ok(Self { options, senders })
    }

    /// The first of its files that is one of these.
    pub(super) fn among(&self, others: &[PathBuf]) -> Option<PathBuf> {
        let same = |path: &Path| path.canonicalize().is_ok_and(|path| others.contains(&path));
        self.options.sinks.iter().find_map(|sink| match sink {
            SinkAddress::File(path) if same(path) => Some(path.clone()),
            _ => None,
        })
    }

    /// Sends the alerts of `host`, each sink from its position in `folder` on. `fingerprint` is that of the coordinator's authority.
    ///
    /// # Errors
    /// Fails if a position cannot be read or written, or if a thread cannot be started.
    pub(super) fn start(self, host: &Arc<dyn SinkHost>, folder: &Path, fingerprint: &str) -> Result<Sinks, SinkError> {
        let Self { options, senders } = self;
        let stop = watch::Sender::new(false);
        let mut workers = Vec::new();
        for (address, sender) in options.sinks.iter().zip(senders) {
            let sink = address.to_string();
            let file = PositionFile::new(folder, address)?;
            let params = DeliveryParams {
                once: options.once,
                among: AMONG,
                backlog: options.backlog.max(1),
                batch: BATCH,
                batch_bytes: BATCH_BYTES,
                backoff: options.backoff.clone(),
            };
            let mut delivery = Delivery::open(file.read()?.as_ref(), host.alerts(), params);
            // A new sink begins here, even if this process ends before the first alert.
            if let Some(position) = delivery.unsaved(&sink, host.alerts()) {
                file.write(&position)?;
                delivery.saved();
            }
            let report = SinkReport {
                sink: sink.clone(),
                stats: delivery.stats(),
                position: delivery.position(),
                is_failing: false,
            };
            workers.push(Worker {
                sink,
                delivery,
                sender,
                file,
                host: Arc::clone(host),
                fingerprint: fingerprint.into(),
                report: Arc::new(Mutex::new(report)),
                stop: stop.subscribe(),
            });
        }
        let reports = workers.iter().map(|worker| Arc::clone(&worker.report)).collect();
        let (alive, ended) = mpsc::channel();
        for worker in workers {
            let alive = alive.clone();
            let runtime = Builder::new_current_thread().enable_all().build().map_err(SinkError::Thread)?;
            let run = move || {
                runtime.block_on(worker.run());
                // A name that is looked up must not keep the thread.
                runtime.shutdown_background();
                drop(alive);
            };
            thread::Builder::new().name("sink".to_owned()).spawn(run).map_err(SinkError::Thread)?;
        }
        Ok(Sinks { stop, ended, reports })
    }
}

impl Sinks {
    /// What each did, as it goes on.
    pub(super) fn reports(&self) -> SinkReports {
        self.reports.clone()
    }

    /// Ends all sinks. An attempt that is being made gets a second to end, and is otherwise made again after the next start. Returns whether
    /// all ended in time; the thread of one that did not, because a system call does not return, ends with the process.
    pub fn stop(self) -> bool {
        self.stop.send_replace(true);
        matches!(self.ended.recv_timeout(LAST), Err(mpsc::RecvTimeoutError::Disconnected))
    }
}

impl Drop for Sinks {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}
