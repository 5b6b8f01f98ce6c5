//! Alerts as they come, also while the coordinator starts again.

use super::{Client, ClientError};
use crate::agent::Backoff;
use crate::clock;
use crate::identity::CurrentCredentials;
use crate::protocol::Alert;
use crate::transport::ConnectError;
use queuescope_wire::Nanos;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;
use tonic::{Code, Status, Streaming};

/// A stream that lasts for so long was a success: the next pause is short.
const STEADY: Nanos = Nanos(10_000_000_000);

/// The alerts of a coordinator from a number on, without an end: when the connection breaks, it connects again and goes on behind the last alert. So each
/// alert that the coordinator keeps comes once.
#[derive(Debug)]
pub struct AlertFollower {
    coordinator: String,
    credentials: CurrentCredentials,
    /// The number of the next alert.
    next: u64,
    stream: Option<Streaming<Alert>>,
    was_connected: bool,
    /// When the stream was opened, by the steady clock.
    since: Nanos,
    /// The pause before the next try, if there is one.
    pause: Option<Nanos>,
    backoff: Backoff,
    tries: u64,
    random: RandomState,
}

/// What came.
#[derive(Debug)]
pub enum Followed {
    /// The next alert.
    Alert(Box<Alert>),
    /// The connection broke, or could not be opened again.
    Broken {
        /// Why.
        why: String,
        /// The pause before the next try, which the next call waits for.
        pause: Nanos,
    },
    /// It is connected again.
    Connected,
}

impl AlertFollower {
    /// Follows the coordinator at `HOST:PORT` from the alert `from` on; 1 is the oldest. Nothing is opened yet.
    pub fn new(coordinator: &str, credentials: CurrentCredentials, from: u64) -> Self {
        Self {
            coordinator: coordinator.to_owned(),
            credentials,
            next: from.max(1),
            stream: None,
            was_connected: false,
            since: Nanos::ZERO,
            pause: None,
            backoff: Backoff::default(),
            tries: 0,
            random: RandomState::new(),
        }
    }

    /// Waits for what comes next. If the call is dropped before it is ready, no alert is lost.
    ///
    /// # Errors
    /// Fails if the first connection cannot be opened, and if the coordinator refuses this side: its certificate was revoked, for example.
    pub async fn next(&mut self) -> Result<Followed, ClientError> {
        if let Some(pause) = self.pause {
            tokio::time::sleep(Duration::from_nanos(pause.0)).await;
            self.pause = None;
        }
        let Some(stream) = &mut self.stream else {
            return match self.connected().await {
                Ok(stream) => {
                    self.stream = Some(stream);
                    (self.was_connected, self.since) = (true, clock::steady());
                    Ok(Followed::Connected)
                }
                Err(error) if self.was_connected && is_passing(&error) => Ok(self.broken(error.to_string())),
                Err(error) => Err(error),
            };
        };
        match stream.message().await {
            Ok(Some(alert)) => {
                self.backoff.reset();
                self.next = alert.number.saturating_add(1);
                Ok(Followed::Alert(Box::new(alert)))
            }
            Ok(None) => Ok(self.broken("the coordinator ended the connection".to_owned())),
            Err(status) if is_passing_status(&status) => {
                Ok(self.broken(format!("the connection to the coordinator broke: {}", status.message())))
            }
            Err(status) => Err(ClientError::Refused(Box::new(status))),
        }
    }

    async fn connected(&self) -> Result<Streaming<Alert>, ClientError> {
        let mut client = Client::connect(&self.coordinator, &self.credentials).await?;
        client.alerts(self.next, true).await
    }

    fn broken(&mut self, why: String) -> Followed {
        // A stream that lasted was a success, also without alerts.
        if self.stream.take().is_some() && clock::steady().saturating_sub(self.since) > STEADY {
            self.backoff.reset();
        }
        self.tries += 1;
        let pause = self.backoff.pause(self.random.hash_one(self.tries));
        self.pause = Some(pause);
        Followed::Broken { why, pause }
    }
}

/// Whether another try may succeed.
fn is_passing(error: &ClientError) -> bool {
    match error {
        ClientError::Connect(ConnectError::Failed { .. }) => true,
        ClientError::Connect(_) | ClientError::Identity(_) => false,
        ClientError::Refused(status) => is_passing_status(status),
    }
}

fn is_passing_status(status: &Status) -> bool {
    !matches!(
        status.code(),
        Code::PermissionDenied
            | Code::Unauthenticated
            | Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::Unimplemented
    )
}
