//! `queuescope live` on an interface with classes, whose packets overtake each other: the congestion of one class is one burst. As root.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests run the command, and keep a rate")]

use crate::namespaces;

use namespaces::{Ends, ip, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Gives port 7 a class of 5 Mb/s, and all other traffic one of 100 Mb/s.
fn classes(ends: &Ends) -> Result<(), String> {
    ends.near.run(|| {
        ip("tc class add dev near0 parent 1: classid 1:10 htb rate 5mbit ceil 5mbit")?;
        ip("tc class add dev near0 parent 1: classid 1:20 htb rate 100mbit ceil 100mbit")?;
        ip("tc filter add dev near0 protocol ip parent 1: u32 match ip dport 7 0xffff flowid 1:10")
    })
}

/// Sends 400 large packets to port 7 at once, which take about a second. Meanwhile small packets to port 9 overtake them, one a millisecond,
/// until the queue is empty.
fn send(ends: &Ends) {
    ends.near.run(|| {
        let sockets: Vec<_> = (0..8).map(|_| UdpSocket::bind("10.9.0.1:0").expect("there is a port")).collect();
        // Nothing listens there, so a later send may fail with the ICMP error of an earlier one.
        (0..400).for_each(|n| drop(sockets[n % 7].send_to(&[0; 1400], "10.9.0.2:7")));
        let since = Instant::now();
        until("the queue empties", || {
            let _ = sockets[7].send_to(&[0; 100], "10.9.0.2:9");
            // This keeps the rate, and waits for nothing.
            thread::sleep(Duration::from_millis(1));
            (since.elapsed() > Duration::from_millis(200) && namespaces::backlog() < 1400).then_some(())
        });
    });
}

/// Runs `live` with the options `words`. Returns bursts and summary.
fn live(ends: &Ends, words: &[&'static str]) -> (Vec<Value>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
    command.args(["live", "near0", "--json", "--every-packet"]).args(words).stdout(Stdio::piped());
    let mut child = ends.near.run(move || command.spawn().expect("it starts"));
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    assert!(lines.next().is_some(), "it watches");
    send(ends);
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    let lines = lines.map(|line| serde_json::from_str(&line.expect("text")).expect("JSON"));
    let mut bursts: Vec<Value> = lines.collect();
    assert!(child.wait().expect("it ends").success());
    let summary = bursts.pop().expect("there is a summary");
    (bursts, summary)
}

#[test]
fn the_congestion_of_a_class_is_one_burst_and_overtaking_is_counted() {
    let test = "the_congestion_of_a_class_is_one_burst_and_overtaking_is_counted";
    let made = Ends::new("handle 1: htb default 20").and_then(|ends| classes(&ends).map(|()| ends));
    let ends = match made {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    let (bursts, summary) = live(&ends, &[]);
    // If the machine stalls, the class may be empty for a moment.
    assert!((1..=3).contains(&bursts.len()), "{} bursts: {summary}", bursts.len());
    let length: u64 = bursts.iter().filter_map(|burst| crate::common::integer(&burst["length_ns"])).sum();
    assert!(length > 500_000_000, "{bursts:?}");
    // Each small packet overtook the packet that left next.
    assert!(summary["skipped"]["overtaken"].as_u64() > Some(20), "{summary}");

    // The note advises this: the class alone is a FIFO, and the burst is its own.
    let (bursts, summary) = live(&ends, &["--input", "dst_port == 7"]);
    assert!((1..=3).contains(&bursts.len()), "{} bursts: {summary}", bursts.len());
    assert!(summary["skipped"]["overtaken"].is_null(), "{summary}");
    let flows = bursts.iter().flat_map(|burst| burst["culprits"][0]["flows"].as_array().expect("a list"));
    let names: Vec<_> = flows.map(|flow| flow["flow"].as_str().expect("a name")).collect();
    assert!(!names.is_empty() && names.iter().all(|name| name.ends_with(":7 udp")), "{bursts:?}");
}
