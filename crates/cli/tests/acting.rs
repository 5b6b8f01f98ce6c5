//! `queuescope live --for-real` stops acting when it should, and never touches exempt flows: between two network namespaces, as
//! root.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests run the command")]

use crate::namespaces;

use crate::common::ROOT;
use namespaces::{Ends, PATIENCE, until};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::{fs, thread};

/// Two namespaces with a queue of 50 Mb/s between them. If they cannot be made, prints why, and returns `None`.
fn ends(test: &str) -> Option<Ends> {
    let ends =
        Ends::new("tbf rate 50mbit burst 20kb limit 400kb").map_err(|why| println!("skipped: {test}: {why}")).ok()?;
    ends.near
        .run(|| assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("ip is there").success()));
    Some(ends)
}

/// The command, running in the near namespace, which serves metrics.
struct Live<'a> {
    ends: &'a Ends,
    child: Child,
    port: u16,
    /// The lines of standard output and of standard error.
    lines: Receiver<Value>,
    said: Receiver<String>,
}

impl<'a> Live<'a> {
    /// Watches the near end with these options.
    fn start(ends: &'a Ends, options: &str, session: &str) -> Self {
        let (options, session) = (options.to_owned(), session.to_owned());
        let mut child = ends.near.run(move || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
            command.current_dir(ROOT).args(["live", "near0", "--json", "--metrics", "127.0.0.1:0"]);
            // An empty `session` stands for one with addresses outside the test's networks.
            let session = if session.is_empty() { "192.0.2.1 1 192.0.2.2 2" } else { &session };
            command.args(shlex::split(&options).expect("quotes have ends")).env("SSH_CONNECTION", session);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs")
        });
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        thread::spawn(move || {
            for line in out.map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line}: {why}"));
                // The test may have ended already.
                let _ = sender.send(line);
            }
        });
        let (sender, said) = channel();
        let errors = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        thread::spawn(move || errors.map_while(Result::ok).for_each(|line| drop(sender.send(line))));
        let port = |line: String| {
            line.strip_prefix("metrics of near0: http://127.0.0.1:")?.strip_suffix("/metrics")?.parse().ok()
        };
        let port = said.iter().find_map(port).expect("it prints the address");
        let first: Value =
            lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{:?}", said.try_iter().collect::<Vec<_>>()));
        assert_eq!(first["kind"], "analysis");
        Self { ends, child, port, lines, said }
    }

    /// The value of the sample `name` whose line contains `label`.
    fn metric(&self, name: &str, label: &str) -> f64 {
        let port = self.port;
        let answer = self.ends.near.run(move || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
            stream.shutdown(Shutdown::Write).expect("it is open");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it is text");
            answer
        });
        let is_it = |line: &&str| line.starts_with(&format!("queuescope_{name}{{")) && line.contains(label);
        let line = answer.lines().find(is_it).unwrap_or_else(|| panic!("no {name} {label}: {answer}"));
        line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
    }

    fn dropped(&self) -> f64 {
        self.metric("acted_total", "\"dropped\"")
    }

    /// Sends traffic until more packets are dropped.
    fn drops(&self, traffic: &Traffic) {
        let before = self.dropped();
        until("packets are dropped", || {
            traffic.send();
            (self.dropped() > before).then_some(())
        });
    }

    /// Checks that acting has stopped for `reason`, with a message: no more packets are dropped, however many come.
    fn has_stopped(&self, traffic: &Traffic, reason: &str) {
        let event = self.next_event();
        assert_eq!(
            (&event["active"], &event["for_real"], &event["reason"]),
            (&false.into(), &false.into(), &reason.into()),
            "{event}"
        );
        let said = until("it is reported", || self.said.try_iter().find(|line| line.contains("acting has stopped")));
        assert!(event["meaning"].as_str().is_some_and(|meaning| said.contains(meaning)), "{said}: {event}");
        until("it shows", || (self.metric("acting", "") == 0.0).then_some(()));
        let (dropped, passed) = (self.dropped(), self.metric("packets_total", ""));
        until("packets pass", || {
            traffic.send();
            (self.metric("packets_total", "") > passed + 1000.0).then_some(())
        });
        assert_eq!(self.dropped(), dropped, "{reason}");
    }

    /// Checks that acting has resumed, with a message.
    fn has_resumed(&self, traffic: &Traffic) {
        let event = self.next_event();
        assert_eq!(
            (&event["active"], &event["for_real"], &event["reason"]),
            (&true.into(), &true.into(), &"resumed".into()),
            "{event}"
        );
        self.drops(traffic);
        assert_eq!(self.metric("acting", ""), 1.0);
    }

    /// The next line about acting.
    fn next_event(&self) -> Value {
        until("there is an event", || self.lines.try_iter().find(|line| line["kind"] == "acting"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Ends the command. Returns the counts under `skipped`.
    fn end(mut self) -> Value {
        self.signal(Signal::INT);
        let summary = self.lines.iter().last().expect("a summary");
        assert!(self.child.wait().expect("it ends").success());
        summary["skipped"].clone()
    }
}

/// Kills the command if a test fails, so that it does not keep acting.
impl Drop for Live<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Flows from the near end to the far one. The first flow, to port 7, has nine tenths of all bytes.
struct Traffic {
    flows: Vec<UdpSocket>,
    /// The socket that receives the first flow.
    far: UdpSocket,
}

impl Traffic {
    fn new(ends: &Ends) -> Self {
        let flows = ends.near.run(|| (0..4).map(|_| UdpSocket::bind("10.9.0.1:0").expect("there is a port")).collect());
        let far = ends.far.run(|| UdpSocket::bind("10.9.0.2:7").expect("there is a port"));
        set_socket_recv_buffer_size_force(&far, 32 << 20).expect("root may");
        far.set_nonblocking(true).expect("it can be");
        Self { flows, far }
    }

    /// Sends a burst: 150 large packets of the first flow, and 15 smaller ones of the others.
    fn send(&self) {
        for n in 0..150 {
            // Nothing listens at the other port, so a later send may fail with the ICMP error of an earlier one.
            let _ = self.flows[0].send_to(&[0; 1400], "10.9.0.2:7");
            if n % 10 == 0 {
                let _ = self.flows[1 + n / 10 % 3].send_to(&[0; 900], "10.9.0.2:9");
            }
        }
    }

    /// How many packets of the first flow have arrived since the last call.
    fn came(&self) -> u64 {
        std::iter::from_fn(|| self.far.recv(&mut [0; 1]).ok()).count() as u64
    }
}

#[test]
fn acting_stops_while_the_policy_file_is_not_clear() {
    let Some(ends) = ends("acting_stops_while_the_policy_file_is_not_clear") else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let policy = folder.path().join("policy");
    // Replace the file in one step, so that nobody reads half of it.
    let write = |text: &str| {
        let beside = folder.path().join("beside");
        fs::write(&beside, text).expect("there is room");
        fs::rename(&beside, &policy).expect("it is there");
    };
    let clear = "--drop --for-real";
    write(clear);
    let live = Live::start(&ends, &format!("--policy-file {}", policy.display()), "");
    let traffic = Traffic::new(&ends);
    live.drops(&traffic);
    let pipe = |path: &Path| {
        fs::remove_file(path).expect("it is there");
        assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo is there").success());
    };
    let changes: [(&str, &dyn Fn()); 7] = [
        ("file_missing", &|| fs::remove_file(&policy).expect("it is there")),
        ("file_empty", &|| write("")),
        ("file_empty", &|| write("# --drop --for-real\n")),
        ("off", &|| write("off\n--drop --for-real")),
        ("file_refused", &|| write("--dropp --for-real")),
        ("file_refused", &|| write("--drop --for-real --never 'delay > 1ms'")),
        ("file_refused", &|| pipe(&policy)),
    ];
    for (reason, change) in changes {
        change();
        live.has_stopped(&traffic, reason);
        write(clear);
        live.has_resumed(&traffic);
    }
    // A switch from one time limit to another.
    write("--drop --for-real --act-for 1ms");
    live.has_stopped(&traffic, "time_over");
    write(clear);
    live.has_resumed(&traffic);
    write("off");
    live.has_stopped(&traffic, "off");
    let skipped = live.end();
    let counted = ["acting_stopped", "acting_resumed", "policy_refused", "acting_over"].map(|name| &skipped[name]);
    assert_eq!(counted, [8, 8, 3, 1].map(Value::from).each_ref(), "{skipped}");
}

#[test]
fn a_policy_file_cannot_extend_the_limit_of_the_command_line() {
    let Some(ends) = ends("a_policy_file_cannot_extend_the_limit_of_the_command_line") else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let policy = folder.path().join("policy");
    fs::write(&policy, "--drop --for-real").expect("there is room");
    let live = Live::start(&ends, &format!("--act-for 1ms --policy-file {}", policy.display()), "");
    let traffic = Traffic::new(&ends);
    live.has_stopped(&traffic, "time_over");
    fs::write(&policy, "--mark --drop --for-real --act-for 1h").expect("there is room");
    let (dropped, passed) = (live.dropped(), live.metric("packets_total", ""));
    until("packets pass", || {
        traffic.send();
        (live.metric("packets_total", "") > passed + 1000.0).then_some(())
    });
    assert_eq!((live.dropped(), live.metric("acting", "")), (dropped, 0.0));
    let skipped = live.end();
    assert_eq!((&skipped["acting_over"], &skipped["acting_resumed"]), (&1.into(), &Value::Null), "{skipped}");
}

#[test]
fn an_exempt_flow_is_never_touched_while_it_fills_the_queue() {
    for never in ["", "--never 'tcp or (udp dst port 7 and dst net 10.9.0.0/24)'"] {
        // Each case has its own queue, so that packets of one case do not wait in the queue of the other.
        let Some(ends) = ends("an_exempt_flow_is_never_touched_while_it_fills_the_queue") else { return };
        let traffic = Traffic::new(&ends);
        let live = Live::start(&ends, &format!("--alpha 0.1% --hold 100ms --drop --for-real {never}"), "");
        let (mut sent, mut came) = (0, 0);
        until("enough is dropped", || {
            traffic.send();
            sent += 150;
            came += traffic.came();
            // The other flows send a tenth as many packets: if more are dropped, some are of the first flow.
            let least = if never.is_empty() { sent as f64 / 10.0 } else { 0.0 };
            (live.dropped() > least.max(200.0)).then_some(())
        });
        if never.is_empty() {
            assert_eq!(live.end()["exempt"], Value::Null);
        } else {
            until("all have come", || {
                came += traffic.came();
                (came >= sent).then_some(())
            });
            assert_eq!(came, sent);
            let skipped = live.end();
            assert!(skipped["exempt"].as_u64() > Some(100) && skipped["dropped"].as_u64() > Some(200), "{skipped}");
        }
    }
}

#[test]
fn the_ssh_session_of_the_user_is_never_touched() {
    let Some(ends) = ends("the_ssh_session_of_the_user_is_never_touched") else { return };
    let listener = ends.far.run(|| TcpListener::bind("10.9.0.2:0").expect("there is a port"));
    let to = listener.local_addr().expect("it has one");
    let mut near = ends.near.run(move || TcpStream::connect(to).expect("it listens"));
    let (mut far, from) = listener.accept().expect("somebody comes");
    let session = format!("{} {} {} {}", to.ip(), to.port(), from.ip(), from.port());
    let live = Live::start(&ends, "--tau 100us --hold 1h --drop=queue --for-real", &session);
    let reader = thread::spawn(move || std::io::copy(&mut far, &mut std::io::sink()).expect("it is read"));
    near.write_all(&vec![0; 4_000_000]).expect("it is read");
    drop(near);
    // Every packet of any other flow is dropped while the command runs.
    assert_eq!(reader.join().expect("it ends"), 4_000_000);
    let traffic = Traffic::new(&ends);
    live.drops(&traffic);
    let skipped = live.end();
    // The kernel counts super-packets, of 64 KiB at most: a busy machine makes them that long.
    assert!(skipped["exempt"].as_u64() >= Some(4_000_000 >> 16) && skipped["ssh_session"] == 1, "{skipped}");
}

#[test]
fn a_suspended_command_stops_acting() {
    let Some(ends) = ends("a_suspended_command_stops_acting") else { return };
    // One departure keeps the queue "too deep" for an hour.
    let live = Live::start(&ends, "--every-packet --hold 1h --drop=queue --for-real", "");
    let traffic = Traffic::new(&ends);
    live.drops(&traffic);
    live.drops(&traffic);
    traffic.came();
    live.signal(Signal::STOP);
    let mut came = 0;
    until("packets pass", || {
        let _ = traffic.flows[0].send_to(&[0; 100], "10.9.0.2:7");
        came += traffic.came();
        (came >= 100).then_some(())
    });
    live.signal(Signal::CONT);
    live.drops(&traffic);
    let skipped = live.end();
    assert!(skipped["acting_lapsed"].as_u64() >= Some(1), "{skipped}");
}

#[test]
fn limits_of_acting_that_have_no_effect_are_refused() {
    let Some(ends) = ends("limits_of_acting_that_have_no_effect_are_refused") else { return };
    for (words, why) in [
        ("--never tcp", "name one with --mark, --drop, --limit or --policy-file"),
        ("--act-for 1s", "name one with --mark, --drop, --limit or --policy-file"),
        ("--drop --never delay>5ms", "`delay` is not known of a flow before the queue"),
        ("--drop --hold 2h", "use 1us to 1h"),
        ("--policy-file /nowhere/policy --hold 1s", "cannot be used with"),
    ] {
        let command: Vec<_> = ["live", "near0"].into_iter().chain(words.split(' ')).collect();
        let output = ends.near.run(move || {
            Command::new(env!("CARGO_BIN_EXE_queuescope")).args(command).output().expect("the command runs")
        });
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(why), "{words}: {said}");
    }
}
