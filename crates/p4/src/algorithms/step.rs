//! Marking above a threshold of the sojourn time, as DCTCP needs it (Alizadeh et al., SIGCOMM 2010).

use super::sojourn_time;
use crate::{Act, Aspect, Gress, Program};

/// A step: behind the queue, marks each ECN-capable packet that waited longer than a constant. It keeps no state.
///
/// Models the `ce_threshold` of [`Codel`](queuescope_queue::Codel) where that never drops. The sojourn time has 32 bits
/// here and wraps after 4.3 s.
pub fn step() -> Program {
    let mut program = Program::new("step", "marks behind the queue what waited longer than a constant");
    let p = &mut program;
    p.at(Gress::Egress).of(Aspect::Metric);
    let sojourn = sojourn_time(p);
    p.of(Aspect::Reaction);
    let above = p.compare("sojourn > threshold", &[sojourn]);
    let ecn = p.header("ECN", 2);
    p.act("mark, if ECN-capable", Act::Mark, &[above, ecn]);
    program
}
