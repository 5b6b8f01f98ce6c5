//! How exact a link in user space is, and how exact it can be here.

use hdrhistogram::Histogram;
use queuescope_live::{now, thread_time, timespec};
use queuescope_wire::Nanos;
use rustix::process::getpriority_process;
use rustix::thread::{self, ClockId};
use std::io;
use std::num::NonZeroU64;

/// The longest lateness that is told apart from longer ones.
const LONGEST: u64 = 60_000_000_000;
/// A packet that is later than this was held up by the machine.
pub(crate) const LATE: Nanos = Nanos(1_000_000);
/// Sleeps that are measured, each this long.
const SLEEPS: u32 = 200;
const SLEEP: Nanos = Nanos(100_000);

/// How much later than due packets were given to whom they are for.
#[derive(Debug, Clone)]
pub struct Timing {
    errors: Histogram<u64>,
    late: u64,
}

/// How much later than asked for a thread of this machine wakes up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sleep {
    /// The median.
    pub p50: Nanos,
    /// Of a hundred, the second worst.
    pub p99: Nanos,
}

impl Default for Timing {
    fn default() -> Self {
        let errors = Histogram::new_with_bounds(1, LONGEST, 3).expect("these bounds are allowed");
        Self { errors, late: 0 }
    }
}

impl Timing {
    /// One packet.
    #[inline]
    pub(crate) fn record(&mut self, error: Nanos) {
        self.errors.saturating_record(error.0.max(1));
        self.late += u64::from(error > LATE);
    }

    /// Packets that were measured.
    pub fn packets(&self) -> u64 {
        self.errors.len()
    }

    /// Of those, how many were more than a millisecond late.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// So many of a hundred were at most this late; 100 is the worst.
    pub fn percentile(&self, percentile: f64) -> Nanos {
        Nanos(if self.errors.is_empty() { 0 } else { self.errors.value_at_percentile(percentile) })
    }
}

/// From now on this thread wakes up when it is to, and not up to 50 us later; sleeps some 20 ms, in pieces, as a thread that goes
/// first, and says how exact that is.
///
/// # Errors
/// If the kernel does not let it.
pub fn sleep_exactly() -> io::Result<Sleep> {
    thread::set_current_timer_slack(NonZeroU64::new(1))?;
    let _first = GoesFirst::begin(now());
    let mut errors: Vec<_> = (0..SLEEPS)
        .map(|_| {
            let due = now().saturating_add(SLEEP);
            // A signal that ends it early makes it exact.
            let _ = thread::clock_nanosleep_relative(ClockId::Monotonic, &timespec(SLEEP));
            now().saturating_sub(due)
        })
        .collect();
    errors.sort_unstable();
    let at = |percent: usize| errors[errors.len() * percent / 100];
    Ok(Sleep { p50: at(50), p99: at(99) })
}

/// As long as it is there, the thread goes before others that are ready to run, if this user may; threads and programs that it
/// begins do not. Who may not is as exact as others let it be.
///
/// It has the policy `SCHED_RR`. The kernel keeps a twentieth of each second for threads without such a policy, and takes it in one
/// piece of 50 ms from one that leaves it nothing. So a thread that has run for most of a tenth of a second is one of those from then
/// on, with the most weight and the shortest turns, until it has less to do: it waits for less than that, and more often.
#[derive(Debug)]
pub(crate) struct GoesFirst {
    /// When the tenth of a second that is looked at ends, and how long the thread had run when it began.
    until: Nanos,
    ran: Nanos,
    /// When it is to be looked at again.
    look: Nanos,
    is_first: bool,
    /// The nice value that it had, and has again in the end.
    nice: i32,
}

/// What it looks at, and how often; who runs for longer than that, of it, goes first no more, and who runs for less does so again.
const PIECE: Nanos = Nanos(100_000_000);
const TURN: Nanos = Nanos(1_000_000);
const MUCH: Nanos = Nanos(85_000_000);
const LITTLE: Nanos = Nanos(60_000_000);
/// How long a turn is where it does not go first.
const SLICE: Nanos = Nanos(100_000);

impl GoesFirst {
    /// From now on, which is `at`.
    pub fn begin(at: Nanos) -> Self {
        let nice = getpriority_process(None).unwrap_or(0);
        let mut first = Self { until: at, ran: thread_time(), look: at, is_first: false, nice };
        first.turn(at);
        first
    }

    /// To be called often.
    #[inline]
    pub fn turn(&mut self, at: Nanos) {
        if at >= self.look {
            self.look(at);
        }
    }

    #[cold]
    fn look(&mut self, at: Nanos) {
        self.look = at.saturating_add(TURN);
        let now = thread_time();
        let ran = now.saturating_sub(self.ran);
        let is_over = at >= self.until;
        let is_first = goes_first(self.is_first, ran, is_over);
        if is_over {
            (self.until, self.ran) = (at.saturating_add(PIECE), now);
        }
        if is_first != self.is_first {
            self.is_first = is_first;
            if is_first { schedule(libc::SCHED_RR, 1, Nanos::ZERO) } else { schedule(libc::SCHED_OTHER, -20, SLICE) }
        }
    }
}

/// Whether a thread goes first that ran for so long of what is looked at, which may be over, and went first or not.
fn goes_first(went: bool, ran: Nanos, is_over: bool) -> bool {
    ran < MUCH && (went || is_over && ran < LITTLE)
}

impl Drop for GoesFirst {
    fn drop(&mut self) {
        schedule(libc::SCHED_OTHER, self.nice, Nanos::ZERO);
    }
}

/// Tells the kernel how this thread is scheduled: with a priority, which is its nice value where it does not go first; who may not stays
/// as it is.
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
    // SAFETY: the call reads what it is given, and changes nothing but how this thread is scheduled.
    #[allow(unsafe_code, reason = "there is no other way to it")]
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_needs_a_whole_processor_gives_way_until_it_needs_less() {
        let decide = |went, ms: u64, is_over| goes_first(went, Nanos(ms * 1_000_000), is_over);
        // At once, not only when the time is over.
        assert!(decide(true, 84, false) && !decide(true, 85, false) && !decide(true, 100, true));
        // Before it is over nobody knows how little it will be.
        assert!(!decide(false, 0, false) && decide(false, 59, true) && !decide(false, 60, true));
        assert!(decide(true, 70, true) && !decide(false, 70, true));
    }
}
