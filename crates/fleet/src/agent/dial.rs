//! Keeps a stream to the coordinator open, and the agent's certificate valid.

use super::session::SessionError;
use super::{Backoff, Served};
use crate::clock;
use crate::identity::{CurrentCredentials, DefaultTimeProvider, IdentityError, PendingKey, client_config};
use crate::protocol::fleet_client::FleetClient;
use crate::protocol::{FromAgent, RenewRequest, from_agent};
use crate::transport::{ConnectError, Link, connect};
use queuescope_wire::Nanos;
use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// Messages to the coordinator that wait to be sent.
const WAITING: usize = 256;
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
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The coordinator refuses this agent, and will refuse it again.
    #[error("the coordinator refuses this host: {0}")]
    Refused(String),
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
    /// Serves a coordinator until this future is dropped, or the coordinator refuses this agent. `report` gets what happens.
    ///
    /// # Errors
    /// Fails if the coordinator refuses this agent for good: it is revoked, its certificate has expired, or its version is another.
    pub async fn serve(
        &self,
        connection: &AgentConnection,
        report: &(dyn Fn(AgentEvent) + Sync),
    ) -> Result<Infallible, AgentError> {
        let tls = client_config(&connection.credentials, Arc::new(DefaultTimeProvider))?;
        let (mut backoff, random) = (Backoff::default(), RandomState::new());
        let mut tries = 0u64;
        loop {
            let connected = connect(&connection.coordinator, Arc::clone(&tls)).await;
            let why = match connected {
                Err(error) => match Ended::of_connection(&error) {
                    Ended::Refused(why) => return Err(AgentError::Refused(why)),
                    Ended::Broken(why) => why,
                },
                Ok(link) => {
                    let renewing = keep_valid(connection, link.channel.clone(), report);
                    let attached = self.attached(&link, || {
                        backoff.reset();
                        report(AgentEvent::Attached);
                    });
                    let ended = tokio::select! {
                        ended = attached => ended,
                        // It ends only with the stream.
                        never = renewing => match never {},
                    };
                    match ended {
                        Ended::Refused(why) => return Err(AgentError::Refused(why)),
                        Ended::Broken(why) => why,
                    }
                }
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
        let come = match FleetClient::new(link.channel.clone()).attach(ReceiverStream::new(messages)).await {
            Ok(come) => come.into_inner(),
            Err(status) => return Ended::of(&status, link),
        };
        match self.session(come, go, welcomed).await {
            error @ SessionError::Version { .. } => Ended::Refused(error.to_string()),
            error => Ended::Broken(error.to_string()),
        }
    }
}

/// How a stream ended.
enum Ended {
    Refused(String),
    Broken(String),
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
    channel: Channel,
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
        match renew(&connection.credentials, &connection.folder, channel.clone()).await {
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

/// Gets a new certificate for a new key, and keeps it.
async fn renew(credentials: &CurrentCredentials, folder: &Path, channel: Channel) -> Result<(), String> {
    let pending = PendingKey::generate().map_err(|error| error.with_causes())?;
    let request = RenewRequest { signing_request: pending.request().to_owned() };
    let answer = FleetClient::new(channel).renew(request).await.map_err(|status| status.message().to_owned())?;
    let certificate = answer.into_inner().certificate;
    let now = clock::seconds();
    credentials.renew(folder, pending, &certificate, now).map(drop).map_err(|error| error.with_causes())
}
