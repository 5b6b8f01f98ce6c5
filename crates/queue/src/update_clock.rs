//! A periodic timer that costs nothing while there is nothing to update.

use queuescope_wire::Nanos;

/// The times `origin + n period`. The clock stands still until it is woken, and again once it rests. The grid stays the
/// same, as if the clock had run all the time.
#[derive(Debug, Clone)]
pub(crate) struct UpdateClock {
    period: u64,
    origin: Option<Nanos>,
    next: Option<Nanos>,
}

impl UpdateClock {
    /// Creates a clock on the grid from `origin`, or from the time when it is first woken.
    pub fn new(period: Nanos, origin: Option<Nanos>) -> Self {
        Self { period: period.0.max(1), origin, next: None }
    }

    /// Wakes the clock at `now`, because something has come that may need an update. The next update is at the first
    /// grid time after `now`.
    #[inline]
    pub fn wake(&mut self, now: Nanos) {
        if self.next.is_none() {
            self.next = Some(self.next_grid_time(now));
        }
    }

    /// When the next update is due.
    #[inline]
    pub fn next(&self) -> Option<Nanos> {
        self.next
    }

    /// Records that the update that was due is done.
    pub fn tick(&mut self) {
        self.next = self.next.map(|due| due.saturating_add(Nanos(self.period)));
    }

    /// Stops the clock, because updates change nothing until something comes.
    pub fn rest(&mut self) {
        self.next = None;
    }

    /// The first grid time after `now`.
    fn next_grid_time(&mut self, now: Nanos) -> Nanos {
        let origin = *self.origin.get_or_insert(now);
        if now < origin {
            return origin;
        }
        let past = (now.0 - origin.0) / self.period;
        origin.saturating_add(Nanos((past + 1).saturating_mul(self.period)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_stays_the_same_over_a_rest() {
        let mut clock = UpdateClock::new(Nanos(15), None);
        assert_eq!(clock.next(), None);
        clock.wake(Nanos(100));
        clock.wake(Nanos(101));
        assert_eq!(clock.next(), Some(Nanos(115)));
        clock.tick();
        assert_eq!(clock.next(), Some(Nanos(130)));
        clock.rest();
        assert_eq!(clock.next(), None);
        clock.wake(Nanos(174));
        assert_eq!(clock.next(), Some(Nanos(175)));
        clock.rest();
        clock.wake(Nanos(175));
        assert_eq!(clock.next(), Some(Nanos(190)));
    }

    #[test]
    fn a_grid_may_start_later_than_what_comes() {
        let mut clock = UpdateClock::new(Nanos(15), Some(Nanos(50)));
        clock.wake(Nanos(7));
        assert_eq!(clock.next(), Some(Nanos(50)));
    }
}
