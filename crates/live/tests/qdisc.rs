//! What the probe counts of a qdisc's actions, compared with the qdisc's own counts.

#![cfg(target_os = "linux")]

use crate::common;
use crate::common::{Ends, backlog, ip, until};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use aya::{Ebpf, include_bytes_aligned};
use queuescope_live::{Acting, Action, Counters, Probe, ProbeParams, Weigh};
use queuescope_queue::Response;
use queuescope_wire::Nanos;
use rustix::net::sockopt::{set_ip_tos, set_ipv6_tclass};
use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Instant;

/// A program that marks each packet after its stamp, as a queue would.
static MARKING: &[u8] = include_bytes_aligned!("../bpf/marking.bpf.o");

/// The ECN codepoints CE and ECT(0).
const CE: u8 = 3;
const ECT0: u8 = 2;

/// Sends large packets, IPv4 and IPv6 in turn, with this ECN codepoint.
fn send(packets: usize, ecn: u8) {
    let v4 = UdpSocket::bind("10.9.0.1:0").expect("there is a port");
    let v6 = UdpSocket::bind("[fd09::1]:0").expect("there is a port");
    set_ip_tos(&v4, ecn).expect("it can");
    set_ipv6_tclass(&v6, u32::from(ecn)).expect("it can");
    for n in 0..packets {
        // Nobody listens there; errors come later.
        let _ = if n % 2 == 0 { v4.send_to(&[0; 1400], "10.9.0.2:9") } else { v6.send_to(&[0; 1400], "[fd09::2]:9") };
    }
}

/// Drops all packets that come, from the first departure until long after the test.
fn always() -> Acting {
    let action = Action::Respond(Response::Drop);
    Acting { action, weigh: Weigh::Queue, hold: Nanos(600_000_000_000), dry: false, ..Acting::default() }
}

/// The counts once all packets have left or were dropped.
fn settled(probe: &mut Probe) -> Counters {
    common::settled(probe, |probe| _ = probe.left(|_| ()).expect("it is there"))
}

#[test]
fn packets_marked_after_the_stamp_are_counted_and_those_that_came_marked_are_not() {
    let test = "packets_marked_after_the_stamp_are_counted_and_those_that_came_marked_are_not";
    let ends = match Ends::new("tbf rate 100mbit burst 20kb limit 400kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    ends.near.run(|| {
        let mut probe = Probe::attach("near0", ProbeParams::default()).unwrap_or_else(|error| panic!("{error}"));
        send(40, ECT0);
        assert_eq!(settled(&mut probe).marked, 0);
        let mut bpf = Ebpf::load(MARKING).expect("it is a program");
        let marking: &mut SchedClassifier =
            bpf.program_mut("marking").expect("it is there").try_into().expect("it is one");
        marking.load().expect("it may run");
        let behind = TcAttachOptions::TcxOrder(LinkOrder::default());
        marking.attach_with_options("near0", TcAttachType::Egress, behind).expect("there is room");
        send(60, CE);
        // A packet or two of the interface itself may have come.
        let before = settled(&mut probe);
        assert!(before.marked < 10, "{before:?}");
        send(100, ECT0);
        let counted = settled(&mut probe);
        // The kernel may skip runs of the probe, which are counted as unseen.
        let (marked, left_out) = (counted.marked - before.marked, counted.unseen() - before.unseen());
        assert!(marked < 110 && marked + left_out >= 95, "{before:?} {counted:?}");
    });
}

#[test]
#[allow(clippy::disallowed_methods, reason = "tests start programs")]
fn drops_by_a_classifier_after_the_stamp_are_counted_and_those_before_it_are_not() {
    let test = "drops_by_a_classifier_after_the_stamp_are_counted_and_those_before_it_are_not";
    let ends = match Ends::new("tbf rate 100mbit burst 20kb limit 400kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    ends.near.run(move || {
        let mut probe = Probe::attach("near0", ProbeParams::default()).unwrap_or_else(|error| panic!("{error}"));
        let dropped = |counted: &Counters| counted.drops[Counters::REASONS.len() - 1];
        send(100, ECT0);
        let none = settled(&mut probe);
        assert_eq!(dropped(&none), 0);
        ip("tc qdisc add dev near0 clsact").expect("it is there");
        let filter = ["filter", "add", "dev", "near0", "egress", "bpf", "da", "bytecode", "1,6 0 0 2"];
        if !Command::new("tc").args(filter).status().expect("tc is there").success() {
            return println!("skipped: {test}: there is no classifier of classic BPF");
        }
        send(200, ECT0);
        // A packet or two of the interface itself may have come; runs that the kernel skipped are counted as unseen.
        let counted = settled(&mut probe);
        let left_out = counted.unseen() - none.unseen();
        assert!(dropped(&counted) < 220 && dropped(&counted) + left_out >= 180, "{counted:?}");
        // Packets that the probe itself drops did not reach the queue.
        ip("tc qdisc del dev near0 clsact").expect("it is there");
        let before = dropped(&settled(&mut probe));
        probe.act(&always()).expect("it can");
        // Acting starts once a packet has left the queue.
        until("packets are dropped", || {
            send(20, ECT0);
            (probe.acted().expect("it is there").dropped > 150).then_some(())
        });
        assert_eq!(dropped(&settled(&mut probe)), before);
    });
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test sees how long something took")]
fn packets_that_were_queued_before_the_probe_have_no_enqueue_time() {
    let test = "packets_that_were_queued_before_the_probe_have_no_enqueue_time";
    // So slow (a packet leaves every 1.4 s) that the queue stays full however long it takes to attach the probe.
    let ends = match Ends::new("tbf rate 8kbit burst 2kb limit 400kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    ends.near.run(|| {
        // The send buffer of a socket holds about 100 packets.
        (0..2).for_each(|_| send(100, ECT0));
        let probe = Probe::attach("near0", ProbeParams::default()).unwrap_or_else(|error| panic!("{error}"));
        let attached = Instant::now();
        ip("tc qdisc change dev near0 root tbf rate 2mbit burst 2kb limit 400kb").expect("it can be faster");
        until("the queue empties", || (backlog() == 0).then_some(()));
        let counted = probe.counters().expect("it is there");
        let longest = probe.slices(0).expect("they are there").iter().map(|slice| slice.delay_max).max();
        assert!(counted.unstamped >= 150, "{counted:?}");
        // A stamp of another probe would give a longer time.
        let since = Nanos(attached.elapsed().as_nanos() as u64);
        assert!(longest.is_some_and(|longest| longest <= since), "{longest:?} {counted:?}");
    });
}

#[test]
fn packets_dropped_by_another_program_before_the_stamp_do_not_count() {
    let test = "packets_dropped_by_another_program_before_the_stamp_do_not_count";
    let ends = match Ends::new("tbf rate 100mbit burst 20kb limit 400kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    ends.near.run(|| {
        let attach = || Probe::attach("near0", ProbeParams::default()).unwrap_or_else(|error| panic!("{error}"));
        // The program that was attached first runs first.
        let (mut other, mut probe) = (attach(), attach());
        other.act(&always()).expect("it can");
        let mut sent = 0;
        let dropped = until("packets are dropped", || {
            send(20, ECT0);
            sent += 20;
            let dropped = other.acted().expect("it is there").dropped;
            (dropped > 100).then_some(dropped)
        });
        let counted = settled(&mut probe);
        assert!(counted.dropped == 0 && counted.came < sent - dropped + 20, "{dropped} of {sent}: {counted:?}");
    });
}

/// A device without room gives packets back (requeues them), and they leave again.
#[test]
fn a_requeued_packet_counts_as_leaving_once() {
    /// Segments of a super-packet.
    const SEGMENTS: usize = 40;
    let test = "a_requeued_packet_counts_as_leaving_once";
    let ends = match Ends::new("pfifo limit 1000") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    // Segmentation happens after the queue, and the far end receives segments individually.
    if let Err(why) = ends.far.run(|| ip("ethtool -K far0 gro on")) {
        return println!("skipped: {test}: {why}");
    }
    ends.near.run(|| {
        ip("ethtool -K near0 tx-tcp-segmentation off tx-tcp6-segmentation off tx-udp-segmentation off")
            .expect("it can");
        let mut probe = Probe::attach("near0", ProbeParams::default()).unwrap_or_else(|error| panic!("{error}"));
        until("the device requeues packets, and the probe knows of all of them", || {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let socket = UdpSocket::bind("10.9.0.1:0").expect("there is a port");
                    socket.connect("10.9.0.2:9").expect("it can be");
                    set_segment(&socket, 1400);
                    std::thread::spawn(move || (0..4000).for_each(|_| drop(socket.send(&[0; 1400 * SEGMENTS]))))
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
            let counted = settled(&mut probe);
            let shown = queue_of("pfifo");
            let [bytes, requeues] = ["bytes", "requeues"].map(|key| shown[key].as_u64().expect("it is there"));
            println!("{bytes} bytes, {requeues} requeues, {counted:?}");
            // The kernel does not report a super-packet that finds the queue empty, so there may be fewer bytes.
            assert!(counted.bytes <= bytes);
            let again = counted.requeued + counted.requeued_unseen;
            assert!(again <= requeues);
            // The probe does not know of a super-packet that was requeued before the first departure that it saw. It learns of requeued packets
            // that left unseen when it sees the next departure.
            (requeues >= 100 && again + SEGMENTS as u64 >= requeues).then_some(())
        });
    });
}

#[test]
fn a_qdisc_of_several_transmit_queues_is_one_queue() {
    let test = "a_qdisc_of_several_transmit_queues_is_one_queue";
    let ends = match Ends::new("tbf rate 20mbit burst 20kb limit 400kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    let several = ends.far.run(|| ip("ethtool -L far0 rx 2 tx 2"));
    if let Err(why) = several.and_then(|()| ends.near.run(|| ip("ethtool -L near0 rx 2 tx 2"))) {
        return println!("skipped: {test}: {why}");
    }
    ends.near.run(|| {
        let mut probe = Probe::attach("near0", ProbeParams::default()).unwrap_or_else(|error| panic!("{error}"));
        // Each flow uses the transmit queue that the kernel chooses for it.
        let sockets: Vec<_> = (0..32).map(|_| UdpSocket::bind("10.9.0.1:0").expect("there is a port")).collect();
        for socket in sockets.iter().cycle().take(160) {
            _ = socket.send_to(&[0; 1400], "10.9.0.2:9");
        }
        let mut queues = BTreeSet::new();
        let counted = common::settled(&mut probe, |probe| {
            probe.left(|left| _ = queues.insert(left.queue)).expect("it is there");
        });
        assert!(counted.congested > 0, "{counted:?}");
        assert_eq!(queues, BTreeSet::from([0]));
    });
}

/// Sets the segment size of the socket's datagrams on the wire: `UDP_SEGMENT` of linux/udp.h.
pub fn set_segment(socket: &UdpSocket, bytes: i32) {
    let (value, length) = ((&raw const bytes).cast(), size_of::<i32>() as u32);
    // SAFETY: the socket is open, and the value has the given length.
    #[allow(unsafe_code, reason = "no library supports this option")]
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, value, length) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// A qdisc behind one that delays packets, and whether it marks and drops packets before it is full.
const QDISCS: [(&str, bool); 4] = [
    ("bfifo limit 30000", false),
    ("codel target 1ms interval 10ms limit 1000 ecn", true),
    ("codel target 1ms interval 10ms limit 1000 noecn", true),
    ("fq_codel target 1ms interval 10ms limit 1000 memory_limit 30000", true),
];

#[test]
fn drops_and_marks_match_the_counts_of_the_qdisc() {
    let test = "drops_and_marks_match_the_counts_of_the_qdisc";
    for (qdisc, is_active) in QDISCS {
        let ends = match Ends::new("tbf rate 20mbit burst 20kb limit 400kb") {
            Ok(ends) => ends,
            Err(why) => return println!("skipped: {test}: {why}"),
        };
        let of = qdisc.split(' ').next().unwrap_or_default();
        ends.near.run(move || {
            let handle = "tc qdisc replace dev near0 root handle 1: tbf rate 20mbit burst 20kb limit 400kb";
            ip(handle).expect("it can be replaced");
            if let Err(why) = ip(&format!("tc qdisc replace dev near0 parent 1:1 {qdisc}")) {
                return println!("skipped: {test}, {of}: {why}");
            }
            let mut probe = Probe::attach("near0", ProbeParams::default()).unwrap_or_else(|error| panic!("{error}"));
            send(300, ECT0);
            let counted = settled(&mut probe);
            let (dropped, marked) = kernel_counts(of);
            // The kernel may skip runs of the probe, which are counted as unseen.
            let is_most = |ours: u64, of: u64| ours <= of && ours + counted.unseen() >= of;
            assert!(is_most(counted.dropped, dropped) && is_most(counted.marked, marked), "{qdisc}: {counted:?}");
            assert!(dropped + marked > 20, "{qdisc}: {counted:?}");
            assert_eq!(counted.drops.iter().sum::<u64>(), counted.dropped);
            // A qdisc that drops only when it is full does not mark.
            assert!(is_active || marked == 0);
        });
    }
}

/// The drops and marks of a qdisc, as `tc` shows them.
fn kernel_counts(qdisc: &str) -> (u64, u64) {
    let ours = queue_of(qdisc);
    let count = |key: &str| ours[key].as_u64().unwrap_or(0);
    (count("drops"), count("ecn_mark"))
}

/// A qdisc of the near end, as `tc` shows it.
#[allow(clippy::disallowed_methods, reason = "tests start programs")]
pub fn queue_of(qdisc: &str) -> serde_json::Value {
    let output = Command::new("tc").args(["-s", "-j", "qdisc", "show", "dev", "near0"]).output().expect("tc is there");
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let all = all.as_array().expect("a list");
    all.iter().find(|one| one["kind"] == qdisc).expect("it is there").clone()
}
