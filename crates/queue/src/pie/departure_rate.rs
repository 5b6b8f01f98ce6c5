//! How fast a queue drains, measured while enough waits (RFC 8033 section 5.2, in the form of appendix B).
//!
//! The text of section 5.2 ends a measurement at every departure that has not reached the threshold, which would never
//! let one succeed; appendix B ends it where the threshold is reached, and so does this.

use queuescope_wire::{ByteCount, Nanos};

#[derive(Debug, Clone)]
pub(super) struct DepartureRate {
    threshold: u64,
    /// How much of an average a new measurement is: the threshold over 2^16, no more than all.
    weight: f64,
    /// The mean time in nanoseconds that `threshold` bytes take; 0 before the first measurement.
    mean_time: f64,
    /// Bytes that have left since the measurement began, and when that was.
    measuring: Option<(u64, Nanos)>,
}

impl DepartureRate {
    pub fn new(threshold: ByteCount) -> Self {
        let threshold = threshold.0.max(1);
        Self { threshold, weight: (threshold as f64 / 65_536.0).min(1.0), mean_time: 0.0, measuring: None }
    }

    /// A packet has left, and `behind` waits still.
    #[inline]
    pub fn on_departure(&mut self, size: ByteCount, behind: ByteCount, now: Nanos) {
        if let Some((bytes, since)) = self.measuring {
            let bytes = bytes + size.0;
            self.measuring = Some((bytes, since));
            if bytes >= self.threshold {
                let time = now.saturating_sub(since).0 as f64;
                self.mean_time = if self.mean_time == 0.0 {
                    time
                } else {
                    time * self.weight + self.mean_time * (1.0 - self.weight)
                };
                self.measuring = None;
            }
        }
        if self.measuring.is_none() && behind.0 >= self.threshold {
            self.measuring = Some((0, now));
        }
    }

    /// How long `backlog` takes; none at all before the first measurement.
    pub fn delay(&self, backlog: ByteCount) -> Nanos {
        Nanos((backlog.0 as f64 * self.mean_time / self.threshold as f64) as u64)
    }

    /// Whether a measurement has ended.
    pub fn is_known(&self) -> bool {
        self.mean_time > 0.0
    }

    /// PIE becomes active: what was measured is forgotten and a measurement begins.
    pub fn restart(&mut self, now: Nanos) {
        self.mean_time = 0.0;
        self.measuring = Some((0, now));
    }

    /// PIE becomes inactive.
    pub fn stop(&mut self) {
        self.measuring = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_takes_a_quarter_of_each_new_measurement() {
        let mut rate = DepartureRate::new(ByteCount(16_384));
        let mut now = 0;
        let mut drain = |rate: &mut DepartureRate, each: u64, packets: u64, behind: u64| {
            for _ in 0..packets {
                now += each;
                rate.on_departure(ByteCount(1024), ByteCount(behind), Nanos(now));
            }
        };
        drain(&mut rate, 1000, 5, 10_000);
        assert_eq!(rate.delay(ByteCount(16_384)), Nanos(0), "too little waits");
        drain(&mut rate, 1000, 1, 20_000);
        drain(&mut rate, 1000, 15, 20_000);
        assert_eq!(rate.delay(ByteCount(16_384)), Nanos(0), "15 of 16 have left");
        drain(&mut rate, 1000, 1, 20_000);
        assert_eq!(rate.delay(ByteCount(16_384)), Nanos(16_000));
        assert_eq!(rate.delay(ByteCount(1024)), Nanos(1_000));
        drain(&mut rate, 3000, 16, 20_000);
        assert_eq!(rate.delay(ByteCount(16_384)), Nanos(48_000 / 4 + 16_000 * 3 / 4));
    }
}
