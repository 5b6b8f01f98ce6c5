//! Drops of super-packets, compared with what a sender sent less what the far end received, and with the qdisc's own count. As root.

#![cfg(target_os = "linux")]

use crate::common;
use crate::common::{Ends, ip, until};
use crate::qdisc::{queue_of, set_segment};
use queuescope_live::{Counters, Left, Probe, ProbeParams};
use queuescope_wire::{Ecn, Nanos};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use std::net::UdpSocket;

/// The payload of a packet on the wire; and packets of a super-packet that fits the bursts of `QUEUES`, and of one that does not.
const PAYLOAD: usize = 1400;
const SHORT: usize = 4;
const LONG: usize = 30;

/// The bytes of the last datagram, which shows that all others have arrived.
const LAST: usize = 1;

/// Longer than any of the queues is.
const MOST: Nanos = Nanos(60_000_000_000);

/// Packets that the interface itself may send meanwhile, such as neighbour discovery.
const OTHERS: u64 = 10;

/// A queue: commands that make it, without `tc qdisc replace dev near0`; the qdisc that drops; and whether it drops super-packets with this
/// number of packets whole.
struct Queue {
    commands: &'static [&'static str],
    drops: &'static str,
    packets: usize,
    drops_whole: bool,
}

/// `tbf` cuts super-packets that are longer than its burst before it drops, and drops all others whole, as does everything below it.
const QUEUES: [Queue; 11] = [
    of_one("tbf", &["root tbf rate 20mbit burst 10kb limit 60kb"], SHORT, true),
    of_one("tbf", &["root tbf rate 20mbit burst 10kb limit 60kb"], LONG, false),
    of_one("tbf", &["root tbf rate 20mbit burst 64kb limit 120kb"], LONG, true),
    of_one("bfifo", &[TBF, "parent 1:1 bfifo limit 120kb"], LONG, true),
    of_one("pfifo", &[TBF, "parent 1:1 pfifo limit 3"], LONG, true),
    of_one("codel", &[TBF, "parent 1:1 codel target 1ms interval 10ms limit 3"], LONG, true),
    of_one("fq_codel", &[TBF, "parent 1:1 fq_codel target 1ms interval 10ms limit 3"], LONG, true),
    of_one("sfq", &[TBF, "parent 1:1 sfq limit 3"], LONG, true),
    of_one("pie", &[TBF, "parent 1:1 pie limit 3"], LONG, true),
    of_one("netem", &[TBF, "parent 1:1 netem limit 3"], LONG, true),
    of_one("cake", &["root cake bandwidth 20mbit split-gso memlimit 100kb"], LONG, false),
];

const TBF: &str = "root handle 1: tbf rate 20mbit burst 64kb limit 10mb";

const fn of_one(drops: &'static str, commands: &'static [&'static str], packets: usize, drops_whole: bool) -> Queue {
    Queue { commands, drops, packets, drops_whole }
}

/// Two classes of `htb`, of which one is used; a `tbf` in it, which cuts super-packets. The parent counts a super-packet that was cut as
/// dropped only if no part of it was queued.
const CLASSES: [&str; 3] = [
    "tc qdisc replace dev near0 root handle 1: htb default 1",
    "tc class add dev near0 parent 1: classid 1:1 htb rate 1gbit",
    "tc qdisc add dev near0 parent 1:1 tbf rate 20mbit burst 10kb limit 60kb",
];

/// Sends super-packets of `packets` packets each, twenty at once, until the qdisc has dropped more than 300 packets on the wire, and checks
/// the probe's counts. Runs in the near namespace.
fn check(far: &UdpSocket, drops: &str, packets: usize, drops_whole: bool) {
    let params = ProbeParams { all: true, drops: true, ..ProbeParams::default() };
    let mut probe = Probe::attach("near0", params).unwrap_or_else(|error| panic!("{error}"));
    let socket = UdpSocket::bind("10.9.0.1:0").expect("there is a port");
    socket.connect("10.9.0.2:9").expect("it can be");
    set_segment(&socket, PAYLOAD as i32);
    let before = dropped_by(drops);
    let (mut sent, mut arrived) = (0u64, 0);
    let mut handed_over = HandedOver::default();
    let counted = until("packets are dropped", || {
        for _ in 0..20 {
            socket.send(&[0; PAYLOAD * LONG][..PAYLOAD * packets]).expect("somebody listens");
            sent += packets as u64;
        }
        let counted = common::settled(&mut probe, |probe| {
            _ = probe.left(|left| handed_over.count(&left)).expect("it is there");
        });
        socket.send(&[0; LAST]).expect("somebody listens");
        arrived += received(far);
        (counted.dropped > 300).then_some(counted)
    });
    let by_qdisc = dropped_by(drops) - before;
    // The kernel may skip runs of the probe, which are counted as unseen.
    let is_most = |ours: u64, of: u64, more: u64| ours <= of + more && ours + counted.unseen() + more >= of;
    // The two differ exactly if the qdisc drops super-packets whole.
    let each = if drops_whole { packets as u64 } else { 1 };
    let seen =
        format!("{drops}, {packets} at once: {sent} sent, {arrived} arrived, {by_qdisc} drops by tc, {counted:?}");
    println!("{seen}");
    // Packets that another processor sent can still be on their way, behind the last one.
    until(&seen, || {
        let lost = sent - arrived;
        let agree = is_most(counted.dropped, lost, OTHERS) && (by_qdisc * each).abs_diff(lost) <= OTHERS * each;
        if !agree {
            arrived += waiting(far);
        }
        agree.then_some(())
    });
    assert!(is_most(counted.tc_drops, by_qdisc, 0), "{seen}");
    // Each drop is handed over, with its flow.
    assert_eq!((handed_over.dropped, counted.untold), (counted.dropped, 0), "{seen}");
    let others = handed_over.dropped - handed_over.of_flow;
    assert!(others <= OTHERS * each && handed_over.long == 0, "{handed_over:?} {seen}");
}

/// The drops that the probe handed over.
#[derive(Debug, Default)]
struct HandedOver {
    /// Packets on the wire, and those of them of the test's flow.
    dropped: u64,
    of_flow: u64,
    /// Those that waited for longer than they can have.
    long: u64,
}

impl HandedOver {
    fn count(&mut self, left: &Left<'_>) {
        if left.is_dropped {
            let packets = u64::from(left.packets);
            self.dropped += packets;
            // The destination's address and port, behind Ethernet.
            let is_ours = left.headers.get(30..34) == Some(&[10, 9, 0, 2]) && left.headers.get(36..38) == Some(&[0, 9]);
            self.of_flow += if is_ours { packets } else { 0 };
            self.long += if left.dequeued.saturating_sub(left.enqueued) > MOST { packets } else { 0 };
        } else {
            assert_eq!(left.ecn, Some(Ecn::NotEct));
        }
    }
}

/// The drops by the first qdisc of this kind, as `tc` shows them.
fn dropped_by(qdisc: &str) -> u64 {
    queue_of(qdisc)["drops"].as_u64().expect("it is a number")
}

/// The number of packets with the payload of the others that arrived before the last one.
fn received(far: &UdpSocket) -> u64 {
    let mut bytes = [0; 2 * PAYLOAD];
    let lengths = std::iter::from_fn(|| Some(far.recv(&mut bytes).expect("it is open")));
    lengths.take_while(|length| *length != LAST).count() as u64
}

/// The number of packets with the payload of the others that have arrived and were not received.
fn waiting(far: &UdpSocket) -> u64 {
    far.set_nonblocking(true).expect("it is a socket");
    let mut bytes = [0; 2 * PAYLOAD];
    let lengths = std::iter::from_fn(|| far.recv(&mut bytes).ok());
    let count = lengths.filter(|length| *length != LAST).count() as u64;
    far.set_nonblocking(false).expect("it is a socket");
    count
}

/// A socket of the far end with room for all packets of a round.
fn receiver(ends: &Ends) -> Result<UdpSocket, String> {
    ends.far.run(|| {
        let socket = UdpSocket::bind("10.9.0.2:9").expect("there is a port");
        set_socket_recv_buffer_size_force(&socket, 16 << 20).map_err(|error| error.to_string())?;
        socket.set_read_timeout(Some(common::PATIENCE)).map_err(|error| error.to_string())?;
        Ok(socket)
    })
}

#[test]
fn drops_are_what_was_sent_and_did_not_arrive_in_packets_on_the_wire() {
    let test = "drops_are_what_was_sent_and_did_not_arrive_in_packets_on_the_wire";
    let made = Ends::new("pfifo").and_then(|ends| receiver(&ends).map(|far| (ends, far)));
    let (ends, far) = match made {
        Ok(made) => made,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    ends.near.run(move || {
        for Queue { commands, drops, packets, drops_whole } in &QUEUES {
            let made = commands.iter().try_for_each(|words| ip(&format!("tc qdisc replace dev near0 {words}")));
            match made {
                Ok(()) => check(&far, drops, *packets, *drops_whole),
                Err(why) => println!("skipped: {test}, {drops}: {why}"),
            }
            ip("tc qdisc replace dev near0 root pfifo").expect("it can be replaced");
        }
        match CLASSES.iter().try_for_each(|words| ip(words)) {
            Ok(()) => check(&far, "tbf", LONG, false),
            Err(why) => println!("skipped: {test}, htb: {why}"),
        }
    });
}

#[test]
fn a_full_fifo_gives_its_drops_no_reason() {
    let test = "a_full_fifo_gives_its_drops_no_reason";
    // It takes packets so slowly that a busy machine fills it, too.
    let ends = match Ends::new("tbf rate 1mbit burst 2kb limit 30kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    ends.near.run(|| {
        let mut probe = Probe::attach("near0", ProbeParams::default()).unwrap_or_else(|error| panic!("{error}"));
        let socket = UdpSocket::bind("10.9.0.1:0").expect("there is a port");
        let Counters { drops, dropped, .. } = until("packets are dropped", || {
            // Nobody listens there; errors come later.
            (0..200).for_each(|_| drop(socket.send_to(&[0; PAYLOAD], "10.9.0.2:9")));
            let counted = common::settled(&mut probe, |_| ());
            (counted.dropped > 50).then_some(counted)
        });
        assert_eq!(drops[0], dropped, "{drops:?}");
    });
}
