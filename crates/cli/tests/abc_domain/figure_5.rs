//! Figure 5 of P4-ABC with real headers: a client with one TCP flow beside one with many, whose packets pass a link of 4170 packets/s (50.04 Mb/s).
//!
//! `cargo test -p queuescope-cli --test it -- --ignored --nocapture abc_domain::figure_5` prints the table.

use super::chain::{Chain, ChainParams, RECEIVER, sender_address};
use super::node::{CORE, EDGE, EXIT, LinkNode, SINGLE};
use super::{PLAIN, can_run};
use crate::common::{command, integer, printed};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The flows of client 0. Client 1, the light user, has one.
const FLOWS: [usize; 3] = [4, 16, 64];
/// What is not counted at the start, and what is.
const WARM_UP: Duration = Duration::from_secs(3);
const COUNTED: Duration = Duration::from_secs(20);
/// The link that is full, and the others. A round trip takes 20 ms, as in the simulated experiment.
const BOTTLENECK: &str = "--rate 50040kbit --delay 5ms --limit 24packets";
const ACCESS: &str = "--rate 1gbit --delay 2.5ms";

#[test]
#[ignore = "a measurement of four minutes, which needs a machine without other work"]
fn a_light_user_gets_as_much_with_headers_as_without() {
    const TEST: &str = "a_light_user_gets_as_much_with_headers_as_without";
    if !can_run(TEST) {
        return;
    }
    println!("light user's goodput, Mb/s (the other client's)");
    println!("{:>5}  {:>9}  {:>12}  {:>14}  {:>14}", "flows", "simulated", "without ABC", "one node", "real headers");
    for flows in FLOWS {
        let simulated = simulated(flows);
        let [none, single, domain] = [
            [ACCESS.to_owned(), BOTTLENECK.to_owned(), ACCESS.to_owned()],
            [ACCESS.to_owned(), format!("{BOTTLENECK} --aqm {SINGLE}"), ACCESS.to_owned()],
            [format!("{ACCESS} --aqm {EDGE}"), format!("{BOTTLENECK} --aqm {CORE}"), format!("{ACCESS} --aqm {EXIT}")],
        ]
        .map(|links| measured(&links, flows));
        let [of_none, of_single, of_domain] =
            [none, single, domain].map(|[heavy, light]| format!("{light:.1} ({heavy:.1})"));
        println!("{flows:>5}  {simulated:>9.1}  {of_none:>12}  {of_single:>14}  {of_domain:>14}");
        let (light, without_headers) = (domain[1], single[1]);
        assert!((light / without_headers - 1.0).abs() < 0.1, "{light} and {without_headers} Mb/s");
        assert!((light / simulated - 1.0).abs() < 0.1, "{light} and, simulated, {simulated} Mb/s");
        assert!(none[1] < light, "without ABC {} Mb/s, with it {light}", none[1]);
    }
}

/// The goodput of the clients over a chain of links, in Mb/s of payload.
fn measured(links: &[String; 3], flows: usize) -> [f64; 2] {
    let chain = Chain::new(ChainParams { senders: 2, is_plain: false, ..PLAIN });
    let nodes: Vec<_> = chain
        .nodes
        .iter()
        .zip(links)
        .map(|(place, link)| LinkNode::start(place, &format!("--meter none {link}")))
        .collect();
    let listener = chain.receiver.run(|| TcpListener::bind(SocketAddr::from((RECEIVER, 0))).expect("it is free"));
    let to = listener.local_addr().expect("it is bound");
    let clients = std::iter::once(1).chain(std::iter::repeat_n(0, flows));
    let senders: Vec<TcpStream> =
        clients.map(|client| chain.sender.run(move || connected(sender_address(client), to))).collect();
    let (received, is_over) = ([AtomicU64::new(0), AtomicU64::new(0)], AtomicBool::new(false));
    let counts = thread::scope(|scope| {
        for sender in &senders {
            let (is_over, mut sender) = (&is_over, sender);
            scope.spawn(move || {
                let block = vec![7; 1 << 16];
                while !is_over.load(Ordering::Relaxed) && sender.write_all(&block).is_ok() {}
            });
            let (mut stream, from) = listener.accept().expect("it is connected");
            let count = &received[usize::from(from.ip() == IpAddr::from(sender_address(1)))];
            scope.spawn(move || {
                let mut block = vec![0; 1 << 16];
                while let Ok(length @ 1..) = stream.read(&mut block) {
                    count.fetch_add(length as u64, Ordering::Relaxed);
                }
            });
        }
        let read = || (Instant::now(), [0, 1].map(|client: usize| received[client].load(Ordering::Relaxed)));
        thread::sleep(WARM_UP);
        let (began, before) = read();
        thread::sleep(COUNTED);
        let (ended, after) = read();
        is_over.store(true, Ordering::Relaxed);
        // Those that wait for room in their buffer, too.
        senders.iter().for_each(|sender| drop(sender.shutdown(Shutdown::Both)));
        let seconds = (ended - began).as_secs_f64();
        [0, 1].map(|client| (after[client] - before[client]) as f64 * 8e-6 / seconds)
    });
    for node in nodes {
        let report = node.end();
        let network = report.lines.iter().find(|line| line["kind"] == "sim").expect("there is one");
        assert_eq!(network["real_time"]["is_limited_by_machine"], false, "{}", network["real_time"]);
    }
    counts
}

/// A connection from an address of the sender.
fn connected(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None);
    let socket = socket.expect("there is room");
    rustix::net::sockopt::set_tcp_congestion(&socket, "cubic").expect("the kernel has it");
    rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::from(from), 0))).expect("the host has this address");
    rustix::net::connect(&socket, &to).expect("the chain carries a handshake");
    TcpStream::from(socket)
}

/// The light user's goodput in the simulated experiment, in Mb/s.
fn simulated(flows: usize) -> f64 {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("figure-5.toml");
    let client = |number: usize, flows: usize| {
        format!("[[flows]]\nname = \"client {number}\"\ntcp = \"cubic\"\ncount = {flows}\nhosts = 1\n")
    };
    let network = "duration = \"23s\"\nwarmup = \"3s\"\naccess = { rate = \"1gbps\", delay = \"2.5ms\" }\n\
                   link = { rate = \"50040kbps\", delay = \"5ms\", limit = \"24packets\", pipeline = \"abc\" }\n";
    std::fs::write(&path, [network, &client(0, flows), &client(1, 1)].concat()).expect("the folder is writable");
    let lines = printed(command("sim --json --meter none", &[&path]).output().expect("the command runs"), 0);
    let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let network = lines.find(|line| line["kind"] == "sim").expect("there is one");
    let group = &network["groups"][1];
    group["goodput_bps"].as_f64().or(integer(&group["goodput_bps"]).map(|bits| bits as f64)).expect("it is a number")
        / 1e6
}
