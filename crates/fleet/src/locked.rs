//! Locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock whose state is whole even if a thread panicked while it held it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
