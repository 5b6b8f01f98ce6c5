//! In-band telemetry: the hops of each packet, as switches would write them into its headers.
//!
//! A hop has the switch, the backlog of its port's queue on arrival and departure, and both times: the fields of INT-MD
//! (In-band Network Telemetry dataplane specification 2.1, section 4.7). Here they add no bytes to the packet on the link.

use crate::connection::FlowRecord;
use crate::observer::Observer;
use crate::packets::{InFlight, number, slot};
use crate::topology::{LinkId, NodeId, Topology};
use queuescope_queue::{DropReason, Dropped, Headers, MarkReason};
use queuescope_wire::{Backlog, Departure, Nanos, Packet, PacketId};

/// Collects the hops of each packet, and reports its journey when it is delivered or dropped. Passes all events on to an inner observer.
///
/// ```
/// # use queuescope_queue::DisciplineParams;
/// use queuescope_sim::shapes::{Dumbbell, Wire};
/// use queuescope_sim::workload::{UdpParams, UdpSource};
/// use queuescope_sim::{Datagram, DatagramParams, Simulation, Telemetry};
/// use queuescope_wire::{ByteCount, Nanos};
///
/// let wire = Wire::new("10mbps".parse()?, "1ms".parse()?, DisciplineParams::default());
/// let dumbbell = Dumbbell::new(&wire, None, [wire.clone()]);
/// let mut simulation = Simulation::new(dumbbell.topology.clone(), 1, Nanos::ZERO)?;
/// let source = UdpSource::new(&UdpParams::constant("1mbps".parse()?, ByteCount(1250)), 1)?;
/// let ends = DatagramParams::new(dumbbell.left[0], dumbbell.right[0]);
/// simulation.add_datagrams(ends, source.map(Datagram::from))?;
///
/// let mut hops = Vec::new();
/// let mut telemetry = Telemetry::new(&dumbbell.topology, (), |journey| hops.push(journey.hops.len()));
/// simulation.run_until("1s".parse()?, &mut telemetry);
/// println!("{} packets arrived", hops.len());
/// assert!(hops.len() > 90 && hops.iter().all(|&hops| hops == 3), "each passed its host and two routers");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Telemetry<O, F> {
    /// The observer that receives all events.
    pub inner: O,
    report: F,
    /// The node where each link begins.
    nodes: Vec<NodeId>,
    /// Hops of packets in flight, by slot.
    hops: Vec<Vec<Hop>>,
}

/// What a packet found in the queue of a link on its path. The first hop is the queue of its sending host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The node whose queue it was: the sending host, a router or a switch.
    pub node: NodeId,
    /// The link that it was sent on.
    pub link: LinkId,
    /// When it was enqueued there.
    pub ingress: Nanos,
    /// When it was dequeued.
    pub egress: Nanos,
    /// The backlog when it came, without itself.
    pub backlog_in: Backlog,
    /// The backlog when it left, without itself.
    pub backlog_out: Backlog,
    /// Whether it had been marked when it left.
    pub marked: bool,
}

/// The complete journey of a packet.
#[derive(Debug)]
pub struct Journey<'a> {
    /// The packet's number in the order of sending, over all flows.
    pub number: u64,
    /// The packet.
    pub packet: &'a InFlight,
    /// The headers that its end hosts saw.
    pub headers: &'a Headers,
    /// The queues on its path, in order, starting with that of its sending host.
    pub hops: &'a [Hop],
    /// When the journey ended.
    pub at: Nanos,
    /// Where and why the packet was dropped, if it was.
    pub dropped: Option<(LinkId, DropReason)>,
}

impl<O, F: FnMut(&Journey<'_>)> Telemetry<O, F> {
    /// Passes each completed journey of a packet in `topology` to `report`, and all events to `inner`.
    pub fn new(topology: &Topology, inner: O, report: F) -> Self {
        Self { inner, report, nodes: topology.links.iter().map(|link| link.from).collect(), hops: Vec::new() }
    }

    fn end(
        &mut self,
        id: PacketId,
        packet: &InFlight,
        headers: &Headers,
        at: Nanos,
        dropped: Option<(LinkId, DropReason)>,
    ) {
        let mut none = Vec::new();
        let hops = self.hops.get_mut(slot(id)).unwrap_or(&mut none);
        (self.report)(&Journey { number: number(id), packet, headers, hops, at, dropped });
        hops.clear();
    }
}

impl<O: Observer, F: FnMut(&Journey<'_>)> Observer for Telemetry<O, F> {
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &InFlight, headers: &Headers) {
        let slot = slot(departure.packet.id);
        if self.hops.len() <= slot {
            self.hops.resize_with(slot + 1, Vec::new);
        }
        self.hops[slot].push(Hop {
            node: self.nodes[link.index()],
            link,
            ingress: departure.enqueued,
            egress: departure.dequeued,
            backlog_in: departure.backlog_in,
            backlog_out: departure.backlog_out,
            marked: departure.packet.ecn == queuescope_wire::Ecn::Ce,
        });
        self.inner.departed(link, departure, packet, headers);
    }

    fn dropped(&mut self, link: LinkId, dropped: &Dropped, packet: &InFlight, headers: &Headers) {
        self.end(dropped.packet.id, packet, headers, dropped.at, Some((link, dropped.reason)));
        self.inner.dropped(link, dropped, packet, headers);
    }

    fn lost(&mut self, link: LinkId, id: PacketId, packet: &InFlight, headers: &Headers, now: Nanos) {
        self.end(id, packet, headers, now, Some((link, DropReason::Lost)));
        self.inner.lost(link, id, packet, headers, now);
    }

    fn delivered(&mut self, id: PacketId, packet: &InFlight, headers: &Headers, now: Nanos) {
        self.end(id, packet, headers, now, None);
        self.inner.delivered(id, packet, headers, now);
    }

    fn marked(&mut self, link: LinkId, marked: &Packet, reason: MarkReason, now: Nanos, packet: &InFlight) {
        self.inner.marked(link, marked, reason, now, packet);
    }

    fn finished(&mut self, flow: &FlowRecord) {
        self.inner.finished(flow);
    }
}
