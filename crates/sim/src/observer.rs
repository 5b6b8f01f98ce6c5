//! Observers of a simulation.

use crate::connection::FlowRecord;
use crate::packets::InFlight;
use crate::topology::LinkId;
use queuescope_queue::{Dropped, Headers, MarkReason};
use queuescope_wire::{Departure, Nanos, Packet, PacketId};

/// Receives the events of a simulation, in order of time. The default methods do nothing.
///
/// ```
/// use queuescope_queue::{Dropped, Headers};
/// use queuescope_sim::{InFlight, LinkId, Observer};
/// use queuescope_wire::Nanos;
///
/// /// The time of the first drop.
/// #[derive(Default)]
/// struct FirstDrop(Option<Nanos>);
///
/// impl Observer for FirstDrop {
///     fn dropped(&mut self, link: LinkId, dropped: &Dropped, packet: &InFlight, _headers: &Headers) {
///         if self.0.is_none() {
///             println!("link {}: {} bytes of group {}", link.0, packet.bytes, packet.group);
///             self.0 = Some(dropped.at);
///         }
///     }
/// }
///
/// // Pass it to `Simulation::run_until(end, &mut first)`.
/// let mut first = FirstDrop::default();
/// assert_eq!(first.0, None);
/// # fn is_observer(_: &mut impl Observer) {}
/// # is_observer(&mut first);
/// ```
pub trait Observer {
    /// A packet left the queue of a link, and its transmission began.
    #[inline]
    fn departed(&mut self, _link: LinkId, _departure: &Departure, _packet: &InFlight, _headers: &Headers) {}

    /// A packet was dropped at a link.
    #[inline]
    fn dropped(&mut self, _link: LinkId, _dropped: &Dropped, _packet: &InFlight, _headers: &Headers) {}

    /// A packet that left the queue of a link was lost on the link.
    #[inline]
    fn lost(&mut self, _link: LinkId, _id: PacketId, _packet: &InFlight, _headers: &Headers, _now: Nanos) {}

    /// A packet was marked at a link; `marked` is the packet after that.
    #[inline]
    fn marked(&mut self, _link: LinkId, _marked: &Packet, _reason: MarkReason, _now: Nanos, _packet: &InFlight) {}

    /// A packet reached its destination.
    #[inline]
    fn delivered(&mut self, _id: PacketId, _packet: &InFlight, _headers: &Headers, _now: Nanos) {}

    /// The receiver has all bytes of a flow.
    #[inline]
    fn finished(&mut self, _flow: &FlowRecord) {}
}

/// Ignores all events.
impl Observer for () {}

/// Passes events on.
impl<O: Observer> Observer for &mut O {
    #[inline]
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &InFlight, headers: &Headers) {
        (**self).departed(link, departure, packet, headers);
    }

    #[inline]
    fn dropped(&mut self, link: LinkId, dropped: &Dropped, packet: &InFlight, headers: &Headers) {
        (**self).dropped(link, dropped, packet, headers);
    }

    #[inline]
    fn lost(&mut self, link: LinkId, id: PacketId, packet: &InFlight, headers: &Headers, now: Nanos) {
        (**self).lost(link, id, packet, headers, now);
    }

    #[inline]
    fn marked(&mut self, link: LinkId, marked: &Packet, reason: MarkReason, now: Nanos, packet: &InFlight) {
        (**self).marked(link, marked, reason, now, packet);
    }

    #[inline]
    fn delivered(&mut self, id: PacketId, packet: &InFlight, headers: &Headers, now: Nanos) {
        (**self).delivered(id, packet, headers, now);
    }

    #[inline]
    fn finished(&mut self, flow: &FlowRecord) {
        (**self).finished(flow);
    }
}

/// Passes events on if there is an observer.
impl<O: Observer> Observer for Option<O> {
    #[inline]
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &InFlight, headers: &Headers) {
        if let Some(observer) = self {
            observer.departed(link, departure, packet, headers);
        }
    }

    #[inline]
    fn dropped(&mut self, link: LinkId, dropped: &Dropped, packet: &InFlight, headers: &Headers) {
        if let Some(observer) = self {
            observer.dropped(link, dropped, packet, headers);
        }
    }

    #[inline]
    fn lost(&mut self, link: LinkId, id: PacketId, packet: &InFlight, headers: &Headers, now: Nanos) {
        if let Some(observer) = self {
            observer.lost(link, id, packet, headers, now);
        }
    }

    #[inline]
    fn marked(&mut self, link: LinkId, marked: &Packet, reason: MarkReason, now: Nanos, packet: &InFlight) {
        if let Some(observer) = self {
            observer.marked(link, marked, reason, now, packet);
        }
    }

    #[inline]
    fn delivered(&mut self, id: PacketId, packet: &InFlight, headers: &Headers, now: Nanos) {
        if let Some(observer) = self {
            observer.delivered(id, packet, headers, now);
        }
    }

    #[inline]
    fn finished(&mut self, flow: &FlowRecord) {
        if let Some(observer) = self {
            observer.finished(flow);
        }
    }
}

/// Passes events to both, in order.
impl<A: Observer, B: Observer> Observer for (A, B) {
    #[inline]
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &InFlight, headers: &Headers) {
        self.0.departed(link, departure, packet, headers);
        self.1.departed(link, departure, packet, headers);
    }

    #[inline]
    fn dropped(&mut self, link: LinkId, dropped: &Dropped, packet: &InFlight, headers: &Headers) {
        self.0.dropped(link, dropped, packet, headers);
        self.1.dropped(link, dropped, packet, headers);
    }

    #[inline]
    fn lost(&mut self, link: LinkId, id: PacketId, packet: &InFlight, headers: &Headers, now: Nanos) {
        self.0.lost(link, id, packet, headers, now);
        self.1.lost(link, id, packet, headers, now);
    }

    #[inline]
    fn marked(&mut self, link: LinkId, marked: &Packet, reason: MarkReason, now: Nanos, packet: &InFlight) {
        self.0.marked(link, marked, reason, now, packet);
        self.1.marked(link, marked, reason, now, packet);
    }

    #[inline]
    fn delivered(&mut self, id: PacketId, packet: &InFlight, headers: &Headers, now: Nanos) {
        self.0.delivered(id, packet, headers, now);
        self.1.delivered(id, packet, headers, now);
    }

    #[inline]
    fn finished(&mut self, flow: &FlowRecord) {
        self.0.finished(flow);
        self.1.finished(flow);
    }
}
