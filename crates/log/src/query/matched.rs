//! The records that are meant, one by one.

use super::plan::{Block, Plan};
use crate::derive::{Bits, CHUNK, Function, WORDS, Working, count};
use crate::expr::Number;
use crate::schema::Schema;

/// The records that a query means, in the order of the log: their positions and bytes.
#[derive(Debug)]
pub struct Matched<'a> {
    plan: Plan<'a>,
    block: Option<Block>,
    /// The chunk that comes next.
    next: u64,
    /// Where the chunk begins whose bits are left, and from which word on.
    start: u64,
    word: usize,
    bits: Bits,
}

impl<'a> Matched<'a> {
    pub(super) fn new(plan: Plan<'a>) -> Self {
        Self { plan, block: None, next: 0, start: 0, word: WORDS, bits: [0; WORDS] }
    }

    pub(super) fn schema(&self) -> &'a Schema {
        self.plan.schema
    }

    /// Takes the bits of the next chunk.
    fn chunk(&mut self) -> bool {
        let start = self.next * CHUNK;
        if start >= self.plan.reading.view.tail() {
            return false;
        }
        self.bits = self.plan.chunk(self.next, &mut self.block);
        (self.start, self.word) = (start, 0);
        self.next += 1;
        true
    }

    /// How many there are; none is looked at if that is not needed.
    pub fn count(mut self) -> u64 {
        let mut sum = u64::from(count(&self.bits[self.word.min(WORDS)..]));
        while self.chunk() {
            sum += u64::from(count(&self.bits));
        }
        sum
    }

    /// Folds them into aggregates' values: of each function all its values.
    ///
    /// # Panics
    /// If an attribute is another schema's, or has no order.
    pub fn fold(self, functions: &[Function]) -> Vec<Vec<Number>> {
        let schema = self.plan.schema;
        let working: Vec<_> = functions.iter().map(|function| Working::new(function, schema)).collect();
        let mut states: Vec<_> = working.iter().map(Working::empty).collect();
        self.for_each(|_, record| {
            for (working, state) in working.iter().zip(&mut states) {
                working.add(state, record);
            }
        });
        let values = working.iter().zip(&states);
        values
            .map(|(working, state)| (0..working.values()).map(|value| working.value(state, value)).collect())
            .collect()
    }

    /// Calls `with` for each.
    pub fn for_each(self, mut with: impl FnMut(u64, &'a [u8])) {
        for (position, record) in self {
            with(position, record);
        }
    }
}

impl<'a> Iterator for Matched<'a> {
    type Item = (u64, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            while let Some(word) = self.bits.get_mut(self.word) {
                if *word != 0 {
                    let bit = u64::from(word.trailing_zeros());
                    *word &= *word - 1;
                    let position = self.start + self.word as u64 * 64 + bit;
                    return Some((position, self.plan.reading.view.record(position)));
                }
                self.word += 1;
            }
            if !self.chunk() {
                return None;
            }
        }
    }
}
