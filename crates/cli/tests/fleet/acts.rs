//! From alert to action, by the commands that the guide shows: a flow is dropped, marked and limited by an agent, as root in a namespace, and nothing
//! of it stays.

use super::{Background, command, printed};
use crate::namespaces::{Ends, until};
use serde_json::Value;
use std::net::UdpSocket;
use std::path::Path;

const ADMIN: &str = "--credentials home/admin";

/// A flow that sends, and its receiver on the other host.
struct Flow {
    near: UdpSocket,
    far: UdpSocket,
}

impl Flow {
    fn new(ends: &Ends) -> Self {
        let far = ends.far.run(|| {
            let far = UdpSocket::bind("10.9.0.2:7012").expect("there is a port");
            far.set_nonblocking(true).expect("it can");
            far
        });
        let near = ends.near.run(|| {
            let near = UdpSocket::bind("10.9.0.1:9012").expect("there is a port");
            near.connect("10.9.0.2:7012").expect("it can");
            // ECN-capable.
            rustix::net::sockopt::set_ip_tos(&near, 2).expect("it can be");
            near
        });
        Self { near, far }
    }

    /// Sends some packets, and returns how many have come since the last call.
    fn send(&self) -> usize {
        (0..20).for_each(|_| _ = until("it is sent", || self.near.send(&[7; 1_000]).ok()));
        // The receiver is a moment later.
        std::thread::sleep(std::time::Duration::from_millis(5));
        let mut buffer = [0; 2_000];
        std::iter::from_fn(|| self.far.recv(&mut buffer).ok()).count()
    }

    /// Waits until packets pass, or do not.
    fn wait_until(&self, passes: bool) {
        let mut same = 0;
        until(if passes { "packets pass" } else { "packets do not pass" }, || {
            same = if (self.send() > 0) == passes { same + 1 } else { 0 };
            (same >= 5).then_some(())
        });
    }
}

/// The actions of a program that are listed, the oldest first.
fn actions(dir: &Path, program: &str) -> Vec<Value> {
    let listed = printed(dir, &format!("fleet actions --json {ADMIN}"));
    let all = listed.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    all.filter(|action| action["program"] == program).collect()
}

/// Waits until the first action of a program is in a state.
fn wait_for(dir: &Path, program: &str, state: &str, mut meanwhile: impl FnMut()) -> Value {
    until(&format!("{program} is {state}"), || {
        meanwhile();
        actions(dir, program).into_iter().next().filter(|action| action["state"] == state)
    })
}

/// Adds a program that acts on the flow, which sends.
fn add(dir: &Path, name: &str, what: &str, time: &str, dry: bool) {
    let text = format!(
        "[run]\nevery = \"100ms\"\nlast = \"500ms\"\n[[ask]]\nname = \"sent\"\nexpression = \"udp and src_ip == 10.9.0.1\"\n\
         group = \"src_ip,dst_ip,src_port,dst_port,protocol\"\n[[raise]]\nname = \"heavy\"\ncondition = \"sent > 50\"\n\
         [[act]]\nafter = \"heavy\"\nhosts = [\"host\"]\ndo = \"{what}\"\nfor = \"{time}\"\ndry = {dry}\n"
    );
    std::fs::write(dir.join("program.toml"), text).expect("there is room");
    printed(dir, &format!("fleet program add {name} program.toml {ADMIN}"));
}

fn remove(dir: &Path, name: &str) {
    printed(dir, &format!("fleet program remove {name} {ADMIN}"));
}

fn agent(dir: &Path, options: &str) -> Background {
    let mut agent = Background::start(dir, &format!("agent near0 --log log --credentials me {options}"));
    // The process writes further notes; read them, so that it does not wait.
    let mut notes = agent.says("attached to the coordinator");
    std::thread::spawn(move || std::io::copy(&mut notes, &mut std::io::sink()));
    agent
}

fn coordinator(dir: &Path) -> Background {
    let mut coordinator = Background::start(dir, "coordinator run home");
    let mut notes = coordinator.says("listens on");
    std::thread::spawn(move || std::io::copy(&mut notes, &mut std::io::sink()));
    coordinator
}

fn signal(of: &Background, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(&of.0), signal).expect("it runs");
}

#[test]
fn programs_act_on_flows_and_nothing_stays() {
    let test = "programs_act_on_flows_and_nothing_stays";
    let ends = match Ends::needing(&["namespaces", "btf", "tcx"], "pfifo limit 10000") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    let flow = Flow::new(&ends);
    ends.near.run(move || {
        crate::namespaces::ip("ip link set lo up").expect("it is there");
        let dir = tempfile::tempdir().expect("there is room");
        acts(dir.path(), &flow);
    });
}

fn acts(dir: &Path, flow: &Flow) {
    printed(dir, "coordinator init home --name monitor.example");
    let mut home = coordinator(dir);
    let token = printed(dir, &format!("fleet invite host {ADMIN}"));
    printed(dir, &format!("fleet join {} --coordinator localhost:7401 --credentials me", token.trim()));

    // Options that contradict each other, and expressions that a flow does not have.
    for (options, why) in [
        ("--act near0", "--act-only"),
        ("--for-real", "--act"),
        ("--act near0 --act-only length>3", "length"),
        ("--act none --act-only ip", "none"),
    ] {
        let refused =
            command(dir, &format!("agent near0 --log log --credentials me {options}")).output().expect("it starts");
        let message = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && message.contains(why), "{options}: {message}");
    }

    // The owner allows nothing.
    let refusing = agent(dir, "");
    add(dir, "first", "drop", "10s", false);
    let refused = wait_for(dir, "first", "refused", || _ = flow.send());
    assert!(refused["reason"].as_str().is_some_and(|why| why.contains("--act")), "{refused}");
    flow.wait_until(true);
    remove(dir, "first");
    assert_eq!(refusing.end().0, Some(0));

    // The owner allows dry runs.
    let dry = agent(dir, "--act near0 --act-only udp");
    add(dir, "second", "drop", "2s", false);
    wait_for(dir, "second", "dry", || _ = flow.send());
    let over = wait_for(dir, "second", "expired", || assert!(flow.send() > 0, "a dry run drops nothing"));
    assert!(over["touched"].as_u64() > Some(0) && over["dry"] == false, "{over}");
    remove(dir, "second");
    assert_eq!(dry.end().0, Some(0));

    // The owner allows it, and the program does not.
    let real = agent(dir, "--act near0 --act-only udp --for-real");
    add(dir, "third", "drop", "30s", true);
    wait_for(dir, "third", "dry", || _ = flow.send());
    flow.wait_until(true);
    remove(dir, "third");
    let undone = wait_for(dir, "third", "undone", || ());
    assert!(undone["reason"].as_str().is_some_and(|why| why.contains("removed")) && undone["dry"] == true, "{undone}");

    // Both want it, until its time ends.
    add(dir, "fourth", "drop", "2s", false);
    wait_for(dir, "fourth", "applied", || _ = flow.send());
    flow.wait_until(false);
    let over = wait_for(dir, "fourth", "expired", || ());
    assert!(over["touched"].as_u64() > Some(0) && over["touched"] == over["packets"], "{over}");
    // Otherwise it acts again: the flow goes on.
    remove(dir, "fourth");
    flow.wait_until(true);
    for (name, what) in [("fifth", "mark"), ("sixth", "limit 100kbps")] {
        add(dir, name, what, "2s", false);
        wait_for(dir, name, "applied", || _ = flow.send());
        // Counts come with the next report.
        let over = wait_for(dir, name, "expired", || _ = flow.send());
        let (touched, packets) = (over["touched"].as_u64(), over["packets"].as_u64());
        assert!(touched > Some(0) && packets >= touched, "{over}");
        assert!(what != "mark" || touched == packets, "{over}");
        remove(dir, name);
    }

    // The program is removed.
    add(dir, "seventh", "drop", "4min", false);
    wait_for(dir, "seventh", "applied", || _ = flow.send());
    flow.wait_until(false);
    remove(dir, "seventh");
    flow.wait_until(true);

    // The agent is stopped: the kernel ends it by itself.
    add(dir, "eighth", "drop", "5min", false);
    wait_for(dir, "eighth", "applied", || _ = flow.send());
    flow.wait_until(false);
    signal(&real, rustix::process::Signal::STOP);
    flow.wait_until(true);
    signal(&real, rustix::process::Signal::CONT);
    remove(dir, "eighth");
    wait_for(dir, "eighth", "undone", || ());
    flow.wait_until(true);

    // The coordinator is killed: the agent ends it at once, and the next coordinator does not begin it again.
    add(dir, "ninth", "drop", "5min", false);
    wait_for(dir, "ninth", "applied", || _ = flow.send());
    flow.wait_until(false);
    home.kill();
    flow.wait_until(true);
    home = coordinator(dir);
    let undone = wait_for(dir, "ninth", "undone", || ());
    assert_eq!(undone["reason"], "the coordinator ended", "{undone}");
    until("the agent is back", || printed(dir, &format!("fleet members {ADMIN}")).contains("here").then_some(()));
    // Packets from before may be a cause again: but each action has an alert of its own.
    // The actions first: another one may come with its alert between the two answers.
    let begun = actions(dir, "ninth").len();
    let alerts = printed(dir, &format!("fleet alerts {ADMIN}"));
    let alerts = alerts.lines().filter(|line| line.contains("ninth.heavy")).count();
    assert!(begun <= alerts, "{begun} actions of {alerts} alerts: {undone}");
    remove(dir, "ninth");

    // The agent is killed: nothing of it stays.
    add(dir, "tenth", "drop", "5min", false);
    wait_for(dir, "tenth", "applied", || _ = flow.send());
    flow.wait_until(false);
    real.kill();
    flow.wait_until(true);
    let undone = wait_for(dir, "tenth", "undone", || ());
    assert_eq!(undone["reason"], "the stream of host ended", "{undone}");
    let table = printed(dir, &format!("fleet actions --last 1 {ADMIN}"));
    assert!(table.contains("undone") && table.contains("src_ip 10.9.0.1, dst_ip 10.9.0.2"), "{table}");

    // Each decision and each end is in the audit log, with its cause.
    let audit = std::fs::read_to_string(dir.join("home/audit.jsonl")).expect("it is there");
    let lines = audit.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let lines: Vec<_> = lines.filter(|line| line["role"] == "program").collect();
    let of = |name: &str, call: &str| lines.iter().any(|line| line["name"] == name && line["call"] == call);
    assert!(of("fourth", "act") && of("fourth", "act_end") && of("tenth", "act_end"), "{lines:?}");
    assert!(
        lines.iter().all(|line| line["about"].as_str().is_some_and(|about| about.contains(".heavy: src_ip"))),
        "{lines:?}"
    );
    assert_eq!(home.end().0, Some(0));
}
