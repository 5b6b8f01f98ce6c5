//! Rate jumps: the counts of a key in the two newest complete windows (section 3.3, last paragraph).

use super::ConQuest;
use crate::hash::Columns;
use queuescope_wire::Nanos;

/// The counts of a key in the two newest complete windows. The current window is not complete.
///
/// ```
/// use queuescope_sketch::{ConQuest, ConQuestParams, Expiry};
/// use queuescope_wire::{ByteCount, Nanos};
///
/// let params = ConQuestParams::fit("4ms".parse()?, ByteCount(65_536), 4, None, Expiry::Tag)?;
/// let mut sketch = ConQuest::new(params.clone())?;
/// let window = params.window.0;
/// sketch.record(1, 1_000, Nanos(0));
/// sketch.record(1, 9_000, Nanos(window));
/// let jump = sketch.jump(1, Nanos(2 * window));
/// assert!(jump.known);
/// assert_eq!(jump.difference(), 8_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Jump {
    /// The count in the newer window.
    pub newest: u64,
    /// The count in the older window; 0 if it is not kept.
    pub before: u64,
    /// Whether both windows are kept completely. If not, `before` may be 0 although the key is not new. It may also be
    /// 0 in the first windows of a stream; only the caller knows when the stream started.
    pub known: bool,
}

impl Jump {
    /// How much more passed in the newer window, as the paper computes it. Negative if less passed.
    pub fn difference(&self) -> i128 {
        i128::from(self.newest) - i128::from(self.before)
    }
}

impl ConQuest {
    /// Estimates the counts of `key` in the two newest windows that are complete at `now`. `now` must not be before any
    /// recorded packet; if it is in a later window, that window starts. Neither count is underestimated.
    pub fn jump(&mut self, key: u64, now: Nanos) -> Jump {
        if now.0 >= self.end {
            self.rotate(now);
        }
        let known = self.params.kept() >= 3 && self.start.saturating_sub(self.oldest) / 2 >= self.params.window.0;
        Jump { newest: self.in_window(key, 1), before: self.in_window(key, 2), known }
    }

    /// The count of a key in the window of this age: the least over the rows; 0 if the window is not kept.
    fn in_window(&self, key: u64, age: u64) -> u64 {
        let h = self.params.snapshots;
        if age >= self.params.kept() as u64 || age > self.window {
            return 0;
        }
        let counter = ((self.window - age) % h as u64) as usize;
        let columns = Columns::new(key, self.params.seed, self.params.columns);
        let count = |(row, column): (usize, usize)| {
            let place = row * self.params.columns + column;
            let stale = self.tags.get(place).map_or(0, |tag| (self.window as u32).wrapping_sub(*tag));
            if age >= u64::from(stale) { self.counters[place * h + counter] } else { 0 }
        };
        (0..self.params.rows).zip(columns).map(count).min().unwrap_or(0).into()
    }
}
