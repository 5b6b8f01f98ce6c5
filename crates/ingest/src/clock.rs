//! Turns the timestamps of a capture into times that never decrease.

use queuescope_sim::Speedup;
use queuescope_wire::Nanos;

/// Turns the times of a capture into arrival times that never decrease.
#[derive(Debug)]
pub struct Clock {
    speedup: Speedup,
    first: Option<Nanos>,
    last: Nanos,
    /// Number of packets with a timestamp before that of the packet before them. They arrive with that packet.
    pub backwards: u64,
    /// The largest step back.
    pub furthest_back: Nanos,
}

impl Clock {
    /// Creates a clock. The first packet starts it.
    pub fn new(speedup: Speedup) -> Self {
        Self { speedup, first: None, last: Nanos::ZERO, backwards: 0, furthest_back: Nanos::ZERO }
    }

    /// The arrival time of a packet that was captured at `time`. A packet without a timestamp arrives with the packet before
    /// it.
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

    /// The arrival times of the first and the last packet.
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
