//! What is said about an interval, and how right it is.

use crate::windows::level::Window;
use queuescope_wire::{FlowId, Nanos};

/// What passed in an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Passed {
    /// The flows that are known of, largest first.
    pub flows: Vec<Share>,
    /// Bytes of all flows, known or not. Exact but for windows that are cut by an end of the interval.
    pub bytes: u64,
    /// Whether a part of the interval lies before what is remembered. The answer is of the rest.
    pub clipped: bool,
    /// The length of the longest window that an end of the interval cuts. Nothing is known of the order inside it:
    /// the window is taken to be even.
    pub resolution: Nanos,
    /// No flow's estimate has a larger standard deviation by thinning, in bytes. What windows cut by an end of the
    /// interval are wrong by comes on top.
    pub deviation: u64,
}

/// A flow's part of what passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The flow.
    pub flow: FlowId,
    /// Its bytes, estimated.
    pub bytes: u64,
}

impl Passed {
    /// The flows that are at least `alpha` of it, largest first.
    pub fn at_least(&self, alpha: f64) -> impl Iterator<Item = Share> {
        let least = alpha * self.bytes as f64;
        self.flows.iter().copied().take_while(move |share| share.bytes as f64 >= least)
    }
}

/// An answer that is being put together.
pub(super) struct Gathering {
    from: u64,
    to: u64,
    flows: Vec<(u32, f64)>,
    bytes: f64,
    resolution: u64,
    variance: f64,
}

impl Gathering {
    pub fn new(from: u64, to: u64) -> Self {
        Self { from, to, flows: Vec::new(), bytes: 0.0, resolution: 0, variance: 0.0 }
    }

    /// A window, which may lie elsewhere.
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

    pub fn finish(mut self, asked: u64, since: u64) -> Passed {
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
            clipped: asked < since,
            resolution: Nanos(self.resolution),
            deviation: self.variance.sqrt().ceil() as u64,
        }
    }
}
