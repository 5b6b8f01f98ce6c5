//! What is sent where, and how.

use super::address::SinkAddress;
use crate::agent::Backoff;
use queuescope_wire::Nanos;
use std::path::PathBuf;
use std::time::Duration;

/// What is sent where.
#[derive(Debug, Clone)]
pub struct SinkOptions {
    /// The sinks, each once.
    pub sinks: Vec<SinkAddress>,
    /// Alerts of the same member, trigger and detail are sent once in this time, by their own times. 0 sends all.
    pub once: Nanos,
    /// The most alerts that wait for a sink, at least 1: when there are more, the oldest are left out.
    pub backlog: u64,
    /// A file with a token, for the field `Authorization: Bearer` of requests to webhooks and Alertmanager, which must then be on one host.
    pub token: Option<PathBuf>,
    /// A file with certificates in PEM of authorities that servers may have certificates of, beside those of this machine.
    pub authority: Option<PathBuf>,
    /// The longest times of an attempt.
    pub limits: SinkLimits,
    /// Pauses after failures.
    pub backoff: Backoff,
}

/// The longest times of an attempt to send.
#[derive(Debug, Clone, Copy)]
pub struct SinkLimits {
    /// To connect, with the name's address and TLS.
    pub connect: Duration,
    /// Everything, to the end of the answer.
    pub whole: Duration,
}

impl Default for SinkLimits {
    /// 10 s and 30 s.
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), whole: Duration::from_secs(30) }
    }
}

impl Default for SinkOptions {
    /// No sinks; equal alerts once a minute; 10 000 alerts may wait.
    fn default() -> Self {
        Self {
            sinks: Vec::new(),
            once: Nanos(60_000_000_000),
            backlog: 10_000,
            token: None,
            authority: None,
            limits: SinkLimits::default(),
            backoff: Backoff::default(),
        }
    }
}
