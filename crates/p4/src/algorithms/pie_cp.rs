//! PIE_CP: PIE whose probability the control plane computes (Kunze et al., section VI.B).

use super::pie::drops_at_the_door;
use super::{PORTS, sojourn_time};
use crate::{Aspect, Gress, Program};

/// PIE_CP: the control plane computes the probability.
///
/// Models [`PieCp`](queuescope_queue::PieCp): the part that handles packets. Its rounds run in the control plane.
pub fn pie_cp() -> Program {
    let mut program = Program::new("pie-cp", "PIE whose probability the control plane computes");
    let p = &mut program;
    drops_at_the_door(p);
    p.control_plane("drop_prob from delay", true);
    p.at(Gress::Egress).of(Aspect::Metric);
    let sojourn = sojourn_time(p);
    let delay = p.register("delay", 32, PORTS);
    p.write(delay, "delay of the last packet", &[sojourn]);
    program
}
