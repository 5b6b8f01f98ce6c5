//! The probe on a queue that the test made: between two network namespaces, as root.

use crate::common;
use crate::common::Ends;
use queuescope_live::{Counters, Probe, ProbeParams};
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{Granularity, Nanos};
use std::net::{SocketAddr, UdpSocket};

/// A packet that the probe reported.
#[derive(Debug)]
struct PacketReport {
    enqueued: Nanos,
    dequeued: Nanos,
    digest: u64,
    parsed: u64,
    is_ours: bool,
}

/// All packets that left while `send` ran, and the counts.
fn probed(ends: &Ends, params: ProbeParams, send: impl FnOnce() + Send + 'static) -> (Vec<PacketReport>, Counters) {
    ends.near.run(move || {
        let mut probe = Probe::attach("near0", params).unwrap_or_else(|error| panic!("{error}"));
        send();
        let mut reports = Vec::new();
        let mut parser = Parser::new(Tunnel::Outer);
        let mut take = |probe: &mut Probe| {
            let read = probe.left(|left| {
                let parsed = parser.parse(LinkType::Ethernet, left.bytes, left.headers);
                reports.push(PacketReport {
                    enqueued: left.enqueued,
                    dequeued: left.dequeued,
                    digest: left.digest,
                    parsed: Granularity::FiveTuple.project(&parsed.key).digest(),
                    is_ours: parsed.key.protocol == 17 && (9..12).contains(&parsed.key.dst_port),
                });
            });
            read.expect("it is there")
        };
        common::settled(&mut probe, |probe| _ = take(probe));
        // The last packets may have left just now.
        probe.detach().expect("it can");
        while take(&mut probe) > 0 {}
        let counted = probe.counters().expect("they stay");
        (reports, counted)
    })
}

#[test]
fn delays_and_flows_are_those_of_the_counts() {
    // The limit has room for everything that is sent, so the same packets leave at any sending speed.
    let ends = match Ends::new("tbf rate 50mbit burst 20kb limit 2mb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: delays_and_flows_are_those_of_the_counts: {why}"),
    };
    let params = ProbeParams { all: true, ..ProbeParams::default() };
    let (reports, counted) = probed(&ends, params, || {
        for sockets in [["10.9.0.1:0", "10.9.0.2"], ["[fd09::1]:0", "[fd09::2]"]] {
            let [from, to] = sockets;
            let sockets: Vec<_> = (0..10).map(|_| UdpSocket::bind(from).expect("there is a port")).collect();
            for n in 0..400usize {
                let socket = &sockets[(n * n) % 10];
                let to: SocketAddr = format!("{to}:{}", 9 + n % 3).parse().expect("it is one");
                // Nobody answers; errors that the far end reports come later.
                let _ = socket.send_to(&vec![0; 100 + (n * 37) % 1300], to);
            }
        }
    });
    // Packets that the interface itself sent as the probe was attached have no enqueue time.
    let others = reports.iter().filter(|report| !report.is_ours).count() as u64;
    assert!(
        reports.len() > 500 && counted.unstamped <= others && others < 10,
        "{others} of {} {counted:?}",
        reports.len()
    );
    let mut delays = [0; Counters::DELAYS];
    for report in &reports {
        let delay = report.dequeued.saturating_sub(report.enqueued);
        delays[(0..).find(|place| delay < Counters::bound(*place)).expect("it is short")] += 1;
    }
    let sum: u64 = reports.iter().map(|report| report.dequeued.0 - report.enqueued.0).sum();
    assert_eq!((delays, sum), (counted.delays, counted.delay.0));
    for report in &reports {
        assert_eq!(report.digest, report.parsed, "{report:?}");
    }
    let longest = reports.iter().map(|report| report.dequeued.0 - report.enqueued.0).max();
    assert!(longest > Some(5_000_000), "{longest:?}");
}
