//! Atomics and what waits, which loom and shuttle replace: `--cfg loom`, `--cfg shuttle`.

#[cfg(not(any(loom, shuttle)))]
mod with {
    pub use std::sync::atomic::{AtomicU64, Ordering};

    /// Lets others run: spins while little is waited for, then gives the processor away.
    #[derive(Debug, Default)]
    pub struct Backoff(crossbeam_utils::Backoff);

    impl Backoff {
        pub fn wait(&self) {
            self.0.snooze();
        }
    }
}

#[cfg(loom)]
mod with {
    pub use loom::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug, Default)]
    pub struct Backoff;

    impl Backoff {
        pub fn wait(&self) {
            loom::thread::yield_now();
        }
    }
}

#[cfg(all(shuttle, not(loom)))]
mod with {
    pub use shuttle::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug, Default)]
    pub struct Backoff;

    impl Backoff {
        pub fn wait(&self) {
            shuttle::thread::yield_now();
        }
    }
}

pub use with::{AtomicU64, Backoff, Ordering};
