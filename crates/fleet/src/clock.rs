//! The two clocks of the processes of a fleet: everything else has time as an argument.

use queuescope_wire::Nanos;
use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[expect(clippy::disallowed_methods, reason = "this is the clock")]
static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Time that never goes back, since some moment of this process.
pub fn steady() -> Nanos {
    Nanos(u64::try_from(BEGIN.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// The same moment for a timer.
pub fn instant(at: Nanos) -> tokio::time::Instant {
    (*BEGIN + std::time::Duration::from_nanos(at.0)).into()
}

/// Nanoseconds since 1970, as the system says; 0 before that.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn wall() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Seconds since 1970.
pub fn seconds() -> u64 {
    wall().0 / 1_000_000_000
}
