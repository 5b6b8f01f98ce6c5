//! The matcher compared with a simple search through all packets, and its counts.

use proptest::prelude::*;
use queuescope_meter::tap::{
    Arrived, Clock, Matcher, RouteBy, Survey, SurveyError, SurveyParams, TapDeparture, TapOutput, TapPacket, TapParams,
    TapStats, Unseen, drive,
};
use queuescope_wire::parse::{Fingerprint, NoFingerprint, Strength};
use queuescope_wire::{Ecn, Family, FlowKey, Nanos};
use std::convert::Infallible;

const MAX_DELAY: u64 = 1_000;
const EARLY: u64 = 50;

fn seen(time: u64, flow: u8, print: Result<Fingerprint, NoFingerprint>) -> TapPacket {
    let key = FlowKey { src: 1, dst: flow.into(), protocol: 17, family: Family::V4, ..FlowKey::default() };
    TapPacket { time: Nanos(time), key, size: 100, ecn: Ecn::NotEct, print }
}

fn print(digest: u64, strength: Strength, ttl: u8) -> Result<Fingerprint, NoFingerprint> {
    Ok(Fingerprint { digest, strength, segment: None, ttl })
}

fn params() -> TapParams {
    let (max_delay, early) = (Nanos(MAX_DELAY), Nanos(EARLY));
    TapParams { max_delay, early, entries: 1 << 12, empty: Nanos(1), routes: RouteBy::Flow, ..TapParams::default() }
}

#[derive(Default)]
struct Log {
    departures: Vec<TapDeparture>,
    lost: Vec<(TapPacket, usize)>,
}

impl TapOutput for Log {
    fn departed(&mut self, departure: &TapDeparture) {
        self.departures.push(*departure);
    }

    fn lost(&mut self, packet: &TapPacket, link: usize, _enqueued: Nanos) {
        self.lost.push((*packet, link));
    }
}

fn run(params: TapParams, clocks: &[Clock], ingress: &[Vec<TapPacket>], egress: &[TapPacket]) -> (TapStats, Log) {
    let (mut matcher, mut log) = (Matcher::new(params, clocks), Log::default());
    let mut feeds: Vec<_> = ingress
        .iter()
        .map(|packets| {
            let mut packets = packets.iter().copied();
            move || Ok::<_, Infallible>(packets.next())
        })
        .collect();
    let mut egress = egress.iter().copied();
    drive(&mut feeds, &mut || Ok(egress.next()), &mut matcher, &mut log).unwrap();
    let stats = *matcher.stats();
    let counted = stats.ingress_no_fingerprint
        + stats.matched
        + stats.lost
        + stats.routed_elsewhere
        + stats.ingress_copies
        + stats.ingress_outside
        + stats.ingress_evicted
        + stats.reverse;
    assert_eq!(counted, stats.ingress, "every packet that came in is counted once: {stats:#?}");
    let counted = stats.egress_no_fingerprint
        + stats.matched
        + stats.untapped
        + stats.missed_arrival
        + stats.egress_copies
        + stats.egress_outside
        + stats.reverse;
    assert_eq!(counted, stats.egress, "every packet that came out is counted once: {stats:#?}");
    (stats, log)
}

/// Runs one link whose clock is the same as the one behind the router.
fn run_one(ingress: &[TapPacket], egress: &[TapPacket]) -> (TapStats, Log) {
    run(params(), &[Clock::default()], &[ingress.to_vec()], egress)
}

/// For each packet that leaves, the link and the arrival of the packet that came in, found by a search of all packets.
fn search(clocks: &[Clock], ingress: &[Vec<TapPacket>], egress: &[TapPacket]) -> Vec<Option<(usize, Nanos)>> {
    let mut all: Vec<(Nanos, usize, TapPacket, bool)> = Vec::new();
    for (link, packets) in ingress.iter().enumerate() {
        all.extend(packets.iter().map(|seen| (clocks[link].convert(seen.time), link, *seen, false)));
    }
    all.sort_by_key(|(time, link, ..)| (*time, *link));
    let mut last = Nanos::ZERO;
    let mut find = |seen: &TapPacket| {
        let print = seen.print.ok()?;
        let fits = |(time, _, before, taken): &(Nanos, usize, TapPacket, bool)| {
            let inside = time.0 + MAX_DELAY >= seen.time.0 && time.0 <= seen.time.0 + EARLY;
            !taken && inside && before.print.is_ok_and(|known| known.digest == print.digest && known.ttl >= print.ttl)
        };
        let in_order = all.iter().position(|entry| fits(entry) && entry.0 >= last);
        let found = in_order.or_else(|| all.iter().position(fits))?;
        all[found].3 = true;
        last = last.max(all[found].0.min(seen.time));
        Some((all[found].1, all[found].2.time))
    };
    egress.iter().map(&mut find).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Packets, many of them with the same fingerprint, come in on three links, the last of them without a capture, in any order. Some are
    /// lost, some overtake others, and some are copied on their way out.
    #[test]
    fn packets_are_matched_as_by_a_search_through_all(
        packets in prop::collection::vec((0..400u64, 0..3usize, 0..30u64, 0..900u64, 0..10u8), 1..250),
        offset in 0..5_000i64,
        neighbours in any::<bool>()
    ) {
        let clocks = [Clock::new(Nanos(0), offset, 0.0), Clock::new(Nanos(0), offset + 300, 0.0)];
        let (mut ingress, mut egress, mut now) = (vec![Vec::new(), Vec::new()], Vec::new(), 10_000);
        for (gap, link, digest, delay, fate) in packets {
            now += gap;
            let packet = seen(now, digest as u8, print(digest, Strength::Sequence, 64));
            if let Some(packets) = ingress.get_mut(link) {
                packets.push(packet);
            }
            let left = now + delay + (offset as u64) + if link == 1 { 300 } else { 0 };
            let packet = seen(left, digest as u8, print(digest, Strength::Sequence, 63));
            match fate {
                0 => {}
                1 => egress.extend([packet, packet]),
                _ => egress.push(packet),
            }
        }
        egress.sort_by_key(|seen| seen.time);
        let unseen = if neighbours { Unseen::FromNeighbours } else { Unseen::Unknown };
        let (stats, log) = run(TapParams { unseen, ..params() }, &clocks, &ingress, &egress);
        let found: Vec<_> = log.departures.iter().map(|departure| match departure.arrived {
            Arrived::Seen { link, ingress, .. } => Some((link, ingress.time)),
            _ => None,
        }).collect();
        // Every packet that left is reported, in order, matched or not.
        prop_assert_eq!(log.departures.iter().map(|departure| departure.seen).collect::<Vec<_>>(), egress.clone());
        prop_assert_eq!(&found, &search(&clocks, &ingress, &egress));
        prop_assert_eq!(stats.matched, found.iter().flatten().count() as u64);
        for pair in log.departures.windows(2) {
            prop_assert!(pair[0].dequeued <= pair[1].dequeued);
        }
        for departure in &log.departures {
            prop_assert!(departure.enqueued().is_none_or(|enqueued| enqueued <= departure.dequeued));
        }
    }

    /// With a table that is too small, fewer packets are matched, none of them wrongly, and the removed ones are counted.
    #[test]
    fn a_small_table_forgets_and_says_so(delays in prop::collection::vec(0..900u64, 1..200), entries in 1..64usize) {
        let ingress: Vec<_> = (0..).zip(&delays).map(|(n, _)| seen(10_000 + n * 20, 1, print(n, Strength::Payload, 64))).collect();
        let mut egress: Vec<_> = (0..).zip(&delays).map(|(n, delay)| seen(10_000 + n * 20 + delay, 1, print(n, Strength::Payload, 63))).collect();
        egress.sort_by_key(|seen| seen.time);
        let (stats, log) = run(TapParams { entries, ..params() }, &[Clock::default()], std::slice::from_ref(&ingress), &egress);
        for departure in &log.departures {
            if let Arrived::Seen { ingress, .. } = departure.arrived {
                prop_assert_eq!(ingress.print.unwrap().digest, departure.seen.print.unwrap().digest);
            }
        }
        prop_assert_eq!(stats.matched + stats.ingress_evicted, delays.len() as u64);
        // 50 packets come in within the longest delay, and a few more may be early.
        prop_assert!(entries < 56 || stats.ingress_evicted == 0);
    }
}

#[test]
fn a_packet_is_lost_if_others_on_its_route_came_out() {
    let strong = |digest, ttl| print(digest, Strength::Identified, ttl);
    // The first packet of flow 1 is lost before any other came out, the last one while others come out; flow 2 is routed elsewhere.
    let ingress = [(5_000, 1, 0), (10_000, 1, 1), (15_000, 2, 2), (20_000, 1, 3), (25_000, 1, 4), (30_000, 1, 5)];
    let ingress = ingress.map(|(time, flow, digest)| seen(time, flow, strong(digest, 64)));
    let egress = [(4_000, 3, 9), (20_500, 1, 3), (30_100, 1, 5)].map(|(time, flow, d)| seen(time, flow, strong(d, 63)));
    let (stats, log) = run_one(&ingress, &egress);
    assert_eq!((stats.matched, stats.lost, stats.routed_elsewhere, stats.ingress_outside), (2, 3, 1, 0));
    assert_eq!(
        log.lost.iter().map(|(seen, _)| seen.time.0).collect::<Vec<_>>(),
        [25_000],
        "the others are only counted"
    );
    // With the routes of the first pass, all losses are reported.
    let first = {
        let mut matcher = Matcher::new(params(), &[Clock::default()]);
        let (mut before, mut after) = (ingress.iter().copied(), egress.iter().copied());
        let mut feeds = [|| Ok::<_, Infallible>(before.next())];
        drive(&mut feeds, &mut || Ok(after.next()), &mut matcher, &mut Log::default()).unwrap();
        matcher.routes()
    };
    let (mut matcher, mut log) = (Matcher::with_routes(params(), &[Clock::default()], first), Log::default());
    let (mut before, mut after) = (ingress.iter().copied(), egress.iter().copied());
    drive(&mut [|| Ok::<_, Infallible>(before.next())], &mut || Ok(after.next()), &mut matcher, &mut log).unwrap();
    assert_eq!(log.lost.len(), 3);
    assert_eq!(matcher.stats().lost, 3);
}

#[test]
fn packets_outside_the_other_capture_do_not_count_as_lost() {
    let identified = |digest, ttl| print(digest, Strength::Identified, ttl);
    let ingress = [(1_000, 0), (10_000, 1), (10_500, 2)].map(|(time, digest)| seen(time, 1, identified(digest, 64)));
    let egress = [(9_000, 7), (10_100, 1)].map(|(time, digest)| seen(time, 1, identified(digest, 63)));
    let (stats, _) = run_one(&ingress, &egress);
    // The first came before the capture behind the router started; the last may have left after its end.
    assert_eq!((stats.matched, stats.ingress_outside, stats.lost), (1, 2, 0));
    assert_eq!(
        (stats.missed_arrival, stats.untapped, stats.egress_outside),
        (1, 0, 0),
        "a flow that was seen to come in"
    );
}

#[test]
fn copies_are_distinguished_from_other_packets_with_the_same_fingerprint() {
    let identified = |digest, ttl| print(digest, Strength::Identified, ttl);
    let ingress = [(10_000, 1), (10_001, 1), (14_000, 2)].map(|(time, digest)| seen(time, 1, identified(digest, 64)));
    let egress = [(9_000, 8), (10_200, 1), (14_100, 2), (14_200, 2), (20_000, 9)];
    let (stats, log) = run_one(&ingress, &egress.map(|(time, digest)| seen(time, 1, identified(digest, 63))));
    assert_eq!((stats.matched, stats.ingress_copies, stats.egress_copies, stats.lost), (2, 1, 1, 0));
    assert_eq!((stats.repeats, stats.ambiguous), (0, 0), "an identification leaves no doubt");
    assert_eq!(log.departures.len(), 4, "a copy did not leave the router");
    // A payload that comes twice in a short time on one link is a copy; later, or on another link, it may have been sent twice.
    let payload = |digest, ttl| print(digest, Strength::Payload, ttl);
    let one = |gap: u64| [(200_000, 1), (200_000 + gap, 1)].map(|(time, digest)| seen(time, 1, payload(digest, 64)));
    let egress = [(100_000, 8), (200_200, 1), (900_000, 9)].map(|(time, digest)| seen(time, 1, payload(digest, 63)));
    let wide = TapParams { max_delay: Nanos(400_000), ..params() };
    for (gap, copies) in [(2_000, 1), (150_000, 0)] {
        let (stats, _) = run(wide, &[Clock::default()], &[one(gap).to_vec()], &egress);
        assert_eq!(
            (stats.ingress_copies, stats.lost, stats.repeats),
            (copies, 1 - copies, 1 - copies),
            "{gap} ns apart"
        );
    }
    let [first, second] = one(2_000).map(|seen| vec![seen]);
    let (stats, _) = run(wide, &[Clock::default(); 2], &[first, second], &egress);
    assert_eq!((stats.ingress_copies, stats.lost, stats.repeats), (0, 1, 1), "on two links");
    // Without identification and payload, they may be two packets.
    let weak = |digest, ttl| print(digest, Strength::Sequence, ttl);
    let ingress = [(10_000, 1), (10_001, 1)].map(|(time, digest)| seen(time, 1, weak(digest, 64)));
    let egress = [(9_000, 8), (10_200, 1), (20_000, 9)].map(|(time, digest)| seen(time, 1, weak(digest, 63)));
    let (stats, _) = run_one(&ingress, &egress);
    assert_eq!((stats.repeats, stats.ambiguous, stats.lost, stats.ingress_copies), (1, 1, 1, 0));
}

#[test]
fn retransmissions_are_distinguished_from_copies() {
    let segment = |digest| Ok(Fingerprint { digest, strength: Strength::Identified, segment: Some(77), ttl: 64 });
    // A copy, then the segment again with another identification, then again with the same fingerprint but much later.
    let ingress =
        [(10_000, 1), (10_001, 1), (10_500, 2), (20_000, 2)].map(|(time, digest)| seen(time, 1, segment(digest)));
    let (stats, _) = run_one(&ingress, &[]);
    assert_eq!((stats.retransmissions, stats.repeats), (2, 0));
}

#[test]
fn packets_in_the_opposite_direction_are_recognised_by_their_ttl() {
    let identified = |digest, ttl| print(digest, Strength::Identified, ttl);
    let ingress = [seen(10_000, 1, identified(1, 64)), seen(10_040, 2, identified(2, 50))];
    let egress = [seen(10_010, 2, identified(2, 51)), seen(10_100, 1, identified(1, 63))];
    let (stats, log) = run_one(&ingress, &egress);
    assert_eq!((stats.reverse, stats.matched, log.departures.len()), (1, 1, 1));
}

#[test]
fn a_missing_arrival_is_interpolated_between_its_neighbours() {
    let identified = |digest, ttl| print(digest, Strength::Identified, ttl);
    let ingress = [seen(10_000, 1, identified(1, 64)), seen(10_100, 1, identified(3, 64))];
    let egress = [(10_200, 1), (10_300, 2), (10_400, 3), (10_500, 4)].map(|(time, d)| seen(time, 1, identified(d, 63)));
    let params = TapParams { unseen: Unseen::FromNeighbours, ..params() };
    let (stats, log) = run(params, &[Clock::default()], &[ingress.to_vec()], &egress);
    let came: Vec<_> = log.departures.iter().map(|departure| departure.enqueued().map(|at| at.0)).collect();
    assert_eq!(came, [Some(10_000), Some(10_050), Some(10_100), None]);
    assert_eq!(stats.arrival_interpolated, 1);
}

#[test]
fn a_time_that_runs_back_and_packets_without_fingerprint_are_counted() {
    let egress = [seen(10_000, 1, Err(NoFingerprint::Cut)), seen(9_990, 1, Err(NoFingerprint::NotIp))];
    let (stats, log) = run_one(&[seen(9_000, 1, Err(NoFingerprint::Cut))], &egress);
    assert_eq!((stats.ingress_no_fingerprint, stats.egress_no_fingerprint, stats.time_ran_back), (1, 2, 1));
    assert_eq!(log.departures.iter().map(|departure| departure.dequeued.0).collect::<Vec<_>>(), [10_000, 10_000]);
}

/// 200 000 packets on each side, of which at most 2048 are remembered: the clock is still found.
#[test]
fn a_survey_remembers_few_packets_and_the_same_on_both_sides() {
    let clock = Clock::new(Nanos(0), -70_000_000_000, 12.5);
    let start = 1_000_000_000_000;
    let mut survey = Survey::new(SurveyParams { most: 1 << 11, ..SurveyParams::default() }, 1);
    for n in 0..200_000u64 {
        let digest = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
        let came = start + n * 100_000;
        let wait = if n % 3 == 0 { 0 } else { n * 7919 % 4_000_000 };
        survey.ingress(0, &seen(came, 1, print(digest, Strength::Payload, 64)));
        if n % 10 > 0 {
            let left = clock.convert(Nanos(came)).0 + wait;
            survey.egress(&seen(left, 1, print(digest, Strength::Payload, 63)));
        }
    }
    let surveyed = survey.finish().remove(0).unwrap();
    assert!(surveyed.one_in >= 64 && surveyed.agreeing > 500, "{surveyed:?}");
    assert!((surveyed.estimate.clock.drift_ppm() - 12.5).abs() < 0.01, "{surveyed:?}");
    let middle = Nanos(start + 10_000_000_000);
    assert!(surveyed.estimate.clock.offset_at(middle).abs_diff(clock.offset_at(middle)) < 200, "{surveyed:?}");
}

#[test]
fn a_survey_says_why_it_found_nothing() {
    let mut survey = Survey::new(SurveyParams::default(), 2);
    survey.ingress(0, &seen(1, 1, print(1, Strength::Payload, 64)));
    survey.ingress(1, &seen(1, 1, print(2, Strength::Payload, 60)));
    survey.egress(&seen(5, 1, print(2, Strength::Payload, 61)));
    let found = survey.finish();
    assert_eq!(found[0], Err(SurveyError::NothingInCommon { link: 0, ingress: 1, egress: 1 }));
    assert_eq!(found[1], Err(SurveyError::OnlyReverse { link: 1, reverse: 1 }));
    assert!(found[1].unwrap_err().to_string().contains("ingress capture 2"));
}

#[test]
fn a_trace_that_is_sent_in_a_loop_has_a_clock() {
    // 500 packets, five times each; behind the router from the second packet on, 7 µs later by a clock that is 0.25 s ahead.
    let times = (0..2_500).map(|n| (1_000_000_000 + n * 1_000_000, n % 500));
    let mut survey = Survey::new(SurveyParams::default(), 1);
    for (n, (time, digest)) in times.enumerate() {
        survey.ingress(0, &seen(time, 1, print(digest, Strength::Identified, 64)));
        if n > 0 {
            survey.egress(&seen(time + 250_007_000, 1, print(digest, Strength::Identified, 63)));
        }
    }
    let found = survey.finish().remove(0).unwrap();
    assert_eq!(found.estimate.clock.offset_at(Nanos(1_100_000_000)), 250_007_000);
    assert_eq!((found.agreeing, found.disagreeing), (499, 1));
}
