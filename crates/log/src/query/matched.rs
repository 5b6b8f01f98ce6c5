//! The matching records, one by one.

use super::plan::{Block, Plan};
use crate::derive::{Bits, CHUNK, WORDS, count, ones};
use crate::schema::Schema;

/// Records of a chunk that are prefetched at once while earlier ones are read.
const FETCHED: usize = 64;

/// The records that match a query, in the order of the log: their positions and bytes.
#[derive(Debug)]
pub struct Matched<'a> {
    plan: Plan<'a>,
    block: Option<Block>,
    /// The next chunk, and the bits of the one before it while its records are being prefetched.
    next: u64,
    ahead: Option<Bits>,
    /// Where the chunk with remaining bits begins, and the index of the current word.
    start: u64,
    word: usize,
    bits: Bits,
}

impl<'a> Matched<'a> {
    pub(super) fn new(plan: Plan<'a>) -> Self {
        let next = plan.reading.view().first() / CHUNK;
        Self { plan, block: None, next, ahead: None, start: 0, word: WORDS, bits: [0; WORDS] }
    }

    pub(super) fn schema(&self) -> &'a Schema {
        self.plan.schema
    }

    /// Moves to the bits of the next chunk.
    fn chunk(&mut self) -> bool {
        let Some(bits) = self.ahead.take().or_else(|| self.look()) else { return false };
        (self.bits, self.word, self.start) = (bits, 0, (self.next - 1) * CHUNK);
        true
    }

    /// Like `chunk`, and prefetches the records of the chunk after it while these are read.
    fn chunk_and_fetch(&mut self) -> bool {
        let there = self.chunk();
        if there {
            self.ahead = self.look();
            let start = (self.next - 1) * CHUNK;
            for place in self.ahead.iter().flat_map(|bits| ones(bits)).take(FETCHED) {
                self.plan.reading.view().prefetch(start + place as u64);
            }
        }
        there
    }

    /// The bits of the next chunk.
    fn look(&mut self) -> Option<Bits> {
        (self.next * CHUNK < self.plan.reading.view().tail()).then(|| {
            self.next += 1;
            self.plan.chunk(self.next - 1, &mut self.block)
        })
    }

    /// The number of records; they are examined only if needed.
    pub fn count(mut self) -> u64 {
        let mut sum = u64::from(count(&self.bits[self.word.min(WORDS)..]));
        while self.chunk() {
            sum += u64::from(count(&self.bits));
        }
        sum
    }

    /// Calls `with` for each record.
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
                    return Some((position, self.plan.reading.view().record(position)));
                }
                self.word += 1;
            }
            if !self.chunk_and_fetch() {
                return None;
            }
        }
    }
}
