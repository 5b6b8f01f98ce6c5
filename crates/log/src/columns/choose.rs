//! Selects the records of a batch that match an expression.

use super::{KeyBatch, Keys, Selected};
use crate::expr::{Dnf, Rule};
use crate::schema::{AttributeId, Schema};
use std::sync::Arc;

/// Decides which records of a batch match: an expression, and an interval of time.
///
/// ```
/// use queuescope_log::{BatchFilter, KeyGather, Schema, Scope, departure};
/// use queuescope_wire::{Departure, FlowKey, Nanos};
///
/// let scope = Scope::new(Schema::departure());
/// let late = scope.parse("delay >= 1ms")?.dnf(&scope)?;
/// let mut filter = BatchFilter::new(&late, 0..u64::MAX, Schema::departure());
/// let mut gather = KeyGather::new(Schema::departure(), &late.attributes());
/// let mut record = [0; departure::SIZE];
/// for dequeued in [Nanos(999_999), Nanos(1_000_000)] {
///     departure::fill(&mut record, &Departure { dequeued, ..Departure::default() }, &FlowKey::default());
///     gather.push(&record);
/// }
/// assert_eq!(filter.select(&gather.take()).len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BatchFilter {
    terms: Vec<Vec<Check>>,
    /// For each record whether it matches any term, and whether it matches the current one.
    any: Vec<u8>,
    term: Vec<u8>,
    places: Vec<u32>,
}

/// A condition on an attribute.
#[derive(Debug)]
struct Check {
    attribute: AttributeId,
    rule: Rule,
    /// The keys of the last dictionary, and whether each passes.
    known: Option<(Arc<[u128]>, Vec<u8>)>,
}

impl BatchFilter {
    /// A filter for records that match `dnf` and whose time, if they have one, is in `times`, in nanoseconds since the records' epoch; an end
    /// of `u64::MAX` means no end.
    ///
    /// # Panics
    /// Panics if the expression names an aggregate.
    pub fn new(dnf: &Dnf, times: std::ops::Range<u64>, schema: &Schema) -> Self {
        assert!(dnf.aggregates().is_empty(), "an expression with aggregates depends on the records before");
        let has_end = times.end < u64::MAX;
        let last = if has_end { times.end.saturating_sub(1) } else { u64::MAX };
        let within = (times.start > 0 || has_end).then(|| {
            // No record is before an end of zero.
            let none = times.end == 0 || times.start > last;
            if none { Rule::Spans(Box::new([])) } else { Rule::Span(times.start.into(), (last - times.start).into()) }
        });
        let within = schema.time().zip(within);
        let terms = dnf.terms().iter().map(|term| {
            let checks = term.predicates().map(|predicate| {
                let (attribute, rule) = (predicate.attribute(), Rule::new(predicate, schema));
                Check { attribute, rule, known: None }
            });
            let time = within.clone().map(|(attribute, rule)| Check { attribute, rule, known: None });
            time.into_iter().chain(checks).collect()
        });
        Self { terms: terms.collect(), any: Vec::new(), term: Vec::new(), places: Vec::new() }
    }

    /// The records of a batch that match. The batch has the attributes of the expression and, if times are limited, that of time.
    pub fn select(&mut self, batch: &KeyBatch) -> Selected<'_> {
        let Self { terms, any, term, places } = self;
        if terms.iter().any(Vec::is_empty) {
            return Selected::All(batch.rows());
        }
        any.clear();
        any.resize(batch.rows(), 0);
        for checks in terms {
            term.clear();
            term.resize(batch.rows(), 1);
            for check in checks {
                check.narrow(batch.keys(check.attribute), term);
            }
            any.iter_mut().zip(&*term).for_each(|(any, term)| *any |= term);
        }
        places.clear();
        places.resize(batch.rows(), 0);
        let mut count = 0;
        for (place, passes) in (0..).zip(&*any) {
            // Without a branch: a mispredicted one costs more than a write.
            places[count] = place;
            count += usize::from(*passes);
        }
        Selected::Some(&places[..count])
    }
}

impl Check {
    /// Clears the marks of records that do not pass.
    fn narrow(&mut self, keys: &Keys, marks: &mut [u8]) {
        match keys {
            Keys::Narrow(keys) => self.rule.narrow(keys, marks),
            Keys::Wide(keys) => {
                marks.iter_mut().zip(keys).for_each(|(mark, key)| *mark &= u8::from(self.rule.holds(*key)));
            }
            Keys::Coded { codes, keys } => {
                let known = match &mut self.known {
                    Some((of, passes)) if Arc::ptr_eq(of, keys) => passes,
                    known => {
                        let passes = keys.iter().map(|key| u8::from(self.rule.holds(*key))).collect();
                        &mut known.insert((Arc::clone(keys), passes)).1
                    }
                };
                marks.iter_mut().zip(codes).for_each(|(mark, code)| *mark &= known[*code as usize]);
            }
        }
    }
}

impl Rule {
    /// As [`Check::narrow`], for keys of at most 64 bits, with a loop for each rule.
    fn narrow(&self, keys: &[u64], marks: &mut [u8]) {
        let both = marks.iter_mut().zip(keys);
        match self {
            Self::Span(low, size) => {
                let (low, size) = (*low as u64, *size as u64);
                both.for_each(|(mark, key)| *mark &= u8::from(key.wrapping_sub(low) <= size));
            }
            Self::Mask { mask, value, equal } => {
                let (bits, value) = (*mask as u64, *value as u64);
                both.for_each(|(mark, key)| *mark &= u8::from((key & bits == value) == *equal));
            }
            Self::Spans(_) => both.for_each(|(mark, key)| *mark &= u8::from(self.holds(u128::from(*key)))),
            Self::Aggregate { .. } => unreachable!("`new` refuses aggregates"),
        }
    }
}
