//! The parameters of BBR version 3.

use crate::congestion::bbr::AggregationParams;
use crate::congestion::common::RttSource;
use queuescope_wire::{Draws, Nanos};

/// The parameters of BBR version 3. The default follows the draft.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bbr3Params {
    /// The pacing gain in startup: 4 ln 2 = 2.77.
    pub startup_gain: f64,
    /// The pacing gain in drain: 0.5; Linux 1/2.885.
    pub drain_gain: f64,
    /// The pacing gain while the queue is drained and others get room (down): 0.9; Linux 0.91.
    pub down_gain: f64,
    /// The pacing gain while probing for bandwidth (up): 1.25.
    pub up_gain: f64,
    /// The gain of the window, and while probing for bandwidth: 2 and 2.25.
    pub window_gain: f64,
    /// See `window_gain`.
    pub up_window_gain: f64,
    /// The largest tolerable loss rate while probing, in a round trip: 0.02.
    pub loss_threshold: f64,
    /// What a round trip with losses leaves of the short-term bounds, at least: 0.7.
    pub beta: f64,
    /// The fraction of the long-term bound that is left free for others while cruising: 0.15.
    pub headroom: f64,
    /// The pipe is full when the bandwidth does not grow by this factor, 1.25, for `full_rounds` round trips.
    pub full_growth: f64,
    /// See `full_growth`: 3.
    pub full_rounds: u32,
    /// Or when a round trip of recovery loses more than `loss_threshold`, in this many separate pieces: 6.
    pub full_losses: u32,
    /// Drain ends after this many round trips, even if more is in flight than it should: 3; Linux never.
    pub drain_rounds: Option<u64>,
    /// The time between probes for bandwidth: 2 s, and up to 1 s more at random.
    pub wait: Nanos,
    /// See `wait`.
    pub more_wait: Nanos,
    /// A probe also comes after as many round trips as Reno would take to grow by the window, at most this many: 63.
    pub most_rounds: u64,
    /// Whether the first probe after one with too many losses turns back where that one failed, and only the next one
    /// goes on from there. Linux does not.
    pub precautionary: bool,
    /// The source of random numbers.
    pub draws: Draws,
    /// The period of the smallest round-trip time: 10 s.
    pub rtt_window: Nanos,
    /// Without a smaller round-trip time for this long, it is probed: 5 s.
    pub probe_rtt_interval: Nanos,
    /// How long such a probe lasts: 200 ms.
    pub probe_rtt: Nanos,
    /// The gain of the window in such a probe: 0.5.
    pub probe_rtt_gain: f64,
    /// The smallest window, in segments: 4.
    pub least_window: u64,
    /// The fraction by which pacing is slower than the bandwidth: 0.01.
    pub pacing_margin: f64,
    /// How much aggregation of ACKs the window has room for.
    pub aggregation: AggregationParams,
    /// Which round-trip time is used.
    pub rtt: RttSource,
}

impl Default for Bbr3Params {
    fn default() -> Self {
        // The draft does not limit it to what is delivered in a time.
        let aggregation = AggregationParams { most: Nanos::MAX, ..AggregationParams::linux() };
        Self {
            startup_gain: 4.0 * std::f64::consts::LN_2,
            drain_gain: 0.5,
            down_gain: 0.9,
            up_gain: 1.25,
            window_gain: 2.0,
            up_window_gain: 2.25,
            loss_threshold: 0.02,
            beta: 0.7,
            headroom: 0.15,
            full_growth: 1.25,
            full_rounds: 3,
            full_losses: 6,
            drain_rounds: Some(3),
            wait: Nanos(2_000_000_000),
            more_wait: Nanos(1_000_000_000),
            most_rounds: 63,
            precautionary: true,
            draws: Draws::Own,
            rtt_window: Nanos(10_000_000_000),
            probe_rtt_interval: Nanos(5_000_000_000),
            probe_rtt: Nanos(200_000_000),
            probe_rtt_gain: 0.5,
            least_window: 4,
            pacing_margin: 0.01,
            aggregation,
            rtt: RttSource::Measured,
        }
    }
}

impl Bbr3Params {
    /// The default with the smoothed round-trip time, which ns-3 3.37 gives to congestion controls. ns-3 has only
    /// version 1.
    pub fn ns3() -> Self {
        Self { rtt: RttSource::Smoothed, ..Self::default() }
    }

    /// Those of Google's version 3 for Linux, where it differs from the draft. Linux itself has only version 1.
    pub fn linux() -> Self {
        Self {
            startup_gain: 2.77,
            drain_gain: 1.0 / 2.885,
            down_gain: 0.91,
            drain_rounds: None,
            precautionary: false,
            aggregation: AggregationParams::linux(),
            ..Self::default()
        }
    }

    /// The bytes in flight at which losses exceeded the tolerable rate, where the last `size` bytes of `in_flight` were
    /// lost, and `lost` in all (the draft's `InflightAtLoss`).
    pub fn in_flight_at_loss(&self, in_flight: u64, lost: u64, size: u64) -> u64 {
        let before = in_flight.saturating_sub(size);
        let lost_before = lost.saturating_sub(size) as f64;
        let prefix = (self.loss_threshold * before as f64 - lost_before) / (1.0 - self.loss_threshold).max(0.01);
        before.saturating_add((prefix.max(0.0) as u64).min(size))
    }
}
