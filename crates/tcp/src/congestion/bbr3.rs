//! BBR version 3 (draft-ietf-ccwg-bbr, as of August 2026; Google's `tcp_bbr` version 3 for Linux).
//!
//! As [version 1](super::Bbr), it models the path by the largest delivery rate and the smallest round-trip time, and paces
//! by the first. It differs in what it does about losses:
//! - A *long-term bound* of what is in flight is learnt while it probes for bandwidth: where a round trip loses more than
//!   2 % of its data, that much was too much. Each probe raises it carefully, by 1, 2, 4, ... segments in successive
//!   round trips. In between, 15 % of it stay free for others.
//! - *Short-term bounds* of bandwidth and data in flight follow the losses of other times: each round trip with losses
//!   reduces them to what was delivered, but not below 70 %. The next probe forgets them.
//! - It probes every 2 to 3 s, or after as many round trips as Reno takes to grow by the window (at most 63), so that
//!   Reno and CUBIC get a share. A probe goes *down* (0.9 of the bandwidth), *cruises* (1), *refills* the pipe (1) for a
//!   round trip, and then goes *up* (1.25) until losses or a plateau of the bandwidth end it.
//! - The round-trip time is probed every 5 s, with half of the bandwidth-delay product in flight.
//!
//! Choices and deviations:
//! - The sender reports how many bytes an ACK found lost, not which packets. The loss rate is that of the packet that the
//!   ACK's sample is about, as in the draft's first form of it; a lost packet is noticed with a packet sent after it.
//!   For the count of separate losses in startup, each ACK that reports some counts once, as in Google's version.
//! - Of packets sent with the same ACK, what was in flight at the last one counts for all.
//! - Spurious losses are not detected by the sender, so nothing is undone.
//! - A mark is treated as a loss, as the draft requires of connections with ECN; it says no more. The response to marks
//!   of Google's version is left out.
//! - The maximum of extra acknowledged data covers 5 to 10 round trips, and in startup 1 to 2. The draft: 10 and 1.
//! - Sending resumes from idle if nothing was in flight before and the sender is not in recovery.
//! - Neither ns-3 nor Linux has version 3: see [`Bbr3Params::ns3`] and [`Bbr3Params::linux`].

mod control;
mod losses;
mod params;
mod path;
mod probe;
mod sent;

pub use params::Bbr3Params;

use super::bbr::aggregation::Aggregation;
use super::bbr::chance::PhaseDraws;
use super::bbr::filter::MaxFilter;
use super::bbr::rounds::PacketRounds;
use super::bbr::to_rate;
use super::common::{LARGEST_WINDOW, ReductionStats, Timeouts};
use super::{Ack, Congestion, CongestionControl, Ns3, Phase};
use losses::Latest;
use path::ProbeRtt;
use probe::Cycle;
use queuescope_wire::{Nanos, Rate};
use sent::SentRecords;

/// BBR version 3.
#[derive(Debug, Clone)]
pub struct Bbr3 {
    params: Bbr3Params,
    mss: u64,
    initial_window: u64,
    state: Bbr3State,
    random: PhaseDraws,
    window: u64,
    threshold: u64,
    /// The pacing rate, in bytes per second.
    pacing: f64,
    pacing_gain: f64,
    window_gain: f64,
    paced_by_rtt: bool,
    rounds: PacketRounds,
    /// All bytes found lost.
    lost: u64,
    sent: SentRecords,
    /// The largest delivery rate of this cycle and the one before, in bytes per second, and the number of the cycle.
    bandwidths: MaxFilter,
    cycles: u64,
    /// The bandwidth that is used, in bytes per second.
    bandwidth: f64,
    /// The smallest round-trip time of ten seconds, and of the time since the last probe of it.
    path: Option<Nanos>,
    path_at: Nanos,
    recent_path: Option<Nanos>,
    recent_path_at: Nanos,
    full: FullPipe,
    drain_began: u64,
    long_in_flight: Option<u64>,
    short_in_flight: Option<u64>,
    short_bandwidth: Option<f64>,
    latest: Latest,
    cycle: Cycle,
    probe_rtt: Option<ProbeRtt>,
    idle_restart: bool,
    /// Whether losses are being repaired.
    repairs: bool,
    saved_window: u64,
    aggregation: Aggregation,
    timeouts: Timeouts,
    stats: Bbr3Stats,
}

/// What BBR version 3 does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bbr3State {
    /// Doubles its rate in each round trip.
    Startup,
    /// Drains the queue that startup left.
    Drain,
    /// Drains the queue that a probe for bandwidth left, and lets others grow.
    Down,
    /// Sends at the bandwidth, and leaves room.
    Cruise,
    /// Fills the pipe before it probes for bandwidth.
    Refill,
    /// Probes for bandwidth.
    Up,
    /// Empties the path to measure its round-trip time.
    ProbeRtt,
}

/// Counters of BBR version 3.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bbr3Stats {
    /// Losses, marks and timeouts.
    pub events: ReductionStats,
    /// Round trips.
    pub rounds: u64,
    /// Probes for bandwidth.
    pub probes: u64,
    /// Probes that lost too much.
    pub too_high: u64,
    /// Probes of the round-trip time.
    pub rtt_probes: u64,
}

/// What an ACK says, and what is known of the packet that its sample is about.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    /// Bytes per second; zero if it was not measured.
    rate: f64,
    /// Bytes delivered since the packet was sent; how many had been delivered then.
    delivered: u64,
    prior_delivered: u64,
    limited: bool,
    /// Bytes newly delivered, and newly found lost.
    acked: u64,
    newly_lost: u64,
    /// Bytes found lost since the packet was sent, and bytes in flight then.
    lost: u64,
    sent_in_flight: u64,
    /// Bytes in flight before and after the ACK.
    in_flight_before: u64,
    in_flight: u64,
    window_limited: bool,
    recovers: bool,
}

/// The search for the end of the bandwidth's growth.
#[derive(Debug, Clone, Copy, Default)]
struct FullPipe {
    /// Whether the pipe was ever full, and whether it is since the search began.
    reached: bool,
    now: bool,
    bandwidth: f64,
    rounds: u32,
}

impl FullPipe {
    fn reset(&mut self, bandwidth: f64) {
        (self.now, self.bandwidth, self.rounds) = (false, bandwidth, 0);
    }
}

impl Bbr3State {
    /// Whether it is one of the cycle's.
    pub fn is_in_cycle(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Whether it sends as fast as the path may allow, so that losses belong to the probe.
    fn accelerates(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

impl Bbr3 {
    /// Starts with a window of `initial_window` bytes and segments of `mss` bytes. `seed` determines the times between
    /// probes.
    pub fn new(params: Bbr3Params, mss: u32, initial_window: u64, seed: u64) -> Self {
        let mss = u64::from(mss.max(1));
        let initial_window = initial_window.clamp(mss, LARGEST_WINDOW);
        let mut bbr = Self {
            params,
            mss,
            initial_window,
            state: Bbr3State::Startup,
            random: PhaseDraws::new(params.draws, seed),
            window: initial_window,
            threshold: u64::MAX,
            pacing: 0.0,
            pacing_gain: params.startup_gain,
            window_gain: params.window_gain,
            paced_by_rtt: false,
            rounds: PacketRounds::default(),
            lost: 0,
            sent: SentRecords::default(),
            // A rate of the cycle before the last does not count.
            bandwidths: MaxFilter::new(1, false),
            cycles: 0,
            bandwidth: 0.0,
            path: None,
            path_at: Nanos::ZERO,
            recent_path: None,
            recent_path_at: Nanos::ZERO,
            full: FullPipe::default(),
            drain_began: 0,
            long_in_flight: None,
            short_in_flight: None,
            short_bandwidth: None,
            latest: Latest::default(),
            cycle: Cycle::new(),
            probe_rtt: None,
            idle_restart: false,
            repairs: false,
            saved_window: 0,
            aggregation: Aggregation::new(params.aggregation, mss),
            timeouts: Timeouts::default(),
            stats: Bbr3Stats::default(),
        };
        bbr.aggregation.set_rounds(1);
        bbr.set_first_pacing(Nanos(1_000_000));
        bbr
    }

    /// The counters so far.
    pub fn stats(&self) -> &Bbr3Stats {
        &self.stats
    }

    /// The current state.
    pub fn state(&self) -> Bbr3State {
        self.state
    }

    /// The pacing gain.
    pub fn pacing_gain(&self) -> f64 {
        self.pacing_gain
    }

    /// The gain of the window.
    pub fn window_gain(&self) -> f64 {
        self.window_gain
    }

    /// The bandwidth in use: the largest delivery rate, or its short-term bound; `None` before the first sample.
    pub fn bandwidth(&self) -> Option<Rate> {
        to_rate(self.bandwidth)
    }

    /// The largest delivery rate; `None` before the first sample.
    pub fn largest_bandwidth(&self) -> Option<Rate> {
        to_rate(self.bandwidths.largest())
    }

    /// The smallest round-trip time.
    pub fn smallest_rtt(&self) -> Option<Nanos> {
        self.path
    }

    /// The long-term bound of the bytes in flight, if losses have set one.
    pub fn long_term_bound(&self) -> Option<u64> {
        self.long_in_flight
    }

    /// The short-term bound of the bytes in flight, if losses have set one since the last probe.
    pub fn short_term_bound(&self) -> Option<u64> {
        self.short_in_flight
    }

    fn enter(&mut self, state: Bbr3State) {
        self.state = state;
        (self.pacing_gain, self.window_gain) = self.gains();
    }

    /// What this ACK says. Updates all sums of deliveries and losses.
    fn sample(&mut self, ack: &Ack) -> Sample {
        let mut sample = Sample {
            acked: ack.delivered,
            in_flight_before: ack.in_flight_before,
            in_flight: ack.in_flight,
            window_limited: ack.window_limited,
            recovers: ack.phase == Phase::Recovery,
            ..Sample::default()
        };
        let Some(rate) = ack.rate else {
            self.rounds.delivered = self.rounds.delivered.saturating_add(ack.delivered);
            return sample;
        };
        self.rounds.delivered = self.rounds.delivered.max(rate.delivered);
        self.lost = self.lost.saturating_add(rate.lost);
        let sent = self.sent.find(rate.prior_delivered).unwrap_or_default();
        if rate.interval > Nanos::ZERO {
            sample.rate = rate.amount as f64 * 1e9 / rate.interval.0 as f64;
        }
        sample.delivered = rate.amount;
        sample.prior_delivered = rate.prior_delivered;
        sample.limited = self.rounds.is_limited(&rate);
        sample.newly_lost = rate.lost;
        sample.lost = self.lost.saturating_sub(sent.lost);
        sample.sent_in_flight = sent.in_flight;
        sample
    }

    /// Takes the rate of a sample, and counts round trips.
    fn take_rate(&mut self, ack: &Ack, sample: &Sample) {
        self.rounds.started = false;
        self.latest.round_started = false;
        let Some(rate) = ack.rate.filter(|_| sample.rate > 0.0) else { return };
        self.latest.bandwidth = self.latest.bandwidth.max(sample.rate);
        self.latest.in_flight = self.latest.in_flight.max(sample.delivered);
        if sample.prior_delivered >= self.latest.round_end {
            self.latest.round_end = self.rounds.delivered;
            self.latest.round_started = true;
        }
        if self.rounds.take(&rate) {
            self.stats.rounds += 1;
            self.cycle.rounds = self.cycle.rounds.saturating_add(1);
        }
        if !sample.limited || sample.rate >= self.bandwidths.largest() {
            self.bandwidths.update(self.cycles, sample.rate);
        }
    }

    fn check_full_pipe(&mut self, sample: &Sample) {
        if self.full.now || !self.rounds.started || sample.limited {
            return;
        }
        if sample.rate >= self.full.bandwidth * self.params.full_growth {
            self.full.reset(sample.rate);
            return;
        }
        self.full.rounds += 1;
        self.full.now = self.full.rounds >= self.params.full_rounds;
        self.full.reached |= self.full.now;
    }

    /// Whether a round trip of recovery in startup has lost too much.
    fn check_startup_losses(&mut self, sample: &Sample) {
        if self.latest.round_started {
            let many = self.latest.losses >= self.params.full_losses;
            if self.state == Bbr3State::Startup && sample.recovers && many && self.is_too_high(sample) {
                self.full.reached = true;
                let product = self.in_flight(self.bandwidths.largest(), 1.0);
                self.long_in_flight = Some(self.latest.in_flight.max(product));
            }
            self.latest.losses = 0;
        }
    }

    fn check_startup_and_drain(&mut self, sample: &Sample, now: Nanos) {
        if self.state == Bbr3State::Startup && self.full.reached {
            self.enter(Bbr3State::Drain);
            self.drain_began = self.rounds.count;
            self.threshold = self.in_flight(self.bandwidths.largest(), 1.0);
            self.aggregation.set_rounds(self.params.aggregation.rounds);
        }
        if self.state != Bbr3State::Drain {
            return;
        }
        let passed = self.rounds.count - self.drain_began;
        let late = self.params.drain_rounds.is_some_and(|most| passed > most);
        if late || sample.in_flight <= self.in_flight(self.bandwidth, 1.0) {
            self.start_down(now);
        }
    }

    fn save_window(&mut self) {
        let unspoilt = !self.repairs && self.state != Bbr3State::ProbeRtt;
        self.saved_window = if unspoilt { self.window } else { self.saved_window.max(self.window) };
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(self.saved_window);
    }
}

impl CongestionControl for Bbr3 {
    fn on_established(&mut self, rtt: Option<Nanos>, now: Nanos) {
        (self.path_at, self.recent_path_at) = (now, now);
        self.aggregation.restart(now);
        if let Some(rtt) = rtt.filter(|rtt| rtt.0 > 0) {
            self.path = Some(rtt);
            self.paced_by_rtt = true;
            self.set_first_pacing(rtt);
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, now: Nanos) {
        self.timeouts.on_ack(ack);
        let sample = self.sample(ack);
        self.handle_losses(&sample, now);
        self.take_rate(ack, &sample);
        self.adapt_short_term();
        if sample.acked > 0 && sample.rate > 0.0 {
            self.aggregation.on_ack(sample.acked, self.bandwidth, self.window, self.rounds.started, now);
        }
        self.check_full_pipe(&sample);
        self.check_startup_losses(&sample);
        self.check_startup_and_drain(&sample, now);
        self.follow_cycle(&sample, now);
        self.follow_path(ack, now);
        if self.latest.round_started {
            (self.latest.bandwidth, self.latest.in_flight) = (sample.rate, sample.delivered);
        }
        let largest = self.bandwidths.largest();
        self.bandwidth = self.short_bandwidth.map_or(largest, |bound| bound.min(largest));
        self.set_pacing(self.pacing_gain, ack.smoothed_rtt);
        self.set_window(&sample);
    }

    fn on_congestion(&mut self, congestion: &Congestion, now: Nanos) {
        self.stats.events.count(congestion);
        if congestion.lost > 0 {
            self.save_window();
            self.repairs = true;
            return;
        }
        self.note_loss();
        if self.cycle.probes {
            self.handle_too_high(congestion.in_flight, false, now);
        }
    }

    fn on_timeout(&mut self, _congestion: &Congestion, _now: Nanos) {
        self.stats.events.timeouts += 1;
        if self.timeouts.is_first() {
            self.save_window();
        }
        self.note_loss();
        self.repairs = true;
        // Everything counts as lost.
        self.window = self.mss;
    }

    fn on_recovered(&mut self, _now: Nanos) {
        if std::mem::take(&mut self.repairs) {
            self.restore_window();
        }
    }

    #[inline]
    fn on_sent(&mut self, bytes: u64, in_flight: u64, now: Nanos) {
        self.sent.push(self.rounds.delivered, in_flight, self.lost);
        if in_flight > bytes || self.repairs || self.rounds.delivered == 0 {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        if self.state.is_in_cycle() {
            self.set_pacing(1.0, Nanos::ZERO);
        } else if self.state == Bbr3State::ProbeRtt {
            self.check_probe_rtt_over(now);
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

impl Ns3 for Bbr3 {
    fn forget_timeouts(&mut self) {
        self.timeouts = Timeouts::default();
    }

    fn hold(&mut self, _bytes: u64) {}

    fn restart(&mut self, initial_window: u64) {
        (self.window, self.threshold) = (initial_window, u64::MAX);
    }
}
