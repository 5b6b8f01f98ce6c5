//! PIE against plain models of RFC 8033's pseudocode and of ns-3.

use crate::pie::model::{AppendixA, AppendixB, Fate, Ns3};
use crate::pie::{MS, RecordingSink, fire, outlet, packet};
use proptest::prelude::*;
use queuescope_queue::{Discipline, DropReason, Limit, Pie, PieActivation, PieDelay, PieParams};
use queuescope_wire::{ByteCount, Ecn, Nanos};

/// The time since the last step in nanoseconds, a number of packets, and the size and codepoint of each if they arrive;
/// `None` if they leave.
type Step = (u64, u32, Option<(u64, Ecn)>);

/// Long runs of arrivals, slightly more or fewer than departures, with pauses.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ce)];
    let arrive = (1..4u32, 40..1500u64, ecn).prop_map(|(count, size, ecn)| (count, Some((size, ecn))));
    let leave = (1..4u32).prop_map(|count| (count, None));
    let gap = prop_oneof![20 => 0..6 * MS, 1 => 20 * MS..400 * MS];
    prop::collection::vec((gap, prop_oneof![arrive, leave]).prop_map(|(gap, (count, what))| (gap, count, what)), 0..600)
}

/// What became of packet `id` according to the discipline.
fn fate(sink: &RecordingSink, id: u64) -> Fate {
    if sink.marked.iter().any(|(marked, _)| *marked == id) {
        return Fate::Marked;
    }
    match sink.dropped.iter().find(|dropped| dropped.packet.id.0 == id).map(|dropped| dropped.reason) {
        Some(DropReason::Early) => Fate::Early,
        Some(DropReason::Overlimit) => Fate::Overlimit,
        Some(reason) => panic!("{reason:?}"),
        None => Fate::Enqueued,
    }
}

/// A plain model of PIE.
trait Model {
    fn arrive(&mut self, size: u64, ecn: Ecn, now: Nanos) -> Fate;
    fn leave(&mut self, now: Nanos) -> bool;
    fn update(&mut self);
    fn probability(&self) -> f64;
    fn active(&self) -> bool {
        true
    }
}

impl Model for AppendixA {
    fn arrive(&mut self, size: u64, _ecn: Ecn, now: Nanos) -> Fate {
        self.enque(size, now)
    }
    fn leave(&mut self, now: Nanos) -> bool {
        self.deque(now)
    }
    fn update(&mut self) {
        self.calculate_drop_prob();
    }
    fn probability(&self) -> f64 {
        self.drop_prob()
    }
}

impl Model for AppendixB {
    fn arrive(&mut self, size: u64, ecn: Ecn, now: Nanos) -> Fate {
        self.enque(size, ecn, now)
    }
    fn leave(&mut self, now: Nanos) -> bool {
        self.deque(now)
    }
    fn update(&mut self) {
        self.calculate_drop_prob();
    }
    fn probability(&self) -> f64 {
        self.drop_prob()
    }
    fn active(&self) -> bool {
        self.active()
    }
}

impl Model for Ns3 {
    fn arrive(&mut self, size: u64, _ecn: Ecn, now: Nanos) -> Fate {
        self.enque(size, now)
    }
    fn leave(&mut self, now: Nanos) -> bool {
        self.deque(now)
    }
    fn update(&mut self) {
        self.calculate();
    }
    fn probability(&self) -> f64 {
        self.drop_prob()
    }
}

/// Runs the same steps through PIE and a model, and compares the fate of every packet, the probability and whether PIE
/// is active. The model is updated every 15 ms from the first packet on, or from time 0 if `absolute`. Returns how many
/// packets were dropped early or marked.
fn compare(params: PieParams, mut model: impl Model, steps: &[Step], absolute: bool) -> Result<usize, TestCaseError> {
    let mut pie = Pie::new(params, outlet(10_000_000));
    let (mut sink, mut now, mut id) = (RecordingSink::default(), Nanos(3 * MS), 0);
    let mut due = absolute.then_some(Nanos(0));
    let mut early = 0;
    for (gap, count, what) in steps {
        now = now + Nanos(*gap);
        while let Some(at) = due.filter(|due| *due <= now) {
            model.update();
            due = Some(at + Nanos(15 * MS));
        }
        fire(&mut pie, now);
        for _ in 0..*count {
            match what {
                Some((size, ecn)) => {
                    due = due.or(Some(now + Nanos(15 * MS)));
                    let expected = model.arrive(*size, *ecn, now);
                    pie.enqueue(packet(id, *size, *ecn), now, &mut sink);
                    prop_assert_eq!(fate(&sink, id), expected, "packet {} at {:?}", id, now);
                    early += usize::from(matches!(expected, Fate::Early | Fate::Marked));
                    id += 1;
                }
                None => prop_assert_eq!(pie.dequeue(now, &mut sink).is_some(), model.leave(now)),
            }
            prop_assert!((pie.drop_probability() - model.probability()).abs() < 1e-12);
            prop_assert_eq!(pie.is_active(), model.active());
        }
    }
    Ok(early)
}

/// A slow link whose steady load is a third above its rate, so that packets are dropped early.
fn overload(arrivals: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for index in 0..arrivals {
        let ecn = if index % 3 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        steps.push((2 * MS, 1, Some((1000, ecn))));
        if index % 4 != 0 {
            steps.push((0, 1, None));
        }
    }
    steps
}

fn appendix_b(tail_drop: u64) -> PieParams {
    PieParams { limit: Limit::Bytes(ByteCount(tail_drop)), ..PieParams::appendix_b() }
}

fn ns3(limit: u64) -> PieParams {
    PieParams::ns3_with_limit(Limit::Packets(limit))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn appendix_a_is_followed(steps in steps()) {
        compare(PieParams::appendix_a(), AppendixA::new(7), &steps, false)?;
    }

    #[test]
    fn appendix_b_is_followed(steps in steps(), tail_drop in 20_000..200_000u64) {
        compare(appendix_b(tail_drop), AppendixB::new(tail_drop, 7), &steps, false)?;
    }

    #[test]
    fn ns3_is_followed(steps in steps(), limit in 5..200u64) {
        compare(ns3(limit), Ns3::new(usize::try_from(limit).unwrap(), 7), &steps, true)?;
    }
}

#[test]
fn pie_agrees_with_the_models_under_overload() {
    let steps = overload(4_000);
    assert!(compare(PieParams::appendix_a(), AppendixA::new(7), &steps, false).unwrap() > 100);
    let b = compare(appendix_b(90_000), AppendixB::new(90_000, 7), &steps, false).unwrap();
    assert!(b > 100, "{b}");
    assert!(compare(ns3(500), Ns3::new(500, 7), &steps, true).unwrap() > 100);
}

/// The expected values were computed independently of this code, from section 4.2. The delay at the updates is 20, 40,
/// 60 ... ms up to 200 ms, then 0. The update interval is a second, so that one packet per interval can set the delay.
#[test]
fn probabilities_follow_section_4_2() {
    let params = PieParams { update: Nanos(1_000 * MS), first_update: Some(Nanos(0)), ..PieParams::appendix_a() };
    let mut pie = Pie::new(params, outlet(10_000_000));
    let mut sink = RecordingSink::default();
    let mut probabilities = Vec::new();
    for step in 1..=40u64 {
        let delay = if step <= 30 { (20 * step).min(200) * MS } else { 0 };
        let now = Nanos(1_000 * MS * step - 1);
        pie.enqueue(packet(step, 100, Ecn::NotEct), now.saturating_sub(Nanos(delay)), &mut sink);
        pie.dequeue(now, &mut sink).unwrap();
        fire(&mut pie, Nanos(1_000 * MS * step));
        probabilities.push(pie.drop_probability());
    }
    for (step, expected) in GOLDEN {
        let found = probabilities[step - 1];
        assert!((found - expected).abs() <= expected * 1e-9, "step {step}: {found:e} {expected:e}");
    }
}

const GOLDEN: [(usize, f64); 15] = [
    (1, 1.251_220_703_12e-5),
    (2, 2.322_387_695_31e-4),
    (3, 1.189_270_019_53e-3),
    (5, 9.783_020_019_53e-3),
    (8, 5.642_364_501_95e-2),
    (10, 1.032_986_450_2e-1),
    (11, 1.264_236_450_2e-1),
    (15, 2.189_236_450_2e-1),
    (20, 3.345_486_450_2e-1),
    (25, 4.501_736_450_2e-1),
    (30, 5.657_986_450_2e-1),
    (31, 3.139_236_450_2e-1),
    (32, 3.058_076_721_19e-1),
    (35, 2.824_207_495_37e-1),
    (40, 2.464_587_121_6e-1),
];

#[test]
fn derandomisation_bounds_the_gaps_between_drops() {
    let gaps = |derandomise: bool| {
        let params = PieParams {
            derandomise,
            mark_below: Some(1.0),
            limit: Limit::None,
            delay: PieDelay::LinkRate,
            alpha: 0.05,
            ..PieParams::default()
        };
        gaps_between_marks(params)
    };
    let (spread, random) = (gaps(true), gaps(false));
    // At 5 to 5.5 %, the gap between marks is at least 0.85 / 0.055 packets and at most 8.5 / 0.05.
    assert!(spread.len() > 500 && spread.iter().all(|gap| (16..=170).contains(gap)), "{spread:?}");
    assert!(random.iter().any(|gap| *gap < 5), "{random:?}");
}

/// The gaps between marks, in packets, at a constant probability slightly above 5 %.
fn gaps_between_marks(params: PieParams) -> Vec<u64> {
    let mut pie = Pie::new(params, outlet(8_000_000));
    let mut sink = RecordingSink::default();
    let mut id = 0;
    // 200 packets of 1000 bytes are 200 ms at 8 Mb/s. Updates raise the probability to 5 %, then there are no more.
    for _ in 0..200 {
        pie.enqueue(packet(id, 1000, Ecn::Ect0), Nanos(0), &mut sink);
        id += 1;
    }
    while pie.drop_probability() < 0.05 || pie.burst_allowance() > Nanos(0) {
        pie.on_timer(Nanos(0));
    }
    let start = pie.drop_probability();
    assert!(start < 0.055, "{start}");
    sink.marked.clear();
    for _ in 0..20_000 {
        pie.enqueue(packet(id, 1000, Ecn::Ect0), Nanos(0), &mut sink);
        id += 1;
    }
    sink.marked.windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
}

#[test]
fn there_are_no_updates_while_the_queue_is_empty() {
    let mut pie = Pie::new(PieParams::default(), outlet(10_000_000));
    let mut sink = RecordingSink::default();
    assert_eq!(pie.next_timer(), None);
    pie.enqueue(packet(0, 1000, Ecn::NotEct), Nanos(MS), &mut sink);
    assert_eq!(pie.next_timer(), Some(Nanos(16 * MS)));
    pie.dequeue(Nanos(2 * MS), &mut sink);
    fire(&mut pie, Nanos(1_000_000 * MS));
    assert_eq!((pie.next_timer(), pie.stats().updates), (None, 1));
    pie.enqueue(packet(1, 1000, Ecn::NotEct), Nanos(1_000_000 * MS), &mut sink);
    assert_eq!(pie.next_timer(), Some(Nanos(1_000_006 * MS)), "the grid starts at the first packet");
}

#[test]
fn options_that_are_off_have_no_effect() {
    let base = PieParams {
        derandomise: false,
        spare_below_half: false,
        short_queue: None,
        burst: queuescope_queue::PieBurst::None,
        mark_below: None,
        delay: PieDelay::LinkRate,
        scaling: queuescope_queue::PieScaling::None,
        activation: PieActivation::Always,
        limit: Limit::None,
        ..PieParams::default()
    };
    // With all safeguards off and a gain that saturates in one update, every arrival is dropped.
    let mut pie = Pie::new(PieParams { alpha: 1e6, cap: false, ..base }, outlet(8_000));
    let mut sink = RecordingSink::default();
    pie.enqueue(packet(0, 100, Ecn::Ect0), Nanos(0), &mut sink);
    fire(&mut pie, Nanos(15 * MS));
    assert_eq!(pie.drop_probability(), 1.0);
    pie.enqueue(packet(1, 100, Ecn::Ect0), Nanos(16 * MS), &mut sink);
    assert_eq!((sink.drop_count(DropReason::Early), sink.marked.len()), (1, 0));
    // Each safeguard alone prevents the drop.
    for params in [
        PieParams { short_queue: Some(queuescope_queue::ShortQueue::Packets(1)), ..base },
        PieParams { burst: queuescope_queue::PieBurst::Rfc8033(Nanos(100 * MS)), ..base },
        PieParams { mark_below: Some(1.1), ..base },
        PieParams { activation: PieActivation::Delay(Nanos(1_000 * MS)), ..base },
    ] {
        let mut pie = Pie::new(PieParams { alpha: 1e6, cap: false, ..params }, outlet(8_000));
        let mut sink = RecordingSink::default();
        pie.enqueue(packet(0, 100, Ecn::Ect0), Nanos(0), &mut sink);
        fire(&mut pie, Nanos(15 * MS));
        pie.enqueue(packet(1, 100, Ecn::Ect0), Nanos(16 * MS), &mut sink);
        assert_eq!(sink.drop_count(DropReason::Early), 0, "{params:?}");
    }
}
