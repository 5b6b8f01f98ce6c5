//! Expressions as text.

use super::super::action::{AluExpression, AluTerm, RegisterAction};
use super::super::builder::SwitchProgram;
use super::super::condition::Condition;
use super::super::operation::Operation;
use super::super::pair::{HALF_BITS, PairAction, PairCondition};
use super::super::variable::{Input, Operand, Variable};
use super::Architecture;
use crate::Gress;

/// How variables are named in a text.
pub(crate) struct Names<'a> {
    program: &'a SwitchProgram,
    architecture: Option<Architecture>,
    is_test: bool,
    gress: Gress,
}

impl<'a> Names<'a> {
    /// The names alone, for people.
    pub fn plain(program: &'a SwitchProgram) -> Self {
        Self { program, architecture: None, is_test: false, gress: Gress::Egress }
    }

    /// As P4 for an architecture. In a test build, inputs come in a header.
    pub fn of(program: &'a SwitchProgram, architecture: Architecture, is_test: bool, gress: Gress) -> Self {
        Self { program, architecture: Some(architecture), is_test, gress }
    }

    pub fn variable(&self, Variable(variable): Variable) -> String {
        let info = &self.program.variables[variable];
        match (self.architecture, info.input) {
            (Some(_), Some(input)) if self.is_test && Input::OF_ACTIVITY.contains(&input) => {
                format!("meta.{}", info.name)
            }
            (Some(_), Some(_)) if self.is_test => format!("hdr.test.{}", info.name),
            (Some(Architecture::V1model), Some(Input::Port)) if self.gress == Gress::Ingress => {
                "standard_metadata.egress_spec".to_owned()
            }
            (Some(Architecture::Tna), Some(Input::Port)) if self.gress == Gress::Ingress => {
                "ig_tm_md.ucast_egress_port".to_owned()
            }
            (Some(Architecture::Tna), Some(Input::Arrived)) => "ig_prsr_md.global_tstamp".to_owned(),
            (Some(Architecture::V1model), Some(Input::ArrivalPort)) => "standard_metadata.ingress_port".to_owned(),
            (Some(Architecture::Tna), Some(Input::ArrivalPort)) => "ig_intr_md.ingress_port".to_owned(),
            (Some(Architecture::V1model), Some(Input::QueueLength)) => "standard_metadata.enq_qdepth".to_owned(),
            (Some(Architecture::V1model), Some(Input::LengthBehind)) => "standard_metadata.deq_qdepth".to_owned(),
            (Some(Architecture::V1model), Some(Input::Port)) => "standard_metadata.egress_port".to_owned(),
            (Some(Architecture::Tna), Some(Input::Port)) => "eg_intr_md.egress_port".to_owned(),
            (Some(Architecture::Tna), Some(Input::Dequeued)) => "eg_prsr_md.global_tstamp".to_owned(),
            (Some(Architecture::Tna), Some(Input::Enqueued)) => "hdr.bridge.enqueued".to_owned(),
            (Some(Architecture::Tna), Some(Input::Length)) => "eg_intr_md.pkt_length".to_owned(),
            (Some(Architecture::Tna), Some(Input::Depth)) => "eg_intr_md.enq_qdepth".to_owned(),
            (
                Some(_),
                Some(
                    Input::Ecn
                    | Input::Generated
                    | Input::FedBack
                    | Input::Source
                    | Input::Destination
                    | Input::Ports
                    | Input::Protocol
                    | Input::IpLength
                    | Input::HasActivity
                    | Input::Malformed
                    | Input::Activity
                    | Input::Identification
                    | Input::Sequence
                    | Input::Acknowledgement
                    | Input::IpWords
                    | Input::TcpWords
                    | Input::TcpFlags
                    | Input::Window
                    | Input::TcpChecksum,
                ),
            ) => format!("meta.{}", info.name),
            (Some(Architecture::V1model), Some(Input::Note(_))) => format!("meta.{}", info.name),
            (Some(Architecture::Tna), Some(Input::Note(_))) => format!("hdr.bridge.{}", info.name),
            (Some(Architecture::Tna), None) if self.is_metadata(Variable(variable)) => format!("meta.{}", info.name),
            _ => info.name.to_string(),
        }
    }

    /// Whether a variable is a field of the metadata for Tofino: a register action reads it. (The compiler takes other variables for
    /// uninitialized there.)
    pub fn is_metadata(&self, variable: Variable) -> bool {
        let of_pairs = self.program.pair_actions.iter().flat_map(PairAction::operands);
        let operands = self.program.actions.iter().flat_map(RegisterAction::operands).chain(of_pairs);
        let is_read = operands.filter_map(Operand::variable).any(|read| read == variable);
        is_read && self.architecture == Some(Architecture::Tna) && self.program.variables[variable.0].input.is_none()
    }
}

/// A constant with its width.
pub(crate) fn literal(value: u64, bits: u32) -> String {
    let hex = value > 0xffff;
    if hex { format!("{bits}w{value:#x}") } else { format!("{bits}w{value}") }
}

/// The width of an operand; none for a constant.
pub(crate) fn width_of(program: &SwitchProgram, operand: Operand) -> Option<u32> {
    super::super::validate::bits(program, operand)
}

/// An operand, with `bits` bits in P4.
pub(crate) fn operand_text(names: &Names<'_>, operand: Operand, bits: u32) -> String {
    let text = match operand {
        Operand::Constant(value) => {
            return if names.architecture.is_some() { literal(value, bits) } else { value.to_string() };
        }
        Operand::Variable(variable) => names.variable(variable),
        Operand::Slice { of, low, bits } => format!("{}[{}:{low}]", names.variable(of), low + bits - 1),
    };
    let is_narrow = width_of(names.program, operand).is_some_and(|width| width < bits);
    if is_narrow && names.architecture.is_some() { format!("(bit<{bits}>){text}") } else { text }
}

/// An operation, with a result of `bits` bits.
pub(crate) fn operation_text(names: &Names<'_>, bits: u32, operation: &Operation) -> String {
    let text = |operand| operand_text(names, operand, bits);
    let infix = |one, sign: &str, other| format!("{} {sign} {}", text(one), text(other));
    let least = |one, sign: &str, other, name: &str| match names.architecture {
        Some(Architecture::V1model) => format!("{0} {sign} {1} ? {0} : {1}", text(one), text(other)),
        Some(Architecture::Tna) | None => format!("{name}({}, {})", text(one), text(other)),
    };
    match *operation {
        Operation::Copy(one) | Operation::Gather(one, 0) => text(one),
        Operation::Add(one, other) => infix(one, "+", other),
        Operation::AddSaturating(one, other) => infix(one, "|+|", other),
        Operation::Subtract(one, other) => infix(one, "-", other),
        Operation::SubtractSaturating(one, other) => infix(one, "|-|", other),
        Operation::SubtractSigned(one, other) if names.architecture.is_some() => {
            format!("(bit<{bits}>)((int<{bits}>){} |-| (int<{bits}>){})", text(one), text(other))
        }
        Operation::SubtractSigned(one, other) => infix(one, "|-|", other),
        Operation::Join(one, other, by) => {
            let [one, other] = [(one, 0), (other, by)].map(|(operand, bits)| operand_text(names, operand, bits));
            let joined = format!("{one} ++ {other}");
            let width = [one_bits(names, operation), by].into_iter().sum::<u32>();
            if width < bits && names.architecture.is_some() { format!("(bit<{bits}>)({joined})") } else { joined }
        }
        Operation::Minimum(one, other) => least(one, "<", other, "min"),
        Operation::Maximum(one, other) => least(one, ">", other, "max"),
        Operation::And(one, other) => infix(one, "&", other),
        Operation::Or(one, other) => infix(one, "|", other),
        Operation::Xor(one, other) => infix(one, "^", other),
        Operation::ShiftLeft(one, by) | Operation::Gather(one, by) => format!("{} << {by}", text(one)),
        Operation::ShiftRight(one, by) => format!("{} >> {by}", text(one)),
        Operation::Random => "random".to_owned(),
        Operation::Hash(polynomial) => format!("crc32({:#x}, flow)", polynomial.coefficients()),
        Operation::HashPacket(polynomial) => format!("crc32({:#x}, packet)", polynomial.coefficients()),
        Operation::HashReversed(polynomial) => format!("crc32({:#x}, flow in reverse)", polynomial.coefficients()),
    }
}

/// The width of the first operand.
fn one_bits(names: &Names<'_>, operation: &Operation) -> u32 {
    operation.operands().first().and_then(|one| width_of(names.program, *one)).unwrap_or(0)
}

/// A condition.
pub(crate) fn condition_text(names: &Names<'_>, program: &SwitchProgram, condition: &Condition) -> String {
    let joined = |parts: &[Condition], sign: &str| {
        let text = |part: &Condition| match part {
            Condition::Compare { .. } => condition_text(names, program, part),
            _ => format!("({})", condition_text(names, program, part)),
        };
        parts.iter().map(text).collect::<Vec<_>>().join(sign)
    };
    match condition {
        Condition::Compare { left, comparison, right } => {
            let bits = [*left, *right].into_iter().filter_map(|operand| width_of(program, operand)).max();
            let [left, right] = [*left, *right].map(|operand| operand_text(names, operand, bits.unwrap_or(0)));
            format!("{left} {} {right}", comparison.sign())
        }
        Condition::All(parts) => joined(parts, " && "),
        Condition::Any(parts) => joined(parts, " || "),
    }
}

/// A term of a register's unit.
pub(crate) fn term_text(names: &Names<'_>, term: AluTerm, bits: u32) -> String {
    match term {
        AluTerm::Word => "word".to_owned(),
        AluTerm::Value(operand) => operand_text(names, operand, bits),
    }
}

/// A condition on a word of a pair. `words` is how the words are named, before a period.
pub(crate) fn pair_condition_text(names: &Names<'_>, of_pair: &PairCondition, words: &str) -> String {
    let PairCondition { of, condition } = of_pair;
    let left = alu_text(names, condition.left, HALF_BITS);
    let right = term_text(names, condition.right, HALF_BITS);
    let word = |text: String| {
        let name = format!("{words}{}", of.name());
        text.split(' ').map(|part| if part == "word" { &name } else { part }).collect::<Vec<_>>().join(" ")
    };
    format!("{} {} {}", word(left), condition.comparison.sign(), word(right))
}

/// A computation of a register's unit.
pub(crate) fn alu_text(names: &Names<'_>, expression: AluExpression, bits: u32) -> String {
    let text = |term| term_text(names, term, bits);
    match expression {
        AluExpression::Term(one) => text(one),
        AluExpression::Add(one, other) => format!("{} + {}", text(one), text(other)),
        AluExpression::Subtract(one, other) => format!("{} - {}", text(one), text(other)),
        AluExpression::AddSaturating(one, other) => format!("{} |+| {}", text(one), text(other)),
        AluExpression::SubtractSaturating(one, other) => format!("{} |-| {}", text(one), text(other)),
        AluExpression::MoveTowards(to, shift) => {
            let wide = bits + 1;
            let signed = |term| format!("(int<{wide}>)(bit<{wide}>){}", term_text(names, term, bits));
            let change = format!("({} - {}) >> {shift}", signed(to), signed(AluTerm::Word));
            format!("word + (bit<{bits}>)(bit<{wide}>)({change})")
        }
        AluExpression::AddSigned(one, other) => {
            format!("(bit<{bits}>)((int<{bits}>){} |+| (int<{bits}>){})", text(one), text(other))
        }
    }
}
