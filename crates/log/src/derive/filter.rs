//! A filter, and what it matches in each chunk.

use super::cells::PerChunk;
use super::matches::{Bits, Matches, WORDS, clear_from, count_within};
use super::ordered::{Operand, Pass};
use super::reading::Reading;
use super::scan::Scan;
use super::{BLOCK, CHUNK};
use crate::expr::Dnf;
use crate::schema::Schema;
use crate::store::{Held, View};
use std::ops::Range;
use std::sync::{Mutex, PoisonError, TryLockError};

/// Chunks that a writer goes over at once, of those that others have left.
const AT_ONCE: u64 = 4;

/// A filter, and what it matches in each chunk.
#[derive(Debug)]
pub(crate) struct FilterState {
    /// What no other filter of the log is called.
    pub id: u64,
    pub dnf: Dnf,
    /// The aggregates that it names.
    pub operands: Vec<Operand>,
    matches: PerChunk<Matches>,
    decides: Decides,
}

#[derive(Debug)]
enum Decides {
    /// Each record for itself.
    Alone(Scan),
    /// With aggregates, in the order of the log.
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

    /// Whether it is looked at without a table.
    pub fn is_simple(&self) -> bool {
        matches!(self.decides, Decides::Alone(Scan::Sieve(_)))
    }

    /// Which of some records it matches, which it can tell by themselves.
    pub fn look(&self, rows: &[u8], size: usize) -> Bits {
        match &self.decides {
            Decides::Alone(scan) => scan.bits(rows, size),
            Decides::Ordered(_) => [0; WORDS],
        }
    }

    /// Something of what it matches in a chunk, if that is known.
    #[inline]
    pub fn known<T>(&self, chunk: u64, of: impl FnOnce(&Matches) -> T) -> Option<T> {
        self.matches.look(chunk as usize, of)
    }

    /// Whether it is known what it matches in a chunk.
    #[inline]
    pub fn knows(&self, chunk: u64) -> bool {
        self.known(chunk, |_| ()).is_some()
    }

    /// Says what it matches in a whole chunk; how many records that are.
    pub fn set(&self, chunk: u64, bits: &Bits) -> u16 {
        let matches = Matches::of(bits);
        let count = matches.count() as u16;
        self.matches.set(chunk as usize, matches);
        count
    }

    /// What it matches in a chunk, of the records that are in the view.
    pub fn bits(&self, chunk: u64, reading: &Reading) -> Bits {
        self.in_tail(chunk, reading, |bits| *bits).unwrap_or_else(|| self.bits_of(chunk, reading.view()))
    }

    /// How many records it matches in a chunk, from one place to before another.
    pub fn count(&self, chunk: u64, places: Range<usize>, reading: &Reading) -> u32 {
        let count = |bits: &Bits| count_within(bits, places.clone());
        self.in_tail(chunk, reading, count).unwrap_or_else(|| count(&self.bits_of(chunk, reading.view())))
    }

    /// Something of what it matches in the chunk that the tail is in.
    fn in_tail<T>(&self, chunk: u64, reading: &Reading, of: impl FnOnce(&Bits) -> T) -> Option<T> {
        if self.is_ordered() || self.knows(chunk) {
            return None;
        }
        reading.in_tail(reading.stages.place(self.id)?, chunk, of)
    }

    /// The same without what was worked out of the last chunk.
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

    /// Finds what it matches in a whole chunk, if that is not known.
    pub fn fill(&self, chunk: u64, view: View<'_>) {
        if !self.knows(chunk) {
            let bits = self.bits_of(chunk, view);
            self.set(chunk, &bits);
        }
    }

    /// For one that has to see records in order: goes on towards the view's last whole chunk, unless somebody else does.
    /// It is a writer that does, which must not work off what many have left.
    pub fn try_go_on(&self, view: View<'_>) {
        let Decides::Ordered(pass) = &self.decides else { return };
        match pass.try_lock() {
            Ok(mut pass) => self.go_on(&mut pass, view, AT_ONCE),
            Err(TryLockError::Poisoned(pass)) => self.go_on(&mut pass.into_inner(), view, AT_ONCE),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// For one that has to see records in order: goes on until writers can keep up with it. `hold` takes a new hold of
    /// the records.
    pub fn catch_up(&self, hold: impl Fn() -> Held) {
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

    /// For one that has to see records in order: goes on to a position that will be a floor.
    pub fn settle(&self, floor: u64, view: View<'_>) {
        if let Decides::Ordered(pass) = &self.decides {
            let mut pass = pass.lock().unwrap_or_else(PoisonError::into_inner);
            let left = (floor / CHUNK).saturating_sub(pass.next());
            self.go_on(&mut pass, view, left);
        }
    }

    /// Throws away what nobody asks for who has no floor before this one.
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

    /// Bytes that it takes beside its own.
    pub fn heap(&self) -> usize {
        self.matches.heap(Matches::heap)
    }
}

/// What is matched of the first records of a chunk.
fn part(matches: &Matches, count: usize) -> Bits {
    let mut bits = matches.bits();
    clear_from(&mut bits, count);
    bits
}
