//! Many filters at once: a few loads for each record, however many filters there are.
//!
//! The terms of all filters are bits of a word. Each attribute that a term tests has a table from keys to
//! the terms that the key satisfies; a record's terms are the AND of its attributes' table entries. A transposition turns the words of
//! sixty-four records into the words of sixty-four terms, and a filter's word is the OR of its terms' words.

mod table;
mod transpose;

use super::CHUNK;
use super::matches::{Bits, WORDS};
use crate::expr::{Dnf, MaskTest, Predicate, Ranges};
use crate::schema::{AttributeId, Reader, Schema};
use std::ops::Range;
use table::Table;
use transpose::{transpose, transpose_word};

/// Terms of a group.
const TERMS: usize = 64;

/// Filters whose terms fill a word.
#[derive(Debug)]
pub(crate) struct Group {
    /// The number of each filter, and its terms.
    filters: Vec<(usize, Range<usize>)>,
    steps: Vec<Step>,
    size: usize,
}

/// The step for one attribute, for all records' words.
#[derive(Debug)]
struct Step {
    reader: Reader,
    wide: bool,
    table: Table,
    masks: Vec<(MaskTest, u64)>,
}

/// Buffers for the evaluation; one for each thread, because they are large.
#[derive(Debug)]
pub(crate) struct Scratch {
    keys: Vec<u64>,
    words: Vec<u64>,
    terms: Vec<Bits>,
}

impl Default for Scratch {
    fn default() -> Self {
        let chunk = CHUNK as usize;
        Self { keys: vec![0; chunk], words: vec![0; chunk], terms: vec![[0; WORDS]; TERMS] }
    }
}

impl Group {
    /// Puts numbered filters in groups. Returns the numbers of those that fit in none, because they have too many
    /// terms or depend on aggregates.
    pub fn all<'a>(filters: impl IntoIterator<Item = (usize, &'a Dnf)>, schema: &Schema) -> (Vec<Self>, Vec<usize>) {
        let (mut groups, mut left) = (Vec::new(), Vec::new());
        let mut open: Vec<(usize, &Dnf)> = Vec::new();
        let mut terms = 0;
        for (name, dnf) in filters {
            let count = dnf.terms().len();
            if count > TERMS || !dnf.aggregates().is_empty() {
                left.push(name);
                continue;
            }
            if terms + count > TERMS {
                groups.push(Self::new(&std::mem::take(&mut open), schema));
                terms = 0;
            }
            open.push((name, dnf));
            terms += count;
        }
        if !open.is_empty() {
            groups.push(Self::new(&open, schema));
        }
        (groups, left)
    }

    fn new(filters: &[(usize, &Dnf)], schema: &Schema) -> Self {
        let mut named = Vec::with_capacity(filters.len());
        let mut terms = Vec::new();
        for (name, dnf) in filters {
            let start = terms.len();
            terms.extend(dnf.terms());
            named.push((*name, start..terms.len()));
        }
        let mut attributes: Vec<AttributeId> =
            terms.iter().flat_map(|term| term.predicates().map(|predicate| predicate.attribute())).collect();
        attributes.sort_unstable();
        attributes.dedup();
        let steps = attributes.into_iter().map(|id| {
            let attribute = schema.attribute(id);
            let mut ranges: Vec<Option<&Ranges>> = Vec::with_capacity(terms.len());
            let mut masks = Vec::new();
            for (bit, term) in terms.iter().enumerate() {
                ranges.push(term.ranges(id));
                for predicate in term.on(id) {
                    if let Predicate::Mask(test) = predicate {
                        masks.push((test, 1 << bit));
                    }
                }
            }
            let table = Table::new(&ranges, attribute.place.bits);
            Step { reader: schema.reader(id), wide: attribute.place.bits > 64, table, masks }
        });
        Self { filters: named, steps: steps.collect(), size: schema.record_size() }
    }

    /// Passes to `emit` the matches of each filter among at most a chunk of records. Bits behind the last
    /// record are zero.
    pub fn evaluate(&self, rows: &[u8], scratch: &mut Scratch, mut emit: impl FnMut(usize, &Bits)) {
        let count = self.fill(rows, scratch);
        transpose(&scratch.words[..count], self.used(), &mut scratch.terms);
        for (name, terms) in &self.filters {
            match &scratch.terms[terms.clone()] {
                [] => emit(*name, &[0; WORDS]),
                [one] => emit(*name, one),
                [first, others @ ..] => {
                    let mut any = *first;
                    for other in others {
                        any.iter_mut().zip(other).for_each(|(any, other)| *any |= other);
                    }
                    emit(*name, &any);
                }
            }
        }
    }

    /// The same for at most 64 records, as a word for each filter. It touches little memory.
    pub fn evaluate_word(&self, rows: &[u8], scratch: &mut Scratch, mut emit: impl FnMut(usize, u64)) {
        let count = self.fill(rows, scratch);
        let matched = transpose_word(&scratch.words[..count], self.used());
        for (name, terms) in &self.filters {
            emit(*name, matched[terms.clone()].iter().fold(0, |any, term| any | term));
        }
    }

    /// Works out the terms of each record, and returns the number of records.
    fn fill(&self, rows: &[u8], scratch: &mut Scratch) -> usize {
        let count = rows.len() / self.size;
        let (words, keys) = (&mut scratch.words[..count], &mut scratch.keys[..count]);
        words.fill(u64::MAX);
        for step in &self.steps {
            step.apply(rows, self.size, keys, words);
        }
        count
    }

    /// The number of its terms.
    fn used(&self) -> usize {
        self.filters.last().map_or(0, |(_, terms)| terms.end)
    }
}

impl Step {
    fn apply(&self, rows: &[u8], size: usize, keys: &mut [u64], words: &mut [u64]) {
        if self.wide {
            for (word, record) in words.iter_mut().zip(rows.chunks_exact(size)) {
                let key = self.reader.key(record);
                *word &= self.table.find_wide(key) & self.masked(key);
            }
            return;
        }
        self.reader.fill(rows, size, keys);
        self.table.apply(keys, words);
        for (test, bit) in &self.masks {
            let (mask, value) = (test.mask as u64, test.value as u64);
            for (word, key) in words.iter_mut().zip(&*keys) {
                let holds = (key & mask == value) == test.equal;
                *word &= !bit | u64::from(holds).wrapping_neg();
            }
        }
    }

    /// The terms that masks do not exclude.
    fn masked(&self, key: u128) -> u64 {
        self.masks.iter().fold(u64::MAX, |word, (test, bit)| if test.holds(key) { word } else { word & !bit })
    }
}
