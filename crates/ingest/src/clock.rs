//! A capture's clock, which must not run back.

use queuescope_sim::Speedup;
use queuescope_wire::Nanos;

/// Turns the times of a capture into arrival times that never decrease.
#[derive(Debug)]
pub struct Clock {
    speedup: Speedup,
    first: Option<Nanos>,
    last: Nanos,
    /// Packets whose time was before that of the packet before them; they are taken to come with that.
    pub backwards: u64,
    /// By how much at most.
    pub furthest_back: Nanos,
}

impl Clock {
    /// A clock that has not started.
    pub fn new(speedup: Speedup) -> Self {
        Self { speedup, first: None, last: Nanos::ZERO, backwards: 0, furthest_back: Nanos::ZERO }
    }

    /// When a packet arrives that was captured at `time`; one without a time comes with the packet before it.
    pub fn arrival(&mut self, time: Option<Nanos>) -> Nanos {
        let time = time.unwrap_or(self.last);
        let first = *self.first.get_or_insert_with(|| {
            self.last = time;
            time
        });
        if time < self.last {
            self.backwards += 1;
            self.furthest_back = self.furthest_back.max(self.last - time);
        } else {
            self.last = time;
        }
        first.saturating_add(self.speedup.apply(self.last - first))
    }

    /// When the first and the last packet arrived.
    pub fn span(&self) -> (Nanos, Nanos) {
        let first = self.first.unwrap_or_default();
        (first, first.saturating_add(self.speedup.apply(self.last.saturating_sub(first))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_runs_back() {
        let mut clock = Clock::new("2".parse().unwrap());
        let arrivals = [100, 300, 200, 250, 500].map(|time| clock.arrival(Some(Nanos(time))).0);
        assert_eq!(arrivals, [100, 200, 200, 200, 300]);
        assert_eq!(clock.arrival(None), Nanos(300));
        assert_eq!((clock.backwards, clock.furthest_back, clock.span()), (2, Nanos(100), (Nanos(100), Nanos(300))));
    }
}
