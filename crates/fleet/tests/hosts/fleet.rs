//! A coordinator and two hosts, each in a namespace of its own.

use super::host::{HOST, HostPlan};
use crate::namespaces::{PATIENCE, alone, cable, ip, until};
use queuescope_fleet::coordinator::{CoordinatorOptions, CoordinatorServer, create};
use queuescope_fleet::identity::{
    Credentials, CurrentCredentials, DefaultTimeProvider, Identity, Lives, PendingKey, Registrar, client_config,
};
use queuescope_fleet::protocol::fleet_client::FleetClient;
use queuescope_fleet::protocol::{CutRequest, CutResponse, MembersRequest};
use queuescope_fleet::transport::connect;
use queuescope_live::Namespace;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tonic::transport::Channel;

pub struct Fleet {
    dir: TempDir,
    hosts: Vec<Child>,
    client: FleetClient<Channel>,
    runtime: Runtime,
    stop: Arc<Notify>,
    serving: std::thread::JoinHandle<()>,
    _namespaces: [Namespace; 3],
}

impl Fleet {
    /// Starts all of it, if this user may; otherwise returns the reason.
    pub fn start(thaws_early: bool) -> Result<Self, String> {
        let [coordinator, send, receive] = namespaces()?;
        let dir = tempfile::tempdir().expect("there is room");
        let home = dir.path().join("coordinator");
        create(&home, &["10.8.1.1".to_owned(), "10.8.2.1".to_owned()]).expect("it is new");
        for name in ["send", "receive", "reader"] {
            invite(&home, name, if name == "reader" { "reader" } else { "agent" }, &dir.path().join(name));
        }
        let (stop, (address, addressed)) = (Arc::new(Notify::new()), mpsc::channel());
        let serving = {
            let (stop, home) = (Arc::clone(&stop), home.clone());
            coordinator.run(move || {
                std::thread::spawn(move || {
                    runtime().block_on(async {
                        let listen = "0.0.0.0:0".parse().expect("an address");
                        let server = CoordinatorServer::open(&home, listen, CoordinatorOptions::default()).await;
                        let server = server.expect("it was made");
                        address.send(server.address().expect("it listens")).expect("somebody waits");
                        server.serve(stop.notified()).await.expect("it serves")
                    });
                })
            })
        };
        let port = addressed.recv_timeout(PATIENCE).expect("it listens").port();
        let own = dir.path().join("reader");
        let (runtime, client) = coordinator.run(move || {
            let runtime = runtime();
            let client = runtime.block_on(client(&own, &format!("127.0.0.1:{port}")));
            (runtime, client)
        });
        let plan = |name: &str, gateway: &str, early: bool| HostPlan {
            name: name.to_owned(),
            folder: dir.path().to_owned(),
            coordinator: format!("{gateway}:{port}"),
            thaws_early: early,
        };
        let hosts = vec![
            start(&receive, plan("receive", "10.8.2.1", false)),
            start(&send, plan("send", "10.8.1.1", thaws_early)),
        ];
        let mut fleet = Self { dir, hosts, client, runtime, stop, serving, _namespaces: [coordinator, send, receive] };
        fleet.wait_for_members();
        Ok(fleet)
    }

    fn wait_for_members(&mut self) {
        until("both hosts record", || {
            let members = self.runtime.block_on(self.client.members(MembersRequest {})).expect("it answers");
            let members = members.into_inner().members;
            (members.len() == 2 && members.iter().all(|member| member.records > 10)).then_some(())
        });
    }

    /// Makes a cut.
    pub fn cut(&self) -> CutResponse {
        let mut client = self.client.clone();
        let request = CutRequest { members: Vec::new(), within: 10_000, at: None };
        self.runtime.block_on(client.cut(request)).expect("nobody else makes one").into_inner()
    }

    /// Ends all of it, and returns the numbers of the packets that the receiver recorded, in the order of its log.
    pub fn end(mut self) -> Vec<u64> {
        // A host ends when its standard input does. The sender first.
        for mut host in self.hosts.drain(..).rev() {
            drop(host.stdin.take());
            assert!(host.wait().expect("it was started").success());
        }
        self.stop.notify_one();
        self.serving.join().expect("it ends");
        let text = std::fs::read_to_string(self.dir.path().join("received")).expect("it was written");
        text.lines().map(|line| line.parse().expect("a number")).collect()
    }
}

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads start")
}

async fn client(credentials: &Path, coordinator: &str) -> FleetClient<Channel> {
    let credentials =
        CurrentCredentials::new(Credentials::load(credentials).expect("it is whole").expect("it is there"));
    let tls = client_config(&credentials, Arc::new(DefaultTimeProvider)).expect("TLS works");
    FleetClient::new(connect(coordinator, tls).await.expect("it listens").channel)
}

/// Makes credentials, as a token would.
fn invite(home: &Path, name: &str, role: &str, to: &Path) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let registrar = Registrar::open(&home.join("authority"), Lives::default()).expect("it was made");
    let identity = Identity::parse(name, role).expect("a name");
    let token = registrar.invite(&identity, Duration::from_secs(60), now).expect("there is room").text();
    let pending = PendingKey::generate().expect("there is chance");
    let issued = registrar.join(&token, pending.request(), now).expect("the token is new");
    let authority = registrar.authority().certificate_pem();
    Credentials::accept(pending, &issued.pem, authority, now).and_then(|own| own.save(to)).expect("there is room");
}

/// Starts a host: this program, once more.
fn start(namespace: &Namespace, plan: HostPlan) -> Child {
    namespace.run(move || {
        let mut command = Command::new(std::env::current_exe().expect("it has a name"));
        command.args(["--exact", "hosts::host::is_a_host", "--nocapture"]).env(HOST, plan.text());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts")
    })
}

/// The coordinator's namespace and those of two hosts, with cables between each two.
fn namespaces() -> Result<[Namespace; 3], String> {
    let new = || alone(&["namespaces"]);
    let all = [new()?, new()?, new()?];
    let [coordinator, send, receive] = &all;
    cable((coordinator, "toa", "10.8.1.1"), (send, "toc", "10.8.1.2"))?;
    cable((coordinator, "tob", "10.8.2.1"), (receive, "toc", "10.8.2.2"))?;
    cable((send, "data", "10.8.3.1"), (receive, "data", "10.8.3.2"))?;
    all.iter().try_for_each(|one| one.run(|| ip("ip link set lo up")))?;
    Ok(all)
}
