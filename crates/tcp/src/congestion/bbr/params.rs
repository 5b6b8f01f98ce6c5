//! The parameters of BBR.

use super::super::common::RttSource;
use super::aggregation::AggregationParams;
use super::policer::PolicerParams;
use queuescope_wire::{Draws, Nanos};

/// The parameters of BBR. The default follows the draft.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BbrParams {
    /// The gain of pacing and window in startup; its inverse drains the queue afterwards: 2 / ln 2 = 2.885; ns-3 2.89.
    pub high_gain: f64,
    /// The gain of the window while probing for bandwidth: 2.
    pub window_gain: f64,
    /// The pacing gains of a cycle, each held for one smallest round-trip time: 5/4, 3/4, and six times 1.
    pub cycle: [f64; 8],
    /// The cycle begins in a random one of this many phases, counted back from the sixth phase of gain 1: 7; ns-3 6.
    pub cycle_starts: u64,
    /// The source of these random numbers.
    pub draws: Draws,
    /// How many round trips the maximum of the bandwidth covers: 10.
    pub bandwidth_rounds: u64,
    /// Whether the maximum filter takes its third value late (ns-3).
    pub late_third: bool,
    /// Whether the bandwidth before the first sample is the initial window per round-trip time. An application-limited
    /// sample then counts only if it is not below that (ns-3, `TcpBbr::InitPacingRate`). Otherwise it is zero.
    pub bandwidth_from_window: bool,
    /// The pipe is full when the bandwidth does not grow by this factor, 1.25, for `full_rounds` round trips.
    pub full_growth: f64,
    /// How many round trips without that growth make the pipe full: 3.
    pub full_rounds: u32,
    /// Whether a timeout in startup restarts that count (Linux).
    pub timeout_resets_growth: bool,
    /// The period of the smallest round-trip time: 10 s.
    pub rtt_window: Nanos,
    /// Whether an equal round-trip time renews the smallest one (the draft, ns-3). Then a path whose queue empties now
    /// and then is never probed. Linux requires a smaller one.
    pub equal_renews: bool,
    /// How long the window stays smallest to probe the round-trip time: 200 ms.
    pub probe_rtt: Nanos,
    /// Whether deliveries of a window that a probe kept small count as application-limited.
    pub probe_limits_samples: bool,
    /// When a send with nothing in flight counts as a restart from idleness. If true, always after the first probe of
    /// the round-trip time (ns-3, where nothing is application-limited before), which ends a later probe that has not
    /// begun to count. Otherwise, whenever no loss is being repaired.
    pub restarts_once_probed: bool,
    /// The smallest window outside recovery, in segments: 4.
    pub least_window: u64,
    /// The fraction by which pacing is slower than the bandwidth: 0; Linux 0.01.
    pub pacing_margin: f64,
    /// Whether rates are whole bits per second (ns-3).
    pub whole_bits: bool,
    /// How much is sent at once. The window has room for three quanta.
    pub quantum: Quantum,
    /// Whether the window is a whole, even number of segments (Linux).
    pub even_segments: bool,
    /// How much aggregation of ACKs the window has room for, if any. Linux since 5.1 and ns-3 have it.
    pub aggregation: Option<AggregationParams>,
    /// How a policer is detected, if at all (Linux).
    pub policer: Option<PolicerParams>,
    /// Whether a round trip begins with recovery, so that packets are conserved for a whole one (the draft, Linux).
    /// Otherwise the window of recovery starts with the bytes delivered by the ACK that started it, because it may end
    /// with that ACK (ns-3).
    pub recovery_begins_round: bool,
    /// The window after recovery.
    pub after_recovery: AfterRecovery,
    /// The first pacing rate uses the round-trip time in whole multiples of this, at least one.
    pub first_rtt_unit: Nanos,
    /// Which round-trip time is used.
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
    /// The window before recovery.
    Restored,
    /// The slow-start threshold (ns-3): the window that filled the pipe when startup ended; before that 2^32 - 1, which
    /// wraps to the bytes that the next ACK acknowledges. After a timeout the window stays as it is.
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
    /// Those of ns-3 3.37's `TcpBbr`.
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

    /// Those of Linux's `tcp_bbr`.
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
