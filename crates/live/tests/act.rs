//! Acting on flows before a queue that the test made: between two network namespaces, as root.
#![allow(clippy::disallowed_methods, reason = "tests start programs and write what the kernel is set to")]

use crate::common::{Ends, until};
use queuescope_live::{Acted, Acting, Action, Counters, Probe, ProbeParams};
use queuescope_queue::{Curve, Response, Step, Steps};
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{Granularity, Nanos};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Instant;

/// A packet that the probe reported.
#[derive(Debug, Clone, Copy)]
struct PacketReport {
    enqueued: Nanos,
    dequeued: Nanos,
    digest: u64,
    is_ours: bool,
    flow: u64,
    contributing: bool,
    ecn: u8,
}

/// Two hosts with this queue between them; none, with a message, where they cannot be made.
fn ends(test: &str, qdisc: &str) -> Option<Ends> {
    Ends::new(qdisc).map_err(|why| println!("skipped: {test}: {why}")).ok()
}

/// Sends bursts in rounds, and returns all packets that left, and the counts. Every other round begins when the queue has been empty for
/// 4 ms, and the rounds between them when forty packets are in it. On a slow machine these may leave before the burst, so there are more
/// rounds until `enough` is true.
fn rounds(
    ends: &Ends,
    params: ProbeParams,
    acting: &Acting,
    (rounds, packets): (usize, usize),
    enough: fn(&Acted) -> bool,
) -> (Vec<PacketReport>, Counters, Acted) {
    let acting = acting.clone();
    ends.near.run(move || {
        let mut probe = Probe::attach("near0", params).unwrap_or_else(|error| panic!("{error}"));
        probe.act(&acting).expect("it can");
        let mut reports = Vec::new();
        let sockets = sockets();
        let (mut counted, mut left_out, mut round) = (Counters::default(), 0, 0);
        let acted = until("enough is done", || {
            burst(&sockets, packets);
            let backlog = if round % 2 == 0 { 40 } else { 0 };
            // The kernel may skip the probe's run for a packet that leaves: then nothing more comes for a while.
            let mut since = Instant::now();
            while since.elapsed().as_millis() < if counted.unseen() == left_out { 4 } else { 200 } {
                reports.extend(read_reports(&mut probe));
                let now = probe.counters().expect("it is there");
                if now.seen != counted.seen {
                    since = Instant::now();
                }
                counted = now;
                if backlog > 0 && left_out + backlog >= counted.unseen() {
                    break;
                }
                std::thread::yield_now();
            }
            round += 1;
            if backlog > 0 {
                return None;
            }
            left_out = counted.unseen();
            Some(probe.acted().expect("it is there")).filter(|acted| round >= rounds && enough(acted))
        });
        (reports, counted, acted)
    })
}

/// The packets that left since the last call.
fn read_reports(probe: &mut Probe) -> Vec<PacketReport> {
    let mut reports = Vec::new();
    let mut parser = Parser::new(Tunnel::Outer);
    let left = probe.left(|left| {
        let parsed = parser.parse(LinkType::Ethernet, left.bytes, left.headers);
        assert_eq!(left.digest, Granularity::FiveTuple.project(&parsed.key).digest());
        let second = left.headers[15];
        reports.push(PacketReport {
            enqueued: left.enqueued,
            dequeued: left.dequeued,
            digest: left.digest,
            is_ours: parsed.key.protocol == 17 && parsed.key.dst_port == 9,
            flow: left.flow,
            contributing: left.contributing,
            ecn: if left.headers[14] >> 4 == 4 { second & 3 } else { second >> 4 & 3 },
        });
    });
    left.expect("it is there");
    reports
}

/// Sockets of IPv4 and of IPv6 that send ECN-capable packets.
fn sockets() -> Vec<(UdpSocket, &'static str)> {
    let v4 = || {
        let socket = UdpSocket::bind("10.9.0.1:0").expect("there is a port");
        rustix::net::sockopt::set_ip_tos(&socket, 2).expect("it can be");
        (socket, "10.9.0.2")
    };
    let v6 = || {
        let socket = UdpSocket::bind("[fd09::1]:0").expect("there is a port");
        rustix::net::sockopt::set_ipv6_tclass(&socket, 1).expect("it can be");
        (socket, "[fd09::2]")
    };
    (0..4).flat_map(|_| [v4(), v6()]).collect()
}

/// Eight flows, of which three send most of the packets.
fn burst(sockets: &[(UdpSocket, &str)], packets: usize) {
    for n in 0..packets {
        let (socket, to) = &sockets[if n % 5 == 0 { n / 5 % 8 } else { n * n % 3 }];
        let to: SocketAddr = format!("{to}:9").parse().expect("it is one");
        // Nobody answers; errors that the far end reports come later.
        let _ = socket.send_to(&vec![0; 100 + (n * 37) % 1300], to);
    }
}

#[test]
fn the_kernel_chooses_the_same_packets_as_a_simple_model() {
    let Some(ends) =
        ends("the_kernel_chooses_the_same_packets_as_a_simple_model", "tbf rate 50mbit burst 20kb limit 400kb")
    else {
        return;
    };
    let params = ProbeParams { all: true, alpha: 0.1, ..ProbeParams::default() };
    let hold = Nanos(1_000_000);
    let acting = Acting { threshold: 15_000.0, hold, dry: false, ..Acting::default() };
    let (reports, counted, acted) = rounds(&ends, params, &acting, (8, 150), |acted| acted.marked > 40);
    // Packets that the interface itself sent as the probe was attached have no enqueue time.
    let others = reports.iter().filter(|report| !report.is_ours).count() as u64;
    assert!(
        reports.len() > 600 && counted.unstamped <= others && others < 10,
        "{others} of {} {counted:?}",
        reports.len()
    );

    // The model: a flow is acted on for `hold` after a packet of it left that contributed enough.
    let mut departures: BTreeMap<u64, Vec<Nanos>> = BTreeMap::new();
    for report in reports.iter().filter(|report| report.contributing && report.flow >= 15_000) {
        departures.entry(report.digest).or_default().push(report.dequeued);
    }
    let acts = |digest: u64, at: Nanos| {
        let before = |left: &&Nanos| **left < at;
        departures.get(&digest).and_then(|left| left.iter().rfind(before)).is_some_and(|left| at < *left + hold)
    };
    let (mut certain, mut marked) = (0, 0);
    for report in &reports {
        // The program ran a little before the time of the stamp, and the other processor may be late.
        let (early, late) = (Nanos(report.enqueued.0 - 50_000), Nanos(report.enqueued.0 + 50_000));
        let expected = acts(report.digest, report.enqueued);
        if acts(report.digest, early) == expected && acts(report.digest, late) == expected {
            certain += 1;
            assert_eq!(report.ecn == 3, expected, "{report:?}");
        }
        marked += u64::from(report.ecn == 3);
    }
    assert!(certain * 2 > reports.len() && marked > 20 && marked < reports.len() as u64, "{certain} {marked}");
    // The kernel may skip runs for packets that leave, which is counted, but not for packets that come.
    assert!(acted.marked >= marked && acted.marked <= marked + counted.unseen(), "{marked} {acted:?} {counted:?}");
    assert!(acted.expired > 0 && acted.met == acted.marked + acted.unmarkable, "{acted:?}");
}

#[test]
fn the_kernel_chooses_with_the_given_probability_and_changes_nothing_in_a_dry_run() {
    let test = "the_kernel_chooses_with_the_given_probability_and_changes_nothing_in_a_dry_run";
    let Some(ends) = ends(test, "tbf rate 50mbit burst 20kb limit 400kb") else { return };
    let params = ProbeParams { all: true, tau: Nanos(0), alpha: 0.0, ..ProbeParams::default() };
    let quarter = Curve::Steps(Steps::new([Step { from: 0.0, probability: 0.25 }]).expect("it is one"));
    let table = [
        (Response::MarkOnly, true, [0, 0, 1, 0]),
        (Response::Drop, true, [0, 0, 0, 1]),
        (Response::MarkOnly, false, [1, 0, 0, 0]),
        (Response::Drop, false, [0, 1, 0, 0]),
    ];
    for (response, dry, which) in table {
        let action = Action::Respond(response);
        let acting = Acting { action, curve: quarter.clone(), dry, ..Acting::default() };
        let (reports, counted, acted) = rounds(&ends, params, &acting, (10, 250), |acted| acted.met > 1000);
        let counts = [acted.marked, acted.dropped, acted.would_mark, acted.would_drop];
        let chosen: u64 = counts.iter().sum();
        assert_eq!(counts, which.map(|which| which * chosen), "{response:?} {dry}");
        assert!(acted.met > 1000 && acted.met == chosen + acted.spared + acted.unmarkable, "{acted:?}");
        // Packets of the interface itself (neighbour discovery) cannot be marked, chosen or not.
        let (mean, sigma) = (acted.met as f64 / 4.0, (acted.met as f64 * 3.0 / 16.0).sqrt());
        assert!(((chosen + acted.unmarkable) as f64 - mean).abs() < 6.0 * sigma, "{acted:?}");
        let marks = reports.iter().filter(|report| report.ecn == 3).count() as u64;
        assert!(marks <= acted.marked && acted.marked <= marks + counted.unseen(), "{marks} {acted:?} {counted:?}");
        assert!(counted.stamped >= acted.spared + acted.marked, "{counted:?}");
    }
}

/// With one packet, a flow has nothing else in the queue, so it never contributes; with two, it may.
#[test]
fn the_number_of_remembered_flows_is_bounded() {
    let Some(ends) = ends("the_number_of_remembered_flows_is_bounded", "tbf rate 10mbit burst 2kb limit 400kb") else {
        return;
    };
    let params = ProbeParams { tau: Nanos(0), alpha: 0.0, ..ProbeParams::default() };
    for each in [1, 2] {
        let (most, acted, counted) = ends.near.run(move || {
            let mut probe = Probe::attach("near0", params).unwrap_or_else(|error| panic!("{error}"));
            probe.act(&Acting { dry: false, ..Acting::default() }).expect("it can");
            let mut most = 0;
            for socket in (0..16).map(|_| UdpSocket::bind("10.9.0.1:0").expect("there is a port")) {
                for port in (1..=5_000).flat_map(|port| std::iter::repeat_n(port, each)) {
                    let _ = socket.send_to(&[], ("10.9.0.2", port));
                }
                most = most.max(probe.victims().expect("they are there").len());
            }
            (most, probe.acted().expect("it is there"), probe.counters().expect("it is there"))
        });
        let found = format!("{most} {acted:?} {counted:?}");
        // Packets of the interface itself, and collisions in the sketch, are few.
        assert!(counted.seen > 10_000 && most <= 4096, "{found}");
        assert_eq!(acted.victims > 4096, each == 2, "{found}");
        assert!(acted.victims + acted.full <= counted.contributing && acted.full * 100 <= acted.victims, "{found}");
    }
}

/// Sends one flow of CUBIC with ECN through a queue of 400 kB; returns the mean sojourn time of its packets, in nanoseconds, and the counts.
fn bulk(ends: &Ends, acting: Option<Acting>) -> (u64, Acted) {
    const BYTES: usize = 8_000_000;
    let listener = ends.far.run(|| TcpListener::bind("10.9.0.2:0").expect("there is a port"));
    let to = listener.local_addr().expect("it has one");
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody comes");
        std::io::copy(&mut stream, &mut std::io::sink()).expect("it is read")
    });
    let found = ends.near.run(move || {
        // Only in this namespace; 1 makes connections negotiate ECN.
        std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").expect("it is there");
        let mut probe = Probe::attach("near0", ProbeParams::default()).unwrap_or_else(|error| panic!("{error}"));
        if let Some(acting) = acting {
            probe.act(&acting).expect("it can");
        }
        let mut stream = TcpStream::connect(to).expect("it listens");
        rustix::net::sockopt::set_tcp_congestion(&stream, "cubic").expect("it is there");
        stream.write_all(&vec![0; BYTES]).expect("it is read");
        stream.shutdown(std::net::Shutdown::Write).expect("it can");
        // Waits until the far end has read everything.
        let _ = stream.read(&mut [0]);
        let slices = probe.slices(0).expect("they are there");
        let packets: u64 = slices.iter().map(|slice| slice.packets).sum();
        let delay: u64 = slices.iter().map(|slice| slice.delay_sum.0).sum();
        (delay / packets.max(1), probe.acted().expect("it is there"))
    });
    assert_eq!(reader.join().expect("it ends"), BYTES as u64);
    found
}

#[test]
fn marking_a_bulk_flow_at_least_halves_its_sojourn_time() {
    let test = "marking_a_bulk_flow_at_least_halves_its_sojourn_time";
    let Some(ends) = ends(test, "tbf rate 50mbit burst 20kb limit 400kb") else { return };
    let one_in_four = Curve::Steps(Steps::new([Step { from: 0.0, probability: 1.0 / 4.0 }]).expect("it is one"));
    let marking = Acting { curve: one_in_four, dry: false, ..Acting::default() };
    let (untouched, _) = bulk(&ends, None);
    let (dry, counted) = bulk(&ends, Some(Acting { dry: true, ..marking.clone() }));
    let (marked, acted) = bulk(&ends, Some(marking));
    println!("untouched {untouched} ns, dry {dry} ns, marked {marked} ns: {acted:?}");
    assert!(untouched > 10_000_000, "{untouched}");
    assert!(dry * 2 > untouched && counted.would_mark > 0, "{dry} of {untouched}");
    assert!(marked * 2 < untouched && acted.marked > 0, "{marked} of {untouched}");
}
