//! The rate at which a queue drains, measured while the backlog is large enough (RFC 8033 section 5.2, in the form of
//! appendix B).
//!
//! The text of section 5.2 ends a measurement at every departure that has not reached the threshold, so no measurement
//! would succeed. Appendix B ends it where the threshold is reached, and so does this.

use queuescope_wire::{ByteCount, Nanos};

#[derive(Debug, Clone)]
pub(super) struct DepartureRate {
    threshold: u64,
    /// The weight of a new measurement in the average: the threshold over 2^16, at most 1.
    weight: f64,
    /// The mean time that `threshold` bytes take, in nanoseconds; 0 before the first measurement.
    mean_time: f64,
    /// Bytes that have left since the measurement started, and the time of its start.
    measuring: Option<(u64, Nanos)>,
}

impl DepartureRate {
    pub fn new(threshold: ByteCount) -> Self {
        let threshold = threshold.0.max(1);
        Self { threshold, weight: (threshold as f64 / 65_536.0).min(1.0), mean_time: 0.0, measuring: None }
    }

    /// Records that a packet has left, with a backlog of `behind`.
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

    /// How long `backlog` takes to drain; 0 before the first measurement.
    pub fn delay(&self, backlog: ByteCount) -> Nanos {
        Nanos((backlog.0 as f64 * self.mean_time / self.threshold as f64) as u64)
    }

    /// Whether a measurement has ended.
    pub fn is_known(&self) -> bool {
        self.mean_time > 0.0
    }

    /// PIE becomes active: discards the average and starts a measurement.
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
    fn a_new_measurement_has_a_weight_of_a_quarter() {
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
