//! `queuescope live --p4air` on a router between two namespaces, with the kernel's TCP, as root: groups, queues and actions; and nothing remains.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests run the command")]

use crate::common::ROOT;
use crate::namespaces;
use namespaces::{Ends, cable, ip, until};
use queuescope_live::Namespace;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// A source before the near end, which forwards to the far end.
struct Road {
    source: Namespace,
    ends: Ends,
}

impl Road {
    /// If it cannot be made, prints why.
    fn new(test: &str) -> Option<Self> {
        let made = || {
            let ends = Ends::new("pfifo")?;
            let source = Namespace::new().map_err(|why| why.to_string())?;
            ends.near.run(|| ip("tc qdisc del dev near0 root"))?;
            cable((&ends.near, "r0", "10.8.0.2"), (&source, "s0", "10.8.0.1"))?;
            source.run(|| ip("ip route add default via 10.8.0.2"))?;
            ends.far.run(|| ip("ip route add default via 10.9.0.1"))?;
            ends.near.run(|| ip("sysctl -q -w net.ipv4.ip_forward=1"))?;
            // A super-packet in a queue of 20 Mb/s is a burst of its own.
            source.run(|| ip("ip link set s0 gso_max_segs 1"))?;
            Ok::<_, String>(Self { source, ends })
        };
        made().map_err(|why| println!("skipped: {test}: {why}")).ok()
    }

    /// The root qdisc of the router, as `tc` prints it.
    fn root(&self) -> String {
        self.tc("qdisc show dev near0 root")
    }

    fn tc(&self, words: &'static str) -> String {
        let output = self.ends.near.run(|| Command::new("tc").args(words.split(' ')).output().expect("tc is there"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts the flows of four controls, and the server.
    fn flows(&self) -> (Started, Started) {
        let serve = "traffic serve --listen 10.9.0.2:7000 --json";
        let server = Started::new(&self.ends.far, serve);
        assert!(server.lines.iter().next().is_some(), "it listens");
        let controls = "--congestion cubic,illinois,bbr,vegas --wait 600s --json";
        let flows = format!("traffic send 10.9.0.2:7000 --sizes 100GB --periodic --every 20ms --count 8 {controls}");
        (server, Started::new(&self.source, &flows))
    }
}

/// The command in a namespace.
struct Started {
    child: Child,
    lines: Receiver<String>,
}

impl Started {
    fn new(namespace: &Namespace, words: &str) -> Self {
        let words = words.to_owned();
        let mut child = namespace.run(move || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
            command.current_dir(ROOT).args(words.split_whitespace()).env("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 2");
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs")
        });
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        thread::spawn(move || out.map_while(Result::ok).for_each(|line| drop(sender.send(line))));
        Self { child, lines }
    }

    /// P4air on the router's interface, once it watches.
    fn live(road: &Road, options: &str) -> Self {
        let started = Self::new(&road.ends.near, &format!("live near0 --json --p4air --rate 20mbps {options}"));
        assert!(started.lines.iter().next().is_some(), "it watches");
        started
    }

    /// The next line about P4air.
    fn next(&self) -> Value {
        let parse = |line: String| serde_json::from_str(&line).expect("a line is JSON");
        until("P4air reports a change", || {
            self.lines.try_iter().map(parse).find(|line: &Value| line["kind"] == "p4air")
        })
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Ends it. Returns its last lines: that of P4air, and the summary.
    fn end(mut self, signal: Signal) -> (Value, Value) {
        self.signal(signal);
        let lines: Vec<Value> = self.lines.iter().map(|line| serde_json::from_str(&line).expect("JSON")).collect();
        assert!(self.child.wait().expect("it ends").success());
        let p4air = lines.iter().rfind(|line| line["kind"] == "p4air").expect("it reports at the end").clone();
        (p4air, lines.last().expect("there is a summary").clone())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The moves to a group, and its flows.
fn of(line: &Value, group: &str) -> (u64, u64) {
    let count = |what: &str| line["groups"][group][what].as_u64().unwrap_or(0);
    (count("moves"), count("flows"))
}

#[test]
fn flows_get_groups_queues_and_actions() {
    let Some(road) = Road::new("flows_get_groups_queues_and_actions") else { return };
    let before = road.root();
    let live = Started::live(&road, "--queues 16 --for-real");
    assert!(road.root().starts_with("qdisc htb 9a1f: root"), "{}", road.root());
    let flows = road.flows();
    until("more than one group has flows", || {
        let line = live.next();
        let groups = ["delay-based", "loss-delay", "loss-based", "model-based"];
        (groups.into_iter().filter(|group| of(&line, group).1 > 0).count() > 1).then_some(())
    });
    until("packets are dropped or delayed, and several queues are used", || {
        let classes = road.tc("-s class show dev near0");
        let used = classes
            .split("class htb ")
            .filter(|class| class.contains("parent 9a1f:1 ") && !class.contains("Sent 0 bytes"));
        (used.count() >= 4).then_some(())
    });
    let (last, summary) = live.end(Signal::TERM);
    assert_eq!(road.root(), before);
    assert_eq!((&last["for_real"], &last["rate_bps"], &last["queues"]), (&true.into(), &"20000000".into(), &16.into()));
    assert!(of(&last, "delay-based").0 >= 4, "each flow begins there: {last}");
    assert!(last["acted"].as_object().is_some_and(|acted| !acted.is_empty()), "{last}");
    assert!(last["flows"].as_array().is_some_and(|flows| flows.len() >= 4), "{last}");
    let acted = ["p4air_dropped", "p4air_delayed", "p4air_lowered"];
    assert!(acted.into_iter().any(|name| summary["skipped"][name].as_u64() > Some(0)), "{summary}");
    drop(flows);
}

#[test]
fn a_dry_run_changes_nothing_and_a_time_limit_restores_the_queue() {
    let Some(road) = Road::new("a_dry_run_changes_nothing_and_a_time_limit_restores_the_queue") else { return };
    let before = road.root();
    let dry = Started::live(&road, "");
    assert_eq!(road.root(), before);
    let flows = road.flows();
    until("flows have a group", || (of(&dry.next(), "delay-based").0 > 0).then_some(()));
    let (last, summary) = dry.end(Signal::INT);
    assert_eq!(last["for_real"], false);
    let acted = last["acted"].as_object().expect("they are by name");
    assert!(acted.keys().all(|name| name.starts_with("would_")), "{last}");
    assert_eq!(summary["skipped"]["p4air_dropped"].as_u64(), None, "{summary}");
    drop(flows);

    let limited = Started::live(&road, "--for-real --act-for 100ms");
    until("the default queue is back", || (road.root() == before).then_some(()));
    let line = until("it reports that", || Some(limited.next()).filter(|line| line["for_real"] == false));
    assert_eq!(of(&line, "mouse").0, 0, "mice do not move");
    let (_, summary) = limited.end(Signal::INT);
    assert_eq!(summary["skipped"]["p4air_over"].as_u64(), Some(1), "{summary}");
}

#[test]
fn a_killed_command_leaves_no_queue() {
    let Some(road) = Road::new("a_killed_command_leaves_no_queue") else { return };
    let before = road.root();
    let live = Started::live(&road, "--for-real");
    assert!(road.root().starts_with("qdisc htb"), "{}", road.root());
    live.signal(Signal::KILL);
    until("the default queue is back", || (road.root() == before).then_some(()));
}

#[test]
fn a_chosen_queue_is_an_error_of_one_line() {
    let Some(road) = Road::new("a_chosen_queue_is_an_error_of_one_line") else { return };
    road.ends.near.run(|| ip("tc qdisc replace dev near0 root handle 7: bfifo limit 30000")).expect("it can");
    let mut refused = Started::new(&road.ends.near, "live near0 --json --p4air --rate 20mbps --for-real");
    let mut said = String::new();
    refused.child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it is text");
    assert_eq!(refused.child.wait().expect("it ends").code(), Some(2));
    let errors: Vec<_> = said.lines().filter(|line| line.starts_with("error:")).collect();
    assert!(errors.len() == 1 && errors[0].contains("near0 has the qdisc bfifo"), "{said}");
    assert!(road.root().starts_with("qdisc bfifo 7:"), "{}", road.root());
}
