//! The step.

use super::{Leaving, NoSink, wandering};
use proptest::prelude::*;
use queuescope_p4::algorithms::step_with;
use queuescope_p4::ir::Interpreter;
use queuescope_queue::{Codel, CodelParams, Discipline, Outlet};
use queuescope_wire::{Ecn, Nanos, QueueId};

/// How many packets differ, and how many were marked.
fn compare(threshold: Nanos, packets: impl Iterator<Item = Leaving>) -> (usize, usize) {
    let program = step_with(threshold).expect("it fits");
    let mut interpreter = Interpreter::new(&program, 1);
    let outlet = Outlet { rate: "10gbps".parse().expect("a rate"), overhead: 0, queue: QueueId(0), seed: 1 };
    let params = CodelParams { target: Nanos::MAX, ce_threshold: Some(threshold), ..CodelParams::default() };
    let (mut different, mut marks) = (0, 0);
    for packet in packets {
        let departure = packet.departure();
        let mut queue = Codel::new(params, outlet);
        queue.enqueue(departure.packet, departure.enqueued, &mut NoSink);
        let left = queue.dequeue(departure.dequeued, &mut NoSink).expect("it is not dropped");
        let fate = interpreter.run(&|input| packet.input(input), &mut |_bits| 0);
        let is_marked = left.packet.ecn != packet.ecn;
        // To mark what is marked changes nothing.
        different += usize::from(fate.dropped || (fate.marked && packet.ecn != Ecn::Ce) != is_marked);
        marks += usize::from(is_marked);
    }
    (different, marks)
}

#[test]
fn decisions_are_those_of_the_rust_type() {
    for seed in 1..=3 {
        let (different, marks) = compare(Nanos(1_000_000), wandering(seed, crate::packets()));
        assert!(different == 0 && marks > 1_000, "seed {seed}: {different} differ, {marks} marks");
    }
}

proptest! {
    #[test]
    fn any_threshold_gives_the_same(threshold in 0u64..20_000_000, seed in any::<u64>()) {
        prop_assert_eq!(compare(Nanos(threshold), wandering(seed, 500)).0, 0);
    }
}
