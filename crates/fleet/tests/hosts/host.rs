//! A host: a process that records, and answers the coordinator. One sends numbered packets, the other receives them.

use super::fleet::runtime;
use queuescope_archive::{Recorder, RecorderOptions};
use queuescope_fleet::agent::{AgentConnection, Served};
use queuescope_fleet::identity::{Credentials, CurrentCredentials, DefaultTimeProvider, client_config};
use queuescope_fleet::protocol::fleet_client::FleetClient;
use queuescope_fleet::protocol::{FromAgent, Frozen, Thawed, ToAgent, from_agent, to_agent};
use queuescope_fleet::transport::connect;
use queuescope_log::{Schema, departure};
use std::io::Read;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// The environment variable that makes this program a host, with its plan.
pub const HOST: &str = "QUEUESCOPE_TEST_HOST";

/// Where packets go.
const TO: &str = "10.8.3.2:9000";
/// Packets between two short pauses: the receiver must keep up.
const BURST: u64 = 4;

/// What a host does.
pub struct HostPlan {
    /// `send` or `receive`; its credentials are in a folder of this name.
    pub name: String,
    pub folder: PathBuf,
    pub coordinator: String,
    /// Whether it replies to the coordinator without freezing.
    pub thaws_early: bool,
}

impl HostPlan {
    pub fn text(&self) -> String {
        format!("{}|{}|{}|{}", self.name, self.folder.display(), self.coordinator, self.thaws_early)
    }

    fn parse(text: &str) -> Option<Self> {
        let [name, folder, coordinator, early] = text.split('|').collect::<Vec<_>>()[..] else { return None };
        let (name, coordinator) = (name.to_owned(), coordinator.to_owned());
        Some(Self { name, folder: folder.into(), coordinator, thaws_early: early == "true" })
    }
}

/// The process of a host; as a test it does nothing.
#[test]
fn is_a_host() {
    let Ok(plan) = std::env::var(HOST) else { return };
    let plan = HostPlan::parse(&plan).expect("the parent wrote it");
    let log = plan.folder.join(format!("{}-log", plan.name));
    let options = RecorderOptions { memory: 400_000_000, archive: false, ..RecorderOptions::default() };
    let (recorder, _) = Recorder::open(&log, Schema::departure(), options).expect("it is new");
    let recorder = Arc::new(recorder);
    let served = Served::new(Arc::clone(&recorder), log, "a test".to_owned(), Arc::new(AtomicU64::new(0)));
    let own = Credentials::load(&plan.folder.join(&plan.name)).expect("it is whole").expect("it is there");
    let credentials = CurrentCredentials::new(own);
    let stop = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&stop);
    std::thread::spawn(move || {
        // The parent closes it, also by ending.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        over.store(true, Ordering::Relaxed);
    });
    let runtime = runtime();
    let (coordinator, thaws_early) = (plan.coordinator.clone(), plan.thaws_early);
    runtime.spawn(async move {
        if thaws_early {
            serve_without_freezing(&served, &coordinator, &credentials).await;
        } else {
            let folder = PathBuf::from("not renewed");
            let connection = AgentConnection { coordinator, credentials, folder };
            let Err(why) = served.serve(&connection, &|event| eprintln!("{event:?}")).await;
            panic!("{why}");
        }
    });
    if plan.name == "send" { send(&recorder, &stop) } else { receive(&recorder, &stop, &plan.folder.join("received")) }
}

/// Appends a record, waits until it is visible, and sends a packet with its number.
fn send(recorder: &Recorder, stop: &AtomicBool) {
    let socket = UdpSocket::bind("10.8.3.1:0").expect("the address is its own");
    for number in 0u64.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let appended = recorder.append(&[0; departure::SIZE]).expect("there is room");
        assert_eq!(appended.positions, number..number + 1);
        recorder.log().wait_until_visible(number + 1);
        socket.send_to(&number.to_be_bytes(), TO).expect("there is a way");
        if number % BURST == 0 {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// Appends a record for each packet that arrives.
fn receive(recorder: &Recorder, stop: &AtomicBool, file: &std::path::Path) {
    let socket = UdpSocket::bind(TO).expect("the address is its own");
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("sockets have timeouts");
    let (mut numbers, mut packet) = (String::new(), [0; 8]);
    while !stop.load(Ordering::Relaxed) {
        if socket.recv(&mut packet).is_ok() {
            assert_eq!(recorder.append(&[0; departure::SIZE]).expect("there is room").refused, 0);
            numbers.push_str(&format!("{}\n", u64::from_be_bytes(packet)));
        }
    }
    std::fs::write(file, numbers).expect("there is room");
}

/// Serves the coordinator as an agent does, and replies to *freeze* and *thaw* without freezing anything.
async fn serve_without_freezing(served: &Served, coordinator: &str, credentials: &CurrentCredentials) {
    let tls = client_config(credentials, Arc::new(DefaultTimeProvider)).expect("TLS works");
    let link = connect(coordinator, tls).await.expect("it listens");
    let (go, messages) = mpsc::channel(64);
    let hello = Some(from_agent::Message::Hello(served.hello()));
    go.send(FromAgent { message: hello }).await.expect("there is room");
    let come = FleetClient::new(link.channel)
        .attach(ReceiverStream::new(messages))
        .await
        .expect("it is a member")
        .into_inner();
    let (replies, frozen) = (go.clone(), served.clone());
    let others = come.filter(move |message| {
        let reply = match message {
            Ok(ToAgent { message: Some(to_agent::Message::Freeze(freeze)) }) => {
                from_agent::Message::Frozen(Frozen { cut: freeze.cut, position: frozen.visible(), at: 0 })
            }
            Ok(ToAgent { message: Some(to_agent::Message::Thaw(thaw)) }) => {
                from_agent::Message::Thawed(Thawed { cut: thaw.cut, lapsed: false })
            }
            _ => return true,
        };
        replies.try_send(FromAgent { message: Some(reply) }).expect("there is room");
        false
    });
    panic!("{}", served.session(others, go, || ()).await);
}
