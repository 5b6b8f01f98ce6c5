//! The clock of the kernel's packet timestamps.

use queuescope_wire::Nanos;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The current time by `CLOCK_MONOTONIC`, the clock of the probe's timestamps.
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// The processor time of the calling thread.
pub fn thread_time() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

/// The offset from `CLOCK_MONOTONIC` to the Unix epoch, in nanoseconds.
pub fn to_epoch() -> u64 {
    read(ClockId::Realtime).saturating_sub(now()).0
}

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// A time as the kernel's `timespec`.
pub fn timespec(time: Nanos) -> Timespec {
    Timespec { tv_sec: (time.0 / 1_000_000_000) as i64, tv_nsec: (time.0 % 1_000_000_000) as i64 }
}
