//! Marking above a threshold of the sojourn time, as DCTCP needs it (Alizadeh et al., SIGCOMM 2010).

use crate::ir::{
    Builder, Comparison, Condition, Input, InvalidProgram, MatchTable, Operation, SwitchProgram, TableEntries, Unit,
};
use crate::{Aspect, Program};
use queuescope_wire::Nanos;

const NAME: &str = "step";
/// The time that 65 packets of 1500 bytes take at 10 Gb/s: the threshold of section 4 of the paper.
pub const STEP_THRESHOLD: Nanos = Nanos(78_000);

/// The step with its default threshold, as steps.
pub fn step() -> Program {
    step_with(STEP_THRESHOLD).expect("the default fits").steps()
}

/// A step: behind the queue, marks each ECN-capable packet that waited longer than a threshold. It keeps no state. The threshold is a parameter
/// of a table, which a control plane changes while the switch runs.
///
/// Models the `ce_threshold` of [`Codel`](queuescope_queue::Codel) where that never drops. The sojourn time has 32 bits
/// here and wraps after 4.3 s.
///
/// # Errors
/// Fails if the threshold is 4.3 s or more.
pub fn step_with(threshold: Nanos) -> Result<SwitchProgram, InvalidProgram> {
    if threshold.0 >= 1 << 32 {
        return Err(InvalidProgram::of_parameter(NAME, "ce-threshold", "must be below 4.29 s"));
    }
    let source = "Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010, section 3.1";
    let mut p = Builder::new(NAME, "marks behind the queue what waited longer than a constant", source);
    let (enqueued, dequeued, ecn) = (p.input(Input::Enqueued), p.input(Input::Dequeued), p.input(Input::Ecn));
    p.of(Aspect::Metric);
    let difference = Operation::Subtract(dequeued.slice(0, 32), enqueued.slice(0, 32));
    let sojourn = p.compute("sojourn", 32, Unit::NANOS, difference);
    p.of(Aspect::Reaction);
    let longest = p.variable("threshold", 32, Unit::NANOS);
    p.look_up(MatchTable {
        name: "parameters".into(),
        about: "The longest sojourn time without a mark".into(),
        keys: Vec::new(),
        entries: TableEntries::Exact(Vec::new()),
        results: vec![longest],
        otherwise: vec![threshold.0],
    });
    let is_long = Condition::compare(sojourn, Comparison::Greater, longest);
    let is_capable = Condition::compare(ecn, Comparison::NotEqual, 0);
    p.when(Condition::All(vec![is_long, is_capable]), Builder::mark_packet);
    p.build()
}
