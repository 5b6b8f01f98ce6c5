//! A filter, and its matches in each chunk.

use super::cells::PerChunk;
use super::matches::{Bits, Matches, WORDS, clear_from, count_within};
use super::ordered::{Operand, Pass};
use super::reading::Reading;
use super::scan::Scan;
use super::{BLOCK, CHUNK};
use crate::expr::Dnf;
use crate::schema::Schema;
use crate::store::{HeldRecords, View};
use std::ops::Range;
use std::sync::{Mutex, PoisonError, TryLockError};

/// Chunks, left by other threads, that a writer passes at once.
const AT_ONCE: u64 = 4;

/// A filter, and its matches in each chunk.
#[derive(Debug)]
pub(crate) struct FilterState {
    /// Unique among the filters of the log.
    pub id: u64,
    pub dnf: Dnf,
    /// The aggregates that it names.
    pub operands: Vec<Operand>,
    matches: PerChunk<Matches>,
    decides: Decides,
}

#[derive(Debug)]
enum Decides {
    /// Each record can be decided alone.
    Alone(Scan),
    /// Depends on aggregates, so records are decided in the order of the log.
    Ordered(Box<Mutex<Pass>>),
}

impl FilterState {
    /// A filter on records of a schema, for some blocks, and the aggregates that it names. It begins behind a floor.
    pub fn new(id: u64, dnf: Dnf, schema: &Schema, blocks: Range<usize>, operands: Vec<Operand>, floor: u64) -> Self {
        let decides = if dnf.aggregates().is_empty() {
            Decides::Alone(Scan::new(&dnf, schema))
        } else {
            Decides::Ordered(Box::new(Mutex::new(Pass::new(&dnf, schema, &operands, floor))))
        };
        Self { id, dnf, operands, matches: PerChunk::new(blocks), decides }
    }

    /// Whether it has to see the records in the order of the log.
    pub fn is_ordered(&self) -> bool {
        matches!(self.decides, Decides::Ordered(_))
    }

    /// Whether it is evaluated without a table.
    pub fn is_simple(&self) -> bool {
        matches!(self.decides, Decides::Alone(Scan::Sieve(_)))
    }

    /// The matches among some records, for a filter that decides each record alone.
    pub fn look(&self, rows: &[u8], size: usize) -> Bits {
        match &self.decides {
            Decides::Alone(scan) => scan.bits(rows, size),
            Decides::Ordered(_) => [0; WORDS],
        }
    }

    /// Applies `of` to its matches in a chunk, if these are known.
    #[inline]
    pub fn known<T>(&self, chunk: u64, of: impl FnOnce(&Matches) -> T) -> Option<T> {
        self.matches.look(chunk as usize, of)
    }

    /// Whether its matches in a chunk are known.
    #[inline]
    pub fn knows(&self, chunk: u64) -> bool {
        self.known(chunk, |_| ()).is_some()
    }

    /// Sets its matches in a whole chunk; returns how many there are.
    pub fn set(&self, chunk: u64, bits: &Bits) -> u16 {
        let matches = Matches::from_bits(bits);
        let count = matches.count() as u16;
        self.matches.set(chunk as usize, matches);
        count
    }

    /// Its matches in a chunk, among the records of the view.
    pub fn bits(&self, chunk: u64, reading: &Reading) -> Bits {
        self.in_tail(chunk, reading, |bits| *bits).unwrap_or_else(|| self.bits_of(chunk, reading.view()))
    }

    /// The number of its matches in a chunk, within a range of places.
    pub fn count(&self, chunk: u64, places: Range<usize>, reading: &Reading) -> u32 {
        let count = |bits: &Bits| count_within(bits, places.clone());
        self.in_tail(chunk, reading, count).unwrap_or_else(|| count(&self.bits_of(chunk, reading.view())))
    }

    /// Applies `of` to its matches in the chunk that the tail is in.
    fn in_tail<T>(&self, chunk: u64, reading: &Reading, of: impl FnOnce(&Bits) -> T) -> Option<T> {
        if self.is_ordered() || self.knows(chunk) {
            return None;
        }
        reading.in_tail(reading.stages.place(self.id)?, chunk, of)
    }

    /// Its matches without the cached results of the last chunk.
    fn bits_of(&self, chunk: u64, view: View<'_>) -> Bits {
        let rows = view.chunk(chunk);
        let known = || self.known(chunk, |matches| part(matches, rows.len() / view.size()));
        if let Some(bits) = known() {
            return bits;
        }
        match &self.decides {
            Decides::Alone(scan) => scan.bits(rows, view.size()),
            Decides::Ordered(pass) => {
                let mut pass = pass.lock().unwrap_or_else(PoisonError::into_inner);
                self.go_on(&mut pass, view, u64::MAX);
                known().unwrap_or_else(|| pass.behind(rows, view.size()))
            }
        }
    }

    /// Finds its matches in a whole chunk, if these are not known.
    pub fn fill(&self, chunk: u64, view: View<'_>) {
        if !self.knows(chunk) {
            let bits = self.bits_of(chunk, view);
            self.set(chunk, &bits);
        }
    }

    /// For an ordered filter: continues towards the view's last whole chunk, unless another thread does so already.
    /// A writer calls this, and must not catch up on a large backlog.
    pub fn try_go_on(&self, view: View<'_>) {
        let Decides::Ordered(pass) = &self.decides else { return };
        match pass.try_lock() {
            Ok(mut pass) => self.go_on(&mut pass, view, AT_ONCE),
            Err(TryLockError::Poisoned(pass)) => self.go_on(&mut pass.into_inner(), view, AT_ONCE),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// For an ordered filter: continues until writers can keep up. `hold` takes a new hold of
    /// the records.
    pub fn catch_up(&self, hold: impl Fn() -> HeldRecords) {
        let Decides::Ordered(pass) = &self.decides else { return };
        loop {
            let mut pass = pass.lock().unwrap_or_else(PoisonError::into_inner);
            let held = hold();
            if held.view().tail() / CHUNK <= pass.next() + AT_ONCE {
                return;
            }
            self.go_on(&mut pass, held.view(), u64::MAX);
        }
    }

    /// For an ordered filter: continues to a position that will be a floor.
    pub fn settle(&self, floor: u64, view: View<'_>) {
        if let Decides::Ordered(pass) = &self.decides {
            let mut pass = pass.lock().unwrap_or_else(PoisonError::into_inner);
            let left = (floor / CHUNK).saturating_sub(pass.next());
            self.go_on(&mut pass, view, left);
        }
    }

    /// Discards what readers do not need whose floor is this one or a later one.
    pub fn forget(&self, floor: u64) {
        self.matches.forget((floor / BLOCK) as usize);
    }

    fn go_on(&self, pass: &mut Pass, view: View<'_>, most: u64) {
        let end = pass.next().saturating_add(most);
        while pass.next() < end && (pass.next() + 1) * CHUNK <= view.tail() {
            let chunk = pass.next();
            let bits = pass.chunk(view.chunk(chunk), view.size());
            self.set(chunk, &bits);
        }
    }

    /// Bytes of heap memory that it takes.
    pub fn heap(&self) -> usize {
        self.matches.heap(Matches::heap)
    }
}

/// The matches among the first records of a chunk.
fn part(matches: &Matches, count: usize) -> Bits {
    let mut bits = matches.bits();
    clear_from(&mut bits, count);
    bits
}
