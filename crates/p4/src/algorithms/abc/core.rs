//! The core: drops packets by their activity and the length of the queue.

use super::{Arrivals, SOURCE};
use crate::algorithms::common::{PIPE_PORTS, PORT_BITS};
use crate::ir::{
    AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Comparison, Condition, Input, InvalidProgram,
    Operation, RegisterAction, RegisterArray, SwitchProgram, Unit, Variable, When,
};
use crate::{Aspect, Gress, Program};
use queuescope_queue::{SwitchAqm, SwitchAqmParams, SwitchAverage};
use std::ops::RangeInclusive;

/// The logarithms of gamma: a lower one would shift the distance of the queue to Q_base out of 16 bits.
const GAMMAS: RangeInclusive<u32> = 2..=8;
/// The fraction bits of an activity.
const FRACTION_BITS: u32 = 8;
/// The bits that an average has more than an activity, below it.
const AVERAGE_BITS: u32 = 16;
/// Changes the sign, so that numbers in two's complement are compared as unsigned ones.
const SIGN: u64 = 1 << 31;

/// The parameters of the core.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AbcCoreParams {
    /// The AQM of each port.
    pub aqm: SwitchAqmParams,
    /// The ports at which packets from outside the domain arrive: these must have no activity.
    pub outside: Vec<u16>,
}

/// The core with its default parameters, as steps.
pub fn abc_core() -> Program {
    abc_core_with(&AbcCoreParams::default()).expect("the default parameters fit").steps()
}

/// The core with the median of activities in place of their mean, as steps.
pub fn abc_core_median() -> Program {
    abc_core_with(&median()).expect("the default parameters fit").steps()
}

/// The median, with the default parameters otherwise.
pub(in crate::algorithms) fn median() -> AbcCoreParams {
    let aqm = SwitchAqmParams { average: SwitchAverage::MEDIAN, ..SwitchAqmParams::default() };
    AbcCoreParams { aqm, outside: Vec::new() }
}

/// The core: drops a packet that found more in its queue than max(Q_min, Q_base - gamma (A - A_avg)), where A_avg averages the accepted packets.
/// It drops behind the queue, because no switch knows the length of the queue before it. So a packet that is dropped has waited. (The
/// prototype copies the length to a register of the ingress, which other packets read, section 5.1; a Tofino's halves share no registers.)
///
/// Models [`SwitchAqm`]. A packet without activity counts as average, and is not averaged. The average is read and changed in one access, in
/// which the unit compares it with what the packet's threshold means for it. With [`SwitchAverage::Median`], its name is `abc-core-median`, and
/// a Tofino has what it needs.
///
/// # Errors
/// Fails if a parameter is not within the ranges of [`SwitchAqmParams`], or a port is listed twice.
pub fn abc_core_with(params: &AbcCoreParams) -> Result<SwitchProgram, InvalidProgram> {
    let aqm = &params.aqm;
    let (name, about) = match aqm.average {
        SwitchAverage::Mean { .. } => ("abc-core", "drops behind the queue, by activity and the length of the queue"),
        SwitchAverage::Median { .. } => {
            ("abc-core-median", "drops behind the queue, by activity, its median and the length of the queue")
        }
    };
    check(name, aqm)?;
    let mut p = Builder::new(name, about, SOURCE);
    let arrivals = Arrivals::new(&mut p);
    arrivals.check(&mut p, [0, 1], &params.outside, |_, _| ());
    behind_the_queue(&mut p, aqm, arrivals.has_activity);
    p.build()
}

/// Checks that a program can have these parameters.
pub(super) fn check(name: &'static str, aqm: &SwitchAqmParams) -> Result<(), InvalidProgram> {
    let fail = |key: &str, why: &str| Err(InvalidProgram::of_parameter(name, key, why));
    if aqm.least.max(aqm.base) > SwitchAqmParams::LONGEST {
        return fail("aqm", "must have least and base below 512");
    }
    if !GAMMAS.contains(&aqm.gamma_shift) {
        return fail("aqm.gamma", "must be a power of two from 4 to 256");
    }
    if matches!(aqm.average, SwitchAverage::Mean { shift } if !(1..=16).contains(&shift)) {
        return fail("aqm.memory", "must be 2 to 65536 packets");
    }
    Ok(())
}

/// The AQM of each port.
pub(super) fn behind_the_queue(p: &mut Builder, aqm: &SwitchAqmParams, has_activity: Variable) {
    let [port, activity, queue] = [Input::Port, Input::Activity, Input::QueueLength].map(|input| p.input(input));
    p.at(Gress::Egress).of(Aspect::Metric);
    let longest = u64::from(SwitchAqmParams::LONGEST);
    let shorter = p.compute("shorter", 19, Unit::Packets, Operation::Minimum(queue.into(), longest.into()));
    p.comment("Fields of other widths are moved by a hash unit, so that no field is cut for another one.");
    let queue = p.compute("queue", 16, Unit::Packets, Operation::Gather(shorter.slice(0, 16), 0));
    p.choose(
        Condition::compare(has_activity, Comparison::Equal, 1),
        |p| {
            let levels = threshold(p, aqm, activity, queue);
            decide(p, aqm, port, levels);
        },
        |p| {
            p.comment("A packet without activity counts as average.");
            p.of(Aspect::Reaction);
            p.when(Condition::compare(queue, Comparison::Greater, u64::from(aqm.base)), Builder::drop_packet);
        },
    );
}

/// The packet's activity, and the average below which the packet is dropped, both as the register has them.
fn threshold(p: &mut Builder, aqm: &SwitchAqmParams, activity: Variable, queue: Variable) -> [Variable; 2] {
    let bits = Input::Activity.bits();
    p.comment("The average at which the packet's threshold is the length of the queue: A - (Q_base - Q) / gamma.");
    let distance = Operation::Subtract(u64::from(aqm.base).into(), queue.into());
    let distance = p.compute("distance", bits, Unit::Packets, distance);
    let behind = match FRACTION_BITS - aqm.gamma_shift {
        0 => Operation::Copy(distance.into()),
        by => Operation::ShiftLeft(distance.into(), by),
    };
    let behind = p.compute("behind", bits, Unit::Number, behind);
    let limit = p.compute("limit", bits, Unit::Number, Operation::SubtractSigned(activity.into(), behind.into()));
    let [wide_limit, wide_own] = [("wide_limit", limit), ("wide_own", activity)]
        .map(|(name, value)| p.compute(name, 32, Unit::Number, Operation::Gather(value.into(), AVERAGE_BITS)));
    let own = p.compute("own", 32, Unit::Number, Operation::Xor(wide_own.into(), SIGN.into()));
    p.comment("No average is below 0: a packet that finds at most Q_min is not dropped.");
    let level = p.variable("level", 32, Unit::Number);
    let is_long = Condition::compare(queue, Comparison::Greater, u64::from(aqm.least));
    p.when(is_long, |p| p.set(level, Operation::Xor(wide_limit.into(), SIGN.into())));
    [own, level]
}

/// Compares the average with the level. If the packet is accepted, it is averaged.
fn decide(p: &mut Builder, aqm: &SwitchAqmParams, port: Variable, [own, level]: [Variable; 2]) {
    let register = p.register(RegisterArray {
        name: "average_activity".into(),
        about: "The average activity of accepted packets, in units of 2^-24 above -128".into(),
        bits: 32,
        unit: Unit::Number,
        entries: PIPE_PORTS,
        initial: SwitchAqm::new(aqm).word(),
    });
    let word = AluExpression::Term(AluTerm::Word);
    let of = |variable: Variable| AluTerm::Value(variable.into());
    let is_below = AluCondition { left: word, comparison: Comparison::Less, right: of(level) };
    let update = |when, value| AluUpdate { when, value };
    let (other, updates) = match aqm.average {
        SwitchAverage::Mean { shift } => (
            AluCondition { left: word, comparison: Comparison::Equal, right: AluTerm::Value(0.into()) },
            vec![
                update(When::Holds(1), AluExpression::Term(of(own))),
                update(When::Fails(0), AluExpression::MoveTowards(of(own), shift)),
            ],
        ),
        SwitchAverage::Median { step } => {
            let step = AluTerm::Value(u64::from(step).into());
            (
                AluCondition { left: word, comparison: Comparison::Less, right: of(own) },
                vec![
                    update(When::Holds(0), word),
                    update(When::Holds(1), AluExpression::AddSaturating(AluTerm::Word, step)),
                    update(When::Always, AluExpression::SubtractSaturating(AluTerm::Word, step)),
                ],
            )
        }
    };
    let action = RegisterAction {
        name: "average_accepted".into(),
        conditions: vec![is_below, other],
        updates,
        output: AluOutput::Before,
    };
    let average = p.variable("average", 32, Unit::Number);
    p.access(register, port.slice(0, PORT_BITS), action, Some(average));
    p.of(Aspect::Reaction);
    let below = Condition::compare(average, Comparison::Less, level);
    let condition = match aqm.average {
        SwitchAverage::Mean { .. } => {
            p.comment("The first packet of a port finds no average.");
            Condition::All(vec![Condition::compare(average, Comparison::NotEqual, 0), below])
        }
        SwitchAverage::Median { .. } => below,
    };
    p.when(condition, Builder::drop_packet);
}
