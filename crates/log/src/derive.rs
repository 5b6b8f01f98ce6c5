//! Derived data: which records filters match, aggregates, and indexes.
//!
//! All derived data is a function of the records before some position. So it can be computed late, by the first thread that needs it, and
//! discarded. It is computed by *chunk* and by *block*, once these are complete; where it is not computed yet, a reader
//! looks at the records themselves. So a reader never sees some effects of a record without the others.
//!
//! When records leave memory, their derived data is discarded too. By then aggregates include all these records,
//! and filters that need records in order have passed them.

mod aggregate;
mod cells;
mod derived;
mod deviation;
mod filter;
mod function;
mod index;
mod matches;
mod mean;
mod ordered;
mod reading;
mod scan;
mod set;
mod sieve;
mod stages;

pub(crate) use aggregate::AggregateState;
pub(crate) use derived::Derived;
pub(crate) use filter::FilterState;
pub(crate) use function::Working;
pub use function::{Commutative, Function, State};
pub(crate) use index::Sorted;
pub(crate) use matches::{Bits, WORDS, clear_from, count, ones};
pub(crate) use reading::{Reading, Tail, Tallies};
pub(crate) use scan::Scan;
pub(crate) use stages::IndexState;
pub use stages::Usage;

use set::Group;

use std::cell::RefCell;

/// Records of a chunk: filters are evaluated on a chunk at once.
pub(crate) const CHUNK: u64 = 1024;
/// Records of a block: an index sorts a block at once. A position within it has two bytes.
pub(crate) const BLOCK: u64 = 1 << 16;
/// Chunks of a block.
pub(crate) const CHUNKS: usize = (BLOCK / CHUNK) as usize;

/// Buffers for computing derived data; one for each thread, because they are large.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub set: set::Scratch,
    pub index: index::Scratch,
}

/// Lends the thread's buffers.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = RefCell::default();
    }
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => work(&mut scratch),
        // Only if `work` calls this function again, which nothing here does.
        Err(_) => work(&mut Scratch::default()),
    })
}
