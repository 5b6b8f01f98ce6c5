//! Drops or marks that follow a schedule while the delay stays above target: the common part of CoDel_DP and ECN#_DP.

use super::common::{PIPE_PORTS, PORT_BITS};
use super::pie_data_plane::{UNITS, swap};
use crate::Aspect;
use crate::ir::{
    AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Comparison, Condition, Input, MatchTable,
    Operation, RegisterAction, RegisterArray, TableEntries, Unit, Variable, When,
};
use queuescope_queue::DropSchedule;
use queuescope_wire::Nanos;

/// The sojourn time, in nanoseconds.
pub(super) fn sojourn(p: &mut Builder, dequeued: Variable) -> Variable {
    let enqueued = p.input(Input::Enqueued);
    p.of(Aspect::Metric);
    let difference = Operation::Subtract(dequeued.slice(0, 32), enqueued.slice(0, 32));
    p.compute("sojourn", 32, Unit::NANOS, difference)
}

/// Whether a drop is due: 1 or 0. `below` holds for a packet whose delay is below target. `interval` is in nanoseconds.
///
/// Models [`ScheduledDrops`](queuescope_queue::ScheduledDrops).
pub(super) fn is_due(p: &mut Builder, dequeued: Variable, below: Condition, interval: Nanos) -> Variable {
    let schedule = DropSchedule::new(interval);
    let port = p.input(Input::Port).slice(0, PORT_BITS);
    let now = dequeued.slice(10, 32);
    let last_below = p.register(RegisterArray {
        name: "last_below".into(),
        about: "When the last packet below target left, in units of 1024 ns".into(),
        bits: 32,
        unit: UNITS,
        entries: PIPE_PORTS,
        initial: 0,
    });
    let count = p.register(RegisterArray {
        name: "count".into(),
        about: "How many packets were chosen since then; at first, the highest number".into(),
        bits: 32,
        unit: Unit::Number,
        entries: PIPE_PORTS,
        // Nothing is due before the first packet below target.
        initial: u32::MAX.into(),
    });
    let due = p.variable("due", 1, Unit::Number);
    p.of(Aspect::Reaction);
    p.choose(
        below,
        |p| {
            p.access(last_below, port, swap("keep_time", now), None);
            p.access(count, port, swap("begin_count", 0), None);
        },
        |p| {
            p.comment("The unit computes the difference: as a step of its own, it would tie the time's bits from 10 on to other containers than the sojourn time does.");
            let since = AluExpression::Subtract(AluTerm::Value(now), AluTerm::Word);
            let action = RegisterAction {
                name: "time_since".into(),
                conditions: Vec::new(),
                updates: Vec::new(),
                output: AluOutput::Computed(since),
            };
            let elapsed = p.variable("elapsed", 32, UNITS);
            p.access(last_below, port, action, Some(elapsed));
            let scheduled = scheduled(p, &schedule, elapsed);
            p.comment("If fewer were chosen, this packet is the next.");
            let is_behind = AluCondition {
                left: AluExpression::Term(AluTerm::Word),
                comparison: Comparison::Less,
                right: AluTerm::Value(scheduled.into()),
            };
            let one_more = AluExpression::Add(AluTerm::Word, AluTerm::Value(1.into()));
            let action = RegisterAction {
                name: "count_one".into(),
                conditions: vec![is_behind],
                updates: vec![AluUpdate { when: When::Holds(0), value: one_more }],
                output: AluOutput::Condition(0),
            };
            p.access(count, port, action, Some(due));
        },
    );
    due
}

/// How many packets are to be chosen after this time.
fn scheduled(p: &mut Builder, schedule: &DropSchedule, elapsed: Variable) -> Variable {
    p.comment("Within the table, whose times are multiples of a power of two of 1024 ns.");
    let end = u64::from(schedule.end());
    let within = p.compute("within", 32, UNITS, Operation::Minimum(elapsed.into(), end.into()));
    let in_table = p.variable("in_table", 32, Unit::Number);
    let entries = schedule.entries().map(|((start, end), count)| ((start.into(), end.into()), vec![count.into()]));
    p.look_up(MatchTable {
        name: "schedule".into(),
        about: "How many are due after a time of a standing queue, by CoDel's control law".into(),
        keys: vec![within.slice(schedule.shift(), DropSchedule::KEY_BITS)],
        entries: TableEntries::Ranges(entries.collect()),
        results: vec![in_table],
        otherwise: vec![0],
    });
    p.comment("Behind the end of the table, they keep a distance.");
    let late = p.compute("late", 32, UNITS, Operation::Maximum(elapsed.into(), end.into()));
    let beyond = p.compute("beyond", 32, UNITS, Operation::Subtract(late.into(), end.into()));
    let further = p.compute("further", 32, Unit::Number, Operation::ShiftRight(beyond.into(), schedule.tail()));
    p.compute("scheduled", 32, Unit::Number, Operation::AddSaturating(in_table.into(), further.into()))
}
