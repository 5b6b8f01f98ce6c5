//! Evaluates a normal form on records, with a layout made for speed.

use super::{AggregateId, Aggregates, Dnf, Number, Orderings, Predicate, Term};
use crate::{Kind, Reader, Schema};
use std::ops::Range;

/// Decides which records match.
///
/// ```
/// use queuescope_log::{Filter, NoAggregates, Schema, Scope, departure};
/// use queuescope_wire::{Departure, FlowKey, Nanos};
///
/// let scope = Scope::new(Schema::departure());
/// let filter = Filter::new(&scope.parse("delay >= 1ms")?.dnf(&scope)?, Schema::departure());
/// let mut record = [0; departure::SIZE];
/// for (dequeued, late) in [(Nanos(999_999), false), (Nanos(1_000_000), true)] {
///     departure::fill(&mut record, &Departure { dequeued, ..Departure::default() }, &FlowKey::default());
///     assert_eq!(filter.matches(&record, &NoAggregates), late);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// The checks of each term.
    terms: Vec<Range<usize>>,
    checks: Vec<Check>,
}

/// A predicate, and the reader of its attribute.
#[derive(Debug, Clone, PartialEq)]
struct Check {
    reader: Reader,
    rule: Rule,
}

/// A condition on a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rule {
    /// From the first key on, this many further ones.
    Span(u128, u128),
    /// In any of these ranges.
    Spans(Box<[(u128, u128)]>),
    /// The bits under the mask are equal to the value, or differ from it.
    Mask { mask: u128, value: u128, equal: bool },
    /// Compared with an aggregate.
    Aggregate { kind: Kind, bits: u32, aggregate: AggregateId, offset: Number, orderings: Orderings },
}

impl Filter {
    /// A filter for `dnf` on records of `schema`, to which its attributes must belong.
    pub fn new(dnf: &Dnf, schema: &Schema) -> Self {
        Self::of_terms(dnf.terms(), schema)
    }

    /// A filter for one term.
    pub(crate) fn of_term(term: &Term, schema: &Schema) -> Self {
        Self::of_terms(std::slice::from_ref(term), schema)
    }

    fn of_terms(terms: &[Term], schema: &Schema) -> Self {
        let mut filter = Self { terms: Vec::with_capacity(terms.len()), checks: Vec::new() };
        for term in terms {
            let start = filter.checks.len();
            // Ranges come first and aggregates last: those cost most.
            filter.checks.extend(term.predicates().map(|predicate| Check {
                reader: schema.reader(predicate.attribute()),
                rule: Rule::new(predicate, schema),
            }));
            filter.terms.push(start..filter.checks.len());
        }
        filter
    }

    /// Whether a record matches, with the values of aggregates at the record's place in the log. Bytes behind the
    /// record's end count as zero.
    #[inline]
    pub fn matches(&self, record: &[u8], aggregates: &impl Aggregates) -> bool {
        self.terms.iter().any(|term| self.checks[term.clone()].iter().all(|check| check.holds(record, aggregates)))
    }

    /// Whether it needs aggregates, and so has to see the records in the order of the log.
    pub fn has_aggregates(&self) -> bool {
        self.checks.iter().any(|check| matches!(check.rule, Rule::Aggregate { .. }))
    }
}

impl Check {
    #[inline]
    fn holds(&self, record: &[u8], aggregates: &impl Aggregates) -> bool {
        let key = self.reader.key(record);
        match &self.rule {
            Rule::Aggregate { kind, bits, aggregate, offset, orderings } => {
                let own = Number::from_key_bits(*kind, *bits, key);
                orderings.contains(own.compare(aggregates.value(*aggregate).plus(*offset)))
            }
            rule => rule.holds(key),
        }
    }
}

impl Rule {
    /// The rule of a predicate on an attribute of `schema`.
    pub(crate) fn new(predicate: Predicate<'_>, schema: &Schema) -> Self {
        match predicate {
            Predicate::Within(_, ranges) => match *ranges.as_slice() {
                [(low, high)] => Self::Span(low, high - low),
                ref several => Self::Spans(several.into()),
            },
            Predicate::Mask(test) => Self::Mask { mask: test.mask, value: test.value, equal: test.equal },
            Predicate::Aggregate(test, orderings) => {
                let attribute = schema.attribute(test.attribute);
                Self::Aggregate {
                    kind: attribute.kind,
                    bits: attribute.place.bits,
                    aggregate: test.aggregate,
                    offset: test.offset,
                    orderings,
                }
            }
        }
    }

    /// Whether a key passes. No key passes a comparison with an aggregate, which is unknown here.
    #[inline]
    pub(crate) fn holds(&self, key: u128) -> bool {
        match self {
            Self::Span(low, size) => key.wrapping_sub(*low) <= *size,
            Self::Spans(spans) => {
                let index = spans.partition_point(|(low, _)| *low <= key);
                index > 0 && key <= spans[index - 1].1
            }
            Self::Mask { mask, value, equal } => (key & mask == *value) == *equal,
            Self::Aggregate { .. } => false,
        }
    }
}
