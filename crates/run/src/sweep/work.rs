//! Runs jobs on several threads, and returns their results in order.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;

/// How far threads may run ahead of the first missing result. This bounds the number of results that wait for it.
const AHEAD: u64 = 512;

/// Calls `work` for the numbers from 0 to `count` on `threads` threads, and passes the results to `take` in order of the
/// numbers. The first error, in that order, ends it.
///
/// # Errors
/// Returns the first error of `work` or `take`.
pub fn in_order<T: Send, E: Send>(
    threads: usize,
    count: u64,
    work: impl Fn(u64) -> Result<T, E> + Sync,
    mut take: impl FnMut(u64, T) -> Result<(), E>,
) -> Result<(), E> {
    let (next, gate) = (AtomicU64::new(0), Gate::default());
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.min(usize::try_from(count).unwrap_or(usize::MAX)) {
            let (sender, next, gate, work) = (sender.clone(), &next, &gate, &work);
            scope.spawn(move || {
                let _closes = CloseOnPanic(gate);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || !gate.pass(number) {
                        break;
                    }
                    let done = work(number);
                    if done.is_err() {
                        gate.end_at(number);
                    }
                    if sender.send((number, done)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let (mut early, mut due) = (BTreeMap::new(), 0);
        let result = receiver.iter().try_for_each(|(number, done)| {
            early.insert(number, done);
            while let Some(done) = early.remove(&due) {
                take(due, done?)?;
                due += 1;
                gate.open_to(due);
            }
            Ok(())
        });
        gate.close();
        result
    })
}

/// Blocks threads that run too far ahead.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<GateState>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    due: u64,
    /// The results of this number and of later ones are not wanted any more.
    end: Option<u64>,
}

impl GateState {
    fn is_wanted(&self, number: u64) -> bool {
        self.end.is_none_or(|end| number < end)
    }
}

impl Gate {
    /// Waits until `number` is not too far ahead. Returns whether its result is still wanted.
    fn pass(&self, number: u64) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let early = |state: &mut GateState| state.is_wanted(number) && number >= state.due.saturating_add(AHEAD);
        let state = self.moved.wait_while(state, early).unwrap_or_else(PoisonError::into_inner);
        state.is_wanted(number)
    }

    fn open_to(&self, due: u64) {
        self.change(|state| state.due = due);
    }

    /// Ends the work at this number: an error there hides all later results.
    fn end_at(&self, number: u64) {
        self.change(|state| state.end = Some(state.end.map_or(number, |end| end.min(number))));
    }

    fn close(&self) {
        self.end_at(0);
    }

    fn change(&self, change: impl FnOnce(&mut GateState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.moved.notify_all();
    }
}

/// Closes the gate if its thread panics, since the result of that thread would never come.
struct CloseOnPanic<'a>(&'a Gate);

impl Drop for CloseOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
        }
    }
}

/// The number of threads: `jobs`, or the number of cores.
pub fn threads(jobs: Option<u16>) -> usize {
    let cores = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
    jobs.map_or_else(cores, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn results_come_in_order_whatever_the_number_of_threads() {
        for threads in [1, 2, 7] {
            let mut taken = Vec::new();
            // The first of each hundred takes the longest.
            let work = |number: u64| {
                let rounds = if number.is_multiple_of(100) { 100_000 } else { 10 };
                Ok::<_, Infallible>((0..rounds).fold(number, |sum, round| sum ^ (round * number)) & 1 | number << 1)
            };
            in_order(threads, 3_000, work, |number, done| {
                taken.push((number, done >> 1));
                Ok(())
            })
            .unwrap();
            assert!(taken.iter().copied().eq((0..3_000).map(|number| (number, number))));
        }
    }

    #[test]
    fn the_first_error_in_order_ends_the_run() {
        for threads in [1, 2, 7] {
            let mut taken = 0;
            let work = |number| if number % 10 == 7 { Err(format!("{number} failed")) } else { Ok(number) };
            let result = in_order(threads, 10_000, work, |_, _| {
                taken += 1;
                Ok(())
            });
            assert_eq!((result.unwrap_err().as_str(), taken), ("7 failed", 7));
            let result = in_order(threads, 10_000, Ok, |number, _| if number == 5 { Err("enough") } else { Ok(()) });
            assert_eq!(result, Err("enough"));
        }
        in_order(3, 0, |_| Err("nothing is to be done"), |_, ()| Ok(())).unwrap();
    }

    /// Each of them may take a minute.
    #[test]
    fn nothing_is_begun_after_an_error() {
        let begun = AtomicU64::new(0);
        let work = |number| {
            begun.fetch_add(1, Ordering::Relaxed);
            if number == 7 { Err("failed") } else { Ok(()) }
        };
        assert_eq!(in_order(1, 100, work, |_, ()| Ok(())), Err("failed"));
        assert_eq!(begun.into_inner(), 8);
    }

    #[test]
    fn a_panic_of_one_thread_does_not_block_the_others() {
        let panicked = AtomicBool::new(false);
        let run = || {
            in_order(
                2,
                10 * AHEAD,
                |number| {
                    if number == 0 {
                        panicked.store(true, Ordering::Relaxed);
                        // Resume without printing the panic's message among those of the tests.
                        std::panic::resume_unwind(Box::new("gone"));
                    }
                    Ok::<_, Infallible>(())
                },
                |_, ()| Ok(()),
            )
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
        assert!(panicked.load(Ordering::Relaxed));
    }
}
