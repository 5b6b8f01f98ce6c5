//! Flows that are never acted on, as the kernel has them (`struct never` of `bpf/act.h`).
//!
//! The kernel itself decides which flows are acted on, packet by packet, so the list must be there, too: a list in user space would
//! come after the first drops.

use queuescope_wire::{Family, FlowKey};
use std::array::from_fn;
use std::net::Ipv4Addr;

/// Flows that are never acted on: those of which any of its terms holds. None by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Never {
    tests: Vec<Test>,
}

/// A condition of a term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// A field is in one of these ranges, each from its first to its last value.
    Within(Field, Vec<(u128, u128)>),
    /// Bits of a field are so, or are not.
    Bits {
        /// Whose bits.
        field: Field,
        /// Which.
        mask: u128,
        /// How they are.
        value: u128,
        /// Or how they are not.
        equal: bool,
    },
}

/// A field of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The source address: IPv4 as `::ffff:192.0.2.1`, and `::` if it is no IP packet.
    Source,
    /// The destination address, likewise.
    Destination,
    /// The source port, 0 without.
    SourcePort,
    /// The destination port, 0 without.
    DestinationPort,
    /// The number of the transport protocol.
    Protocol,
    /// 4, 6, or 0 if it is no IP packet.
    Version,
}

/// The list is longer than what the kernel has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the flows that are never acted on take {tests} comparisons, and the kernel has room for {}; use prefixes and ranges",
    Never::MOST
)]
pub struct NeverError {
    /// As many as it takes.
    pub tests: usize,
}

/// A test of a pair of words: `low <= pair & mask <= high`, or not so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Test {
    pair: u64,
    mask: u128,
    low: u128,
    high: u128,
    negated: bool,
    ends_condition: bool,
    ends_term: bool,
}

impl Never {
    /// Comparisons, at most.
    pub const MOST: usize = 64;
    /// Words of `struct never`.
    pub(super) const WORDS: usize = 1 + 7 * Self::MOST;

    /// Of terms: each holds if all its conditions do. One without conditions always holds.
    ///
    /// # Errors
    /// If they take more than [`MOST`](Self::MOST) comparisons.
    pub fn new(terms: impl IntoIterator<Item = Vec<Condition>>) -> Result<Self, NeverError> {
        let tests: Vec<_> = terms.into_iter().flat_map(|term| Test::of_term(&term)).collect();
        if tests.len() > Self::MOST { Err(NeverError { tests: tests.len() }) } else { Ok(Self { tests }) }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// Whether a flow is never acted on. `key` is of the outermost header, as the kernel reads it.
    pub fn holds(&self, key: &FlowKey) -> bool {
        let pairs = pairs(key);
        let (mut condition, mut term) = (false, true);
        for test in &self.tests {
            let value = pairs[test.pair as usize] & test.mask;
            condition |= (test.low <= value && value <= test.high) != test.negated;
            if test.ends_condition {
                term &= std::mem::take(&mut condition);
            }
            if test.ends_term && std::mem::replace(&mut term, true) {
                return true;
            }
        }
        false
    }

    /// As `struct never` has it.
    pub(super) fn words(&self) -> [u64; Self::WORDS] {
        from_fn(|word| match word.checked_sub(1) {
            None => self.tests.len() as u64,
            Some(word) => self.tests.get(word / 7).map_or(0, |test| test.words()[word % 7]),
        })
    }
}

impl Condition {
    fn tests(&self) -> Vec<Test> {
        let made = |field: &Field, mask: u128, low: u128, high: u128, negated| {
            let (pair, shift) = field.place();
            let [mask, low, high] = [mask, low, high].map(|bits| bits << shift);
            Test { pair, mask, low, high, negated, ends_condition: false, ends_term: false }
        };
        let mut tests: Vec<_> = match self {
            Self::Within(field, ranges) => {
                ranges.iter().map(|(low, high)| made(field, field.highest(), *low, *high, false)).collect()
            }
            // What is beyond the mask is never so.
            Self::Bits { field, mask, value, equal } if value & !mask & field.highest() == 0 => {
                vec![made(field, mask & field.highest(), *value, *value, !equal)]
            }
            Self::Bits { field, equal, .. } => vec![made(field, 0, 0, 0, *equal)],
        };
        // Of no range at all none holds.
        if tests.is_empty() {
            tests.push(made(&Field::Source, 0, 0, 0, true));
        }
        if let Some(last) = tests.last_mut() {
            last.ends_condition = true;
        }
        tests
    }
}

impl Field {
    /// The pair of words that it is in, and from which bit on.
    fn place(self) -> (u64, u32) {
        match self {
            Self::Source => (0, 0),
            Self::Destination => (1, 0),
            Self::SourcePort => (2, 0),
            Self::DestinationPort => (2, 16),
            Self::Protocol => (2, 32),
            Self::Version => (2, 40),
        }
    }

    /// The highest value.
    fn highest(self) -> u128 {
        match self {
            Self::Source | Self::Destination => u128::MAX,
            Self::SourcePort | Self::DestinationPort => u16::MAX.into(),
            Self::Protocol | Self::Version => u8::MAX.into(),
        }
    }
}

impl Test {
    fn of_term(conditions: &[Condition]) -> Vec<Self> {
        // What is in no condition's way always holds.
        let always = [Condition::Bits { field: Field::Source, mask: 0, value: 0, equal: true }];
        let conditions = if conditions.is_empty() { &always } else { conditions };
        let mut tests: Vec<_> = conditions.iter().flat_map(Condition::tests).collect();
        if let Some(last) = tests.last_mut() {
            last.ends_term = true;
        }
        tests
    }

    fn words(&self) -> [u64; 7] {
        let halves = |both: u128| [both as u64, (both >> 64) as u64];
        let ends = u64::from(self.ends_condition) | u64::from(self.ends_term) << 1 | u64::from(self.negated) << 2;
        let ([m0, m1], [l0, l1], [h0, h1]) = (halves(self.mask), halves(self.low), halves(self.high));
        [m0, m1, l0, l1, h0, h1, self.pair | ends << 32]
    }
}

/// What is known of a flow, as tests have it.
fn pairs(key: &FlowKey) -> [u128; 3] {
    let mapped = |address: u128| Ipv4Addr::from_bits(address as u32).to_ipv6_mapped().to_bits();
    let (src, dst, version) = match key.family {
        Family::Link => return [0; 3],
        Family::V4 => (mapped(key.src), mapped(key.dst), 4u128),
        Family::V6 => (key.src, key.dst, 6),
    };
    let ports = u128::from(key.src_port) | u128::from(key.dst_port) << 16;
    [src, dst, ports | u128::from(key.protocol) << 32 | version << 40]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_there_is_room_for() {
        let term = |port: usize| vec![Condition::Within(Field::SourcePort, vec![(port as u128, port as u128)])];
        assert!(Never::new((0..64).map(term)).is_ok());
        let error = Never::new((0..65).map(term)).unwrap_err().to_string();
        assert!(error.contains("take 65 comparisons") && error.contains("room for 64"), "{error}");
    }

    #[test]
    fn none_and_all() {
        let key = FlowKey { src: 1, family: Family::V4, ..FlowKey::default() };
        assert!(!Never::default().holds(&key));
        assert!(Never::new([vec![]]).unwrap().holds(&key));
        assert!(!Never::new([vec![Condition::Within(Field::Source, vec![])]]).unwrap().holds(&key));
    }
}
