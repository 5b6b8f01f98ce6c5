//! P4air: finds the kind of congestion control of each flow, gives each kind its own queues, and slows down flows that
//! send more than their share (Turkovic and Kuipers, ICNP 2020).
//!
//! Three modules work on each packet (figure 2):
//!
//! 1. *Fingerprint* (section III-A): [`SendingRate`] before the queue and [`QueueGrowth`] behind it. A flow that changes
//!    its group is sent back to ingress, where groups are kept.
//! 2. *Reallocation* (section III-B): the queues of a port are divided among the four groups of long-lived flows, so that
//!    each queue has about as many flows. Queue 0 is for ants, queue 1 for mice.
//! 3. *Actions* (section III-C): once a flow has sent its share of the link in a round trip, its further packets are dropped
//!    or delayed, or its receive window is lowered, by its group.
//!
//! Section V proposes more for deployments: weighted queues ([`Queueing`]), other round-trip times ([`RttSource`]), actions by
//! delay ([`ActOn`]), a count of the flows of each queue ([`Assignment`]), and a group of flows that another switch shapes
//! ([`P4airParams::mark`]).
//!
//! [`P4airParams::by_rtt`] is our own extension: queues by group and by round-trip time ([`Assignment::ByRtt`]), a group of L4S
//! flows that are marked ([`P4airParams::scalable`]), a finer share ([`ShareForm::Parts`]), and pulses as slow as BBRv3's.
//!
//! Everything is in integers, and flows are kept in a table that is found by a hash, as on a switch, or without
//! collisions ([`FlowTable`]).
//!
//! The paper leaves these points open; a parameter measures the effect of each choice.
//!
//! | open in the paper | here |
//! | --- | --- |
//! | what an ant is | a flow without TCP, and one without data; so are SYNs, whose delay in the queue of mice would be part of the flow's round-trip time. Without TCP, it is long-lived once it fills its share of the link |
//! | whether a new flow counts in its own share | it does: with no other flow, its share is the whole link |
//! | what "the newest flow" is | the one that was assigned last to its queue; only that flow is moved to another group ([`Newest::OfQueue`]) |
//! | what becomes of the others | they are judged when they are the newest in turn: within a round trip after the newest has moved |
//! | how often actions apply | to each packet above the share ([`ActEvery`]), as section III-C runs the module "only when the flow the packet belongs to is sending above its BDP" |
//! | which action for which group | drops for loss-based and loss-delay flows, recirculation for delay-based ones, the receive window for model-based ones, which ignore both ([`GroupActions`]) |
//! | how long a packet is delayed | [`P4airParams::delay_passes`] passes of recirculation |
//! | whether a reclassified packet itself is recirculated | a copy of its headers is: the packet goes on, so that nothing is reordered and no time on the link is lost |
//! | when a flow ends | with a FIN, at once, or after [`P4airParams::idle`] without a packet |

mod actions;
mod flows;
mod groups;
mod metadata;
mod params;
mod port;
mod ranks;
mod rtt;
mod share;
mod shares;
mod stats;
mod switch;

use crate::{
    DropReason, Egress, Headers, Ingress, Limit, MarkReason, MultiQueueParams, Outlet, Pipeline, Port, Scheduler, Sink,
};
use actions::Verdict;
pub use flows::FlowTable;
use flows::{Flow, Flows};
use metadata::{DELAYED, Metadata, PASS, PASSES};
pub use params::{ActEvery, ActOn, FlowAction, GroupActions, Newest, P4airParams, Queueing};
use port::P4airPort;
use queuescope_sketch::{FlowGroup, SendingRate, Ticks};
use queuescope_tcp::{Flags, Segment};
use queuescope_wire::{Departure, Ecn, FlowId, Nanos, Packet};
pub use rtt::{RttFilter, RttSource};
pub use share::ShareForm;
use shares::GROUPS;
pub use shares::{Assignment, Start};
pub use stats::P4airStats;
use std::num::NonZeroU16;
pub use switch::{
    RegisterOf, SwitchFate, SwitchNote, SwitchP4air, SwitchP4airError, SwitchP4airParams, SwitchPacket, SwitchRegister,
    SwitchRequest, SwitchShift, SwitchTcp,
};

/// The queues of short-lived flows.
const ANTS: u16 = 0;
const MICE: u16 = 1;
/// The first queue of long-lived flows.
const LONG_LIVED: u16 = 2;

/// P4air on the managed ports of a switch.
#[derive(Debug)]
pub struct P4air {
    params: P4airParams,
    /// By port number; `None` for a port that is not managed.
    ports: Vec<Option<P4airPort>>,
    flows: Flows,
    /// How many flows have been assigned to a group so far.
    assigned: u32,
    moves: Vec<GroupMove>,
    /// When to look for idle flows next.
    sweep: Option<Nanos>,
    /// When to compute the places of round-trip times next.
    ranking: Option<Nanos>,
    stats: P4airStats,
}

/// A flow that changed its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupMove {
    /// The flow.
    pub flow: FlowId,
    /// When.
    pub at: Nanos,
    /// The round trip of the flow in which it happened, counted from its first.
    pub round: u32,
    /// The group that it left.
    pub from: FlowGroup,
    /// The group that it entered.
    pub to: FlowGroup,
}

/// The most changes of groups that are recorded, of 40 bytes each.
const MOST_MOVES: usize = 1 << 16;

impl P4air {
    /// Creates the program for a switch with these ports. It knows no flow yet.
    ///
    /// # Errors
    /// Fails if a managed port is not one of the switch's.
    pub fn new(params: P4airParams, outlets: &[Outlet]) -> Result<Self, P4airError> {
        let queues = match params.queueing {
            Queueing::Divided => params.queues.max(LONG_LIVED + params.long_lived_groups()),
            Queueing::Weighted => LONG_LIVED + params.long_lived_groups(),
        };
        let (idle, rank_interval) = (params.idle.max(Nanos(1)), params.rank_interval.max(Nanos(1_000_000)));
        let params = P4airParams { queues, idle, rank_interval, ..params };
        let mut ports: Vec<Option<P4airPort>> = outlets.iter().map(|_| None).collect();
        for Port(number) in params.ports.iter().copied() {
            let Some(outlet) = outlets.get(usize::from(number)) else {
                return Err(P4airError { port: number, ports: outlets.len() });
            };
            ports[usize::from(number)] = Some(P4airPort::new(&params, outlet));
        }
        let flows = Flows::new(params.table);
        Ok(Self {
            ports,
            flows,
            assigned: 0,
            moves: Vec::new(),
            sweep: None,
            ranking: None,
            stats: P4airStats::default(),
            params,
        })
    }

    /// The counters so far.
    pub fn stats(&self) -> &P4airStats {
        &self.stats
    }

    /// The changes of groups so far, in the order in which they took effect. Only the first 65 536 are kept; the counters
    /// have them all.
    pub fn moves(&self) -> &[GroupMove] {
        &self.moves
    }

    /// The group of a flow; `None` if the program does not know it.
    pub fn group(&self, flow: FlowId) -> Option<FlowGroup> {
        self.flows.find(flow).map(|entry| self.flows.at(entry).group)
    }

    /// The round-trip time of a flow as [`P4airParams::rtt`] gave it; `None` if the program does not know it.
    pub fn rtt(&self, flow: FlowId) -> Option<Nanos> {
        self.flows.find(flow).and_then(|entry| self.flows.at(entry).rate.rtt())
    }

    /// The queues of a group of long-lived flows on a port, and how many flows it has; `None` for a port that is not
    /// managed, and for short-lived flows.
    pub fn queues_of(&self, port: Port, group: FlowGroup) -> Option<(std::ops::Range<u16>, u32)> {
        let shares = &self.ports.get(usize::from(port.0))?.as_ref()?.shares;
        let (group, range) = group.long_lived().map(|group| (group, shares.queues(group)))?;
        Some((range.start + LONG_LIVED..range.end + LONG_LIVED, shares.flows(group)))
    }

    /// The flows that it knows and that have not ended.
    pub fn flows(&self) -> u32 {
        self.flows.all().filter(|flow| !flow.has_ended).count() as u32
    }

    /// The flows in each queue of long-lived flows on a port; `None` for a port that is not managed.
    pub fn in_queues(&self, port: Port) -> Option<Vec<u32>> {
        let shares = &self.ports.get(usize::from(port.0))?.as_ref()?.shares;
        let mut counts = vec![0; shares.all_queues().into()];
        let counted = self.flows.all().filter(|flow| flow.port == port && !flow.has_ended);
        for queue in counted.filter_map(|flow| flow.queue) {
            counts[usize::from(queue)] += 1;
        }
        debug_assert!(self.params.assignment != Assignment::Counted || shares.in_queues() == counts, "{shares:?}");
        Some(counts)
    }

    /// A packet on its way to a managed port.
    fn enter(
        &mut self,
        port: Port,
        packet: &mut Packet,
        headers: &mut Headers,
        now: Nanos,
        sink: &mut impl Sink,
    ) -> Ingress {
        headers.metadata = 0;
        let data = headers.tcp.is_none_or(|tcp| tcp.length > 0);
        let syn = headers.tcp.is_some_and(|tcp| tcp.flags.contains(Flags::SYN));
        let Some(entry) = self.entry_of(port, packet.flow, headers.tcp.as_ref(), now) else {
            self.stats.ants += 1;
            return Ingress::Enqueue(ANTS);
        };
        let flow = self.flows.at_mut(entry);
        flow.last = Ticks::new(now);
        if headers.tcp.is_some_and(|tcp| tcp.flags.contains(Flags::FIN)) {
            self.finish(entry);
        }
        let flow = self.flows.at_mut(entry);
        if syn {
            flow.rate.on_repeated_syn(now, &self.params.fingerprint);
            // Not behind the mice: the flow's round-trip time must not contain their queue, nor a timeout because it is full.
            return Ingress::Enqueue(ANTS);
        }
        self.stats.tracked += 1;
        let is_shaped = self.params.marks() && packet.class == self.params.mark && flow.group != FlowGroup::Shaped;
        let is_scalable = self.params.scalable && packet.ecn == Ecn::Ect1;
        let known = flow.rate.rtt().is_some();
        // The ACK that ends the handshake gives the round-trip time, but only data counts.
        let ended =
            (data || !known).then(|| flow.rate.on_packet(u32::from(data), now, &self.params.fingerprint)).flatten();
        if ended.is_some() {
            flow.round = flow.round.saturating_add(1);
            flow.late = flow.late.saturating_sub(1);
            flow.was_above = std::mem::take(&mut flow.is_above);
        }
        if self.params.rtt != RttSource::Handshake {
            flow.measure_rtt(self.params.rtt, headers, !known, now);
        }
        if !data {
            return Ingress::Enqueue(self.queue_of(port, entry));
        }
        if is_shaped {
            self.move_to(entry, FlowGroup::Shaped, now);
        }
        if is_scalable && FlowGroup::LONG_LIVED.contains(&self.flows.at(entry).group) {
            self.move_to(entry, FlowGroup::Scalable, now);
        }
        let verdict = self.judge(port, entry, ended.as_ref(), headers.tcp.is_some(), now);
        headers.metadata = Metadata { entry, group: self.flows.at(entry).group, ended, is_late: false }.pack();
        match verdict {
            Verdict::Pass => Ingress::Enqueue(self.queue_of(port, entry)),
            Verdict::Mark if packet.ecn.is_capable() => {
                if packet.ecn != Ecn::Ce {
                    self.stats.marked += 1;
                    packet.ecn = Ecn::Ce;
                    sink.marked(packet, MarkReason::FairShare, now);
                }
                Ingress::Enqueue(self.queue_of(port, entry))
            }
            Verdict::Mark => {
                self.stats.dropped += 1;
                Ingress::Drop(DropReason::FairShare)
            }
            Verdict::Drop(reason) => Ingress::Drop(reason),
            Verdict::Delay => {
                headers.metadata |= DELAYED;
                Ingress::Recirculate
            }
        }
    }

    /// A packet that ingress delays comes again.
    fn delay(&mut self, port: Port, headers: &mut Headers) -> Ingress {
        let passes = (headers.metadata & PASSES) / PASS;
        if passes + 1 < u64::from(self.params.delay_passes.min(0xfff)) {
            headers.metadata += PASS;
            return Ingress::Recirculate;
        }
        headers.metadata &= !(DELAYED | PASSES);
        match Metadata::unpack(headers.metadata) {
            // The flow may have been removed meanwhile.
            Some(Metadata { entry, .. }) if self.flows.get(entry).is_some() => {
                Ingress::Enqueue(self.queue_of(port, entry))
            }
            _ => Ingress::Enqueue(ANTS),
        }
    }

    /// The entry of a packet's flow. `None` if the packet opens no entry: it is without data and its SYN was not seen.
    fn entry_of(&mut self, port: Port, flow: FlowId, tcp: Option<&Segment>, now: Nanos) -> Option<u32> {
        let ticks = Ticks::new(now);
        let idle = (self.params.idle.0 >> 10).min(u64::from(u32::MAX)) as u32;
        let is_live = |known: &Flow| ticks.since(known.last) < idle && !known.has_ended;
        let syn = tcp.is_some_and(|tcp| tcp.flags.contains(Flags::SYN));
        let entry = self.flows.slot(flow);
        if let Some(known) = self.flows.get(entry) {
            if known.flow == flow && (is_live(known) || !syn) {
                return Some(entry);
            }
            if is_live(known) {
                // A switch does not store which flow an entry belongs to: both flows are one to it.
                self.stats.collisions += 1;
                return Some(entry);
            }
            self.remove(entry);
        }
        let data = tcp.is_none_or(|tcp| tcp.length > 0);
        if !syn && !data {
            return None;
        }
        let rate = if syn {
            SendingRate::with_syn(now)
        } else {
            SendingRate::without_handshake(now, &self.params.fingerprint)
        };
        let group = if tcp.is_some() { FlowGroup::Mouse } else { FlowGroup::Ant };
        self.flows.insert(entry, Flow::new(flow, port, group, rate, ticks));
        if let Some(Some(state)) = self.ports.get_mut(usize::from(port.0)) {
            state.move_flow(None, Some(group));
        }
        self.sweep.get_or_insert(now.saturating_add(self.params.idle));
        if self.params.assignment == Assignment::ByRtt {
            self.ranking.get_or_insert(now.saturating_add(self.params.rank_interval));
        }
        Some(entry)
    }

    /// Measures a round-trip time with a packet of a flow's other direction.
    fn measure_reverse(&mut self, port: Port, headers: &Headers, now: Nanos) {
        let (Some(tcp), Some(entry)) = (&headers.tcp, self.flows.find(headers.reverse)) else { return };
        let source = self.params.rtt;
        let flow = self.flows.at_mut(entry);
        if flow.port != port {
            let sample = flow.watch.on_reverse(source, tcp, headers.queueing, now);
            flow.estimate_rtt(source, sample);
        }
    }

    /// Adds what a packet waited here to what it waited at the switches before; to an ACK, what waits in the other direction.
    fn add_queueing(&mut self, port: Port, departure: &Departure, headers: &mut Headers) {
        let is_managed = matches!(self.ports.get(usize::from(port.0)), Some(Some(_)));
        let own = if is_managed { departure.packet.flow } else { headers.reverse };
        let Some(entry) = self.flows.find(own) else { return };
        let flow = self.flows.at_mut(entry);
        if flow.port == port {
            flow.watch.waited = u32::try_from(departure.sojourn().0).unwrap_or(u32::MAX);
        }
        headers.queueing = headers.queueing.saturating_add(flow.watch.waited);
    }
}

impl Pipeline for P4air {
    fn ingress(
        &mut self,
        port: Port,
        packet: &mut Packet,
        headers: &mut Headers,
        now: Nanos,
        sink: &mut impl Sink,
    ) -> Ingress {
        if headers.fed_back {
            self.stats.fed_back += 1;
            if let Some(Metadata { entry, group, is_late, .. }) = Metadata::unpack(headers.metadata)
                && self.flows.get(entry).is_some_and(|flow| flow.flow == packet.flow || self.flows.is_hashed())
            {
                if is_late {
                    self.flows.at_mut(entry).late = Flow::LATE;
                } else {
                    self.move_to(entry, group, now);
                }
            }
            return Ingress::Consume;
        }
        if headers.metadata & DELAYED != 0 {
            return self.delay(port, headers);
        }
        if self.params.rtt != RttSource::Handshake {
            self.measure_reverse(port, headers, now);
        }
        self.lower_window(port, headers);
        if !matches!(self.ports.get(usize::from(port.0)), Some(Some(_))) {
            return Ingress::Enqueue(0);
        }
        self.enter(port, packet, headers, now, sink)
    }

    fn egress(&mut self, port: Port, departure: &mut Departure, headers: &mut Headers, _: &mut impl Sink) -> Egress {
        if self.params.rtt == RttSource::LessQueueing {
            self.add_queueing(port, departure, headers);
        }
        let Some(Metadata { entry, group, ended, .. }) = Metadata::unpack(headers.metadata) else {
            return Egress::Send;
        };
        if self.params.marks() && group.long_lived().is_some() {
            departure.packet.class = self.params.mark;
        }
        let depth = headers.queue_depth;
        let Some(flow) = self.flows.get_mut(entry) else { return Egress::Send };
        if flow.group.long_lived().is_none() || flow.group != group {
            return Egress::Send;
        }
        let to = flow.growth.on_packet(depth, group, ended.as_ref(), &self.params.fingerprint);
        let judged = *flow;
        let to = to.filter(|to| *to == FlowGroup::ModelBased || self.is_newest(port, &judged));
        if let ActOn::Delay { target } = self.params.act_on {
            let late = to.is_none() && departure.sojourn() > target;
            if !self.flows.at_mut(entry).reports_delay(late, ended.is_some()) && to.is_none() {
                return Egress::Send;
            }
        } else if to.is_none() {
            return Egress::Send;
        }
        let copy = Metadata { entry, group: to.unwrap_or(group), ended: None, is_late: to.is_none() };
        headers.metadata = copy.pack();
        Egress::SendAndFeedBack
    }

    fn queues(&self, limit: Limit) -> MultiQueueParams {
        let queues = NonZeroU16::new(self.params.queues).unwrap_or(NonZeroU16::MIN);
        let scheduler = match self.params.queueing {
            Queueing::Divided => Scheduler::RoundRobin,
            Queueing::Weighted => Scheduler::Deficit { quantum: self.params.packet },
        };
        MultiQueueParams { queues, scheduler, ..MultiQueueParams::one(limit) }
    }

    fn weight(&self, port: Port, queue: u16) -> u32 {
        match self.ports.get(usize::from(port.0)) {
            Some(Some(state)) if self.params.queueing == Queueing::Weighted => state.weight(queue),
            _ => 1,
        }
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.sweep.into_iter().chain(self.ranking).min()
    }

    /// Removes flows that have ended, as a control plane would.
    fn on_timer(&mut self, now: Nanos) {
        if self.ranking.is_some_and(|ranking| now >= ranking) {
            self.rank();
            self.ranking = (!self.flows.is_empty()).then(|| now.saturating_add(self.params.rank_interval));
        }
        if self.sweep.is_none_or(|sweep| now < sweep) {
            return;
        }
        let idle = (self.params.idle.0 >> 10).min(u64::from(u32::MAX)) as u32;
        let ticks = Ticks::new(now);
        for entry in self.flows.entries(|flow| flow.has_ended || ticks.since(flow.last) >= idle) {
            self.remove(entry);
        }
        self.sweep = (!self.flows.is_empty()).then(|| now.saturating_add(self.params.idle));
    }

    fn sees_all_ports(&self) -> bool {
        true
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

/// A managed port that the switch does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("P4air cannot manage port {port}: the switch has {ports} ports, numbered from 0")]
pub struct P4airError {
    /// The port number that was given.
    pub port: u16,
    /// The number of ports of the switch.
    pub ports: usize,
}
