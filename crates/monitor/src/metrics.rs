//! What a monitoring system asks for: the counters of a queue, as Prometheus reads them.

mod http;
mod told;

use super::acts::{Acts, Counts};
use crate::error::MetricsError;
use crate::listen::Listen;
use queuescope_ingest::notes::noted;
use queuescope_live::{Acted, Counters, Slice};
use queuescope_report::model::{Burst, Skipped};
use queuescope_wire::{Backlog, ByteCount, Nanos};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Who asks is answered from here, beside what watches the queue.
pub struct Metrics {
    shown: Arc<Mutex<Shown>>,
    /// Times that somebody was not answered who should have been.
    failed: Arc<AtomicU64>,
    server: JoinHandle<()>,
}

/// What is known of the queue, all since the beginning but for what a name says is of late.
#[derive(Debug, Clone, Default)]
struct Shown {
    tau: Nanos,
    alpha: f64,
    counters: Counters,
    acted: Acted,
    /// Whether flows are acted on for real, and what happened to that.
    is_real: bool,
    acting: Counts,
    /// Of the last second: the longest wait, and the most in the queue.
    longest: Nanos,
    deepest: Backlog,
    /// Bursts that ended, and how long they took.
    bursts: u64,
    length: Nanos,
    /// The longest wait of the last one.
    peak: Nanos,
}

const FAILED: &str = "times that who asked for metrics was not answered: there was no room for another connection or thread, or a fault \
                      of queuescope";
const STOPPED: &str =
    "the thread that answers who asks for metrics has stopped, by a fault of queuescope; nobody is answered since";

/// What counts as late.
const LATE: Nanos = Nanos(1_000_000_000);

impl Metrics {
    /// Answers who connects to an address; where that is comes with it.
    ///
    /// # Errors
    /// If nobody can listen there.
    pub fn serve(at: &Listen, interface: &str, tau: Nanos, alpha: f64) -> Result<(Self, SocketAddr), MetricsError> {
        let listener = TcpListener::bind(at.addresses());
        let listener = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = listener.map_err(|why| MetricsError::Listen { at: at.to_string(), why })?;
        let shown = Shown { tau, alpha, ..Shown::default() };
        let shown = Arc::new(Mutex::new(shown));
        let registry = Arc::new(told::registry(Arc::clone(&shown), interface));
        let failed = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&failed);
        // It ends with the command.
        let begun = thread::Builder::new().name("metrics".to_owned());
        let begun = begun.spawn(move || http::serve(&listener, &registry, &counted));
        Ok((Self { shown, failed, server: begun.map_err(MetricsError::Thread)? }, address))
    }

    /// What was remarkable.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        let failed = noted("metrics_failed", self.failed.load(Ordering::Relaxed), FAILED);
        failed.into_iter().chain(self.stopped())
    }

    /// That nobody is answered any more, if it is so.
    pub fn stopped(&self) -> Option<Skipped> {
        noted("metrics_stopped", self.server.is_finished().into(), STOPPED)
    }

    /// What the kernel has counted and summed up by `now`.
    pub fn look(&self, counters: Counters, acts: &Acts, slices: &[Slice], now: Nanos) {
        let late = || slices.iter().filter(|slice| slice.start.saturating_add(LATE) >= now);
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.counters = counters;
        shown.acted = acts.acted();
        (shown.is_real, shown.acting) = (acts.is_real(), acts.counts());
        shown.longest = late().map(|slice| slice.delay_max).max().unwrap_or_default();
        shown.deepest = Backlog {
            packets: late().map(|slice| u64::from(slice.length_max)).max().unwrap_or(0),
            bytes: ByteCount(late().map(|slice| u64::from(slice.backlog_max)).max().unwrap_or(0)),
        };
    }

    /// A burst has ended.
    pub fn burst(&self, burst: &Burst) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.bursts += 1;
        shown.length = shown.length.saturating_add(Nanos(burst.length_ns));
        shown.peak = Nanos(burst.peak_delay_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_stops_is_noted() {
        let metrics = |server| Metrics { shown: Arc::default(), failed: Arc::new(AtomicU64::new(2)), server };
        let reasons = |metrics: &Metrics| metrics.notes().map(|note| (note.reason, note.count)).collect::<Vec<_>>();
        let failed = ("metrics_failed".to_owned(), 2);
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        let metrics = metrics(thread::spawn(move || waits.recv().expect("as it answered")));
        assert_eq!(reasons(&metrics), std::slice::from_ref(&failed));
        drop(go_on);
        let since = queuescope_live::now();
        while !metrics.server.is_finished() {
            assert!(queuescope_live::now() < since.saturating_add(Nanos(60_000_000_000)), "it never ends");
            thread::yield_now();
        }
        assert_eq!(reasons(&metrics), [failed, ("metrics_stopped".to_owned(), 1)]);
    }
}
