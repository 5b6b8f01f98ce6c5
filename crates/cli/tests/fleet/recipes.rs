//! Control programs of `recipes/fleet` on hosts with the kernel's TCP, in network namespaces: each raises nothing while all is well, and
//! finds the fault that is planted then.

use super::{Background, printed};
use crate::abc_domain::program;
use crate::namespaces::{PATIENCE, alone, cable, ip, until};
use queuescope_live::Namespace;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Three senders and a receiver. The n-th has the address 10.8.n.2; a router with the coordinator is at 10.8.n.1.
const HOSTS: [&str; 4] = ["one", "two", "three", "far"];
/// Where senders connect to.
const SINK: &str = "10.8.4.2:5001";
/// Runs of a program without a fault.
const CALM: u64 = 5;
/// Time between two writes of a sender.
const STEP: Duration = Duration::from_millis(5);

/// A fleet in namespaces, and what its coordinator says.
struct Recipes {
    dir: TempDir,
    core: Namespace,
    hosts: Vec<Namespace>,
    alerts: mpsc::Receiver<(Instant, Value)>,
    senders: Vec<Sender>,
    agents: Vec<Background>,
    others: Vec<Background>,
}

/// A connection that sends at a rate.
struct Sender {
    /// Bytes a second.
    rate: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    port: u16,
    running: JoinHandle<()>,
}

impl Recipes {
    /// Hosts with agents, and the connections of each sender, with the bytes a second of each. Prints why the test is skipped
    /// if it is.
    fn start(test: &str, connections: [usize; 3], rate: u64) -> Option<Self> {
        program(test, "ethtool")?;
        let namespaces = namespaces().map_err(|why| println!("skipped: {test}: {why}")).ok();
        let (core, hosts) = namespaces?;
        let dir = tempfile::tempdir().expect("there is room");
        let folder = dir.path().to_owned();
        let (coordinator, alerts) = core.run(move || {
            let names: Vec<_> = (1..=HOSTS.len()).map(|n| format!("--name 10.8.{n}.1")).collect();
            printed(&folder, &format!("coordinator init home {}", names.join(" ")));
            let mut coordinator = Background::start(&folder, "coordinator run home --listen 0.0.0.0:7401");
            drop(coordinator.says("listens on"));
            (coordinator, Background::start(&folder, "fleet alerts --follow --credentials home/admin"))
        });
        let (others, alerts) = lines_of(alerts, coordinator);
        let agents =
            HOSTS.iter().zip(&hosts).zip(1..).map(|((name, host), n)| agent(&dir, &core, host, name, n)).collect();
        let senders = connect(&hosts, connections, rate);
        Some(Self { dir, core, hosts, alerts, senders, agents, others })
    }

    /// Adds a recipe under a name, and waits until it has run some times, or has been installed if it runs after alerts only.
    fn add(&self, name: &str, recipe: &str, values: &[(&str, &str)]) {
        let values: Vec<_> = values.iter().map(|(key, value)| format!("--set {key}={value}")).collect();
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recipes/fleet");
        self.fleet(&format!("program add {name} {file}/{recipe}.toml {}", values.join(" ")));
        let begun = Instant::now();
        until("the program has run", || {
            let listed = self.fleet("program list --json");
            let listed: Value = serde_json::from_str(listed.trim()).expect("it is JSON");
            assert_eq!(listed["trouble"], Value::Null, "{listed}");
            let waits_for_alerts = recipe == "outcast";
            let is_there =
                listed["hosts"].as_array().is_some_and(|hosts| hosts.iter().all(|host| host["installed"] == true));
            let has_run = listed["runs"].as_u64() >= Some(CALM) || waits_for_alerts && begun.elapsed().as_secs() >= 2;
            (is_there && has_run).then_some(())
        });
        // A trigger of a host may fire, as when the others' packets come before the first of a flow: then the program asks, and raises nothing.
        let raised: Vec<_> = self.alerts.try_iter().filter(|(_, alert)| alert["host"] == "").collect();
        assert!(raised.is_empty(), "without a fault: {raised:?}");
    }

    /// Plants a fault, and waits for the alert of a program; returns it, and prints how long it took.
    fn plant(&self, program: &str, fault: impl FnOnce(&Self)) -> Value {
        let begun = Instant::now();
        fault(self);
        loop {
            let (at, alert) = self.alerts.recv_timeout(PATIENCE).expect("it is found");
            if alert["trigger"] == program {
                println!("{program}: found after {:?}", at - begun);
                return alert;
            }
        }
    }

    /// What `fleet` prints.
    fn fleet(&self, words: &str) -> String {
        let (folder, words) = (self.dir.path().to_owned(), format!("fleet {words} --credentials home/admin"));
        self.core.run(move || printed(&folder, &words))
    }

    /// Ends all of it.
    fn end(self) {
        for Sender { stop, running, .. } in self.senders {
            stop.store(true, Ordering::Relaxed);
            running.join().expect("it ends");
        }
        for agent in self.agents {
            assert_eq!(agent.end().0, Some(0));
        }
        drop(self.others);
        drop(self.hosts);
    }
}

/// A router, and hosts that reach each other through it.
fn namespaces() -> Result<(Namespace, Vec<Namespace>), String> {
    let core = alone(&["namespaces"])?;
    let hosts = HOSTS.map(|_| alone(&["namespaces"])).into_iter().collect::<Result<Vec<_>, _>>()?;
    core.run(|| {
        ip("ip link set lo up")?;
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").map_err(|error| error.to_string())
    })?;
    for (host, n) in hosts.iter().zip(1..) {
        cable((&core, &format!("c{n}"), &format!("10.8.{n}.1")), (host, "eth", &format!("10.8.{n}.2")))?;
        let gateway = format!("ip route add default via 10.8.{n}.1");
        host.run(move || {
            ip("ip link set lo up")?;
            ip(&gateway)
        })?;
        // One record is one packet on both sides of the router.
        for (namespace, name) in [(&core, format!("c{n}")), (host, "eth".to_owned())] {
            namespace.run(move || ip(&format!("ethtool -K {name} tso off gso off gro off")))?;
        }
    }
    Ok((core, hosts))
}

/// An agent that has been accepted.
fn agent(dir: &TempDir, core: &Namespace, host: &Namespace, name: &'static str, n: usize) -> Background {
    let folder = dir.path().to_owned();
    let token = core.run(move || printed(&folder, &format!("fleet invite {name} --credentials home/admin")));
    let folder = dir.path().to_owned();
    host.run(move || {
        let to = format!("--coordinator 10.8.{n}.1:7401 --credentials {name}");
        printed(&folder, &format!("fleet join {} {to}", token.trim()));
        let mut agent = Background::start(&folder, &format!("agent eth --log log-{name} --credentials {name}"));
        let notes = agent.says("attached to the coordinator");
        // It must not wait for a reader of its notes.
        thread::spawn(move || notes.lines().map_while(Result::ok).for_each(drop));
        agent
    })
}

/// The lines that a command prints, with the times at which they came.
fn lines_of(mut alerts: Background, coordinator: Background) -> (Vec<Background>, mpsc::Receiver<(Instant, Value)>) {
    let (to, lines) = mpsc::channel();
    let printed = BufReader::new(alerts.0.stdout.take().expect("it is piped"));
    thread::spawn(move || {
        for line in printed.lines().map_while(Result::ok) {
            let alert = serde_json::from_str(&line).expect("it is JSON");
            if to.send((Instant::now(), alert)).is_err() {
                return;
            }
        }
    });
    (vec![alerts, coordinator], lines)
}

/// Connects the senders to the receiver, which reads whatever comes.
fn connect(hosts: &[Namespace], connections: [usize; 3], rate: u64) -> Vec<Sender> {
    let all = connections.iter().sum();
    hosts[3].run(move || {
        let listener = TcpListener::bind(SINK).expect("the address is its own");
        thread::spawn(move || {
            for connection in listener.incoming().take(all) {
                let mut connection = connection.expect("somebody connects");
                // A connection that is broken is over.
                thread::spawn(move || drop(io::copy(&mut connection, &mut io::sink())));
            }
        });
    });
    let of_host = hosts.iter().zip(connections).flat_map(|(host, number)| vec![host; number]);
    of_host.map(|host| host.run(move || sender(rate))).collect()
}

/// Sends at a rate until it should stop, or for a minute.
fn sender(rate: u64) -> Sender {
    let mut to = TcpStream::connect(SINK).expect("the receiver listens");
    to.set_nodelay(true).and_then(|()| to.set_write_timeout(Some(STEP))).expect("it is open");
    let port = to.local_addr().expect("it is connected").port();
    let (rate, stop) = (Arc::new(AtomicU64::new(rate)), Arc::new(AtomicBool::new(false)));
    let running = {
        let (rate, stop) = (Arc::clone(&rate), Arc::clone(&stop));
        thread::spawn(move || {
            let begun = Instant::now();
            while !stop.load(Ordering::Relaxed) && begun.elapsed() < PATIENCE {
                let bytes = vec![0; (rate.load(Ordering::Relaxed) as f64 * STEP.as_secs_f64()) as usize];
                match to.write(&bytes) {
                    Ok(_) => thread::sleep(STEP),
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        })
    };
    Sender { rate, stop, port, running }
}

#[test]
fn a_heavy_source_is_found() {
    let Some(fleet) = Recipes::start("a_heavy_source_is_found", [1, 1, 1], 100_000) else { return };
    // Sender and receiver record each packet.
    fleet.add("heavy", "heavy-hitters", &[("limit", "1MB"), ("every", "500ms")]);
    let alert = fleet.plant("heavy.heavy", |fleet| fleet.senders[1].rate.store(5_000_000, Ordering::Relaxed));
    assert_eq!(alert["detail"], "src_ip 10.8.2.2", "{alert}");
    fleet.end();
}

#[test]
fn packets_that_a_queue_drops_are_found() {
    let Some(fleet) = Recipes::start("packets_that_a_queue_drops_are_found", [4, 1, 1], 500_000) else { return };
    let hosts = [("sender", "one"), ("src", "10.8.1.2"), ("receiver", "far"), ("dst", "10.8.4.2")];
    fleet.add("lost", "lost-between", &[&hosts[..], &[("limit", "10"), ("every", "500ms")]].concat());
    fleet.plant("lost.lost", |fleet| {
        // A fourth of what is sent passes.
        fleet.core.run(|| ip("tc qdisc add dev c4 root tbf rate 6mbit burst 5kb limit 15kb")).expect("it is there");
    });
    fleet.end();
}

#[test]
fn a_flow_that_is_shut_out_is_found() {
    let Some(fleet) = Recipes::start("a_flow_that_is_shut_out_is_found", [1, 1, 1], 400_000) else { return };
    let port = fleet.senders[0].port.to_string();
    let flow = [("flow", "first"), ("src", "10.8.1.2"), ("src_port", port.as_str()), ("dst", "10.8.4.2")];
    let times = [("receiver", "far"), ("silence", "300ms"), ("last", "500ms")];
    fleet.add("cast", "outcast", &[&flow[..], &times[..]].concat());
    let alert = fleet.plant("cast.outcast", |fleet| {
        fleet.core.run(|| ip("ip rule add from 10.8.1.2 to 10.8.4.2 blackhole")).expect("it is there");
    });
    assert_eq!(alert["host"], "", "{alert}");
    fleet.end();
}
