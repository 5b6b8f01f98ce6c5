//! Pauses before another try.

use queuescope_wire::Nanos;

/// Pauses that double, from a tenth of a second to half a minute. Each is shortened by up to a half, so that many agents do not
/// come back at the same time.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Nanos,
    longest: Nanos,
    next: Nanos,
}

const FIRST: Nanos = Nanos(100_000_000);
const LONGEST: Nanos = Nanos(30_000_000_000);

impl Default for Backoff {
    fn default() -> Self {
        Self::between(FIRST, LONGEST)
    }
}

impl Backoff {
    /// Other pauses than usual.
    pub fn between(first: Nanos, longest: Nanos) -> Self {
        Self { first, longest, next: first }
    }

    /// The next pause. `chance` is any number, at random.
    pub fn pause(&mut self, chance: u64) -> Nanos {
        let whole = self.next;
        self.next = Nanos(whole.0 * 2).min(self.longest);
        let half = whole.0 / 2;
        Nanos(whole.0 - chance % (half + 1))
    }

    /// It worked: the next pause is short again.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, FIRST, LONGEST};
    use queuescope_wire::Nanos;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = Backoff::default();
        let pauses: Vec<_> = (0..12).map(|_| backoff.pause(0)).collect();
        assert_eq!(pauses[..3], [FIRST, Nanos(2 * FIRST.0), Nanos(4 * FIRST.0)]);
        assert_eq!(pauses[9..], [LONGEST; 3]);
        backoff.reset();
        assert_eq!(backoff.pause(FIRST.0 / 2), Nanos(FIRST.0 / 2), "at least half of it");
        assert!((0..1_000).all(|chance| backoff.clone().pause(chance * 7_919_777) >= FIRST));
    }
}
