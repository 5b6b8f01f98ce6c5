//! Egress PI.

use proptest::prelude::*;
use queuescope_p4::algorithms::egress_pi_with;
use queuescope_p4::ir::{Input, Interpreter, PacketFate, SwitchProgram};
use queuescope_queue::{Dropped, Egress, EgressPi, EgressPiParams, Headers, Host, MarkReason, Pipeline, Port, Sink};
use queuescope_wire::{ByteCount, Departure, Ecn, FlowId, Nanos, Packet};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};

struct NoSink;

impl Sink for NoSink {
    fn dropped(&mut self, _: &Dropped) {}
    fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
}

/// A packet: the port, the time since the one before, its sojourn time, and its ECN field.
type Arrival = (u16, u64, u64, u8);

/// How many packets differ. Both draw the same random numbers: `EgressPi` has a PCG of its own.
fn differences(
    program: &SwitchProgram,
    params: EgressPiParams,
    seed: u64,
    packets: impl Iterator<Item = Arrival>,
) -> usize {
    let mut rust = EgressPi::new(params, 128, seed);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut interpreter = Interpreter::new(program, 128);
    let (mut now, mut different) = (10_000_000_000, 0);
    for (port, gap, sojourn, ecn) in packets {
        now += gap;
        let ecn = Ecn::from_bits(ecn);
        let packet = Packet { size: ByteCount(1500), ecn, ..Packet::default() };
        let (enqueued, dequeued) = (Nanos(now - sojourn), Nanos(now));
        let mut departure = Departure { packet, enqueued, dequeued, ..Departure::default() };
        let headers = &mut Headers::plain(Host(1), Host(2), FlowId(9));
        let dropped = rust.egress(Port(port), &mut departure, headers, &mut NoSink) != Egress::Send;
        let chosen = PacketFate { dropped, marked: departure.packet.ecn != ecn };
        let input = |input| match input {
            Input::Port => u64::from(port),
            Input::Enqueued => enqueued.0,
            Input::Dequeued => dequeued.0,
            Input::Ecn => u64::from(ecn.bits()),
        };
        let mut fate = interpreter.run(&input, &mut |_| u64::from(random.next_u32()));
        // To mark what is marked changes nothing.
        fate.marked &= ecn != Ecn::Ce;
        let base =
            interpreter.words(2).map(|words| (words[usize::from(port)] ^ (1 << 31)) as f64 / f64::from(u32::MAX));
        different += usize::from(fate != chosen || base != rust.base_probability(Port(port)));
    }
    different
}

/// Sojourn times that wander, so that the probability takes all its values.
fn wandering(seed: u64, count: usize) -> impl Iterator<Item = Arrival> {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0x5eed);
    let mut level = 100_000u64;
    (0..count).map(move |_| {
        let bits = random.next_u64();
        level = (level + bits % 40_000).saturating_sub(bits >> 20 & 0x7fff).min(30_000_000)
            + u64::from(bits >> 60 == 0) * 90_000;
        if bits >> 52 & 0xff == 0 {
            level /= 8;
        }
        ((bits >> 40 & 3) as u16, bits >> 24 & 0x3fff, level, (bits >> 50 & 3) as u8)
    })
}

/// A million packets, with three seeds: `QUEUESCOPE_PACKETS=1000000`.
#[test]
fn decisions_and_registers_are_those_of_the_rust_type() {
    let count = crate::packets();
    let params = EgressPiParams::default();
    let program = egress_pi_with(&params).expect("the defaults fit");
    for seed in 1..=3 {
        assert_eq!(differences(&program, params, seed, wandering(seed, count)), 0, "seed {seed}");
    }
}

#[test]
fn all_outcomes_occur() {
    let params = EgressPiParams::default();
    let program = egress_pi_with(&params).expect("the defaults fit");
    let mut interpreter = Interpreter::new(&program, 128);
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let (mut now, mut dropped, mut marked) = (0, 0, 0);
    for (_, gap, sojourn, ecn) in wandering(1, 100_000) {
        now += gap;
        let input = |input| match input {
            Input::Port => 0,
            Input::Enqueued => now,
            Input::Dequeued => now + sojourn,
            Input::Ecn => u64::from(ecn),
        };
        let fate = interpreter.run(&input, &mut |_| u64::from(random.next_u32()));
        dropped += u32::from(fate.dropped);
        marked += u32::from(fate.marked);
    }
    assert!(dropped > 1_000 && marked > 1_000, "{dropped} dropped, {marked} marked");
}

proptest! {
    /// With any parameters that fit.
    #[test]
    fn any_parameters_give_the_same(
        target in 0u64..2_000_000,
        update in 0u64..2_000_000,
        alpha_shift in 0u32..=16,
        beta_shift in 0u32..=17,
        calm in 0u64..2_000_000,
        short in 0u64..2_000_000,
        seed in any::<u64>(),
    ) {
        let [target, update, calm, short] = [target, update, calm, short].map(Nanos);
        let params = EgressPiParams { target, update, alpha_shift, beta_shift, calm, short, ..EgressPiParams::default() };
        let program = egress_pi_with(&params).expect("they fit");
        prop_assert_eq!(differences(&program, params, seed, wandering(seed, 2_000)), 0);
    }
}
