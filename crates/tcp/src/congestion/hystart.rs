//! Leaving slow start before it overflows the queue: HyStart (Ha and Rhee, *Taming the Elephants: New TCP Slow Start*,
//! 2011; as in Linux and ns-3) and HyStart++ (RFC 9406).
//!
//! HyStart looks for two signs in each round trip. Either its ACKs have arrived close together for as long as the empty
//! path takes (the *train* has the length of the path), or the smallest of the first few round-trip times exceeds the
//! smallest ever (the *delay* rises). HyStart++ looks for the second sign relative to the round trip before, and then
//! grows slowly for a few round trips to check it.
//!
//! Linux and ns-3 differ in these parameters:
//! - The delay may rise by an eighth of the smallest, 4 to 16 ms (the paper, Linux), or by all of it, 4 ms to 1 s
//!   (ns-3).
//! - The train is as long as half the smallest round-trip time, the one-way delay (the paper, and Linux unless the
//!   sender paces), or as all of it (ns-3).
//! - All times of a round trip count for its minimum, which is judged from the ninth on (Linux), or only the first
//!   eight count (ns-3).
//! - The ACK that ends a round trip is the first of the next (Linux since 5.6) or the last of it (ns-3).
//! - ACKs are judged in slow start, or whenever the window in force is not above the threshold, so also in recovery:
//!   then, if HyStart had found no end of slow start before, the threshold drops to what the reduction has left (ns-3).
//!
//! Linux allows for up to a millisecond of GSO bursts in the train of a paced sender; there are none here.

use super::Ack;
use super::common::{Round, RoundEnd};
use queuescope_wire::Nanos;

/// When HyStart leaves slow start. The default follows Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HyStartParams {
    /// Whether a long train of ACKs is a sign.
    pub train: bool,
    /// Whether a rise of the delay is a sign.
    pub delay: bool,
    /// Smaller windows are not judged, in segments: 16.
    pub low_window: u64,
    /// The largest distance between ACKs of a train: 2 ms.
    pub train_spacing: Nanos,
    /// The train is as long as the smallest round-trip time divided by this: 2.
    pub train_divisor: u64,
    /// How many round-trip times are measured before the delay is judged: 8.
    pub samples: u32,
    /// Whether later ones also count for the minimum.
    pub later_samples: bool,
    /// The delay may rise by the smallest round-trip time divided by this: 8.
    pub delay_divisor: u64,
    /// The smallest allowed rise: 4 ms.
    pub least_rise: Nanos,
    /// The largest allowed rise: 16 ms.
    pub largest_rise: Nanos,
    /// Whether the ACK that ends a round trip is judged as its last, not as the first of the next.
    pub judges_before_round: bool,
    /// Whether ACKs are judged whenever the window in force is not above the threshold, not only in slow start.
    pub judges_reductions: bool,
}

const MILLISECOND: u64 = 1_000_000;

impl Default for HyStartParams {
    fn default() -> Self {
        Self::linux()
    }
}

impl HyStartParams {
    /// Those of Linux's `tcp_cubic` for a sender without pacing.
    pub fn linux() -> Self {
        Self {
            train: true,
            delay: true,
            low_window: 16,
            train_spacing: Nanos(2 * MILLISECOND),
            train_divisor: 2,
            samples: 8,
            later_samples: true,
            delay_divisor: 8,
            least_rise: Nanos(4 * MILLISECOND),
            largest_rise: Nanos(16 * MILLISECOND),
            judges_before_round: false,
            judges_reductions: false,
        }
    }

    /// Those of ns-3 3.37's `TcpCubic`.
    pub fn ns3() -> Self {
        Self {
            train_divisor: 1,
            later_samples: false,
            delay_divisor: 1,
            largest_rise: Nanos(1_000 * MILLISECOND),
            judges_before_round: true,
            judges_reductions: true,
            ..Self::linux()
        }
    }

    /// How far the delay may rise above the smallest before slow start ends.
    #[inline]
    pub fn rise(&self, smallest: Nanos) -> Nanos {
        // Not `clamp`, which panics if the caller's bounds are crossed.
        (Nanos(smallest.0 / self.delay_divisor.max(1))).min(self.largest_rise).max(self.least_rise)
    }
}

/// Why slow start ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Train,
    Delay,
}

/// HyStart in one slow start.
#[derive(Debug, Clone)]
pub(super) struct HyStart {
    params: HyStartParams,
    round: Round,
    began: Nanos,
    last_ack: Nanos,
    smallest: Nanos,
    samples: u32,
    found: bool,
}

impl HyStart {
    pub fn new(params: HyStartParams) -> Self {
        let (round, smallest) = (Round::default(), Nanos::MAX);
        Self { params, round, began: Nanos::ZERO, last_ack: Nanos::ZERO, smallest, samples: 0, found: false }
    }

    /// Slow start begins again, after a timeout.
    pub fn restart(&mut self, next: u64, now: Nanos) {
        self.found = false;
        self.round.begin(next);
        self.begin_round(now);
    }

    /// Handles an ACK in slow start. Returns why slow start ends, if it ends now. `path` is the smallest known
    /// round-trip time.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack, rtt: Option<Nanos>, path: Nanos, segments: u64, now: Nanos) -> Option<Exit> {
        if self.found {
            return None;
        }
        if !self.params.judges_before_round {
            self.follow_round(ack, now);
        }
        let exit = if self.params.judges_reductions { None } else { self.judge_window(rtt, path, segments, now) };
        if self.params.judges_before_round {
            self.follow_round(ack, now);
        }
        exit
    }

    /// Handles an ACK, in slow start or not, when the window in force was not above the threshold. Returns a reason if
    /// the window becomes the threshold; always `None` where only slow start is judged.
    #[inline]
    pub fn on_any_ack(&mut self, rtt: Option<Nanos>, path: Nanos, segments: u64, now: Nanos) -> Option<Exit> {
        if self.found || !self.params.judges_reductions {
            return None;
        }
        self.judge_window(rtt, path, segments, now)
    }

    fn judge_window(&mut self, rtt: Option<Nanos>, path: Nanos, segments: u64, now: Nanos) -> Option<Exit> {
        let exit = rtt.filter(|_| segments >= self.params.low_window).and_then(|rtt| self.judge(rtt, path, now));
        self.found = exit.is_some();
        exit
    }

    fn follow_round(&mut self, ack: &Ack, now: Nanos) {
        if self.round.is_over(ack, RoundEnd::Passed) {
            self.begin_round(now);
        }
    }

    fn begin_round(&mut self, now: Nanos) {
        (self.began, self.last_ack) = (now, now);
        (self.smallest, self.samples) = (Nanos::MAX, 0);
    }

    fn judge(&mut self, rtt: Nanos, path: Nanos, now: Nanos) -> Option<Exit> {
        let mut exit = None;
        if now.saturating_sub(self.last_ack) <= self.params.train_spacing {
            self.last_ack = now;
            let length = Nanos(path.0 / self.params.train_divisor.max(1));
            if self.params.train && now.saturating_sub(self.began) > length {
                exit = Some(Exit::Train);
            }
        }
        let counted = self.samples < self.params.samples;
        if counted || self.params.later_samples {
            self.smallest = self.smallest.min(rtt);
        }
        if counted {
            self.samples += 1;
        } else if self.params.delay && self.smallest > path.saturating_add(self.params.rise(path)) {
            exit = exit.or(Some(Exit::Delay));
        }
        exit
    }
}

/// When HyStart++ leaves slow start (RFC 9406 section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HyStartPlusPlusParams {
    /// The smallest rise of the smallest round-trip time over that of the round trip before: `MIN_RTT_THRESH`, 4 ms.
    pub least_rise: Nanos,
    /// The largest rise: `MAX_RTT_THRESH`, 16 ms.
    pub largest_rise: Nanos,
    /// The rise is the round-trip time divided by this: `MIN_RTT_DIVISOR`, 8.
    pub delay_divisor: u64,
    /// How many round-trip times are measured in a round trip before it is judged: `N_RTT_SAMPLE`, 8.
    pub samples: u32,
    /// Conservative slow start grows slower by this factor: `CSS_GROWTH_DIVISOR`, 4.
    pub growth_divisor: u64,
    /// How many round trips conservative slow start lasts, including the one in which it begins: `CSS_ROUNDS`, 5.
    pub rounds: u32,
}

impl Default for HyStartPlusPlusParams {
    fn default() -> Self {
        Self {
            least_rise: Nanos(4 * MILLISECOND),
            largest_rise: Nanos(16 * MILLISECOND),
            delay_divisor: 8,
            samples: 8,
            growth_divisor: 4,
            rounds: 5,
        }
    }
}

/// HyStart++ in the first slow start of a connection.
#[derive(Debug, Clone)]
pub(super) struct HyStartPlusPlus {
    params: HyStartPlusPlusParams,
    round: Round,
    before: Nanos,
    smallest: Nanos,
    samples: u32,
    /// The state of conservative slow start, while in it.
    conservative: Option<Conservative>,
}

#[derive(Debug, Clone, Copy)]
struct Conservative {
    /// The smallest round-trip time when it began.
    baseline: Nanos,
    rounds_left: u32,
}

impl HyStartPlusPlus {
    pub fn new(params: HyStartPlusPlusParams) -> Self {
        let round = Round::default();
        Self { params, round, before: Nanos::MAX, smallest: Nanos::MAX, samples: 0, conservative: None }
    }

    /// By which factor the window grows slower than in slow start.
    #[inline]
    pub fn divisor(&self) -> u64 {
        if self.conservative.is_some() { self.params.growth_divisor.max(1) } else { 1 }
    }

    /// Handles an ACK in slow start. Returns whether slow start ends now.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack, rtt: Option<Nanos>) -> bool {
        if self.round.is_over(ack, RoundEnd::Passed) {
            (self.before, self.smallest, self.samples) = (self.smallest, Nanos::MAX, 0);
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds_left = conservative.rounds_left.saturating_sub(1);
                if conservative.rounds_left == 0 {
                    return true;
                }
            }
        }
        if let Some(rtt) = rtt {
            self.smallest = self.smallest.min(rtt);
            self.samples = self.samples.saturating_add(1);
            self.judge();
        }
        false
    }

    fn judge(&mut self) {
        if self.samples < self.params.samples {
            return;
        }
        match self.conservative {
            // The rise did not last, so it was not a queue of this flow.
            Some(conservative) if self.smallest < conservative.baseline => self.conservative = None,
            Some(_) => {}
            None if self.before == Nanos::MAX => {}
            None => {
                let rise = Nanos(self.before.0 / self.params.delay_divisor.max(1));
                let rise = rise.min(self.params.largest_rise).max(self.params.least_rise);
                if self.smallest >= self.before.saturating_add(rise) {
                    self.conservative =
                        Some(Conservative { baseline: self.smallest, rounds_left: self.params.rounds.max(1) });
                }
            }
        }
    }
}
