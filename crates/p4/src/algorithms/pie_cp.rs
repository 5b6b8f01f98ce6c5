//! PIE_CP: PIE whose probability the control plane computes (Kunze et al., section VI.B).

mod control;

use super::common::{PIPE_PORTS, PORT_BITS};
use super::pie_data_plane::{UNITS, read, swap};
use crate::ir::{Builder, Comparison, Condition, Input, InvalidProgram, Operation, RegisterArray, SwitchProgram, Unit};
use crate::{Aspect, Gress, Program};
pub use control::pie_cp_control;
use queuescope_queue::PieCpParams;

/// PIE_CP with its default parameters, as steps.
pub fn pie_cp() -> Program {
    pie_cp_with(&PieCpParams::default()).expect("the default parameters fit").steps()
}

/// PIE_CP: packets that leave store their delay; packets that come are dropped by a probability, which the control plane computes and writes.
///
/// Models [`PieCp`](queuescope_queue::PieCp): the part that handles packets. Its rounds run in the control plane, which reads `last_delay` and
/// writes `drop_probability`: [`pie_cp_control`] is a program that does.
///
/// # Errors
/// Never fails with valid parameters: they are those of the control plane, except [`act`](PieCpParams::act).
pub fn pie_cp_with(params: &PieCpParams) -> Result<SwitchProgram, InvalidProgram> {
    let about = "PIE whose probability the control plane computes";
    let mut p = Builder::new("pie-cp", about, "Kunze et al., Tofino + P4, IM 2021, section VI.B (PIE_CP)");
    let port = p.input(Input::Port);
    let mut register = |name: &'static str, about: &'static str, bits, unit, entries| {
        p.register(RegisterArray { name: name.into(), about: about.into(), bits, unit, entries, initial: 0 })
    };
    let about = "The drop probability, in units of 2^-32, which the control plane writes";
    let probability = register("drop_probability", about, 32, Unit::Number, 1 << Input::Port.bits());
    let delay = register("last_delay", "The delay of the last packet, in units of 1024 ns", 16, UNITS, PIPE_PORTS);

    p.at(Gress::Ingress).of(Aspect::Reaction);
    p.comment("A packet may leave by another pipe than that of its arrival.");
    let chance = p.variable("chance", 32, Unit::Number);
    p.access(probability, port, read("read_probability"), Some(chance));
    let drawn = p.compute("drawn", 32, Unit::Number, Operation::Random);
    if params.act {
        p.when(Condition::compare(chance, Comparison::Greater, drawn), Builder::drop_packet);
    }
    p.control_plane("drop_probability from last_delay", true);

    p.at(Gress::Egress).of(Aspect::Metric);
    let (enqueued, dequeued) = (p.input(Input::Enqueued), p.input(Input::Dequeued));
    let difference = Operation::Subtract(dequeued.slice(0, 32), enqueued.slice(0, 32));
    let sojourn = p.compute("sojourn", 32, Unit::NANOS, difference);
    p.access(delay, port.slice(0, PORT_BITS), swap("store_delay", sojourn.slice(10, 16)), None);
    p.build()
}
