//! The side of people and programs: what they ask of a coordinator.

mod follow;

pub use follow::{AlertFollower, Followed};

use crate::clock;
use crate::identity::{
    Credentials, CurrentCredentials, DefaultTimeProvider, Identity, IdentityError, PendingKey, Token, client_config,
    join_config,
};
use crate::protocol::fleet_client::FleetClient;
use crate::protocol::{
    ActionsRequest, ActionsResponse, AddProgramRequest, Alert, AlertsRequest, CheckRequest, CheckResponse, CutRequest,
    CutResponse, InviteRequest, JoinRequest, ListProgramsRequest, Member, MembersRequest, ProgramState, QueryRequest,
    QueryResponse, RemoveProgramRequest, RevokeRequest, RevokeResponse,
};
use crate::transport::{ConnectError, Link, connect};
use queuescope_wire::Nanos;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

/// The most bytes of an answer.
const ANSWER: usize = 1 << 30;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Something is wrong with a certificate or token.
    #[error("{}", .0.with_causes())]
    Identity(IdentityError),
    /// The coordinator refused it.
    #[error("{}", .0.message())]
    Refused(Box<Status>),
}

impl From<IdentityError> for ClientError {
    /// Its text has the causes, so it must not be a source as well.
    fn from(error: IdentityError) -> Self {
        Self::Identity(error)
    }
}

/// A connection to a coordinator.
#[derive(Debug, Clone)]
pub struct Client {
    calls: FleetClient<Channel>,
    link: Link,
}

/// Joins a fleet: exchanges a token for a certificate, and keeps it with its key in a folder. Returns the name and the role.
///
/// # Errors
/// Fails if the token is wrong or used, if the coordinator at this address is another, or if the folder cannot be written.
pub async fn join(coordinator: &str, token: &str, folder: &Path) -> Result<Identity, ClientError> {
    let expected = token.parse::<Token>().map_err(IdentityError::from)?.fingerprint();
    let link = connect(coordinator, join_config(expected, Arc::new(DefaultTimeProvider))?).await?;
    let pending = PendingKey::generate()?;
    let request = JoinRequest { token: token.to_owned(), signing_request: pending.request().to_owned() };
    let answer = FleetClient::new(link.channel.clone()).join(request).await;
    let answer = answer.map_err(|status| failed(&link, status))?.into_inner();
    let now = clock::seconds();
    let own = Credentials::accept_from(expected, pending, &answer.certificate, &answer.authority, now)?;
    own.save(folder)?;
    Ok(own.subject().member()?.clone())
}

impl Client {
    /// Connects to the coordinator at `HOST:PORT`.
    ///
    /// # Errors
    /// Fails if nobody answers there, or if one side does not accept the other's certificate.
    pub async fn connect(coordinator: &str, credentials: &CurrentCredentials) -> Result<Self, ClientError> {
        let tls = client_config(credentials, Arc::new(DefaultTimeProvider))?;
        let link = connect(coordinator, tls).await?;
        let calls = FleetClient::new(link.channel.clone()).max_decoding_message_size(ANSWER);
        Ok(Self { calls, link })
    }

    /// Whether the coordinator serves: its version and its protocol. Any role.
    ///
    /// # Errors
    /// Fails if the coordinator refuses it.
    pub async fn check(&mut self) -> Result<CheckResponse, ClientError> {
        Ok(self.calls.check(CheckRequest {}).await.map_err(|status| failed(&self.link, status))?.into_inner())
    }

    /// All members. Role: reader.
    ///
    /// # Errors
    /// Fails if the coordinator refuses it.
    pub async fn members(&mut self) -> Result<Vec<Member>, ClientError> {
        Ok(self
            .calls
            .members(MembersRequest {})
            .await
            .map_err(|status| failed(&self.link, status))?
            .into_inner()
            .members)
    }

    /// Makes a cut through the logs of these members, or of all if there are no names. Role: reader.
    ///
    /// # Errors
    /// Fails if the coordinator refuses it, or if another cut is being made.
    pub async fn cut(&mut self, members: &[String], within: Nanos) -> Result<CutResponse, ClientError> {
        let request = CutRequest { members: members.to_vec(), within: within.0 / 1_000, at: None };
        Ok(self.calls.cut(request).await.map_err(|status| failed(&self.link, status))?.into_inner())
    }

    /// The number of records of these members, or of all if there are no names, with a time or an earlier one, in nanoseconds since 1970 by the clock of each. Role: reader.
    ///
    /// # Errors
    /// Fails if the coordinator refuses it.
    pub async fn cut_at(&mut self, members: &[String], at: Nanos, within: Nanos) -> Result<CutResponse, ClientError> {
        let request = CutRequest { members: members.to_vec(), within: within.0 / 1_000, at: Some(at.0) };
        Ok(self.calls.cut(request).await.map_err(|status| failed(&self.link, status))?.into_inner())
    }

    /// Puts a question to members. Role: reader.
    ///
    /// # Errors
    /// Fails if the question is wrong, or if the coordinator refuses it.
    pub async fn query(&mut self, request: QueryRequest) -> Result<QueryResponse, ClientError> {
        Ok(self.calls.query(request).await.map_err(|status| failed(&self.link, status))?.into_inner())
    }

    /// The alerts from a number on, and with `follow` those that come. Role: reader.
    ///
    /// # Errors
    /// Fails if the coordinator refuses it.
    pub async fn alerts(&mut self, from: u64, follow: bool) -> Result<Streaming<Alert>, ClientError> {
        Ok(self
            .calls
            .alerts(AlertsRequest { from, follow })
            .await
            .map_err(|status| failed(&self.link, status))?
            .into_inner())
    }

    /// Adds a control program, or replaces the one of this name. Role: operator.
    ///
    /// # Errors
    /// Fails if the coordinator refuses it.
    pub async fn add_program(
        &mut self,
        name: &str,
        text: &str,
        values: BTreeMap<String, String>,
    ) -> Result<(), ClientError> {
        let values = values.into_iter().collect();
        let request = AddProgramRequest { name: name.to_owned(), text: text.to_owned(), values };
        self.calls.add_program(request).await.map_err(|status| failed(&self.link, status))?;
        Ok(())
    }

    /// Removes a control program. Returns whether there was one of this name. Role: operator.
    ///
    /// # Errors
    /// Fails if the coordinator refuses it.
    pub async fn remove_program(&mut self, name: &str) -> Result<bool, ClientError> {
        let request = RemoveProgramRequest { name: name.to_owned() };
        Ok(self.calls.remove_program(request).await.map_err(|status| failed(&self.link, status))?.into_inner().removed)
    }

    /// The control programs and their states. Role: reader.
    ///
    /// # Errors
    /// Fails if the coordinator refuses it.
    pub async fn programs(&mut self) -> Result<Vec<ProgramState>, ClientError> {
        let request = ListProgramsRequest {};
        Ok(self.calls.list_programs(request).await.map_err(|status| failed(&self.link, status))?.into_inner().programs)
    }

    /// The newest actions of control programs; `most` of 0 means all that are kept. Role: reader.
    ///
    /// # Errors
    /// Fails if the coordinator refuses it.
    pub async fn actions(&mut self, most: u64) -> Result<ActionsResponse, ClientError> {
        let request = ActionsRequest { most };
        Ok(self.calls.actions(request).await.map_err(|status| failed(&self.link, status))?.into_inner())
    }

    /// Makes a join token. Role: admin.
    ///
    /// # Errors
    /// Fails if the coordinator refuses it.
    pub async fn invite(&mut self, name: &str, role: &str, life: Nanos) -> Result<String, ClientError> {
        let request = InviteRequest { name: name.to_owned(), role: role.to_owned(), seconds: life.0 / 1_000_000_000 };
        Ok(self.calls.invite(request).await.map_err(|status| failed(&self.link, status))?.into_inner().token)
    }

    /// Revokes all certificates of a name, and the tokens for it and those that it made. Role: admin.
    ///
    /// # Errors
    /// Fails if nobody has the name, if it is that of the last admin, or if the coordinator refuses it.
    pub async fn revoke(&mut self, name: &str) -> Result<RevokeResponse, ClientError> {
        let request = RevokeRequest { name: name.to_owned() };
        Ok(self.calls.revoke(request).await.map_err(|status| failed(&self.link, status))?.into_inner())
    }
}

/// The error of a call: what the coordinator said, or why it said nothing.
fn failed(link: &Link, status: Status) -> ClientError {
    match status.code() {
        Code::Unknown | Code::Unavailable | Code::Cancelled if status.source().is_some() => link.failed(&status).into(),
        _ => ClientError::Refused(Box::new(status)),
    }
}
