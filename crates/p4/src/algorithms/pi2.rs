//! PI2 (De Schepper et al., CoNEXT 2016; RFC 9332's controller).

use super::common::{PORTS, sojourn_time};
use super::pie::{differences, products, sampled};
use crate::{Act, Aspect, Gress, Micro, Op, Program};

/// PI2: PIE without scaling. A packet is dropped if two random numbers are below the probability, which squares it.
///
/// Models [`Pi2`](queuescope_queue::Pi2), with the gains of table II. That type draws one number for the square, marks
/// ECN-capable packets (scalable flows with 2 p'), spares short queues, and caps p'; here every chosen packet is
/// dropped.
pub fn pi2() -> Program {
    let mut program = Program::new("pi2", "drops at the door, by the square of what follows the delay");
    let p = &mut program;
    p.at(Gress::Ingress).of(Aspect::Reaction);
    let probability = p.register("drop_prob", 32, PORTS);
    let read = p.read(probability, "drop_prob", &[]);
    let one = p.compute("random number", Op::Random, &[], 32);
    let other = p.compute("another random number", Op::Random, &[], 32);
    let larger = p.simple("larger of both", &[one, other], 32);
    let chosen = p.compare("larger < drop_prob", &[larger, read]);
    p.act("drop", Act::Drop, &[chosen]);

    p.at(Gress::Egress).of(Aspect::Metric);
    let sojourn = sojourn_time(p);
    let delay = sampled(p, sojourn, 32);
    let change = differences(p, delay);
    let update = products(p, change);
    p.update(probability, "drop_prob + update", &[Micro::Update], &[update]);
    program
}
