//! The expectations of a known PIE test suite, which compares settings with each other because drops are random: 400
//! packets of 1000 bytes arrive, one every 10 ms, and the link dequeues 400 times, once every `drain` ms, for 8 s.

use crate::pie::{MS, RecordingSink, fire, outlet, packet};
use queuescope_queue::{Discipline, DropReason, Limit, Pie, PieActivation, PieBurst, PieParams};
use queuescope_wire::{Ecn, Nanos};

#[derive(Debug, Default)]
struct Outcome {
    early: usize,
    forced: usize,
    marked: usize,
    /// The largest rise of the probability in one update that started above 10 %.
    largest_rise: f64,
}

fn run(params: PieParams, packets: u64, each: u64, drain: u64, ecn: Ecn) -> Outcome {
    let mut pie = Pie::new(PieParams { limit: Limit::Packets(300), ..params }, outlet(1_000_000));
    let mut sink = RecordingSink::default();
    let mut largest_rise = 0.0f64;
    for millisecond in 1..=8_000 {
        let now = Nanos(millisecond * MS);
        let before = pie.drop_probability();
        fire(&mut pie, now);
        if before > 0.1 {
            largest_rise = largest_rise.max(pie.drop_probability() - before);
        }
        if millisecond % each == 0 && millisecond / each <= packets {
            pie.enqueue(packet(millisecond, 1000, ecn), now, &mut sink);
        }
        if millisecond % drain == 0 && millisecond / drain <= packets {
            pie.dequeue(now, &mut sink);
        }
    }
    let stats = *pie.stats();
    assert_eq!(stats.early as usize, sink.drop_count(DropReason::Early));
    Outcome {
        early: sink.drop_count(DropReason::Early),
        forced: sink.drop_count(DropReason::Overlimit),
        marked: sink.marked.len(),
        largest_rise,
    }
}

/// The suite's own parameters, for both ns-3's PIE and the RFC's.
fn settings() -> [PieParams; 2] {
    let common = |params: PieParams, burst: PieBurst| PieParams {
        update: Nanos(30 * MS),
        target: Nanos(20 * MS),
        burst,
        mark_below: None,
        ..params
    };
    let burst = Nanos(100 * MS);
    [common(PieParams::ns3(), PieBurst::Ns3(burst)), common(PieParams::default(), PieBurst::Rfc8033(burst))]
}

#[test]
fn drops_are_ordered_as_the_suite_expects() {
    for params in settings() {
        let t2 = run(params, 400, 10, 12, Ecn::NotEct);
        assert!(t2.early > 0 && t2.forced == 0, "{t2:?}");
        let t3 = run(PieParams { target: Nanos(80 * MS), ..params }, 400, 10, 12, Ecn::NotEct);
        assert!(t3.early < t2.early && t3.forced == 0, "{t3:?} {t2:?}");
        let t4 = run(params, 400, 10, 15, Ecn::NotEct);
        assert!(t4.early > t2.early && t4.forced == 0, "{t4:?} {t2:?}");
        let t5 = run(PieParams { update: Nanos(90 * MS), ..params }, 400, 10, 15, Ecn::NotEct);
        assert!(t5.early < t4.early && t5.forced == 0, "{t5:?} {t4:?}");
    }
}

#[test]
fn the_cap_limits_an_update_to_two_percent() {
    for params in [PieParams::ns3(), PieParams { mark_below: None, ..PieParams::default() }] {
        let t7 = run(PieParams { cap: false, ..params }, 400, 10, 14, Ecn::NotEct);
        assert!(t7.largest_rise > 0.02, "{t7:?}");
        let t8 = run(params, 400, 10, 14, Ecn::NotEct);
        assert!(t8.largest_rise > 0.0 && t8.largest_rise <= 0.02 + 1e-12, "{t8:?}");
    }
}

#[test]
fn packets_are_marked_below_the_threshold_and_dropped_above() {
    for params in settings() {
        let t11 = run(PieParams { mark_below: Some(0.3), ..params }, 400, 10, 14, Ecn::Ect0);
        assert!(t11.marked > 0 && t11.early > 0, "{t11:?}");
        let never = run(PieParams { mark_below: Some(1.1), ..params }, 400, 10, 14, Ecn::Ect0);
        assert!(never.marked > 0 && never.early == 0, "{never:?}");
        let not_capable = run(PieParams { mark_below: Some(0.3), ..params }, 400, 10, 14, Ecn::NotEct);
        assert!(not_capable.marked == 0 && not_capable.early > 0, "{not_capable:?}");
    }
}

#[test]
fn nothing_is_dropped_before_the_activation_threshold() {
    for params in settings() {
        let activation = |delay| PieParams { activation: PieActivation::Delay(Nanos(delay)), ..params };
        let t15 = run(activation(1_000 * MS), 100, 10, 20, Ecn::NotEct);
        assert_eq!(t15.early, 0);
        let t16 = run(activation(MS), 100, 10, 20, Ecn::NotEct);
        assert!(t16.early > 0, "{t16:?}");
    }
}
