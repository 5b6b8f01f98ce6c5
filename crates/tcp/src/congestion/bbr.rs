//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00; Linux's `tcp_bbr`).
//!
//! It models the path by two values: the largest delivery rate of ten round trips, and the smallest round-trip time of
//! ten seconds. It paces at the first, and keeps at most twice their product in flight. To detect changes it paces
//! faster in one phase of eight, then slower to drain the queue that this caused; and every ten seconds it empties the
//! path for a moment.
//!
//! [`BbrParams`] has what the draft leaves out and Linux has, and where ns-3 differs. Choices and deviations:
//! - In the draft and in Linux, the connection is application-limited while the round-trip time is probed. The sender
//!   measures rates here, not the algorithm. So [`Bbr`] treats samples of packets sent during a probe as limited.
//! - Sending resumes from idle if nothing was in flight before and the sender is not in recovery.
//! - When the smallest round-trip time has expired, Linux does not replace it by that of a delayed ACK. This crate does
//!   not know which ACKs were delayed.
//! - Marks are ignored, as in version 1.

pub(super) mod aggregation;
pub(super) mod chance;
mod control;
pub(super) mod filter;
mod params;
mod policer;
pub(super) mod rounds;

pub use aggregation::{AggregationParams, Limit};
pub use params::{AfterRecovery, BbrParams, Quantum};
pub use policer::PolicerParams;

use super::common::{LARGEST_WINDOW, ReductionStats, Timeouts};
use super::{Ack, Congestion, CongestionControl, Ns3, RateSample};
use aggregation::Aggregation;
use chance::PhaseDraws;
use filter::MaxFilter;
use policer::{Observation, Policer, PolicerChange};
use queuescope_wire::{Nanos, Rate};
use rounds::PacketRounds;

/// BBR.
#[derive(Debug, Clone)]
pub struct Bbr {
    params: BbrParams,
    mss: u64,
    initial_window: u64,
    mode: BbrMode,
    random: PhaseDraws,
    window: u64,
    threshold: u64,
    /// The pacing rate, in bytes per second.
    pacing: f64,
    pacing_gain: f64,
    /// Whether the pacing rate was computed from a round-trip time yet.
    paced_by_rtt: bool,
    /// The largest delivery rate, in bytes per second.
    bandwidth: MaxFilter,
    path: Option<Nanos>,
    path_at: Nanos,
    lost: u64,
    rounds: PacketRounds,
    full: FullPipe,
    cycle_index: usize,
    cycle_began: Nanos,
    probe: Option<ProbeRtt>,
    /// Whether the round-trip time was ever probed.
    probed: bool,
    idle_restart: bool,
    repair: Repair,
    /// The window before recovery or before the probe of the round-trip time, in bytes.
    saved_window: u64,
    aggregation: Option<Aggregation>,
    policer: Option<Policer>,
    timeouts: Timeouts,
    stats: BbrStats,
}

/// What BBR does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BbrMode {
    /// Doubles its rate in each round trip.
    Startup,
    /// Drains the queue that startup left.
    Drain,
    /// Cycles through its gains.
    ProbeBandwidth,
    /// Empties the path to measure its round-trip time.
    ProbeRtt,
}

/// Counters of BBR.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BbrStats {
    /// Losses, marks and timeouts.
    pub events: ReductionStats,
    /// Round trips.
    pub rounds: u64,
    /// Probes of the round-trip time.
    pub probes: u64,
}

/// The search for the end of the bandwidth's growth.
#[derive(Debug, Clone, Copy, Default)]
struct FullPipe {
    is_full: bool,
    bandwidth: f64,
    rounds: u32,
}

/// A probe of the round-trip time.
#[derive(Debug, Clone, Copy, Default)]
struct ProbeRtt {
    /// When it may end; set once little enough is in flight.
    end: Option<Nanos>,
    round_passed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repair {
    No,
    /// In recovery. Packets are conserved in the first round trip.
    Recovery {
        conserves: bool,
    },
    Timeout,
}

impl Bbr {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. `seed` determines the phases in
    /// which cycles begin.
    pub fn new(params: BbrParams, mss: u32, initial_window: u64, seed: u64) -> Self {
        let mss = u64::from(mss.max(1));
        let initial_window = initial_window.clamp(mss, LARGEST_WINDOW);
        let mut bbr = Self {
            params,
            mss,
            initial_window,
            mode: BbrMode::Startup,
            random: PhaseDraws::new(params.draws, seed),
            window: initial_window,
            threshold: u64::MAX,
            pacing: 0.0,
            pacing_gain: params.high_gain,
            paced_by_rtt: false,
            bandwidth: MaxFilter::new(params.bandwidth_rounds, params.late_third),
            path: None,
            path_at: Nanos::ZERO,
            lost: 0,
            rounds: PacketRounds::default(),
            full: FullPipe::default(),
            cycle_index: 0,
            cycle_began: Nanos::ZERO,
            probe: None,
            probed: false,
            idle_restart: false,
            repair: Repair::No,
            saved_window: initial_window,
            aggregation: params.aggregation.map(|params| Aggregation::new(params, mss)),
            policer: params.policer.map(Policer::new),
            timeouts: Timeouts::default(),
            stats: BbrStats::default(),
        };
        bbr.set_first_pacing(Nanos(1_000_000));
        bbr
    }

    /// The counters so far.
    pub fn stats(&self) -> &BbrStats {
        &self.stats
    }

    /// The current mode.
    pub fn mode(&self) -> BbrMode {
        self.mode
    }

    /// The pacing gain.
    pub fn pacing_gain(&self) -> f64 {
        self.pacing_gain
    }

    /// The largest delivery rate, or that of a policer; `None` before the first sample.
    pub fn bandwidth(&self) -> Option<Rate> {
        to_rate(self.used_bandwidth())
    }

    /// The smallest round-trip time.
    pub fn smallest_rtt(&self) -> Option<Nanos> {
        self.path
    }

    fn used_bandwidth(&self) -> f64 {
        let policed = self.policer.as_ref().and_then(Policer::bandwidth);
        policed.unwrap_or(self.bandwidth.largest())
    }

    /// A rate, rounded as the parameters say.
    fn rounded(&self, rate: f64) -> f64 {
        if self.params.whole_bits { (rate * 8.0).floor() / 8.0 } else { rate }
    }

    fn least_window(&self) -> u64 {
        self.params.least_window.saturating_mul(self.mss)
    }

    fn take_rate(&mut self, ack: &Ack, now: Nanos) {
        self.rounds.started = false;
        let Some(sample) = ack.rate else {
            self.rounds.delivered = self.rounds.delivered.saturating_add(ack.delivered);
            return;
        };
        self.rounds.delivered = self.rounds.delivered.max(sample.delivered);
        self.lost = self.lost.saturating_add(sample.lost);
        if sample.interval == Nanos::ZERO {
            return;
        }
        if self.rounds.take(&sample) {
            self.stats.rounds += 1;
            if let Repair::Recovery { conserves } = &mut self.repair {
                *conserves = false;
            }
        }
        let limited = self.rounds.is_limited(&sample);
        self.look_for_policer(&sample, limited, now);
        let rate = self.rounded(sample.amount as f64 * 1e9 / sample.interval.0 as f64);
        if !limited || rate >= self.bandwidth.largest() {
            self.bandwidth.update(self.rounds.count, rate);
        }
    }

    fn look_for_policer(&mut self, sample: &RateSample, application_limited: bool, now: Nanos) {
        let Some(policer) = &mut self.policer else {
            return;
        };
        let seen = Observation {
            delivered: self.rounds.delivered,
            lost: self.lost,
            loses: sample.lost > 0,
            application_limited,
            round_start: self.rounds.started,
            probing: self.mode == BbrMode::ProbeBandwidth,
        };
        if policer.observe(&seen, now) == PolicerChange::Over {
            self.enter_probe_bandwidth(now);
        }
    }

    fn follow_cycle(&mut self, ack: &Ack, now: Nanos) {
        if self.mode != BbrMode::ProbeBandwidth {
            return;
        }
        let loses = ack.rate.is_some_and(|sample| sample.lost > 0);
        let passed = self.path.is_some_and(|path| now.saturating_sub(self.cycle_began) > path);
        let gain = self.params.cycle[self.cycle_index];
        let largest = self.bandwidth.largest();
        let is_over = if gain > 1.0 {
            passed && (loses || ack.in_flight_before >= self.in_flight(largest, gain, 0))
        } else if gain < 1.0 {
            passed || ack.in_flight_before <= self.in_flight(largest, 1.0, 0)
        } else {
            passed
        };
        if is_over {
            self.next_phase(now);
        }
    }

    fn next_phase(&mut self, now: Nanos) {
        self.cycle_began = now;
        self.cycle_index = (self.cycle_index + 1) % self.params.cycle.len();
    }

    fn check_full_pipe(&mut self, ack: &Ack) {
        let limited = ack.rate.is_some_and(|sample| self.rounds.is_limited(&sample));
        if self.full.is_full || !self.rounds.started || limited {
            return;
        }
        let largest = self.bandwidth.largest();
        if largest >= self.full.bandwidth * self.params.full_growth {
            (self.full.bandwidth, self.full.rounds) = (largest, 0);
            return;
        }
        self.full.rounds += 1;
        self.full.is_full = self.full.rounds >= self.params.full_rounds;
    }

    fn check_drain(&mut self, ack: &Ack, now: Nanos) {
        if self.mode == BbrMode::Startup && self.full.is_full {
            self.mode = BbrMode::Drain;
            self.threshold = self.in_flight(self.bandwidth.largest(), 1.0, 0);
        }
        if self.mode == BbrMode::Drain && ack.in_flight <= self.in_flight(self.bandwidth.largest(), 1.0, 0) {
            self.enter_probe_bandwidth(now);
        }
    }

    fn enter_probe_bandwidth(&mut self, now: Nanos) {
        self.mode = BbrMode::ProbeBandwidth;
        let phases = self.params.cycle.len();
        let back = self.random.below(self.params.cycle_starts) as usize;
        self.cycle_index = (phases - 1).saturating_sub(back);
        self.next_phase(now);
    }

    fn follow_path(&mut self, ack: &Ack, now: Nanos) {
        if self.path.is_none() {
            self.path_at = now;
        }
        let expired = now > self.path_at.saturating_add(self.params.rtt_window);
        if let Some(rtt) = self.params.rtt.of(ack) {
            let smaller = self.path.is_none_or(|path| rtt < path || (self.params.equal_renews && rtt == path));
            if smaller || expired {
                (self.path, self.path_at) = (Some(rtt), now);
            }
        }
        if expired && !self.idle_restart && self.mode != BbrMode::ProbeRtt {
            // The order matters, as in the other implementations: a larger window that was saved before stays.
            self.mode = BbrMode::ProbeRtt;
            self.save_window();
            // Until this probe counts, ns-3 remembers that a round trip passed in the previous one.
            let round_passed = self.params.restarts_once_probed && self.probed;
            self.probe = Some(ProbeRtt { end: None, round_passed });
            self.stats.probes += 1;
            self.probed = true;
        }
        if self.mode == BbrMode::ProbeRtt {
            self.probe_rtt(ack, now);
        }
        if ack.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, ack: &Ack, now: Nanos) {
        if self.params.probe_limits_samples {
            self.rounds.limit(ack.in_flight);
        }
        let least = self.least_window();
        let round_start = self.rounds.started;
        let Some(probe) = &mut self.probe else {
            return;
        };
        if probe.end.is_none() {
            if ack.in_flight <= least {
                *probe = ProbeRtt { end: Some(now.saturating_add(self.params.probe_rtt)), round_passed: false };
                self.rounds.begin();
            }
            return;
        }
        probe.round_passed |= round_start;
        self.check_probe_over(now);
    }

    fn check_probe_over(&mut self, now: Nanos) {
        let over = self.probe.is_some_and(|probe| probe.round_passed && probe.end.is_none_or(|end| now > end));
        if !over {
            return;
        }
        self.probe = None;
        self.path_at = now;
        self.window = self.window.max(self.saved_window);
        if self.full.is_full {
            self.enter_probe_bandwidth(now);
        } else {
            self.mode = BbrMode::Startup;
        }
    }

    fn save_window(&mut self) {
        // The window is small after a timeout, but ns-3 saves it nevertheless.
        let repaired = match self.repair {
            Repair::No => true,
            Repair::Timeout => self.params.after_recovery == AfterRecovery::Threshold,
            Repair::Recovery { .. } => false,
        };
        let unspoilt = repaired && self.mode != BbrMode::ProbeRtt;
        self.saved_window = if unspoilt { self.window } else { self.saved_window.max(self.window) };
    }
}

impl CongestionControl for Bbr {
    fn on_established(&mut self, rtt: Option<Nanos>, now: Nanos) {
        self.path_at = now;
        if let Some(aggregation) = &mut self.aggregation {
            aggregation.restart(now);
        }
        if let Some(rtt) = rtt.filter(|rtt| rtt.0 > 0) {
            self.path = Some(rtt);
            self.paced_by_rtt = true;
            self.set_first_pacing(rtt);
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, now: Nanos) {
        self.timeouts.on_ack(ack);
        self.take_rate(ack, now);
        if let Some(aggregation) = &mut self.aggregation
            && ack.delivered > 0
            && ack.rate.is_some_and(|sample| sample.interval > Nanos::ZERO)
        {
            let largest = self.bandwidth.largest();
            aggregation.on_ack(ack.delivered, largest, self.window, self.rounds.started, now);
        }
        self.follow_cycle(ack, now);
        self.check_full_pipe(ack);
        self.check_drain(ack, now);
        self.follow_path(ack, now);
        let (pacing_gain, window_gain) = self.gains();
        self.pacing_gain = pacing_gain;
        self.set_pacing(pacing_gain, ack.smoothed_rtt);
        self.set_window(ack, window_gain);
    }

    fn on_congestion(&mut self, congestion: &Congestion, _now: Nanos) {
        self.stats.events.count(congestion);
        self.save_window();
        if congestion.lost == 0 {
            return;
        }
        self.repair = Repair::Recovery { conserves: true };
        let left = congestion.in_flight.saturating_sub(congestion.lost);
        // Packets are conserved from here on if recovery begins a round trip. In ns-3 the window may lack these
        // deliveries.
        let delivered = if self.params.recovery_begins_round { 0 } else { congestion.delivered };
        self.window = left.saturating_add(delivered.max(self.mss)).min(LARGEST_WINDOW);
        if self.params.recovery_begins_round {
            self.rounds.begin();
        }
        if self.params.after_recovery == AfterRecovery::Threshold {
            // ns-3 saves the window twice, the second time with the deliveries.
            self.saved_window = self.saved_window.max(self.window);
        }
    }

    fn on_timeout(&mut self, _congestion: &Congestion, _now: Nanos) {
        self.stats.events.timeouts += 1;
        if self.timeouts.is_first() {
            self.save_window();
        }
        self.repair = Repair::Timeout;
        self.window = self.mss;
        if self.params.timeout_resets_growth {
            self.full.bandwidth = 0.0;
        }
    }

    fn on_recovered(&mut self, _now: Nanos) {
        let repair = std::mem::replace(&mut self.repair, Repair::No);
        match (repair, self.params.after_recovery) {
            (Repair::No, _) | (Repair::Timeout, AfterRecovery::Threshold) => {}
            (Repair::Recovery { .. }, AfterRecovery::Threshold) => {
                self.window = self.threshold.min(u64::from(u32::MAX));
            }
            (_, AfterRecovery::Restored) => self.window = self.window.max(self.saved_window),
        }
    }

    #[inline]
    fn on_sent(&mut self, bytes: u64, in_flight: u64, now: Nanos) {
        let may = if self.params.restarts_once_probed {
            self.probed
        } else {
            self.repair == Repair::No && self.rounds.delivered > 0
        };
        if in_flight > bytes || !may {
            return;
        }
        self.idle_restart = true;
        if let Some(aggregation) = &mut self.aggregation {
            aggregation.restart(now);
        }
        match self.mode {
            BbrMode::ProbeBandwidth => self.set_pacing(1.0, Nanos::ZERO),
            BbrMode::ProbeRtt => self.check_probe_over(now),
            BbrMode::Startup | BbrMode::Drain => {}
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        self.window
    }

    #[inline]
    fn slow_start_threshold(&self) -> u64 {
        self.threshold
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        to_rate(self.pacing)
    }

    fn rules_recovery(&self) -> bool {
        true
    }
}

impl Ns3 for Bbr {
    fn forget_timeouts(&mut self) {
        self.timeouts = Timeouts::default();
    }

    fn hold(&mut self, _bytes: u64) {}

    fn restart(&mut self, initial_window: u64) {
        (self.window, self.threshold) = (initial_window, u64::MAX);
    }
}

/// Converts bytes per second to a rate.
pub(super) fn to_rate(bytes_per_second: f64) -> Option<Rate> {
    Rate::from_bits_per_second((bytes_per_second * 8.0) as u64)
}
