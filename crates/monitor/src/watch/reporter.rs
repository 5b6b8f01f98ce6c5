//! The receiver of events while a queue is watched.

use crate::error::WatchError;
use crate::p4air::P4airStatus;
use crate::unwritten::Unwritten;
use queuescope_analysis::Watcher;
use queuescope_live::ProbeError;
use queuescope_report::model::{Acting, Burst, Report, Skipped};
use queuescope_wire::Nanos;
use std::net::SocketAddr;

/// Receives the events of a watched interface while no view is drawn. `W` watches its packets.
pub trait Reporter<W: Watcher> {
    /// The error that ends watching.
    type Error: From<WatchError> + From<ProbeError> + From<W::Error>;

    /// Called at the start: the report says which interface is watched, and how.
    ///
    /// # Errors
    /// An error ends watching.
    fn begins(&mut self, _report: &Report) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Called with bursts that have ended.
    ///
    /// # Errors
    /// An error ends watching.
    fn bursts(&mut self, bursts: &[Burst]) -> Result<(), Self::Error>;

    /// Called when acting on flows changes.
    ///
    /// # Errors
    /// An error ends watching.
    fn acting(&mut self, _acting: &Acting) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Called with the state of P4air when flows have moved to other groups or a queue has, when it begins or stops acting, and at the end. `at` is the
    /// time since the beginning of the run.
    ///
    /// # Errors
    /// An error ends watching.
    fn p4air(&mut self, _status: &P4airStatus, _at: Nanos) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Called with the address at which metrics are served.
    fn serves(&mut self, _at: SocketAddr) {}

    /// Called at the start with what the user should know.
    fn note(&mut self, _text: &str) {}

    /// Called when a part has stopped; everything else continues.
    fn stopped(&mut self, _text: &str) {}

    /// Called now and then with what is missing from the packets that the watcher got since the beginning, by reason, at a time since the Unix epoch; and how many of these
    /// should not be missing. What is new is missing since the last call, or up to `slack` before it.
    fn left_out(&mut self, _watcher: &mut W, _at: Nanos, _slack: Nanos, _left_out: &[Skipped], _shed: u64) {}

    /// What the watcher and the reporter could not write so far.
    fn unwritten(&mut self, _watcher: &mut W) -> Vec<Unwritten> {
        Vec::new()
    }

    /// Whether the output has no reader any more, which ends watching.
    fn is_unheard(&self) -> bool {
        false
    }
}
