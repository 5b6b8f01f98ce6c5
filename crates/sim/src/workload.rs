//! The senders, receivers, sizes and times of flows: one implementation for all ways to run traffic.
//!
//! - [`Workload`]: flows that start, as [`Arrivals`] x [`Sizes`] x [`Pairs`]; [`merge`] merges several in order of time.
//! - [`UdpSource`]: datagrams at a constant rate, or on and off.
//! - [`Captured`]: the packets of a capture as cross traffic.
//! - [`Trains`]: flows that send their bytes as datagrams.
//!
//! All of them are iterators without an end (unless one is given), in order of time, and functions of their seed:
//! the same flows on every machine. Nothing here depends on a network or on events.

mod arrivals;
mod capture;
mod empirical;
mod normal;
mod pairs;
mod random;
mod sizes;
mod spans;
mod trains;
mod udp;

pub use arrivals::Arrivals;
pub use capture::{CaptureParams, CaptureStats, Captured, CapturedPacket, Repeat};
pub use empirical::{Empirical, Interpolation};
pub use pairs::Pairs;
pub use random::Random;
pub use sizes::{Sizes, SizesError};
pub use spans::{OnOff, Span};
pub use trains::Trains;
pub use udp::{Spacing, UdpParams, UdpSource};

use crate::NodeId;
use arrivals::Starts;
use pairs::Draw;
use queuescope_wire::{ByteCount, Nanos, Rate};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Flows that start one after another.
///
/// ```
/// use queuescope_sim::workload::{Arrivals, Pairs, Sizes, Workload, WorkloadParams};
/// use queuescope_wire::{ByteCount, Nanos};
///
/// let arrivals = Arrivals::Poisson { rate: 100.0 };
/// let sizes = Sizes::uniform(ByteCount(1_000), ByteCount(9_000))?;
/// let pairs = Pairs::to_one([0, 1, 2], 3);
/// let params = WorkloadParams::new(arrivals, Some(sizes), pairs);
/// let flows: Vec<_> = Workload::new(&params, 1)?.take_while(|flow| flow.at < Nanos(10_000_000_000)).collect();
/// println!("{} flows, the first of {:?} bytes", flows.len(), flows[0].bytes);
/// assert!((900..1_100).contains(&flows.len()));
/// assert!(flows.iter().all(|flow| flow.to == 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Workload {
    starts: Starts,
    /// The sizes of flows, from a random stream of their own; `None`: flows never end.
    sizes: Option<(Sizes, Random)>,
    pairs: Draw,
    start: Nanos,
    until: Nanos,
    left: u64,
}

/// Parameters of a workload.
///
/// ```
/// use queuescope_sim::workload::{Arrivals, Pairs, Sizes, WorkloadParams};
/// use queuescope_wire::Rate;
///
/// let sizes = Sizes::named("web-search").ok_or("unknown distribution")?;
/// let link: Rate = "10gbps".parse()?;
/// let arrivals = Arrivals::at_load(0.6, link, sizes.mean());
/// let params = WorkloadParams::new(arrivals, Some(sizes), Pairs::Fixed { from: 0, to: 1 });
/// let load = params.load_on(link).ok_or("the load is not bounded")?;
/// assert!((load - 0.6).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadParams {
    /// When flows start.
    pub arrivals: Arrivals,
    /// The sizes of flows in bytes; `None`: flows never end.
    pub sizes: Option<Sizes>,
    /// The senders and receivers.
    pub pairs: Pairs,
    /// When the workload begins.
    pub start: Nanos,
    /// No flow starts at this time or later, if it is given.
    pub until: Option<Nanos>,
    /// The most flows, if it is given.
    pub flows: Option<u64>,
}

/// The start of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowStart {
    /// When it starts, since the start of the simulation.
    pub at: Nanos,
    /// The sending host.
    pub from: usize,
    /// The receiving host, which differs from the sender.
    pub to: usize,
    /// Bytes to send, above 0; `None`: the flow never ends.
    pub bytes: Option<u64>,
}

impl FlowStart {
    /// At time 0, and without an end.
    pub fn new(from: NodeId, to: NodeId) -> Self {
        Self { at: Nanos::ZERO, from: from.0 as usize, to: to.0 as usize, bytes: None }
    }
}

/// Why a workload is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A rate of arrivals out of its bounds.
    #[error("{rate} flows a second are impossible: use a number from 1e-9 to 1e9")]
    Rate {
        /// Flows a second.
        rate: String,
    },
    /// The period is zero.
    #[error("a period of 0 s never ends: use a longer one")]
    Period,
    /// The delays are so long that flows would not be in order.
    #[error("a {what} of {late} is longer than the period of {every}: use at most that")]
    Late {
        /// The name of the parameter.
        what: &'static str,
        /// Its value.
        late: Nanos,
        /// The period.
        every: Nanos,
    },
    /// No flow starts.
    #[error("no flow starts if 0 start together: use at least 1")]
    NoFlows,
    /// Times of being on that are too short for the packets.
    #[error("on for {on}, hardly anything is sent in a million periods: stay on for longer, or send more often")]
    On {
        /// The mean time of being on.
        on: Nanos,
    },
    /// A host sends to itself.
    #[error("host {host} cannot send to itself: choose another receiver")]
    Itself {
        /// The host.
        host: usize,
    },
    /// A host is listed twice.
    #[error("host {host} is listed twice in a permutation: list each once")]
    Twice {
        /// The host.
        host: usize,
    },
    /// No pair of hosts is possible.
    #[error("there are no two different hosts that could be sender and receiver: list more")]
    NoPair,
    /// A packet without bytes.
    #[error("a packet cannot have 0 bytes: use at least 1")]
    NoBytes,
}

impl WorkloadParams {
    /// Flows from time 0 on, without end.
    pub fn new(arrivals: Arrivals, sizes: Option<Sizes>, pairs: Pairs) -> Self {
        Self { arrivals, sizes, pairs, start: Nanos::ZERO, until: None, flows: None }
    }

    /// One endless flow for each pair, started within `spread`.
    pub fn long_flows(pairs: Vec<(usize, usize)>, spread: Nanos) -> Self {
        Self::new(Arrivals::Together { flows: pairs.len(), every: None, spread }, None, Pairs::InTurn(pairs))
    }

    /// Each of `senders` sends this many bytes to one receiver, all within `spread`, again and again.
    ///
    /// # Errors
    /// Fails for 0 bytes.
    pub fn incast(
        senders: &[usize],
        receiver: usize,
        bytes: ByteCount,
        every: Nanos,
        spread: Nanos,
    ) -> Result<Self, SizesError> {
        let arrivals = Arrivals::Together { flows: senders.len(), every: Some(every), spread };
        Ok(Self::new(arrivals, Some(Sizes::constant(bytes)?), Pairs::to_one(senders.iter().copied(), receiver)))
    }

    /// The share of a link's rate that the flows offer in the long run, without headers; `None` if flows or
    /// arrivals are not bounded.
    pub fn load_on(&self, link: Rate) -> Option<f64> {
        let bytes = self.arrivals.mean_rate()? * self.sizes.as_ref()?.mean();
        Some(8.0 * bytes / link.bits_per_second() as f64)
    }
}

impl Workload {
    /// The flows for a seed. Times, sizes and pairs have random streams of their own: other sizes leave times and
    /// pairs unchanged.
    ///
    /// # Errors
    /// Fails if the parameters are not possible.
    pub fn new(params: &WorkloadParams, seed: u64) -> Result<Self, WorkloadError> {
        let mut random = Random::new(seed);
        let (times, sizes, pairs) = (random.fork(), random.fork(), random.fork());
        Ok(Self {
            starts: Starts::new(&params.arrivals, times)?,
            sizes: params.sizes.clone().map(|distribution| (distribution, sizes)),
            pairs: Draw::new(&params.pairs, pairs)?,
            start: params.start,
            until: params.until.unwrap_or(Nanos::MAX),
            left: params.flows.unwrap_or(u64::MAX),
        })
    }
}

impl Iterator for Workload {
    type Item = FlowStart;

    fn next(&mut self) -> Option<FlowStart> {
        self.left = self.left.checked_sub(1)?;
        let next = self.starts.next().map(|(at, number)| (self.start.saturating_add(at), number));
        let Some((at, number)) = next.filter(|(at, _)| *at < self.until) else {
            self.left = 0;
            return None;
        };
        let bytes = self.sizes.as_mut().map(|(sizes, random)| sizes.sample(random).0);
        let (from, to) = self.pairs.draw(number);
        Some(FlowStart { at, from, to, bytes })
    }
}

/// Merges workloads in order of time; each flow comes with the number of its workload, from 0. Flows that start in
/// the same nanosecond come in the order of their workloads.
///
/// ```
/// use queuescope_sim::NodeId;
/// use queuescope_sim::workload::{FlowStart, merge};
/// use queuescope_wire::Nanos;
///
/// let at = |at| FlowStart { at: Nanos(at), ..FlowStart::new(NodeId(0), NodeId(1)) };
/// let merged: Vec<_> = merge([vec![at(1), at(5)].into_iter(), vec![at(3)].into_iter()]).collect();
/// let order: Vec<_> = merged.iter().map(|(workload, flow)| (*workload, flow.at.0)).collect();
/// assert_eq!(order, [(0, 1), (1, 3), (0, 5)]);
/// ```
pub fn merge<I: Iterator<Item = FlowStart>>(workloads: impl IntoIterator<Item = I>) -> Merged<I> {
    let mut merged = Merged { workloads: workloads.into_iter().collect(), next: Vec::new(), order: BinaryHeap::new() };
    for index in 0..merged.workloads.len() {
        merged.next.push(None);
        merged.advance(index);
    }
    merged
}

/// Workloads merged in order of time; see [`merge`].
#[derive(Debug, Clone)]
pub struct Merged<I> {
    workloads: Vec<I>,
    /// The next flow of each workload.
    next: Vec<Option<FlowStart>>,
    /// The times of the next flows.
    order: BinaryHeap<Reverse<(Nanos, usize)>>,
}

impl<I: Iterator<Item = FlowStart>> Merged<I> {
    fn advance(&mut self, index: usize) {
        self.next[index] = self.workloads[index].next();
        if let Some(next) = &self.next[index] {
            self.order.push(Reverse((next.at, index)));
        }
    }
}

impl<I: Iterator<Item = FlowStart>> Iterator for Merged<I> {
    type Item = (usize, FlowStart);

    fn next(&mut self) -> Option<(usize, FlowStart)> {
        let Reverse((_, index)) = self.order.pop()?;
        let start = self.next[index].take()?;
        self.advance(index);
        Some((index, start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn poisson(rate: f64) -> WorkloadParams {
        let pairs = Pairs::Uniform { from: vec![0, 1, 2], to: vec![3, 4] };
        WorkloadParams::new(Arrivals::Poisson { rate }, Sizes::named("web-rack"), pairs)
    }

    fn starts(params: &WorkloadParams, seed: u64) -> Workload {
        Workload::new(params, seed).unwrap()
    }

    /// The results must not change: the same flows for the same seed, on every machine and in every version.
    #[test]
    fn flows_are_as_the_seed_says() {
        let flows: Vec<_> = starts(&poisson(1_000.0), 42).take(4).collect();
        let shown: Vec<_> = flows.iter().map(|flow| (flow.at.0, flow.from, flow.to, flow.bytes)).collect();
        assert_eq!(shown, GOLDEN);
        assert_ne!(flows, starts(&poisson(1_000.0), 43).take(4).collect::<Vec<_>>());
    }

    const GOLDEN: [(u64, usize, usize, Option<u64>); 4] = [
        (473_558, 0, 3, Some(40)),
        (3_336_210, 2, 4, Some(4)),
        (3_358_736, 2, 4, Some(2_218)),
        (4_220_515, 2, 4, Some(428)),
    ];

    #[test]
    fn sizes_pairs_and_times_are_drawn_apart() {
        let with = starts(&poisson(1_000.0), 1).take(100);
        let without = starts(&WorkloadParams { sizes: None, ..poisson(1_000.0) }, 1).take(100);
        assert!(
            with.eq(without
                .zip(starts(&poisson(1_000.0), 1))
                .map(|(flow, same)| FlowStart { bytes: same.bytes, ..flow }))
        );
        let faster = starts(&poisson(2_000.0), 1).take(100);
        assert!(faster.zip(starts(&poisson(1_000.0), 1)).all(|(fast, slow)| {
            (fast.from, fast.to, fast.bytes) == (slow.from, slow.to, slow.bytes)
                && fast.at.0.abs_diff(slow.at.0 / 2) < 2
        }));
    }

    #[test]
    fn a_workload_offers_its_load() {
        let link = Rate::from_bits_per_second(1_000_000_000).unwrap();
        let sizes = Sizes::uniform(ByteCount(1_000), ByteCount(9_000)).unwrap();
        let arrivals = Arrivals::at_load(0.6, link, sizes.mean());
        let params = WorkloadParams::new(arrivals, Some(sizes), Pairs::Fixed { from: 0, to: 1 });
        assert!((params.load_on(link).unwrap() - 0.6).abs() < 1e-12);
        let until = Nanos(10_000_000_000);
        let offered: u64 =
            starts(&WorkloadParams { until: Some(until), ..params }, 1).filter_map(|flow| flow.bytes).sum();
        // 150 000 flows: three standard deviations are 0.9 %.
        assert!((offered as f64 * 8.0 / 1e10 - 0.6).abs() < 0.006, "{offered}");
        assert_eq!(WorkloadParams::long_flows(vec![(0, 1)], Nanos(0)).load_on(link), None);
    }

    #[test]
    fn an_incast_is_all_to_one_at_once() {
        let incast = WorkloadParams::incast(&[1, 2, 3], 0, ByteCount(20_000), Nanos(1_000_000), Nanos(10)).unwrap();
        let incast = WorkloadParams { start: Nanos(500), flows: Some(6), ..incast };
        let flows: Vec<_> = starts(&incast, 1).collect();
        for (round, flows) in flows.chunks(3).enumerate() {
            let mut senders: Vec<_> = flows.iter().map(|flow| flow.from).collect();
            senders.sort_unstable();
            assert_eq!(senders, [1, 2, 3]);
            let start = 500 + round as u64 * 1_000_000;
            assert!(flows.iter().all(|flow| (start..=start + 10).contains(&flow.at.0)));
            assert!(flows.iter().all(|flow| (flow.to, flow.bytes) == (0, Some(20_000))));
        }
        assert_eq!(flows.len(), 6);
        assert!(WorkloadParams::incast(&[1], 0, ByteCount(0), Nanos(1), Nanos(0)).is_err());
    }

    #[test]
    fn long_flows_start_once_and_never_end() {
        let flows: Vec<_> = starts(&WorkloadParams::long_flows(vec![(0, 9), (1, 8)], Nanos(0)), 1).collect();
        let flow = |from, to| FlowStart { at: Nanos(0), from, to, bytes: None };
        assert_eq!(flows, [flow(0, 9), flow(1, 8)]);
    }

    #[test]
    fn a_workload_stops_at_its_end() {
        let mut some = starts(&WorkloadParams { until: Some(Nanos(5_000_000)), ..poisson(1_000.0) }, 1);
        let count = some.by_ref().inspect(|flow| assert!(flow.at < Nanos(5_000_000))).count();
        assert!((1..20).contains(&count) && some.next().is_none(), "{count}");
    }

    proptest! {
        #[test]
        fn merging_is_sorting(rates in prop::collection::vec(1.0..1e6f64, 0..6), flows in 0..50u64) {
            let workloads = || rates.iter().zip(0..).map(|(rate, seed)| {
                // Whole milliseconds, so that many flows start at the same time.
                starts(&WorkloadParams { flows: Some(flows), ..poisson(*rate) }, seed)
                    .map(|flow| FlowStart { at: Nanos(flow.at.0 / 1_000_000), ..flow })
            });
            let numbered = workloads().enumerate().flat_map(|(n, flows)| flows.map(move |flow| (n, flow)));
            let mut all: Vec<_> = numbered.collect();
            all.sort_by_key(|(_, flow)| flow.at);
            prop_assert_eq!(merge(workloads()).collect::<Vec<_>>(), all);
        }
    }
}
