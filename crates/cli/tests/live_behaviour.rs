//! `queuescope live --every-packet` names how flows behave, with the kernel's TCP over a delay, as root.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests run the command")]

use crate::live_json::Live;
use crate::namespaces::{Ends, ip};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const QUEUESCOPE: &str = env!("CARGO_BIN_EXE_queuescope");

/// A server in the far namespace, which is ended at last.
struct Server(Child);

impl Server {
    fn start(ends: &Ends) -> Self {
        let mut command = Command::new(QUEUESCOPE);
        command.args(["traffic", "serve", "--listen", "10.9.0.2:7000", "--json"]).stdout(Stdio::piped());
        let mut child = ends.far.run(move || command.spawn().expect("it starts"));
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("it listens");
        Self(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends 20 MB over 20 Mb/s and a round trip of 20 ms, while the near end's queue is watched. Returns the first line and the summary.
fn watch(test: &str, control: &str, flags: &[&str]) -> Option<(Value, Value)> {
    let made = Ends::new("tbf rate 20mbit burst 4kb limit 75kb").and_then(|ends| {
        // A super-packet would be the half of this queue.
        ends.near.run(|| ip("sysctl -q -w net.ipv4.ip_forward=1"))?;
        ends.far.run(|| ip("ip route add default via 10.9.0.1"))?;
        Ok(ends)
    });
    let ends = made.map_err(|why| println!("skipped: {test}: {why}")).ok()?;
    let _server = Server::start(&ends);
    let live = Live::start(&ends, flags);
    let first = live.first.clone();
    let send = format!(
        "traffic send 10.9.0.2:7000 --sizes 20MB --periodic --every 1s --count 1 --congestion {control} --wait 600s"
    );
    let sent = ends.near.run(move || {
        let mut command = Command::new(QUEUESCOPE);
        command.args(["link", "--rate", "1gbit", "--delay", "10ms", "--", QUEUESCOPE]).args(send.split(' '));
        command.output().expect("it runs")
    });
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    Some((first, live.end().1))
}

/// The culprit that sent most, at the first granularity.
fn heaviest(summary: &Value) -> &Value {
    &summary["culprits"][0]["flows"][0]
}

#[test]
fn flows_are_judged_by_every_packet_and_every_drop() {
    let test = "flows_are_judged_by_every_packet_and_every_drop";
    for (control, names) in
        [("reno", ["loss-driven", "too little evidence"]), ("bbr", ["model-based", "too little evidence"])]
    {
        let Some((first, summary)) = watch(test, control, &["--every-packet"]) else { return };
        assert_eq!(first["setup"]["behaviour"], Value::Null);
        let behaviour = &heaviest(&summary)["behaviour"];
        println!("{control}: {behaviour}");
        let rtt = behaviour["rtt_ns"].as_u64().expect("the handshake was seen");
        assert!((20_000_000..60_000_000).contains(&rtt), "{rtt}");
        // Those of slow start may be older than the rounds that are kept.
        let dropped = summary["totals"]["drops"]["qdisc"].as_u64().unwrap_or(0);
        let drops = behaviour["drops"].as_u64().expect("it is a number");
        assert!(drops <= dropped && (control == "bbr" || drops > 0), "{drops} of {dropped}");
        let name = behaviour["name"].as_str().expect("it is text");
        assert!(names.contains(&name), "{control}: {behaviour}");
    }
}

#[test]
fn flows_are_not_judged_by_packets_that_waited_alone() {
    let test = "flows_are_not_judged_by_packets_that_waited_alone";
    let Some((first, summary)) = watch(test, "reno", &[]) else { return };
    let why = "not applicable: only packets that waited are reported, unless every packet is";
    assert_eq!(first["setup"]["behaviour"], why);
    assert_eq!(heaviest(&summary)["behaviour"], Value::Null);
}
