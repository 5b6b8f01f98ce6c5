//! Runs a coordinator.

use super::{
    ActionStore, ActionStoreError, Actions, AlertStore, AlertStoreError, AuditLog, Coordinator, CoordinatorOptions,
    FleetService, Measuring, PreparedSinks, ProgramError, ProgramStore, Programs, SinkError, Sinks,
};
use crate::clock;
use crate::identity::{
    Authority, Credentials, CurrentCredentials, DefaultTimeProvider, Identity, IdentityError, Lives, PendingKey,
    Registrar, Role, ServerName, server_config,
};
use crate::protocol::fleet_server::FleetServer;
use crate::transport::{Listening, incoming};
use std::future::Future;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;

/// The file that is locked in the coordinator's folder, those of alerts, calls, actions and its starts, and the folders of its programs, of its authority, of
/// the first administrator and of the positions of sinks.
const LOCK: &str = "lock";
const ALERTS: &str = "alerts.jsonl";
const AUDIT: &str = "audit.jsonl";
const ACTIONS: &str = "actions.jsonl";
const STARTS: &str = "starts";
const PROGRAMS: &str = "programs";
const AUTHORITY: &str = "authority";
const ADMIN: &str = "admin";
const SINKS: &str = "sinks";
/// The name of the first administrator.
const FIRST: &str = "admin";
/// Connections whose peers do not reply to an empty frame for this long are closed.
const ALIVE: Duration = Duration::from_secs(10);
/// Time between two looks at the members: round trips are measured, and certificates are renewed.
const LOOK: Duration = Duration::from_secs(5);
/// Time for calls to end when the coordinator ends.
const LAST: Duration = Duration::from_secs(1);
/// Connections beside those of members.
const PEOPLE: usize = 256;
/// The most bytes of a message of an agent beside its part of an answer.
const MESSAGE: usize = 1 << 20;

/// Why a coordinator cannot be made or run.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// Its certificates.
    #[error("{}", .0.with_causes())]
    Identity(IdentityError),
    /// Its alerts.
    #[error(transparent)]
    Alerts(#[from] AlertStoreError),
    /// Its actions.
    #[error(transparent)]
    Actions(#[from] ActionStoreError),
    /// Its control programs.
    #[error(transparent)]
    Programs(#[from] ProgramError),
    /// A file or folder.
    #[error("cannot {what} {}: {why}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// Another process runs this coordinator.
    #[error("{} is in use: another process runs this coordinator", .0.display())]
    InUse(PathBuf),
    /// A name that is neither a DNS name nor an address.
    #[error("'{0}' is neither a DNS name nor an IP address")]
    Name(String),
    /// The address to listen on.
    #[error("cannot listen on {address}: {why}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        why: io::Error,
    },
    /// The server.
    #[error("the coordinator ended")]
    Server(#[from] tonic::transport::Error),
}

impl From<IdentityError> for CoordinatorError {
    /// Its text has the causes, so it must not be a source as well.
    fn from(error: IdentityError) -> Self {
        Self::Identity(error)
    }
}

/// Makes a coordinator's folder: its authority with certificates for `names`, localhost and loopback addresses, and the credentials of a first
/// administrator. Returns the folder of these.
///
/// # Errors
/// Fails if there is one already, if a name is wrong, or if files cannot be written.
pub fn create(folder: &Path, names: &[String]) -> Result<PathBuf, CoordinatorError> {
    let all = names.iter().map(String::as_str).chain(["localhost", "127.0.0.1", "::1"]);
    let name = |name: &str| ServerName::try_from(name.to_owned()).map_err(|_| CoordinatorError::Name(name.to_owned()));
    let mut names: Vec<_> = all.map(name).collect::<Result<_, _>>()?;
    let mut seen = Vec::new();
    names.retain(|name| {
        !seen.contains(name) && {
            seen.push(name.clone());
            true
        }
    });
    // What members record is nobody else's business.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed("make", folder))?;
    let (now, lives, authority) = (clock::seconds(), Lives::default(), folder.join(AUTHORITY));
    Authority::create(&authority, &names, &lives, now)?;
    let registrar = Registrar::open(&authority, lives)?;
    let admin = Identity::parse(FIRST, "admin")?;
    let token = registrar.invite(&admin, Duration::from_secs(60), now)?.text();
    let pending = PendingKey::generate()?;
    let issued = registrar.join(&token, pending.request(), now)?;
    let path = folder.join(ADMIN);
    Credentials::accept(pending, &issued.pem, registrar.authority().certificate_pem(), now)?.save(&path)?;
    Ok(path)
}

/// A coordinator that can be reached.
#[derive(Debug)]
pub struct CoordinatorServer {
    coordinator: Coordinator,
    registrar: Arc<Registrar>,
    credentials: CurrentCredentials,
    listener: TcpListener,
    listening: Listening,
    audit: Arc<AuditLog>,
    folder: PathBuf,
    /// Locked for as long as this lives.
    lock: fs::File,
}

impl CoordinatorServer {
    /// Opens a folder that [`create`] made, and listens. Only one process may have the folder.
    ///
    /// # Errors
    /// Fails if a file is damaged, if another process has the folder, or if the address cannot be used.
    pub async fn open(
        folder: &Path,
        listen: SocketAddr,
        options: CoordinatorOptions,
    ) -> Result<Self, CoordinatorError> {
        let lock = locked(folder)?;
        let registrar = Arc::new(Registrar::open(&folder.join(AUTHORITY), Lives::default())?);
        let credentials = registrar.credentials(clock::seconds())?;
        let alerts = AlertStore::open(&folder.join(ALERTS), options.alerts)?;
        let programs = Programs::open(ProgramStore::open(&folder.join(PROGRAMS)).map_err(ProgramError::from)?)?;
        let path = folder.join(AUDIT);
        let audit = Arc::new(AuditLog::open(&path).map_err(failed("open", &path))?);
        let actions = Actions::new(ActionStore::open(&folder.join(ACTIONS))?, Some(Arc::clone(&audit)));
        let epoch = another_start(&folder.join(STARTS))?;
        let coordinator = Coordinator::with_actions(options, epoch, alerts, programs, actions);
        coordinator.expect(registrar.revocations().names(Role::Agent, clock::seconds()));
        let not_here = |why| CoordinatorError::Listen { address: listen, why };
        let listener = TcpListener::bind(listen).await.map_err(not_here)?;
        Ok(Self {
            coordinator,
            registrar,
            credentials,
            listener,
            listening: Listening::default(),
            audit,
            folder: folder.to_owned(),
            lock,
        })
    }

    /// The coordinator.
    pub fn coordinator(&self) -> &Coordinator {
        &self.coordinator
    }

    /// Sends alerts to sinks, from now on and until the result is dropped.
    ///
    /// # Errors
    /// Fails if a sink is a file of the coordinator, if a position in the folder cannot be read or written, or if a thread cannot be started.
    pub fn start_sinks(&self, sinks: PreparedSinks) -> Result<Sinks, SinkError> {
        let own = [LOCK, ALERTS, AUDIT, ACTIONS, STARTS].map(|name| self.folder.join(name).canonicalize());
        if let Some(path) = sinks.among(&own.into_iter().flatten().collect::<Vec<_>>()) {
            return Err(SinkError::Own(path));
        }
        let fingerprint = self.registrar.authority().fingerprint().to_string();
        self.coordinator.start_sinks(sinks, &self.folder.join(SINKS), &fingerprint)
    }

    /// Reads what this coordinator has done, also while it serves.
    pub fn measuring(&self) -> Measuring {
        Measuring { coordinator: self.coordinator.clone(), listening: self.listening.clone() }
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` is ready. Returns the number of connections that it refused.
    ///
    /// # Errors
    /// Fails if TLS cannot be configured, or if the server fails.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<u64, CoordinatorError> {
        let Self { coordinator, registrar, credentials, listener, listening, audit, folder: _, lock: _lock } = self;
        let tls = server_config(&credentials, Arc::clone(registrar.revocations()), Arc::new(DefaultTimeProvider))?;
        let options = coordinator.options();
        let calls = FleetService::new(coordinator.clone(), Arc::clone(&registrar), audit);
        // For programs that know no other call. It needs a certificate as all calls do.
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<FleetServer<FleetService>>().await;
        let checking = calls.clone();
        let health_service = InterceptedService::new(health_service, move |request| checking.with_certificate(request));
        let service = FleetServer::new(calls).max_decoding_message_size(options.part_bytes + MESSAGE);
        let connections = incoming(listener, tls, options.members + PEOPLE, listening.clone());
        let looking = async {
            loop {
                tokio::time::sleep(LOOK).await;
                coordinator.round_trip(LOOK).await;
                let now = clock::seconds();
                if now >= credentials.get().renew_at() {
                    // The old certificate serves until it expires; this is tried again.
                    if let Err(error) = registrar.renew_own(&credentials, now) {
                        coordinator.troubled(error.with_causes());
                    }
                }
            }
        };
        let mut server = Server::builder()
            .http2_keepalive_interval(Some(ALIVE))
            .http2_keepalive_timeout(Some(ALIVE))
            .tcp_nodelay(true);
        let over = Notify::new();
        let serving = server.add_service(service).add_service(health_service);
        let serving = serving.serve_with_incoming_shutdown(connections, over.notified());
        tokio::pin!(serving);
        tokio::select! {
            served = &mut serving => served?,
            () = looking => {}
            () = coordinator.follow_programs() => {}
            () = coordinator.hold_actions() => {}
            () = stop => {
                health.set_not_serving::<FleetServer<FleetService>>().await;
                // Agents connect to the next coordinator at once.
                coordinator.end_all();
                over.notify_one();
                // Calls that do not end must not keep it.
                let _ = tokio::time::timeout(LAST, serving).await;
            }
        }
        Ok(listening.refused())
    }
}

/// Counts the starts of a coordinator: cuts of a later one have higher numbers.
#[expect(clippy::disallowed_methods, reason = "the coordinator's folder is this crate's own")]
fn another_start(path: &Path) -> Result<u32, CoordinatorError> {
    let before = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        read => {
            let text = read.map_err(failed("read", path))?;
            let damaged = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not a number");
            text.trim().parse().map_err(damaged).map_err(failed("read", path))?
        }
    };
    let now: u32 = before + 1;
    let new = path.with_extension("new");
    let written = fs::File::create(&new)
        .and_then(|mut file| {
            io::Write::write_all(&mut file, format!("{now}\n").as_bytes()).and_then(|()| file.sync_all())
        })
        .and_then(|()| fs::rename(&new, path));
    written.map_err(failed("write", path))?;
    Ok(now)
}

/// Locks the folder for this process.
fn locked(folder: &Path) -> Result<fs::File, CoordinatorError> {
    let path = folder.join(LOCK);
    let mut options = fs::OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).open(&path).map_err(failed("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(CoordinatorError::InUse(folder.to_owned())),
        Err(fs::TryLockError::Error(why)) => Err(failed("lock", &path)(why)),
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CoordinatorError {
    let path = path.to_owned();
    move |why| CoordinatorError::File { what, path, why }
}
