//! One access per register: the register's own unit must do everything between a packet's accesses, in one access to
//! one entry.

use crate::program::{Entry, Micro, Op, Packets, Program, Register, StepAction};
use crate::target::Target;

/// The accesses of one kind of packet to a register, and the steps between them.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub register: Register,
    /// The accesses and the steps between them, in order.
    pub steps: Vec<usize>,
    /// The first and the last access.
    pub ends: (usize, usize),
    /// Why it cannot be one access, as a sentence without a final period.
    pub refused: Option<String>,
}

impl Bundle {
    /// Whether it is one access: because it can be, or because there is no other. The unit may not be able to do what a
    /// single access takes, but that is not a reason to reach the register in another stage.
    pub fn is_one_access(&self) -> bool {
        self.refused.is_none() || self.ends.0 == self.ends.1
    }
}

/// Each register's bundle for each kind of packet that reaches it.
pub(crate) fn bundles(program: &Program, target: &Target) -> Vec<Bundle> {
    let kinds = [Packets::Traffic, Packets::Generated, Packets::FedBack, Packets::FedBackAgain];
    let mut accesses = vec![[const { Vec::new() }; 4]; program.registers.len()];
    for step in 0..program.steps.len() {
        if let Some(Entry { register, .. }) = program.entry_of(step) {
            let kind = kinds.iter().position(|kind| *kind == program.steps[step].packets).unwrap_or(0);
            accesses[register.0][kind].push(step);
        }
    }
    let by_register = accesses.iter().enumerate();
    let all = by_register.flat_map(|(register, of_kinds)| of_kinds.iter().map(move |own| (Register(register), own)));
    all.filter_map(|(register, own)| bundle(program, target, register, own)).collect()
}

fn bundle(program: &Program, target: &Target, register: Register, accesses: &[usize]) -> Option<Bundle> {
    let (&first, &last) = (accesses.first()?, accesses.last()?);
    let steps = with_what_is_between(program, accesses);
    let words = program.registers[register.0].words.len() as u32;
    let refused = one_entry(program, accesses)
        .and_then(|()| micros(program, &steps, register))
        .map_or_else(Some, |micros| target.register.refuses(&micros, words));
    Some(Bundle { register, steps, ends: (first, last), refused })
}

/// The accesses, and the steps that directly or indirectly need the result of one and feed another; in order.
fn with_what_is_between(program: &Program, accesses: &[usize]) -> Vec<usize> {
    let [first, .., last] = *accesses else { return accesses.to_vec() };
    let is_access = |step: usize| accesses.binary_search(&step).is_ok();
    // What a step needs was written before it.
    let (mut follows, mut precedes) = (vec![false; last + 1], vec![false; last + 1]);
    for step in first..=last {
        follows[step] = program.needs(step).any(|need| is_access(need) || follows[need]);
    }
    for step in (first..=last).rev() {
        if is_access(step) || precedes[step] {
            program.needs(step).for_each(|need| precedes[need] = true);
        }
    }
    (first..=last).filter(|step| is_access(*step) || follows[*step] && precedes[*step]).collect()
}

/// Whether all accesses are in one pass through the stages, and to one entry.
fn one_entry(program: &Program, accesses: &[usize]) -> Result<(), String> {
    let first = accesses[0];
    let (half, entry) = (program.steps[first].gress, program.entry_of(first));
    if accesses.iter().any(|other| program.steps[*other].gress != half) {
        return Err("the packet passes before the queue and again behind it".to_owned());
    }
    match accesses.iter().find(|other| program.entry_of(**other) != entry) {
        Some(other) => Err(format!("\"{}\" is of another entry", program.steps[*other].name)),
        None => Ok(()),
    }
}

/// Everything that the register's unit would have to do, or why it cannot.
fn micros(program: &Program, steps: &[usize], register: Register) -> Result<Vec<Micro>, String> {
    let mut all = Vec::new();
    for &step in steps {
        let foreign = |what: &str| Err(format!("{what} (\"{}\") is between", program.steps[step].name));
        match &program.steps[step].does {
            StepAction::Access { entry, micros } if entry.register == register => all.extend(micros),
            StepAction::Access { .. } => return foreign("another register"),
            StepAction::Act(_) => {}
            StepAction::Compute(op) => match op {
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

pub(crate) fn is_power_of_two(factor: f64) -> bool {
    factor > 0.0 && factor.log2().fract() == 0.0
}
