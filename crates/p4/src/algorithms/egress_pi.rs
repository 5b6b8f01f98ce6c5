//! Egress PI, which is made for what a switch has.

use super::{PORTS, sojourn_time};
use crate::{Act, Aspect, Gress, Micro, Op, Program};

/// Egress PI: a squared PI controller behind the queue. Shifts come before the differences, which is the same and a step less.
pub fn egress_pi() -> Program {
    let mut program =
        Program::new("egress-pi", "marks or drops behind the queue, by the square of what follows the delay");
    let p = &mut program;
    p.at(Gress::Egress).of(Aspect::Metric);
    let sojourn = sojourn_time(p);
    let sojourn = p.slice(sojourn, "sojourn / 1024", 22);
    let delay = p.simple("delay = sojourn, at most 8191", &[sojourn], 13);
    let now = p.queue_state("time of leaving the queue / 1024", 32);

    p.of(Aspect::Reaction);
    let updated = p.register("last update", 32, PORTS);
    let due = p.update(updated, "due: last update long ago, and now this", &[Micro::Condition, Micro::Update], &[now]);
    let near = p.simple("delay, at most 1023", &[sojourn], 10);
    let alpha = p.simple("that << 9", &[near], 32);
    let beta = p.simple("delay << 17", &[delay], 32);
    let before = p.register("delay << 17 before", 32, PORTS);
    let before = p.write(before, "if due: delay << 17 before, now this", &[beta, due]);
    let both = p.simple("sum of both", &[alpha, beta], 32);
    let both = p.simple("less target << 9", &[both], 32);
    let change = p.simple("if due: change of p' = that less delay << 17 before", &[both, before, due], 32);
    let probability = p.register("p'", 32, PORTS);
    let probability = p.update(probability, "p' + change", &[Micro::Update], &[change]);

    let ecn = p.header("ECN", 2);
    let one = p.compute("random number", Op::Random, &[], 32);
    let other = p.compute("another random number", Op::Random, &[], 32);
    let larger = p.simple("larger of both", &[one, other], 32);
    let capped = p.compare("above a half, and not ECN-capable", &[larger, ecn]);
    let number = p.simple("that; half of one if ECT(1); the greatest if capped", &[larger, one, ecn, capped], 32);
    let calm = p.compute("delay < calm, delay < short", Op::Compare(2), &[delay], 2);
    let chosen = p.compute(
        "number < p', and not calm, or not short if p' >= 1/8",
        Op::Compare(2),
        &[number, probability, calm],
        1,
    );
    p.act("mark", Act::Mark, &[chosen, ecn]);
    p.act("drop, if not ECN-capable", Act::Drop, &[chosen, ecn]);
    program
}
