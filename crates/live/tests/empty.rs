//! The probe does not identify a packet that leaves an empty queue and is not reported: no other packet waited behind it.

#![cfg(target_os = "linux")]

use crate::common::{Ends, ip, settled};
use proptest::prelude::*;
use queuescope_live::{Counters, Probe, ProbeParams};
use queuescope_wire::Nanos;
use std::net::UdpSocket;

/// A departure, as the rule is about it.
#[derive(Debug, Clone, Copy)]
struct Departure {
    enqueued: Nanos,
    dequeued: Nanos,
    /// The packets that it leaves in the queue.
    behind: usize,
}

/// The probe reports packets with at least this sojourn time, nanoseconds.
const REPORTED: u64 = 500_000;

impl Departure {
    fn is_reported(&self) -> bool {
        self.dequeued.0 - self.enqueued.0 >= REPORTED
    }

    fn is_identified(&self) -> bool {
        self.is_reported() || self.behind > 0
    }
}

/// Packets for a link that takes 10 ns for each byte: the gap to the packet before, the bytes, and whether it has priority.
type Packets = Vec<(u64, u32, bool)>;

fn packets() -> impl Strategy<Value = Packets> {
    // Bursts far above the link's rate, and pauses in which the queue empties.
    let gap = prop_oneof![6 => 0..3_000u64, 3 => 5_000..40_000u64, 1 => 1_000_000..30_000_000u64];
    prop::collection::vec((gap, 64..1500u32, prop::bool::weighted(0.1)), 1..600)
}

/// The departures in order. Packets with priority have a queue of their own, as with HTB.
fn departures(packets: &Packets) -> Vec<Departure> {
    let mut now = 0;
    let arrivals = packets.iter().map(|(gap, bytes, first)| {
        now += gap;
        (now, *bytes, *first)
    });
    let mut arrivals = arrivals.peekable();
    let (mut lanes, mut free, mut left) = ([Vec::new(), Vec::new()], 0, Vec::new());
    loop {
        if lanes.iter().all(Vec::is_empty) {
            let Some((at, ..)) = arrivals.peek() else { return left };
            free = free.max(*at);
        }
        while let Some((at, bytes, first)) = arrivals.next_if(|(at, ..)| *at <= free) {
            lanes[usize::from(!first)].push((at, bytes));
        }
        let lane = usize::from(lanes[0].is_empty());
        let (at, bytes) = lanes[lane].remove(0);
        let behind = lanes.iter().map(Vec::len).sum();
        left.push(Departure { enqueued: Nanos(at), dequeued: Nanos(free), behind });
        free += u64::from(bytes) * 10;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_reported_packet_waited_for_an_unidentified_one(packets in packets()) {
        let departures = departures(&packets);
        for (at, victim) in departures.iter().enumerate().filter(|(_, departure)| departure.is_reported()) {
            let meanwhile = departures[..at].iter().filter(|other| other.dequeued > victim.enqueued);
            for other in meanwhile {
                prop_assert!(other.is_identified(), "{other:?} left while {victim:?} waited");
            }
        }
    }
}

#[test]
fn a_packet_that_leaves_an_empty_queue_is_not_identified() {
    let ends = match Ends::new("tbf rate 20mbit burst 2kb limit 400kb") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: a_packet_that_leaves_an_empty_queue_is_not_identified: {why}"),
    };
    let (one, many) = (counted(&ends, 1, true), counted(&ends, 50, true));
    assert!(one.seen + one.unseen() >= 20 && one.alone == one.seen && one.seen > 10, "{one:?}");
    // The last of each fifty, and the first two, for which the token bucket has room.
    assert!(many.seen + many.unseen() >= 1000 && many.seen > 500 && (15..=70).contains(&many.alone), "{many:?}");
    // A queue whose length each processor counts separately, so that the probe does not know whether it is empty.
    let swapped = ends.near.run(|| ip("tc qdisc replace dev near0 root pfifo_fast"));
    swapped.expect("it can be another");
    let apart = counted(&ends, 50, false);
    assert!(apart.alone == 0, "{apart:?}");
}

/// The probe's counts while nothing is reported: `at_once` packets come together, twenty times. A queue that can be held up is held until
/// the last one comes, so that none leaves before, however slowly they come.
fn counted(ends: &Ends, at_once: usize, can_be_held: bool) -> Counters {
    let rate = move |rate: &str| {
        let changed = if can_be_held {
            ip(&format!("tc qdisc change dev near0 root tbf {rate} burst 2kb limit 400kb"))
        } else {
            Ok(())
        };
        changed.expect("it has another rate");
    };
    ends.near.run(move || {
        let mut probe = Probe::attach("near0", ProbeParams { tau: Nanos(u64::MAX), ..ProbeParams::default() })
            .unwrap_or_else(|error| panic!("{error}"));
        let socket = UdpSocket::bind("10.9.0.1:0").expect("there is a port");
        let mut counted = Counters::default();
        for _ in 0..20 {
            rate("rate 8kbit");
            for n in 1..=at_once {
                if n == at_once {
                    rate("rate 20mbit");
                }
                let _ = socket.send_to(&[0; 1000], "10.9.0.2:9");
            }
            // An empty qdisc may be bypassed, and then the probe does not see the packet leave.
            counted = settled(&mut probe, |_| ());
        }
        counted
    })
}
