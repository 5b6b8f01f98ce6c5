//! One access for each register: what lies between a packet's first access and its last has to be done by the register's own
//! unit, in that access.

use crate::program::{Does, Micro, Op, Packets, Program, Register};
use crate::target::Target;

/// The accesses of a kind of packet to a register, and the steps between them.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub register: Register,
    /// Accesses and what is between, in order.
    pub steps: Vec<usize>,
    /// The first access and the last.
    pub ends: (usize, usize),
    /// Why it cannot be one access, as a sentence without an end.
    pub refused: Option<String>,
}

/// Each register's bundle for each kind of packet that reaches it.
pub(crate) fn bundles(program: &Program, target: &Target) -> Vec<Bundle> {
    let registers = (0..program.registers.len()).map(Register);
    let kinds = [Packets::Traffic, Packets::Generated, Packets::FedBack];
    registers.flat_map(|register| kinds.map(|packets| bundle(program, target, register, packets))).flatten().collect()
}

fn bundle(program: &Program, target: &Target, register: Register, packets: Packets) -> Option<Bundle> {
    let accesses: Vec<_> = (0..program.steps.len())
        .filter(|&step| program.steps[step].packets == packets && register_of(program, step) == Some(register))
        .collect();
    let (&first, &last) = (accesses.first()?, accesses.last()?);
    let steps: Vec<_> = (first..=last)
        .filter(|step| accesses.contains(step) || follows(program, first, *step) && follows(program, *step, last))
        .collect();
    let words = program.registers[register.0].words;
    let refused = match micros(program, &steps, register) {
        Ok(micros) => target.register.refuses(&micros, words),
        Err(why) => Some(why),
    };
    Some(Bundle { register, steps, ends: (first, last), refused })
}

/// All that the register's unit would have to do, or what it cannot.
fn micros(program: &Program, steps: &[usize], register: Register) -> Result<Vec<Micro>, String> {
    let mut all = Vec::new();
    for &step in steps {
        let foreign = |what: &str| Err(format!("{what} (\"{}\") is between", program.steps[step].name));
        match &program.steps[step].does {
            Does::Access { register: own, micros, .. } if *own == register => all.extend(micros),
            Does::Access { .. } => return foreign("another register"),
            Does::Act(_) => {}
            Does::Compute(op) => match op {
                Op::Simple => all.push(Micro::Update),
                Op::MultiplyBy(factor) if is_power_of_two(*factor) => all.push(Micro::Update),
                Op::Compare(count) => all.extend(std::iter::repeat_n(Micro::Condition, *count)),
                Op::Function { special: Some(special), .. } => all.push(Micro::Special(*special)),
                Op::MultiplyBy(_) | Op::Multiply => return foreign("a product"),
                Op::Function { .. } => return foreign("a function"),
                Op::Table(_) => return foreign("a table"),
                Op::Hash | Op::Random => return foreign("a step"),
            },
        }
    }
    Ok(all)
}

/// The register that a step reaches.
pub(crate) fn register_of(program: &Program, step: usize) -> Option<Register> {
    match program.steps[step].does {
        Does::Access { register, .. } => Some(register),
        Does::Compute(_) | Does::Act(_) => None,
    }
}

/// Whether a step needs the result of an earlier one, at first or second hand.
fn follows(program: &Program, earlier: usize, later: usize) -> bool {
    later == earlier || later > earlier && program.needs(later).any(|need| follows(program, earlier, need))
}

pub(crate) fn is_power_of_two(factor: f64) -> bool {
    factor > 0.0 && factor.log2().fract() == 0.0
}
