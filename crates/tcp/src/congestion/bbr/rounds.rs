//! Round trips counted in packets, and samples that say little because a probe of the round-trip time kept the window
//! small. Both versions of BBR use them.

use crate::congestion::RateSample;

/// A round trip ends when a packet is acknowledged that was sent after everything delivered at its start.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::congestion) struct PacketRounds {
    /// All bytes delivered so far.
    pub delivered: u64,
    end: u64,
    /// Round trips so far.
    pub count: u64,
    /// Whether the last sample began one.
    pub started: bool,
    /// Samples of packets that were sent while the delivered bytes were in this range are limited by a probe.
    limited: Option<(u64, u64)>,
}

impl PacketRounds {
    /// Begins a round trip without counting it.
    pub fn begin(&mut self) {
        self.end = self.delivered;
    }

    /// Takes a sample with a rate. Returns whether it began a round trip.
    #[inline]
    pub fn take(&mut self, sample: &RateSample) -> bool {
        self.started = sample.prior_delivered >= self.end;
        if self.started {
            self.begin();
            self.count += 1;
        }
        self.started
    }

    /// A probe of the round-trip time is under way: what is in flight is limited by it.
    pub fn limit(&mut self, in_flight: u64) {
        let until = self.delivered.saturating_add(in_flight);
        let from = self.limited.filter(|(_, to)| self.delivered <= *to).map_or(self.delivered, |(from, _)| from);
        self.limited = Some((from, until));
    }

    /// Whether a sample is limited by the application, or by a probe.
    #[inline]
    pub fn is_limited(&self, sample: &RateSample) -> bool {
        let by_probe = self.limited.is_some_and(|(from, to)| (from..=to).contains(&sample.prior_delivered));
        sample.application_limited || by_probe
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_wire::Nanos;

    fn sample(delivered: u64, prior_delivered: u64) -> RateSample {
        let (amount, interval) = (delivered - prior_delivered, Nanos(1));
        RateSample { delivered, prior_delivered, amount, interval, application_limited: false, lost: 0 }
    }

    #[test]
    fn a_round_trip_ends_with_the_first_packet_sent_in_it() {
        let mut rounds = PacketRounds::default();
        let mut starts = Vec::new();
        // Four packets are always in flight.
        for delivered in 1..=12u64 {
            rounds.delivered = delivered;
            if rounds.take(&sample(delivered, delivered.saturating_sub(4))) {
                starts.push(delivered);
            }
        }
        assert_eq!((starts.as_slice(), rounds.count), (&[1, 5, 9][..], 3));
    }

    #[test]
    fn what_was_sent_during_a_probe_is_limited() {
        let mut rounds = PacketRounds { delivered: 100, ..PacketRounds::default() };
        rounds.limit(4);
        rounds.delivered = 103;
        rounds.limit(4);
        for (prior, limited) in [(99, false), (100, true), (107, true), (108, false)] {
            assert_eq!(rounds.is_limited(&sample(200, prior)), limited, "{prior}");
        }
        // A later probe begins a range of its own.
        rounds.delivered = 300;
        rounds.limit(4);
        assert!(!rounds.is_limited(&sample(400, 107)));
    }
}
