//! All departures with the exact result for each, in memory, so that many sketches can be compared with them.

use crate::{Contribution, ExactMeter, History, PastDeparture, Recent, nearest_rank};
use queuescope_sketch::{Estimator, Snapshots};
use queuescope_wire::{Departure, FlowId, Nanos};

/// All departures of a FIFO queue with the exact result for each (ConQuest definition 3.1), in 56 bytes a packet.
#[derive(Debug)]
pub struct ExactDepartures {
    recent: Recent,
    exact: ExactMeter,
    log: Vec<Truth>,
    longest: Nanos,
}

/// A departure with its exact result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truth {
    /// The digest of its flow's key, which sketches use.
    pub digest: u64,
    /// Its flow.
    pub flow: FlowId,
    /// The size, bytes.
    pub size: u32,
    /// The arrival.
    pub from: Nanos,
    /// The departure.
    pub to: Nanos,
    /// The departures while it waited.
    pub part: Contribution,
    /// The number of flows among these departures.
    pub flows: u32,
}

/// The flows in the queue at the arrivals of packets that waited long.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueuedFlows {
    /// For each such packet, the flows in the queue, in order of their numbers.
    pub flows: Vec<u32>,
    /// The mean number of contributing flows among them.
    pub contributing: f64,
    /// The mean number of bytes in the queue.
    pub bytes: f64,
}

impl Truth {
    /// The sojourn time.
    pub fn wait(&self) -> Nanos {
        self.to - self.from
    }
}

impl Default for ExactDepartures {
    fn default() -> Self {
        Self { recent: Recent::new(History::Fifo), exact: ExactMeter::new(), log: Vec::new(), longest: Nanos::ZERO }
    }
}

impl ExactDepartures {
    /// A packet left; `digest` is that of its flow's key.
    pub fn departed(&mut self, digest: u64, departure: &Departure) {
        let (from, to, flow) = (departure.enqueued, departure.dequeued, departure.packet.flow);
        let size = u32::try_from(departure.packet.size.0).unwrap_or(u32::MAX);
        self.recent.advance(from);
        self.exact.forget_before(from);
        let part = Contribution { own: self.exact.own(flow, from), total: self.recent.backlog_since(from).bytes.0 };
        let flows = u32::try_from(self.exact.flows_in_window()).unwrap_or(u32::MAX);
        let truth = Truth { digest, flow, size, from, to, part, flows };
        self.longest = self.longest.max(truth.wait());
        self.log.push(truth);
        self.recent.record(PastDeparture { flow, size, enqueued: from, dequeued: to });
        self.exact.record(flow, size, to);
    }

    /// All departures, in order.
    pub fn all(&self) -> &[Truth] {
        &self.log
    }

    /// The longest sojourn time.
    pub fn longest(&self) -> Nanos {
        self.longest
    }

    /// The sojourn time from which the queue is congested: an eighth of the longest (section 5.1).
    pub fn tau(&self) -> Nanos {
        Nanos(self.longest.0 / 8)
    }

    /// The window length with which this number of snapshots covers the longest sojourn time (section 5.1).
    pub fn window(&self, snapshots: usize) -> Nanos {
        Nanos(self.longest.0.div_ceil(snapshots.max(1) as u64).max(1))
    }

    /// The departures that waited at least `tau`.
    pub fn waited(&self, tau: Nanos) -> impl Iterator<Item = &Truth> {
        self.log.iter().filter(move |truth| truth.wait() >= tau)
    }

    /// Queries a sketch about each packet that waited at least `tau`, and passes the estimates, one for each estimator, to `judge`.
    /// After each query the sketch records the packet; it also records all other packets.
    pub fn ask<const N: usize>(
        &self,
        sketch: &mut impl Snapshots,
        tau: Nanos,
        estimators: [Estimator; N],
        mut judge: impl FnMut(&Truth, [u64; N]),
    ) {
        for truth in &self.log {
            if truth.wait() >= tau {
                let answer = |estimator| sketch.estimate(truth.digest, truth.from, truth.to, estimator);
                judge(truth, estimators.map(answer));
            }
            sketch.record(truth.digest, truth.size, truth.to);
        }
    }

    /// The flows in the queue at the arrivals of packets that waited at least `tau`.
    pub fn crowd(&self, tau: Nanos, alpha: f64) -> QueuedFlows {
        let flows = self.log.iter().map(|truth| truth.flow.index() + 1).max().unwrap_or(0);
        let (mut held, mut oldest, mut total) =
            (QueueContent { bytes: vec![0; flows], ..QueueContent::default() }, 0, 0);
        let (mut crowd, mut contributing) = (QueuedFlows::default(), 0u64);
        for truth in &self.log {
            while let Some(left) = self.log.get(oldest).filter(|left| left.to < truth.from) {
                held.remove(left);
                total -= u64::from(left.size);
                oldest += 1;
            }
            if truth.wait() >= tau {
                crowd.flows.push(truth.flows);
                crowd.bytes += total as f64;
                let is_contributing =
                    |flow: &&u32| Contribution { own: held.bytes[**flow as usize], total }.is_at_least(alpha);
                contributing += held.flows.iter().filter(is_contributing).count() as u64;
            }
            held.add(truth);
            total += u64::from(truth.size);
        }
        crowd.flows.sort_unstable();
        let victims = crowd.flows.len().max(1) as f64;
        QueuedFlows { contributing: contributing as f64 / victims, bytes: crowd.bytes / victims, ..crowd }
    }
}

/// Bytes of each flow in a queue.
#[derive(Debug, Default)]
struct QueueContent {
    /// Indexed by the flow's number.
    bytes: Vec<u64>,
    /// The flows that have any bytes.
    flows: Vec<u32>,
}

impl QueueContent {
    fn add(&mut self, truth: &Truth) {
        let bytes = &mut self.bytes[truth.flow.index()];
        if *bytes == 0 {
            self.flows.push(truth.flow.0);
        }
        *bytes += u64::from(truth.size.max(1));
    }

    fn remove(&mut self, truth: &Truth) {
        let bytes = &mut self.bytes[truth.flow.index()];
        *bytes -= u64::from(truth.size.max(1));
        if *bytes == 0 {
            self.flows.retain(|flow| *flow != truth.flow.0);
        }
    }
}

impl QueuedFlows {
    /// The mean number of flows; none without packets.
    pub fn mean(&self) -> Option<f64> {
        let sum: u64 = self.flows.iter().map(|flows| u64::from(*flows)).sum();
        (!self.flows.is_empty()).then(|| sum as f64 / self.flows.len() as f64)
    }

    /// The number of flows that at least this share of the packets does not exceed.
    pub fn quantile(&self, share: f64) -> Option<u32> {
        nearest_rank(&self.flows, share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use queuescope_sketch::{ConQuestParams, Expiry, Ideal, Weights};
    use queuescope_wire::{Backlog, ByteCount, Class, Ecn, Packet, PacketId, QueueId};

    fn departure(flow: u32, size: u64, enqueued: u64, dequeued: u64) -> Departure {
        let packet =
            Packet { id: PacketId(0), flow: FlowId(flow), size: ByteCount(size), class: Class(0), ecn: Ecn::NotEct };
        let (enqueued, dequeued) = (Nanos(enqueued), Nanos(dequeued));
        let (backlog_in, backlog_out) = (Backlog::default(), Backlog::default());
        Departure { packet, queue: QueueId(0), enqueued, dequeued, backlog_in, backlog_out }
    }

    /// The results after departures: each with its flow, size, gap after the one before, and sojourn time.
    fn after(steps: &[(u32, u64, u64, u64)]) -> ExactDepartures {
        let mut truths = ExactDepartures::default();
        let (mut now, mut came) = (0, 0);
        for (flow, size, gap, wait) in steps {
            now += gap;
            came = now.saturating_sub(*wait).max(came);
            truths.departed(u64::from(*flow), &departure(*flow, *size, came, now));
        }
        truths
    }

    proptest! {
        /// Compares with the definitions.
        #[test]
        fn truths_match_the_definition(
            steps in prop::collection::vec((0..5u32, 1..1500u64, 0..5u64, 0..30u64), 1..150), tau in 0..20u64
        ) {
            let truths = after(&steps);
            let (mut flows, mut contributing, mut bytes) = (Vec::new(), 0, 0);
            for (place, truth) in truths.all().iter().enumerate() {
                let met: Vec<_> = truths.all()[..place].iter().filter(|other| other.to >= truth.from).collect();
                let of = |flow: u32| met.iter().filter(|it| it.flow.0 == flow).map(|it| u64::from(it.size)).sum::<u64>();
                let total: u64 = (0..5).map(of).sum();
                prop_assert_eq!(truth.part, Contribution { own: of(truth.flow.0), total });
                prop_assert_eq!(truth.flows as usize, (0..5).filter(|flow| of(*flow) > 0).count());
                if truth.wait().0 >= tau {
                    flows.push(truth.flows);
                    contributing += (0..5).filter(|flow| of(*flow) > 0 && of(*flow) * 4 >= total).count();
                    bytes += total;
                }
            }
            flows.sort_unstable();
            let crowd = truths.crowd(Nanos(tau), 0.25);
            let victims = flows.len().max(1) as f64;
            prop_assert!((crowd.contributing - contributing as f64 / victims).abs() < 1e-9);
            prop_assert!((crowd.bytes - bytes as f64 / victims).abs() < 1e-6);
            prop_assert_eq!(crowd.quantile(1.0), flows.last().copied());
            prop_assert_eq!(crowd.flows, flows);
        }

        /// With windows of a unit of time and no collisions, rounding to windows changes nothing.
        #[test]
        fn fine_windows_match_the_truth(
            steps in prop::collection::vec((0..5u32, 1..1500u64, 0..5u64, 0..30u64), 1..150)
        ) {
            let truths = after(&steps);
            let (expiry, weights) = (Expiry::Tag, Weights::Fine);
            let params =
                ConQuestParams { snapshots: 64, rows: 1, columns: 1, window: Nanos(1), expiry, weights, seed: 0 };
            let mut queries = 0;
            truths.ask(&mut Ideal::new(&params).unwrap(), Nanos(1), [Estimator::Overlap, Estimator::Outer], |truth, estimates| {
                assert_eq!(estimates, [truth.part.own; 2]);
                queries += 1;
            });
            prop_assert_eq!(queries, truths.waited(Nanos(1)).count());
        }
    }
}
