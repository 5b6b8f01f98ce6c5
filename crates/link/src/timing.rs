//! How exact a link in user space is in time, and how exact it can be on this machine.

use hdrhistogram::Histogram;
use queuescope_live::{now, thread_time, timespec};
use queuescope_wire::Nanos;
use rustix::process::getpriority_process;
use rustix::thread::{self, ClockId};
use std::io;
use std::num::NonZeroU64;

/// The histogram's upper bound, nanoseconds. Longer delays are recorded as this one.
const LONGEST: u64 = 60_000_000_000;
/// A packet that is later than this was held up by the machine.
pub(crate) const LATE: Nanos = Nanos(1_000_000);
/// How many sleeps are measured, and how long each is.
const SLEEPS: u32 = 200;
const SLEEP: Nanos = Nanos(100_000);

/// How much later than due packets were delivered to their end.
#[derive(Debug, Clone)]
pub struct Timing {
    errors: Histogram<u64>,
    late: u64,
}

/// How much later than requested a thread of this machine wakes up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sleep {
    /// The median.
    pub p50: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
}

impl Default for Timing {
    fn default() -> Self {
        let errors = Histogram::new_with_bounds(1, LONGEST, 3).expect("these bounds are allowed");
        Self { errors, late: 0 }
    }
}

impl Timing {
    /// Records the delay of one packet.
    #[inline]
    pub(crate) fn record(&mut self, error: Nanos) {
        self.errors.saturating_record(error.0.max(1));
        self.late += u64::from(error > LATE);
    }

    /// The number of packets that were measured.
    pub fn packets(&self) -> u64 {
        self.errors.len()
    }

    /// How many of them were more than a millisecond late.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// The delay that `percentile` percent of the packets did not exceed; 100 is the worst.
    pub fn percentile(&self, percentile: f64) -> Nanos {
        Nanos(if self.errors.is_empty() { 0 } else { self.errors.value_at_percentile(percentile) })
    }
}

/// Sets the timer slack of this thread to its minimum: from now on it wakes up when a sleep ends, and not up to 50 us later. Then
/// measures how exact its sleeps are under real-time priority. This takes some 20 ms.
///
/// # Errors
/// Fails if the kernel refuses to change the timer slack.
pub fn sleep_exactly() -> io::Result<Sleep> {
    thread::set_current_timer_slack(NonZeroU64::new(1))?;
    let _priority = RealTimePriority::new(now());
    let mut errors: Vec<_> = (0..SLEEPS)
        .map(|_| {
            let due = now().saturating_add(SLEEP);
            // A signal may end a sleep early, which counts as exact.
            let _ = thread::clock_nanosleep_relative(ClockId::Monotonic, &timespec(SLEEP));
            now().saturating_sub(due)
        })
        .collect();
    errors.sort_unstable();
    let at = |percent: usize| errors[errors.len() * percent / 100];
    Ok(Sleep { p50: at(50), p99: at(99) })
}

/// While this exists, the thread runs before others that are ready, if this user has the rights. Threads and programs that it
/// starts do not inherit this. Without the rights nothing changes, and timing is as exact as other threads allow.
///
/// The thread gets the scheduling policy `SCHED_RR`. The kernel reserves a twentieth of each second for threads without a real-time
/// policy. From a real-time thread that leaves no time to them, it takes that share as one pause of 50 ms. So a thread that has run
/// for most of 100 ms returns to `SCHED_OTHER`, with the highest weight and the shortest slices, until it has less to do: it then
/// waits more often, but each time for less than 50 ms.
#[derive(Debug)]
pub(crate) struct RealTimePriority {
    /// When the present period of 100 ms ends, and how long the thread had run when it started.
    period_end: Nanos,
    ran_before: Nanos,
    /// When to check again.
    next_check: Nanos,
    is_real_time: bool,
    /// The nice value before, which is restored in the end.
    nice: i32,
}

/// The period over which the thread's running time is judged.
const PERIOD: Nanos = Nanos(100_000_000);
/// How often to check.
const CHECK_INTERVAL: Nanos = Nanos(1_000_000);
/// A thread that has run for this much of a period loses the priority.
const LOSE_ABOVE: Nanos = Nanos(85_000_000);
/// A thread that has run for less than this in a whole period regains the priority.
const REGAIN_BELOW: Nanos = Nanos(60_000_000);
/// The length of a time slice without real-time priority.
const SLICE: Nanos = Nanos(100_000);

impl RealTimePriority {
    /// Starts at time `at`, which is now.
    pub fn new(at: Nanos) -> Self {
        let nice = getpriority_process(None).unwrap_or(0);
        let mut priority =
            Self { period_end: at, ran_before: thread_time(), next_check: at, is_real_time: false, nice };
        priority.check(at);
        priority
    }

    /// Checks whether the priority has to change, at most once a millisecond. Call it often.
    #[inline]
    pub fn check(&mut self, at: Nanos) {
        if at >= self.next_check {
            self.update(at);
        }
    }

    #[cold]
    fn update(&mut self, at: Nanos) {
        self.next_check = at.saturating_add(CHECK_INTERVAL);
        let now = thread_time();
        let ran = now.saturating_sub(self.ran_before);
        let is_over = at >= self.period_end;
        let is_real_time = wants_priority(self.is_real_time, ran, is_over);
        if is_over {
            (self.period_end, self.ran_before) = (at.saturating_add(PERIOD), now);
        }
        if is_real_time != self.is_real_time {
            self.is_real_time = is_real_time;
            if is_real_time {
                schedule(libc::SCHED_RR, 1, Nanos::ZERO);
            } else {
                schedule(libc::SCHED_OTHER, -20, SLICE);
            }
        }
    }
}

/// Whether a thread should have real-time priority. `ran` is how long it has run in this period, `is_over` whether the period is over, and
/// `had_priority` whether it has the priority now.
fn wants_priority(had_priority: bool, ran: Nanos, is_over: bool) -> bool {
    ran < LOSE_ABOVE && (had_priority || is_over && ran < REGAIN_BELOW)
}

impl Drop for RealTimePriority {
    fn drop(&mut self) {
        schedule(libc::SCHED_OTHER, self.nice, Nanos::ZERO);
    }
}

/// Sets the scheduling policy of this thread. `priority` is the nice value for `SCHED_OTHER`. Without the rights, nothing
/// changes.
fn schedule(policy: libc::c_int, priority: i32, slice: Nanos) {
    let is_other = policy == libc::SCHED_OTHER;
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: policy as u32,
        sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        sched_nice: if is_other { priority } else { 0 },
        sched_priority: if is_other { 0 } else { priority as u32 },
        sched_runtime: slice.0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the call only reads `attributes`, and changes nothing but the scheduling of this thread.
    #[allow(unsafe_code, reason = "rustix has no function for this call")]
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_needs_a_whole_processor_loses_priority_until_it_needs_less() {
        let decide = |had_priority, ms: u64, is_over| wants_priority(had_priority, Nanos(ms * 1_000_000), is_over);
        // It loses the priority at once, and not only when the period is over.
        assert!(decide(true, 84, false) && !decide(true, 85, false) && !decide(true, 100, true));
        // It regains the priority only at the end of a period: before, the rest of the period is unknown.
        assert!(!decide(false, 0, false) && decide(false, 59, true) && !decide(false, 60, true));
        assert!(decide(true, 70, true) && !decide(false, 70, true));
    }
}
