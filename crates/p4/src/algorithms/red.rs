//! RED (Floyd and Jacobson, 1993), as table I of Kunze et al. grades it.

use super::common::{PORTS, by_chance};
use crate::{Act, Aspect, Gress, Micro, Op, Program, Special};

/// RED: packets read an average of the queue's length before the queue, and a drop probability that grows with it.
///
/// Models [`Red`](queuescope_queue::Red). As in the paper, the count of packets since the last drop, which spaces drops
/// evenly, is left out. Also left out are that type's handling of the average after idle time, and its adaptive kinds.
pub fn red() -> Program {
    let mut program = Program::new("red", "drops at the door, by the average length of the queue");
    let p = &mut program;
    p.at(Gress::Ingress).of(Aspect::Metric);
    let length = p.queue_state("the length of the queue", 19);
    let average = p.register("average", 32, PORTS);
    let average =
        p.update(average, "average += weight (length - average)", &[Micro::Special(Special::Average)], &[length]);
    p.of(Aspect::Reaction);
    // Twelve bits of the average: a 4096th of the queue.
    let ramp = Op::Function { name: "the probability between the thresholds", special: Some(Special::Ramp), bits: 12 };
    let probability = p.compute("probability by average", ramp, &[average], 32);
    let chosen = by_chance(p, probability);
    p.act("drop", Act::Drop, &[chosen]);
    program
}
