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

/// How a key's rate went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trend {
    /// It has nothing in the older window.
    New,
    /// It has so many times as much: at least the factor that was asked for.
    Ramped(f64),
    /// Neither.
    Steady,
}

impl Jump {
    /// The factor that is a jump, if none is asked for. The fastest that a congestion control grows is twofold in a round
    /// trip (slow start, RFC 5681 section 3.1). Where windows are no longer than a round trip, which holds the wait in
    /// the queue, a key with more than twofold from one to the next outruns even that.
    pub const FACTOR: f64 = 2.0;

    /// How much more passed in the newer window; what the paper computes. Negative if less did.
    pub fn difference(&self) -> i128 {
        i128::from(self.newest) - i128::from(self.before)
    }

    /// What to call it, for a key with at least `least` in the newer window: a packet after none is no news. `factor` is
    /// taken to be more than 1.
    pub fn trend(&self, factor: f64, least: u64) -> Trend {
        if !self.known || self.newest == 0 || self.newest < least {
            return Trend::Steady;
        }
        if self.before == 0 {
            return Trend::New;
        }
        let ratio = self.newest as f64 / self.before as f64;
        if ratio > 1.0 && ratio >= factor { Trend::Ramped(ratio) } else { Trend::Steady }
    }
}

/// `new`, `ramped 4x`, `ramped 2.5x`, or nothing at all.
impl std::fmt::Display for Trend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::New => f.pad("new"),
            Self::Ramped(ratio) if *ratio < 9.95 => {
                let text = format!("{ratio:.1}");
                f.pad(&format!("ramped {}x", text.strip_suffix(".0").unwrap_or(&text)))
            }
            Self::Ramped(ratio) => f.pad(&format!("ramped {ratio:.0}x")),
            Self::Steady => f.pad(""),
        }
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
