//! The ConQuest AQM: marks or drops packets of flows that have too much of the queue (Chen et al., CoNEXT 2019,
//! sections 4.2 and 5.2).
//!
//! Behind the queue, each packet that waited longer than `tau` looks up its flow's weight `w_f`: the part of its flow
//! that left the queue while the packet waited. In a FIFO that is the part of its flow that was ahead of it. A
//! [`Curve`] gives the probability of a mark or drop for that weight. Or the flow is fed back to ingress, where its
//! next packets are marked, dropped, limited to a rate or put into another queue ([`ActAt::Ingress`]).
//!
//! Each port has its own snapshots. A port counts as one FIFO: several queues of a port share the snapshots, and a
//! weight then covers everything that left the port meanwhile.
//!
//! Choices where the paper is open:
//!
//! - Section 3.1 acts from `tau` on, sections 5.1 and 5.2 above it. Here a packet must have waited longer than `tau`.
//!   Section 4.2 marks at `w_f >= w_T`, section 5.2 above it. Here marks start at `w_T`.
//! - A packet that is dropped here has left the queue, so it counts in the snapshots like any other.
//! - Each chosen packet is fed back, even if its flow is held already: egress cannot read the registers of ingress.

mod curve;
mod held;
mod params;

use crate::counters::counters;
use crate::hash_to_queues::digest;
use crate::random::Random;
use crate::{DropReason, Egress, Headers, Ingress, Limit, MarkReason, MultiQueueParams, Outlet, Pipeline, Port, Sink};
pub use curve::{Curve, Step, Steps, StepsError};
use held::HeldFlows;
pub use params::{ActAt, ConQuestAqmParams, ConQuestChange, FlowLimit, HeldAction, HoldParams, Response, WeightUnit};
use queuescope_sketch::{ConQuest, ConQuestParams, ConQuestStats, ParamsError};
use queuescope_wire::{ByteCount, Departure, Ecn, FlowId, Nanos, Packet, Rate};
use std::num::NonZeroU16;

/// The ConQuest AQM.
///
/// ```
/// use queuescope_queue::{ConQuestAqm, ConQuestAqmParams, Curve, Egress, Headers, Host, Outlet, Pipeline, Port};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_wire::{ByteCount, Departure, FlowId, Nanos, Packet, PacketId, QueueId};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// // Acts on flows with more than 50 packets in the queue.
/// let params = ConQuestAqmParams { threshold: 50.0, curve: Curve::Threshold, ..ConQuestAqmParams::default() };
/// let ports = [Outlet { rate: "1gbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 }];
/// let mut program = ConQuestAqm::new(params, &ports)?;
/// let mut dropped = [0; 2];
/// for n in 0..1_000 {
///     let flow = u32::from(n % 20 == 0); // flow 1 sends one packet of 20
///     let packet = Packet { id: PacketId(n), flow: FlowId(flow), size: ByteCount(1500), ..Packet::default() };
///     let dequeued = Nanos(10_000_000 + 12_000 * n);
///     let mut departure = Departure { packet, enqueued: dequeued - Nanos(3_000_000), dequeued, ..Departure::default() };
///     let mut headers = Headers::plain(Host(flow), Host(9), FlowId(100 + flow));
///     let egress = program.egress(Port(0), &mut departure, &mut headers, &mut NoSink);
///     dropped[flow as usize] += u32::from(egress != Egress::Send);
/// }
/// println!("dropped: {} of flow 0, {} of flow 1", dropped[0], dropped[1]);
/// assert!(dropped[0] > 500 && dropped[1] == 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ConQuestAqm {
    params: ConQuestAqmParams,
    ports: Vec<ConQuestPort>,
    held: HeldFlows,
    /// Index of the next change in `params.changes`.
    next_change: usize,
    stats: ConQuestAqmStats,
}

/// The state of a port.
#[derive(Debug)]
struct ConQuestPort {
    rate: Rate,
    /// `behind`, in bytes.
    behind: ByteCount,
    flows: ConQuest,
    /// All flows counted as one.
    all: Option<ConQuest>,
    random: Random,
}

/// The counters of the ConQuest AQM.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConQuestAqmStats {
    /// Packets that left a queue.
    pub departed: u64,
    /// Packets that waited longer than `tau`.
    pub congested: u64,
    /// Of these, packets that the curve chose.
    pub chosen: u64,
    /// Packets that were marked, at egress or at ingress.
    pub marked: u64,
    /// Packets that were dropped, at egress or at ingress.
    pub dropped: u64,
    /// Packets to be marked that already carried CE.
    pub marked_before: u64,
    /// Packets that were left alone because they are not ECN-capable ([`Response::MarkOnly`]).
    pub spared: u64,
    /// Packets that were fed back to ingress.
    pub fed_back: u64,
    /// Of these, packets that took the register of another flow that was still held.
    pub collisions: u64,
    /// Packets of held flows that were within their limit ([`HeldAction::Limit`]). Others were dropped.
    pub within_limit: u64,
    /// Packets of held flows that entered the other queue ([`HeldAction::Reroute`]).
    pub rerouted: u64,
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
    within_limit,
    rerouted,
});

impl ConQuestAqm {
    /// Creates the program for a switch with these ports.
    ///
    /// # Errors
    /// Fails if the dimensions of the sketch are invalid.
    pub fn new(params: ConQuestAqmParams, ports: &[Outlet]) -> Result<Self, ParamsError> {
        let mut params = params;
        params.changes.sort_by_key(|change| change.at);
        let port = |outlet: &Outlet| {
            let all = ConQuestParams { rows: 1, columns: 1, ..params.sketch.clone() };
            Ok(ConQuestPort {
                rate: outlet.rate,
                behind: outlet.rate.bytes_in(params.behind),
                flows: ConQuest::new(params.sketch.clone())?,
                all: (params.unit == WeightUnit::ShareOfDeparted).then(|| ConQuest::new(all)).transpose()?,
                random: Random::new(outlet.seed),
            })
        };
        let held = match params.act_at {
            ActAt::Egress => HeldFlows::new(0),
            ActAt::Ingress(hold) => HeldFlows::new(hold.registers.max(1)),
        };
        let ports = ports.iter().map(port).collect::<Result<_, _>>()?;
        Ok(Self { ports, held, next_change: 0, stats: ConQuestAqmStats::default(), params })
    }

    /// The current parameters.
    pub fn params(&self) -> &ConQuestAqmParams {
        &self.params
    }

    /// The counters so far.
    pub fn stats(&self) -> &ConQuestAqmStats {
        &self.stats
    }

    /// The counters of the snapshots of a port; `None` for a port that the switch does not have.
    pub fn sketch_stats(&self, port: Port) -> Option<&ConQuestStats> {
        self.ports.get(usize::from(port.0)).map(|port| port.flows.stats())
    }

    /// The snapshots of a port; `None` for a port that the switch does not have.
    pub fn snapshots(&self, port: Port) -> Option<&ConQuest> {
        self.ports.get(usize::from(port.0)).map(|port| &port.flows)
    }

    /// The register of a flow at ingress; 0 if the program does not act there.
    pub fn register_of(&self, port: Port, flow: FlowId) -> usize {
        self.held.register_index(port, flow)
    }

    /// The time of a limit in a register at ingress, to which the packets of its flow have come ([`HeldAction::Limit`]). `None` beyond the last
    /// register.
    pub fn limit_time(&self, register: usize) -> Option<Nanos> {
        self.held.time(register)
    }

    /// The key of a flow in the snapshots.
    pub fn key(flow: FlowId) -> u64 {
        digest(u64::from(flow.0))
    }

    /// Sets `tau` from the next packet on.
    pub fn set_tau(&mut self, tau: Nanos) {
        self.params.tau = tau;
    }

    /// Sets `w_T` from the next packet on.
    pub fn set_threshold(&mut self, threshold: f64) {
        self.params.threshold = threshold;
    }

    /// Sets the curve from the next packet on.
    pub fn set_curve(&mut self, curve: Curve) {
        self.params.curve = curve;
    }

    /// Whether a packet is chosen as it leaves the queue. It enters the snapshots in any case.
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

    /// Counts a drop, if it is one.
    #[inline]
    fn drops(&mut self, drops: bool) -> bool {
        self.stats.dropped += u64::from(drops);
        drops
    }

    /// Whether held flows have a queue of their own.
    fn reroutes(&self) -> bool {
        matches!(self.params.act_at, ActAt::Ingress(HoldParams { action: HeldAction::Reroute, .. }))
    }

    /// Marks a chosen packet, or returns true if it is to be dropped.
    #[inline]
    fn respond(&mut self, packet: &mut Packet, now: Nanos, sink: &mut impl Sink) -> bool {
        match (self.params.response, packet.ecn) {
            (Response::MarkOnly, Ecn::NotEct) => self.stats.spared += 1,
            (Response::Drop, _) | (Response::MarkOrDrop, Ecn::NotEct) => return self.drops(true),
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

impl ConQuestPort {
    /// Counts the packet in the snapshots, and returns the weight of its flow if `wanted`.
    #[inline]
    fn weigh(&mut self, departure: &Departure, wanted: bool, params: &ConQuestAqmParams) -> f64 {
        let Departure { packet, enqueued, dequeued: now, .. } = *departure;
        let key = ConQuestAqm::key(packet.flow);
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
        let ActAt::Ingress(HoldParams { hold, action, .. }) = self.params.act_at else {
            return if headers.fed_back { Ingress::Consume } else { Ingress::Enqueue(0) };
        };
        if headers.fed_back {
            self.stats.fed_back += 1;
            self.stats.collisions += u64::from(self.held.hold(port, packet.flow, now, now.saturating_add(hold)));
            return Ingress::Consume;
        }
        let is_held = self.held.holds(port, packet.flow, now);
        let is_dropped = is_held
            && match action {
                HeldAction::Respond => self.respond(packet, now, sink),
                HeldAction::Drop => self.drops(true),
                HeldAction::Limit(limit) => {
                    let passes = self.held.passes(port, packet.flow, now, &limit);
                    self.stats.within_limit += u64::from(passes);
                    self.drops(!passes)
                }
                HeldAction::Reroute => {
                    self.stats.rerouted += 1;
                    return Ingress::Enqueue(ASIDE);
                }
            };
        match action {
            _ if is_dropped => Ingress::Drop(DropReason::FlowWeight),
            HeldAction::Reroute => Ingress::Enqueue(REGULAR),
            _ => Ingress::Enqueue(0),
        }
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

    /// Makes the changes that are due.
    fn on_timer(&mut self, now: Nanos) {
        while let Some(ConQuestChange { tau, threshold, .. }) =
            self.params.changes.get(self.next_change).copied().filter(|change| change.at <= now)
        {
            self.set_tau(tau.unwrap_or(self.params.tau));
            self.set_threshold(threshold.unwrap_or(self.params.threshold));
            self.next_change += 1;
        }
    }

    fn queues(&self, limit: Limit) -> MultiQueueParams {
        let queues = if self.reroutes() { const { NonZeroU16::new(2).unwrap() } } else { NonZeroU16::MIN };
        MultiQueueParams { queues, ..MultiQueueParams::one(limit) }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

/// The queue of rerouted flows, and that of all others. BMv2 serves the queue of the lowest number last.
const ASIDE: u16 = 0;
const REGULAR: u16 = 1;

/// True with this probability: never at 0, always at 1. One number is drawn in any case, so that later draws do not
/// depend on this probability.
#[inline]
fn happens(probability: f64, random: &mut Random) -> bool {
    u64::from(random.bits()) < (probability * (1u64 << 32) as f64) as u64
}
