//! The ns-3 profiles compared with ns-3.37 itself. `ns3/ns3.cc` gave its congestion controls the ACKs, losses and
//! timeouts of `ns3/events.txt`; the tables beside it have the window after each. They agree to the byte; BBR's rate, a
//! floating-point number, agrees to a millionth.

use crate::congestion::MSS;
use queuescope_tcp::congestion::{Bbr, BbrParams, Hybla, HyblaParams};
use queuescope_tcp::{Ack, Algorithm, Congestion, CongestionControl, Controller, Phase, Profile, RateSample};
use queuescope_wire::Nanos;

/// One algorithm, which receives the events.
struct Peer {
    control: Controller,
    phase: Phase,
    now: u64,
    acknowledged: u64,
    delivered: u64,
}

impl Peer {
    fn new(algorithm: Algorithm) -> Self {
        let mut control = Controller::new(&algorithm.params(Profile::Ns3), MSS as u32, 10 * MSS, 0);
        if algorithm == Algorithm::Bbr {
            // In the table's run, the random choice was always the first phase.
            let params = BbrParams { cycle_starts: 1, ..BbrParams::ns3() };
            control = Controller::Bbr(Bbr::new(params, MSS as u32, 10 * MSS, 0));
        }
        if algorithm == Algorithm::Hybla {
            // So that rho is above 1: the smallest round-trip time of the events is 40 ms.
            let params = HyblaParams { reference: Nanos(15_000_000), ..HyblaParams::ns3() };
            control = Controller::Hybla(Hybla::new(params, MSS as u32, 10 * MSS, 0));
        }
        control.on_established(Some(Nanos(40_000_000)), Nanos::ZERO);
        Self { control, phase: Phase::Open, now: 0, acknowledged: 0, delivered: 0 }
    }

    fn feed(&mut self, kind: &str, numbers: &[u64]) {
        self.now += numbers[0] * 1_000;
        let (now, window) = (Nanos(self.now), self.control.window());
        let eighths = |part: u64| window.min(200 * MSS) * part / 8 / MSS * MSS;
        match (kind, numbers) {
            ("ack", &[_, segments, rtt, marked, in_flight, interval, ago, lost]) => {
                let acked = segments * MSS;
                // An ACK for nothing that counts has repaired a loss.
                let delivered = acked.max(MSS);
                self.acknowledged += acked;
                self.delivered += acked;
                let rate = RateSample {
                    delivered: self.delivered,
                    prior_delivered: self.delivered.saturating_sub(ago * MSS),
                    amount: self.delivered.min(ago * MSS),
                    interval: Nanos(interval * 1_000),
                    application_limited: false,
                    lost: lost * MSS,
                };
                let ack = Ack {
                    acked,
                    delivered,
                    in_flight_before: eighths(in_flight) + acked,
                    in_flight: eighths(in_flight),
                    unacknowledged: self.acknowledged,
                    next: self.acknowledged + window,
                    left_last: self.acknowledged + window,
                    rtt: None,
                    smoothed_rtt: Nanos(rtt * 1_000),
                    phase: self.phase,
                    window,
                    marked: marked * acked,
                    counted: Some(acked),
                    window_limited: true,
                    rate: Some(rate),
                };
                self.control.on_ack(&ack, now);
            }
            ("loss", &[_, part]) => {
                // ns-3 has subtracted the lost bytes.
                let congestion = Congestion {
                    in_flight: eighths(part) + MSS,
                    lost: MSS,
                    delivered: 0,
                    next: self.acknowledged + window,
                };
                self.control.on_congestion(&congestion, now);
                self.phase = Phase::Recovery;
            }
            ("timeout", &[_, part]) => {
                let congestion =
                    Congestion { in_flight: eighths(part), lost: 0, delivered: 0, next: self.acknowledged + window };
                self.control.on_timeout(&congestion, now);
                self.phase = Phase::Loss;
            }
            ("recovered", _) => {
                self.control.on_recovered(now);
                self.phase = Phase::Open;
            }
            _ => panic!("{kind} {numbers:?}"),
        }
    }
}

/// What ns-3 did.
const TABLES: [(Algorithm, &str); 14] = [
    (Algorithm::NewReno, include_str!("ns3/newreno.txt")),
    (Algorithm::Cubic, include_str!("ns3/cubic.txt")),
    (Algorithm::Vegas, include_str!("ns3/vegas.txt")),
    (Algorithm::Illinois, include_str!("ns3/illinois.txt")),
    (Algorithm::Dctcp, include_str!("ns3/dctcp.txt")),
    (Algorithm::Hybla, include_str!("ns3/hybla.txt")),
    (Algorithm::Yeah, include_str!("ns3/yeah.txt")),
    (Algorithm::Veno, include_str!("ns3/veno.txt")),
    (Algorithm::Westwood, include_str!("ns3/westwood.txt")),
    (Algorithm::Bbr, include_str!("ns3/bbr.txt")),
    (Algorithm::HighSpeed, include_str!("ns3/hstcp.txt")),
    (Algorithm::Scalable, include_str!("ns3/scalable.txt")),
    (Algorithm::Htcp, include_str!("ns3/htcp.txt")),
    (Algorithm::Bic, include_str!("ns3/bic.txt")),
];

/// What it did with the events of `ns3/rounds/events.txt`.
const ROUNDS: [(Algorithm, &str); 4] = [
    (Algorithm::Hybla, include_str!("ns3/rounds/hybla.txt")),
    (Algorithm::Yeah, include_str!("ns3/rounds/yeah.txt")),
    (Algorithm::Veno, include_str!("ns3/rounds/veno.txt")),
    (Algorithm::Westwood, include_str!("ns3/rounds/westwood.txt")),
];

/// What it did with the events of `ns3/repairs/events.txt`. BBR counts what was delivered, so ACKs for nothing beyond the
/// hole do not exist for it.
const REPAIRS: [(Algorithm, &str); 13] = [
    (Algorithm::NewReno, include_str!("ns3/repairs/newreno.txt")),
    (Algorithm::Cubic, include_str!("ns3/repairs/cubic.txt")),
    (Algorithm::Vegas, include_str!("ns3/repairs/vegas.txt")),
    (Algorithm::Illinois, include_str!("ns3/repairs/illinois.txt")),
    (Algorithm::Dctcp, include_str!("ns3/repairs/dctcp.txt")),
    (Algorithm::Hybla, include_str!("ns3/repairs/hybla.txt")),
    (Algorithm::Yeah, include_str!("ns3/repairs/yeah.txt")),
    (Algorithm::Veno, include_str!("ns3/repairs/veno.txt")),
    (Algorithm::Westwood, include_str!("ns3/repairs/westwood.txt")),
    (Algorithm::HighSpeed, include_str!("ns3/repairs/hstcp.txt")),
    (Algorithm::Scalable, include_str!("ns3/repairs/scalable.txt")),
    (Algorithm::Htcp, include_str!("ns3/repairs/htcp.txt")),
    (Algorithm::Bic, include_str!("ns3/repairs/bic.txt")),
];

#[test]
fn the_ns3_profiles_behave_as_ns3_does() {
    compare(include_str!("ns3/events.txt"), &TABLES);
}

#[test]
fn the_ns3_profiles_behave_as_ns3_does_over_many_round_trips() {
    compare(include_str!("ns3/rounds/events.txt"), &ROUNDS);
}

/// ACKs that end the repair after a timeout: for many times the window, as when everything behind a lost retransmission
/// was acknowledged selectively, or for nothing beyond the hole.
#[test]
fn the_ns3_profiles_behave_as_ns3_does_when_a_repair_ends() {
    compare(include_str!("ns3/repairs/events.txt"), &REPAIRS);
}

fn compare(events: &str, tables: &[(Algorithm, &str)]) {
    let events: Vec<&str> = events.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(events.len() > 300);
    for (algorithm, table) in tables.iter().copied() {
        let mut peer = Peer::new(algorithm);
        assert_eq!(table.lines().count(), events.len(), "{algorithm}");
        for (place, (event, theirs)) in events.iter().zip(table.lines()).enumerate() {
            let (kind, numbers) = event.split_once(' ').unwrap();
            let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
            let theirs: Vec<u64> = theirs.split(' ').map(|number| number.parse().unwrap()).collect();
            peer.feed(kind, &numbers);
            assert_eq!(peer.control.window(), theirs[0], "{algorithm}, event {}: {event}", place + 1);
            if let Some(theirs) = theirs.get(1) {
                let rate = peer.control.pacing_rate().unwrap().bits_per_second() as f64;
                assert!((rate / *theirs as f64 - 1.0).abs() < 1e-6, "event {}: {rate} {theirs}", place + 1);
            }
        }
    }
}
