//! Operations on the variables of a packet.

use super::hash::Polynomial;
use super::variable::{Input, Operand, ones};

/// A computation of one action. Results have the width of the variable that takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The operand itself.
    Copy(Operand),
    /// The operand, shifted left by a constant, moved by a hash unit of a Tofino, which takes any bits to any place. A [`Copy`](Self::Copy) of some
    /// bits ties the fields that are computed from it to the places that these bits have in the source, and the compiler may find none for both.
    Gather(Operand, u32),
    /// The first operand in front of the second, of which this many bits are taken; by a hash unit of a Tofino, as [`Gather`](Self::Gather).
    Join(Operand, Operand, u32),
    /// The sum, modulo two to the power of the width.
    Add(Operand, Operand),
    /// The first less the second, modulo two to the power of the width.
    Subtract(Operand, Operand),
    /// The sum; at most the largest number of the width.
    AddSaturating(Operand, Operand),
    /// The first less the second; at least zero.
    SubtractSaturating(Operand, Operand),
    /// The first less the second; at least the smallest and at most the largest number in two's complement.
    SubtractSigned(Operand, Operand),
    /// The smaller.
    Minimum(Operand, Operand),
    /// The larger.
    Maximum(Operand, Operand),
    /// The bits that both have.
    And(Operand, Operand),
    /// The bits that any has.
    Or(Operand, Operand),
    /// The bits that exactly one has.
    Xor(Operand, Operand),
    /// A left shift by a constant. Bits beyond the width are lost.
    ShiftLeft(Operand, u32),
    /// A right shift by a constant.
    ShiftRight(Operand, u32),
    /// A random number, each of whose bits is one with probability one half.
    Random,
    /// The lowest bits of the flow's hash. The program has all inputs of [`Input::FLOW`](super::Input::FLOW).
    Hash(Polynomial),
    /// The lowest bits of the packet's hash. The program has all inputs of [`Input::PACKET`](super::Input::PACKET).
    HashPacket(Polynomial),
    /// The same for the other direction: the addresses are exchanged, and so are the ports.
    HashReversed(Polynomial),
}

impl Operation {
    /// Whether a hash unit of a Tofino moves bits.
    pub(crate) fn moves_bits(&self) -> bool {
        matches!(self, Self::Gather(..) | Self::Join(..))
    }

    /// Its operands.
    pub(crate) fn operands(&self) -> Vec<Operand> {
        match *self {
            Self::Copy(one) | Self::Gather(one, _) | Self::ShiftLeft(one, _) | Self::ShiftRight(one, _) => vec![one],
            Self::Add(one, other)
            | Self::Join(one, other, _)
            | Self::AddSaturating(one, other)
            | Self::Subtract(one, other)
            | Self::SubtractSaturating(one, other)
            | Self::SubtractSigned(one, other)
            | Self::Minimum(one, other)
            | Self::Maximum(one, other)
            | Self::And(one, other)
            | Self::Or(one, other)
            | Self::Xor(one, other) => vec![one, other],
            Self::Random | Self::Hash(_) | Self::HashReversed(_) | Self::HashPacket(_) => Vec::new(),
        }
    }

    /// What is hashed, and with which polynomial.
    pub(crate) fn hashes(&self) -> Option<(&'static [Input], Polynomial)> {
        match self {
            Self::Hash(polynomial) | Self::HashReversed(polynomial) => Some((&Input::FLOW, *polynomial)),
            Self::HashPacket(polynomial) => Some((&Input::PACKET, *polynomial)),
            _ => None,
        }
    }

    /// The result, as a number of `bits` bits. `hash` computes the hashes.
    pub(crate) fn result(
        &self,
        bits: u32,
        read: impl Fn(Operand) -> u64,
        random: &mut dyn FnMut(u32) -> u64,
        hash: impl Fn(Self) -> u64,
    ) -> u64 {
        let all = match *self {
            Self::Copy(one) => read(one),
            Self::Add(one, other) => read(one).wrapping_add(read(other)),
            Self::Subtract(one, other) => read(one).wrapping_sub(read(other)),
            Self::AddSaturating(one, other) => read(one).saturating_add(read(other)).min(ones(bits)),
            Self::SubtractSaturating(one, other) => read(one).saturating_sub(read(other)),
            Self::SubtractSigned(one, other) => {
                let [one, other] = [one, other].map(|operand| signed(read(operand), bits));
                saturated(one - other, bits)
            }
            Self::Minimum(one, other) => read(one).min(read(other)),
            Self::Maximum(one, other) => read(one).max(read(other)),
            Self::And(one, other) => read(one) & read(other),
            Self::Or(one, other) => read(one) | read(other),
            Self::Xor(one, other) => read(one) ^ read(other),
            Self::ShiftLeft(one, by) | Self::Gather(one, by) => read(one).checked_shl(by).unwrap_or(0),
            Self::ShiftRight(one, by) => read(one).checked_shr(by).unwrap_or(0),
            Self::Join(one, other, by) => read(one) << by | read(other),
            Self::Random => random(bits),
            Self::Hash(_) | Self::HashReversed(_) | Self::HashPacket(_) => hash(*self),
        };
        all & ones(bits)
    }
}

/// The number that `bits` bits are in two's complement.
pub(crate) fn signed(value: u64, bits: u32) -> i128 {
    let value = i128::from(value);
    if bits > 0 && value >> (bits - 1) & 1 == 1 { value - (1i128 << bits) } else { value }
}

/// The closest number that `bits` bits can be in two's complement, as these bits.
pub(crate) fn saturated(value: i128, bits: u32) -> u64 {
    let half = 1i128 << bits.saturating_sub(1);
    (value.clamp(-half, half - 1) as u64) & ones(bits)
}
