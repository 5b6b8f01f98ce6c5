//! TCP connections in a simulation: a sender, a receiver, and their results.

use queuescope_queue::{Activity, Headers, Host};
use queuescope_tcp::{CongestionControl, Controller, InitialValues, Receiver, Segment, Sender, TcpParams};
use queuescope_wire::{Class, Ecn, FlowKey, Nanos};

use crate::ControlChoice;
use crate::event::{Events, Turn};
use crate::packets::{InFlight, Kind, Owner, connection_key, flow_id};

/// The behaviour of a group's connections.
#[derive(Debug, Clone)]
pub struct Transport {
    /// Parameters of sender and receiver.
    pub tcp: TcpParams,
    /// The congestion control.
    pub algorithm: ControlChoice,
    /// The class of service of data and acknowledgements.
    pub class: Class,
    /// Whether ECN-capable packets are ECT(1), for a queue of low latency (RFC 9331 section 4.1).
    pub l4s: bool,
    /// The activity that senders write into data packets themselves (ABC).
    pub activity: Option<Activity>,
}

impl Transport {
    /// Connections with these parameters in the first class of service, not for L4S, without an activity.
    pub fn new(tcp: TcpParams, algorithm: impl Into<ControlChoice>) -> Self {
        Self { tcp, algorithm: algorithm.into(), class: Class(0), l4s: false, activity: None }
    }
}

/// A connection: data one way, acknowledgements the other.
#[derive(Debug)]
pub(crate) struct Connection {
    pub sender: Sender<Controller>,
    pub receiver: Receiver,
    pub place: ConnectionIdentity,
    /// The workload that it belongs to.
    pub workload: u32,
    /// When the timers' events come; the latest possible time if there is none.
    pub sender_timer: Nanos,
    pub receiver_timer: Nanos,
    /// If events come in turn: the sender's pace and retransmission timer, and the receiver's timer.
    pace: Alarm,
    timeout: Alarm,
    pub answers: Alarm,
    /// Its packets that are in flight.
    pub in_flight: u32,
    /// How many events and packets may still refer to it.
    pub events: u32,
    pub record: FlowRecord,
    /// Whether its end was reported to the observer.
    pub reported: bool,
}

/// A timer that is set, and its turn among events of the same time: that of the moment when it was set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Alarm {
    at: Option<Nanos>,
    pub turn: Turn,
}

impl Alarm {
    /// Sets it to a time, or clears it. If the time does not change, it keeps its turn.
    #[inline]
    pub fn set(&mut self, at: Option<Nanos>, events: &mut Events) {
        if self.at != at {
            *self = Self { at, turn: if at.is_some() { events.turn() } else { self.turn } };
        }
    }
}

/// The identity of a connection, and its routes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionIdentity {
    /// Its index among the connections, which is reused when it is over.
    pub index: u32,
    /// Its number, in the order of starting.
    pub number: u64,
    /// Its group of flows.
    pub group: u32,
    /// The routes of data and of acknowledgements.
    pub routes: [u32; 2],
    pub hosts: [Host; 2],
    /// Bytes of headers below TCP.
    pub network_header: u32,
    pub class: Class,
    /// Whether ECN-capable packets are ECT(1).
    pub l4s: bool,
    pub activity: Option<Activity>,
}

/// The results of a flow.
///
/// ```
/// use queuescope_sim::FlowRecord;
/// use queuescope_wire::Nanos;
///
/// /// Goodput in bits per second from the start of a flow to its end, or to `now` if it has not ended.
/// fn goodput(flow: &FlowRecord, now: Nanos) -> f64 {
///     let lifetime = flow.finished.unwrap_or(now).saturating_sub(flow.started);
///     8.0 * flow.delivered as f64 / lifetime.as_secs_f64()
/// }
/// # use queuescope_sim::Progress;
/// # let flow = FlowRecord {
/// #     number: 0, group: 0, key: Default::default(), hosts: [queuescope_queue::Host(0); 2], started: Nanos(0),
/// #     finished: Some(Nanos(2_000_000_000)), bytes: Some(1_000_000), in_warmup: Progress::default(), delivered: 1_000_000,
/// #     retransmissions: 0, timeouts: 0, smoothed_rtt: None,
/// # };
/// assert_eq!(goodput(&flow, Nanos::ZERO), 4e6); // a megabyte in two seconds
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRecord {
    /// Its number, in the order of starting, from 0.
    pub number: u64,
    /// Its group of flows.
    pub group: u32,
    /// Its flow key, as a capture of its data would show it.
    pub key: FlowKey,
    /// The sender and the receiver.
    pub hosts: [Host; 2],
    /// When it started.
    pub started: Nanos,
    /// When the receiver had all bytes, if the flow is finite and finished.
    pub finished: Option<Nanos>,
    /// Bytes to send, if the flow is finite.
    pub bytes: Option<u64>,
    /// Its progress at the end of the warm-up.
    pub in_warmup: Progress,
    /// Bytes that the receiver had in order at the end.
    pub delivered: u64,
    /// Total number of retransmitted segments.
    pub retransmissions: u64,
    /// Total number of expiries of the retransmission timer.
    pub timeouts: u64,
    /// The smoothed round-trip time at the end.
    pub smoothed_rtt: Option<Nanos>,
}

/// The progress of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that the receiver has in order.
    pub delivered: u64,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
}

impl FlowRecord {
    /// Its progress so far.
    pub fn progress(&self) -> Progress {
        let Self { delivered, retransmissions, timeouts, .. } = *self;
        Progress { delivered, retransmissions, timeouts }
    }

    /// Its progress since the warm-up.
    pub fn counted(&self) -> Progress {
        let (now, before) = (self.progress(), self.in_warmup);
        Progress {
            delivered: now.delivered - before.delivered,
            retransmissions: now.retransmissions - before.retransmissions,
            timeouts: now.timeouts - before.timeouts,
        }
    }
}

impl Connection {
    pub fn new(
        transport: &Transport,
        place: ConnectionIdentity,
        workload: u32,
        bytes: Option<u64>,
        seed: u64,
        now: Nanos,
    ) -> Self {
        let tcp = &transport.tcp;
        let initial_window = u64::from(tcp.initial_window) * u64::from(tcp.mss);
        let control = transport.algorithm.build(InitialValues { mss: tcp.mss, initial_window, seed });
        let receiver = Receiver::new(&transport.tcp, control.ecn());
        let record = FlowRecord {
            number: place.number,
            group: place.group,
            key: connection_key(place.hosts, place.number),
            hosts: place.hosts,
            started: now,
            finished: None,
            bytes,
            in_warmup: Progress::default(),
            delivered: 0,
            retransmissions: 0,
            timeouts: 0,
            smoothed_rtt: None,
        };
        Self {
            sender: Sender::new(&transport.tcp, control, bytes).following_ns3(),
            receiver,
            place,
            workload,
            sender_timer: Nanos::MAX,
            receiver_timer: Nanos::MAX,
            pace: Alarm::default(),
            timeout: Alarm::default(),
            answers: Alarm::default(),
            in_flight: 0,
            events: 0,
            record,
            reported: false,
        }
    }

    /// If events come in turn, takes the turns of the sender's timers that were set since.
    #[inline]
    pub fn take_turns(&mut self, events: &mut Events) {
        if events.are_in_turn() {
            let [pace, timeout] = self.sender.timers();
            self.pace.set(pace, events);
            self.timeout.set(timeout, events);
        }
    }

    /// The turn of the sender's timer that is due at this time.
    #[inline]
    pub fn turn(&self, due: Nanos, events: &mut Events) -> Turn {
        [self.pace, self.timeout]
            .iter()
            .find(|alarm| alarm.at == Some(due))
            .map_or_else(|| events.turn(), |alarm| alarm.turn)
    }

    /// Its results so far.
    pub fn record(&self) -> FlowRecord {
        FlowRecord {
            delivered: self.receiver.delivered(),
            retransmissions: self.sender.stats().repeated,
            timeouts: self.sender.stats().timeouts,
            smoothed_rtt: self.sender.smoothed_rtt(),
            ..self.record.clone()
        }
    }

    /// Whether nothing refers to it any more and it has nothing left to do.
    pub fn is_over(&self) -> bool {
        self.sender.is_done() && self.in_flight == 0 && self.events == 0
    }

    /// Makes a packet from a segment: of data, or in the other direction.
    #[inline]
    pub fn packet(place: ConnectionIdentity, data: bool, segment: Segment, ecn: Ecn) -> (InFlight, Headers) {
        let ConnectionIdentity { index, number, group, routes, hosts, network_header, class, l4s, activity } = place;
        let way = usize::from(!data);
        let (source, destination) = (hosts[way], hosts[1 - way]);
        let kinds = if data { [Kind::Data, Kind::Acknowledgements] } else { [Kind::Acknowledgements, Kind::Data] };
        let [flow, reverse] = kinds.map(|kind| flow_id(number, kind));
        let activity = activity.filter(|_| data);
        let headers = Headers { tcp: Some(segment), activity, ..Headers::plain(source, destination, reverse) };
        let packet = InFlight {
            flow,
            // Fewer than 2^32, because the record of each is kept.
            number: number as u32,
            group,
            hosts: [source, destination],
            bytes: network_header + segment.header_bytes() + segment.length,
            ecn: if l4s && ecn == Ecn::Ect0 { Ecn::Ect1 } else { ecn },
            class,
            route: routes[way],
            hop: 0,
            owner: if data { Owner::Receiver(index) } else { Owner::Sender(index) },
        };
        (packet, headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;

    /// A timer that is set before a packet leaves fires before the packet arrives, even if its event is pushed later.
    #[test]
    fn a_timer_has_the_turn_of_when_it_was_set() {
        let at = Nanos(7);
        for (between, first) in [(vec![], true), (vec![Some(at)], true), (vec![Some(Nanos(8)), Some(at)], false)] {
            let mut events = Events::default();
            events.come_in_turn();
            let mut alarm = Alarm::default();
            alarm.set(Some(at), &mut events);
            events.push(at, Event::Arrive(1));
            for to in between {
                alarm.set(to, &mut events);
            }
            events.push_in_turn(at, Event::SenderTimer(2), alarm.turn);
            assert_eq!(events.pop(), Some((at, if first { Event::SenderTimer(2) } else { Event::Arrive(1) })));
        }
    }
}
