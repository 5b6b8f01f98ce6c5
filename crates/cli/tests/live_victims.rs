//! `queuescope live --victims` and `--show` under an overload of 20 s: the report names the flow that fills the queue, with its share.
//! As root.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests run the command, and keep a rate")]

use crate::live_json::Live;
use crate::namespaces;

use namespaces::Ends;
use serde_json::Value;
use std::net::UdpSocket;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const LIGHT: &str = "udp and dst_port == 10";
/// The size of its packets in the queue, in bytes.
const SMALL: u64 = 142;

/// Sends 24 Mb/s to port 7 and 100 small packets a second to port 10, for 20 s. Returns how many of each.
fn overload(ends: &Ends) -> (u64, u64) {
    const WIRE: u64 = 1442;
    ends.near.run(|| {
        let socket = || UdpSocket::bind("10.9.0.1:0").expect("there is a port");
        let (heavy, light) = (socket(), socket());
        let (since, mut sent, mut small) = (Instant::now(), 0, 0);
        while since.elapsed() < Duration::from_secs(20) {
            let at = since.elapsed().as_micros() as u64;
            let (due, small_due) = (at * 24 / 8 / WIRE, at / 10_000);
            // Nothing listens there, so a later send may fail with the ICMP error of an earlier one.
            (sent..due).for_each(|_| drop(heavy.send_to(&[0; 1400], "10.9.0.2:7")));
            (small..small_due).for_each(|_| drop(light.send_to(&[0; 100], "10.9.0.2:10")));
            (sent, small) = (due, small_due);
            // This keeps the rate, and waits for nothing.
            thread::sleep(Duration::from_millis(1));
        }
        (sent, small)
    })
}

/// The drops that the qdisc counted.
fn drops(ends: &Ends) -> u64 {
    let words = ["-s", "-j", "qdisc", "show", "dev", "near0", "root"];
    let shown = ends.near.run(move || Command::new("tc").args(words).output().expect("tc is there"));
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("it is JSON");
    shown[0]["drops"].as_u64().expect("it is a number")
}

/// The names and shares of flows.
fn flows(culprits: &Value) -> Vec<(&str, f64)> {
    let flows = culprits["flows"].as_array().expect("there is a list");
    flows
        .iter()
        .map(|flow| (flow["flow"].as_str().expect("a name"), flow["share"].as_f64().expect("a number")))
        .collect()
}

#[test]
fn the_culprit_of_a_light_flow_is_named_for_twenty_seconds() {
    let test = "the_culprit_of_a_light_flow_is_named_for_twenty_seconds";
    // A single socket can fill this queue.
    let ends = match Ends::new("tbf rate 20mbit burst 20kb latency 30ms") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    let [victims, show] = ["--victims", "--show"].map(|flag| Live::start(&ends, &[flag, LIGHT]));
    assert_eq!(
        (&victims.first["setup"]["victims_filter"], &show.first["setup"]["show_filter"]),
        (&LIGHT.into(), &LIGHT.into())
    );
    let (heavy, light) = overload(&ends);
    namespaces::until("the queue empties", || (ends.near.run(namespaces::backlog) == 0).then_some(()));
    let ((bursts, summary), (listed, of_listed)) = (victims.end(), show.end());

    // Each burst names the heavy flow, with its share of the whole queue: at least all that left in bursts, minus what
    // the light flow sent.
    assert!(!bursts.is_empty(), "{summary}");
    for culprits in bursts.iter().map(|burst| &burst["culprits"][0]).chain([&summary["culprits"][0]]) {
        let flows = flows(culprits);
        assert!(flows[0].0.ends_with(":7 udp") && flows[0].1 > 0.5, "{flows:?}");
    }
    let in_bursts: u64 = bursts.iter().filter_map(|burst| crate::common::integer(&burst["bytes"])).sum();
    let least = 1.0 - (light * SMALL) as f64 / in_bursts as f64;
    let (_, share) = flows(&summary["culprits"][0])[0];
    // The kernel's own packets, such as neighbour discovery, are few.
    assert!(least > 0.9 && share > least - 0.001, "{share}, {least}: {summary}");

    // Delays are those of the light flow's departures, which are no more than the packets that it sent.
    let count = |pointer: &str| summary.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let hit: u64 = bursts.iter().filter_map(|burst| burst["packets_over_tau"].as_u64()).sum();
    assert!(hit > 100 && hit <= count("/totals/victims/packets"), "{hit} of {light}: {summary}");
    assert!(count("/totals/victims/packets") <= light && count("/skipped/not_victims") > heavy / 2, "{summary}");
    // Packets and bytes are of the same packets: those that left. A sixth of the packets was dropped, and the kernel does
    // not count the bytes of these.
    let mean = crate::common::number(&summary, "/bytes") / count("/packets");
    assert!((1_300..1_442).contains(&mean), "{mean}: {summary}");
    // Drops are those of the whole queue.
    let all: u64 = summary["totals"]["drops"].as_object().expect("reasons").values().filter_map(Value::as_u64).sum();
    let of_bursts: u64 = bursts.iter().filter_map(|burst| burst["drops"].as_u64()).sum();
    let (counted, unseen) = (drops(&ends), count("/skipped/unseen"));
    assert!((all..=all + unseen).contains(&counted), "{counted}, {all}: {summary}");
    assert!(all > 1_000 && of_bursts > 0 && of_bursts <= all, "{of_bursts} of {all}");

    // --show filters the list, and does not change shares.
    assert!(!listed.is_empty(), "{of_listed}");
    for culprits in listed.iter().map(|burst| &burst["culprits"][0]) {
        let (flows, hidden) = (flows(culprits), &culprits["not_shown"]);
        assert!(flows.iter().all(|(flow, _)| flow.ends_with(":10 udp")), "{culprits}");
        let share = hidden["share"].as_f64().expect("a number");
        let all = flows.iter().map(|(_, share)| share).sum::<f64>() + share;
        assert!(share > 0.5 && (all - 1.0).abs() < 1e-9 && hidden["flows"].as_u64() >= Some(1), "{culprits}");
    }
}
