//! Atomics and what waits, which loom and shuttle replace: `--cfg loom`, `--cfg shuttle`. And what only makes faster.

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

/// Has the processor fetch what will be read soon: a hint, which changes nothing.
#[inline]
#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "the processor's own instruction"))]
pub fn prefetch<T>(what: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: what is fetched ahead need not even be memory, and nothing is read.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(what.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
}
