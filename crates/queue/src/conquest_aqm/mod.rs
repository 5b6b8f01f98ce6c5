//! The ConQuest AQM: packets of flows that have too much of the queue are marked or dropped (Chen et al., CoNEXT 2019,
//! sections 4.2 and 5.2).
//!
//! Behind the queue, each packet that waited longer than `tau` learns its flow's weight `w_f`: what of its flow left the
//! queue while it waited itself, which in a FIFO is what of its flow stood before it. A [`Curve`] of the weight says with
//! which probability it is marked or dropped. Or the flow is fed back to ingress, where its next packets are met before the
//! queue ([`ActAt::Ingress`]).
//!
//! Each port has snapshots of its own. A port is taken to be one FIFO: several queues of a port share the snapshots, and a
//! weight then is of all that left the port meanwhile.
//!
//! Choices where the paper is open:
//!
//! - Section 3.1 acts from `tau` on, 5.1 and 5.2 above it: a packet must have waited longer than `tau`. Section 4.2 marks at
//!   `w_f >= w_T`, 5.2 above: from `w_T` on.
//! - A packet that is dropped here has left the queue, so it counts in the snapshots as any other.
//! - Each packet that is chosen is fed back, also if its flow is held already: egress cannot see the registers of ingress.

mod curve;
mod held;

use crate::counters::counters;
use crate::hash_to_queues::digest;
use crate::random::Random;
use crate::{DropReason, Egress, Headers, Ingress, Limit, MarkReason, Outlet, Pipeline, Port, Sink, TailDropParams};
pub use curve::{Curve, Step, Steps, StepsError};
use held::Held;
use queuescope_sketch::{ConQuest, ConQuestParams, ConQuestStats, Estimator, Expiry, ParamsError, Weights};
use queuescope_wire::{ByteCount, Departure, Ecn, Nanos, Packet, Rate};

/// What the ConQuest AQM is made of. Defaults are the paper's section 5.2, but for the two that say otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct ConQuestAqmParams {
    /// The snapshots of each port. By default h = 4, R = 2, C = 2048, T = 2 ms, with tags in place of cleaning.
    pub sketch: ConQuestParams,
    /// Which windows count. By default [`Estimator::Overlap`]; the paper's is [`Estimator::Inner`].
    pub estimator: Estimator,
    /// What a weight is.
    pub unit: WeightUnit,
    /// `tau`: packets that waited no longer are left alone. 2 ms by default.
    pub tau: Nanos,
    /// What stands in the queue as a packet leaves, in the time that the link needs for it: with less behind them, packets are
    /// left alone. None by default, as in the paper.
    pub behind: Nanos,
    /// `w_T`, in `unit`. 512 packets by default.
    pub threshold: f64,
    /// With which probability a packet of a flow of some weight is chosen.
    pub curve: Curve,
    /// What becomes of a packet that was chosen.
    pub response: Response,
    /// Where that happens.
    pub act_at: ActAt,
    /// When `tau` and `threshold` become others, as a control plane would have it. Never by default.
    pub changes: Vec<ConQuestChange>,
    /// What the queue of each port is, which the driver keeps. 16384 packets by default.
    pub queue: TailDropParams,
}

/// A change of the parameters while the program runs; what it does not name stays.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ConQuestChange {
    /// When it is made: packets from then on meet it. Of several at one time the last holds.
    pub at: Nanos,
    /// Another `tau`.
    pub tau: Option<Nanos>,
    /// Another `w_T`, in the unit that there is.
    pub threshold: Option<f64>,
}

/// What a flow's weight is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightUnit {
    /// Packets of the flow.
    Packets,
    /// Bytes of the flow.
    Bytes,
    /// Bytes of the flow over those of all flows in the same windows, by the same estimator: what rounding to windows
    /// takes from one it takes from the other. From 0 to 1; collisions may make it more.
    ShareOfDeparted,
    /// Bytes of the flow over what the link sends in the packet's delay. Costs no second count, but must know the rate, and
    /// is lower where the link sends less than it could.
    ShareOfDelay,
    /// Packets of the flow over all packets that the packet found in the queue, which a switch knows by itself. From 0 to 1;
    /// collisions may make it more.
    ShareOfQueue,
}

/// What becomes of a packet that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// It is marked if it is ECN-capable, else dropped.
    MarkOrDrop,
    /// It is marked if it is ECN-capable, else left alone.
    MarkOnly,
    /// It is dropped.
    Drop,
}

/// Where the AQM acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActAt {
    /// On the packet that was chosen, as it leaves the queue. A drop here has cost the link its turn.
    Egress,
    /// On packets of its flow that come later, before the queue (section 4.2, "act on future packets"). The one that was
    /// chosen goes on as it is.
    Ingress(HoldParams),
}

/// How ingress remembers flows that were fed back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldParams {
    /// For how long it acts on a flow after it was last fed back.
    pub hold: Nanos,
    /// Registers of the array that remembers; 0 is taken as 1. A register holds one flow, found by hash, and the last one
    /// that came is in it: a collision makes ingress forget a flow early, never act on another.
    pub registers: u32,
}

/// The ConQuest AQM.
#[derive(Debug)]
pub struct ConQuestAqm {
    params: ConQuestAqmParams,
    ports: Vec<PortState>,
    held: Held,
    /// The place in `params.changes` of the next one.
    next_change: usize,
    stats: ConQuestAqmStats,
}

/// What is kept of a port.
#[derive(Debug)]
struct PortState {
    rate: Rate,
    /// `behind`, in bytes.
    behind: ByteCount,
    flows: ConQuest,
    /// All flows as one.
    all: Option<ConQuest>,
    random: Random,
}

/// What the ConQuest AQM counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConQuestAqmStats {
    /// Packets that left a queue.
    pub departed: u64,
    /// Those that had waited longer than `tau`.
    pub congested: u64,
    /// Of these, those that the curve chose.
    pub chosen: u64,
    /// Packets that were marked, at egress or at ingress.
    pub marked: u64,
    /// Packets that were dropped, at egress or at ingress.
    pub dropped: u64,
    /// Packets that were to be marked and showed CE already.
    pub marked_before: u64,
    /// Packets that were left alone because they cannot be marked ([`Response::MarkOnly`]).
    pub spared: u64,
    /// Copies that came back to ingress.
    pub fed_back: u64,
    /// Of these, those that took the register of another flow that was still held.
    pub collisions: u64,
}

counters!(ConQuestAqmStats {
    departed,
    congested,
    chosen,
    marked,
    dropped,
    marked_before,
    spared,
    fed_back,
    collisions,
});

impl Default for ConQuestAqmParams {
    fn default() -> Self {
        Self {
            sketch: ConQuestParams {
                snapshots: 4,
                rows: 2,
                columns: 2048,
                window: Nanos(2_000_000),
                expiry: Expiry::Tag,
                weights: Weights::default(),
                seed: 0,
            },
            estimator: Estimator::Overlap,
            unit: WeightUnit::Packets,
            tau: Nanos(2_000_000),
            behind: Nanos::ZERO,
            threshold: 512.0,
            curve: Curve::Threshold,
            response: Response::MarkOrDrop,
            act_at: ActAt::Egress,
            changes: Vec::new(),
            queue: TailDropParams { limit: Limit::Packets(16_384) },
        }
    }
}

/// As long as the default `tau`: about what the queue that was seen needs to drain. 1024 registers of 12 bytes.
impl Default for HoldParams {
    fn default() -> Self {
        Self { hold: Nanos(2_000_000), registers: 1024 }
    }
}

impl ConQuestAqm {
    /// The program of a switch with these ports.
    ///
    /// # Errors
    /// If there can be no sketch of these dimensions.
    pub fn new(params: ConQuestAqmParams, ports: &[Outlet]) -> Result<Self, ParamsError> {
        let mut params = params;
        params.changes.sort_by_key(|change| change.at);
        let port = |outlet: &Outlet| {
            let all = ConQuestParams { rows: 1, columns: 1, ..params.sketch.clone() };
            Ok(PortState {
                rate: outlet.rate,
                behind: outlet.rate.bytes_in(params.behind),
                flows: ConQuest::new(params.sketch.clone())?,
                all: (params.unit == WeightUnit::ShareOfDeparted).then(|| ConQuest::new(all)).transpose()?,
                random: Random::new(outlet.seed),
            })
        };
        let held = match params.act_at {
            ActAt::Egress => Held::new(0),
            ActAt::Ingress(hold) => Held::new(hold.registers.max(1)),
        };
        let ports = ports.iter().map(port).collect::<Result<_, _>>()?;
        Ok(Self { ports, held, next_change: 0, stats: ConQuestAqmStats::default(), params })
    }

    /// The parameters, as they are now.
    pub fn params(&self) -> &ConQuestAqmParams {
        &self.params
    }

    /// What was counted so far.
    pub fn stats(&self) -> &ConQuestAqmStats {
        &self.stats
    }

    /// What the snapshots of a port counted; none of a port that the switch does not have.
    pub fn sketch_stats(&self, port: Port) -> Option<&ConQuestStats> {
        self.ports.get(usize::from(port.0)).map(|port| port.flows.stats())
    }

    /// Another `tau`, from the next packet on.
    pub fn set_tau(&mut self, tau: Nanos) {
        self.params.tau = tau;
    }

    /// Another `w_T`, from the next packet on.
    pub fn set_threshold(&mut self, threshold: f64) {
        self.params.threshold = threshold;
    }

    /// Another curve, from the next packet on.
    pub fn set_curve(&mut self, curve: Curve) {
        self.params.curve = curve;
    }

    /// Whether a packet is chosen as it leaves the queue; it is counted in any case.
    #[inline]
    fn chooses(&mut self, port: Port, departure: &Departure) -> bool {
        let Some(port) = self.ports.get_mut(usize::from(port.0)) else { return false };
        self.stats.departed += 1;
        let behind = departure.backlog_out.bytes >= port.behind;
        let congested = departure.sojourn() > self.params.tau && behind;
        let weight = port.weigh(departure, congested, &self.params);
        if !congested {
            return false;
        }
        self.stats.congested += 1;
        let probability = self.params.curve.probability(weight, self.params.threshold);
        let chosen = happens(probability, &mut port.random);
        self.stats.chosen += u64::from(chosen);
        chosen
    }

    /// What becomes of a chosen packet: whether it is to be dropped.
    #[inline]
    fn respond(&mut self, packet: &mut Packet, now: Nanos, sink: &mut impl Sink) -> bool {
        match (self.params.response, packet.ecn) {
            (Response::MarkOnly, Ecn::NotEct) => self.stats.spared += 1,
            (Response::Drop, _) | (Response::MarkOrDrop, Ecn::NotEct) => {
                self.stats.dropped += 1;
                return true;
            }
            (_, Ecn::Ce) => self.stats.marked_before += 1,
            (_, Ecn::Ect0 | Ecn::Ect1) => {
                packet.ecn = Ecn::Ce;
                self.stats.marked += 1;
                sink.marked(packet, MarkReason::FlowWeight, now);
            }
        }
        false
    }
}

impl PortState {
    /// The weight of a packet's flow, if that is wanted; and the packet is counted.
    #[inline]
    fn weigh(&mut self, departure: &Departure, wanted: bool, params: &ConQuestAqmParams) -> f64 {
        let Departure { packet, enqueued, dequeued: now, .. } = *departure;
        let key = digest(u64::from(packet.flow.0));
        let size = match params.unit {
            WeightUnit::Packets | WeightUnit::ShareOfQueue => 1,
            _ => u32::try_from(packet.size.0).unwrap_or(u32::MAX),
        };
        if !wanted {
            self.flows.record(key, size, now);
            if let Some(all) = &mut self.all {
                all.record(0, size, now);
            }
            return 0.0;
        }
        let own = self.flows.observe(key, size, enqueued, now, params.estimator);
        let all = self.all.as_mut().map(|all| all.observe(0, size, enqueued, now, params.estimator));
        let whole = match params.unit {
            WeightUnit::Packets | WeightUnit::Bytes => return own as f64,
            WeightUnit::ShareOfDeparted => all.unwrap_or(0),
            WeightUnit::ShareOfDelay => self.rate.bytes_in(departure.sojourn()).0,
            WeightUnit::ShareOfQueue => departure.backlog_in.packets,
        };
        if whole == 0 { 0.0 } else { own as f64 / whole as f64 }
    }
}

impl Pipeline for ConQuestAqm {
    #[inline]
    fn ingress(
        &mut self,
        port: Port,
        packet: &mut Packet,
        headers: &mut Headers,
        now: Nanos,
        sink: &mut impl Sink,
    ) -> Ingress {
        let ActAt::Ingress(HoldParams { hold, .. }) = self.params.act_at else {
            return if headers.fed_back { Ingress::Consume } else { Ingress::Enqueue(0) };
        };
        if headers.fed_back {
            self.stats.fed_back += 1;
            self.stats.collisions += u64::from(self.held.hold(port, packet.flow, now, now.saturating_add(hold)));
            return Ingress::Consume;
        }
        if self.held.holds(port, packet.flow, now) && self.respond(packet, now, sink) {
            return Ingress::Drop(DropReason::FlowWeight);
        }
        Ingress::Enqueue(0)
    }

    #[inline]
    fn egress(&mut self, port: Port, departure: &mut Departure, _: &mut Headers, sink: &mut impl Sink) -> Egress {
        if !self.chooses(port, departure) {
            return Egress::Send;
        }
        if matches!(self.params.act_at, ActAt::Ingress(_)) {
            return Egress::SendAndFeedBack;
        }
        if self.respond(&mut departure.packet, departure.dequeued, sink) {
            Egress::Drop(DropReason::FlowWeight)
        } else {
            Egress::Send
        }
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        self.params.changes.get(self.next_change).map(|change| change.at)
    }

    /// Makes the changes whose time has come.
    fn on_timer(&mut self, now: Nanos) {
        while let Some(ConQuestChange { tau, threshold, .. }) =
            self.params.changes.get(self.next_change).copied().filter(|change| change.at <= now)
        {
            self.set_tau(tau.unwrap_or(self.params.tau));
            self.set_threshold(threshold.unwrap_or(self.params.threshold));
            self.next_change += 1;
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

/// Something that is so probable: never at 0, always at 1. One number is drawn in any case, so that what comes after does
/// not depend on this probability.
#[inline]
fn happens(probability: f64, random: &mut Random) -> bool {
    u64::from(random.bits()) < (probability * (1u64 << 32) as f64) as u64
}
