//! A real capture through a simulated router, observed by taps: which packets are matched, and how exact their delays are.

use crate::tap_pair as pair;

use crate::common::shared;
use pair::{Pair, PairParams, TAPPED, Truth};
use queuescope_meter::tap::{Arrived, Clock, TapDeparture, TapOutput, TapPacket, TapParams, TapStats};
use queuescope_queue::Limit;
use queuescope_wire::parse::InvariantParams;
use queuescope_wire::{Nanos, Rate};
use std::collections::BTreeMap;

const CAPTURE: &str = "pcap/mix-a-ndpi.pcap.xz";
const START: Nanos = Nanos(1_000_000_000);

fn pair_params(resolution: u64, most: usize) -> PairParams {
    PairParams {
        rate: Rate::from_bits_per_second(20_000_000).unwrap(),
        limit: Limit::Time(Nanos(50_000_000)),
        behind: Clock::new(START, 400_000_000, 20.0),
        second: Clock::new(START, -300_000_000, -7.0),
        resolution,
        snaplens: (96, 90),
        elsewhere: 10,
        most,
    }
}

/// Compares the output of a matcher with the truth.
#[derive(Default)]
struct MatchComparison {
    /// The packets by their times in the egress capture.
    egress: BTreeMap<Nanos, usize>,
    truth: Vec<Truth>,
    behind: Clock,
    /// The times of the packets in their ingress captures.
    came: Vec<Nanos>,
    right: u64,
    wrong: u64,
    /// The errors of delays: the least and the greatest, nanoseconds, by link.
    off: BTreeMap<usize, (i64, i64)>,
    met_empty: u64,
    unseen: u64,
    lost: u64,
}

impl TapOutput for MatchComparison {
    fn departed(&mut self, departure: &TapDeparture) {
        let id = self.egress[&departure.seen.time];
        let truth = self.truth[id];
        match departure.arrived {
            Arrived::Seen { enqueued, link, ingress } => {
                let right = link == truth.link && ingress.time == self.came[id];
                self.right += u64::from(right);
                self.wrong += u64::from(!right);
                let (came, left) = (truth.enqueued, truth.dequeued.unwrap());
                // No clock is known to be right, so delays are in time of the clock behind the router.
                let waited = self.behind.convert(left) - self.behind.convert(came);
                let off = (departure.dequeued - enqueued).0 as i64 - waited.0 as i64;
                self.met_empty += u64::from(left == came);
                if right {
                    let (least, most) = self.off.entry(link).or_insert((off, off));
                    (*least, *most) = ((*least).min(off), (*most).max(off));
                }
            }
            _ => self.unseen += 1,
        }
    }

    fn lost(&mut self, _packet: &TapPacket, _link: usize, _enqueued: Nanos) {
        self.lost += 1;
    }
}

fn judge(pair_params: PairParams, checksums: bool) -> Option<(Pair, MatchComparison, TapStats)> {
    let pair = Pair::make(&shared("tap", CAPTURE)?, pair_params).unwrap();
    let invariant = InvariantParams { reach: pair.reach(), checksums, ..InvariantParams::default() };
    assert!((60..=76).contains(&invariant.reach), "the shorter of both captures decides: {}", invariant.reach);
    let mut judge =
        MatchComparison { truth: pair.truth.clone(), behind: pair_params.behind, ..MatchComparison::default() };
    judge.egress = pair.egress.iter().map(|record| (record.time, record.id)).collect();
    judge.came = vec![Nanos::ZERO; pair.truth.len()];
    pair.ingress.iter().flatten().for_each(|record| judge.came[record.id] = record.time);
    let params = TapParams { max_delay: Nanos(100_000_000), ..TapParams::default() };
    let matcher = pair.tap(params, &invariant, &mut judge);
    let stats = *matcher.stats();
    println!("{:#?}", matcher.clocks());
    Some((pair, judge, stats))
}

fn check(pair_params: PairParams, checksums: bool) {
    let Some((pair, judge, stats)) = judge(pair_params, checksums) else { return };
    let tapped = |truth: &&Truth| truth.link < TAPPED && truth.is_ip;
    let possible = pair.truth.iter().filter(tapped).filter(|truth| truth.dequeued.is_some()).count() as u64;
    let dropped = pair.truth.iter().filter(tapped).filter(|truth| !truth.elsewhere && truth.dequeued.is_none());
    let (dropped, share) = (dropped.count() as u64, judge.right as f64 / possible as f64);
    println!(
        "{possible} can be matched; {} rightly ({share:.6}) and {} wrongly were, {} met an empty queue; off by {:?} ns; dropped {dropped}, lost {}\n{stats:#?}",
        judge.right, judge.wrong, judge.met_empty, judge.off, judge.lost
    );
    assert!(judge.met_empty >= 100 && dropped > 1_000);
    assert!(share >= 0.999, "{share}");
    assert!(judge.wrong * 1_000 <= possible);
    // The error may include a constant, which differs between the links' clocks.
    for (least, most) in judge.off.values() {
        let allowed = pair_params.resolution.max(1_000) as i64;
        assert!(most - least <= 2 * allowed + allowed / 10, "delays are off by {least} to {most} ns");
    }
    // Everything is counted once.
    let ingress = stats.ingress_no_fingerprint
        + stats.matched
        + stats.lost
        + stats.routed_elsewhere
        + stats.ingress_copies
        + stats.ingress_outside
        + stats.ingress_evicted
        + stats.reverse;
    assert_eq!(ingress, stats.ingress);
    let egress = stats.egress_no_fingerprint
        + stats.matched
        + stats.untapped
        + stats.missed_arrival
        + stats.egress_copies
        + stats.egress_outside
        + stats.reverse;
    assert_eq!((egress, stats.egress), (pair.egress.len() as u64, pair.egress.len() as u64));
    assert!(stats.lost.abs_diff(dropped) * 50 <= dropped, "{} lost of {dropped}", stats.lost);
}

#[test]
fn a_simulated_pair_is_matched_and_its_delays_are_exact() {
    check(pair_params(1, usize::MAX), false);
}

#[test]
fn a_pair_with_timestamps_in_microseconds_is_matched_too() {
    check(pair_params(1_000, 60_000), true);
}
