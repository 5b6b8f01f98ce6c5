//! Rate jumps: what a key had in the two newest whole windows (section 3.3, last paragraph).

use super::ConQuest;
use crate::hash::Columns;
use queuescope_wire::Nanos;

/// What a key had in the two newest whole windows. Neither is the one that is being written, of which nobody knows what
/// it will hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Jump {
    /// In the newer one.
    pub newest: u64,
    /// In the older one; nothing if it is not kept.
    pub before: u64,
    /// Whether both windows are kept whole. Where they are not, a key is not new for having nothing before. When the
    /// stream began is the caller's to know: in its first two windows everything is new.
    pub known: bool,
}

impl Jump {
    /// How much more passed in the newer window; what the paper computes. Negative if less did.
    pub fn difference(&self) -> i128 {
        i128::from(self.newest) - i128::from(self.before)
    }
}

impl ConQuest {
    /// What `key` had in the two newest windows that are whole at `now`, which is no earlier than anything recorded.
    /// Neither is underestimated. Asking in a later window begins that window.
    pub fn jump(&mut self, key: u64, now: Nanos) -> Jump {
        if now.0 >= self.end {
            self.rotate(now);
        }
        let known = self.params.kept() >= 3 && self.start.saturating_sub(self.oldest) / 2 >= self.params.window.0;
        Jump { newest: self.in_window(key, 1), before: self.in_window(key, 2), known }
    }

    /// What the window of this age holds of a key, if it is kept: the least over the rows.
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
