//! RED behind the queue, as a program that is run and printed.

use super::common::{PIPE_PORTS, PORT_BITS};
use crate::ir::{
    AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Comparison, Condition, Input, InvalidProgram, MatchTable,
    Operation, RegisterAction, RegisterArray, SwitchProgram, TableEntries, Unit, When,
};
use crate::{Aspect, Program};
use queuescope_queue::{RedParams, SwitchRed};

const NAME: &str = "red-egress";

/// RED behind the queue with its default parameters, as steps.
pub fn red_egress() -> Program {
    red_egress_with(&SwitchRed::defaults()).expect("the default parameters fit").steps()
}

/// RED behind the queue: drops or marks by an average of the queue that packets found.
///
/// Models [`SwitchRed`], step for step. [`red`](super::red) has the steps before the queue that table I of Kunze et al. grades; no switch has the length
/// of the queue there. The unit of a Tofino's register cannot shift, so this program is for BMv2 only.
///
/// # Errors
/// Names the parameter that a switch cannot have, and what is possible.
pub fn red_egress_with(params: &RedParams) -> Result<SwitchProgram, InvalidProgram> {
    let red = SwitchRed::new(params).map_err(|(key, why)| InvalidProgram::of_parameter(NAME, key, why))?;
    let about = "drops or marks behind the queue, by an average of its length";
    let mut p = Builder::new(NAME, about, "Floyd and Jacobson, Random Early Detection Gateways, 1993, section IV");
    let [port, queue, ecn] = [Input::Port, Input::QueueLength, Input::Ecn].map(|input| p.input(input));
    p.of(Aspect::Metric);
    let shorter = Operation::Minimum(queue.into(), u64::from(SwitchRed::LONGEST).into());
    let shorter = p.compute("shorter", 32, Unit::Packets, shorter);
    p.comment("In units of 2^-16 packets, as the average is.");
    let found = Operation::ShiftLeft(shorter.into(), SwitchRed::FRACTION_BITS);
    let found = p.compute("found", 32, Unit::Number, found);
    let register = p.register(RegisterArray {
        name: "average_queue".into(),
        about: "The average length of the queue, in units of 2^-16 packets".into(),
        bits: 32,
        unit: Unit::Number,
        entries: PIPE_PORTS,
        initial: 0,
    });
    let moved = AluExpression::MoveTowards(AluTerm::Value(found.into()), red.shift());
    let action = RegisterAction {
        name: "average_length".into(),
        conditions: Vec::new(),
        updates: vec![AluUpdate { when: When::Always, value: moved }],
        output: AluOutput::After,
    };
    let average = p.variable("average", 32, Unit::Number);
    p.access(register, port.slice(0, PORT_BITS), action, Some(average));
    p.of(Aspect::Reaction);
    let (chance, certain) = (p.variable("chance", 32, Unit::Number), p.variable("certain", 1, Unit::Number));
    let ranges = red.ranges().into_iter();
    let entries = ranges.map(|((low, high), chance)| {
        ((low.into(), high.into()), vec![chance.unwrap_or(u32::MAX).into(), chance.is_none().into()])
    });
    p.look_up(MatchTable {
        name: "probability".into(),
        about: "The probability for an average, in units of 2^-32, and whether it is one".into(),
        keys: vec![average.slice(SwitchRed::FRACTION_BITS - SwitchRed::KEY_FRACTION_BITS, SwitchRed::KEY_BITS)],
        entries: TableEntries::Ranges(entries.collect()),
        results: vec![chance, certain],
        otherwise: vec![0, 0],
    });
    let random = p.compute("drawn", 32, Unit::Number, Operation::Random);
    let mark = |p: &mut Builder| match params.ecn {
        true => p.choose(Condition::compare(ecn, Comparison::Equal, 0), Builder::drop_packet, Builder::mark_packet),
        false => p.drop_packet(),
    };
    p.choose(
        Condition::compare(certain, Comparison::Equal, 1),
        |p| if params.hard_drop { p.drop_packet() } else { mark(p) },
        |p| p.when(Condition::compare(random, Comparison::Less, chance), mark),
    );
    p.build()
}
