//! Named flows between two network namespaces are dropped, marked and limited, as root; and nothing of it remains.
#![allow(clippy::disallowed_methods, reason = "tests start programs, and this one starts itself")]

use crate::common::{Ends, until};
use aya::programs::{SchedClassifier, TcAttachType};
use queuescope_live::capture::{Capture, CaptureParams};
use queuescope_live::{Condition, Field, FlowAction, FlowActs, FlowMatch, FlowOrder, Never, now};
use queuescope_wire::{ByteCount, Nanos, Rate};
use std::io::{BufRead, BufReader, stdin};
use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::process::{Command, Stdio};

/// The port of the receiver.
const PORT: u16 = 7010;
/// Longer than any test.
const LONG: Nanos = Nanos(600_000_000_000);

fn ends(test: &str) -> Option<Ends> {
    let needed = ["namespaces", "btf", "tcx"];
    Ends::needing(&needed, "pfifo limit 10000").map_err(|why| println!("skipped: {test}: {why}")).ok()
}

/// All flows may be acted on.
fn all() -> Never {
    Never::new([vec![]]).expect("it fits")
}

fn acts() -> FlowActs {
    FlowActs::prepare("near0", &Never::default(), &all()).unwrap_or_else(|error| panic!("{error}"))
}

/// The packets of a sender of these tests.
fn from(port: u16) -> FlowMatch {
    let (src, dst) = ("10.9.0.1".parse().ok(), "10.9.0.2".parse().ok());
    FlowMatch { src, dst, src_port: Some(port), dst_port: Some(PORT), protocol: Some(17) }
}

fn order(flow: FlowMatch, action: FlowAction) -> FlowOrder {
    FlowOrder { flow, action, until: now().saturating_add(LONG), dry: false }
}

/// The numbers of the programs before the queue. Runs in the near namespace.
fn before_the_queue() -> Vec<u32> {
    let (_, programs) = SchedClassifier::query_tcx("near0", TcAttachType::Egress).expect("it is there");
    programs.iter().map(aya::programs::ProgramInfo::id).collect()
}

/// A sender, and how it gets the attention of the receiver.
struct Sender(UdpSocket);

impl Sender {
    fn new(port: u16) -> Self {
        let socket = UdpSocket::bind(("10.9.0.1", port)).expect("there is a port");
        socket.connect(("10.9.0.2", PORT)).expect("it can");
        Self(socket)
    }

    fn send(&self, bytes: usize) {
        until("it is sent", || self.0.send(&vec![7; bytes]).ok());
    }
}

/// A receiver in the far namespace.
fn receiver(ends: &Ends) -> UdpSocket {
    ends.far.run(|| {
        let socket = UdpSocket::bind(("10.9.0.2", PORT)).expect("there is a port");
        socket.set_nonblocking(true).expect("it can");
        socket
    })
}

/// The ports from which packets came since the last call.
fn came(receiver: &UdpSocket) -> Vec<u16> {
    let mut buffer = [0; 2_000];
    std::iter::from_fn(|| receiver.recv_from(&mut buffer).ok()).map(|(_, from)| from.port()).collect()
}

#[test]
fn a_named_flow_is_dropped_until_its_time_ends() {
    let Some(ends) = ends("a_named_flow_is_dropped_until_its_time_ends") else { return };
    let far = receiver(&ends);
    ends.near.run(move || {
        let mut acts = acts();
        assert!(before_the_queue().is_empty(), "preparing attaches nothing");
        acts.renew(now().saturating_add(LONG)).expect("it can");
        let [dropped, other] = [9_001, 9_002].map(Sender::new);
        let short =
            FlowOrder { until: now().saturating_add(Nanos(400_000_000)), ..order(from(9_001), FlowAction::Drop) };
        let place = acts.begin(&short).expect("it can").expect("there is room");
        assert_eq!(before_the_queue().len(), 1);
        let passed = until("its time ends", || {
            let at = now();
            dropped.send(100);
            other.send(100);
            let ports = until("a packet passes", || Some(came(&far)).filter(|ports| !ports.is_empty()));
            // Packets pass a veth in order.
            ports.contains(&9_001).then_some(at)
        });
        let outcome = acts.outcome(place).expect("it is there");
        assert!(passed.saturating_add(Nanos(50_000_000)) >= short.until, "{passed:?} {short:?}");
        assert!(outcome.met > 0 && outcome.dropped == outcome.met && outcome.touched() == outcome.met, "{outcome:?}");
        acts.end(place).expect("it can");
        assert!(before_the_queue().is_empty() && !acts.is_attached());
    });
}

#[test]
fn all_orders_end_with_the_lease() {
    let Some(ends) = ends("all_orders_end_with_the_lease") else { return };
    let far = receiver(&ends);
    ends.near.run(move || {
        let mut acts = acts();
        let sender = Sender::new(9_001);
        let place = acts.begin(&order(from(9_001), FlowAction::Drop)).expect("it can").expect("there is room");
        // Nothing was renewed yet, so nothing is followed.
        sender.send(10);
        until("it passes", || (!came(&far).is_empty()).then_some(()));
        acts.renew(now().saturating_add(LONG)).expect("it can");
        until("it is dropped", || {
            sender.send(10);
            (acts.outcome(place).expect("it is there").dropped > 5).then_some(())
        });
        came(&far);
        acts.renew(now().saturating_add(Nanos(200_000_000))).expect("it can");
        until("the lease ends", || {
            sender.send(10);
            (!came(&far).is_empty()).then_some(())
        });
        assert!(acts.is_attached(), "the order itself goes on");
    });
}

#[test]
fn a_limit_lets_pass_what_the_rate_allows() {
    let Some(ends) = ends("a_limit_lets_pass_what_the_rate_allows") else { return };
    let _far = receiver(&ends);
    ends.near.run(|| {
        let mut acts = acts();
        acts.renew(now().saturating_add(LONG)).expect("it can");
        let (rate, burst) = (Rate::from_bits_per_second(8_000_000).expect("it is one"), ByteCount(15_000));
        let sender = Sender::new(9_001);
        let limit = order(from(9_001), FlowAction::Limit { rate, burst });
        for dry in [true, false] {
            let place = acts.begin(&FlowOrder { dry, ..limit }).expect("it can").expect("there is room");
            let begun = now();
            (0..2_000).for_each(|_| sender.send(1_000));
            let outcome = acts.outcome(place).expect("it is there");
            let wire = 1_000 + 8 + 20 + 14;
            // A byte takes a microsecond; one packet may pass with less than its bytes.
            let most = burst.0 + now().saturating_sub(begun).0 / 1_000 + wire;
            assert!(outcome.met == 2_000 && outcome.spared + outcome.dropped == 2_000, "{outcome:?}");
            assert!(outcome.spared >= burst.0 / wire && outcome.spared * wire <= most, "{outcome:?} {most}");
            acts.end(place).expect("it can");
        }
    });
}

#[test]
fn only_packets_with_ecn_are_marked_and_checksums_stay_right() {
    let Some(ends) = ends("only_packets_with_ecn_are_marked_and_checksums_stay_right") else { return };
    let far = receiver(&ends);
    let mut capture = ends
        .far
        .run(|| Capture::open("far0", CaptureParams { snaplen: 128, ..CaptureParams::default() }))
        .unwrap_or_else(|error| panic!("{error}"));
    ends.near.run(move || {
        let mut acts = acts();
        acts.renew(now().saturating_add(LONG)).expect("it can");
        let [capable, other] = [9_001, 9_002].map(Sender::new);
        rustix::net::sockopt::set_ip_tos(&capable.0, 2).expect("it can be");
        // Two orders about the same packets: the second sees what the first did.
        let from_here = FlowMatch { src: "10.9.0.1".parse().ok(), ..FlowMatch::default() };
        let orders = [order(from(9_001), FlowAction::Mark), order(from_here, FlowAction::Mark)];
        let places = orders.map(|order| acts.begin(&order).expect("it can").expect("there is room"));
        for _ in 0..50 {
            capable.send(100);
            other.send(100);
        }
        // A packet with a wrong checksum does not come.
        let mut count = 0;
        until("all come", || {
            count += came(&far).len();
            (count == 100).then_some(())
        });
        let [first, second] = places.map(|place| acts.outcome(place).expect("it is there"));
        assert_eq!((first.met, first.marked), (50, 50), "{first:?}");
        assert!(second.marked_before == 50 && second.unmarkable >= 50 && second.marked == 0, "{second:?}");
    });
    let (mut marked, mut others) = (0, 0);
    let result = capture.finish(|it| {
        if it.data.get(12..14) == Some(&[8, 0]) && it.data.get(36..38) == Some(&PORT.to_be_bytes()) {
            let is_capable = it.data[34..36] == 9_001u16.to_be_bytes();
            assert_eq!(it.data[15] & 3, if is_capable { 3 } else { 0 }, "{:?}", it.data);
            if is_capable { marked += 1 } else { others += 1 }
        }
        ControlFlow::Continue(())
    });
    result.expect("blocks are valid");
    assert_eq!((marked, others), (50, 50));
}

#[test]
fn lists_of_the_host_except_flows() {
    let Some(ends) = ends("lists_of_the_host_except_flows") else { return };
    let far = receiver(&ends);
    ends.near.run(move || {
        let port = |field, port: u16| Condition::Within(field, vec![(port.into(), port.into())]);
        let never = Never::new([vec![port(Field::SourcePort, 9_001)]]).expect("it fits");
        let only = Never::new([vec![port(Field::DestinationPort, PORT)]]).expect("it fits");
        let mut acts = FlowActs::prepare("near0", &never, &only).unwrap_or_else(|error| panic!("{error}"));
        acts.renew(now().saturating_add(LONG)).expect("it can");
        let from_here = FlowMatch { src: "10.9.0.1".parse().ok(), ..FlowMatch::default() };
        let place = acts.begin(&order(from_here, FlowAction::Drop)).expect("it can").expect("there is room");
        let [excepted, dropped] = [9_001, 9_002].map(Sender::new);
        for _ in 0..20 {
            dropped.send(10);
            excepted.send(10);
        }
        let mut ports = Vec::new();
        until("those that are excepted come", || {
            ports.extend(came(&far));
            (ports.len() == 20).then_some(())
        });
        assert!(ports.iter().all(|port| *port == 9_001), "{ports:?}");
        let outcome = acts.outcome(place).expect("it is there");
        assert!(outcome.dropped == 20 && outcome.met == 20 && outcome.exempt >= 20, "{outcome:?}");
        // Not one flow may be acted on if nothing is said.
        let none = FlowActs::prepare("near0", &Never::default(), &Never::default());
        drop(none.unwrap_or_else(|error| panic!("{error}")));
    });
}

#[test]
fn the_number_of_orders_is_bounded() {
    let Some(ends) = ends("the_number_of_orders_is_bounded") else { return };
    ends.near.run(|| {
        let mut acts = acts();
        let one = order(from(9_001), FlowAction::Drop);
        let places: Vec<_> = (0..FlowActs::MOST).map(|_| acts.begin(&one).expect("it can")).collect();
        assert!(places.iter().all(Option::is_some));
        assert_eq!(acts.begin(&one).expect("it can"), None);
        acts.end(7).expect("it can");
        assert_eq!(acts.begin(&one).expect("it can"), Some(7));
    });
}

/// The environment variable that makes this program the process that is killed.
const KILLED: &str = "QUEUESCOPE_TEST_NAMED_IS_KILLED";

/// The process that is killed; as a test it does nothing.
#[test]
fn is_killed() {
    if std::env::var_os(KILLED).is_none() {
        return;
    }
    let mut acts = acts();
    acts.renew(now().saturating_add(LONG)).expect("it can");
    acts.begin(&order(from(9_001), FlowAction::Drop)).expect("it can").expect("there is room");
    println!("\nit acts");
    // Runs until it is killed, or until the other end of standard input is closed.
    let _ = stdin().lines().next();
}

#[test]
fn a_killed_process_acts_no_more() {
    let Some(ends) = ends("a_killed_process_acts_no_more") else { return };
    let far = receiver(&ends);
    ends.near.run(move || {
        let mut command = Command::new(std::env::current_exe().expect("it has a name"));
        command.args(["--exact", "named::is_killed", "--nocapture"]).env(KILLED, "yes");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        assert!(output.map_while(Result::ok).any(|line| line == "it acts"), "{child:?} attached nothing");
        assert_eq!(before_the_queue().len(), 1);
        let [dropped, other] = [9_001, 9_002].map(Sender::new);
        dropped.send(10);
        other.send(10);
        let ports = until("a packet passes", || Some(came(&far)).filter(|ports| !ports.is_empty()));
        assert_eq!(ports, [9_002]);
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        assert!(before_the_queue().is_empty());
        dropped.send(10);
        let ports = until("it passes", || Some(came(&far)).filter(|ports| !ports.is_empty()));
        assert_eq!(ports, [9_001]);
    });
}
