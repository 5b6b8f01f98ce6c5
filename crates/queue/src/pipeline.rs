//! A switch program around queues: P4's ingress and egress.
//!
//! A pipeline sees each packet twice, before the queue of its port and behind it, and it sees both directions of a
//! flow. It cannot look into the queues: on a switch, only packets that have left a queue know what it holds (Kunze et
//! al., IM 2021, section IV). The driver keeps the queues ([`MultiQueue`](crate::MultiQueue)), does what [`Ingress`]
//! and [`Egress`] say, and reports the program's drops to the [`Sink`].

use crate::{DropReason, Limit, MultiQueueParams, Sink};
use queuescope_tcp::Segment;
use queuescope_wire::{Departure, FlowId, Nanos, Packet};

/// A switch program. Times never decrease.
///
/// ```
/// use queuescope_queue::{Egress, Headers, Host, MarkReason, Pipeline, Port, Sink};
/// # use queuescope_queue::Dropped;
/// use queuescope_wire::{Departure, Ecn, FlowId, Nanos, Packet};
///
/// /// Marks packets that waited longer than `tau`.
/// struct MarkLate { tau: Nanos, marked: u64 }
///
/// impl Pipeline for MarkLate {
///     fn egress(&mut self, _: Port, departure: &mut Departure, _: &mut Headers, sink: &mut impl Sink) -> Egress {
///         if departure.sojourn() > self.tau && departure.packet.ecn.is_capable() {
///             departure.packet.ecn = Ecn::Ce;
///             self.marked += 1;
///             sink.marked(&departure.packet, MarkReason::Threshold, departure.dequeued);
///         }
///         Egress::Send
///     }
/// }
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// let mut program = MarkLate { tau: Nanos(1_000_000), marked: 0 };
/// let packet = Packet { ecn: Ecn::Ect0, ..Packet::default() };
/// let mut late = Departure { packet, dequeued: Nanos(2_000_000), ..Departure::default() };
/// let mut headers = Headers::plain(Host(1), Host(2), FlowId(9));
/// assert_eq!(program.egress(Port(0), &mut late, &mut headers, &mut NoSink), Egress::Send);
/// assert_eq!((late.packet.ecn, program.marked), (Ecn::Ce, 1));
/// ```
pub trait Pipeline {
    /// Called before the queue, for a packet that will leave through `port`. The program may rewrite the packet and its
    /// headers. By default the packet enters the port's only queue.
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

    /// Called when a packet has left its queue towards `port`, at `departure.dequeued`. The program may rewrite the
    /// packet and its headers.
    fn egress(&mut self, port: Port, departure: &mut Departure, headers: &mut Headers, sink: &mut impl Sink) -> Egress;

    /// When to call [`Self::on_timer`] next, if ever: for a packet generator, or the control plane. It changes only in
    /// calls to this trait's other methods.
    fn next_timer(&self) -> Option<Nanos> {
        None
    }

    /// Called at the time that [`Self::next_timer`] returned. It sets the timer to a later time, or clears it; otherwise the
    /// driver panics and names the program.
    fn on_timer(&mut self, _now: Nanos) {}

    /// The queues and the scheduler of a port with this `limit`. The limit applies to each queue, or to all together if
    /// the program counts them as one. By default there is one queue.
    fn queues(&self, limit: Limit) -> MultiQueueParams {
        MultiQueueParams::one(limit)
    }

    /// The weight of a queue of `port`: how many quanta its turn is worth, if the scheduler is [deficit round
    /// robin](crate::Scheduler::Deficit). It may change at any time; the driver reads it when a turn begins. 0 counts as 1. By
    /// default all queues have the same.
    fn weight(&self, _port: Port, _queue: u16) -> u32 {
        1
    }

    /// Whether the program must also see packets towards ports that it does not manage.
    fn sees_all_ports(&self) -> bool {
        false
    }

    /// The current drop probability of `port`, if the program has one.
    fn drop_probability(&self, _port: Port) -> Option<f64> {
        None
    }

    /// The counters so far for all ports, each with its name in reports.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// An output port of a switch, numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// An end host. It stands for the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(pub u32);

/// The headers that a switch program may read and rewrite, in addition to the [`Packet`] that queues see.
///
/// ```
/// use queuescope_queue::{Headers, Host};
/// use queuescope_tcp::Segment;
/// use queuescope_wire::FlowId;
///
/// let segment = Segment { seq: 1, length: 1448, ..Segment::default() };
/// let headers = Headers { tcp: Some(segment), ..Headers::plain(Host(1), Host(2), FlowId(9)) };
/// assert_eq!(headers.tcp.map(|tcp| tcp.length), Some(1448));
/// assert_eq!(headers.activity, None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headers {
    /// The source address.
    pub source: Host,
    /// The destination address.
    pub destination: Host,
    /// The flow of the packets in the opposite direction: the ACKs, if this is data.
    pub reverse: FlowId,
    /// The TCP header; `None` for other protocols.
    pub tcp: Option<Segment>,
    /// The activity that an edge node wrote (ABC), while the packet is in its domain.
    pub activity: Option<Activity>,
    /// Whether this is a copy that [`Egress::SendAndFeedBack`] made and that has returned to ingress.
    pub fed_back: bool,
    /// Packets in its queue when it entered, which a switch provides at egress. The driver sets it.
    pub queue_depth: u32,
    /// How long the packet waited in the queues of switches so far, in ns, as far as these switches add it up (in-band
    /// telemetry). In an ACK, that of packets in the other direction.
    pub queueing: u32,
    /// What the program's ingress hands to its egress with the packet, or to ingress when the packet is recirculated. 0 at
    /// first. It does not leave the switch.
    pub metadata: u64,
}

impl Headers {
    /// The headers of a packet without TCP that has not met a pipeline.
    pub fn plain(source: Host, destination: Host, reverse: FlowId) -> Self {
        Self {
            source,
            destination,
            reverse,
            tcp: None,
            activity: None,
            fed_back: false,
            queue_depth: 0,
            queueing: 0,
            metadata: 0,
        }
    }
}

/// The activity of a packet's aggregate in the format of ABC's header: log2 of measured over reference rate, in units
/// of 1/256.
///
/// ```
/// use queuescope_queue::Activity;
///
/// // Twice the reference rate is an activity of 1.
/// let activity = Activity::nearest(queuescope_queue::activity(20_000.0, "10kbps".parse()?), 8);
/// assert_eq!(activity, Activity(256));
/// assert_eq!(activity.value(), 1.0);
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Activity(pub i16);

/// What the program does with a packet before the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ingress {
    /// Put it into the queue with this index within its port, from 0.
    Enqueue(u16),
    /// Drop it.
    Drop(DropReason),
    /// Send it to ingress again, after the time that recirculation takes. The driver panics, and names the program, if it
    /// recirculates a packet more than 10 000 times in a row.
    Recirculate,
    /// Remove it without counting a drop: it is a copy that was fed back and has done its work.
    Consume,
}

/// What the program does with a packet behind the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Egress {
    /// Send it on the link.
    Send,
    /// Send it, and send a copy of its headers to ingress, after the time that recirculation takes.
    SendAndFeedBack,
    /// Drop it. Its time on the link is lost, because the port had scheduled it.
    Drop(DropReason),
    /// Send it to ingress again, after the time that recirculation takes. Its time on the link is lost.
    Recirculate,
}
