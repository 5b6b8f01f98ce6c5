//! A process that records what a queue does to packets, as a host of a fleet.

use super::{Access, Network, Refused};
use crate::args::{OptionalAccess, Queued};
use anyhow::{Context, Result};
use queuescope_fleet::agent::{LeftOutReasons, Served};
use queuescope_ingest::Stop;
use queuescope_recording::QueuedLog;
use queuescope_report::model::Skipped;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The connection to a coordinator, if there is one.
pub struct QueueHost {
    network: Option<Network>,
    refused: Refused,
    losses: HostLosses,
}

/// What a host did not record. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct HostLosses {
    shed: Arc<AtomicU64>,
    left_out: LeftOutReasons,
}

impl HostLosses {
    /// What was left out so far by reason, and the number of packets that should not have been.
    pub fn set(&self, left_out: &[Skipped], shed: u64) {
        self.left_out.set(left_out.iter().cloned());
        self.shed.fetch_max(shed, Ordering::Relaxed);
    }
}

impl QueueHost {
    /// Answers the coordinator about the folder of `--log`, if credentials are given. `source` names the queue for people.
    ///
    /// # Errors
    /// Fails without usable credentials, or if the system starts no threads.
    pub fn begin(
        access: &OptionalAccess,
        queued: &Queued,
        log: Option<&QueuedLog>,
        source: String,
        stop: &Stop,
    ) -> Result<Self> {
        let (refused, losses) = (Refused::default(), HostLosses::default());
        let (Some(access), Some(log), Some(folder)) = (access.given(), log, &queued.log) else {
            return Ok(Self { network: None, refused, losses });
        };
        let access = Access::open(&access)?;
        let served = Served::new(log.recorder(), folder.clone(), source, Arc::clone(&losses.shed));
        let served = served.leaving_out(losses.left_out.clone());
        let network = Network::start(served, access, stop.clone(), refused.clone()).context("cannot start threads")?;
        Ok(Self { network: Some(network), refused, losses })
    }

    /// Where the source says what it did not record.
    pub fn losses(&self) -> HostLosses {
        self.losses.clone()
    }

    /// Ends the connection; nothing of the folder is in use afterwards.
    pub fn end(&mut self) {
        if let Some(network) = self.network.take() {
            network.end();
        }
    }

    /// # Errors
    /// Fails if the coordinator refused this host.
    pub fn check(&self) -> Result<()> {
        self.refused.check()
    }
}
