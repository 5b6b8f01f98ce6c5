//! The coordinator's calls over gRPC: each checks the certificate of its caller.

use super::audit::{AuditEntry, AuditLog};
use super::{ActionRecord, Coordinator, CutError, ProgramError, QueryError};
use crate::clock;
use crate::identity::{CertificateFacts, Identity, IdentityError, MemberName, Registrar, Revoked, Role};
use crate::protocol::fleet_server::Fleet;
use crate::protocol::{
    ActionsRequest, ActionsResponse, AddProgramRequest, AddProgramResponse, Alert, AlertsRequest, Certificate,
    CheckRequest, CheckResponse, CutRequest, CutResponse, FromAgent, InviteRequest, InviteResponse, JoinRequest,
    ListProgramsRequest, ListProgramsResponse, MembersRequest, MembersResponse, PROTOCOL, QueryRequest, QueryResponse,
    RemoveProgramRequest, RemoveProgramResponse, RenewRequest, RevokeRequest, RevokeResponse, ToAgent, from_agent,
};
use crate::transport::Peer;
use queuescope_wire::Nanos;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc::channel;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming, async_trait};

/// Time for an agent's first message.
const FIRST: Duration = Duration::from_secs(10);
/// Time between two looks at whether a reader that follows alerts still may.
const CHECK: Duration = Duration::from_secs(1);
/// The longest time to wait for members of a cut by time.
const LONGEST_CUT: Nanos = Nanos(600_000_000_000);
/// Alerts that are sent together.
const ALERTS: usize = 256;

/// The calls of a coordinator.
#[derive(Debug, Clone)]
pub struct FleetService {
    coordinator: Coordinator,
    registrar: Arc<Registrar>,
    audit: Arc<AuditLog>,
}

type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl FleetService {
    /// Serves this coordinator, to those that the registrar knows.
    pub fn new(coordinator: Coordinator, registrar: Arc<Registrar>, audit: Arc<AuditLog>) -> Self {
        Self { coordinator, registrar, audit }
    }

    /// The caller, if it has a valid certificate with this role. A refusal is in the audit log.
    fn caller<T>(&self, request: &Request<T>, needed: Role, call: &'static str) -> Result<Identity, Status> {
        self.allowed(request, needed).inspect_err(|refused| {
            self.coordinator.shared.counts.calls_refused.fetch_add(1, Ordering::Relaxed);
            let certificate = request.extensions().get::<Peer>().and_then(|peer| peer.certificate.clone());
            let member = certificate.as_ref().and_then(|certificate| certificate.subject.member().ok());
            self.note(member, call, "", Some(refused.message()));
        })
    }

    /// Adds a call and its result to the audit log.
    fn audited<T>(
        &self,
        caller: &Identity,
        call: &'static str,
        about: &str,
        result: Result<T, Status>,
    ) -> Result<T, Status> {
        self.note(Some(caller), call, about, result.as_ref().err().map(Status::message));
        result
    }

    fn note(&self, caller: Option<&Identity>, call: &'static str, about: &str, error: Option<&str>) {
        let role = caller.map(|caller| caller.role.to_string()).unwrap_or_default();
        let name = caller.map_or("", |caller| caller.name.as_str());
        if let Err(why) = self.audit.add(AuditEntry { name, role: &role, call, about, error }) {
            self.coordinator.troubled(format!("the audit log cannot be written: {why}"));
        }
    }

    fn allowed<T>(&self, request: &Request<T>, needed: Role) -> Result<Identity, Status> {
        let certificate = self.certificate(request)?;
        let identity = certificate.subject.member().map_err(|error| refused(&error))?;
        if identity.role.allows(needed) {
            Ok(identity.clone())
        } else {
            let text = format!("{} has the role {}, and this needs {needed}", identity.name, identity.role);
            Err(Status::permission_denied(text))
        }
    }

    /// Lets a call pass if its caller has a valid certificate, of any role.
    pub(super) fn with_certificate(&self, request: Request<()>) -> Result<Request<()>, Status> {
        let checked = self.certificate(&request);
        if checked.is_err() {
            self.coordinator.shared.counts.calls_refused.fetch_add(1, Ordering::Relaxed);
        }
        checked.map(|_| request)
    }

    /// The valid certificate of the caller: it may have been revoked or have expired since the connection was opened.
    fn certificate<T>(&self, request: &Request<T>) -> Result<Arc<CertificateFacts>, Status> {
        let peer = request.extensions().get::<Peer>().and_then(|peer| peer.certificate.clone());
        let certificate = peer
            .ok_or_else(|| Status::unauthenticated("this needs a certificate: get one with queuescope fleet join"))?;
        self.registrar.revocations().check(&certificate, clock::seconds()).map_err(|error| refused(&error))?;
        Ok(certificate)
    }

    /// Runs a call of the registrar, which waits for the disk.
    async fn registered<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Registrar) -> Result<T, IdentityError> + Send + 'static,
    ) -> Result<T, Status> {
        let registrar = Arc::clone(&self.registrar);
        let done = tokio::task::spawn_blocking(move || call(&registrar)).await;
        done.map_err(|_| Status::internal("the coordinator failed; its log has the reason"))?
            .map_err(|error| refused(&error))
    }

    /// Changes programs, which waits for the disk.
    async fn programs<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Coordinator) -> Result<T, ProgramError> + Send + 'static,
    ) -> Result<T, Status> {
        let coordinator = self.coordinator.clone();
        let done = tokio::task::spawn_blocking(move || change(&coordinator)).await;
        done.map_err(|_| Status::internal("the coordinator failed; its log has the reason"))?.map_err(|error| {
            match error {
                ProgramError::Store(_) => Status::internal(error.to_string()),
                _ => Status::invalid_argument(error.to_string()),
            }
        })
    }

    fn certificate_of(&self, pem: String) -> Response<Certificate> {
        let authority = self.registrar.authority().certificate_pem().to_owned();
        Response::new(Certificate { certificate: pem, authority })
    }
}

#[async_trait]
impl Fleet for FleetService {
    type AttachStream = Messages<ToAgent>;
    type AlertsStream = Messages<Alert>;

    async fn join(&self, request: Request<JoinRequest>) -> Result<Response<Certificate>, Status> {
        let JoinRequest { token, signing_request } = request.into_inner();
        let issued = self.registered(move |registrar| registrar.join(&token, &signing_request, clock::seconds())).await;
        let member = issued.as_ref().ok().and_then(|issued| issued.facts.subject.member().ok());
        self.note(member, "join", "", issued.as_ref().err().map(Status::message));
        Ok(self.certificate_of(issued?.pem))
    }

    async fn renew(&self, request: Request<RenewRequest>) -> Result<Response<Certificate>, Status> {
        let old = self.certificate(&request)?;
        let text = request.into_inner().signing_request;
        let issued = self.registered(move |registrar| registrar.renew(&old, &text, clock::seconds())).await?;
        Ok(self.certificate_of(issued.pem))
    }

    async fn attach(&self, request: Request<Streaming<FromAgent>>) -> Result<Response<Self::AttachStream>, Status> {
        let agent = self.caller(&request, Role::Agent, "attach")?;
        let certificate = self.certificate(&request)?;
        let from = request.extensions().get::<Peer>().and_then(|peer| peer.address);
        let mut come = request.into_inner();
        let first = timeout(FIRST, come.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("the agent did not say hello in time"))??;
        let Some(from_agent::Message::Hello(hello)) = first.and_then(|first| first.message) else {
            return Err(Status::invalid_argument("the first message of an agent is hello"));
        };
        let attached = self.coordinator.attach(agent.name.as_str(), hello, from);
        let attached = attached.map_err(|error| Status::failed_precondition(error.to_string()));
        let (session, messages) = self.audited(&agent, "attach", "", attached)?;
        // It may have been revoked while its hello was awaited.
        if let Err(error) = self.registrar.revocations().check(&certificate, clock::seconds()) {
            self.coordinator.detach(&session);
            return Err(refused(&error));
        }
        let (coordinator, ended) = (self.coordinator.clone(), session.clone());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = session.over() => break,
                    message = come.message() => match message {
                        Ok(Some(message)) => coordinator.receive(&session, message).await,
                        Ok(None) | Err(_) => break,
                    },
                }
            }
            coordinator.detach(&session);
        });
        // The last message of a stream that another took the place of.
        let end = std::iter::once_with(move || ended.replaced().map(|why| Err(Status::aborted(why)))).flatten();
        Ok(Response::new(Box::pin(ReceiverStream::new(messages).map(Ok).chain(tokio_stream::iter(end)))))
    }

    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        self.certificate(&request)?;
        Ok(Response::new(CheckResponse { version: env!("CARGO_PKG_VERSION").to_owned(), protocol: PROTOCOL }))
    }

    async fn members(&self, request: Request<MembersRequest>) -> Result<Response<MembersResponse>, Status> {
        self.caller(&request, Role::Reader, "members")?;
        Ok(Response::new(MembersResponse { members: self.coordinator.members() }))
    }

    async fn cut(&self, request: Request<CutRequest>) -> Result<Response<CutResponse>, Status> {
        let caller = self.caller(&request, Role::Reader, "cut")?;
        let CutRequest { members, within, at } = request.into_inner();
        let (about, within) = (members.join(","), Nanos(within.saturating_mul(1_000)));
        let made = match at {
            Some(at) => self.coordinator.cut_at(members, at, within.min(LONGEST_CUT)).await,
            None => {
                let made = self.coordinator.cut(&members, within).await;
                made.map(|made| self.coordinator.with_states(made.response()))
            }
        };
        self.audited(&caller, "cut", &about, made.map(Response::new).map_err(|error| no_cut(&error)))
    }

    async fn query(&self, request: Request<QueryRequest>) -> Result<Response<QueryResponse>, Status> {
        let caller = self.caller(&request, Role::Reader, "query")?;
        let request = request.into_inner();
        let QueryRequest { expression, select, group, .. } = &request;
        let about = format!("{expression} select {select} group {group}");
        let answer = self.coordinator.query(request).await.map(Response::new).map_err(|error| match error {
            QueryError::Ask(error) => Status::invalid_argument(error.to_string()),
            QueryError::Cut(error) => no_cut(&error),
            QueryError::Rows(_) | QueryError::Failed => Status::internal(error.to_string()),
        });
        self.audited(&caller, "query", &about, answer)
    }

    async fn alerts(&self, request: Request<AlertsRequest>) -> Result<Response<Self::AlertsStream>, Status> {
        let caller = self.caller(&request, Role::Reader, "alerts")?;
        let certificate = self.audited(&caller, "alerts", "", self.certificate(&request))?;
        let AlertsRequest { mut from, follow } = request.into_inner();
        let (go, alerts) = channel(ALERTS);
        let (coordinator, registrar) = (self.coordinator.clone(), Arc::clone(&self.registrar));
        tokio::spawn(async move {
            let mut count = coordinator.alerts().count();
            let mut ending = coordinator.shared.is_ending.subscribe();
            loop {
                if let Err(error) = registrar.revocations().check(&certificate, clock::seconds()) {
                    let _ = go.send(Err(refused(&error))).await;
                    return;
                }
                count.borrow_and_update();
                let more = coordinator.alerts().from(from, ALERTS);
                if more.is_empty() && !follow {
                    return;
                }
                let is_empty = more.is_empty();
                for alert in more {
                    from = alert.number + 1;
                    if go.send(Ok(alert)).await.is_err() {
                        return;
                    }
                }
                if is_empty {
                    tokio::select! {
                        () = go.closed() => return,
                        // Its reader connects to the next coordinator at once.
                        _ = ending.wait_for(|is_ending| *is_ending) => return,
                        changed = count.changed() => if changed.is_err() { return },
                        () = tokio::time::sleep(CHECK) => {}
                    }
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(alerts))))
    }

    async fn add_program(&self, request: Request<AddProgramRequest>) -> Result<Response<AddProgramResponse>, Status> {
        let caller = self.caller(&request, Role::Operator, "add_program")?;
        let AddProgramRequest { name, text, values } = request.into_inner();
        let about = name.clone();
        let added =
            self.programs(move |coordinator| coordinator.add_program(&name, &text, values.into_iter().collect())).await;
        self.audited(&caller, "add_program", &about, added.map(|()| Response::new(AddProgramResponse {})))
    }

    async fn remove_program(
        &self,
        request: Request<RemoveProgramRequest>,
    ) -> Result<Response<RemoveProgramResponse>, Status> {
        let caller = self.caller(&request, Role::Operator, "remove_program")?;
        let name = request.into_inner().name;
        let about = name.clone();
        let removed = self.programs(move |coordinator| coordinator.remove_program(&name)).await;
        let removed = removed.map(|removed| Response::new(RemoveProgramResponse { removed }));
        self.audited(&caller, "remove_program", &about, removed)
    }

    async fn list_programs(
        &self,
        request: Request<ListProgramsRequest>,
    ) -> Result<Response<ListProgramsResponse>, Status> {
        self.caller(&request, Role::Reader, "list_programs")?;
        Ok(Response::new(ListProgramsResponse { programs: self.coordinator.programs() }))
    }

    async fn actions(&self, request: Request<ActionsRequest>) -> Result<Response<ActionsResponse>, Status> {
        self.caller(&request, Role::Reader, "actions")?;
        let most = match request.into_inner().most {
            0 => usize::MAX,
            most => usize::try_from(most).unwrap_or(usize::MAX),
        };
        let (actions, more_refused) = self.coordinator.actions(most);
        let actions = actions.iter().map(ActionRecord::message).collect();
        Ok(Response::new(ActionsResponse { actions, more_refused }))
    }

    async fn invite(&self, request: Request<InviteRequest>) -> Result<Response<InviteResponse>, Status> {
        let caller = self.caller(&request, Role::Admin, "invite")?;
        let maker = self.certificate(&request)?;
        let InviteRequest { name, role, seconds } = request.into_inner();
        let about = format!("{name} as {role}");
        let member = Identity::parse(&name, &role).map_err(|error| refused(&error))?;
        let life = Duration::from_secs(seconds);
        let invited = move |registrar: &Registrar| registrar.invite_by(&maker, &member, life, clock::seconds());
        let token = self.registered(invited).await;
        let invited = token.map(|token| Response::new(InviteResponse { token: token.text() }));
        self.audited(&caller, "invite", &about, invited)
    }

    async fn revoke(&self, request: Request<RevokeRequest>) -> Result<Response<RevokeResponse>, Status> {
        let caller = self.caller(&request, Role::Admin, "revoke")?;
        let name: MemberName = request.into_inner().name.parse().map_err(|error| refused(&error))?;
        let revoked = name.clone();
        let ended = self.registered(move |registrar| registrar.revoke(&name, clock::seconds())).await;
        let Revoked { certificates, tokens, invited } = self.audited(&caller, "revoke", revoked.as_str(), ended)?;
        self.coordinator.end(revoked.as_str());
        let invited = invited.iter().map(|member| format!("{} ({})", member.name, member.role)).collect();
        Ok(Response::new(RevokeResponse { certificates, tokens, invited }))
    }
}

fn refused(error: &IdentityError) -> Status {
    let text = error.with_causes();
    match error {
        IdentityError::Nobody { .. } => Status::not_found(text),
        IdentityError::LastAdmin { .. } => Status::failed_precondition(text),
        _ => Status::permission_denied(text),
    }
}

fn no_cut(error: &CutError) -> Status {
    match error {
        CutError::Busy(_) => Status::unavailable(error.to_string()),
        CutError::Unknown(_) => Status::not_found(error.to_string()),
        CutError::Void { .. } => Status::failed_precondition(error.to_string()),
    }
}
