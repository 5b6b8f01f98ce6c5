//! The list of flows that are never acted on, as the kernel stores it (`struct never` of `bpf/act.h`).
//!
//! The kernel decides for each packet whether to act on its flow, so the list must be in the kernel, too. A list in user space would take
//! effect only after the first drops.

use queuescope_wire::{Family, FlowKey};
use std::array::from_fn;
use std::net::Ipv4Addr;

/// Flows that are never acted on: those that match any of the terms. Empty by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Never {
    tests: Vec<Test>,
}

/// A condition of a term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The value of a field is in one of these ranges, each from its first to its last value.
    Within(Field, Vec<(u128, u128)>),
    /// Some bits of a field have a value, or do not have it.
    Bits {
        /// The field.
        field: Field,
        /// The bits that are compared.
        mask: u128,
        /// The value to compare them with.
        value: u128,
        /// Whether the bits must be equal to the value, or different from it.
        equal: bool,
    },
}

/// A field of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The source address: IPv4 as `::ffff:192.0.2.1`, and `::` for packets that are not IP.
    Source,
    /// The destination address, in the same form.
    Destination,
    /// The source port; 0 if there is none.
    SourcePort,
    /// The destination port; 0 if there is none.
    DestinationPort,
    /// The number of the transport protocol.
    Protocol,
    /// The IP version: 4 or 6; 0 for packets that are not IP.
    Version,
}

/// The list does not fit in the kernel's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the flows that are never acted on take {tests} comparisons, and the kernel has room for {}; use prefixes and ranges",
    Never::MOST
)]
pub struct NeverError {
    /// The number of comparisons that the list takes.
    pub tests: usize,
}

/// A test of a pair of words: `low <= pair & mask <= high`, or its negation.
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
    /// The largest number of comparisons.
    pub const MOST: usize = 64;
    /// The size of `struct never` in words of 64 bits.
    pub(crate) const WORDS: usize = 1 + 7 * Self::MOST;

    /// Creates the list from terms. A term matches if all its conditions hold; one without conditions matches every flow.
    ///
    /// # Errors
    /// Fails if the terms take more than [`MOST`](Self::MOST) comparisons.
    pub fn new(terms: impl IntoIterator<Item = Vec<Condition>>) -> Result<Self, NeverError> {
        let tests: Vec<_> = terms.into_iter().flat_map(|term| Test::from_term(&term)).collect();
        if tests.len() > Self::MOST { Err(NeverError { tests: tests.len() }) } else { Ok(Self { tests }) }
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// Whether a flow is never acted on. `key` must be of the outermost header, which is the one that the kernel reads.
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

    /// The list in the layout of `struct never`.
    pub(crate) fn words(&self) -> [u64; Self::WORDS] {
        from_fn(|word| match word.checked_sub(1) {
            None => self.tests.len() as u64,
            Some(word) => self.tests.get(word / 7).map_or(0, |test| test.words()[word % 7]),
        })
    }
}

impl Condition {
    fn tests(&self) -> Vec<Test> {
        let new_test = |field: &Field, mask: u128, low: u128, high: u128, negated| {
            let (pair, shift) = field.place();
            let [mask, low, high] = [mask, low, high].map(|bits| bits << shift);
            Test { pair, mask, low, high, negated, ends_condition: false, ends_term: false }
        };
        let mut tests: Vec<_> = match self {
            Self::Within(field, ranges) => {
                ranges.iter().map(|(low, high)| new_test(field, field.highest(), *low, *high, false)).collect()
            }
            // Bits outside the mask are zero after masking, so a value with such bits is never equal.
            Self::Bits { field, mask, value, equal } if value & !mask & field.highest() == 0 => {
                vec![new_test(field, mask & field.highest(), *value, *value, !equal)]
            }
            Self::Bits { field, equal, .. } => vec![new_test(field, 0, 0, 0, *equal)],
        };
        // A condition without ranges never holds.
        if tests.is_empty() {
            tests.push(new_test(&Field::Source, 0, 0, 0, true));
        }
        if let Some(last) = tests.last_mut() {
            last.ends_condition = true;
        }
        tests
    }
}

impl Field {
    /// The index of its pair of words, and its lowest bit there.
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

    /// The largest value of the field.
    fn highest(self) -> u128 {
        match self {
            Self::Source | Self::Destination => u128::MAX,
            Self::SourcePort | Self::DestinationPort => u16::MAX.into(),
            Self::Protocol | Self::Version => u8::MAX.into(),
        }
    }
}

impl Test {
    fn from_term(conditions: &[Condition]) -> Vec<Self> {
        // A term without conditions always holds.
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

/// The fields of a flow as pairs of words, in the layout of `struct known`.
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
    fn a_list_that_is_too_long_is_an_error() {
        let term = |port: usize| vec![Condition::Within(Field::SourcePort, vec![(port as u128, port as u128)])];
        assert!(Never::new((0..64).map(term)).is_ok());
        let error = Never::new((0..65).map(term)).unwrap_err().to_string();
        assert!(error.contains("take 65 comparisons") && error.contains("room for 64"), "{error}");
    }

    #[test]
    fn an_empty_list_matches_no_flow_and_an_empty_term_every_flow() {
        let key = FlowKey { src: 1, family: Family::V4, ..FlowKey::default() };
        assert!(!Never::default().holds(&key));
        assert!(Never::new([vec![]]).unwrap().holds(&key));
        assert!(!Never::new([vec![Condition::Within(Field::Source, vec![])]]).unwrap().holds(&key));
    }
}
