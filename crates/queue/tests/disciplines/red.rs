//! RED against the expectations of ns-3's tests, a recorded run of INET, and ns-2's shares of drops by flow.

use crate::disciplines::harness::rate;
use proptest::prelude::*;
use queuescope_queue::{
    Discipline, DropReason, Dropped, Limit, MarkReason, Outlet, Red, RedAdaptation, RedParams, RedStats, RedThresholds,
    RedUnit, Sink,
};
use queuescope_wire::{ByteCount, Class, Ecn, FlowId, Nanos, Packet, PacketId, QueueId};
use std::path::Path;

/// Records the ids of dropped and marked packets, and counts early drops by flow.
#[derive(Default)]
struct DropLog {
    early: [u64; 3],
    drops: Vec<(u64, DropReason)>,
    marks: Vec<u64>,
}

impl Sink for DropLog {
    fn dropped(&mut self, dropped: &Dropped) {
        self.drops.push((dropped.packet.id.0, dropped.reason));
        if dropped.reason == DropReason::Early {
            self.early[dropped.packet.flow.index()] += 1;
        }
    }

    fn marked(&mut self, packet: &Packet, _reason: MarkReason, _now: Nanos) {
        self.marks.push(packet.id.0);
    }
}

fn packet(id: u64, flow: u32, size: u64, ecn: Ecn) -> Packet {
    Packet { id: PacketId(id), flow: FlowId(flow), size: ByteCount(size), class: Class(0), ecn }
}

fn red(params: RedParams, seed: u64) -> Red {
    Red::new(params, Outlet { overhead: 0, rate: rate(), queue: QueueId(0), seed })
}

fn thresholds(min: f64, max: f64) -> Option<RedThresholds> {
    Some(RedThresholds { min, max })
}

/// The same parameters in bytes, for packets of the mean size.
fn in_bytes(params: RedParams) -> RedParams {
    let size = params.mean_packet.0;
    let Limit::Packets(packets) = params.limit else { panic!("{params:?}") };
    RedParams {
        unit: RedUnit::Bytes,
        limit: Limit::Bytes(ByteCount(packets * size)),
        thresholds: params
            .thresholds
            .map(|RedThresholds { min, max }| RedThresholds { min: min * size as f64, max: max * size as f64 }),
        ..params
    }
}

/// The counters after 300 arrivals at one moment, without a dequeue.
fn after_300_arrivals(params: RedParams, seed: u64, ecn: Ecn) -> RedStats {
    let mut queue = red(params, seed);
    for id in 0..300 {
        queue.enqueue(packet(id, 0, 500, ecn), Nanos(0), &mut DropLog::default());
    }
    *queue.stats()
}

/// The sum of these counters over 40 seeds: with the length in packets, and in bytes.
fn sum_over_seeds(params: RedParams, ecn: Ecn) -> [RedStats; 2] {
    [params, in_bytes(params)].map(|params| {
        let mut sum = RedStats::default();
        for seed in 0..40 {
            let stats = after_300_arrivals(params, seed, ecn);
            sum.overlimit += stats.overlimit;
            sum.early += stats.early;
            sum.forced += stats.forced;
            sum.marked_early += stats.marked_early;
        }
        sum
    })
}

#[test]
fn drops_are_ordered_as_in_ns3_tests() {
    let drops = |params| sum_over_seeds(params, Ecn::NotEct).map(|stats| stats.overlimit + stats.early + stats.forced);
    let more = |params, than: [u64; 2]| {
        let found = drops(params);
        assert!(found[0] > than[0] && found[1] > than[1], "{params:?}: {found:?} against {than:?}");
    };
    let base = RedParams { thresholds: thresholds(70.0, 150.0), limit: Limit::Packets(300), ..RedParams::default() };
    assert_eq!(drops(base), [0, 0]);
    let heavy = RedParams { weight: Some(0.02), ..base };
    let third = drops(heavy);
    assert!(third[0] > 0 && third[1] > 0, "{third:?}");
    more(RedParams { thresholds: thresholds(70.0, 100.0), ..heavy }, third);
    more(RedParams { max_probability: 0.2, ..heavy }, third);
    more(RedParams { gentle: false, ..heavy }, third);
    more(RedParams { wait: false, ..heavy }, third);
}

#[test]
fn marks_and_variants_are_as_in_ns3_tests() {
    let thresholds = thresholds(30.0, 90.0);
    let base = RedParams { thresholds, limit: Limit::Packets(300), max_probability: 0.5, ..RedParams::default() };
    let linear = sum_over_seeds(base, Ecn::NotEct).map(|stats| stats.early);
    assert!(linear[0] > 0 && linear[1] > 0, "{linear:?}");
    // A mark needs both: ECN in the queue, and an ECN-capable packet.
    for (params, ecn) in [(RedParams { ecn: true, ..base }, Ecn::NotEct), (base, Ecn::Ect0)] {
        for (stats, linear) in sum_over_seeds(params, ecn).into_iter().zip(linear) {
            assert_eq!((stats.early, stats.marked_early), (linear, 0));
        }
    }
    for stats in sum_over_seeds(RedParams { ecn: true, ..base }, Ecn::Ect0) {
        assert_eq!(stats.early, 0);
        assert!(stats.marked_early > 0);
    }
    let feng = RedAdaptation::SelfConfiguring { decrease: 3.0, increase: 2.0 };
    for params in [RedParams { adaptation: feng, ..base }, RedParams { nonlinear: true, ..base }] {
        let found = sum_over_seeds(params, Ecn::NotEct).map(|stats| stats.early);
        assert!(found[0] < linear[0] && found[1] < linear[1], "{params:?}: {found:?} against {linear:?}");
    }
}

/// ns-3's `UseHardDrop`: it applies only above the end of the curve.
#[test]
fn a_hard_drop_drops_packets_that_could_be_marked() {
    let thresholds = thresholds(5.0, 15.0);
    let base = RedParams {
        thresholds,
        limit: Limit::None,
        weight: Some(1.0),
        ecn: true,
        gentle: false,
        ..RedParams::default()
    };
    for (hard_drop, forced, marked) in [(true, 285, 0), (false, 0, 285)] {
        let stats = after_300_arrivals(RedParams { hard_drop, ..base }, 1, Ecn::Ect0);
        // The first 15 packets pass or are marked early. Each of the others finds 15 or more.
        assert_eq!((stats.forced, stats.marked_forced), (forced, marked));
        assert_eq!(stats.early, 0);
    }
}

/// A switch that marks behind its queue. Of ten packets in the queue, those that leave four or more behind are marked
/// if they are ECN-capable. Nothing is dropped, and a packet that already carries CE is not counted as a mark.
#[test]
fn at_egress_a_packet_is_marked_by_the_backlog_behind_it() {
    let params = RedParams { at_egress: true, ..RedParams::step(4, Limit::Packets(10)) };
    let (mut queue, mut log) = (red(params, 0), DropLog::default());
    for id in 0..12 {
        let ecn = [Ecn::Ect0, Ecn::Ect1, Ecn::NotEct, Ecn::Ce][id as usize % 4];
        queue.enqueue(packet(id, 0, 1000, ecn), Nanos(0), &mut log);
    }
    assert_eq!(log.drops, [(10, DropReason::Overlimit), (11, DropReason::Overlimit)]);
    let left = std::iter::from_fn(|| queue.dequeue(Nanos(1), &mut log)).map(|left| (left.packet.id.0, left.packet.ecn));
    let left = left.collect::<Vec<_>>();
    assert_eq!(left[..4], [(0, Ecn::Ce), (1, Ecn::Ce), (2, Ecn::NotEct), (3, Ecn::Ce)]);
    assert_eq!(left[4..8], [(4, Ecn::Ce), (5, Ecn::Ce), (6, Ecn::NotEct), (7, Ecn::Ce)]);
    assert_eq!(left[8..], [(8, Ecn::Ect0), (9, Ecn::Ect1)]);
    assert_eq!(log.marks, [0, 1, 4, 5]);
    let stats = queue.stats();
    assert_eq!((stats.marked_threshold, stats.early + stats.forced, stats.overlimit), (4, 0, 2));
}

/// While the link is idle the average decays as if small packets found the queue empty. In half a second, 1 Mb/s sends
/// 125 packets of 500 bytes.
#[test]
fn the_average_decays_while_the_link_is_idle() {
    let mut queue = red(RedParams { weight: Some(0.02), limit: Limit::None, ..RedParams::default() }, 0);
    let mut log = DropLog::default();
    for id in 0..10 {
        queue.enqueue(packet(id, 0, 500, Ecn::NotEct), Nanos(0), &mut log);
    }
    for at in 0..10 {
        assert!(queue.dequeue(Nanos(at * 4_000_000), &mut log).is_some());
    }
    let before = queue.average();
    // The link sends the last packet from 36 to 40 ms.
    queue.enqueue(packet(10, 0, 500, Ecn::NotEct), Nanos(40_000_000 + 500_000_000), &mut log);
    let expected = before * 0.98f64.powi(126);
    assert!((queue.average() - expected).abs() < 1e-12, "{} {expected}", queue.average());
    // This packet finds an empty queue while the link sends the packet before it, so there is no idle time.
    queue.dequeue(Nanos(540_000_000), &mut log);
    let before = queue.average();
    queue.enqueue(packet(11, 0, 500, Ecn::NotEct), Nanos(543_000_000), &mut log);
    assert!((queue.average() - before * 0.98).abs() < 1e-12);
    // A dequeue before the packet is due means that the link is faster than its stated rate. Idle time starts there.
    queue.dequeue(Nanos(544_000_000), &mut log);
    assert!(queue.dequeue(Nanos(545_000_000), &mut log).is_none());
    let before = queue.average();
    queue.enqueue(packet(12, 0, 500, Ecn::NotEct), Nanos(549_000_000), &mut log);
    assert!((queue.average() - before * 0.98 * 0.98).abs() < 1e-12);
}

/// ns-2's `flows_unforced`: the share of each of three flows in the early drops equals its share in the arrivals. ns-2
/// counts a hundred drops per epoch; here there are enough to detect a difference of 1 %.
#[test]
fn early_drops_fall_on_flows_by_their_share() {
    let shares = [0.471, 0.160, 0.369];
    let params = RedParams { thresholds: thresholds(5.0, 40.0), limit: Limit::Packets(200), ..RedParams::default() };
    for params in [params, RedParams { wait: false, gentle: false, ..params }] {
        let mut queue = red(params, 5);
        let mut log = DropLog::default();
        let mut bits = 9u64;
        let mut uniform = || {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        };
        // A packet takes 4 ms. Packets arrive 1.02 times as fast, at random.
        let (mut now, mut free, mut came) = (0.0, 0.0, [0u64; 3]);
        for id in 0..400_000 {
            now -= 4e6 / 1.02 * f64::ln(uniform());
            while free < now {
                let left = queue.dequeue(Nanos(free as u64), &mut log);
                free = if left.is_some() { free + 4e6 } else { now };
            }
            let draw = uniform();
            let flow = if draw < shares[0] { 0 } else { 1 + u32::from(draw >= shares[0] + shares[1]) };
            came[flow as usize] += 1;
            queue.enqueue(packet(id, flow, 500, Ecn::NotEct), Nanos(now as u64), &mut log);
        }
        let drops: u64 = log.early.iter().sum();
        assert!(drops > 5_000, "{drops}");
        for (flow, (came, early)) in came.into_iter().zip(log.early).enumerate() {
            let share = came as f64 / 400_000.0;
            let found = early as f64 / drops as f64;
            let error = (share * (1.0 - share) / drops as f64).sqrt();
            assert!((found - share).abs() < 4.0 * error, "flow {flow}: {found} of {drops} drops, {share} of arrivals");
        }
    }
}

/// DCTCP's requirement for a switch: a packet is marked if and only if it finds at least K packets.
#[test]
fn a_step_marks_a_packet_that_finds_the_threshold() {
    let mut queue = red(RedParams::step(20, Limit::Packets(100)), 0);
    let mut log = DropLog::default();
    for id in 0..50 {
        queue.enqueue(packet(id, 0, 1500, Ecn::Ect0), Nanos(0), &mut log);
    }
    assert_eq!(log.marks, (20..50).collect::<Vec<_>>());
    for _ in 0..31 {
        assert!(queue.dequeue(Nanos(1), &mut log).is_some());
    }
    // The first finds 19 packets and passes, because the average has no memory. The second finds 20 and is dropped,
    // because it is not ECN-capable.
    queue.enqueue(packet(50, 0, 1500, Ecn::Ect0), Nanos(1), &mut log);
    queue.enqueue(packet(51, 0, 1500, Ecn::NotEct), Nanos(1), &mut log);
    assert_eq!((log.marks.len(), log.drops), (30, vec![(51, DropReason::Forced)]));
    assert_eq!((queue.stats().marked_threshold, queue.stats().forced), (30, 1));
}

proptest! {
    /// With weight 1 the average is the current queue.
    #[test]
    fn a_weight_of_one_has_no_memory(steps in prop::collection::vec((any::<bool>(), 0..100_000_000u64), 0..100)) {
        let mut queue = red(RedParams::step(1000, Limit::None), 0);
        let mut now = 0;
        for (arrives, gap) in steps {
            now += gap;
            if arrives {
                let before = queue.backlog().packets;
                queue.enqueue(packet(0, 0, 100, Ecn::NotEct), Nanos(now), &mut DropLog::default());
                prop_assert_eq!(queue.average(), before as f64);
            } else {
                queue.dequeue(Nanos(now), &mut DropLog::default());
            }
        }
    }
}

/// INET's test `RedDropper_1`: thresholds 1 and 3, probability 0.1, weight 0.5, and room for 3 packets. INET dropped
/// three of its 88 packets, all because the queue was full. With a probability of 0 the sequence here is the same. The
/// test also computes the chance that INET's run has no early drop, and checks that it is neither near 0 nor near 1.
#[test]
fn a_run_of_inet() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/aqm/inet-reddropper-1-events.csv");
    if !Path::new(path).exists() {
        println!(
            "skipped: a_run_of_inet: there is no aqm/inet-reddropper-1-events.csv in the data beside the repository"
        );
        return;
    }
    #[allow(clippy::disallowed_methods, reason = "a test reads its data")]
    let events = std::fs::read_to_string(path).unwrap();
    let params = RedParams {
        limit: Limit::Packets(3),
        thresholds: thresholds(1.0, 3.0),
        weight: Some(0.5),
        max_probability: 0.0,
        gentle: false,
        wait: false,
        ..RedParams::default()
    };
    let mut queue = red(params, 0);
    let (mut log, mut passed, mut dropped, mut none_early) = (DropLog::default(), 0, Vec::new(), 1.0);
    let mut since_drop = -1.0;
    for line in events.lines().skip(1) {
        let fields: Vec<_> = line.split(',').collect();
        let now = Nanos((fields[0].parse::<f64>().unwrap() * 1e9).round() as u64);
        let number: u64 = fields[3].parse().unwrap();
        let arrives = matches!(fields[2], "Passing" | "Filtering");
        if fields[1] == "dropper" && arrives {
            let drops = log.drops.len();
            queue.enqueue(packet(number, 0, 1, Ecn::NotEct), now, &mut log);
            let stays = log.drops.len() == drops;
            assert_eq!(stays, fields[2] == "Passing", "packet {number}");
            if stays {
                passed += 1;
            } else {
                dropped.push((number, now.as_secs_f64()));
            }
            assert!(queue.average() < 3.0);
            if queue.average() >= 1.0 && stays {
                since_drop += 1.0;
                let p = 0.1 * (queue.average() - 1.0) / 2.0;
                none_early *= 1.0 - p / (1.0 - since_drop * p);
            } else {
                since_drop = -1.0;
            }
        } else if fields[2] == "Pulling" {
            assert_eq!(queue.dequeue(now, &mut log).unwrap().packet.id.0, number);
        }
    }
    assert_eq!(passed, 85);
    let seconds = [(45, 51.890_316_624), (52, 58.780_200_700), (66, 70.954_253_949)];
    assert_eq!(dropped.iter().map(|&(number, _)| number).collect::<Vec<_>>(), seconds.map(|(number, _)| number));
    assert!(dropped.iter().zip(seconds).all(|(&(_, found), (_, at))| (found - at).abs() < 1e-8), "{dropped:?}");
    assert!(log.drops.iter().all(|&(_, reason)| reason == DropReason::Overlimit));
    assert!((0.05..0.95).contains(&none_early), "the probability of no early drop is {none_early}");
}
