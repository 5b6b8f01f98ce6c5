//! Who hears of a queue while it is watched.

use crate::error::WatchError;
use crate::unwritten::Unwritten;
use queuescope_analysis::Watcher;
use queuescope_live::ProbeError;
use queuescope_report::model::{Acting, Burst, Report};
use std::net::SocketAddr;

/// Hears what happens while an interface is watched, where nothing is drawn. `W` watches its packets.
pub trait Reporter<W: Watcher> {
    /// What can go wrong, which ends it.
    type Error: From<WatchError> + From<ProbeError> + From<W::Error>;

    /// It begins: which interface, and how it is watched.
    ///
    /// # Errors
    /// Which end it.
    fn begins(&mut self, _report: &Report) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Bursts have ended.
    ///
    /// # Errors
    /// Which end it.
    fn bursts(&mut self, bursts: &[Burst]) -> Result<(), Self::Error>;

    /// What is done to flows has changed.
    ///
    /// # Errors
    /// Which end it.
    fn acting(&mut self, _acting: &Acting) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Metrics are served at this address.
    fn serves(&mut self, _at: SocketAddr) {}

    /// Something is remarkable as it begins.
    fn note(&mut self, _text: &str) {}

    /// Something has stopped, and the rest goes on.
    fn stopped(&mut self, _text: &str) {}

    /// What could not be written so far: by the watcher, and by this.
    fn unwritten(&mut self, _watcher: &mut W) -> Vec<Unwritten> {
        Vec::new()
    }

    /// Whether nobody hears this any more.
    fn is_unheard(&self) -> bool {
        false
    }
}
