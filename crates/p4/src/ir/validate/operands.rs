//! Whether operands exist, their widths and their units.

use super::Broken;
use crate::ir::builder::{SwitchProgram, VariableInfo};
use crate::ir::variable::{Operand, Unit, Variable, ones};
use std::fmt;

/// Whether an operand exists and has at most these bits.
pub(super) fn fits(program: &SwitchProgram, operand: Operand, most: u32) -> Result<(), Broken> {
    match operand {
        Operand::Constant(value) if value > ones(most) => Err(format!("{value} has more than {most} bits")),
        Operand::Constant(_) => Ok(()),
        Operand::Variable(of) | Operand::Slice { of, .. } => {
            let info = program.variables.get(of.0).ok_or("reads a variable of another program")?;
            if let Operand::Slice { low, bits, .. } = operand
                && (bits == 0 || low.saturating_add(bits) > info.bits)
            {
                return Err(format!("takes {bits} bits from bit {low} on of {}, which has {}", info.name, info.bits));
            }
            let has = bits(program, operand).unwrap_or(0);
            if has > most {
                return Err(format!("reads {has} bits of {} into {most}: take a slice", info.name));
            }
            Ok(())
        }
    }
}

/// The width of an operand; none for a constant.
pub(crate) fn bits(program: &SwitchProgram, operand: Operand) -> Option<u32> {
    match operand {
        Operand::Variable(variable) => program.variables.get(variable.0).map(|it| it.bits),
        Operand::Slice { bits, .. } => Some(bits),
        Operand::Constant(_) => None,
    }
}

/// The unit of an operand; none for a constant, which has that of what it is combined with.
pub(super) fn unit(program: &SwitchProgram, operand: Operand) -> Option<Unit> {
    let of = |variable: Variable| program.variables.get(variable.0).map(|it| it.unit);
    match operand {
        Operand::Variable(variable) => of(variable),
        Operand::Slice { of: variable, low, .. } => of(variable).map(|unit| unit.without_low_bits(low)),
        Operand::Constant(_) => None,
    }
}

/// Whether a variable is an input that cannot be assigned. Slots of the note can be.
pub(super) fn is_fixed(info: &VariableInfo) -> bool {
    info.input.is_some_and(|input| !input.is_note())
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number => f.write_str("numbers"),
            Self::Nanos { shift: 0 } => f.write_str("nanoseconds"),
            Self::Nanos { shift } => write!(f, "units of {} ns", 1u64 << shift),
            Self::Bytes => f.write_str("bytes"),
            Self::Packets => f.write_str("packets"),
            Self::Cells => f.write_str("cells"),
        }
    }
}
