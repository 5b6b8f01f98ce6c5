//! A coordinator on loopback in this process, and agents in threads of it.

use queuescope_archive::{Recorder, RecorderOptions};
use queuescope_fleet::agent::{AgentConnection, AgentError, Served};
use queuescope_fleet::client::{Client, join};
use queuescope_fleet::coordinator::{CoordinatorOptions, CoordinatorServer, Measures, Measuring, create};
use queuescope_fleet::identity::{Credentials, CurrentCredentials};
use queuescope_fleet::protocol::{Member, State};
use queuescope_log::Schema;
use queuescope_wire::Nanos;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Longer than a busy machine takes for anything that tests wait for.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A coordinator's folder, and the coordinator if it runs.
pub struct Home {
    pub dir: TempDir,
    pub address: String,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    measuring: Option<Measuring>,
}

/// An agent that runs.
pub struct Host {
    pub recorder: Arc<Recorder>,
    pub folder: PathBuf,
    pub serving: JoinHandle<AgentError>,
}

impl Home {
    /// A new coordinator.
    pub async fn start() -> Self {
        let dir = tempfile::tempdir().expect("there is room");
        create(&dir.path().join("home"), &[]).expect("it is new");
        let mut home = Self { dir, address: "127.0.0.1:0".to_owned(), running: None, measuring: None };
        home.run().await;
        home
    }

    /// Runs the coordinator, at the address that it had.
    pub async fn run(&mut self) {
        let listen = self.address.parse().expect("an address");
        let server = CoordinatorServer::open(&self.path("home"), listen, CoordinatorOptions::default()).await;
        let server = server.expect("it was made");
        self.measuring = Some(server.measuring());
        self.address = server.address().expect("it listens").to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            server.serve(async { _ = stopped.await }).await.expect("it serves");
        });
        self.running = Some((stop, serving));
    }

    /// What the coordinator has done.
    pub fn measures(&self) -> Measures {
        self.measuring.as_ref().expect("it runs").read()
    }

    /// Ends the coordinator; its folder stays.
    pub async fn stop(&mut self) {
        let (stop, serving) = self.running.take().expect("it runs");
        let _ = stop.send(());
        serving.await.expect("it ends");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A connection of a member.
    pub async fn client(&self, name: &str) -> Client {
        Client::connect(&self.address, &credentials(&self.path(name))).await.expect("it listens")
    }

    /// A connection of the first administrator.
    pub async fn admin(&self) -> Client {
        self.client("home/admin").await
    }

    /// Invites a member, which joins.
    pub async fn join(&self, name: &str, role: &str) {
        let token = self.admin().await.invite(name, role, Nanos(60_000_000_000)).await.expect("it is an administrator");
        join(&self.address, &token, &self.path(name)).await.expect("the token is new");
    }

    /// A host that joins, and serves a new folder.
    pub async fn host(&self, name: &str) -> Host {
        self.join(name, "agent").await;
        let folder = self.path(&format!("{name}-log"));
        let options = RecorderOptions { memory: 150_000_000, ..RecorderOptions::default() };
        let (recorder, _) = Recorder::open(&folder, Schema::packet(), options).expect("it is new");
        let recorder = Arc::new(recorder);
        let serving = self.serve(name, &recorder, &folder);
        Host { recorder, folder, serving }
    }

    /// Serves a folder to the coordinator.
    pub fn serve(&self, name: &str, recorder: &Arc<Recorder>, folder: &Path) -> JoinHandle<AgentError> {
        let source = "a test".to_owned();
        self.serve_as(name, Served::new(Arc::clone(recorder), folder.to_owned(), source, Arc::new(AtomicU64::new(0))))
    }

    /// Serves records to the coordinator as a member.
    pub fn serve_as(&self, name: &str, served: Served) -> JoinHandle<AgentError> {
        let connection = AgentConnection {
            coordinator: self.address.clone(),
            credentials: credentials(&self.path(name)),
            folder: self.path(name),
        };
        tokio::spawn(async move {
            let Err(why) = served.serve(&connection, &|event| println!("{event:?}")).await;
            why
        })
    }

    /// Waits until a member is in a state.
    pub async fn wait_for(&self, name: &str, state: State) -> Member {
        let mut client = self.admin().await;
        patiently(&format!("{name} is {state:?}"), async move || {
            let members = client.members().await.expect("it answers");
            members.into_iter().find(|member| member.name == name && member.state() == state)
        })
        .await
    }
}

/// Repeats `look` until it returns something.
pub async fn patiently<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("waited for nothing: {what}"))
}

pub fn credentials(folder: &Path) -> CurrentCredentials {
    CurrentCredentials::new(Credentials::load(folder).expect("it is whole").expect("it is there"))
}
