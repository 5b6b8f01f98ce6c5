//! Egress PI, which is designed for what a switch has.

use super::common::{PIPE_PORTS, PORT_BITS};
use crate::ir::{
    AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Comparison, Condition, Input, InvalidProgram,
    Operand, Operation, RegisterAction, RegisterArray, SwitchProgram, Unit, Variable, When,
};
use crate::{Aspect, Program};
use queuescope_queue::EgressPiParams;
use queuescope_wire::Nanos;

/// The ECN field of a packet that is not ECN-capable, and that of ECT(1) (RFC 3168).
const NOT_ECT: u64 = 0b00;
const ECT1: u64 = 0b01;
/// Times are in units of 2^10 ns.
const UNITS: Unit = Unit::Nanos { shift: 10 };
/// The lowest number in two's complement, which is a probability of zero.
const ZERO: u64 = 1 << 31;
/// The bits of the longest delay, and of the longest distance from the target.
const DELAY_BITS: u32 = EgressPiParams::LONGEST.ilog2() + 1;
const FAR_BITS: u32 = EgressPiParams::FAR.ilog2() + 1;

/// Egress PI with its default parameters, as steps.
pub fn egress_pi() -> Program {
    egress_pi_with(&EgressPiParams::default()).expect("the default parameters fit").steps()
}

/// Egress PI: a squared PI controller behind the queue. Shifts come before the differences, which is equivalent and
/// saves a step.
///
/// Models [`EgressPi`](queuescope_queue::EgressPi), step for step. Sojourn times wrap there after 4398 s, here after 4.3 s.
///
/// # Errors
/// Fails if a parameter does not fit its register.
pub fn egress_pi_with(params: &EgressPiParams) -> Result<SwitchProgram, InvalidProgram> {
    let about = "marks or drops behind the queue, by the square of what follows the delay";
    let mut p = Builder::new("egress-pi", about, "docs/explanation/egress-pi.md of queuescope");
    let port = p.input(Input::Port).slice(0, PORT_BITS);
    let (enqueued, dequeued, ecn) = (p.input(Input::Enqueued), p.input(Input::Dequeued), p.input(Input::Ecn));

    p.of(Aspect::Metric);
    let difference = Operation::Subtract(dequeued.slice(0, 32), enqueued.slice(0, 32));
    let sojourn = p.compute("sojourn", 32, Unit::NANOS, difference);
    p.comment("The delay, in units of 1024 ns. It is bounded in nanoseconds, so that a hash unit shifts the units once, to where each is needed.");
    let longest = u64::from(EgressPiParams::LONGEST);
    let capped = p.compute("capped", 32, Unit::NANOS, Operation::Minimum(sojourn.into(), last_of(longest).into()));
    let delay = p.compute("delay", 32, UNITS, Operation::Gather(capped.slice(10, DELAY_BITS), 0));

    p.of(Aspect::Reaction).comment("Whether an update is due.");
    let due = is_due(&mut p, port, dequeued, params.update);
    let probability = probability(&mut p, params, port, [sojourn, capped], due);
    let number = number(&mut p, ecn);

    p.comment(
        "The packet is chosen if its number is below p'. Numbers in two's complement begin at the lowest, as p' does.",
    );
    let below = Operation::SubtractSigned(probability.into(), number.into());
    let excess = p.compute("excess", 32, Unit::Number, below);
    let is_below = [
        Condition::compare(excess, Comparison::NotEqual, 0),
        Condition::compare(excess.slice(31, 1), Comparison::Equal, 0),
    ];
    // An eighth is the first value whose three highest bits are not those of zero.
    let (part, zero) = (probability.slice(29, 3), ZERO >> 29);
    let spared_below = [(Comparison::Equal, params.calm), (Comparison::NotEqual, params.short)];
    // No delay reaches a longer time than the longest, so all packets are spared.
    let reachable = spared_below.into_iter().filter(|(_, time)| in_units(*time) <= longest);
    let is_long = reachable.map(|(comparison, time)| {
        let long = Condition::compare(delay.slice(0, DELAY_BITS), Comparison::GreaterOrEqual, in_units(time));
        Condition::All(vec![Condition::compare(part, comparison, zero), long])
    });
    let is_long: Vec<_> = is_long.collect();
    if !is_long.is_empty() {
        let long = p.variable("long", 1, Unit::Number);
        p.when(Condition::Any(is_long), |p| p.set(long, Operation::Copy(1.into())));
        let [one, other] = is_below;
        p.when(Condition::All(vec![one, other, Condition::compare(long, Comparison::Equal, 1)]), |p| {
            p.choose(Condition::compare(ecn, Comparison::Equal, NOT_ECT), Builder::drop_packet, Builder::mark_packet);
        });
    }
    p.build()
}

/// Whether the last update was long enough ago. Then this packet makes another.
fn is_due(p: &mut Builder, port: Operand, dequeued: Variable, period: Nanos) -> Variable {
    let now = AluTerm::Value(dequeued.slice(10, 32));
    let register = p.register(RegisterArray {
        name: "last_update".into(),
        about: "When the probability was last updated".into(),
        bits: 32,
        unit: UNITS,
        entries: PIPE_PORTS,
        initial: 0,
    });
    let long_ago = AluCondition {
        left: AluExpression::Subtract(now, AluTerm::Word),
        comparison: Comparison::GreaterOrEqual,
        right: AluTerm::Value(in_units(period).into()),
    };
    let action = RegisterAction {
        name: "start_update".into(),
        conditions: vec![long_ago],
        updates: vec![AluUpdate { when: When::Holds(0), value: AluExpression::Term(now) }],
        output: AluOutput::Condition(0),
    };
    let due = p.variable("due", 1, Unit::Number);
    p.access(register, port, action, Some(due));
    due
}

/// p' after the update, if one is due.
fn probability(
    p: &mut Builder,
    params: &EgressPiParams,
    port: Operand,
    [sojourn, capped]: [Variable; 2],
    due: Variable,
) -> Variable {
    p.comment("The change of p': ((delay - target) << alpha) + ((delay - delay before) << beta).");
    let far = u64::from(EgressPiParams::FAR);
    let near = p.compute("near", 32, Unit::NANOS, Operation::Minimum(sojourn.into(), last_of(far).into()));
    let alpha = Operation::Gather(near.slice(10, FAR_BITS), params.alpha_shift);
    let alpha = p.compute("alpha", 32, Unit::Number, alpha);
    let beta = Operation::Gather(capped.slice(10, DELAY_BITS), params.beta_shift);
    let beta = p.compute("beta", 32, Unit::Number, beta);
    let both = p.compute("both", 32, Unit::Number, Operation::Add(alpha.into(), beta.into()));
    let target = in_units(params.target).min(far) << params.alpha_shift;
    let distance = p.compute("distance", 32, Unit::Number, Operation::Subtract(both.into(), target.into()));
    let last = p.register(RegisterArray {
        name: "last_delay".into(),
        about: "The delay of the last update, shifted by beta".into(),
        bits: 32,
        unit: Unit::Number,
        entries: PIPE_PORTS,
        initial: 0,
    });
    let (before, change) = (p.variable("before", 32, Unit::Number), p.variable("change", 32, Unit::Number));
    p.when(Condition::compare(due, Comparison::Equal, 1), |p| {
        let keep = AluExpression::Term(AluTerm::Value(beta.into()));
        let action = RegisterAction {
            name: "keep_delay".into(),
            conditions: Vec::new(),
            updates: vec![AluUpdate { when: When::Always, value: keep }],
            output: AluOutput::Before,
        };
        p.access(last, port, action, Some(before));
        p.set(change, Operation::Subtract(distance.into(), before.into()));
    });
    let register = p.register(RegisterArray {
        name: "base_probability".into(),
        about: "p', from the lowest number in two's complement, which is 0, to the highest, which is 1".into(),
        bits: 32,
        unit: Unit::Number,
        entries: PIPE_PORTS,
        initial: ZERO,
    });
    let sum = AluExpression::AddSigned(AluTerm::Word, AluTerm::Value(change.into()));
    let action = RegisterAction {
        name: "change_probability".into(),
        conditions: Vec::new(),
        updates: vec![AluUpdate { when: When::Always, value: sum }],
        output: AluOutput::After,
    };
    let probability = p.variable("probability", 32, Unit::Number);
    p.access(register, port, action, Some(probability));
    probability
}

/// The number that is compared with p': the larger of two random numbers; half of one for ECT(1); the highest, so that nothing is dropped, if
/// the larger is above a half and the packet is not ECN-capable.
fn number(p: &mut Builder, ecn: Variable) -> Variable {
    p.comment("Two random numbers are both below p' with probability p' squared.");
    let one = p.compute("one", 32, Unit::Number, Operation::Random);
    let other = p.compute("other", 32, Unit::Number, Operation::Random);
    let larger = p.compute("larger", 32, Unit::Number, Operation::Maximum(one.into(), other.into()));
    let half = p.compute("half", 32, Unit::Number, Operation::ShiftRight(one.into(), 1));
    let number = p.variable("number", 32, Unit::Number);
    p.comment("Flipping the highest bit makes the lowest number in two's complement of zero.");
    let too_large = Condition::All(vec![
        Condition::compare(ecn, Comparison::Equal, NOT_ECT),
        Condition::compare(larger.slice(31, 1), Comparison::Equal, 1),
    ]);
    p.choose(
        Condition::compare(ecn, Comparison::Equal, ECT1),
        |p| p.set(number, Operation::Xor(half.into(), ZERO.into())),
        |p| {
            p.choose(
                too_large,
                |p| p.set(number, Operation::Copy((ZERO - 1).into())),
                |p| p.set(number, Operation::Xor(larger.into(), ZERO.into())),
            );
        },
    );
    number
}

/// The last nanosecond of a time in the program's units.
fn last_of(units: u64) -> u64 {
    units << 10 | 1023
}

/// A time in the program's units of 1024 ns.
fn in_units(time: Nanos) -> u64 {
    time.0 >> 10
}
