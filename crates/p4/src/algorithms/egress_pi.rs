//! Egress PI, which is designed for what a switch has.

use super::{PORTS, sojourn_time};
use crate::{Act, Aspect, Gress, Micro, Op, Program};
use queuescope_queue::EgressPiParams;
use queuescope_wire::Nanos;

/// Egress PI: a squared PI controller behind the queue. Shifts come before the differences, which is equivalent and
/// saves a step.
///
/// Models [`EgressPi`](queuescope_queue::EgressPi), step for step, with its defaults. Sojourn times wrap there after
/// 4398 s, here after 4.3 s. The mark's own match, on single bits, separates packets that one comparison chooses and
/// another does not. Which number is compared also depends on a match: two bits of ECN and the first bit of the larger
/// number.
pub fn egress_pi() -> Program {
    let mut program =
        Program::new("egress-pi", "marks or drops behind the queue, by the square of what follows the delay");
    let p = &mut program;
    let EgressPiParams { target, update, alpha_shift, beta_shift, calm, short, .. } = EgressPiParams::default();
    let [target, update, calm, short] = [target, update, calm, short].map(units);
    let (longest, far) = (EgressPiParams::LONGEST, EgressPiParams::FAR);
    let part = u32::MAX / EgressPiParams::MANY + 1;

    p.at(Gress::Egress).of(Aspect::Metric);
    let sojourn = sojourn_time(p);
    let sojourn = p.slice(sojourn, "sojourn / 1024", 22);
    let delay = p.simple(&format!("delay = sojourn / 1024, at most {longest}"), &[sojourn], bits(longest));
    let now = p.leaving("time of leaving the queue / 1024", 32);

    p.of(Aspect::Reaction);
    let updated = p.register("last update", 32, PORTS);
    let due = format!("due: last update {update} x 1024 ns ago or more, and now this");
    let due = p.update(updated, &due, &[Micro::Condition, Micro::Update], &[now]);
    let near = p.simple(&format!("delay, at most {far}"), &[sojourn], bits(far));
    let alpha = p.simple(&format!("that << {alpha_shift}"), &[near], 32);
    let beta = p.simple(&format!("delay << {beta_shift}"), &[delay], 32);
    let before = p.register(&format!("delay << {beta_shift} before"), 32, PORTS);
    let before = p.write(before, &format!("if due: delay << {beta_shift} before, now this"), &[beta, due]);
    let both = p.simple("sum of both", &[alpha, beta], 32);
    let both = p.simple(&format!("less {target} << {alpha_shift}"), &[both], 32);
    let change = format!("if due: change of p' = that less delay << {beta_shift} before");
    let change = p.simple(&change, &[both, before, due], 32);
    let probability = p.register("p'", 32, PORTS);
    let probability = p.update(probability, "p' + change", &[Micro::Update], &[change]);

    let ecn = p.header("ECN", 2);
    let one = p.compute("random number", Op::Random, &[], 32);
    let other = p.compute("another random number", Op::Random, &[], 32);
    let larger = p.simple("larger of both", &[one, other], 32);
    let above_half = p.slice(larger, "whether that is above a half", 1);
    let number = "that; half of one if ECT(1); the greatest if above a half and not ECN-capable";
    let number = p.simple(number, &[larger, one, ecn, above_half], 32);
    let below = p.compare("number < p'", &[number, probability]);
    let many = p.compare(&format!("p' >= 1/{part}"), &[probability]);
    let is_calm = p.compare(&format!("delay < {calm} (calm)"), &[delay]);
    let is_short = p.compare(&format!("delay < {short} (short)"), &[delay]);
    let bits = [below, many, is_calm, is_short, ecn];
    p.act("mark, if number < p' and not calm; not short, if p' is large", Act::Mark, &bits);
    p.act("drop the same, if not ECN-capable", Act::Drop, &bits);
    program
}

/// A time in the program's units of 1024 ns.
fn units(time: Nanos) -> u64 {
    time.0 >> 10
}

/// How many bits a number needs.
fn bits(number: u32) -> u32 {
    u32::BITS - number.leading_zeros()
}
