//! The first position that readers may read, and giving back the memory of earlier records.
//!
//! Every reader holds a [`Floor`], and reads no record before it. A log raises its floor, so later readers hold a
//! higher one. Memory before the lowest floor that is held can be given back.
//!
//! Why no reader reads memory that was given back:
//!
//! 1. A record is read through a view. The view borrows a floor, and so does every slice that it returns; positions before the
//!    floor are refused. So the owner of a slice holds a floor that is not above it.
//! 2. A floor is in the list of held floors from its creation until it is dropped. It is never created again:
//!    others are copies of a reference to it, and none can be made when the last is gone.
//! 3. New floors are above all earlier ones. So the lowest in the list only rises, and records before it are before
//!    all floors that are held now and later.
//! 4. Dropping the last reference to a floor happens after all uses of the others (`Arc` guarantees that),
//!    and removes it from the list under a lock. The thread that finds the lowest floor takes the same lock afterwards. So reading
//!    is over before giving back begins, also in the order of memory.

use super::rows::Rows;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Records, and the floors of their readers.
#[derive(Debug)]
pub(super) struct FlooredRows {
    pub rows: Rows,
    floors: Mutex<Floors>,
}

#[derive(Debug)]
struct Floors {
    held: BTreeSet<u64>,
    /// The highest floor so far.
    highest: u64,
    /// Memory before this position was given back.
    given_back: u64,
}

/// The first position that its holder reads. Records from there on stay in memory.
#[derive(Debug)]
pub(crate) struct Floor {
    pub(super) floored: Arc<FlooredRows>,
    first: u64,
}

impl Floor {
    /// The lowest floor of some rows, at their beginning.
    pub fn new(rows: Rows, first: u64) -> Arc<Self> {
        let floors = Floors { held: BTreeSet::from([first]), highest: first, given_back: first };
        Arc::new(Self { floored: Arc::new(FlooredRows { rows, floors: Mutex::new(floors) }), first })
    }

    /// The position.
    pub fn first(&self) -> u64 {
        self.first
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        self.floored.floors().held.remove(&self.first);
    }
}

impl FlooredRows {
    fn floors(&self) -> MutexGuard<'_, Floors> {
        self.floors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A floor above all earlier ones.
    ///
    /// # Safety
    /// All positions before it are written, and will not be written again.
    ///
    /// # Panics
    /// Panics if it is not above them.
    #[expect(unsafe_code, reason = "what is before a floor may be given back")]
    pub unsafe fn raise(self: &Arc<Self>, first: u64) -> Arc<Floor> {
        let mut floors = self.floors();
        assert!(first > floors.highest, "a floor at {first} is not above {}", floors.highest);
        floors.highest = first;
        floors.held.insert(first);
        Arc::new(Floor { floored: Arc::clone(self), first })
    }

    /// Gives back the memory before the floors that are held. Returns up to where memory is given back now; this stays the same if the system
    /// call fails.
    pub fn give_back(&self) -> u64 {
        let (from, to) = {
            let floors = self.floors();
            (floors.given_back, floors.held.first().copied().unwrap_or(floors.given_back))
        };
        // Not under the lock: it takes long, and threads that drop a floor would wait.
        #[expect(unsafe_code, reason = "the one place that gives rows back")]
        // SAFETY: (1) the thread that raised the floor has promised it; (2) the text of this module shows it.
        let given_back = from < to && unsafe { self.rows.give_back(from..to) }.is_ok();
        let mut floors = self.floors();
        if given_back {
            floors.given_back = floors.given_back.max(to);
        }
        floors.given_back
    }

    /// Memory before this position was given back.
    pub fn given_back(&self) -> u64 {
        self.floors().given_back
    }
}
