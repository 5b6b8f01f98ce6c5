//! A queue between two threads, in which each wakes the other rarely.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Creates a queue of at most `room` values, and its two ends.
///
/// A sender that finds it full waits until it is half empty, so that the threads change places once in half of the room, and not for each
/// value.
pub(super) fn channel<T>(room: usize) -> (Full<T>, Empty<T>) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State { values: VecDeque::with_capacity(room), is_closed: false }),
        room,
        has_room: Condvar::new(),
        has_values: Condvar::new(),
    });
    (Full(Arc::clone(&shared)), Empty(shared))
}

/// The end that puts values in. When it is dropped, [`Empty::take`] returns the remaining values, and then `None`.
pub(super) struct Full<T>(Arc<Shared<T>>);

/// The end that takes values out. When it is dropped, [`Full::put`] fails.
pub(super) struct Empty<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    room: usize,
    has_room: Condvar,
    has_values: Condvar,
}

struct State<T> {
    values: VecDeque<T>,
    /// Whether one end is gone.
    is_closed: bool,
}

impl<T> Full<T> {
    /// Puts a value in, and waits while there is no room. Returns false if the other end is gone.
    pub fn put(&self, value: T) -> bool {
        let Shared { room, has_room, has_values, .. } = &*self.0;
        let mut state = self.0.lock();
        if state.values.len() == *room {
            let is_full = |state: &mut State<T>| state.values.len() > room / 2 && !state.is_closed;
            state = has_room.wait_while(state, is_full).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_closed {
            return false;
        }
        state.values.push_back(value);
        // The receiver sleeps only if there was nothing.
        if state.values.len() == 1 {
            has_values.notify_one();
        }
        true
    }
}

impl<T> Empty<T> {
    /// Takes the next value, and waits for it. Returns `None` if there is none and the other end is gone.
    pub fn take(&self) -> Option<T> {
        let Shared { room, has_room, has_values, .. } = &*self.0;
        let is_empty = |state: &mut State<T>| state.values.is_empty() && !state.is_closed;
        let mut state = has_values.wait_while(self.0.lock(), is_empty).unwrap_or_else(PoisonError::into_inner);
        let value = state.values.pop_front();
        if state.values.len() == room / 2 {
            has_room.notify_one();
        }
        value
    }
}

impl<T> Shared<T> {
    /// No code panics while it holds the lock, so a poisoned one is whole, too.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.has_room.notify_one();
        self.has_values.notify_one();
    }
}

impl<T> Drop for Full<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T> Drop for Empty<T> {
    fn drop(&mut self) {
        self.0.close();
        // What nobody takes is freed now and not when the sender notices.
        self.0.lock().values.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn values_come_out_in_order_for_any_room() {
        for room in [1, 2, 3, 8] {
            let (full, empty) = channel(room);
            let sender = thread::spawn(move || (0..20_000_u32).all(|value| full.put(value)));
            let taken: Vec<_> = std::iter::from_fn(|| empty.take()).collect();
            assert!(sender.join().unwrap());
            assert!(taken.into_iter().eq(0..20_000), "room for {room}");
        }
    }

    #[test]
    fn a_sender_that_waits_learns_that_the_receiver_is_gone() {
        let (full, empty) = channel(2);
        let sender = thread::spawn(move || (0..).take_while(|value| full.put(*value)).count());
        assert_eq!(empty.take(), Some(0));
        drop(empty);
        assert!(sender.join().unwrap() <= 4);
    }

    #[test]
    fn a_receiver_that_waits_learns_that_the_sender_is_gone() {
        let (full, empty) = channel::<u32>(2);
        let receiver = thread::spawn(move || empty.take());
        drop(full);
        assert_eq!(receiver.join().unwrap(), None);
    }
}
