//! The estimate for an interval, and its errors.

use crate::windows::level::Window;
use queuescope_wire::{FlowId, Nanos};

/// An estimate of what passed in an interval.
///
/// ```
/// use queuescope_sketch::{Windows, WindowsParams};
/// use queuescope_wire::{FlowId, Nanos};
///
/// let mut history = Windows::new(WindowsParams::default())?;
/// for n in 0..1_000 {
///     history.record(FlowId(if n % 4 == 0 { 1 } else { 2 }), 500, Nanos(n * 10_000));
/// }
/// let passed = history.passed(Nanos::ZERO, "10ms".parse()?);
/// let shares: Vec<_> = passed.at_least(0.2).map(|share| (share.flow, share.bytes)).collect();
/// assert_eq!(shares, [(FlowId(2), 375_000), (FlowId(1), 125_000)]);
/// assert!(!passed.clipped);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Passed {
    /// The flows in the lists of the windows, largest first.
    pub flows: Vec<Share>,
    /// The bytes of all flows, also of those that are not in `flows`. Exact except for windows that an end of the
    /// interval cuts.
    pub bytes: u64,
    /// Whether the interval starts before the history. The estimate then covers only the rest.
    pub clipped: bool,
    /// The length of the longest window that an end of the interval cuts. The order of records in a window is not
    /// known, so the estimate assumes a constant rate in it.
    pub resolution: Nanos,
    /// An upper bound for the standard deviation of a flow's estimate, in bytes, from sampling alone. The error of
    /// windows that an end of the interval cuts is not included.
    pub deviation: u64,
}

/// The bytes of a flow in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The flow.
    pub flow: FlowId,
    /// An estimate of its bytes.
    pub bytes: u64,
}

impl Passed {
    /// The flows with at least a fraction `alpha` of all bytes, largest first.
    pub fn at_least(&self, alpha: f64) -> impl Iterator<Item = Share> {
        let least = alpha * self.bytes as f64;
        self.flows.iter().copied().take_while(move |share| share.bytes as f64 >= least)
    }
}

/// Adds up windows to an estimate.
pub(super) struct PassedBuilder {
    from: u64,
    to: u64,
    flows: Vec<(u32, f64)>,
    bytes: f64,
    resolution: u64,
    variance: f64,
}

impl PassedBuilder {
    pub fn new(from: u64, to: u64) -> Self {
        Self { from, to, flows: Vec::new(), bytes: 0.0, resolution: 0, variance: 0.0 }
    }

    /// Adds the part of a window that is within the interval, if any.
    pub fn add(&mut self, window: &Window, items: impl Iterator<Item = (u32, u64)>) {
        let end = window.end.saturating_add(1);
        let (from, to) = (window.start.max(self.from), end.min(self.to));
        if from >= to {
            return;
        }
        let (inside, length) = (to - from, end - window.start);
        let part = inside as f64 / length as f64;
        if inside < length {
            self.resolution = self.resolution.max(length);
        }
        self.bytes += part * window.bytes as f64;
        self.variance += part * part * f64::from(window.variance);
        self.flows.extend(items.map(|(flow, bytes)| (flow, part * bytes as f64)));
    }

    /// The estimate. `from` is the start of the interval that the caller wanted, `since` that of the history.
    pub fn finish(mut self, from: u64, since: u64) -> Passed {
        self.flows.sort_unstable_by_key(|item| item.0);
        let sums = self.flows.chunk_by(|one, other| one.0 == other.0);
        let mut flows: Vec<_> = sums
            .map(|items| {
                let bytes = items.iter().map(|item| item.1).sum::<f64>().round() as u64;
                Share { flow: FlowId(items[0].0), bytes }
            })
            .filter(|share| share.bytes > 0)
            .collect();
        flows.sort_unstable_by_key(|share| (std::cmp::Reverse(share.bytes), share.flow));
        Passed {
            flows,
            bytes: self.bytes.round() as u64,
            clipped: from < since,
            resolution: Nanos(self.resolution),
            deviation: self.variance.sqrt().ceil() as u64,
        }
    }
}
