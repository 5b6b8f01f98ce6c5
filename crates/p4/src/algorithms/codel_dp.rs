//! CoDel_DP: CoDel with a table in place of the root.

use super::drop_schedule::{is_due, sojourn};
use crate::Program;
use crate::ir::{Builder, Comparison, Condition, Input, InvalidProgram, SwitchProgram};
use queuescope_queue::CodelDpParams;

/// CoDel_DP with its default parameters, as steps.
pub fn codel_dp() -> Program {
    codel_dp_with(&CodelDpParams::default()).expect("the default parameters fit").steps()
}

/// CoDel_DP: behind the queue, drops or marks more and more often while the delay stays above target. A table has the
/// number that is due after each time, so nothing needs a root or a pair of words.
///
/// Models [`CodelDp`](queuescope_queue::CodelDp), step for step. Sojourn times wrap there after 584 years, here after 4.3 s.
///
/// # Errors
/// Fails if the target is 4.3 s or more.
pub fn codel_dp_with(params: &CodelDpParams) -> Result<SwitchProgram, InvalidProgram> {
    const NAME: &str = "codel-dp";
    if params.target.0 >= 1 << 32 {
        return Err(InvalidProgram::of_parameter(NAME, "target", "must be below 4.29 s"));
    }
    let about = "CoDel behind the queue, with a table in place of the root";
    let mut p = Builder::new(NAME, about, "RFC 8289, section 5, with a schedule of drops in a table");
    let (dequeued, ecn) = (p.input(Input::Dequeued), p.input(Input::Ecn));
    let sojourn = sojourn(&mut p, dequeued);
    let below = Condition::compare(sojourn, Comparison::Less, params.target.0);
    let due = is_due(&mut p, dequeued, below, params.interval);
    p.when(Condition::compare(due, Comparison::Equal, 1), |p| {
        if params.ecn {
            p.choose(Condition::compare(ecn, Comparison::Equal, 0), Builder::drop_packet, Builder::mark_packet);
        } else {
            p.drop_packet();
        }
    });
    p.build()
}
