//! ABC, activity-based congestion management: where there is congestion, the heaviest senders are dropped first, and
//! nodes in the core keep no state about flows (Menth et al., Future Internet 2019, section 3).
//!
//! A node on the edge of the domain meters the rate of each [aggregate](Aggregates) and writes its activity into its
//! packets. Every node on the way accepts or drops packets by their activity and the length of the queue
//! ([`ActivityAqm`]). The last node strips the activity. The role of a node depends on the egress port of the packet
//! ([`PortRole`]), because the program does not know the ingress port. So at an edge that also forwards packets from
//! inside the domain, the table of hosts distinguishes them ([`Others::Inside`]).
//!
//! Choices where the paper is open:
//!
//! - *The activity in the header* is a fixed-point number of 16 bits, with 8 fraction bits (the prototype had none).
//!   `docs/explanation/abc.md` shows what fewer bits cost.
//! - *A packet without activity* that meets an activity AQM counts as average, and does not change the average
//!   ([`Missing`]).
//! - *The length of the queue* is defined by [`QueueLength`].
//! - *Delay classes* (section 3.4 names them, Menth and Zeitler 2018 define them): a contract has a class, a class has
//!   a queue at each port, and the port's scheduler serves the queues by priority. The AQM uses the length of all
//!   queues together and one average for all. So a class changes which packets wait, not which are dropped. When a port
//!   is full of packets of lower priority, the AQM drops active packets of high priority, and so they starve nobody. A
//!   class may add a surcharge to the activity ([`DelayClass::surcharge`]), so that low delay has a price.

mod aggregates;
mod aqm;
mod data_plane;
mod meter;

use crate::counters::counters;
use crate::{
    Activity, DropReason, Egress, Headers, Ingress, Limit, MultiQueueParams, Outlet, Pipeline, Port, Scheduler, Sink,
    TailDropParams,
};
pub use aggregates::{Aggregates, Contract, Others};
pub use aqm::{ActivityAqm, ActivityAqmParams};
pub use data_plane::{
    SwitchAqm, SwitchAqmParams, SwitchAverage, SwitchMeter, SwitchMeterParams, switch_log2, switch_log2_blocks,
};
pub use meter::{Average, MeterParams, RateMeter, activity};
use queuescope_wire::{Departure, Nanos, Packet};
use std::num::NonZeroU16;

/// The parameters of an ABC node.
#[derive(Debug, Clone, PartialEq)]
pub struct AbcParams {
    /// The role of each port, by index. Ports without a role forward all packets. By default port 0 is the only port
    /// with a role and does everything, as in section 6.
    pub ports: Vec<PortRole>,
    /// Which hosts' traffic is metered together.
    pub aggregates: Aggregates,
    /// How rates are measured.
    pub meter: MeterParams,
    /// Fraction bits of an activity in a header, at most 8. 8 by default.
    pub fraction_bits: u8,
    /// The delay classes, by number. A packet with a higher class belongs to the last one. One class by default.
    pub classes: Vec<DelayClass>,
    /// The activity that is assumed for a packet without activity.
    pub missing: Missing,
    /// Which length of the queue the AQM uses.
    pub queue_length: QueueLength,
    /// The queues of a port, which the driver keeps. The limit holds for all queues of a port together. 24 packets by
    /// default; at least the buffer of [`QueueLength::Counted`].
    pub queue: TailDropParams,
}

/// The role of a port: what the node does with packets that leave through it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PortRole {
    /// Packets come from outside the domain: the node meters their aggregates and writes their activity, replacing any
    /// that they carry.
    pub meters: bool,
    /// The AQM that accepts or drops packets by their activity, if any.
    pub aqm: Option<ActivityAqmParams>,
    /// Packets leave the domain: the node removes their activity.
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

/// The activity that is assumed for a packet without activity.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Missing {
    /// The average activity of accepted packets. The packet does not change the average.
    #[default]
    Average,
    /// This activity. The packet changes the average.
    Assumed(f64),
}

/// Which length of the queue the AQM uses. Both count the packets in all queues of a port, without the one that the
/// link is sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLength {
    /// The exact length. The program knows the size of the buffer and itself drops what does not fit. So nothing is
    /// dropped between it and the queue, which must be at least as large.
    Counted {
        /// Packets that the queues of a port hold together. 24 by default.
        buffer: u64,
    },
    /// A register. Each packet that leaves sets it to the backlog that it left behind, and each accepted packet adds
    /// one, as in section 5.1. The register does not see packets that the queue drops because it is full. Until the
    /// next packet leaves, it is too high by their number.
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
    /// The number of queues of each port: as many as the delay classes need. Queue 0 has the highest priority.
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
    /// The ingress of the domain: meters, writes the activity, and drops.
    pub fn edge(aqm: ActivityAqmParams) -> Self {
        Self { meters: true, aqm: Some(aqm), strips: false }
    }

    /// A node within the domain: drops.
    pub fn core(aqm: ActivityAqmParams) -> Self {
        Self { meters: false, aqm: Some(aqm), strips: false }
    }

    /// The egress of the domain: strips the activity.
    pub fn exit() -> Self {
        Self { meters: false, aqm: None, strips: true }
    }

    /// The only node of its domain: meters, drops and strips.
    pub fn single(aqm: ActivityAqmParams) -> Self {
        Self { meters: true, aqm: Some(aqm), strips: true }
    }
}

/// An ABC node.
///
/// ```
/// use queuescope_queue::{Abc, AbcParams, Headers, Host, Ingress, Outlet, Pipeline, Port};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_wire::{ByteCount, FlowId, Nanos, Packet, PacketId, QueueId};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// let ports = [Outlet { rate: "10mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 }];
/// let mut node = Abc::new(AbcParams::default(), &ports)?;
/// let mut packet = Packet { id: PacketId(0), size: ByteCount(1500), ..Packet::default() };
/// let mut headers = Headers::plain(Host(1), Host(2), FlowId(9));
/// let ingress = node.ingress(Port(0), &mut packet, &mut headers, Nanos::ZERO, &mut NoSink);
/// assert_eq!(ingress, Ingress::Enqueue(0));
/// let activity = headers.activity.ok_or("the node did not meter the packet")?;
/// println!("the sender's activity is {}", activity.value());
/// assert_eq!((node.stats().metered, node.queue_length(Port(0))), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Abc {
    params: AbcParams,
    meters: aggregates::AggregateMeters,
    ports: Vec<AbcPort>,
    stats: AbcStats,
}

/// The state of a port.
#[derive(Debug, Clone, Copy, Default)]
struct AbcPort {
    aqm: ActivityAqm,
    queued: u64,
}

/// The counters of an ABC node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AbcStats {
    /// Packets whose activity was measured and written.
    pub metered: u64,
    /// Of these, those that already carried an activity.
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
    /// Creates the program for a switch with these ports.
    ///
    /// # Errors
    /// Fails if there are more roles than ports, or if the table of aggregates or the classes are invalid.
    pub fn new(params: AbcParams, ports: &[Outlet]) -> Result<Self, AbcError> {
        if params.ports.len() > ports.len() {
            return Err(AbcError::Ports { roles: params.ports.len(), ports: ports.len() });
        }
        if params.classes.is_empty() {
            return Err(AbcError::Classes);
        }
        let meters = aggregates::AggregateMeters::new(&params.aggregates, params.meter)?;
        let ports = vec![AbcPort::default(); params.ports.len()];
        Ok(Self { meters, ports, stats: AbcStats::default(), params })
    }

    /// The counters so far.
    pub fn stats(&self) -> &AbcStats {
        &self.stats
    }

    /// The length of a port's queue as the program knows it; 0 for a port without a role.
    pub fn queue_length(&self, port: Port) -> u64 {
        self.ports.get(usize::from(port.0)).map_or(0, |port| port.queued)
    }

    /// A_avg of a port; `None` before the first accepted packet.
    pub fn average_activity(&self, port: Port) -> Option<f64> {
        self.ports.get(usize::from(port.0))?.aqm.average()
    }

    /// The delay class of a packet.
    #[inline]
    fn class(&self, packet: &Packet) -> DelayClass {
        let class = usize::from(packet.class.0).min(self.params.classes.len() - 1);
        self.params.classes[class]
    }

    /// The role of an edge: measures the activity and writes it into the headers.
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

    /// The AQM of a port: returns the reason if it drops the packet.
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

    /// The queues are served by priority. The AQM counts all queues as one, and so does the limit.
    fn queues(&self, limit: Limit) -> MultiQueueParams {
        let queues = NonZeroU16::new(self.params.queues()).unwrap_or(NonZeroU16::MIN);
        MultiQueueParams { queues, scheduler: Scheduler::StrictPriority, limit: Limit::None, shared_limit: limit }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

/// Invalid parameters of an ABC node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AbcError {
    /// More roles than ports.
    #[error("there are roles for {roles} ports, but the switch has {ports}")]
    Ports {
        /// The number of roles.
        roles: usize,
        /// The number of ports.
        ports: usize,
    },
    /// There is no delay class.
    #[error("there is no delay class: give at least one")]
    Classes,
    /// A host belongs to an aggregate without a contract.
    #[error("host {host} cannot be of aggregate {aggregate}: there are {contracts} contracts, numbered from 0")]
    Aggregate {
        /// The host.
        host: u32,
        /// The index of the aggregate that was given.
        aggregate: u32,
        /// The number of contracts.
        contracts: usize,
    },
    /// A host is in the table of aggregates twice.
    #[error("host {host} is in the table of aggregates twice")]
    HostTwice {
        /// The host.
        host: u32,
    },
}
