//! From where on records are read, and giving back the memory of those before.
//!
//! Whoever reads records holds a [`Floor`], and reads none before it. A log raises its floor: who comes then holds a
//! higher one. What is before the lowest that anybody holds can be given back.
//!
//! Why nobody reads what is given back:
//!
//! 1. A record is read through a view, which borrows a floor, and so is every slice that it gives; positions before the
//!    floor are refused. So who has a slice holds a floor that is not above it.
//! 2. A floor is in the list of those that are held from when it is made until it is dropped. It is never made again:
//!    others are copies of a reference to it, and none is made when the last is gone.
//! 3. New ones are above all that were there. So the lowest in the list only rises, and what is before it once is before
//!    all floors that are held now and later.
//! 4. The last reference to a floor drops it, which comes after all that was done with the others (that is how `Arc`
//!    counts), and takes it from the list under a lock. Who finds the lowest takes the same lock afterwards. So reading
//!    is over before giving back begins, also in the order of memory.

use super::rows::Rows;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Records, and the floors of those who read them.
#[derive(Debug)]
pub(super) struct Ground {
    pub rows: Rows,
    floors: Mutex<Floors>,
}

#[derive(Debug)]
struct Floors {
    held: BTreeSet<u64>,
    /// The highest that there was.
    highest: u64,
    /// Up to where memory was given back.
    given_back: u64,
}

/// The first position that who holds this reads. Records from there on stay in memory.
#[derive(Debug)]
pub(crate) struct Floor {
    pub(super) ground: Arc<Ground>,
    first: u64,
}

impl Floor {
    /// The lowest floor of some rows, which begin with it.
    pub fn new(rows: Rows, first: u64) -> Arc<Self> {
        let floors = Floors { held: BTreeSet::from([first]), highest: first, given_back: first };
        Arc::new(Self { ground: Arc::new(Ground { rows, floors: Mutex::new(floors) }), first })
    }

    /// The position.
    pub fn first(&self) -> u64 {
        self.first
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        self.ground.floors().held.remove(&self.first);
    }
}

impl Ground {
    fn floors(&self) -> MutexGuard<'_, Floors> {
        self.floors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A floor above all that there were.
    ///
    /// # Safety
    /// All positions before it are written, and will not be again.
    ///
    /// # Panics
    /// If it is not above them.
    #[expect(unsafe_code, reason = "what is before a floor may be given back")]
    pub unsafe fn raise(self: &Arc<Self>, first: u64) -> Arc<Floor> {
        let mut floors = self.floors();
        assert!(first > floors.highest, "a floor at {first} is not above {}", floors.highest);
        floors.highest = first;
        floors.held.insert(first);
        Arc::new(Floor { ground: Arc::clone(self), first })
    }

    /// Gives back what is before the floors that are held; up to where it is given back then, which stays if the system
    /// does not take it.
    pub fn give_back(&self) -> u64 {
        let (from, to) = {
            let floors = self.floors();
            (floors.given_back, floors.held.first().copied().unwrap_or(floors.given_back))
        };
        // Not under the lock: it takes long, and who drops a floor would wait.
        #[expect(unsafe_code, reason = "the one place that gives rows back")]
        // SAFETY: (1) is promised by who raised the floor; (2) is what the module's text shows.
        let given_back = from < to && unsafe { self.rows.give_back(from..to) }.is_ok();
        let mut floors = self.floors();
        if given_back {
            floors.given_back = floors.given_back.max(to);
        }
        floors.given_back
    }

    /// Up to where memory was given back.
    pub fn given_back(&self) -> u64 {
        self.floors().given_back
    }
}
