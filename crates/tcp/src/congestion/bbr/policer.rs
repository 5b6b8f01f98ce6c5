//! Detects a token-bucket policer on the path (Linux's `tcp_bbr`; draft-cardwell-iccrg-bbr-congestion-control-00 leaves
//! it out). If two intervals with much loss have the same bandwidth, that is taken for the policer's, and BBR sends no
//! faster for a while.

use queuescope_wire::Nanos;

/// When a policer is assumed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolicerParams {
    /// The minimum length of an interval, in round trips: 4. An interval more than four times as long is abandoned.
    pub rounds: u32,
    /// The lost bytes of an interval must be at least this fraction of its delivered bytes: 50/256.
    pub loss: f64,
    /// The bandwidths of two intervals must differ by at most this fraction: 1/8.
    pub ratio: f64,
    /// Or by at most this, in bytes per second: 500.
    pub difference: f64,
    /// How many round trips a policer is assumed for: 48.
    pub used_rounds: u32,
}

impl Default for PolicerParams {
    fn default() -> Self {
        Self { rounds: 4, loss: 50.0 / 256.0, ratio: 1.0 / 8.0, difference: 500.0, used_rounds: 48 }
    }
}

/// The result of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PolicerChange {
    Nothing,
    /// The policer is no longer assumed.
    Over,
}

/// The search for a policer.
#[derive(Debug, Clone)]
pub(super) struct Policer {
    params: PolicerParams,
    in_stretch: bool,
    used: bool,
    /// The bandwidth of the last interval, in bytes per second; zero without one.
    bandwidth: f64,
    rounds: u32,
    began: Nanos,
    delivered: u64,
    lost: u64,
}

/// What the search learns from an ACK.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observation {
    /// All bytes delivered, and all bytes lost, so far.
    pub delivered: u64,
    pub lost: u64,
    /// Whether this ACK revealed losses.
    pub loses: bool,
    pub application_limited: bool,
    pub round_start: bool,
    /// Whether the gain cycle is running.
    pub probing: bool,
}

impl Policer {
    pub fn new(params: PolicerParams) -> Self {
        let (bandwidth, began) = (0.0, Nanos::ZERO);
        Self { params, in_stretch: false, used: false, bandwidth, rounds: 0, began, delivered: 0, lost: 0 }
    }

    /// The policer's bandwidth in bytes per second, while a policer is assumed.
    #[inline]
    pub fn bandwidth(&self) -> Option<f64> {
        self.used.then_some(self.bandwidth)
    }

    #[inline]
    pub fn observe(&mut self, seen: &Observation, now: Nanos) -> PolicerChange {
        if self.used {
            self.rounds += u32::from(seen.probing && seen.round_start);
            if self.rounds < self.params.used_rounds {
                return PolicerChange::Nothing;
            }
            self.give_up(seen, now);
            return PolicerChange::Over;
        }
        if !self.in_stretch {
            if seen.loses {
                self.begin(seen, now);
                self.in_stretch = true;
            }
            return PolicerChange::Nothing;
        }
        if seen.application_limited {
            self.give_up(seen, now);
            return PolicerChange::Nothing;
        }
        self.rounds += u32::from(seen.round_start);
        if self.rounds > 4 * self.params.rounds {
            self.give_up(seen, now);
        } else if self.rounds >= self.params.rounds && seen.loses {
            self.judge(seen, now);
        }
        PolicerChange::Nothing
    }

    /// An interval of enough round trips ends with a loss.
    fn judge(&mut self, seen: &Observation, now: Nanos) {
        let delivered = seen.delivered.saturating_sub(self.delivered) as f64;
        let lost = seen.lost.saturating_sub(self.lost) as f64;
        let time = now.saturating_sub(self.began);
        if delivered == 0.0 || lost < self.params.loss * delivered || time < Nanos(1_000_000) {
            return;
        }
        let bandwidth = delivered / time.as_secs_f64();
        let apart = (bandwidth - self.bandwidth).abs();
        if self.bandwidth > 0.0 && (apart <= self.params.ratio * self.bandwidth || apart <= self.params.difference) {
            self.bandwidth = (self.bandwidth + bandwidth) / 2.0;
            (self.used, self.rounds) = (true, 0);
        } else {
            self.bandwidth = bandwidth;
            self.begin(seen, now);
        }
    }

    fn begin(&mut self, seen: &Observation, now: Nanos) {
        (self.began, self.delivered, self.lost, self.rounds) = (now, seen.delivered, seen.lost, 0);
    }

    fn give_up(&mut self, seen: &Observation, now: Nanos) {
        (self.used, self.in_stretch, self.bandwidth) = (false, false, 0.0);
        self.begin(seen, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips of 10 ms with 10 kB delivered in each, of which a part is lost.
    fn run(rounds: u64, lost_in_each: u64) -> (Policer, u64) {
        let mut policer = Policer::new(PolicerParams::default());
        let mut used = 0;
        for round in 1..=rounds {
            let seen = Observation {
                delivered: round * 10_000,
                lost: round * lost_in_each,
                loses: lost_in_each > 0,
                application_limited: false,
                round_start: true,
                probing: true,
            };
            policer.observe(&seen, Nanos(round * 10_000_000));
            used += u64::from(policer.bandwidth().is_some());
        }
        (policer, used)
    }

    #[test]
    fn the_same_bandwidth_twice_with_a_fifth_lost_is_a_policer() {
        // The first interval begins with the first loss and ends four round trips later; the second ends four round
        // trips after that.
        assert_eq!(run(8, 2_000).0.bandwidth(), None);
        assert_eq!(run(9, 2_000).0.bandwidth(), Some(1e6));
    }

    #[test]
    fn a_policer_is_assumed_for_48_round_trips() {
        // It starts with the 9th and is given up 48 later; the 58th begins an interval, the 66th ends the second.
        let (policer, used) = run(65, 2_000);
        assert_eq!((policer.bandwidth(), used), (None, 48));
        assert_eq!(run(66, 2_000).1, 49);
    }

    #[test]
    fn little_loss_is_not_a_policer() {
        assert_eq!(run(100, 1_900).1, 0);
        assert_eq!(run(100, 0).1, 0);
    }
}
