//! Chooses the cheapest way to the records.

use super::{Query, Selection};
use crate::derive::{BLOCK, Bits, CHUNK, FilterState, IndexState, Reading, Scan, Sorted, WORDS, count, ones};
use crate::expr::{Dnf, Predicate, Ranges, Term};
use crate::schema::{AttributeId, Reader, Schema};
use crate::store::View;
use std::sync::Arc;

/// The most places of a block that are examined one by one; if an index leaves more, the block is scanned.
const MANY: usize = BLOCK as usize / 4;
/// How many records ahead of the current one are prefetched.
const FETCHED: usize = 16;
/// An index is used besides the best one if it leaves at most this many times as many places: examining a record
/// costs about that much more.
const MORE: usize = 16;

/// How to find the records.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub reading: &'a Reading,
    pub schema: &'a Schema,
    pub way: AccessPath<'a>,
    /// Further conditions on records that were found.
    pub then: Vec<(Scan, &'a Dnf)>,
    pub time: Option<Time>,
}

#[derive(Debug)]
pub(super) enum AccessPath<'a> {
    All,
    /// The known matches of a filter.
    Filter(Arc<FilterState>),
    /// Blocks through their indexes; blocks without indexes, or of which indexes leave many records, by examining records.
    Indexes {
        terms: Vec<ByIndex<'a>>,
        scan: Scan,
    },
    Scan(Scan),
}

/// A term, and the indexes that apply to it.
#[derive(Debug)]
pub(super) struct ByIndex<'a> {
    pub term: &'a Term,
    pub indexes: Vec<(Arc<IndexState>, &'a Ranges)>,
}

/// A range of time.
#[derive(Debug)]
pub(super) struct Time {
    pub attribute: AttributeId,
    pub reader: Reader,
    pub from: u64,
    /// The last time in the range: an exclusive end could not include the largest time.
    pub last: u64,
}

impl<'a> Plan<'a> {
    pub fn new(query: &Query<'a>) -> Self {
        let Query { reading, schema, what, then, from, to } = query;
        let (reading, schema) = (*reading, *schema);
        let (from, last) = match *to {
            u64::MAX => (*from, u64::MAX),
            // There is no time before the first.
            0 => (1, 0),
            to => (*from, to - 1),
        };
        let time = schema.time().filter(|_| from > 0 || last < u64::MAX);
        let time = time.map(|attribute| Time { attribute, reader: schema.reader(attribute), from, last });
        let way = match what {
            Selection::All => AccessPath::All,
            Selection::Filter(state) => AccessPath::Filter(Arc::clone(state)),
            Selection::Expression(dnf) => AccessPath::to(dnf, schema, reading),
        };
        let then = then.iter().map(|dnf| (Scan::new(dnf, schema), *dnf)).collect();
        Self { reading, schema, way, then, time }
    }

    /// The matching records of a chunk.
    pub fn chunk(&self, chunk: u64, block: &mut Option<Block>) -> Bits {
        let view = self.reading.view();
        let start = chunk * CHUNK;
        let end = (start + CHUNK).min(view.tail());
        let inside = match &self.time {
            Some(time) => match time.of_chunk(chunk, self.reading) {
                Inside::None => return [0; WORDS],
                Inside::All => None,
                Inside::Some => Some(time),
            },
            None => None,
        };
        let mut bits = match &self.way {
            AccessPath::All => first((end - start) as usize),
            AccessPath::Filter(state) => state.bits(chunk, self.reading),
            AccessPath::Scan(scan) => scan.bits(view.chunk(chunk), view.size()),
            AccessPath::Indexes { terms, scan } => match self.block(start / BLOCK, terms, block) {
                Some(found) => {
                    let at = (start % BLOCK) as usize / 64;
                    let mut bits = [0; WORDS];
                    bits.copy_from_slice(&found[at..at + WORDS]);
                    bits
                }
                None => scan.bits(view.chunk(chunk), view.size()),
            },
        };
        if count(&bits) > 0 && (!self.then.is_empty() || inside.is_some()) {
            let rows = view.chunk(chunk);
            for (scan, _) in &self.then {
                bits.iter_mut().zip(scan.bits(rows, view.size())).for_each(|(bits, then)| *bits &= then);
            }
            if let Some(time) = inside {
                let all = bits;
                for place in ones(&all) {
                    let at = time.reader.key(&rows[place * view.size()..]) as u64;
                    if at < time.from || at > time.last {
                        bits[place / 64] &= !(1 << (place % 64));
                    }
                }
            }
        }
        bits
    }

    /// The chunks that may have records in the range of time, with the number of their records.
    pub fn examined(&self) -> impl Iterator<Item = (u64, u64)> {
        let view = self.reading.view();
        let is_outside = |time: &Time, chunk| matches!(time.of_chunk(chunk, self.reading), Inside::None);
        (view.first() / CHUNK..view.tail().div_ceil(CHUNK))
            .filter(move |chunk| !self.time.as_ref().is_some_and(|time| is_outside(time, *chunk)))
            .map(move |chunk| (chunk, ((chunk + 1) * CHUNK).min(view.tail()) - (chunk * CHUNK).max(view.first())))
    }

    /// The matching records of a block through indexes; `None` if it must be scanned.
    fn block<'b>(&self, number: u64, terms: &[ByIndex<'a>], block: &'b mut Option<Block>) -> Option<&'b [u64]> {
        if block.as_ref().is_none_or(|known| known.number != number) {
            let view = self.reading.view();
            let mut known = block.take().unwrap_or_default();
            known.number = number;
            known.indexed = (number + 1) * BLOCK <= view.tail() && {
                known.found.fill(0);
                known.left = MANY;
                terms.iter().all(|term| term.find(number as usize, view, self.schema, &mut known).is_some())
            };
            *block = Some(known);
        }
        block.as_ref().filter(|known| known.indexed).map(|known| &*known.found)
    }
}

/// What was found in a block.
#[derive(Debug)]
pub(super) struct Block {
    number: u64,
    indexed: bool,
    found: Box<[u64]>,
    /// Places that may still be examined, for all terms.
    left: usize,
    /// The matches of one term, and of one index.
    term: Box<[u64]>,
    index: Box<[u64]>,
}

impl Default for Block {
    fn default() -> Self {
        let bits = || vec![0; BLOCK as usize / 64].into_boxed_slice();
        Self { number: u64::MAX, indexed: false, left: 0, found: bits(), term: bits(), index: bits() }
    }
}

impl<'a> AccessPath<'a> {
    fn to(dnf: &'a Dnf, schema: &'a Schema, reading: &Reading) -> Self {
        if dnf.is_true() {
            return Self::All;
        }
        if let Some(state) = reading.stages.filters.iter().find(|state| state.dnf == *dnf) {
            return Self::Filter(Arc::clone(state));
        }
        let scan = Scan::new(dnf, schema);
        let by_index = |term: &'a Term| {
            let askable = reading.stages.indexes.iter();
            let indexes: Vec<_> =
                askable.filter_map(|index| Some((Arc::clone(index), term.ranges(index.attribute)?))).collect();
            (!indexes.is_empty()).then_some(ByIndex { term, indexes })
        };
        match dnf.terms().iter().map(by_index).collect::<Option<Vec<_>>>() {
            Some(terms) if !terms.is_empty() => Self::Indexes { terms, scan },
            _ => Self::Scan(scan),
        }
    }
}

impl ByIndex<'_> {
    /// Adds the matching records of a whole block; `None` if an index is not built yet, or leaves many.
    fn find(&self, number: usize, view: View<'_>, schema: &Schema, block: &mut Block) -> Option<()> {
        let (size, rows) = (view.size(), view.rows(number as u64 * BLOCK..(number as u64 + 1) * BLOCK));
        let about = |sorted: &Sorted, ranges: &Ranges| ranges.iter().map(|range| sorted.about(range)).sum::<usize>();
        let mut usable = Vec::with_capacity(self.indexes.len());
        for (index, ranges) in &self.indexes {
            let sorted = index.blocks.look(number, Arc::clone)?;
            usable.push((about(&sorted, ranges), index.attribute, sorted, *ranges));
        }
        usable.sort_by_key(|(about, ..)| *about);
        let best = usable.first()?.0;
        block.left = block.left.checked_sub(best)?;
        usable.retain(|(about, ..)| *about <= best.saturating_mul(MORE).max(MORE));
        let decided = |predicate: &Predicate<'_>| match predicate {
            Predicate::Within(attribute, _) => usable.iter().any(|(_, other, ..)| other == attribute),
            _ => false,
        };
        let rest: Vec<_> = self.term.predicates().filter(|predicate| !decided(predicate)).collect();
        let Block { term, index, found, .. } = block;
        for (order, (_, attribute, sorted, ranges)) in usable.iter().enumerate() {
            let reader = schema.reader(*attribute);
            let key = |place: u16| reader.key(&rows[usize::from(place) * size..]);
            let into = if order == 0 { &mut *term } else { &mut *index };
            into.fill(0);
            for range in ranges.iter() {
                for place in sorted.within(range, key) {
                    into[usize::from(*place) / 64] |= 1 << (place % 64);
                }
            }
            if order > 0 {
                term.iter_mut().zip(&**index).for_each(|(term, index)| *term &= index);
            }
        }
        if rest.is_empty() {
            found.iter_mut().zip(&**term).for_each(|(found, term)| *found |= term);
            return Some(());
        }
        let first = number as u64 * BLOCK;
        let mut ahead = ones(term);
        ahead.by_ref().take(FETCHED).for_each(|place| view.prefetch(first + place as u64));
        for place in ones(term) {
            if let Some(place) = ahead.next() {
                view.prefetch(first + place as u64);
            }
            let record = &rows[place * size..(place + 1) * size];
            let holds = rest.iter().all(|predicate| match predicate {
                Predicate::Within(id, ranges) => ranges.contains(schema.key(*id, record)),
                Predicate::Mask(test) => test.holds(schema.key(test.attribute, record)),
                // Queries have no aggregates.
                Predicate::Aggregate(..) => false,
            });
            found[place / 64] |= u64::from(holds) << (place % 64);
        }
        Some(())
    }
}

/// How much of a chunk is in a range of time.
enum Inside {
    None,
    Some,
    All,
}

impl Time {
    fn of_chunk(&self, chunk: u64, reading: &Reading) -> Inside {
        let (first, last) = reading.times(chunk, self.reader);
        if last < self.from || first > self.last {
            Inside::None
        } else if first >= self.from && last <= self.last {
            Inside::All
        } else {
            Inside::Some
        }
    }
}

/// The bits of the first `places` records of a chunk.
fn first(places: usize) -> Bits {
    let mut bits = [u64::MAX; WORDS];
    crate::derive::clear_from(&mut bits, places);
    bits
}
