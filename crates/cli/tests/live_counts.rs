//! `queuescope live` on queues whose counts are easily wrong: one that was full before, and one that drops super-packets. As root.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests run the command")]

use crate::live_json::Live;
use crate::namespaces;

use namespaces::{Ends, backlog, ip, until};
use serde_json::Value;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread;

/// The bytes of one of its packets.
const WIRE: u64 = 1442;

/// Sends large packets; nobody listens, so a later send may fail with the error of an earlier one.
fn send(ends: &Ends, packets: usize) {
    ends.near.run(move || {
        let socket = UdpSocket::bind("10.9.0.1:0").expect("there is a port");
        (0..packets).for_each(|_| drop(socket.send_to(&[0; 1400], "10.9.0.2:9")));
    });
}

fn drained(ends: &Ends) {
    ends.near.run(|| until("the queue empties", || (backlog() == 0).then_some(())));
}

#[test]
fn packets_that_were_in_the_queue_before_are_not_overtaken_and_have_no_delay() {
    let test = "packets_that_were_in_the_queue_before_are_not_overtaken_and_have_no_delay";
    // So slow that the queue stays full until the command watches, however long that takes.
    let ends = match Ends::new("tbf rate 8kbit burst 2kb limit 400kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    for every_packet in [true, false] {
        ends.near.run(|| ip("tc qdisc change dev near0 root tbf rate 8kbit burst 2kb limit 400kb").expect("it can"));
        send(&ends, 90);
        let live = Live::start(&ends, if every_packet { &["--every-packet"] } else { &[] });
        // On a busy machine, some have left before it watches.
        let least = ends.near.run(backlog) / WIRE;
        assert!(least > 10, "{least}");
        send(&ends, 60);
        // What is in the queue leaves 1 ms apart, so what came before the command leaves long after the first packet of the others came.
        ends.near.run(|| ip("tc qdisc change dev near0 root tbf rate 10mbit burst 2kb limit 400kb").expect("it can"));
        drained(&ends);
        let (bursts, summary) = live.end();
        let skipped = &summary["skipped"];
        let count = |name: &str| skipped[name].as_u64().unwrap_or(0);
        // Departures for which the kernel ran no program are unseen. A few packets of the interface itself may have come, too.
        assert!(count("unstamped") < 100 && count("unstamped") + count("unseen") >= least, "{least}: {summary}");
        assert!(skipped["overtaken"].is_null(), "{summary}");
        // All others waited for those that were there before.
        assert!(!bursts.is_empty() && summary["totals"]["waited_share"].as_f64() > Some(0.9), "{summary}");
    }
}

#[test]
fn drops_of_super_packets_are_in_packets_on_the_wire_and_as_the_qdisc_counts_them() {
    let test = "drops_of_super_packets_are_in_packets_on_the_wire_and_as_the_qdisc_counts_them";
    let ends = match Ends::new("tbf rate 20mbit burst 64kb limit 70kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    let listener = ends.far.run(|| TcpListener::bind("10.9.0.2:9").expect("there is a port"));
    thread::spawn(move || {
        for stream in listener.incoming().map(|stream| stream.expect("it is open")) {
            thread::spawn(move || io::copy(&mut &stream, &mut io::sink()));
        }
    });
    let live = Live::start(&ends, &[]);
    // Several connections are faster than the queue until some of their packets are lost.
    let before = until("super-packets are dropped", || {
        ends.near.run(|| {
            let connect = || TcpStream::connect("10.9.0.2:9").expect("somebody listens");
            let mut streams: Vec<_> = (0..8).map(|_| connect()).collect();
            (0..20).for_each(|_| {
                streams.iter_mut().for_each(|stream| stream.write_all(&[0; 1 << 14]).expect("it is open"));
            });
        });
        drained(&ends);
        Some(tc_drops(&ends)).filter(|drops| *drops > 20)
    });
    let (bursts, summary) = live.end();
    // The connections may still repeat what was lost.
    let after = tc_drops(&ends);
    let unseen = summary["skipped"]["unseen"].as_u64().unwrap_or(0);
    let as_tc = summary["skipped"]["tc_drops"].as_u64().expect("the counts differ");
    assert!(as_tc <= after && as_tc + unseen >= before, "{before} to {after}: {summary}");
    let by_reason = summary["totals"]["drops"].as_object().expect("reasons").values().filter_map(Value::as_u64);
    let on_wire: u64 = by_reason.sum();
    let in_bursts: u64 = bursts.iter().filter_map(|burst| burst["drops"].as_u64()).sum();
    // The first super-packets may be dropped before one has waited, and so before a burst.
    assert!((as_tc + 1..=on_wire).contains(&in_bursts), "{in_bursts}: {summary}");
}

/// The drops of the near queue, as `tc` shows them.
fn tc_drops(ends: &Ends) -> u64 {
    let words = ["-s", "-j", "qdisc", "show", "dev", "near0", "root"];
    let output = ends.near.run(move || Command::new("tc").args(words).output().expect("tc is there"));
    let shown: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    shown[0]["drops"].as_u64().expect("it is a number")
}
