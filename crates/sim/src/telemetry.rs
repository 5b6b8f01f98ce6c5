//! In-band telemetry: what each packet met on its way, as switches would write it into its headers.
//!
//! Per hop the switch, its port's queue as the packet came and as it left, and both times: the fields of INT-MD
//! (In-band Network Telemetry dataplane specification 2.1, section 4.7). Here they cost a packet no bytes on the link.

use crate::connection::FlowRecord;
use crate::observer::Observer;
use crate::packets::{InFlight, number, slot};
use crate::topology::{LinkId, NodeId, Topology};
use queuescope_queue::{DropReason, Dropped, Headers, MarkReason};
use queuescope_wire::{Backlog, Departure, Nanos, Packet, PacketId};

/// Gathers what each packet meets, and tells it when the packet is there or dropped. It passes on everything that it is told.
#[derive(Debug)]
pub struct Telemetry<O, F> {
    /// Who is told what happens.
    pub inner: O,
    told: F,
    /// Where each link begins.
    nodes: Vec<NodeId>,
    /// Hops of packets that are on their way, by their slot.
    hops: Vec<Vec<Hop>>,
}

/// What a packet met at a switch, on the way to a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The switch.
    pub node: NodeId,
    /// The link that it went onto.
    pub link: LinkId,
    /// When it came to the queue of that.
    pub ingress: Nanos,
    /// When it left it.
    pub egress: Nanos,
    /// What was in the queue when it came, without itself.
    pub backlog_in: Backlog,
    /// What was in the queue when it left, without itself.
    pub backlog_out: Backlog,
    /// Whether it had been marked when it left.
    pub marked: bool,
}

/// The way of a packet that has come to an end.
#[derive(Debug)]
pub struct Journey<'a> {
    /// The packet's number in the order of sending, over all flows.
    pub number: u64,
    /// What it was.
    pub packet: &'a InFlight,
    /// What its ends saw of it.
    pub headers: &'a Headers,
    /// The switches that it passed, in order.
    pub hops: &'a [Hop],
    /// When it ended.
    pub at: Nanos,
    /// Where and why it was dropped, if it was.
    pub dropped: Option<(LinkId, DropReason)>,
}

impl<O, F: FnMut(&Journey<'_>)> Telemetry<O, F> {
    /// Tells `told` of each packet in `topology` whose way has ended, and `inner` of everything.
    pub fn new(topology: &Topology, inner: O, told: F) -> Self {
        Self { inner, told, nodes: topology.links.iter().map(|link| link.from).collect(), hops: Vec::new() }
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
        (self.told)(&Journey { number: number(id), packet, headers, hops, at, dropped });
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
