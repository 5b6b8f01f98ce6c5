//! Counts of actions, and a limit of the notes about those that were refused.

use queuescope_wire::Nanos;

/// Refusals in a minute that are noted one by one.
const NOTED: u64 = 10;
/// A minute.
const MINUTE: Nanos = Nanos(60_000_000_000);

/// What became of actions that the coordinator asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActCounts {
    /// Actions that changed packets, with new times of earlier ones.
    pub applied: u64,
    /// The same as dry runs.
    pub dry: u64,
    /// Refused, or not possible.
    pub refused: u64,
    /// Refusals since the minute began, and when that was.
    recent: u64,
    since: Nanos,
}

impl ActCounts {
    pub(super) fn accept(&mut self, dry: bool) {
        if dry {
            self.dry += 1;
        } else {
            self.applied += 1;
        }
    }

    /// Counts a refusal. Returns whether it is to be noted.
    pub(super) fn refuse(&mut self, now: Nanos) -> bool {
        self.refused += 1;
        self.recent += 1;
        if self.recent == 1 {
            self.since = now;
        }
        self.recent <= NOTED
    }

    /// The number of refusals of the last minute that were not noted, when it is over.
    pub(super) fn more_refused(&mut self, now: Nanos) -> Option<u64> {
        if now.saturating_sub(self.since) < MINUTE {
            return None;
        }
        let more = std::mem::take(&mut self.recent).saturating_sub(NOTED);
        (more > 0).then_some(more)
    }
}
