//! ABC, activity-based congestion management: who sends much is dropped first where there is congestion, and no node in the
//! core knows who that is (Menth et al., Future Internet 2019, section 3).
//!
//! A node on the edge of the domain meters the rate of each [aggregate](Aggregates) and writes its activity into its
//! packets; every node on the way accepts or drops packets by their activity and the length of the queue
//! ([`ActivityAqm`]); the last one strips the activity. What a node does depends on the port towards which a packet goes
//! ([`PortRole`]), as far as the program sees: a packet's port of entry is not known to it. So at an edge that also passes
//! on packets from inside the domain, the table of hosts tells the two apart ([`Others::Inside`]).
//!
//! Choices where the paper is open:
//!
//! - *The activity in the header* is a fixed-point number of 16 bits, 8 of them behind the point (the prototype carried
//!   none); `docs/explanation/abc.md` has what fewer cost.
//! - *A packet without activity* that meets an activity AQM is taken to be average, and does not enter the average
//!   ([`Missing`]).
//! - *What the queue's length is*: [`QueueLength`].
//! - *Delay classes* (section 3.4 names them, Menth and Zeitler 2018 have them): an aggregate's contract has a class, the
//!   class a queue of each port, and the port's scheduler serves one before the other. What decides about a drop is the
//!   length of all queues together and one average for all, so that a class changes who waits, not who is dropped: a
//!   port full of packets that may not jump the queue drops the active ones that may, and so they starve nobody. A class may
//!   cost a surcharge on the activity ([`DelayClass::surcharge`]), so that haste is not free.

mod aggregates;
mod aqm;
mod meter;

use crate::counters::counters;
use crate::{
    Activity, DropReason, Egress, Headers, Ingress, Limit, MultiQueueParams, Outlet, Pipeline, Port, Scheduler, Sink,
    TailDropParams,
};
pub use aggregates::{Aggregates, Contract, Others};
pub use aqm::{ActivityAqm, ActivityAqmParams};
pub use meter::{Average, MeterParams, RateMeter, activity};
use queuescope_wire::{Departure, Nanos, Packet};
use std::num::NonZeroU16;

/// What an ABC node is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct AbcParams {
    /// What is done with packets towards each port, by number; those towards further ports pass. By default port 0 is the
    /// only one that matters and does everything, as in section 6.
    pub ports: Vec<PortRole>,
    /// Whose traffic is metered together.
    pub aggregates: Aggregates,
    /// How it is metered.
    pub meter: MeterParams,
    /// Bits behind the point of an activity in a header, at most 8. 8 by default.
    pub fraction_bits: u8,
    /// The delay classes, by number; a packet of a higher class is of the last. One by default.
    pub classes: Vec<DelayClass>,
    /// How active a packet without activity is.
    pub missing: Missing,
    /// Which length of the queue decides.
    pub queue_length: QueueLength,
    /// What the queues of a port are, which the driver keeps; what they hold is of all together. 24 packets by default; at
    /// least the buffer of [`QueueLength::Counted`].
    pub queue: TailDropParams,
}

/// What is done with packets towards a port.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PortRole {
    /// They come from outside the domain: their aggregates are metered and their activity is written, whatever it was.
    pub meters: bool,
    /// They are accepted or dropped by their activity.
    pub aqm: Option<ActivityAqmParams>,
    /// They leave the domain: their activity is removed.
    pub strips: bool,
}

/// A delay class.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DelayClass {
    /// The queue of a port that its packets enter.
    pub queue: u16,
    /// What edges add to the activity of its packets.
    pub surcharge: f64,
}

/// How active a packet without activity is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Missing {
    /// As active as accepted packets are on average. It does not enter the average.
    #[default]
    Average,
    /// So active; it enters the average.
    Assumed(f64),
}

/// Which length of the queue decides. Both are of all queues of a port, in packets, without the one on the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLength {
    /// The true one. The program knows the buffer and drops what does not fit, so that nothing is dropped between it and the
    /// queue, which must hold as much.
    Counted {
        /// Packets that the port's queues hold together. 24 by default.
        buffer: u64,
    },
    /// A register that each packet which leaves sets to what it left behind, and each accepted one raises by one, as
    /// in section 5.1. It does not know what the queue drops for lack of room: until the next packet leaves, it is too high
    /// by that.
    Register,
}

impl Default for AbcParams {
    fn default() -> Self {
        Self {
            ports: vec![PortRole::single(ActivityAqmParams::default())],
            aggregates: Aggregates::default(),
            meter: MeterParams::default(),
            fraction_bits: Activity::FRACTION_BITS,
            classes: vec![DelayClass::default()],
            missing: Missing::default(),
            queue_length: QueueLength::default(),
            queue: TailDropParams { limit: Limit::Packets(24) },
        }
    }
}

impl AbcParams {
    /// Queues of each port: as many as the delay classes need. Queue 0 is the most urgent.
    pub fn queues(&self) -> u16 {
        self.classes.iter().map(|class| class.queue).max().unwrap_or(0).saturating_add(1)
    }
}

impl Default for QueueLength {
    fn default() -> Self {
        Self::Counted { buffer: 24 }
    }
}

impl PortRole {
    /// Into the domain: meters and writes, and drops.
    pub fn edge(aqm: ActivityAqmParams) -> Self {
        Self { meters: true, aqm: Some(aqm), strips: false }
    }

    /// Within the domain: drops.
    pub fn core(aqm: ActivityAqmParams) -> Self {
        Self { meters: false, aqm: Some(aqm), strips: false }
    }

    /// Out of the domain: strips.
    pub fn exit() -> Self {
        Self { meters: false, aqm: None, strips: true }
    }

    /// The only node of its domain: everything.
    pub fn single(aqm: ActivityAqmParams) -> Self {
        Self { meters: true, aqm: Some(aqm), strips: true }
    }
}

/// An ABC node.
#[derive(Debug)]
pub struct Abc {
    params: AbcParams,
    meters: aggregates::Meters,
    ports: Vec<PortState>,
    stats: AbcStats,
}

/// What is kept of a port.
#[derive(Debug, Clone, Copy, Default)]
struct PortState {
    aqm: ActivityAqm,
    queued: u64,
}

/// What an ABC node counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AbcStats {
    /// Packets whose activity was measured and written.
    pub metered: u64,
    /// Of these, those that came with an activity from outside.
    pub overwritten: u64,
    /// Packets that an AQM accepted.
    pub accepted: u64,
    /// Packets that an AQM dropped.
    pub dropped: u64,
    /// Packets that an AQM would have accepted and that found the buffer full ([`QueueLength::Counted`]).
    pub overlimit: u64,
    /// Packets without activity that met an AQM.
    pub missing: u64,
    /// Packets whose activity was removed.
    pub stripped: u64,
    /// Aggregates that made room for another ([`Others::EachHost`]).
    pub replaced: u64,
    /// Packets that were metered with others for lack of room.
    pub crowded: u64,
}

counters!(AbcStats { metered, overwritten, accepted, dropped, overlimit, missing, stripped, replaced, crowded });

impl Abc {
    /// The program of a switch with these ports.
    ///
    /// # Errors
    /// If it has fewer ports than there are roles, or the table of aggregates or the classes are mistaken.
    pub fn new(params: AbcParams, ports: &[Outlet]) -> Result<Self, AbcError> {
        if params.ports.len() > ports.len() {
            return Err(AbcError::Ports { roles: params.ports.len(), ports: ports.len() });
        }
        if params.classes.is_empty() {
            return Err(AbcError::Classes);
        }
        let meters = aggregates::Meters::new(&params.aggregates, params.meter)?;
        let ports = vec![PortState::default(); params.ports.len()];
        Ok(Self { meters, ports, stats: AbcStats::default(), params })
    }

    /// What was counted so far.
    pub fn stats(&self) -> &AbcStats {
        &self.stats
    }

    /// The length of a port's queue, as the program knows it: 0 of a port without a role.
    pub fn queue_length(&self, port: Port) -> u64 {
        self.ports.get(usize::from(port.0)).map_or(0, |port| port.queued)
    }

    /// A_avg of a port; none before the first packet that was accepted.
    pub fn average_activity(&self, port: Port) -> Option<f64> {
        self.ports.get(usize::from(port.0))?.aqm.average()
    }

    /// The delay class of a packet.
    #[inline]
    fn class(&self, packet: &Packet) -> DelayClass {
        let class = usize::from(packet.class.0).min(self.params.classes.len() - 1);
        self.params.classes[class]
    }

    /// The edge: measures, and writes what it measured.
    #[inline]
    fn meter(&mut self, packet: &mut Packet, headers: &mut Headers, now: Nanos) {
        let Some((activity, contract)) = self.meters.record(headers.source, packet.size, now) else { return };
        packet.class = contract.class;
        let activity = Activity::nearest(activity + self.class(packet).surcharge, self.params.fraction_bits);
        self.stats.metered += 1;
        (self.stats.replaced, self.stats.crowded) = (self.meters.replaced, self.meters.crowded);
        self.stats.overwritten += u64::from(headers.activity.is_some());
        headers.activity = Some(activity);
    }

    /// The AQM of a port: why a packet is dropped, if it is.
    #[inline]
    fn decide(
        &mut self,
        port: usize,
        aqm: &ActivityAqmParams,
        activity: Option<Activity>,
        now: Nanos,
    ) -> Option<DropReason> {
        let state = &mut self.ports[port];
        let (activity, averaged) = match (activity, self.params.missing) {
            (Some(activity), _) => (activity.value(), true),
            (None, Missing::Assumed(activity)) => (activity, true),
            (None, Missing::Average) => (state.aqm.average().unwrap_or(0.0), false),
        };
        if !state.aqm.accepts(activity, state.queued, aqm) {
            self.stats.dropped += 1;
            return Some(DropReason::Activity);
        }
        if let QueueLength::Counted { buffer } = self.params.queue_length
            && state.queued >= buffer
        {
            self.stats.overlimit += 1;
            return Some(DropReason::Overlimit);
        }
        self.stats.accepted += 1;
        if averaged {
            state.aqm.accepted(activity, now, aqm);
        }
        state.queued += 1;
        None
    }
}

impl Pipeline for Abc {
    #[inline]
    fn ingress(
        &mut self,
        port: Port,
        packet: &mut Packet,
        headers: &mut Headers,
        now: Nanos,
        _: &mut impl Sink,
    ) -> Ingress {
        let port = usize::from(port.0);
        let Some(role) = self.params.ports.get(port).copied() else { return Ingress::Enqueue(0) };
        if role.meters {
            self.meter(packet, headers, now);
        }
        if let Some(aqm) = &role.aqm {
            self.stats.missing += u64::from(headers.activity.is_none());
            if let Some(reason) = self.decide(port, aqm, headers.activity, now) {
                return Ingress::Drop(reason);
            }
        }
        Ingress::Enqueue(self.class(packet).queue)
    }

    #[inline]
    fn egress(&mut self, port: Port, departure: &mut Departure, headers: &mut Headers, _: &mut impl Sink) -> Egress {
        let port = usize::from(port.0);
        let Some(role) = self.params.ports.get(port) else { return Egress::Send };
        self.ports[port].queued = departure.backlog_out.packets;
        if role.strips && headers.activity.take().is_some() {
            self.stats.stripped += 1;
        }
        Egress::Send
    }

    /// By priority. The AQM counts all queues as one, and so does the limit.
    fn queues(&self, limit: Limit) -> MultiQueueParams {
        let queues = NonZeroU16::new(self.params.queues()).unwrap_or(NonZeroU16::MIN);
        MultiQueueParams { queues, scheduler: Scheduler::StrictPriority, limit: Limit::None, shared_limit: limit }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

/// An ABC node that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AbcError {
    /// More roles than ports.
    #[error("there are roles for {roles} ports, but the switch has {ports}")]
    Ports {
        /// Roles that are given.
        roles: usize,
        /// Ports that there are.
        ports: usize,
    },
    /// No delay class.
    #[error("there is no delay class: give at least one")]
    Classes,
    /// An aggregate that has no contract.
    #[error("host {host} cannot be of aggregate {aggregate}: there are {contracts} contracts, numbered from 0")]
    Aggregate {
        /// The host.
        host: u32,
        /// As asked.
        aggregate: u32,
        /// How many there are.
        contracts: usize,
    },
    /// A host with two aggregates.
    #[error("host {host} is in the table of aggregates twice")]
    HostTwice {
        /// The host.
        host: u32,
    },
}
