//! PIE_CP.

use super::{NoSink, same_numbers, wandering};
use proptest::prelude::*;
use queuescope_p4::Gress;
use queuescope_p4::algorithms::pie_cp_with;
use queuescope_p4::ir::Interpreter;
use queuescope_queue::{Egress, Headers, Host, Ingress, PieCp, PieCpParams, Pipeline, Port};
use queuescope_wire::{FlowId, Nanos};

const PORTS: u16 = 4;

/// How many packets differ, and how many were dropped. The Rust type is the control plane of both.
fn compare(params: PieCpParams, seed: u64, count: usize) -> (usize, usize) {
    let program = pie_cp_with(&params).expect("it fits");
    let mut rust = PieCp::new(params, PORTS, seed);
    let (mut interpreter, mut random) = (Interpreter::new(&program, u64::from(PORTS)), same_numbers(seed));
    let (mut different, mut drops) = (0, 0);
    for packet in wandering(seed, count) {
        while rust.next_timer().is_some_and(|due| due <= packet.now) {
            rust.on_timer(packet.now);
            for port in 0..PORTS {
                let probability = rust.probability_register(Port(port)).expect("there is such a port");
                assert!(interpreter.write(0, usize::from(port), probability.into()), "there is such a word");
            }
        }
        let headers = &mut Headers::plain(Host(1), Host(2), FlowId(9));
        let mut departure = packet.departure();
        let ingress = rust.ingress(Port(packet.port), &mut departure.packet, headers, packet.now, &mut NoSink);
        let sent = rust.egress(Port(packet.port), &mut departure, headers, &mut NoSink);
        let input = |input| packet.input(input);
        let before = interpreter.run_at(Gress::Ingress, &input, &mut random);
        let behind = interpreter.run(&input, &mut random);
        let words = interpreter.words(1).expect("there are two registers");
        let delays = (0..PORTS).filter_map(|port| rust.delay_register(Port(port)).map(u64::from));
        let is_same = !behind.dropped && sent == Egress::Send && delays.eq(words.iter().copied());
        different += usize::from(before.dropped != matches!(ingress, Ingress::Drop(_)) || !is_same);
        drops += usize::from(before.dropped);
    }
    (different, drops)
}

#[test]
fn decisions_and_registers_are_those_of_the_rust_type() {
    for seed in 1..=3 {
        let (different, drops) = compare(PieCpParams::default(), seed, crate::packets());
        assert!(different == 0 && drops > 1_000, "seed {seed}: {different} differ, {drops} drops");
    }
}

proptest! {
    #[test]
    fn any_parameters_give_the_same(target in 0u64..70_000_000, period in 1_000u64..2_000_000, act in any::<bool>(), seed in any::<u64>()) {
        let params = PieCpParams { target: Nanos(target), period: Nanos(period), act, ..PieCpParams::default() };
        prop_assert_eq!(compare(params, seed, 2_000).0, 0);
    }
}
