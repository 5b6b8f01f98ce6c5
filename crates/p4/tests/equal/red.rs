//! RED behind the queue.

use super::{Leaving, same_numbers, wandering};
use proptest::prelude::*;
use queuescope_p4::algorithms::red_egress_with;
use queuescope_p4::ir::{Input, Interpreter};
use queuescope_queue::{RedParams, RedThresholds, SwitchRed, SwitchVerdict};
use queuescope_wire::Ecn;

/// How many packets differ in their fate or the average of their port, and the packets that were dropped and marked.
fn compare(params: &RedParams, seed: u64, packets: impl Iterator<Item = Leaving>) -> (usize, [u32; 2]) {
    let program = red_egress_with(params).expect("they fit");
    let mut interpreter = Interpreter::new(&program, 4);
    let mut ports = vec![SwitchRed::new(params).expect("they fit"); 4];
    let (mut random, mut same) = (same_numbers(seed), same_numbers(seed));
    let (mut different, mut acts) = (0, [0; 2]);
    for packet in packets {
        let port = usize::from(packet.port);
        let can_be_marked = params.ecn && packet.ecn != Ecn::NotEct;
        let verdict = ports[port].judge(packet.input(Input::QueueLength) as u32, same(32) as u32);
        let expected = match verdict {
            SwitchVerdict::Pass => [false, false],
            SwitchVerdict::Certain if params.hard_drop => [true, false],
            SwitchVerdict::Early | SwitchVerdict::Certain => [!can_be_marked, can_be_marked],
        };
        let fate = interpreter.run(&|input| packet.input(input), &mut random);
        let word = interpreter.words(0).and_then(|words| words.get(port)).copied();
        different += usize::from([fate.dropped, fate.marked] != expected || word != Some(ports[port].word()));
        acts[0] += u32::from(fate.dropped);
        acts[1] += u32::from(fate.marked);
    }
    (different, acts)
}

#[test]
fn decisions_and_averages_are_those_of_the_rust_type() {
    for seed in 1..=3 {
        for ecn in [false, true] {
            // The queues of these packets are short.
            let thresholds = Some(RedThresholds { min: 0.5, max: 3.0 });
            let params = RedParams { thresholds, ecn, ..SwitchRed::defaults() };
            let (different, [drops, marks]) = compare(&params, seed, wandering(seed, crate::packets()));
            assert!(different == 0 && drops > 100 && (marks > 100) == ecn, "{seed}: {different}, {drops}, {marks}");
        }
    }
}

proptest! {
    #[test]
    fn any_parameters_give_the_same(
        min in 0.0f64..20.0, way in 0.0f64..20.0, max_probability in 0.0f64..=1.0, shift in 1i32..=16,
        [gentle, nonlinear, ecn, hard_drop] in any::<[bool; 4]>(), seed in any::<u64>()
    ) {
        let thresholds = Some(RedThresholds { min, max: min + way });
        let weight = Some(0.5f64.powi(shift));
        let params = RedParams { thresholds, weight, max_probability, gentle, nonlinear, ecn, hard_drop, ..SwitchRed::defaults() };
        prop_assert_eq!(compare(&params, seed, wandering(seed, 500)).0, 0);
    }
}
