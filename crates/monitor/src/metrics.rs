//! Metrics for a monitoring system: the counters of a queue, which Prometheus scrapes.

mod families;
mod http;
mod registry;

pub use families::{MetricFamily, MetricsServer, metrics_text};

use super::acts::{Acts, Counts};
use crate::error::MetricsError;
use crate::listen::Listen;
use crate::p4air::P4airStatus;
use queuescope_ingest::notes::noted;
use queuescope_live::{Acted, Counters, Slice};
use queuescope_report::model::{Burst, Skipped};
use queuescope_wire::{Backlog, ByteCount, Nanos};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// An HTTP server for metrics, in a thread beside the one that watches the queue.
pub struct Metrics {
    shown: Arc<Mutex<QueueState>>,
    /// Requests that should have been answered and were not.
    failed: Arc<AtomicU64>,
    server: JoinHandle<()>,
}

/// The values of the metrics. All cover the time since the start, except those whose names say "last".
#[derive(Debug, Clone, Default)]
struct QueueState {
    tau: Nanos,
    alpha: f64,
    counters: Counters,
    acted: Acted,
    /// Whether acting changes packets.
    is_real: bool,
    acting: Counts,
    /// P4air, if it runs.
    p4air: Option<P4airStatus>,
    /// Over the last second: the longest sojourn time, and the largest backlog.
    longest: Nanos,
    deepest: Backlog,
    /// The number of bursts that ended, and their total duration.
    bursts: u64,
    length: Nanos,
    /// The longest sojourn time of the last burst.
    peak: Nanos,
}

const FAILED: &str = "requests for metrics that were not answered: there was no room for another connection or thread, or queuescope \
                      has a fault";
const STOPPED: &str =
    "the thread that serves metrics has stopped because of a fault in queuescope; requests are no longer answered";

/// How far back "the last second" reaches.
const RECENT: Nanos = Nanos(1_000_000_000);

impl Metrics {
    /// Serves metrics at an address; returns the server and the address with its actual port.
    ///
    /// # Errors
    /// Fails if the address cannot be bound or the thread cannot start.
    pub fn serve(at: &Listen, interface: &str, tau: Nanos, alpha: f64) -> Result<(Self, SocketAddr), MetricsError> {
        let listener = TcpListener::bind(at.addresses());
        let listener = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = listener.map_err(|why| MetricsError::Listen { at: at.to_string(), why })?;
        let shown = QueueState { tau, alpha, ..QueueState::default() };
        let shown = Arc::new(Mutex::new(shown));
        let registry = Arc::new(registry::registry(Arc::clone(&shown), interface));
        let failed = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&failed);
        // The thread ends with the process.
        let spawned = thread::Builder::new().name("metrics".to_owned());
        let spawned = spawned.spawn(move || http::serve(&listener, &registry, &counted));
        Ok((Self { shown, failed, server: spawned.map_err(MetricsError::Thread)? }, address))
    }

    /// Notes on requests that were not answered.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        let failed = noted("metrics_failed", self.failed.load(Ordering::Relaxed), FAILED);
        failed.into_iter().chain(self.stopped())
    }

    /// A note if the server has stopped.
    pub fn stopped(&self) -> Option<Skipped> {
        noted("metrics_stopped", self.server.is_finished().into(), STOPPED)
    }

    /// Updates the metrics at `now`.
    pub fn look(&self, counters: Counters, acts: &Acts, slices: &[Slice], now: Nanos) {
        let recent = || slices.iter().filter(|slice| slice.start.saturating_add(RECENT) >= now);
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.counters = counters;
        shown.acted = acts.acted();
        (shown.is_real, shown.acting) = (acts.is_real(), acts.counts());
        shown.longest = recent().map(|slice| slice.delay_max).max().unwrap_or_default();
        shown.deepest = Backlog {
            packets: recent().map(|slice| u64::from(slice.length_max)).max().unwrap_or(0),
            bytes: ByteCount(recent().map(|slice| u64::from(slice.backlog_max)).max().unwrap_or(0)),
        };
    }

    /// Updates the metrics of P4air.
    pub fn p4air(&self, status: &P4airStatus) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        // No metric is of a single flow.
        shown.p4air = Some(P4airStatus { flows: Vec::new(), ..status.clone() });
    }

    /// Counts a burst that has ended.
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
        let metrics = metrics(thread::spawn(move || waits.recv().expect("the server panics here")));
        assert_eq!(reasons(&metrics), std::slice::from_ref(&failed));
        drop(go_on);
        let since = queuescope_live::now();
        while !metrics.server.is_finished() {
            assert!(queuescope_live::now() < since.saturating_add(Nanos(60_000_000_000)), "the server never ends");
            thread::yield_now();
        }
        assert_eq!(reasons(&metrics), [failed, ("metrics_stopped".to_owned(), 1)]);
    }
}
