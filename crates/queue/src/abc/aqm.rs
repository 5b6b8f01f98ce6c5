//! The activity AQM: it accepts or drops a packet by its activity and the length of the queue (section 3.3).

use super::Average;
use queuescope_wire::Nanos;

/// The thresholds of the activity AQM of a port. Lengths are in packets. Defaults are those of section 6.1.3.
///
/// ```
/// use queuescope_queue::ActivityAqmParams;
///
/// let params = ActivityAqmParams::default();
/// assert_eq!(params.drop_threshold(3.0, 3.0), 20.0, "an average sender");
/// assert_eq!(params.drop_threshold(3.5, 3.0), 12.0);
/// assert_eq!(params.drop_threshold(9.0, 3.0), 6.0, "never below Q_min");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActivityAqmParams {
    /// Q_min: a packet that finds at most this many packets is accepted, whatever its activity. 6.
    pub least: f64,
    /// Q_base: a packet of average activity that finds more packets than this is dropped. 20.
    pub base: f64,
    /// gamma: an activity that is higher by 1 lowers the threshold by this much. 16.
    pub gamma: f64,
    /// M_AA: the memory over which the activity of accepted packets is averaged. 0.3 s.
    pub memory: Nanos,
}

impl Default for ActivityAqmParams {
    fn default() -> Self {
        Self { least: 6.0, base: 20.0, gamma: 16.0, memory: Nanos(300_000_000) }
    }
}

impl ActivityAqmParams {
    /// `T_drop(A) = max(Q_min, Q_base - gamma (A - A_avg))`, equation 2.
    #[inline]
    pub fn drop_threshold(&self, activity: f64, average: f64) -> f64 {
        self.least.max(self.base - self.gamma * (activity - average))
    }
}

/// The state of the activity AQM of a port.
///
/// ```
/// use queuescope_queue::{ActivityAqm, ActivityAqmParams};
/// use queuescope_wire::Nanos;
///
/// let params = ActivityAqmParams::default();
/// let mut aqm = ActivityAqm::default();
/// aqm.accepted(2.0, Nanos::ZERO, &params);
/// assert!(aqm.accepts(2.0, 20, &params));
/// assert!(!aqm.accepts(3.0, 20, &params), "it is twice as active as the average");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ActivityAqm {
    average: Average,
}

impl ActivityAqm {
    /// Whether a packet that finds `queue` packets is accepted. It is dropped if there are more than its threshold. The
    /// first packet counts as average.
    #[inline]
    pub fn accepts(&self, activity: f64, queue: u64, params: &ActivityAqmParams) -> bool {
        let average = self.average.value().unwrap_or(activity);
        queue as f64 <= params.drop_threshold(activity, average)
    }

    /// Adds an accepted packet to the average.
    #[inline]
    pub fn accepted(&mut self, activity: f64, now: Nanos, params: &ActivityAqmParams) {
        self.average.record(activity, now, params.memory);
    }

    /// A_avg: the average activity of accepted packets; `None` before the first.
    #[inline]
    pub fn average(&self) -> Option<f64> {
        self.average.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn thresholds_by_hand() {
        let params = ActivityAqmParams::default();
        for (activity, average, threshold) in
            [(11.0, 11.0, 20.0), (11.5, 11.0, 12.0), (12.0, 11.0, 6.0), (10.0, 11.0, 36.0), (-3.0, -2.5, 28.0)]
        {
            assert_eq!(params.drop_threshold(activity, average), threshold, "{activity} {average}");
        }
        let mut aqm = ActivityAqm::default();
        // The first is the average: accepted up to the base.
        assert!(aqm.accepts(50.0, 20, &params) && !aqm.accepts(50.0, 21, &params));
        aqm.accepted(11.0, Nanos(1), &params);
        assert_eq!(aqm.average(), Some(11.0));
        assert!(aqm.accepts(11.5, 12, &params) && !aqm.accepts(11.5, 13, &params));
        assert!(aqm.accepts(99.0, 6, &params) && !aqm.accepts(99.0, 7, &params));
        assert!(aqm.accepts(10.0, 36, &params) && !aqm.accepts(10.0, 37, &params));
    }

    proptest! {
        /// Without congestion no packet is dropped. A packet that is accepted would also be accepted with a lower
        /// activity or a shorter queue.
        #[test]
        fn the_less_active_is_accepted_where_the_more_active_is(
            samples in prop::collection::vec(-10.0..30.0f64, 0..10), a in -10.0..30.0f64, b in -10.0..30.0f64, queue in 0..60u64
        ) {
            let params = ActivityAqmParams::default();
            let mut aqm = ActivityAqm::default();
            for (n, sample) in samples.iter().enumerate() {
                aqm.accepted(*sample, Nanos(n as u64 * 100_000_000), &params);
            }
            prop_assert!(queue > 6 || aqm.accepts(a, queue, &params));
            // The average does not exist before the first packet, so each packet counts as average.
            let comparable = !samples.is_empty();
            prop_assert!(!comparable || !aqm.accepts(a.max(b), queue, &params) || aqm.accepts(a.min(b), queue, &params));
            prop_assert!(!aqm.accepts(a, queue + 1, &params) || aqm.accepts(a, queue, &params));
        }
    }
}
