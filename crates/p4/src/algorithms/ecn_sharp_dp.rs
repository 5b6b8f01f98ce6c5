//! ECN#_DP: ECN# with a table in place of the root.

use super::drop_schedule::{is_due, sojourn};
use crate::Program;
use crate::ir::{Builder, Comparison, Condition, Input, InvalidProgram, SwitchProgram};
use queuescope_queue::EcnSharpDpParams;

/// ECN#_DP with its default parameters, as steps.
pub fn ecn_sharp_dp() -> Program {
    ecn_sharp_dp_with(&EcnSharpDpParams::default()).expect("the default parameters fit").steps()
}

/// ECN#_DP: behind the queue, marks each packet that waited for long, and one now and then while a queue stands. A table
/// has the number of marks that are due after each time of a standing queue.
///
/// Models [`EcnSharpDp`](queuescope_queue::EcnSharpDp), step for step. Sojourn times wrap there after 584 years, here
/// after 4.3 s.
///
/// # Errors
/// Fails if a target is 4.3 s or more.
pub fn ecn_sharp_dp_with(params: &EcnSharpDpParams) -> Result<SwitchProgram, InvalidProgram> {
    const NAME: &str = "ecn-sharp-dp";
    for (key, target) in [("instant-target", params.instant_target), ("persistent-target", params.persistent_target)] {
        if target.0 >= 1 << 32 {
            return Err(InvalidProgram::of_parameter(NAME, key, "must be below 4.29 s"));
        }
    }
    let source = "Zhang, Bai and Chen, ECN#, CoNEXT 2019, with a schedule of marks in a table";
    let mut p = Builder::new(NAME, "ECN# behind the queue, with a table in place of the root", source);
    let (dequeued, ecn) = (p.input(Input::Dequeued), p.input(Input::Ecn));
    let sojourn = sojourn(&mut p, dequeued);
    let below = Condition::compare(sojourn, Comparison::Less, params.persistent_target.0);
    let due = is_due(&mut p, dequeued, below, params.persistent_interval);
    let is_chosen = Condition::Any(vec![
        Condition::compare(due, Comparison::Equal, 1),
        Condition::compare(sojourn, Comparison::Greater, params.instant_target.0),
    ]);
    let is_capable = Condition::compare(ecn, Comparison::NotEqual, 0);
    p.when(Condition::All(vec![is_chosen, is_capable]), Builder::mark_packet);
    p.build()
}
