//! The largest value of the last `window` round trips, in constant memory (Kathleen Nichols' windowed filter).
//!
//! It keeps the best value and two younger ones that may follow it. The second is from the later three quarters of the
//! window, the third from its later half; in ns-3, the third is from half a window after the second. So the result is
//! the true maximum unless that was overtaken more than twice within a window.

/// The largest value of a window.
#[derive(Debug, Clone, Copy)]
pub(in crate::congestion) struct MaxFilter {
    window: u64,
    /// Whether the third is taken half a window after the second, in place of after the best.
    late_third: bool,
    /// The result before any value.
    initial: f64,
    /// Best, second and third, by value; the first is the oldest.
    best: [Sample; 3],
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sample {
    at: u64,
    value: f64,
}

impl MaxFilter {
    /// A filter without values. Its result is zero.
    pub fn new(window: u64, late_third: bool) -> Self {
        Self { window, late_third, initial: 0.0, best: [Sample::default(); 3] }
    }

    /// Forgets all values. Until the next one, the result is `value`.
    pub fn begin(&mut self, value: f64) {
        self.initial = value;
        self.best = [Sample { at: 0, value }; 3];
    }

    /// The largest value.
    #[inline]
    pub fn largest(&self) -> f64 {
        self.best[0].value
    }

    /// Adds a value. `at` must not be less than that of earlier values.
    #[inline]
    pub fn update(&mut self, at: u64, value: f64) {
        let new = Sample { at, value };
        let [first, second, third] = self.best;
        if value >= first.value || first.value == self.initial || at - third.at > self.window {
            self.best = [new; 3];
            return;
        }
        if value >= second.value {
            self.best = [first, new, new];
        } else if value >= third.value {
            self.best[2] = new;
        }
        self.expire(new);
    }

    fn expire(&mut self, new: Sample) {
        let [first, second, third] = self.best;
        let age = new.at - first.at;
        if age > self.window {
            self.best = [second, third, new];
            if new.at - second.at > self.window {
                self.best = [third, new, new];
            }
        } else if second.at == first.at && age > self.window / 4 {
            self.best = [first, new, new];
        } else if third.at == second.at {
            let since = if self.late_third { new.at - second.at } else { age };
            if since > self.window / 2 {
                self.best[2] = new;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The result is never above the true maximum of a window and the round trip before it, and never below the
        /// latest value. While values do not fall, it is exact.
        #[test]
        fn the_largest_is_of_the_window(
            steps in prop::collection::vec((0..3u64, 0..100u32), 1..80), late: bool,
        ) {
            let mut filter = MaxFilter::new(10, late);
            let (mut at, mut seen) = (0, Vec::new());
            for (later, value) in steps {
                at += later;
                seen.push((at, f64::from(value)));
                filter.update(at, f64::from(value));
                let in_window = seen.iter().filter(|(then, _)| at - then <= 10).map(|(_, value)| *value);
                let exact = in_window.fold(0.0, f64::max);
                prop_assert!(filter.largest() <= exact, "{} > {exact}", filter.largest());
                prop_assert!(filter.largest() >= f64::from(value));
            }
        }
    }

    #[test]
    fn the_largest_is_forgotten_after_the_window() {
        let mut filter = MaxFilter::new(10, false);
        filter.update(0, 9.0);
        for at in 1..=10 {
            filter.update(at, 5.0);
            assert_eq!(filter.largest(), 9.0);
        }
        filter.update(11, 4.0);
        assert_eq!(filter.largest(), 5.0);
    }
}
