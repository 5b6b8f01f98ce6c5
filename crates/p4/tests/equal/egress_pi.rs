//! Egress PI.

use super::{Leaving, NoSink, same_numbers, wandering};
use proptest::prelude::*;
use queuescope_p4::algorithms::egress_pi_with;
use queuescope_p4::ir::{Interpreter, PacketFate, SwitchProgram};
use queuescope_queue::{Egress, EgressPi, EgressPiParams, Headers, Host, Pipeline, Port};
use queuescope_wire::{Ecn, FlowId, Nanos};

/// How many packets differ, and the packets that were dropped and marked.
fn compare(
    program: &SwitchProgram,
    params: EgressPiParams,
    seed: u64,
    packets: impl Iterator<Item = Leaving>,
) -> (usize, [u32; 2]) {
    let mut rust = EgressPi::new(params, 4, seed);
    let (mut interpreter, mut random) = (Interpreter::new(program, 4), same_numbers(seed));
    let (mut different, mut acts) = (0, [0; 2]);
    for packet in packets {
        let mut departure = packet.departure();
        let headers = &mut Headers::plain(Host(1), Host(2), FlowId(9));
        let dropped = rust.egress(Port(packet.port), &mut departure, headers, &mut NoSink) != Egress::Send;
        let chosen = PacketFate { dropped, marked: departure.packet.ecn != packet.ecn, ..PacketFate::default() };
        let mut fate = interpreter.run(&|input| packet.input(input), &mut random);
        // To mark what is marked changes nothing.
        fate.marked &= packet.ecn != Ecn::Ce;
        let words = interpreter.words(2).expect("there are three registers");
        let base = (words[usize::from(packet.port)] ^ (1 << 31)) as f64 / f64::from(u32::MAX);
        different += usize::from(fate != chosen || Some(base) != rust.base_probability(Port(packet.port)));
        acts[0] += u32::from(fate.dropped);
        acts[1] += u32::from(fate.marked);
    }
    (different, acts)
}

#[test]
fn decisions_and_registers_are_those_of_the_rust_type() {
    let params = EgressPiParams::default();
    let program = egress_pi_with(&params).expect("the defaults fit");
    for seed in 1..=3 {
        let (different, acts) = compare(&program, params, seed, wandering(seed, crate::packets()));
        assert!(different == 0 && acts.iter().all(|count| *count > 1_000), "seed {seed}: {different}, {acts:?}");
    }
}

proptest! {
    /// With any parameters that a scenario takes.
    #[test]
    fn any_parameters_give_the_same(
        target in 0u64..8_000_000,
        update in 0u64..2_000_000,
        alpha_shift in 0u32..=16,
        beta_shift in 0u32..=17,
        calm in 0u64..20_000_000,
        short in 0u64..20_000_000,
        seed in any::<u64>(),
    ) {
        let [target, update, calm, short] = [target, update, calm, short].map(Nanos);
        let params = EgressPiParams { target, update, alpha_shift, beta_shift, calm, short, ..EgressPiParams::default() };
        let program = egress_pi_with(&params).expect("they fit");
        prop_assert_eq!(compare(&program, params, seed, wandering(seed, 2_000)).0, 0);
    }
}
