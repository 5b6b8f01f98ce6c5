//! Keeps a stream to the coordinator open, and the agent's certificate valid.

use super::session::SessionError;
use super::{Backoff, Served};
use crate::clock;
use crate::identity::{CurrentCredentials, DefaultTimeProvider, IdentityError, PendingKey, client_config};
use crate::protocol::fleet_client::FleetClient;
use crate::protocol::{FromAgent, RenewRequest, from_agent};
use crate::transport::{ConnectError, Link, connect};
use queuescope_wire::Nanos;
use rustls::ClientConfig;
use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::BuildHasher;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

/// The most bytes of a message of the coordinator: the definitions of all programs.
const MESSAGE: usize = 16 << 20;
/// Messages to the coordinator that wait to be sent.
const WAITING: usize = 256;
/// A stream that lasts for so long was a success: the next pause is short.
const STEADY: Nanos = Nanos(10_000_000_000);
/// The longest pause between two looks at the certificate's time: clocks are set, and machines sleep.
const LOOK: u64 = 600;

/// What happens to an agent, for its notes.
#[derive(Debug)]
pub enum AgentEvent {
    /// The coordinator accepted it.
    Attached,
    /// There is no stream, and it is tried again after a pause.
    Detached {
        /// Why.
        why: String,
        /// The pause.
        pause: Nanos,
    },
    /// It has a new certificate.
    Renewed,
    /// It could not get a new certificate; the old one stays.
    NotRenewed(String),
}

/// Why an agent ended.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// TLS cannot be configured.
    #[error("{}", .0.with_causes())]
    Identity(IdentityError),
    /// The coordinator refuses this agent, and will refuse it again.
    #[error("the coordinator refuses this host: {0}")]
    Refused(String),
}

impl From<IdentityError> for AgentError {
    /// Its text has the causes, so it must not be a source as well.
    fn from(error: IdentityError) -> Self {
        Self::Identity(error)
    }
}

/// Where an agent connects to, and as what.
#[derive(Debug)]
pub struct AgentConnection {
    /// `HOST:PORT` of the coordinator.
    pub coordinator: String,
    /// Its credentials, which are renewed while it runs.
    pub credentials: CurrentCredentials,
    /// The folder that keeps them.
    pub folder: PathBuf,
}

impl Served {
    /// Serves a coordinator until this future is dropped. `report` gets what happens.
    ///
    /// # Errors
    /// Fails if the coordinator refuses this agent before it has accepted it once: its certificate is revoked or has expired, or its version is
    /// another. Later, a refusal is reported and tried again: a clock may be wrong, and recording should go on.
    pub async fn serve(
        &self,
        connection: &AgentConnection,
        report: &(dyn Fn(AgentEvent) + Sync),
    ) -> Result<Infallible, AgentError> {
        let tls = client_config(&connection.credentials, Arc::new(DefaultTimeProvider))?;
        let (mut backoff, random) = (Backoff::default(), RandomState::new());
        let (mut tries, mut was_accepted, mut is_again) = (0u64, false, false);
        loop {
            let begun = clock::steady();
            let connected = connect(&connection.coordinator, Arc::clone(&tls)).await;
            let why = match connected {
                Err(error) => Ended::of_connection(&error),
                Ok(link) => {
                    let renewing = keep_valid(connection, &tls, report);
                    let attached = self.attached(&link, || {
                        was_accepted = true;
                        if !std::mem::take(&mut is_again) {
                            report(AgentEvent::Attached);
                        }
                    });
                    tokio::select! {
                        ended = attached => ended,
                        // It ends only with the stream.
                        never = renewing => match never {},
                    }
                }
            };
            // A stream that ends soon after its beginning is no success.
            if clock::steady().saturating_sub(begun) > STEADY {
                backoff.reset();
            }
            let why = match why {
                Ended::Refused(why) if !was_accepted => return Err(AgentError::Refused(why)),
                Ended::Again => {
                    is_again = true;
                    continue;
                }
                Ended::Refused(why) | Ended::Broken(why) => why,
            };
            tries += 1;
            let pause = backoff.pause(random.hash_one(tries));
            report(AgentEvent::Detached { why, pause });
            tokio::time::sleep(Duration::from_nanos(pause.0)).await;
        }
    }

    /// One stream, from its first message to its end.
    async fn attached(&self, link: &Link, welcomed: impl FnOnce()) -> Ended {
        let (go, messages) = mpsc::channel(WAITING);
        let hello = FromAgent { message: Some(from_agent::Message::Hello(self.hello())) };
        // There is room for the first.
        let _ = go.try_send(hello);
        let mut calls = FleetClient::new(link.channel.clone()).max_decoding_message_size(MESSAGE);
        let come = match calls.attach(ReceiverStream::new(messages)).await {
            Ok(come) => come.into_inner().map(|message| message.map_err(|status| status.message().to_owned())),
            Err(status) => return Ended::of(&status, link),
        };
        match self.session(come, go, welcomed).await {
            error @ SessionError::Version { .. } => Ended::Refused(error.to_string()),
            SessionError::FirstAlert { .. } => Ended::Again,
            error => Ended::Broken(error.to_string()),
        }
    }
}

/// How a stream ended.
enum Ended {
    Refused(String),
    Broken(String),
    /// Nothing is wrong, and the next begins at once.
    Again,
}

impl Ended {
    fn of(status: &Status, link: &Link) -> Self {
        match status.code() {
            Code::PermissionDenied | Code::Unauthenticated | Code::FailedPrecondition | Code::Unimplemented => {
                Self::Refused(status.message().to_owned())
            }
            _ => Self::of_connection(&link.failed(status)),
        }
    }

    fn of_connection(error: &ConnectError) -> Self {
        match error {
            ConnectError::Address { .. } | ConnectError::Refused { .. } => Self::Refused(error.to_string()),
            ConnectError::Failed { .. } => Self::Broken(error.to_string()),
        }
    }
}

/// Renews the certificate when it is time, for as long as a connection is open.
async fn keep_valid(
    connection: &AgentConnection,
    tls: &Arc<ClientConfig>,
    report: &(dyn Fn(AgentEvent) + Sync),
) -> Infallible {
    let mut backoff = Backoff::default();
    loop {
        let now = clock::seconds();
        let left = connection.credentials.get().renew_at().saturating_sub(now);
        if left > 0 {
            tokio::time::sleep(Duration::from_secs(left.min(LOOK))).await;
            continue;
        }
        match renew(connection, tls).await {
            Ok(()) => {
                backoff.reset();
                report(AgentEvent::Renewed);
            }
            Err(why) => {
                report(AgentEvent::NotRenewed(why));
                tokio::time::sleep(Duration::from_nanos(backoff.pause(0).0)).await;
            }
        }
    }
}

/// Gets a new certificate for a new key, and keeps it. The connection is a new one: an older one shows the certificate of its time.
async fn renew(connection: &AgentConnection, tls: &Arc<ClientConfig>) -> Result<(), String> {
    let link = connect(&connection.coordinator, Arc::clone(tls)).await.map_err(|error| error.to_string())?;
    let pending = PendingKey::generate().map_err(|error| error.with_causes())?;
    let request = RenewRequest { signing_request: pending.request().to_owned() };
    let answer = FleetClient::new(link.channel).renew(request).await.map_err(|status| status.message().to_owned())?;
    let certificate = answer.into_inner().certificate;
    let renewed = connection.credentials.renew(&connection.folder, pending, &certificate, clock::seconds());
    renewed.map(drop).map_err(|error| error.with_causes())
}
