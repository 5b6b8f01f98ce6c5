//! A switch program around queues: what P4 calls ingress and egress.
//!
//! A pipeline sees each packet twice, before the queue of its port and behind it, and both directions of a flow. It may not
//! look into the queues: on a switch, what a queue holds is known to packets that have left it (Kunze et al., IM 2021,
//! section IV). Whoever drives it keeps the queues ([`MultiQueue`](crate::MultiQueue)), obeys what it answers, and tells the
//! [`Sink`] of its drops.

use crate::{DropReason, Limit, MultiQueueParams, Sink};
use queuescope_tcp::Segment;
use queuescope_wire::{Departure, FlowId, Nanos, Packet};

/// A switch program. Times never decrease.
pub trait Pipeline {
    /// A packet has come and will leave through `port`; before its queue. It may rewrite both. By default it enters the port's only
    /// queue.
    #[inline]
    fn ingress(
        &mut self,
        _port: Port,
        _packet: &mut Packet,
        _headers: &mut Headers,
        _now: Nanos,
        _sink: &mut impl Sink,
    ) -> Ingress {
        Ingress::Enqueue(0)
    }

    /// A packet has left its queue towards `port`, at `departure.dequeued`. It may rewrite the packet and its headers.
    fn egress(&mut self, port: Port, departure: &mut Departure, headers: &mut Headers, sink: &mut impl Sink) -> Egress;

    /// When [`Self::on_timer`] is to be called next, if ever: a packet generator, or the control plane. It changes only in
    /// calls to this trait's other methods.
    fn next_timer(&self) -> Option<Nanos> {
        None
    }

    /// The time that [`Self::next_timer`] named has come.
    fn on_timer(&mut self, _now: Nanos) {}

    /// The queues of each port and its scheduler, for a port that holds `limit`: each of its queues does, or all together where
    /// the program counts them as one. By default there is one queue.
    fn queues(&self, limit: Limit) -> MultiQueueParams {
        MultiQueueParams::one(limit)
    }

    /// Whether it has to see packets towards ports that it does not manage, too.
    fn sees_all_ports(&self) -> bool {
        false
    }

    /// The probability with which `port` drops at the moment, if the program keeps one.
    fn drop_probability(&self, _port: Port) -> Option<f64> {
        None
    }

    /// What it counted so far at all ports, each counter with its name in reports.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// An output port of a switch, by number from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// An end host, in place of its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(pub u32);

/// What a switch program may read and rewrite, beside the [`Packet`] that queues see.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headers {
    /// Who sent it: the source address.
    pub source: Host,
    /// Who is to get it: the destination address.
    pub destination: Host,
    /// The flow of the packets in the opposite direction: of the ACKs, if this is data.
    pub reverse: FlowId,
    /// The TCP header; none for other protocols.
    pub tcp: Option<Segment>,
    /// The activity that an edge node wrote (ABC), while the packet is in its domain.
    pub activity: Option<Activity>,
    /// Whether this is a copy that [`Egress::SendAndFeedBack`] made, which has come back to ingress.
    pub fed_back: bool,
}

impl Headers {
    /// Those of a packet that is no TCP and has not met a pipeline.
    pub fn plain(source: Host, destination: Host, reverse: FlowId) -> Self {
        Self { source, destination, reverse, tcp: None, activity: None, fed_back: false }
    }
}

/// How active a packet's aggregate was, as ABC carries it in a header: log2 of measured over reference rate, in 1/256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Activity(pub i16);

/// What becomes of a packet before the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ingress {
    /// It enters the so-manieth queue of its port, from 0.
    Enqueue(u16),
    /// It is dropped.
    Drop(DropReason),
    /// It comes to ingress again, after the time that recirculation takes.
    Recirculate,
    /// It has done its work here: a copy that was fed back. Not a drop.
    Consume,
}

/// What becomes of a packet behind the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Egress {
    /// It goes onto the link.
    Send,
    /// The same; and a copy of its headers comes to ingress, after the time that recirculation takes.
    SendAndFeedBack,
    /// It is dropped. Its turn on the link is lost: the port had scheduled it.
    Drop(DropReason),
    /// It comes to ingress again, after the time that recirculation takes. Its turn on the link is lost.
    Recirculate,
}
