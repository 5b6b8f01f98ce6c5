//! Hashes of flows.

use super::variable::Input;
use crc::{Algorithm, Crc, Table};

/// A function that hashes what identifies a flow ([`Input::FLOW`]) or a packet ([`Input::PACKET`]), most significant byte first: a cyclic redundancy check (CRC) of 32
/// bits. Different polynomials are as good as different hash functions. All begin with ones, take and return bits in reverse order, and
/// invert the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Polynomial {
    /// `0x04c11db7`, of Ethernet (CRC-32).
    Ethernet,
    /// `0x1edc6f41`, of Castagnoli, Bräuer and Herrmann (CRC-32C).
    Castagnoli,
    /// `0xa833982b`, of the same authors (CRC-32D).
    CastagnoliD,
    /// `0xf4acfb13`, of AUTOSAR (Koopman and Chakravarty).
    Autosar,
}

/// A function that replaces the hashes of flows of an [`Interpreter`](super::Interpreter).
pub type ReplacedHash = fn(Polynomial, &dyn Fn(Input) -> u64) -> u64;

impl Polynomial {
    /// All of them, in the order in which algorithms take them.
    pub const ALL: [Self; 4] = [Self::Ethernet, Self::Castagnoli, Self::CastagnoliD, Self::Autosar];

    /// The coefficients, without that of x^32.
    pub fn coefficients(self) -> u32 {
        self.algorithm().poly
    }

    /// The hash of a flow.
    pub fn hash(self, input: &dyn Fn(Input) -> u64) -> u64 {
        self.hash_of(&Input::FLOW, input)
    }

    /// The hash of a packet.
    pub fn hash_packet(self, input: &dyn Fn(Input) -> u64) -> u64 {
        self.hash_of(&Input::PACKET, input)
    }

    fn hash_of(self, parts: &[Input], input: &dyn Fn(Input) -> u64) -> u64 {
        let bytes = parts
            .iter()
            .map(|part| (input(*part), part.bits() / 8))
            .flat_map(|(value, bytes)| (0..bytes).rev().map(move |byte| (value >> (8 * byte) & 0xff) as u8));
        let bytes: Vec<_> = bytes.collect();
        let crc = Crc::<u32, Table<0>>::new(self.algorithm());
        crc.checksum(&bytes).into()
    }

    /// The hash of the flow in the other direction: what `hash` gives if the addresses are exchanged, and the ports.
    pub fn reversed(hash: ReplacedHash, polynomial: Self, input: &dyn Fn(Input) -> u64) -> u64 {
        let exchanged = |part| match part {
            Input::Source => input(Input::Destination),
            Input::Destination => input(Input::Source),
            Input::Ports => input(part) >> 16 & 0xffff | (input(part) & 0xffff) << 16,
            part => input(part),
        };
        hash(polynomial, &exchanged)
    }

    fn algorithm(self) -> &'static Algorithm<u32> {
        match self {
            Self::Ethernet => &crc::CRC_32_ISO_HDLC,
            Self::Castagnoli => &crc::CRC_32_ISCSI,
            Self::CastagnoliD => &crc::CRC_32_BASE91_D,
            Self::Autosar => &crc::CRC_32_AUTOSAR,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of "123456789" and the results in the catalogue of CRC algorithms, with four more bytes that follow from the definition.
    #[test]
    fn hashes_are_remainders() {
        let input = |input| match input {
            Input::Source => 0xc0a8_0001,
            Input::Destination => 0x0a00_0002,
            Input::Ports => 0x1f90_c001,
            Input::Protocol => 6,
            _ => unreachable!("not of the flow"),
        };
        let bytes = [0xc0u8, 0xa8, 0, 1, 0x0a, 0, 0, 2, 0x1f, 0x90, 0xc0, 0x01, 6];
        for polynomial in Polynomial::ALL {
            // Bit by bit.
            let reversed = polynomial.coefficients().reverse_bits();
            let mut remainder = u32::MAX;
            for byte in bytes {
                remainder ^= u32::from(byte);
                for _ in 0..8 {
                    let out = remainder & 1;
                    remainder = remainder >> 1 ^ (reversed * out);
                }
            }
            assert_eq!(polynomial.hash(&input), u64::from(!remainder), "{polynomial:?}");
            let algorithm = polynomial.algorithm();
            let all_ones = [algorithm.init, algorithm.xorout] == [u32::MAX; 2];
            assert!(all_ones && algorithm.refin && algorithm.refout, "{polynomial:?}");
        }
    }
}
