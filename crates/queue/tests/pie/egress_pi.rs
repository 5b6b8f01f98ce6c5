//! Egress PI: its registers against a controller in floating point, which packets it chooses, and what it does to them.

use crate::pie::{RecordingSink, packet};
use proptest::prelude::*;
use queuescope_queue::{DropReason, Egress, EgressPi, EgressPiParams, Headers, Host, Pipeline, Port};
use queuescope_wire::{Backlog, Departure, Ecn, FlowId, Nanos, QueueId};

const US: u64 = 1_000;

fn program(params: EgressPiParams) -> EgressPi {
    EgressPi::new(params, 1, 7)
}

/// A packet leaves at `now` with this sojourn time. Returns the program's decision and the packet's codepoint after it.
fn leave(program: &mut EgressPi, ecn: Ecn, now: Nanos, sojourn: Nanos) -> (Egress, Ecn) {
    let mut departure = Departure {
        packet: packet(0, 1250, ecn),
        queue: QueueId(0),
        enqueued: now.saturating_sub(sojourn),
        dequeued: now,
        backlog_in: Backlog::default(),
        backlog_out: Backlog::default(),
    };
    let mut headers = Headers::plain(Host(0), Host(1), FlowId(1));
    let decision = program.egress(Port(0), &mut departure, &mut headers, &mut RecordingSink::default());
    (decision, departure.packet.ecn)
}

fn base(program: &EgressPi) -> f64 {
    program.base_probability(Port(0)).unwrap()
}

/// A program whose p' has just risen to `wanted`, and the current time.
fn program_at(wanted: f64) -> (EgressPi, Nanos) {
    let mut program = program(EgressPiParams::default());
    let mut now = Nanos(1_000_000);
    while base(&program) < wanted {
        now = now + Nanos(125 * US);
        leave(&mut program, Ecn::Ect0, now, Nanos(500 * US));
    }
    // Back at the target, p' has lost beta's part of the rise. Raise it again from there.
    while base(&program) < wanted {
        now = now + Nanos(125 * US);
        leave(&mut program, Ecn::Ect0, now, Nanos(126 * US));
    }
    (program, now)
}

/// p', and the fractions of packets with this codepoint that are marked and dropped, of 40 000 that leave within one
/// update interval.
fn shares(wanted: f64, ecn: Ecn) -> (f64, f64, f64) {
    let (mut program, now) = program_at(wanted);
    let (mut marked, mut dropped) = (0, 0);
    for number in 0..40_000u64 {
        let (decision, codepoint) = leave(&mut program, ecn, now + Nanos(number), Nanos(500 * US));
        marked += u64::from(codepoint == Ecn::Ce);
        dropped += u64::from(decision == Egress::Drop(DropReason::Early));
    }
    let share = |count: u64| count as f64 / 40_000.0;
    (base(&program), share(marked), share(dropped))
}

#[test]
fn classic_packets_are_marked_with_the_square_and_scalable_ones_with_twice_the_base() {
    for wanted in [0.1, 0.3, 0.6, 0.95] {
        let (base, marked, dropped) = shares(wanted, Ecn::Ect0);
        assert!((marked - base * base).abs() < 0.01 && dropped == 0.0, "{base} {marked}");
        let (base, marked, dropped) = shares(wanted, Ecn::Ect1);
        assert!((marked - (2.0 * base).min(1.0)).abs() < 0.01 && dropped == 0.0, "{base} {marked}");
        let (base, marked, dropped) = shares(wanted, Ecn::NotEct);
        assert!((dropped - base.min(0.5).powi(2)).abs() < 0.01 && marked == 0.0, "{base} {dropped}");
    }
}

#[test]
fn packets_that_waited_little_are_left_alone() {
    let EgressPiParams { calm, short, .. } = EgressPiParams::default();
    let chosen = |wanted: f64, sojourn: Nanos| {
        let (mut program, now) = program_at(wanted);
        assert!((base(&program) - wanted).abs() < 0.02);
        let before = program.stats().chosen;
        (0..10_000).for_each(|_| _ = leave(&mut program, Ecn::Ect0, now, sojourn));
        program.stats().chosen - before
    };
    let around = |limit: Nanos| [limit.saturating_sub(Nanos(2 * US)), limit + Nanos(2 * US)];
    let [below, above] = around(calm);
    assert_eq!(chosen(0.1, below), 0);
    assert!((60..=150).contains(&chosen(0.1, above)));
    // At a high p' windows are small, and packets are chosen from a shorter sojourn time on.
    let [below, above] = around(short);
    assert_eq!(chosen(0.3, below), 0);
    assert!((800..=1_300).contains(&chosen(0.3, above)));
}

#[test]
fn the_first_packet_after_an_interval_makes_the_update() {
    let mut program = program(EgressPiParams::default());
    let mut updates_after = |now: u64| {
        leave(&mut program, Ecn::Ect0, Nanos(now * US), Nanos::ZERO);
        program.stats().updates
    };
    assert_eq!([1000, 1010, 1120, 1126, 1130, 9000, 9001].map(&mut updates_after), [1, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn marked_packets_stay_marked() {
    let (mut program, now) = program_at(0.999);
    for _ in 0..100 {
        assert_eq!(leave(&mut program, Ecn::Ce, now, Nanos(500 * US)), (Egress::Send, Ecn::Ce));
    }
    let stats = program.stats();
    assert_eq!(stats.chosen, stats.marked + stats.marked_before + stats.dropped);
    assert!(stats.marked_before > 50);
}

proptest! {
    /// The registers agree with floating point, except for the unit of 1024 ns. Nothing wraps, whatever the delays.
    #[test]
    fn the_registers_follow_the_pi_controller(
        delays in prop::collection::vec(0u64..20_000, 1..300),
        shifts in (0u32..=16, 0u32..=17),
        target in 0u64..8_000,
    ) {
        let params = EgressPiParams {
            target: Nanos(target * US),
            alpha_shift: shifts.0,
            beta_shift: shifts.1,
            ..EgressPiParams::default()
        };
        let mut program = program(params);
        let whole = f64::from(u32::MAX);
        let [alpha, beta] = [shifts.0, shifts.1].map(|shift| f64::from(1u32 << shift) / whole);
        let units = |us: u64| ((us * US) >> 10) as f64;
        let (mut expected, mut before, mut now) = (0.0f64, 0.0, Nanos(1_000_000_000));
        for delay in delays {
            now = now + Nanos(130 * US);
            // A packet before the next update is due changes nothing.
            leave(&mut program, Ecn::Ect0, now, Nanos(delay * US));
            leave(&mut program, Ecn::Ect0, now + Nanos(US), Nanos(19_999 * US));
            let delay = units(delay).min(8191.0);
            let distance = delay.min(1023.0) - units(target).min(1023.0);
            expected = (expected + alpha * distance + beta * (delay - before)).clamp(0.0, 1.0);
            before = delay;
            prop_assert!((base(&program) - expected).abs() < 1e-9, "{} {expected}", base(&program));
        }
    }
}
