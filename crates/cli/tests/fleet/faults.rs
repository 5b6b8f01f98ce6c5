//! Faults between an agent and its coordinator: frames that are lost, a network that is cut, a disk that is full. Nothing that was confirmed
//! is lost, and no alert comes twice.

use super::{Background, command, printed};
use crate::abc_domain::chain::{Chain, ChainParams};
use crate::abc_domain::node::LinkNode;
use crate::full_disk::Disk;
use crate::namespaces::{Ends, ip, until};
use queuescope_live::Namespace;
use rustix::process::Signal;
use serde_json::Value;
use std::io::BufRead;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time without packets after which the trigger does not hold any more, and fires with the next packet.
const QUIET: Duration = Duration::from_millis(400);

/// A coordinator, and an agent that records the loopback interface of its host.
struct Pair {
    /// The folder of the agent, and of the coordinator's home unless that is elsewhere.
    dir: TempDir,
    home: PathBuf,
    coordinator: Background,
    agent: Background,
}

impl Pair {
    /// Starts both. The coordinator has this address, and its folder is `home`.
    fn start(host: &Namespace, core: &Namespace, address: &str, home: PathBuf) -> Self {
        let dir = tempfile::tempdir().expect("there is room");
        let (folder, of, at) = (dir.path().to_owned(), home.clone(), address.to_owned());
        let (coordinator, token) = core.run(move || {
            let home = of.display();
            printed(&folder, &format!("coordinator init {home} --name {at}"));
            let mut coordinator = Background::start(&folder, &format!("coordinator run {home} --listen 0.0.0.0:7401"));
            read_on(coordinator.says("listens on"));
            (coordinator, printed(&folder, &format!("fleet invite host --credentials {home}/admin")))
        });
        let (folder, at) = (dir.path().to_owned(), address.to_owned());
        let agent = host.run(move || {
            ip("ip link set lo up").expect("it is there");
            printed(&folder, &format!("fleet join {} --coordinator {at}:7401 --credentials me", token.trim()));
            let options = "--aggregate n=count --trigger many=n>0@10ms/100ms";
            let mut agent = Background::start(&folder, &format!("agent lo --log log --credentials me {options}"));
            read_on(agent.says("attached to the coordinator"));
            agent
        });
        Self { dir, home, coordinator, agent }
    }

    /// Makes the trigger fire until the host has this number of alerts.
    fn raise(&self, host: &Namespace, alerts: usize) {
        let file = self.dir.path().join("log/alerts.jsonl");
        host.run(move || {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a port");
            let mut sent = Instant::now() - QUIET;
            until("the trigger fires", || {
                if sent.elapsed() >= QUIET {
                    // Nobody listens there.
                    socket.send_to(&[0; 10], "127.0.0.1:9").expect("it is sent");
                    sent = Instant::now();
                }
                let lines = std::fs::read_to_string(&file).unwrap_or_default().lines().count();
                (lines >= alerts).then_some(())
            });
        });
    }

    /// What the coordinator says to a command, which may fail.
    fn fleet(&self, core: &Namespace, words: &str) -> (Option<i32>, String) {
        let (folder, words) =
            (self.dir.path().to_owned(), format!("fleet {words} --credentials {}/admin", self.home.display()));
        let output = core.run(move || command(&folder, &words).output().expect("it starts"));
        (output.status.code(), String::from_utf8(output.stdout).expect("it is text"))
    }

    /// Waits until the coordinator has this number of alerts: they are those of the host, each once and in order.
    fn wait_for_alerts(&self, core: &Namespace, alerts: usize) {
        let stored = until("the alerts come", || {
            let stored = times(&self.fleet(core, "alerts").1);
            (stored.len() >= alerts).then_some(stored)
        });
        let own = std::fs::read_to_string(self.dir.path().join("log/alerts.jsonl")).expect("it is there");
        assert_eq!(stored, times(&own)[..stored.len()]);
    }

    fn end(self) {
        assert_eq!(self.agent.end().0, Some(0));
        assert_eq!(self.coordinator.end().0, Some(0));
    }
}

/// The times of alerts.
fn times(lines: &str) -> Vec<Value> {
    let alert = |line: &str| serde_json::from_str::<Value>(line).expect("it is JSON");
    lines.lines().map(|line| alert(line)["at_ns"].clone()).collect()
}

/// Reads notes to their end, so that nobody waits for a reader.
fn read_on(notes: impl BufRead + Send + 'static) {
    std::thread::spawn(move || notes.lines().map_while(Result::ok).for_each(drop));
}

#[test]
fn a_tenth_of_all_frames_is_lost_and_then_all_of_them() {
    let test = "a_tenth_of_all_frames_is_lost_and_then_all_of_them";
    if !crate::abc_domain::can_run(test) {
        return;
    }
    let chain = Chain::new(ChainParams { nodes: 1, inner_mtu: 1500, senders: 1, is_plain: true });
    let (host, core) = (&chain.sender, &chain.receiver);
    let link = LinkNode::start(&chain.nodes[0], "--rate 100mbit --loss 10%");
    let home = tempfile::tempdir().expect("there is room");
    let pair = Pair::start(host, core, "10.7.0.200", home.path().join("home"));
    pair.raise(host, 5);
    pair.wait_for_alerts(core, 5);
    // A lost frame takes longer than a lease, so some cuts are void or lack the host.
    until("a cut is valid", || (pair.fleet(core, "cut").0 == Some(0)).then_some(()));
    until("a question is answered", || (pair.fleet(core, "query --select count").0 == Some(0)).then_some(()));

    link.signal(Signal::STOP);
    pair.raise(host, 8);
    assert_eq!(pair.fleet(core, "cut").0, Some(1), "the host is late");
    let (status, answer) = pair.fleet(core, "query --select count --within 200ms");
    assert!(status == Some(1) && answer.contains("did not answer in time: it may be stopped"), "{answer}");
    link.signal(Signal::CONT);
    pair.wait_for_alerts(core, 8);
    pair.end();
    link.end();
}

#[test]
fn an_alert_waits_until_the_coordinators_disk_has_room() {
    let test = "an_alert_waits_until_the_coordinators_disk_has_room";
    let Some(disk) = Disk::new(test, 400) else { return };
    let ends = match Ends::needing(&["namespaces"], "pfifo") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    let (host, core) = (&ends.near, &ends.far);
    core.run(|| ip("ip link set lo up")).expect("it is there");
    let pair = Pair::start(host, core, "10.9.0.2", disk.path("home"));
    fill(&disk.path("filler"));
    pair.raise(host, 2);
    // A stream ends when an alert cannot be stored; questions are answered between the attempts.
    until("a question is answered meanwhile", || (pair.fleet(core, "query --select count").0 == Some(0)).then_some(()));
    assert_eq!(pair.fleet(core, "alerts").1, "");
    disk.grow();
    pair.wait_for_alerts(core, 2);
    pair.end();
}

/// Writes until the disk is full.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).expect("there is room for a name");
    let full = std::io::copy(&mut std::io::repeat(0), &mut file).expect_err("it is small");
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
}
