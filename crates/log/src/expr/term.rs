//! A term: predicates that must all hold, in a form in which equal terms mostly look equal.
//!
//! Each attribute has at most one set of ranges, and at most one mask whose bits must be equal; masks whose bits must differ
//! stay separate. A contradiction is not a term.

use super::{AggregateId, Expr, Number, Orderings, Ranges, Relation, Test};
use crate::schema::low_bits;
use crate::{AttributeId, Schema};

/// Up to this many keys are tested one by one to eliminate a mask.
const FEW: u128 = 64;

/// Predicates that must all hold. A term without predicates is always true.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Term {
    /// By attribute.
    within: Vec<(AttributeId, Ranges)>,
    /// By attribute.
    masks: Vec<MaskTest>,
    aggregates: Vec<(AggregateTest, Orderings)>,
}

/// One condition of a term. Values are keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Predicate<'a> {
    /// The attribute's key is in one of the ranges.
    Within(AttributeId, &'a Ranges),
    /// Some of the key's bits are equal to a value, or differ from it.
    Mask(MaskTest),
    /// The attribute compares with an aggregate in one of these ways.
    Aggregate(AggregateTest, Orderings),
}

/// `key & mask == value`, or `!=` if not `equal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MaskTest {
    /// The attribute.
    pub attribute: AttributeId,
    /// Whether the bits must be equal, or must differ.
    pub equal: bool,
    /// The bits to test.
    pub mask: u128,
    /// Their value.
    pub value: u128,
}

/// An attribute and the right side of its comparison: an aggregate plus an offset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AggregateTest {
    /// The attribute on the left side.
    pub attribute: AttributeId,
    /// The aggregate.
    pub aggregate: AggregateId,
    /// The offset; a signed number or, for an attribute with fractions, a floating-point number.
    pub offset: Number,
}

impl Predicate<'_> {
    /// The attribute that it tests.
    pub fn attribute(&self) -> AttributeId {
        match self {
            Self::Within(attribute, _) => *attribute,
            Self::Mask(test) => test.attribute,
            Self::Aggregate(test, _) => test.attribute,
        }
    }
}

impl Term {
    /// All predicates: ranges, masks, aggregates, each by attribute.
    pub fn predicates(&self) -> impl Iterator<Item = Predicate<'_>> {
        let within = self.within.iter().map(|(attribute, ranges)| Predicate::Within(*attribute, ranges));
        let masks = self.masks.iter().map(|test| Predicate::Mask(*test));
        let aggregates = self.aggregates.iter().map(|(test, orderings)| Predicate::Aggregate(*test, *orderings));
        within.chain(masks).chain(aggregates)
    }

    /// The predicates on one attribute.
    pub fn on(&self, attribute: AttributeId) -> impl Iterator<Item = Predicate<'_>> {
        self.predicates().filter(move |predicate| predicate.attribute() == attribute)
    }

    /// The ranges that an attribute must be in, if there are any: these can be looked up in an index.
    pub fn ranges(&self, attribute: AttributeId) -> Option<&Ranges> {
        let index = self.within.binary_search_by_key(&attribute, |(attribute, _)| *attribute).ok()?;
        self.within.get(index).map(|(_, ranges)| ranges)
    }

    /// Whether it needs more than the record to decide.
    pub fn has_aggregates(&self) -> bool {
        !self.aggregates.is_empty()
    }

    /// Whether it is always true.
    pub fn is_true(&self) -> bool {
        self.within.is_empty() && self.masks.is_empty() && self.aggregates.is_empty()
    }

    /// The term of a test or of its negation; `None` if it is never true.
    pub(super) fn from_test(test: &Test, negated: bool, schema: &Schema) -> Option<Self> {
        let mut term = Self::default();
        match test {
            Test::Compare { attribute, relation, key } => {
                let highest = schema.attribute(*attribute).highest_key();
                let ranges = relation.ranges(*key, highest);
                term.within.push((*attribute, if negated { ranges.complement(highest) } else { ranges }));
            }
            Test::Within { attribute, ranges } => {
                let highest = schema.attribute(*attribute).highest_key();
                let ranges = if negated { ranges.complement(highest) } else { ranges.clone() };
                term.within.push((*attribute, ranges));
            }
            Test::Mask { attribute, mask, value, equal } => {
                let equal = *equal != negated;
                term.masks.push(MaskTest { attribute: *attribute, equal, mask: *mask, value: *value });
            }
            Test::Aggregate(test, relation) => {
                let orderings = relation.orderings();
                term.aggregates.push((*test, if negated { orderings.complement() } else { orderings }));
            }
        }
        term.settle(schema)
    }

    /// The conjunction of both, if it can be true.
    pub(super) fn join(&self, other: &Self, schema: &Schema) -> Option<Self> {
        let mut joined = self.clone();
        for (attribute, ranges) in &other.within {
            joined.narrow(*attribute, ranges);
        }
        joined.masks.extend(&other.masks);
        for (test, orderings) in &other.aggregates {
            match joined.aggregates.iter_mut().find(|(own, _)| own == test) {
                Some((_, own)) => *own = own.intersection(*orderings),
                None => joined.aggregates.push((*test, *orderings)),
            }
        }
        joined.settle(schema)
    }

    /// Restricts an attribute to these ranges, too.
    fn narrow(&mut self, attribute: AttributeId, ranges: &Ranges) {
        match self.within.binary_search_by_key(&attribute, |(attribute, _)| *attribute) {
            Ok(index) => self.within[index].1 = self.within[index].1.intersection(ranges),
            Err(index) => self.within.insert(index, (attribute, ranges.clone())),
        }
    }

    /// Brings it into its normal form, unless it contradicts itself.
    fn settle(mut self, schema: &Schema) -> Option<Self> {
        if !self.masks.is_empty() {
            self.settle_masks(schema)?;
        }
        self.within.retain(|(attribute, ranges)| !ranges.is_full(schema.attribute(*attribute).highest_key()));
        self.aggregates.retain(|(_, orderings)| *orderings != Orderings::ANY);
        self.aggregates.sort_by_key(|(test, _)| (test.attribute, test.aggregate));
        let possible = self.within.iter().all(|(_, ranges)| !ranges.is_empty())
            && self.aggregates.iter().all(|(_, orderings)| *orderings != Orderings::NONE);
        possible.then_some(self)
    }

    fn settle_masks(&mut self, schema: &Schema) -> Option<()> {
        let mut todo = std::mem::take(&mut self.masks);
        todo.sort_unstable();
        let mut attributes: Vec<_> = todo.iter().map(|test| test.attribute).collect();
        attributes.dedup();
        for attribute in attributes {
            let highest = schema.attribute(attribute).highest_key();
            let own = todo.iter().filter(|test| test.attribute == attribute).copied();
            let NormalMasks { positive, negative, ranges } = NormalMasks::new(own, highest)?;
            for ranges in &ranges {
                self.narrow(attribute, ranges);
            }
            let tests: Vec<_> = positive.into_iter().chain(negative).collect();
            let index = self.within.binary_search_by_key(&attribute, |(attribute, _)| *attribute);
            let Some((_, ranges)) = index.ok().and_then(|index| self.within.get_mut(index)) else {
                self.masks.extend(tests);
                continue;
            };
            let possible = |(low, high): &(u128, u128)| match positive {
                Some(test) => next_with(*low, test.mask, test.value, highest).is_some_and(|next| next <= *high),
                None => true,
            };
            // So few values can be tested now, one by one.
            if ranges.count() <= FEW {
                let hold = |key: &u128| tests.iter().all(|test| test.holds(*key));
                let keys = ranges.iter().flat_map(|(low, high)| low..=high);
                *ranges = Ranges::new(keys.filter(hold).map(|key| (key, key)));
            } else {
                *ranges = Ranges::new(ranges.iter().filter(possible));
                self.masks.extend(tests);
            }
        }
        self.masks.sort_unstable();
        Some(())
    }

    /// Whether every record of this term also matches the other, as far as their predicates show.
    pub(super) fn implies(&self, other: &Self) -> bool {
        let within = other
            .within
            .iter()
            .all(|(attribute, ranges)| self.ranges(*attribute).is_some_and(|own| own.is_subset(ranges)));
        within
            && other.masks.iter().all(|test| self.masks.iter().any(|own| own.implies(test)))
            && other.aggregates.iter().all(|(test, orderings)| {
                let own = self.aggregates.iter().find(|(own, _)| own == test);
                own.is_some_and(|(_, own)| own.union(*orderings) == *orderings)
            })
    }

    /// The union of both, if they differ only in the ranges of one attribute.
    pub(super) fn merge(&self, other: &Self, schema: &Schema) -> Option<Self> {
        if self.within.len() != other.within.len() || self.masks != other.masks || self.aggregates != other.aggregates {
            return None;
        }
        let pairs = || self.within.iter().zip(&other.within);
        if pairs().any(|((own, _), (others, _))| own != others) {
            return None;
        }
        let mut different = pairs().enumerate().filter(|(_, (own, others))| own.1 != others.1).map(|(index, _)| index);
        let (index, None) = (different.next()?, different.next()) else { return None };
        let mut merged = self.clone();
        merged.within[index].1 = self.within[index].1.union(&other.within[index].1);
        merged.settle(schema)
    }

    /// A measure of the work to compare it.
    pub(super) fn weight(&self) -> usize {
        self.masks.len() + self.aggregates.len() + self.within.iter().map(|(_, ranges)| 1 + ranges.len()).sum::<usize>()
    }

    /// The same as an expression.
    pub(super) fn expr(&self, schema: &Schema) -> Expr {
        Expr::all(self.predicates().map(|predicate| match predicate {
            Predicate::Within(attribute, ranges) => {
                let highest = schema.attribute(attribute).highest_key();
                let compare = |relation, key| Expr::Test(Test::Compare { attribute, relation, key });
                match *ranges.as_slice() {
                    [(low, high)] if low == high => compare(Relation::Equal, low),
                    [(0, high)] => compare(Relation::AtMost, high),
                    [(low, high)] if high == highest => compare(Relation::AtLeast, low),
                    [(0, before), (behind, high)] if high == highest && behind - before == 2 => {
                        compare(Relation::NotEqual, before + 1)
                    }
                    _ => Expr::Test(Test::Within { attribute, ranges: ranges.clone() }),
                }
            }
            Predicate::Mask(MaskTest { attribute, equal, mask, value }) => {
                Expr::Test(Test::Mask { attribute, mask, value, equal })
            }
            Predicate::Aggregate(test, orderings) => {
                let relation = Relation::ALL.into_iter().find(|relation| relation.orderings() == orderings);
                relation.map_or(Expr::Constant(true), |relation| Expr::Test(Test::Aggregate(test, relation)))
            }
        }))
    }
}

impl MaskTest {
    /// Whether a key passes.
    #[inline]
    pub fn holds(&self, key: u128) -> bool {
        (key & self.mask == self.value) == self.equal
    }

    fn implies(&self, other: &Self) -> bool {
        let wider = self.equal && other.equal && self.attribute == other.attribute;
        self == other || (wider && other.mask & !self.mask == 0 && self.value & other.mask == other.value)
    }
}

/// The masks of one attribute, in their normal form.
struct NormalMasks {
    /// The bits that must be equal, if they are not a prefix.
    positive: Option<MaskTest>,
    negative: Vec<MaskTest>,
    /// Masks that are prefixes, as ranges.
    ranges: Vec<Ranges>,
}

impl NormalMasks {
    /// Joins masks of one attribute, unless they contradict each other.
    fn new(tests: impl Iterator<Item = MaskTest>, highest: u128) -> Option<Self> {
        let mut attribute = None;
        let (mut mask, mut value) = (0, 0);
        let mut negative: Vec<MaskTest> = Vec::new();
        for test in tests {
            attribute = Some(test.attribute);
            let test = MaskTest { mask: test.mask & highest, ..test };
            if !test.equal {
                negative.push(test);
                continue;
            }
            // Bits outside the mask cannot be one, and no bit can be both one and zero.
            if test.value & !test.mask != 0 || (test.value ^ value) & test.mask & mask != 0 {
                return None;
            }
            (mask, value) = (mask | test.mask, value | test.value);
        }
        // The part of a negation that the positive mask does not decide; a single bit becomes part of the positive mask.
        loop {
            let before = mask;
            let mut left = Vec::with_capacity(negative.len());
            for test in std::mem::take(&mut negative) {
                if test.value & !test.mask != 0 || (test.value ^ value) & test.mask & mask != 0 {
                    continue;
                }
                let rest = test.mask & !mask;
                match rest.count_ones() {
                    0 => return None,
                    1 => (mask, value) = (mask | rest, value | (!test.value & rest)),
                    _ => left.push(MaskTest { mask: rest, value: test.value & rest, ..test }),
                }
            }
            negative = left;
            if mask == before {
                break;
            }
        }
        negative.sort_unstable();
        negative.dedup();
        let mut ranges = Vec::new();
        negative.retain(|test| match prefix(test.mask, test.value, highest) {
            Some(range) => {
                ranges.push(range.complement(highest));
                false
            }
            None => true,
        });
        let positive =
            attribute.filter(|_| mask != 0).map(|attribute| MaskTest { attribute, equal: true, mask, value });
        let positive = positive.filter(|test| match prefix(test.mask, test.value, highest) {
            Some(range) => {
                ranges.push(range);
                false
            }
            None => true,
        });
        Some(Self { positive, negative, ranges })
    }
}

/// The keys with this mask and value as a range, if the mask is the highest bits.
fn prefix(mask: u128, value: u128, highest: u128) -> Option<Ranges> {
    let rest = !mask & highest;
    (rest & rest.wrapping_add(1) == 0).then(|| Ranges::new([(value, value | rest)]))
}

/// The first key from `low` on that has `value` under `mask`.
fn next_with(low: u128, mask: u128, value: u128, highest: u128) -> Option<u128> {
    let same = (low & !mask) | value;
    if same == low {
        return Some(low);
    }
    // The highest bit that must change; all bits above it can stay.
    let bit = 127 - (same ^ low).leading_zeros();
    if same > low {
        return Some((same & !low_bits(bit)) | (value & low_bits(bit)));
    }
    // A free bit above must become one, as low as possible.
    let zeros = !mask & highest & !low & !low_bits(bit + 1);
    (zeros != 0).then(|| {
        let up = zeros.trailing_zeros();
        (same & !low_bits(up + 1)) | 1 << up | (value & low_bits(up))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schema() -> Schema {
        let attribute = |name| format!("[[attribute]]\nname = \"{name}\"\nkind = \"u4\"\n");
        let text = format!("name = \"two\"\n{}{}", attribute("a"), attribute("b"));
        Schema::parse("two.toml", &text).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A term about two attributes of four bits, perhaps with an aggregate.
    fn term() -> impl Strategy<Value = Option<Term>> {
        let within = prop::collection::vec((0..2u16, 0..16u128, 0..16u128), 0..3);
        let masks = prop::collection::vec((0..2u16, any::<bool>(), 0..16u128, 0..16u128), 0..3);
        let aggregate = prop::option::of(prop::sample::select(Relation::ALL.to_vec()));
        (within, masks, aggregate).prop_map(|(within, masks, aggregate)| {
            let within = within.into_iter().map(|(attribute, low, high)| Test::Within {
                attribute: AttributeId(attribute),
                ranges: Ranges::new([(low.min(high), low.max(high))]),
            });
            let masks = masks.into_iter().map(|(attribute, equal, mask, value)| Test::Mask {
                attribute: AttributeId(attribute),
                mask,
                value: value & mask,
                equal,
            });
            let aggregate = aggregate.map(|relation| {
                let (attribute, aggregate) = (AttributeId(0), AggregateId(0));
                Test::Aggregate(AggregateTest { attribute, aggregate, offset: Number::Signed(0) }, relation)
            });
            let schema = schema();
            within
                .chain(masks)
                .chain(aggregate)
                .try_fold(Term::default(), |term, test| term.join(&Term::from_test(&test, false, &schema)?, &schema))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

        #[test]
        fn terms_are_sets(a in term(), b in term(), aggregate in 0..16u128) {
            let (schema, aggregates) = (schema(), [Number::Unsigned(aggregate)]);
            let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
            let (join, merge) = (a.join(&b, &schema), a.merge(&b, &schema));
            for record in 0..=255u8 {
                let holds = |term: &Term| term.expr(&schema).holds(&schema, &[record], &aggregates.as_slice());
                let (in_a, in_b) = (holds(&a), holds(&b));
                prop_assert_eq!(join.as_ref().is_some_and(holds), in_a && in_b, "{}", record);
                if let Some(merged) = &merge {
                    prop_assert_eq!(holds(merged), in_a || in_b, "{}", record);
                }
                if a.implies(&b) {
                    prop_assert!(in_b || !in_a, "{}", record);
                }
            }
            prop_assert!(a.implies(&a) && a.implies(&Term::default()));
        }

        #[test]
        fn the_next_key_with_a_mask_is_found(low in 0..256u128, mask in 0..256u128, value in any::<u8>()) {
            let value = u128::from(value) & mask;
            let slow = (low..256).find(|key| key & mask == value);
            prop_assert_eq!(next_with(low, mask, value, 255), slow);
        }

        #[test]
        fn masks_mean_the_same_when_they_are_settled(
            tests in prop::collection::vec((any::<bool>(), any::<u8>(), any::<u8>(), any::<bool>()), 0..5),
        ) {
            let attribute = AttributeId(0);
            let tests: Vec<_> = tests.into_iter().map(|(equal, mask, value, within)| {
                let (mask, value) = (u128::from(mask), u128::from(value));
                MaskTest { attribute, equal, mask, value: if within { value & mask } else { value } }
            }).collect();
            let settled = NormalMasks::new(tests.iter().copied(), 255);
            for key in 0..256u128 {
                let holds = tests.iter().all(|test| test.holds(key));
                let settled = settled.as_ref().is_some_and(|settled| {
                    settled.positive.iter().chain(&settled.negative).all(|test| test.holds(key))
                        && settled.ranges.iter().all(|ranges| ranges.contains(key))
                });
                prop_assert_eq!(holds, settled, "{}", key);
            }
        }
    }
}
