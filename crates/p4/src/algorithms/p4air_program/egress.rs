//! Packets behind the queue: how the queue and the rate of a flow change from one round trip to the next (section III-A).

use super::super::pie_data_plane::{read, swap};
use super::traffic::count;
use super::{GROUPS, Parts, change, if_holds, is, register, store, value};
use crate::Aspect;
use crate::ir::{
    AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Comparison, Condition, Operation,
    RegisterAction, Unit, Variable, When,
};
use queuescope_queue::{SwitchNote, SwitchP4airParams, SwitchRequest};

/// The registers of flows behind the queue.
const REGISTERS: [&str; 7] =
    ["depth", "depth_before", "aggressiveness", "since_decrease", "pulse_left", "period_left", "pulses"];

pub(super) fn egress(p: &mut Builder, it: &Parts<'_>) {
    p.of(Aspect::Metric);
    p.choose(
        is(it.group, 0),
        |p| {
            p.comment("What was found in slow start does not count.");
            for name in REGISTERS {
                p.access(register(name), it.flow(), store(format!("forget_{name}"), 0), None);
            }
        },
        |p| long_lived(p, it),
    );
}

fn long_lived(p: &mut Builder, it: &Parts<'_>) {
    let most = u64::from(SwitchP4airParams::DEEPEST);
    let found = p.compute("found", 19, Unit::Number, Operation::Minimum(it.queue_length.into(), most.into()));
    let found = p.compute("found_depth", 16, Unit::Number, Operation::Gather(found.slice(0, 16), 0));
    p.choose(
        is(it.round, SwitchNote::WITHIN.into()),
        |p| {
            let is_deeper = (AluExpression::Term(AluTerm::Word), Comparison::Less, value(found));
            let keep = if_holds("keep_deepest", is_deeper, AluExpression::Term(value(found)), AluOutput::Nothing);
            p.access(register("depth"), it.flow(), keep, None);
        },
        |p| {
            let deepest = p.variable("deepest", 16, Unit::Number);
            p.access(register("depth"), it.flow(), swap("begin_depth", found), Some(deepest));
            let rates = Rates::new(p, it);
            let pulses = pulses(p, it, &rates);
            let reached = aggressiveness(p, it, deepest, &rates);
            next_group(p, it, [pulses, reached]);
        },
    );
}

/// How the rate changed from the round trip before to the one that has ended.
struct Rates {
    /// Whether it fell by an eighth: then a delay-based flow's queue does not count.
    is_reduced: Variable,
    /// Whether it rose or fell by enough for a pulse.
    has_increased: Variable,
    has_decreased: Variable,
}

impl Rates {
    fn new(p: &mut Builder, it: &Parts<'_>) -> Self {
        p.comment("How the rate has changed (section III-A).");
        let fingerprint = &it.params.p4air.fingerprint;
        let mut compute = |name, operation| p.compute(name, 16, Unit::Number, operation);
        let eighth = compute("eighth", Operation::ShiftRight(it.before.into(), 3));
        let least = u64::from(fingerprint.least_change.max(1));
        let change = compute("least_change", Operation::Maximum(eighth.into(), least.into()));
        let more = compute("more", Operation::AddSaturating(it.before.into(), change.into()));
        let less = compute("less", Operation::AddSaturating(it.sent.into(), change.into()));
        let part = compute("reduction", Operation::ShiftRight(it.before.into(), fingerprint.reduction_shift.into()));
        let with_part = compute("with_reduction", Operation::AddSaturating(it.sent.into(), part.into()));
        let [is_reduced, has_increased, has_decreased] =
            ["is_reduced", "has_increased", "has_decreased"].map(|name| p.variable(name, 1, Unit::Number));
        let conditions = [
            (is_reduced, Condition::compare(with_part, Comparison::Less, it.before)),
            (has_increased, Condition::compare(it.sent, Comparison::GreaterOrEqual, more)),
            (has_decreased, Condition::compare(it.before, Comparison::GreaterOrEqual, less)),
        ];
        for (flag, condition) in conditions {
            p.when(condition, |p| p.set(flag, Operation::Copy(1.into())));
        }
        Self { is_reduced, has_increased, has_decreased }
    }
}

/// BwEst: an increase after a settled rate, and then a decrease. Returns the pulses so far.
fn pulses(p: &mut Builder, it: &Parts<'_>, rates: &Rates) -> Variable {
    p.comment("Pulses of the rate: an increase after a settled rate, and then a decrease (section III-A).");
    let fingerprint = &it.params.p4air.fingerprint;
    let settled = p.variable("settled", 8, Unit::Number);
    p.choose(
        is(rates.has_decreased, 1),
        |p| p.access(register("since_decrease"), it.flow(), store("begin_settling", 0), None),
        |p| p.access(register("since_decrease"), it.flow(), count("settle"), Some(settled)),
    );
    let had = p.variable("had_increase", 8, Unit::Number);
    let starts = Condition::All(vec![
        is(rates.has_increased, 1),
        Condition::compare(it.before, Comparison::NotEqual, 0),
        Condition::compare(settled, Comparison::Greater, u64::from(fingerprint.settled)),
    ]);
    let less = |name| change(name, AluExpression::SubtractSaturating(AluTerm::Word, value(1)), AluOutput::Nothing);
    p.choose(
        starts,
        |p| {
            let begin = store("begin_pulse", u64::from(fingerprint.pulse));
            p.access(register("pulse_left"), it.flow(), begin, None);
        },
        |p| {
            p.choose(
                is(rates.has_decreased, 1),
                |p| p.access(register("pulse_left"), it.flow(), swap("end_pulse", 0), Some(had)),
                |p| p.access(register("pulse_left"), it.flow(), less("age_pulse"), None),
            );
        },
    );
    let left = p.variable("left_of_period", 8, Unit::Number);
    let pulses = p.variable("pulses_so_far", 8, Unit::Number);
    p.choose(
        Condition::compare(had, Comparison::NotEqual, 0),
        |p| {
            let begin = swap("begin_period", u64::from(it.params.period()));
            p.access(register("period_left"), it.flow(), begin, Some(left));
            p.choose(
                is(left, 0),
                |p| {
                    let one = change("first_pulse", AluExpression::Term(value(1)), AluOutput::After);
                    p.access(register("pulses"), it.flow(), one, Some(pulses));
                },
                |p| p.access(register("pulses"), it.flow(), count("count_pulse"), Some(pulses)),
            );
        },
        |p| {
            p.access(register("period_left"), it.flow(), less("age_period"), None);
            p.access(register("pulses"), it.flow(), read("read_pulses"), Some(pulses));
        },
    );
    pulses
}

/// Counts round trips with a growing queue. Returns whether the limit of the flow's group is reached.
fn aggressiveness(p: &mut Builder, it: &Parts<'_>, deepest: Variable, rates: &Rates) -> Variable {
    p.comment("Round trips in a row in which the deepest queue grew (section III-A).");
    let depth_before = p.variable("deepest_before", 16, Unit::Number);
    p.access(register("depth_before"), it.flow(), swap("keep_depth", deepest), Some(depth_before));
    let shift = it.params.rise_shift();
    let part = p.compute("rise", 16, Unit::Number, Operation::ShiftRight(depth_before.into(), shift));
    let least = p.compute("least_depth", 16, Unit::Number, Operation::Add(depth_before.into(), part.into()));
    let grows = p.variable("grows", 1, Unit::Number);
    p.when(Condition::compare(deepest, Comparison::Greater, least), |p| p.set(grows, Operation::Copy(1.into())));
    p.when(Condition::All(vec![is(it.group, 1), is(rates.is_reduced, 1)]), |p| {
        p.set(grows, Operation::Copy(0.into()));
    });
    let most = p.variable("most", 8, Unit::Number);
    let set_most = |p: &mut Builder, group| p.set(most, Operation::Copy(u64::from(it.params.limit(group) - 1).into()));
    p.choose(
        is(it.group, 1),
        |p| set_most(p, 1),
        |p| p.choose(is(it.group, 2), |p| set_most(p, 2), |p| set_most(p, 3)),
    );
    let reached = p.variable("is_reached", 1, Unit::Number);
    let is_limit = AluCondition {
        left: AluExpression::Term(AluTerm::Word),
        comparison: Comparison::GreaterOrEqual,
        right: value(most),
    };
    let one_more = AluExpression::AddSaturating(AluTerm::Word, value(1));
    let action = RegisterAction {
        name: "count_growth".into(),
        conditions: vec![is_limit],
        updates: vec![
            AluUpdate { when: When::Holds(0), value: AluExpression::Term(value(0)) },
            AluUpdate { when: When::Fails(0), value: one_more },
        ],
        output: AluOutput::Condition(0),
    };
    p.choose(
        is(grows, 1),
        |p| p.access(register("aggressiveness"), it.flow(), action, Some(reached)),
        |p| p.access(register("aggressiveness"), it.flow(), store("end_growth", 0), None),
    );
    reached
}

/// A copy with the next group goes back, if there is one.
fn next_group(p: &mut Builder, it: &Parts<'_>, [pulses, reached]: [Variable; 2]) {
    p.of(Aspect::Reaction)
        .comment("The next group: model-based by pulses, or the newest flow of the queue by its growth.");
    let last = u64::from(GROUPS);
    let below = |group| Condition::compare(it.group, Comparison::Less, group);
    let least = u64::from(it.params.p4air.fingerprint.model_based_after.max(1));
    let pulsing = Condition::compare(pulses, Comparison::GreaterOrEqual, least);
    let send = |p: &mut Builder| {
        p.set(it.request, Operation::Copy((SwitchRequest::Group as u64).into()));
        p.feed_back();
    };
    p.choose(
        Condition::All(vec![pulsing, below(last)]),
        |p| {
            p.set(it.to, Operation::Copy(last.into()));
            send(p);
        },
        |p| {
            p.when(Condition::All(vec![is(reached, 1), is(it.is_newest, 1), below(last - 1)]), |p| {
                p.set(it.to, Operation::Add(it.group.into(), 1.into()));
                send(p);
            });
        },
    );
}
