//! PIE_CP.

use super::{NoSink, same_numbers, wandering};
use proptest::prelude::*;
use queuescope_p4::Gress;
use queuescope_p4::algorithms::{pie_cp_control, pie_cp_with};
use queuescope_p4::ir::{Architecture, Interpreter, Leaving};
use queuescope_queue::{Egress, Headers, Host, Ingress, PieCp, PieCpDecay, PieCpParams, Pipeline, Port};
use queuescope_wire::{FlowId, Nanos};
use std::process::Command;

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

/// Runs Python; none, with a message, where there is none.
#[allow(clippy::disallowed_methods, reason = "the control plane is a program in Python")]
fn python(program: &str) -> Option<String> {
    match Command::new("python3").args(["-c", program]).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            println!(
                "skipped: the_control_plane_computes_what_the_rust_type_computes: there is no program python3: {error}"
            );
            None
        }
    }
}

/// The words that the program in Python writes, round by round, are those of the Rust type.
#[test]
fn the_control_plane_computes_what_the_rust_type_computes() {
    for (target, decay) in [(125_000, PieCpDecay::AsStated), (2_000_000, PieCpDecay::AsPublished)] {
        let params = PieCpParams { target: Nanos(target), decay, ..PieCpParams::default() };
        let mut rust = PieCp::new(params, 1, 1);
        let (mut delays, mut expected) = (Vec::new(), Vec::new());
        // Delays that rise and fall, with zeros among them: the last bits of a time are not in the register.
        for packet in wandering(7, 3_000) {
            let sojourn = Nanos(if packet.flow == 9 { 0 } else { packet.sojourn.0 / 8 });
            let mut departure = Leaving { sojourn, port: 0, ..packet }.departure();
            let headers = &mut Headers::plain(Host(1), Host(2), FlowId(9));
            let rounds = rust.stats().updates;
            rust.egress(Port(0), &mut departure, headers, &mut NoSink);
            while rust.stats().updates == rounds {
                let due = rust.next_timer().expect("a packet wakes the control plane");
                rust.on_timer(due);
            }
            delays.push(rust.delay_register(Port(0)).expect("there is a port"));
            // The result of this round comes into force.
            let written = rust.next_timer().expect("it writes");
            rust.on_timer(written);
            expected.push(rust.probability_register(Port(0)));
            if rust.stats().updates > rounds + 1 {
                // Another round read the same delay, and will write later.
                delays.push(rust.delay_register(Port(0)).expect("there is a port"));
                expected.push(None);
            }
        }
        for architecture in Architecture::ALL {
            let script = pie_cp_control(&params, architecture);
            let update = script.split("\nclass Switch").next().unwrap_or("").split("\nPORTS").next().unwrap_or("");
            let Some(printed) =
                python(&format!("{update}\nport = Port()\nfor delay in {delays:?}: print(port.update(delay))"))
            else {
                return;
            };
            let words: Vec<u32> = printed.lines().map(|line| line.parse().expect("a number")).collect();
            assert_eq!(words.len(), delays.len());
            let differ =
                words.iter().zip(&expected).filter(|(word, expected)| expected.is_some_and(|it| it != **word)).count();
            assert_eq!(differ, 0, "{}: of {}", architecture.name(), words.len());
            assert!(words.iter().filter(|word| **word > 0).count() > 500, "it is not always zero");
        }
    }
}
