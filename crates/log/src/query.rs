//! Which records are meant, found the cheapest way.

use crate::derive::{BLOCK, Bits, CHUNK, FilterState, Scan, Stages, WORDS, count, ones};
use crate::expr::{Dnf, Predicate};
use crate::schema::Schema;
use crate::store::View;

/// How records are found.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    view: View<'a>,
    way: Way<'a>,
}

#[derive(Debug)]
enum Way<'a> {
    /// What a filter matched already.
    Known(&'a FilterState),
    /// Blocks that are sorted through their indexes; others by scanning.
    Indexed {
        stages: &'a Stages,
        dnf: &'a Dnf,
        schema: &'a Schema,
        scan: Scan,
    },
    Scan(Scan),
}

impl<'a> Plan<'a> {
    /// The cheapest way to what an expression means.
    pub fn new(dnf: &'a Dnf, schema: &'a Schema, stages: &'a Stages, view: View<'a>) -> Self {
        if let Some((_, state)) = stages.filters.iter().find(|(_, state)| state.dnf == *dnf) {
            return Self { view, way: Way::Known(state) };
        }
        let scan = Scan::new(dnf, schema);
        let indexed =
            |term: &crate::expr::Term| stages.indexes.iter().any(|index| term.ranges(index.attribute).is_some());
        if !dnf.terms().is_empty() && dnf.terms().iter().all(indexed) {
            return Self { view, way: Way::Indexed { stages, dnf, schema, scan } };
        }
        Self { view, way: Way::Scan(scan) }
    }

    /// To what a filter matches.
    pub fn of_filter(state: &'a FilterState, view: View<'a>) -> Self {
        Self { view, way: Way::Known(state) }
    }

    /// Goes it.
    pub fn run(self) -> Matched<'a> {
        Matched { plan: self, chunk: 0, block: None }
    }
}

/// Records that are meant, chunk by chunk.
#[derive(Debug)]
pub struct Matched<'a> {
    plan: Plan<'a>,
    chunk: u64,
    /// The bits of the block that the chunk is in, if it was found by indexes.
    block: Option<(u64, Box<[u64]>)>,
}

impl<'a> Matched<'a> {
    /// The next chunk's: the position of its first record, and a bit for each record.
    fn next_chunk(&mut self) -> Option<(u64, Bits)> {
        let view = self.plan.view;
        let start = self.chunk * CHUNK;
        if start >= view.tail() {
            return None;
        }
        let end = (start + CHUNK).min(view.tail());
        let scan = |scan: &Scan| scan.bits(view.rows(start..end), view.size());
        let bits = match &self.plan.way {
            Way::Known(state) => state.bits(self.chunk, view),
            Way::Scan(other) => scan(other),
            Way::Indexed { stages, dnf, schema, scan: other } => {
                let block = start / BLOCK;
                if self.block.as_ref().is_none_or(|(known, _)| *known != block)
                    && let Some(bits) = block_bits(block, stages, dnf, schema, view)
                {
                    self.block = Some((block, bits));
                }
                match &self.block {
                    Some((known, bits)) if *known == block => {
                        let at = (start % BLOCK) as usize / 64;
                        let mut chunk = [0; WORDS];
                        chunk.copy_from_slice(&bits[at..at + WORDS]);
                        chunk
                    }
                    _ => scan(other),
                }
            }
        };
        self.chunk += 1;
        Some((start, bits))
    }

    /// How many records.
    pub fn count(mut self) -> u64 {
        let mut sum = 0;
        while let Some((_, bits)) = self.next_chunk() {
            sum += u64::from(count(&bits));
        }
        sum
    }

    /// Calls `with` for each record, with its position.
    pub fn for_each(mut self, mut with: impl FnMut(u64, &'a [u8])) {
        let view = self.plan.view;
        while let Some((start, bits)) = self.next_chunk() {
            for place in ones(&bits) {
                let position = start + place as u64;
                with(position, view.record(position));
            }
        }
    }
}

/// The records of a block, through its indexes; `None` if it is not whole, or not all are made.
fn block_bits(block: u64, stages: &Stages, dnf: &Dnf, schema: &Schema, view: View<'_>) -> Option<Box<[u64]>> {
    if (block + 1) * BLOCK > view.tail() {
        return None;
    }
    let rows = view.rows(block * BLOCK..(block + 1) * BLOCK);
    let size = view.size();
    let mut bits = vec![0u64; BLOCK as usize / 64].into_boxed_slice();
    for term in dnf.terms() {
        // Of the indexes that the term can ask, the one that leaves fewest.
        let mut best: Option<(usize, _, _, _)> = None;
        for index in &stages.indexes {
            let Some(ranges) = term.ranges(index.attribute) else { continue };
            let sorted = index.blocks.get(block as usize)?;
            let about: usize = ranges.iter().map(|range| sorted.about(range)).sum();
            if best.is_none_or(|(least, ..)| about < least) {
                best = Some((about, index.attribute, sorted, ranges));
            }
        }
        let (_, attribute, sorted, ranges) = best?;
        let reader = schema.reader(attribute);
        let rest: Vec<_> = term
            .predicates()
            .filter(|predicate| predicate.attribute() != attribute || !matches!(predicate, Predicate::Within(..)))
            .collect();
        let key = |place: u16| reader.key(&rows[usize::from(place) * size..]);
        for range in ranges.iter() {
            for place in sorted.within(range, key) {
                let record = &rows[usize::from(*place) * size..][..size];
                let holds = rest.iter().all(|predicate| match predicate {
                    Predicate::Within(id, ranges) => ranges.contains(schema.key(*id, record)),
                    Predicate::Mask(test) => test.holds(schema.key(test.attribute, record)),
                    Predicate::Aggregate(..) => false,
                });
                bits[usize::from(*place) / 64] |= u64::from(holds) << (place % 64);
            }
        }
    }
    Some(bits)
}
