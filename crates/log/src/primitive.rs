//! Atomics and waiting, which loom and shuttle replace (`--cfg loom`, `--cfg shuttle`), and prefetching, which only affects speed.

#[cfg(not(any(loom, shuttle)))]
mod with {
    pub use std::sync::Mutex;
    pub use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

    /// Null pointers. The system provides memory only for those that are used.
    #[expect(unsafe_code, reason = "no safe way leads to zeroed memory of atomics")]
    pub fn nulls(count: usize) -> Box<[AtomicPtr<u8>]> {
        let zeros: Box<[usize]> = vec![0; count].into();
        // SAFETY: an atomic pointer has the size and the alignment of a `usize`, zero is null, and the box is not used otherwise.
        unsafe { Box::from_raw(Box::into_raw(zeros) as *mut [AtomicPtr<u8>]) }
    }

    /// Waits for other threads: spins at first, then yields the processor.
    #[derive(Debug, Default)]
    pub struct Backoff(crossbeam_utils::Backoff);

    impl Backoff {
        pub fn wait(&self) {
            self.0.snooze();
        }
    }

    /// How long a thread sleeps that has waited for longer than a spin.
    const SLEEP: std::time::Duration = std::time::Duration::from_micros(50);

    /// Waits for something that may take milliseconds: spins at first, then yields the processor, then sleeps.
    #[derive(Debug, Default)]
    pub struct Patience(crossbeam_utils::Backoff);

    impl Patience {
        #[expect(clippy::disallowed_methods, reason = "another thread or host decides how long it takes")]
        pub fn wait(&self) {
            if self.0.is_completed() {
                std::thread::sleep(SLEEP);
            } else {
                self.0.snooze();
            }
        }
    }
}

#[cfg(loom)]
mod with {
    pub use loom::sync::Mutex;
    pub use loom::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

    pub fn nulls(count: usize) -> Box<[AtomicPtr<u8>]> {
        (0..count).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect()
    }

    #[derive(Debug, Default)]
    pub struct Backoff;

    impl Backoff {
        pub fn wait(&self) {
            loom::thread::yield_now();
        }
    }

    pub type Patience = Backoff;
}

#[cfg(all(shuttle, not(loom)))]
mod with {
    pub use shuttle::sync::Mutex;
    pub use shuttle::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

    pub fn nulls(count: usize) -> Box<[AtomicPtr<u8>]> {
        (0..count).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect()
    }

    #[derive(Debug, Default)]
    pub struct Backoff;

    impl Backoff {
        pub fn wait(&self) {
            shuttle::thread::yield_now();
        }
    }

    pub type Patience = Backoff;
}

pub use with::{AtomicPtr, AtomicU64, Backoff, Mutex, Ordering, Patience, nulls};

/// Prefetches memory that will be read soon: a hint without other effects.
#[inline]
#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "the processor's own instruction"))]
pub fn prefetch<T>(what: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch may have any address, even an invalid one, and nothing is read.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(what.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
}
