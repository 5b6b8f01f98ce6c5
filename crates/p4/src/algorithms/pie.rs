//! PIE (RFC 8033), as table I of Kunze et al. grades it.

use super::common::{PORTS, by_chance, sojourn_time};
use crate::{Act, Aspect, Field, Gress, Micro, Op, Packets, Program, Register};
use queuescope_queue::PieGains;

/// PIE: drops before the queue by a probability, which follows the delay, its change and its own size.
///
/// Models [`Pie`](queuescope_queue::Pie), with the gains of table II. Left out, as in the paper: burst allowance,
/// derandomisation, the exceptions of the RFC's section 4.1, marks. The probability decays by a 64th here, where the
/// RFC has 2 %.
pub fn pie() -> Program {
    let mut program = Program::new("pie", "drops at the door, by a probability that follows the delay");
    let p = &mut program;
    let probability = drops_at_the_door(p);
    p.at(Gress::Egress).of(Aspect::Metric);
    let sojourn = sojourn_time(p);
    let delay = sampled(p, sojourn, 32);
    let change = differences(p, delay);
    let update = products(p, change);
    let before = p.read(probability, "drop_prob", &[]);
    // RFC 8033 section 4.2 has seven ranges of the probability; each further one halves the update more.
    let range = p.compute("range of drop_prob", Op::Compare(7), &[before], 3);
    let scaled = p.simple("update, scaled by range", &[update, range], 32);
    let after = p.simple("drop_prob + scaled update", &[before, scaled], 32);
    let calm = p.compute("no delay now, nor before", Op::Compare(2), &[delay, after], 1);
    p.update(probability, "drop_prob, or drop_prob - drop_prob / 64", &[Micro::Update, Micro::Update], &[after, calm]);
    program
}

/// Drops traffic before the queue by a probability; returns its register.
pub(super) fn drops_at_the_door(p: &mut Program) -> Register {
    p.at(Gress::Ingress).of(Aspect::Reaction);
    let probability = p.register("drop_prob", 32, PORTS);
    let read = p.read(probability, "drop_prob", &[]);
    let chosen = by_chance(p, read);
    p.act("drop", Act::Drop, &[chosen]);
    probability
}

/// Traffic stores its delay. Generated packets, which take the steps that follow, read it.
pub(super) fn sampled(p: &mut Program, sojourn: Field, bits: u32) -> Field {
    let delay = p.register("delay", bits, PORTS);
    p.write(delay, "delay of the last packet", &[sojourn]);
    p.by(Packets::Generated);
    let delay = p.read(delay, "delay of the last packet", &[]);
    p.of(Aspect::Reaction);
    delay
}

/// The distance to the target, and the change since the last update; a register keeps the previous delay.
pub(super) fn differences(p: &mut Program, delay: Field) -> [Field; 2] {
    let old = p.register("delay before", 32, PORTS);
    let distance = p.simple("delay - target", &[delay], 32);
    let old = p.write(old, "delay before, now delay", &[delay]);
    let change = p.simple("delay - delay before", &[delay, old], 32);
    [distance, change]
}

/// Both differences times their gains, added.
pub(super) fn products(p: &mut Program, [distance, change]: [Field; 2]) -> Field {
    let (alpha, beta) = PieGains::tofino().per_microsecond();
    let alpha = p.compute("alpha (delay - target)", Op::MultiplyBy(alpha), &[distance], 32);
    let beta = p.compute("beta (delay - delay before)", Op::MultiplyBy(beta), &[change], 32);
    p.simple("sum of both", &[alpha, beta], 32)
}
