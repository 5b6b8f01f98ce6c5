//! Congestion controls that the kernel lacks, on real connections: between two network namespaces, as root.
#![allow(clippy::disallowed_methods, reason = "tests start programs and read settings of the kernel")]

use crate::common::{Ends, alone, ip, until};
use aya::maps::{MapType, loaded_maps};
use queuescope_live::traffic::{Ended, SendParams, ServeParams, Start, listen, send, serve, take_with};
use queuescope_live::{Acting, Action, Control, Controls, Namespace, Probe, ProbeParams, Weigh};
use queuescope_queue::{Curve, Response, Step, Steps};
use queuescope_wire::Nanos;
use std::fs;
use std::io::{BufRead, BufReader, stdin};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;

/// The abilities that these tests need.
const NEEDED: [&str; 3] = ["namespaces", "btf", "struct_ops"];
/// The abilities of tests with a probe between the hosts.
const PROBED: [&str; 6] = ["namespaces", "btf", "ringbuf", "tp_btf", "tcx", "struct_ops"];

/// The environment variable that makes this program the process that is killed.
const KILLED: &str = "QUEUESCOPE_TEST_HAS_CONTROLS";

/// Two hosts with this queue between them; none, with a message, where they cannot be made.
fn ends(test: &str, needed: &[&str], qdisc: &str) -> Option<Ends> {
    Ends::needing(needed, qdisc).map_err(|why| println!("skipped: {test}: {why}")).ok()
}

/// Measurements of a flow.
#[derive(Debug)]
struct FlowResult {
    /// The smoothed round-trip time in the middle of the flow.
    rtt: Nanos,
    /// The duration, and the number of retransmitted segments.
    took: Nanos,
    retransmitted: u32,
    ecn: bool,
}

/// Runs a flow of `bytes` bytes with this congestion control at both ends.
fn flow((near, far): (&Namespace, &Namespace), control: &str, bytes: u64, midway: Nanos) -> FlowResult {
    let (stop, stopped) = UnixStream::pair().expect("there are sockets");
    let name = control.to_owned();
    let (at, server) = far.run(move || {
        let listener = listen("10.9.0.2:0".parse().expect("it is one")).expect("there is a port");
        take_with(&listener, &name).unwrap_or_else(|error| panic!("{error}"));
        let at: SocketAddr = listener.local_addr().expect("it listens");
        let params = ServeParams::default();
        (at, thread::spawn(move || serve(&listener, params, stopped.as_fd()).expect("it can be waited for")))
    });
    let name = control.to_owned();
    let flow = near.run(move || {
        let (_stop, stopped) = UnixStream::pair().expect("there are sockets");
        let (to, wait) = (at, Nanos(60_000_000_000));
        let params = SendParams { to, open: 1, wait, congestion: vec![name], ecn: false, midway: Some(midway) };
        let start = Start { at: Nanos(0), bytes, class: 0, congestion: 0, ends: None, stop: Nanos::MAX };
        let mut ended: Vec<Ended> = Vec::new();
        let sent = send(&params, std::iter::once(start), stopped.as_fd(), |flow| {
            ended.push(*flow);
            Ok(())
        });
        sent.expect("it can be waited for");
        ended.remove(0)
    });
    let done = flow.result.unwrap_or_else(|why| panic!("{control}: {why:?}"));
    drop(stop);
    assert_eq!(server.join().expect("it ends").bytes, bytes, "{control}");
    FlowResult { rtt: flow.progress[0].rtt, took: done.took, retransmitted: done.retransmitted, ecn: done.ecn }
}

/// The congestion controls that the kernel has now.
fn available() -> Vec<String> {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("it is there");
    available.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn each_carries_data_and_vegas_keeps_the_queue_short() {
    let test = "each_carries_data_and_vegas_keeps_the_queue_short";
    let Some(ends) = ends(test, &NEEDED, "tbf rate 20mbit burst 5kb limit 200kb") else { return };
    let controls = Controls::load(&Control::ALL).unwrap_or_else(|error| panic!("{error}"));
    let met = |control: &str| {
        let met = flow((&ends.near, &ends.far), controls.name(control), 3_000_000, Nanos(700_000_000));
        println!("{control}: {met:?}");
        // 3 MB with headers take 1.2 s; on a busy machine other programs take time, too.
        assert!(met.took < Nanos(6_000_000_000), "{control}: {met:?}");
        met
    };
    // On a busy machine a moment's round-trip time may be too long, and a sender that pauses leaves the queue short. So the longest of some
    // flows counts for a control that fills the queue, and the shortest for one that does not.
    let fills = |control: &str, more_than: Nanos| {
        let flow = extreme(|| met(control), |flow| flow.rtt > more_than, |flow| flow.rtt);
        assert!(flow.rtt > more_than, "{control}: {flow:?}");
        flow
    };
    let keeps_short = |control: &str, less_than: Nanos| {
        let flow = extreme(|| met(control), |flow| flow.rtt < less_than, |flow| std::cmp::Reverse(flow.rtt));
        assert!(flow.rtt < less_than, "{control}: {flow:?}");
        flow
    };
    // The longest of up to five, so that Vegas's is compared with a queue that is as full as this machine can make it.
    let cubic = extreme(|| met("cubic"), |flow| flow.rtt > Nanos(40_000_000), |flow| flow.rtt);
    assert!(cubic.rtt > Nanos(20_000_000), "{cubic:?}");
    let vegas = keeps_short("vegas", Nanos(cubic.rtt.0 / 5));
    assert_eq!(vegas.retransmitted, 0, "{vegas:?}");
    keeps_short("lola", Nanos(cubic.rtt.0 / 2));
    // They react to losses.
    for control in ["illinois", "highspeed", "scalable", "htcp", "bic"] {
        fills(control, Nanos(15_000_000));
    }
    // Its ends negotiate ECN regardless of the settings of the namespaces.
    let dctcp = met("dctcp");
    assert!(dctcp.ecn && !vegas.ecn, "{dctcp:?} {vegas:?}");
    // They react to losses, too; YeAH allows a long queue, and removes a longer one.
    for control in ["veno", "westwood", "hybla", "yeah"] {
        assert!(!fills(control, Nanos(10_000_000)).ecn, "{control}");
    }
    let [bbr3, prague] = ["bbr3", "prague"].map(met);
    assert!(prague.ecn && !bbr3.ecn, "{prague:?} {bbr3:?}");
}

/// The flow with the highest value of up to five: the first one that is as wanted, if any is.
fn extreme<K: Ord>(
    flow: impl Fn() -> FlowResult,
    is_wanted: impl Fn(&FlowResult) -> bool,
    value: impl Fn(&FlowResult) -> K,
) -> FlowResult {
    let mut highest = flow();
    for _ in 1..5 {
        if is_wanted(&highest) {
            break;
        }
        let next = flow();
        if value(&next) > value(&highest) {
            highest = next;
        }
    }
    highest
}

/// A namespace behind the near end, which forwards its packets to the far one. A sender limits the backlog in queues of its own machine,
/// and such windows would say nothing about the congestion control.
fn sender(ends: &Ends) -> Namespace {
    let namespace = Namespace::new().unwrap_or_else(|error| panic!("{error}"));
    let number = namespace.number();
    let all = |commands: &[&str]| {
        let done = commands.iter().try_for_each(|command| ip(command));
        done.unwrap_or_else(|error| panic!("{error}"));
    };
    ends.near.run(move || {
        let cable = format!("ip link add up0 type veth peer name near0 netns {number}");
        all(&[&cable, "ip addr add 10.8.0.2/24 dev up0", "ip link set up0 up"]);
        fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("it is there");
    });
    ends.far.run(move || all(&["ip route add 10.8.0.0/24 via 10.9.0.1"]));
    namespace.run(move || {
        // A mark on a super-packet would apply to each of its segments.
        all(&["ip addr add 10.8.0.1/24 dev near0", "ip link set near0 gso_max_segs 1"]);
        all(&["ip link set near0 up", "ip route add default via 10.8.0.2"]);
        // Only in this namespace; 1 makes connections negotiate ECN.
        fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").expect("it is there");
    });
    namespace
}

/// If each packet is marked with the same probability `p`, the window is about `2 / p` segments with DCTCP and Prague, and `sqrt(2 / p)` with
/// Reno; the queue before a slow link has about that length.
#[test]
fn dctcp_and_prague_react_to_marks_in_proportion() {
    let test = "dctcp_and_prague_react_to_marks_in_proportion";
    let Some(ends) = ends(test, &PROBED, "tbf rate 100mbit burst 5kb limit 2mb") else { return };
    let controls = Controls::load(&[Control::Dctcp, Control::Prague]).unwrap_or_else(|error| panic!("{error}"));
    let sender = sender(&ends);
    // The shortest and the longest of three flows in which nearly all marks were made: marks that the kernel skips make the queue longer, and
    // a sender that a busy machine keeps waiting makes it shorter.
    let sojourn_times = |control: &str, probability: f64| {
        let curve = Curve::Steps(Steps::new([Step { from: 0.0, probability }]).expect("it is one"));
        let action = Action::Respond(Response::MarkOnly);
        let acting = Acting { action, weigh: Weigh::Queue, curve, dry: false, ..Acting::default() };
        let waits = (0..3).map(|_| {
            let acting = acting.clone();
            let probe = ends.near.run(move || {
                let mut probe =
                    Probe::attach("near0", ProbeParams::default()).unwrap_or_else(|error| panic!("{error}"));
                probe.act(&acting).expect("it can");
                probe
            });
            let met = flow((&sender, &ends.far), controls.name(control), 10_000_000, Nanos(500_000_000));
            let (acted, counted) = (probe.acted().expect("it is there"), probe.counters().expect("it is there"));
            assert!(met.ecn && acted.marked > 0, "{met:?} {acted:?}");
            let expected = probability * counted.packets as f64;
            (acted.marked as f64 > 0.7 * expected, counted.delay.0 / counted.packets.max(1))
        });
        let waits: Vec<_> = waits.collect();
        println!("{control} {probability}: {waits:?} ns");
        let marked = || waits.iter().filter(|(is_marked, _)| *is_marked).map(|(_, wait)| *wait);
        let ends = [marked().min(), marked().max()];
        ends.map(|end| end.expect("the kernel made nearly all marks of one flow"))
    };
    let [reno, _] = sojourn_times("reno", 1.0 / 64.0);
    for control in ["dctcp", "prague"] {
        let [[_, few], [some, _]] = [1.0 / 64.0, 1.0 / 8.0].map(|probability| sojourn_times(control, probability));
        assert!(few > 2 * some, "{control}: {few} {some}");
        assert!(few > 2 * reno, "{control}: {few} {reno}");
    }
}

#[test]
fn without_ecn_dctcp_is_reno() {
    let test = "without_ecn_dctcp_is_reno";
    let Some(ends) = ends(test, &NEEDED, "tbf rate 50mbit burst 20kb limit 100kb") else { return };
    let controls = Controls::load(&[Control::Dctcp]).unwrap_or_else(|error| panic!("{error}"));
    ends.far.run(|| fs::write("/proc/sys/net/ipv4/tcp_ecn", "0").expect("it is there"));
    let (listener, name) =
        (ends.far.run(|| listen("10.9.0.2:0".parse().expect("it is one"))), controls.name("dctcp").to_owned());
    let at = listener.as_ref().expect("there is a port").local_addr().expect("it listens");
    let became = ends.near.run(move || {
        use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("there are sockets");
        sockopt::set_tcp_congestion(&socket, &name).expect("it is there");
        connect(&socket, &at).expect("it listens");
        (sockopt::tcp_congestion(&socket).expect("it has one"), sockopt::ip_tos(&socket).expect("it has one"))
    });
    // Nor are its packets ECN-capable.
    assert_eq!(became, ("reno".to_owned(), 0));
}

/// The process that is killed; as a test it does nothing.
#[test]
fn is_killed() {
    if std::env::var_os(KILLED).is_none() {
        return;
    }
    let controls = Controls::load(&Control::ALL).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<_> = Control::ALL.iter().map(|control| controls.name(control.name())).collect();
    println!("\nhas {}", names.join(" "));
    // Runs until it is killed, or until the other end of standard input is closed.
    let _ = stdin().lines().next();
}

/// Starts another process with all congestion controls; returns it and their names.
fn process() -> (Child, Vec<String>) {
    let mut command = Command::new(std::env::current_exe().expect("it has a name"));
    command.args(["--exact", "controls::is_killed", "--nocapture"]).env(KILLED, "yes");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let output = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let line = output.map_while(Result::ok).find_map(|line| line.strip_prefix("has ").map(str::to_owned));
    let names = line.unwrap_or_else(|| panic!("{child:?} has none"));
    (child, names.split(' ').map(str::to_owned).collect())
}

#[test]
fn processes_do_not_clash_and_leave_nothing_behind() {
    if let Err(why) = alone(&NEEDED) {
        return println!("skipped: processes_do_not_clash_and_leave_nothing_behind: {why}");
    }
    let maps = |names: &[String]| {
        let of_names = |map: &aya::maps::MapInfo| {
            matches!(map.map_type(), Ok(MapType::StructOps))
                && map.name_as_str().is_some_and(|name| names.iter().any(|other| other == name))
        };
        loaded_maps().filter_map(Result::ok).filter(of_names).count()
    };
    let mut processes = [process(), process()];
    let mine = [Controls::load(&[Control::Vegas]), Controls::load(&[Control::Vegas])];
    let mine = mine.map(|controls| controls.unwrap_or_else(|error| panic!("{error}")));
    let mut names: Vec<_> = processes.iter().flat_map(|(_, names)| names.clone()).collect();
    names.extend(mine.iter().map(|controls| controls.name("vegas").to_owned()));
    let has = |names: &[String]| names.iter().filter(|name| available().contains(name)).count();
    let of_processes = processes.len() * Control::ALL.len();
    let all = of_processes + 2;
    assert_eq!((has(&names), maps(&names)), (all, all), "{names:?} {:?}", available());
    for (child, _) in &mut processes {
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
    }
    // The kernel removes a name when its link is closed, and frees the map some time later.
    let (dead, mine_names) = names.split_at(of_processes);
    assert_eq!((has(dead), has(mine_names)), (0, 2), "{:?}", available());
    until("the maps are gone", || (maps(dead) == 0).then_some(()));
    drop(mine);
    assert_eq!(has(&names), 0, "{:?}", available());
}

#[test]
fn only_controls_that_the_kernel_lacks_are_registered() {
    if let Err(why) = alone(&NEEDED) {
        return println!("skipped: only_controls_that_the_kernel_lacks_are_registered: {why}");
    }
    let names = ["reno", "vegas", "nonsense", "vegas"].map(str::to_owned);
    let has_vegas = available().iter().any(|name| name == "vegas");
    let controls = Controls::missing(&names).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(controls.all().collect::<Vec<_>>(), if has_vegas { vec![] } else { vec![Control::Vegas] });
    assert_eq!(["reno", "nonsense"].map(|name| controls.name(name)), ["reno", "nonsense"]);
    assert_eq!(controls.name("vegas") == "vegas", has_vegas);
}
