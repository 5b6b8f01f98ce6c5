//! A budget of processor time for recording.

use queuescope_wire::Nanos;

/// The time between two measurements.
const BETWEEN: Nanos = Nanos(100_000_000);
/// Less than this part of the budget in several measurements one after another: twice as many packets fit.
const LOW: f64 = 0.4;
const TIMES: u32 = 5;
/// The least share of packets that is kept is one of this number.
const MOST: u64 = 1 << 16;

/// Decides how many packets are recorded, so that a process takes at most a share of a processor: one of 1, 2, 4 and so on.
///
/// ```
/// use queuescope_recording::CpuBudget;
/// use queuescope_wire::Nanos;
///
/// let mut budget = CpuBudget::new(0.15);
/// let second = |tenths: u64| Nanos(tenths * 100_000_000);
/// assert_eq!(budget.measured(second(0), Nanos(0)), None);
/// // 30 % of a processor: from now on, one of two packets is recorded.
/// assert_eq!(budget.measured(second(1), Nanos(30_000_000)), Some(2));
/// ```
#[derive(Debug, Clone)]
pub struct CpuBudget {
    share: f64,
    one_of: u64,
    /// The last measurement: the time, and the processor time.
    last: Option<(Nanos, Nanos)>,
    low: u32,
}

impl CpuBudget {
    /// A budget of this share of a processor: 0.15 is 15 %.
    pub fn new(share: f64) -> Self {
        Self { share, one_of: 1, last: None, low: 0 }
    }

    /// Takes the current time and the processor time that the process has used, of any steady clocks. Returns `Some(n)` if one of `n`
    /// packets should be recorded from now on, and another number was before. Calls that follow the last one within 100 ms change nothing.
    pub fn measured(&mut self, now: Nanos, used: Nanos) -> Option<u64> {
        let Some((then, before)) = self.last else {
            self.last = Some((now, used));
            return None;
        };
        let passed = now.saturating_sub(then);
        if passed < BETWEEN {
            return None;
        }
        self.last = Some((now, used));
        let share = used.saturating_sub(before).as_secs_f64() / passed.as_secs_f64();
        self.low = if share < LOW * self.share { self.low + 1 } else { 0 };
        let one_of = if share > self.share {
            (2 * self.one_of).min(MOST)
        } else if self.low >= TIMES {
            self.low = 0;
            (self.one_of / 2).max(1)
        } else {
            self.one_of
        };
        (one_of != self.one_of).then(|| {
            self.one_of = one_of;
            one_of
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A process whose packets cost as much each, beside a fixed share, settles below the budget if that is possible, and records
        /// more than a quarter of what fits.
        #[test]
        fn it_settles_near_the_budget(load in 0.0f64..5.0, fixed in 0.0f64..0.05, share in 0.1f64..0.9) {
            let mut budget = CpuBudget::new(share);
            let (mut one_of, mut used) = (1, 0.0);
            let mut shares = Vec::new();
            for step in 0..400u64 {
                if let Some(new) = budget.measured(Nanos(step * BETWEEN.0), Nanos((used * 1e9) as u64)) {
                    one_of = new;
                }
                let now = fixed + load / one_of as f64;
                shares.push((now, one_of));
                used += now * BETWEEN.as_secs_f64();
            }
            for (now, one_of) in &shares[200..] {
                prop_assert!(*now <= share + 1e-6, "{now} of {share}, one of {one_of}");
                prop_assert!(*one_of == 1 || fixed + load / *one_of as f64 >= 0.2 * share, "{now} of {share}, one of {one_of}");
            }
        }
    }

    #[test]
    fn it_sheds_fast_and_comes_back_slowly() {
        let mut budget = CpuBudget::new(0.1);
        let mut used = 0;
        let mut step = 0;
        let mut run = |percent: u64| {
            used += percent * BETWEEN.0 / 100;
            step += 1;
            budget.measured(Nanos(step * BETWEEN.0), Nanos(used))
        };
        assert_eq!((run(0), run(100), run(50), run(11)), (None, Some(2), Some(4), Some(8)));
        assert_eq!((run(10), run(5)), (None, None));
        let back: Vec<_> = (0..15).filter_map(|_| run(1)).collect();
        assert_eq!(back, [4, 2, 1]);
        assert!((0..20).all(|_| run(1).is_none()));
    }

    #[test]
    fn it_never_sheds_everything() {
        let mut budget = CpuBudget::new(0.01);
        let all: Vec<_> =
            (0..40).filter_map(|step| budget.measured(Nanos(step * BETWEEN.0), Nanos(step * BETWEEN.0))).collect();
        assert_eq!(all.last(), Some(&MOST));
    }
}
