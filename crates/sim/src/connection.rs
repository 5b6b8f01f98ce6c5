//! TCP connections in a simulation: a sender, a receiver, and what became of them.

use queuescope_queue::{Activity, Headers, Host};
use queuescope_tcp::{CongestionControl, Controller, Opening, Receiver, Segment, Sender, TcpParams};
use queuescope_wire::{Class, Ecn, FlowKey, Nanos};

use crate::ControlChoice;
use crate::event::{Events, Turn};
use crate::packets::{InFlight, Kind, Owner, connection_key, flow_id};

/// How the connections of a group of flows behave.
#[derive(Debug, Clone)]
pub struct Transport {
    /// The sender and the receiver.
    pub tcp: TcpParams,
    /// The congestion control.
    pub algorithm: ControlChoice,
    /// The class of service of data and acknowledgements.
    pub class: Class,
    /// Whether ECN-capable packets are ECT(1), for a queue of low latency (RFC 9331 section 4.1).
    pub l4s: bool,
    /// The activity that senders write into data themselves (ABC).
    pub activity: Option<Activity>,
}

impl Transport {
    /// In the first class.
    pub fn new(tcp: TcpParams, algorithm: impl Into<ControlChoice>) -> Self {
        Self { tcp, algorithm: algorithm.into(), class: Class(0), l4s: false, activity: None }
    }
}

/// A connection: data one way, acknowledgements the other.
#[derive(Debug)]
pub(crate) struct Connection {
    pub sender: Sender<Controller>,
    pub receiver: Receiver,
    pub place: Place,
    /// The workload that it is of.
    pub workload: u32,
    /// When the events of the timers come; the latest time there is if there is none.
    pub sender_timer: Nanos,
    pub receiver_timer: Nanos,
    /// Where events come in turn: the pace and the retransmission timer of the sender, and the timer of the receiver.
    pace: Alarm,
    timeout: Alarm,
    pub answers: Alarm,
    /// Packets of it that are on their way.
    pub on_their_way: u32,
    /// Whether its events and packets may still refer to it.
    pub events: u32,
    pub record: FlowRecord,
    /// Whether it was told to be finished.
    pub told: bool,
}

/// A timer that was set, and its turn among what happens at its time: that of when it was set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Alarm {
    at: Option<Nanos>,
    pub turn: Turn,
}

impl Alarm {
    /// It is set to that time, or is not set. If that is so already, it keeps its turn.
    #[inline]
    pub fn set(&mut self, at: Option<Nanos>, events: &mut Events) {
        if self.at != at {
            *self = Self { at, turn: if at.is_some() { events.turn() } else { self.turn } };
        }
    }
}

/// Where a connection is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Its place among the connections, which another has when it is over.
    pub index: u32,
    /// Its number, in the order of starting.
    pub number: u64,
    /// The group of flows that it is of.
    pub group: u32,
    /// The ways of data and of acknowledgements.
    pub routes: [u32; 2],
    pub hosts: [Host; 2],
    /// Bytes of headers below TCP.
    pub network_header: u32,
    pub class: Class,
    /// Whether ECN-capable packets are ECT(1).
    pub l4s: bool,
    pub activity: Option<Activity>,
}

/// What became of a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRecord {
    /// Its number, in the order of starting, from 0.
    pub number: u64,
    /// The group of flows that it is of.
    pub group: u32,
    /// Who it is, as its data would be captured.
    pub key: FlowKey,
    /// Who sent, and who received.
    pub hosts: [Host; 2],
    /// When it started.
    pub started: Nanos,
    /// When the receiver had all of it, if it has an end and that came.
    pub finished: Option<Nanos>,
    /// Bytes that it has to send, if it has an end.
    pub bytes: Option<u64>,
    /// How far it was when the warm-up ended.
    pub in_warmup: Progress,
    /// Bytes that the receiver had in order at the end.
    pub delivered: u64,
    /// Segments that were sent again, in all.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer, in all.
    pub timeouts: u64,
    /// The smoothed round-trip time at the end.
    pub smoothed_rtt: Option<Nanos>,
}

/// How far a flow is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that the receiver has in order.
    pub delivered: u64,
    /// Segments that were sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
}

impl FlowRecord {
    /// How far it is.
    pub fn progress(&self) -> Progress {
        let Self { delivered, retransmissions, timeouts, .. } = *self;
        Progress { delivered, retransmissions, timeouts }
    }

    /// What it did since the warm-up.
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
    pub fn new(transport: &Transport, place: Place, workload: u32, bytes: Option<u64>, seed: u64, now: Nanos) -> Self {
        let tcp = &transport.tcp;
        let initial_window = u64::from(tcp.initial_window) * u64::from(tcp.mss);
        let control = transport.algorithm.build(Opening { mss: tcp.mss, initial_window, seed });
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
            on_their_way: 0,
            events: 0,
            record,
            told: false,
        }
    }

    /// The sender's timers that were set since take their turns, where events come in turn.
    #[inline]
    pub fn take_turns(&mut self, events: &mut Events) {
        if events.are_in_turn() {
            let [pace, timeout] = self.sender.timers();
            self.pace.set(pace, events);
            self.timeout.set(timeout, events);
        }
    }

    /// The turn of the sender's timer that is due then.
    #[inline]
    pub fn turn(&self, due: Nanos, events: &mut Events) -> Turn {
        [self.pace, self.timeout]
            .iter()
            .find(|alarm| alarm.at == Some(due))
            .map_or_else(|| events.turn(), |alarm| alarm.turn)
    }

    /// What is known of it now.
    pub fn record(&self) -> FlowRecord {
        FlowRecord {
            delivered: self.receiver.delivered(),
            retransmissions: self.sender.stats().repeated,
            timeouts: self.sender.stats().timeouts,
            smoothed_rtt: self.sender.smoothed_rtt(),
            ..self.record.clone()
        }
    }

    /// Whether nothing refers to it any more and nothing is to come of it.
    pub fn is_over(&self) -> bool {
        self.sender.is_done() && self.on_their_way == 0 && self.events == 0
    }

    /// A segment as a packet: of data, or the other way.
    #[inline]
    pub fn packet(place: Place, data: bool, segment: Segment, ecn: Ecn) -> (InFlight, Headers) {
        let Place { index, number, group, routes, hosts, network_header, class, l4s, activity } = place;
        let way = usize::from(!data);
        let (source, destination) = (hosts[way], hosts[1 - way]);
        let kinds = if data { [Kind::Data, Kind::Acknowledgements] } else { [Kind::Acknowledgements, Kind::Data] };
        let [flow, reverse] = kinds.map(|kind| flow_id(number, kind));
        let activity = activity.filter(|_| data);
        let headers = Headers { source, destination, reverse, tcp: Some(segment), activity, fed_back: false };
        let packet = InFlight {
            flow,
            // Fewer than 2^32: a record of each is kept.
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

    /// A timer that is set before a packet leaves comes before it arrives, also if the event is pushed behind it.
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
