//! The clock that the kernel stamps packets by.

use queuescope_wire::Nanos;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The time on the clock that packets are told by, `CLOCK_MONOTONIC`.
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// How long the thread that asks has run on a processor.
pub fn thread_time() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

/// What has to be added to that clock to have the time since the Unix epoch, in nanoseconds.
pub fn to_epoch() -> u64 {
    read(ClockId::Realtime).saturating_sub(now()).0
}

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// A time as the kernel takes it.
pub fn timespec(time: Nanos) -> Timespec {
    Timespec { tv_sec: (time.0 / 1_000_000_000) as i64, tv_nsec: (time.0 % 1_000_000_000) as i64 }
}
