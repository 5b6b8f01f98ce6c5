//! What follows from the records: which filters match, aggregates, indexes.
//!
//! All of it is a function of the records before some position, so it can be made late, by whoever comes first, and
//! thrown away. It is made by *chunk* and by *block*, of whole ones that are complete; what is not made yet, a reader
//! finds in the records themselves. So there is nothing that could be seen of one record's effects without the others.
//!
//! When records leave memory, what was derived of each goes with them. Aggregates have then been worked out of all of
//! them, and filters that see records in order have seen them.

mod aggregate;
mod cells;
mod derived;
mod filter;
mod index;
mod matches;
mod ordered;
mod reading;
mod scan;
mod set;
mod sieve;
mod stages;

pub(crate) use aggregate::{AggregateState, Working};
pub use aggregate::{Commutative, Function, State};
pub(crate) use derived::Derived;
pub(crate) use filter::FilterState;
pub(crate) use index::Sorted;
pub(crate) use matches::{Bits, WORDS, clear_from, count, ones};
pub(crate) use reading::{Reading, Tail, Tallies};
pub(crate) use scan::Scan;
pub(crate) use stages::IndexState;
pub use stages::Usage;

use set::Group;

use std::cell::RefCell;

/// Records of a chunk: what filters are evaluated on at once.
pub(crate) const CHUNK: u64 = 1024;
/// Records of a block: what is sorted for an index at once. A position in it has two bytes.
pub(crate) const BLOCK: u64 = 1 << 16;
/// Chunks of a block.
pub(crate) const CHUNKS: usize = (BLOCK / CHUNK) as usize;

/// Room for working things out; one for each thread, since it is large.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub set: set::Scratch,
    pub index: index::Scratch,
}

/// Lends the thread's room.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = RefCell::default();
    }
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => work(&mut scratch),
        // Only if `work` comes here again, which nothing here does.
        Err(_) => work(&mut Scratch::default()),
    })
}
