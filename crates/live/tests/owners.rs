//! Owners of flows: processes in a network namespace that the test made, as root.
#![allow(clippy::disallowed_methods, reason = "tests start programs, and this one starts itself")]

use crate::common::Ends;
use queuescope_live::{Owner, Owners, now};
use queuescope_wire::{FlowKey, Granularity, Nanos, Prefixes};
use std::io::{BufRead, BufReader, Lines, Write, stdin};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The environment variable that makes this program another process, and gives its role.
const ROLE: &str = "QUEUESCOPE_TEST_ROLE";
/// Longer than any search takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The other process; as a test it does nothing.
#[test]
fn is_another_process() {
    match std::env::var(ROLE).as_deref() {
        Ok("holds") => holds(),
        Ok(flow) => looks(flow),
        Err(_) => {}
    }
}

/// Holds sockets of all kinds, and prints the flows that leave them.
fn holds() {
    let peer = stdin().lines().next().expect("there is a line").expect("it is text");
    let connected = UdpSocket::bind("10.9.0.1:0").expect("there is a port");
    connected.connect("10.9.0.2:9").expect("it can be");
    let [any, any_v6, dual] = ["0.0.0.0:0", "[fd09::1]:0", "[::]:0"].map(|at| UdpSocket::bind(at).expect("a port"));
    let streams = ["10.9.0.2", "[fd09::2]", "[::ffff:10.9.0.2]"]
        .map(|at| TcpStream::connect(format!("{at}:{peer}")).expect("somebody listens"));
    let waits = TcpListener::bind("0.0.0.0:0").expect("there is a port");
    let port = |socket: &UdpSocket| socket.local_addr().expect("it has one").port();
    let of = |stream: &TcpStream| stream.local_addr().expect("it has one").port();
    println!("\nflow 10.9.0.1:{} > 10.9.0.2:9 udp", port(&connected));
    println!("flow 10.9.0.1:{} > 10.9.0.2:9 udp", port(&any));
    println!("flow [fd09::1]:{} > [fd09::2]:9 udp", port(&any_v6));
    println!("flow 10.9.0.1:{} > 10.9.0.2:9 udp", port(&dual));
    println!("flow 10.9.0.1:{} > 10.9.0.2:{peer} tcp", of(&streams[0]));
    println!("flow [fd09::1]:{} > [fd09::2]:{peer} tcp", of(&streams[1]));
    println!("flow 10.9.0.1:{} > 10.9.0.2:{peer} tcp", of(&streams[2]));
    // From another address, but a port that a socket here is bound to; and from a port of no socket.
    println!("none 10.9.0.77:{} > 10.9.0.2:9 udp", port(&any));
    println!("none 10.9.0.77:{} > 10.9.0.2:9 udp", port(&dual));
    println!("none [fd09::77]:{} > [fd09::3]:9 udp", port(&dual));
    println!("none 10.9.0.77:{} > 10.9.0.2:9 tcp", waits.local_addr().expect("it has one").port());
    println!("none 10.9.0.1:1 > 10.9.0.2:9 udp\nnone 10.9.0.1 > 10.9.0.2 icmp\nend");
    // Until standard input is closed.
    let _ = stdin().lines().next();
}

/// Finds the owner of a flow, and prints it.
fn looks(flow: &str) {
    let mut owners = Owners::new("near0").expect("every user may");
    let owner = owner_of(&mut owners, flow, now()).expect("it has a socket");
    let hidden = owners.counts().hidden;
    println!("\n{:?} {:?} {} {hidden}", owner.pid, owner.uid, owner.cgroup.clone().unwrap_or_default());
}

/// A process that holds sockets, and the flows that it printed.
struct Holder {
    child: Child,
    wanted: ChildStdin,
    flows: Vec<String>,
    others: Vec<String>,
    /// Keeps the pipe open, so that the process can write to it.
    _output: Lines<BufReader<ChildStdout>>,
    /// The peer of the connections; they last until it is dropped, without being accepted.
    _peer: TcpListener,
}

impl Holder {
    fn new(ends: &Ends, cgroup: Option<&Cgroup>) -> Self {
        let peer = ends.far.run(|| TcpListener::bind("[::]:0").expect("there is a port"));
        let mut child = ends.near.run(|| {
            let mut command = Command::new(std::env::current_exe().expect("it has a name"));
            command.args(["--exact", "owners::is_another_process", "--nocapture"]).env(ROLE, "holds");
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts")
        });
        if let Some(cgroup) = cgroup {
            cgroup.take(&child);
        }
        let mut wanted = child.stdin.take().expect("it is piped");
        writeln!(wanted, "{}", peer.local_addr().expect("it has one").port()).expect("it reads");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let printed: Vec<_> = lines.by_ref().map_while(Result::ok).take_while(|line| line != "end").collect();
        let of =
            |kind| printed.iter().filter_map(|line| line.strip_prefix(kind)).map(str::to_owned).collect::<Vec<_>>();
        let (flows, others) = (of("flow "), of("none "));
        assert!((flows.len(), others.len()) == (7, 6), "{printed:?}");
        Self { child, wanted, flows, others, _output: lines, _peer: peer }
    }

    fn end(mut self) {
        drop(self.wanted);
        assert!(self.child.wait().expect("it ends").success());
    }
}

fn key(name: &str) -> FlowKey {
    FlowKey::named(name).unwrap_or_else(|| panic!("{name} is not a name")).1
}

/// The owner of a flow, of which a packet was reported at `at`.
fn owner_of(owners: &mut Owners, flow: &str, at: Nanos) -> Option<Arc<Owner>> {
    owners.seen(&key(flow), at);
    owners.settle(PATIENCE);
    owners.by(Granularity::FiveTuple).get(&key(flow)).cloned()
}

fn ends(test: &str) -> Option<Ends> {
    Ends::new("pfifo").map_err(|why| println!("skipped: {test}: {why}")).ok()
}

#[test]
fn flows_of_all_kinds_of_sockets_have_an_owner_and_others_have_none() {
    let Some(ends) = ends("flows_of_all_kinds_of_sockets_have_an_owner_and_others_have_none") else { return };
    let holder = Holder::new(&ends, None);
    let (pid, flows, others) = (holder.child.id(), holder.flows.clone(), holder.others.clone());
    let mut owners = ends.near.run(move || {
        // A socket can then be bound to any address, so that the address does not identify the owner.
        for family in ["ipv4", "ipv6"] {
            std::fs::write(format!("/proc/sys/net/{family}/ip_nonlocal_bind"), "1").expect("it is ours");
        }
        let mut owners = Owners::new("near0").unwrap_or_else(|error| panic!("{error}"));
        flows.iter().chain(&others).for_each(|flow| owners.seen(&key(flow), now()));
        owners.settle(PATIENCE);
        let found = owners.by(Granularity::FiveTuple);
        for flow in &flows {
            let owner = found.get(&key(flow)).unwrap_or_else(|| panic!("{flow} has no owner"));
            assert_eq!((owner.pid, owner.uid), (Some(pid), Some(0)), "{flow}");
            // The kernel keeps the first 15 bytes of a command.
            let own = std::env::current_exe().expect("it has a name");
            let own = own.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            assert!(
                owner.command.as_ref().is_some_and(|command| own.get(..15).unwrap_or(&own) == command),
                "{owner:?} {own}"
            );
            assert!(owner.cgroup.is_some(), "{owner:?}");
        }
        others.iter().for_each(|flow| assert_eq!(found.get(&key(flow)), None, "{flow}"));
        assert_eq!(found.len(), flows.len());
        // Only one process of this machine sends to the first destination; to the second, flows from elsewhere go, too.
        let to = |name| owners.by(Granularity::Destination(Prefixes::WHOLE)).get(&key(name)).cloned();
        assert_eq!(to("> fd09::2").and_then(|owner| owner.pid), Some(pid));
        assert_eq!(to("> 10.9.0.2"), None);
        owners
    });
    let flow = holder.flows[0].clone();
    holder.end();
    // After the process has ended, its flow still has an owner, but a new instance does not find one.
    let later = Nanos(now().0 + 100_000_000_000);
    assert_eq!(owner_of(&mut owners, &flow, later).and_then(|owner| owner.pid), Some(pid));
    ends.near.run(move || {
        let mut late = Owners::new("near0").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(owner_of(&mut late, &flow, now()), None);
    });
    assert_eq!(owners.counts(), Default::default());
}

#[test]
fn a_missing_interface_is_an_error() {
    let refused = Owners::new("missing0").map(drop).expect_err("there is none");
    assert!(refused.to_string().contains("no interface missing0"), "{refused}");
}

#[test]
fn without_rights_only_the_user_and_the_cgroup_are_found() {
    let test = "without_rights_only_the_user_and_the_cgroup_are_found";
    let Some(ends) = ends(test) else { return };
    let cgroup = match Cgroup::new() {
        Ok(cgroup) => cgroup,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    let holder = Holder::new(&ends, Some(&cgroup));
    let (flow, pid) = (holder.flows[4].clone(), holder.child.id());
    let seen = flow.clone();
    let owner = ends.near.run(move || owner_of(&mut Owners::new("near0").expect("it is there"), &seen, now()));
    let owner = owner.expect("it has a socket");
    assert_eq!((owner.pid, owner.cgroup.as_deref()), (Some(pid), Some(&*cgroup.path())));
    // As the user nobody.
    let output = ends.near.run(move || {
        let folder = tempfile::tempdir().expect("there is room");
        let copy = folder.path().join("looks");
        // Another process copies it: if this process had the copy open for writing while another test starts a program, that program would
        // inherit the open file, and the copy could not be run.
        let copied = Command::new("cp").arg(std::env::current_exe().expect("it has a name")).arg(&copy).status();
        assert!(copied.expect("cp is there").success());
        for path in [folder.path(), &copy] {
            let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(path, open).expect("it is ours");
        }
        let mut command = Command::new(&copy);
        command.args(["--exact", "owners::is_another_process", "--nocapture"]).env(ROLE, flow);
        command.uid(65_534).gid(65_534).output().expect("it runs")
    });
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = format!("None Some(0) {} 1", cgroup.path());
    assert!(printed.lines().any(|line| line == expected), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    holder.end();
}

/// A cgroup of the unified hierarchy; dropping it removes it if no process is in it.
struct Cgroup(std::path::PathBuf);

impl Cgroup {
    fn new() -> Result<Self, String> {
        let roots = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].map(std::path::Path::new);
        let root = roots.into_iter().find(|root| root.join("cgroup.procs").exists());
        let folder = root.ok_or("there is no cgroup2")?.join(format!("queuescope-{}", std::process::id()));
        let made = std::fs::create_dir(&folder).map_err(|why| format!("{}: {why}", folder.display()));
        made.map(|()| Self(folder))
    }

    fn take(&self, child: &Child) {
        std::fs::write(self.0.join("cgroup.procs"), child.id().to_string()).expect("it is ours");
    }

    fn path(&self) -> String {
        format!("/{}", self.0.file_name().expect("it has one").to_string_lossy())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // After a failed test, a process may still be in it.
        let _ = std::fs::remove_dir(&self.0);
    }
}
