//! ConQuest on a switch beside a router, against `queuescope tap`: the same pair of captures through both, packet by packet.

use crate::bmv2;
use crate::common::ROOT;
use crate::tap_pair::{Pair, PairParams};
use crate::tap_through_switch::{Switched, processed, through_switch};
use queuescope_meter::tap::{Arrived, Clock, TapDeparture, TapOutput, TapPacket, TapParams};
use queuescope_p4::algorithms::{ConQuestLegacyParams, conquest_legacy_with};
use queuescope_p4::ir::{Input, ParsedFrame, Trace};
use queuescope_queue::Limit;
use queuescope_sketch::{ConQuest, ConQuestParams, Ideal, Snapshots, TappedConQuestParams};
use queuescope_wire::parse::InvariantParams;
use queuescope_wire::{Granularity, Nanos, Rate};
use std::collections::BTreeMap;
use std::path::Path;

/// The longest delay: the queue holds 50 ms.
const MAX_DELAY: Nanos = Nanos(100_000_000);
/// An eighth of the longest delay, and a tenth of the longest queue.
const TAU: Nanos = Nanos(6_600_000);
const THRESHOLD: u32 = 12_500;

/// The demo through a router whose taps are stamped by one clock. One destination in ten is behind another link out. The taps of links in miss one packet in eight, as if those came
/// by a link without a tap.
fn pair() -> Pair {
    let params = PairParams {
        rate: Rate::from_bits_per_second(20_000_000).expect("a rate"),
        limit: Limit::Time(Nanos(50_000_000)),
        behind: Clock::default(),
        second: Clock::default(),
        resolution: 1,
        snaplens: (96, 90),
        elsewhere: 10,
        most: usize::MAX,
    };
    let mut pair = Pair::make(&Path::new(ROOT).join("data/demo.pcap.xz"), params).expect("the demo is there");
    pair.ingress.iter_mut().for_each(|records| records.retain(|record| record.id % 8 != 5));
    pair
}

/// Windows of 33.6 ms, so that the snapshots that are read cover the longest delay. All packets with a delay are reported.
fn params(slots: u32) -> ConQuestLegacyParams {
    let usual = ConQuestLegacyParams::default();
    let sketch = ConQuestParams { window: Nanos(1 << 25), ..usual.tapped.sketch.clone() };
    let tapped =
        TappedConQuestParams { sketch, slots, max_delay: MAX_DELAY, tau: Nanos::ZERO, threshold: 0, ..usual.tapped };
    ConQuestLegacyParams { tapped, ..usual }
}

/// The departures as the software matches them.
#[derive(Default)]
struct Log {
    egress: BTreeMap<Nanos, usize>,
    /// The packet, when it left, and when the packet came that it was matched with.
    left: Vec<(usize, Nanos, Option<Nanos>)>,
}

impl TapOutput for Log {
    fn departed(&mut self, departure: &TapDeparture) {
        let came = match departure.arrived {
            Arrived::Seen { enqueued, .. } => Some(enqueued),
            _ => None,
        };
        self.left.push((self.egress[&departure.seen.time], departure.dequeued, came));
    }

    fn lost(&mut self, _packet: &TapPacket, _link: usize, _enqueued: Nanos) {}
}

fn software(pair: &Pair) -> Log {
    let invariant = InvariantParams { reach: pair.reach(), ..InvariantParams::default() };
    let egress = pair.egress.iter().map(|record| (record.time, record.id)).collect();
    let mut log = Log { egress, left: Vec::new() };
    pair.tap_with_one_clock(
        TapParams { max_delay: MAX_DELAY, early: Nanos::ZERO, ..TapParams::default() },
        &invariant,
        &mut log,
    );
    log
}

/// How the packets that left compare.
#[derive(Debug, Default, PartialEq, Eq)]
struct Comparison {
    packets: usize,
    /// Of the same delay, to the nanosecond.
    same_delay: usize,
    /// Matched by neither.
    both_unseen: usize,
    /// Matched by the software alone: another packet had the place.
    occupied: usize,
    /// The same, where that packet has the same digest: the switch takes both for one.
    duplicate: usize,
    /// Matched with different packets, or by the switch alone: of several that look the same.
    other_of_same: usize,
    /// Any other difference.
    unexplained: usize,
}

/// What the switch identifies a packet by.
fn identity(frame: &ParsedFrame) -> [u64; 8] {
    Input::PACKET.map(|input| frame.input(input))
}

fn compare(software: &Log, switch: &Switched, identities: &BTreeMap<usize, [u64; 8]>) -> Comparison {
    let mut counts: BTreeMap<[u64; 8], usize> = BTreeMap::new();
    identities.values().for_each(|identity| *counts.entry(*identity).or_default() += 1);
    let is_repeated = |id: &usize| counts[&identities[id]] > 1;
    let mut all = Comparison { packets: software.left.len(), ..Comparison::default() };
    for (id, left, came) in &software.left {
        let place = match (came.map(|came| *left - came), switch.delays.get(id)) {
            (None, None) => &mut all.both_unseen,
            (Some(one), Some(other)) if one == *other => &mut all.same_delay,
            (Some(_), None) => match switch.occupied.get(id) {
                Some(by) if identities[by] == identities[id] => &mut all.duplicate,
                Some(_) => &mut all.occupied,
                None if is_repeated(id) => &mut all.other_of_same,
                None => &mut all.unexplained,
            },
            (_, Some(_)) if is_repeated(id) => &mut all.other_of_same,
            (_, Some(_)) => &mut all.unexplained,
        };
        *place += 1;
    }
    all
}

/// What the switch identifies each packet by.
fn identities(pair: &Pair) -> BTreeMap<usize, [u64; 8]> {
    let records = pair.ingress.iter().chain([&pair.egress]).flatten();
    records.map(|record| (record.id, identity(&ParsedFrame::new(&record.data)))).collect()
}

/// With the default table, and with one that is too small for the packets in the router.
#[test]
fn delays_on_a_switch_are_those_of_the_software_except_where_packets_collide() {
    let (pair, software) = {
        let pair = pair();
        let log = software(&pair);
        (pair, log)
    };
    let identities = identities(&pair);
    for (slots, least) in [(1 << 16, 0.99), (1 << 9, 0.5)] {
        let params = params(slots);
        let program = conquest_legacy_with(&params).expect("a switch can do this");
        let switch = through_switch(&program, &params, &processed(&pair, &params));
        let all = compare(&software, &switch, &identities);
        println!("{slots} places: {all:?}, fates {:?}", switch.fates);
        assert_eq!(all.unexplained, 0, "{all:?}");
        let matched = all.packets - all.both_unseen;
        assert!(all.same_delay as f64 >= least * matched as f64 && all.both_unseen > 1_000, "{all:?}");
        assert_eq!(switch.fates.iter().sum::<u64>() as usize, frames_of_taps(&pair), "each is counted once");
        assert_eq!(slots == 1 << 9, all.occupied > 100, "{all:?}");
    }
}

fn frames_of_taps(pair: &Pair) -> usize {
    pair.ingress[..crate::tap_pair::TAPPED].iter().map(Vec::len).sum::<usize>() + pair.egress.len()
}

/// Verdicts where the delay is the same differ only where flows share a column, which depends on the hash.
#[test]
fn verdicts_on_a_switch_are_those_of_the_software_except_where_flows_collide() {
    let (pair, params) = (pair(), params(1 << 16));
    let software = software(&pair);
    let program = conquest_legacy_with(&params).expect("a switch can do this");
    let switch = through_switch(&program, &params, &processed(&pair, &params));
    let sizes: BTreeMap<_, _> = pair
        .egress
        .iter()
        .map(|record| (record.id, ParsedFrame::new(&record.data).input(Input::IpLength) as u32))
        .collect();
    let sketch = &params.tapped.sketch;
    let (mut own, mut exact) =
        (ConQuest::new(sketch.clone()).expect("it is valid"), Ideal::new(sketch).expect("it is valid"));
    let keys = keys(&pair);
    let (mut same, mut collided, mut heavy) = (0, 0, 0);
    for (id, left, came) in &software.left {
        let (key, size, from) = (keys[id], sizes[id], came.unwrap_or(*left));
        let [own, exact] = [&mut own as &mut dyn Estimates, &mut exact].map(|it| it.observe(key, size, from, *left));
        let (Some(came), Some(delay)) = (came, switch.delays.get(id)) else { continue };
        if *left - *came != *delay {
            continue;
        }
        let estimate = u64::from(switch.estimates[id]);
        assert!(estimate >= exact && own >= exact, "a sketch does not lose bytes: {estimate} and {own} of {exact}");
        let is_heavy = |estimate| *delay > TAU && estimate >= u64::from(THRESHOLD);
        if is_heavy(estimate) == is_heavy(own) {
            same += 1;
        } else {
            assert_ne!(estimate, own);
            collided += 1;
        }
        heavy += usize::from(is_heavy(estimate));
    }
    println!(
        "{same} verdicts are the same, and {collided} differ by collisions of flows; {heavy} packets are reported"
    );
    assert!(heavy > 1_000 && collided * 50 < same, "{heavy} {collided} {same}");
}

/// Snapshots with and without collisions.
trait Estimates {
    fn observe(&mut self, key: u64, size: u32, from: Nanos, to: Nanos) -> u64;
}

impl<T: Snapshots> Estimates for T {
    fn observe(&mut self, key: u64, size: u32, from: Nanos, to: Nanos) -> u64 {
        let estimate = self.estimate(key, from, to, queuescope_sketch::Estimator::Outer);
        self.record(key, size, to);
        estimate
    }
}

/// The digest of each packet's flow, as the software knows it.
fn keys(pair: &Pair) -> BTreeMap<usize, u64> {
    let seen = pair.seen(&pair.egress, &InvariantParams::default());
    let digest = |packet: &TapPacket| Granularity::FiveTuple.project(&packet.key).digest();
    pair.egress.iter().zip(&seen).map(|(record, packet)| (record.id, digest(packet))).collect()
}

/// The frames of the taps and of the packet generator through BMv2, with the test build of the program: each comes back with the verdict of the interpreter.
#[test]
fn bmv2_gives_the_verdicts_of_the_interpreter_on_taps() {
    let Some(tools) = bmv2::tools("bmv2_gives_the_verdicts_of_the_interpreter_on_taps") else { return };
    let (pair, usual) = (pair(), params(1 << 16));
    let tapped = TappedConQuestParams { tau: TAU, threshold: THRESHOLD, ..usual.tapped };
    let params = ConQuestLegacyParams { tapped, ..usual };
    let program = conquest_legacy_with(&params).expect("a switch can do this");
    let frames = processed(&pair, &params).into_iter().map(|frame| (frame.time, frame.inputs));
    let trace = Trace::of_frames(&program, frames);
    assert!(trace.reported > 1_000, "{}", trace.reported);
    bmv2::replay(&tools, &program, &trace);
    println!("{} of {} packets are reported", trace.reported, trace.packets.len());
}
