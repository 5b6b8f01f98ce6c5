//! The common part of PIE_DP and PIE_TABLE (Kunze et al., sections VI.C and VI.D): they differ in how a generated packet computes the change
//! of the probability.

use super::common::{PIPE_PORTS, PORT_BITS};
use crate::Aspect;
use crate::ir::{
    AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Comparison, Condition, Input, InvalidProgram,
    Name, Operand, Operation, RegisterAction, RegisterArray, SwitchProgram, Unit, Variable, When,
};
use queuescope_queue::LONGEST_PIE_TARGET;
use queuescope_wire::Nanos;

/// A change of the probability: it grows by the amount, or falls.
pub(super) struct Change {
    /// By how much it falls, if it does.
    pub down: Variable,
    /// It grows if this variable has this value.
    pub is_up: (Variable, u64),
}

/// Delays are in units of 2^10 ns.
pub(super) const UNITS: Unit = Unit::Nanos { shift: 10 };

/// Behind the queue, traffic stores its delay. Generated packets read it, change the probability, and keep it. Traffic is dropped by the
/// probability, with the random number that was drawn for the packet before.
///
/// `change` gets the delay that the last packet stored, and the one that the generated packet before read; and a variable for the amount by which the
/// probability grows. In traffic, that variable is the random number: the unit of a Tofino's register reads two fields, whatever the packet.
pub(super) fn pie_in_the_data_plane(
    mut p: Builder,
    (act, period): (bool, Nanos),
    change: impl FnOnce(&mut Builder, [Variable; 2], Variable) -> Change,
) -> Result<SwitchProgram, InvalidProgram> {
    p.generated_every(period);
    let port = p.input(Input::Port).slice(0, PORT_BITS);
    let (enqueued, dequeued) = (p.input(Input::Enqueued), p.input(Input::Dequeued));
    let generated = p.input(Input::Generated);
    let registers = Registers::new(&mut p, port);
    p.choose(
        Condition::compare(generated, Comparison::Equal, 1),
        |p| update(p, &registers, change),
        |p| {
            p.of(Aspect::Metric);
            let difference = Operation::Subtract(dequeued.slice(0, 32), enqueued.slice(0, 32));
            let sojourn = p.compute("sojourn", 32, Unit::NANOS, difference);
            decide(p, act, &registers, sojourn);
        },
    );
    p.build()
}

/// The registers of all ports, and the index of the packet's port.
struct Registers {
    port: Operand,
    delay: usize,
    sampled: usize,
    probability: usize,
    random: usize,
    /// By how much a generated packet makes the probability grow; of other packets, the random number.
    amount: Variable,
}

impl Registers {
    fn new(p: &mut Builder, port: Operand) -> Self {
        let amount = p.variable("amount", 32, Unit::Number);
        let mut register = |name: &'static str, about: &'static str, bits, unit| {
            p.register(RegisterArray {
                name: name.into(),
                about: about.into(),
                bits,
                unit,
                entries: PIPE_PORTS,
                initial: 0,
            })
        };
        Self {
            port,
            delay: register("last_delay", "The delay of the last packet, in units of 1024 ns", 16, UNITS),
            sampled: register("sampled_delay", "The delay that the last generated packet read", 16, UNITS),
            probability: register("drop_probability", "The drop probability, in units of 2^-32", 32, Unit::Number),
            random: register("last_random", "The random number that was drawn for the last packet", 32, Unit::Number),
            amount,
        }
    }
}

/// Reads a word, and stores another value.
pub(super) fn swap(name: &'static str, value: impl Into<Operand>) -> RegisterAction {
    let value = AluExpression::Term(AluTerm::Value(value.into()));
    let updates = vec![AluUpdate { when: When::Always, value }];
    RegisterAction { name: name.into(), conditions: Vec::new(), updates, output: AluOutput::Before }
}

/// Reads a word.
pub(super) fn read(name: impl Into<Name>) -> RegisterAction {
    RegisterAction { name: name.into(), conditions: Vec::new(), updates: Vec::new(), output: AluOutput::Before }
}

/// # Errors
/// Fails if a register of 16 bits cannot have the target.
pub(super) fn check_target(program: &'static str, target: Nanos) -> Result<(), InvalidProgram> {
    if target > LONGEST_PIE_TARGET {
        return Err(InvalidProgram::of_parameter(
            program,
            "target",
            "must be at most 65.535 ms: its register has 16 bits",
        ));
    }
    Ok(())
}

/// What a generated packet does.
fn update(
    p: &mut Builder,
    registers: &Registers,
    change: impl FnOnce(&mut Builder, [Variable; 2], Variable) -> Change,
) {
    p.of(Aspect::Metric).comment("A generated packet changes the probability.");
    let delay = p.variable("delay", 16, UNITS);
    p.access(registers.delay, registers.port, read("read_delay"), Some(delay));
    p.of(Aspect::Reaction);
    let before = p.variable("before", 16, UNITS);
    p.access(registers.sampled, registers.port, swap("keep_delay", delay), Some(before));
    let Change { down, is_up: (sign, value) } = change(p, [delay, before], registers.amount);
    let [up, down, sign] = [registers.amount, down, sign].map(|variable| AluTerm::Value(variable.into()));
    let is_up = AluCondition {
        left: AluExpression::Term(sign),
        comparison: Comparison::Equal,
        right: AluTerm::Value(value.into()),
    };
    let action = RegisterAction {
        name: "change_probability".into(),
        conditions: vec![is_up],
        updates: vec![
            AluUpdate { when: When::Holds(0), value: AluExpression::AddSaturating(AluTerm::Word, up) },
            AluUpdate { when: When::Fails(0), value: AluExpression::SubtractSaturating(AluTerm::Word, down) },
        ],
        output: AluOutput::After,
    };
    p.access(registers.probability, registers.port, action, None);
    let drawn = p.compute("drawn_here", 32, Unit::Number, Operation::Random);
    p.access(registers.random, registers.port, swap("keep_random_here", drawn), None);
    p.drop_packet();
}

/// What a packet of traffic does.
fn decide(p: &mut Builder, act: bool, registers: &Registers, sojourn: Variable) {
    p.comment("The delay, in units of 1024 ns.");
    p.access(registers.delay, registers.port, swap("store_delay", sojourn.slice(10, 16)), None);
    p.of(Aspect::Reaction);
    p.comment("One access returns the number that was drawn before, and stores the new one.");
    let drawn = p.compute("drawn", 32, Unit::Number, Operation::Random);
    p.access(registers.random, registers.port, swap("keep_random", drawn), Some(registers.amount));
    if act {
        p.comment("The register's unit compares: a gateway would need the difference first.");
        let is_above = AluCondition {
            left: AluExpression::Term(AluTerm::Word),
            comparison: Comparison::Greater,
            right: AluTerm::Value(registers.amount.into()),
        };
        let action = RegisterAction {
            name: "compare_probability".into(),
            conditions: vec![is_above],
            updates: Vec::new(),
            output: AluOutput::Condition(0),
        };
        let chosen = p.variable("chosen", 1, Unit::Number);
        p.access(registers.probability, registers.port, action, Some(chosen));
        p.when(Condition::compare(chosen, Comparison::Equal, 1), Builder::drop_packet);
    }
}
