//! What BBR is made of.

use super::super::common::RttSource;
use super::aggregation::AggregationParams;
use super::policer::PolicerParams;
use queuescope_wire::{Draws, Nanos};

/// How BBR models the path. The default is as the draft has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BbrParams {
    /// Gain of pacing and window in startup, whose inverse drains the queue after it: 2 / ln 2 = 2.885; ns-3 2.89.
    pub high_gain: f64,
    /// Gain of the window when probing for bandwidth: 2.
    pub window_gain: f64,
    /// Gains of pacing, each for a smallest round-trip time: 5/4, 3/4, and six times 1.
    pub cycle: [f64; 8],
    /// The cycle begins at random in one of the first so many phases, counted back from the sixth of gain 1: 7; ns-3 6.
    pub cycle_starts: u64,
    /// Who draws it.
    pub draws: Draws,
    /// The bandwidth is the largest of so many round trips: 10.
    pub bandwidth_rounds: u64,
    /// Whether the filter of the largest takes its third value late (ns-3).
    pub late_third: bool,
    /// Whether the bandwidth before the first sample is the initial window in a round-trip time, so that a sample which the
    /// application limits counts only if it is no less (ns-3, `TcpBbr::InitPacingRate`); otherwise nothing.
    pub bandwidth_from_window: bool,
    /// The pipe is full when the bandwidth did not grow by this factor: 1.25.
    pub full_growth: f64,
    /// For so many round trips: 3.
    pub full_rounds: u32,
    /// Whether a timeout in startup begins that count anew (Linux).
    pub timeout_resets_growth: bool,
    /// The smallest round-trip time is that of so long: 10 s.
    pub rtt_window: Nanos,
    /// Whether an equal round-trip time renews it: then a path whose queue empties now and then is never probed (the draft,
    /// ns-3). Linux wants a smaller one.
    pub equal_renews: bool,
    /// So long the window is smallest to probe the round-trip time: 200 ms.
    pub probe_rtt: Nanos,
    /// Whether what is delivered of a window that was kept small by this counts as limited by the application.
    pub probe_limits_samples: bool,
    /// Whether what is sent with nothing in flight is a start from idleness once the round-trip time was probed, then always
    /// (ns-3, where nothing is limited by the application before), which ends a later probe that has not begun to count;
    /// otherwise whenever nothing is repaired.
    pub restarts_once_probed: bool,
    /// The smallest window outside of recovery, in segments: 4.
    pub least_window: u64,
    /// Pacing is slower than the bandwidth by this part: 0; Linux 0.01.
    pub pacing_margin: f64,
    /// Whether rates are kept in whole bits a second (ns-3).
    pub whole_bits: bool,
    /// How much is sent at once: the window has room for three.
    pub quantum: Quantum,
    /// Whether the window is a whole, even number of segments (Linux).
    pub even_segments: bool,
    /// Whether the window has room for ACKs that come late and together. Linux since 5.1 and ns-3.
    pub aggregation: Option<AggregationParams>,
    /// Whether a policer is looked for (Linux).
    pub policer: Option<PolicerParams>,
    /// Whether a round trip begins with recovery, so that packets are conserved for a whole one (the draft, Linux). Otherwise the
    /// window of recovery begins with what the ACK that began it has delivered, too, as it may end with that (ns-3).
    pub recovery_begins_round: bool,
    /// The window after recovery.
    pub after_recovery: AfterRecovery,
    /// The first pacing rate takes the round-trip time in whole numbers of this, at least one.
    pub first_rtt_unit: Nanos,
    /// Which round-trip time is read.
    pub rtt: RttSource,
}

/// How much is sent at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantum {
    /// A segment (ns-3).
    Segment,
    /// A segment up to 1.2 Mb/s, then what is sent in a millisecond: at least two segments, at most 64 KiB.
    ByRate,
}

/// The window after recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRecovery {
    /// That before it.
    Restored,
    /// The slow-start threshold (ns-3): what filled the pipe as startup ended; before that 2^32 - 1, which then wraps to what
    /// the next ACK acknowledges. After a timeout the window stays as it is.
    Threshold,
}

impl Default for BbrParams {
    fn default() -> Self {
        Self {
            high_gain: 2.0 / std::f64::consts::LN_2,
            window_gain: 2.0,
            cycle: [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
            cycle_starts: 7,
            draws: Draws::Own,
            bandwidth_rounds: 10,
            late_third: false,
            bandwidth_from_window: false,
            full_growth: 1.25,
            full_rounds: 3,
            timeout_resets_growth: false,
            rtt_window: Nanos(10_000_000_000),
            equal_renews: true,
            probe_rtt: Nanos(200_000_000),
            probe_limits_samples: true,
            restarts_once_probed: false,
            least_window: 4,
            pacing_margin: 0.0,
            whole_bits: false,
            quantum: Quantum::ByRate,
            even_segments: false,
            aggregation: None,
            policer: None,
            recovery_begins_round: true,
            after_recovery: AfterRecovery::Restored,
            first_rtt_unit: Nanos(1),
            rtt: RttSource::Measured,
        }
    }
}

impl BbrParams {
    /// As ns-3.37's `TcpBbr`.
    pub fn ns3() -> Self {
        Self {
            high_gain: 2.89,
            cycle_starts: 6,
            late_third: true,
            bandwidth_from_window: true,
            probe_limits_samples: false,
            restarts_once_probed: true,
            whole_bits: true,
            quantum: Quantum::Segment,
            aggregation: Some(AggregationParams::ns3()),
            recovery_begins_round: false,
            after_recovery: AfterRecovery::Threshold,
            first_rtt_unit: Nanos(1_000_000),
            rtt: RttSource::Smoothed,
            ..Self::default()
        }
    }

    /// As Linux's `tcp_bbr`.
    pub fn linux() -> Self {
        Self {
            timeout_resets_growth: true,
            equal_renews: false,
            pacing_margin: 0.01,
            even_segments: true,
            aggregation: Some(AggregationParams::linux()),
            policer: Some(PolicerParams::default()),
            first_rtt_unit: Nanos(1_000),
            ..Self::default()
        }
    }
}
