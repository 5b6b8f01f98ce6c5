//! A limit of things a minute.

use queuescope_wire::Nanos;
use std::collections::VecDeque;

/// Allows at most a number of things in any minute.
///
/// ```
/// use queuescope_fleet::act::Minute;
/// use queuescope_wire::Nanos;
///
/// let mut minute = Minute::new(2);
/// let second = 1_000_000_000;
/// let taken = [0, 1, 59, 60, 60].map(|at| minute.take(Nanos(at * second)));
/// assert_eq!(taken, [true, true, false, true, false]);
/// ```
#[derive(Debug, Clone)]
pub struct Minute {
    most: usize,
    /// When the last ones were.
    taken: VecDeque<Nanos>,
}

/// A minute.
const LENGTH: Nanos = Nanos(60_000_000_000);

impl Minute {
    /// A limit of `most` things.
    pub fn new(most: u32) -> Self {
        Self { most: most as usize, taken: VecDeque::new() }
    }

    /// Whether one more is allowed now; then it counts.
    pub fn take(&mut self, now: Nanos) -> bool {
        let is_free = self.is_free(now);
        if is_free {
            self.taken.push_back(now);
        }
        is_free
    }

    /// What was taken at this time was not used: it does not count.
    pub fn give_back(&mut self, at: Nanos) {
        if let Some(place) = self.taken.iter().rposition(|taken| *taken == at) {
            self.taken.remove(place);
        }
    }

    /// Whether one more is allowed now.
    pub fn is_free(&mut self, now: Nanos) -> bool {
        while self.taken.front().is_some_and(|at| now.saturating_sub(*at) >= LENGTH) {
            self.taken.pop_front();
        }
        self.taken.len() < self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No minute has more than the limit, and nothing is refused that would have been within it.
        #[test]
        fn no_minute_has_more(most in 0u32..5, steps in prop::collection::vec(0u64..40, 1..60)) {
            let (mut minute, mut now, mut taken) = (Minute::new(most), 0, Vec::<u64>::new());
            for step in steps {
                now += step * 1_000_000_000;
                let recent = taken.iter().filter(|at| now - **at < LENGTH.0).count();
                prop_assert_eq!(minute.take(Nanos(now)), recent < most as usize);
                if recent < most as usize {
                    taken.push(now);
                }
            }
        }
    }
}
