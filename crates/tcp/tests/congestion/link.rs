//! Flows through one link, packet by packet: a rate, a delay, a buffer. A packet that finds the buffer full is lost.
//! The sender learns of it when the ACK would have come, and sends another packet. Nothing is random.

use crate::congestion::MSS;
use queuescope_tcp::{Ack, Congestion, CongestionControl, Phase, RateSample};
use queuescope_wire::Nanos;
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

/// A path.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    /// Nanoseconds that it takes to send a segment.
    pub segment_time: u64,
    /// The round-trip time in nanoseconds, without queueing and sending.
    pub delay: u64,
    /// How many segments may wait.
    pub buffer: u64,
    /// A segment is marked if it finds more than this many waiting.
    pub mark_above: Option<u64>,
}

impl Path {
    /// Segments in flight when the link is busy and its queue is empty.
    pub fn product(&self) -> u64 {
        (self.delay + self.segment_time) / self.segment_time
    }
}

/// The flow's side of the path.
pub struct Flow<C> {
    pub control: C,
    path: Path,
    pub now: u64,
    /// When the link is free again.
    free: Rc<Cell<u64>>,
    flying: VecDeque<Packet>,
    sent: u64,
    resolved: u64,
    pub delivered: u64,
    pub lost: u64,
    delivered_at: u64,
    first_sent_at: u64,
    release: u64,
    /// What it does about a loss or a mark, and how many segments must be resolved until then.
    reaction: Option<(Phase, u64)>,
    smoothed: u64,
}

#[derive(Debug, Clone, Copy)]
struct Packet {
    sent_at: u64,
    ack_at: u64,
    lost: bool,
    marked: bool,
    delivered: u64,
    delivered_at: u64,
    first_sent_at: u64,
}

impl<C: CongestionControl> Flow<C> {
    pub fn new(control: C, path: Path) -> Self {
        Self {
            control,
            path,
            now: 0,
            free: Rc::default(),
            flying: VecDeque::new(),
            sent: 0,
            resolved: 0,
            delivered: 0,
            lost: 0,
            delivered_at: 0,
            first_sent_at: 0,
            release: 0,
            reaction: None,
            smoothed: 0,
        }
    }

    /// Another flow through the same link, which starts at `start`.
    pub fn beside(&self, control: C, path: Path, start: u64) -> Self {
        Self { free: Rc::clone(&self.free), now: start, ..Self::new(control, path) }
    }

    /// Runs until a time; calls `look` after each ACK.
    pub fn run(&mut self, until: u64, look: impl FnMut(&Self)) {
        Self::run_all(std::slice::from_mut(self), until, look);
    }

    /// Runs flows through the same link until a time; calls `look` with the flow after each ACK.
    pub fn run_all(flows: &mut [Self], until: u64, mut look: impl FnMut(&Self)) {
        loop {
            let events = flows.iter().enumerate().filter_map(|(index, flow)| Some((flow.next_event()?, index)));
            let Some(((at, acks), index)) = events.min_by_key(|((at, _), _)| *at).filter(|((at, _), _)| *at <= until)
            else {
                break;
            };
            let flow = &mut flows[index];
            flow.now = at;
            if acks {
                flow.resolve();
                look(flow);
            } else {
                flow.send();
            }
        }
        for flow in flows {
            flow.now = until;
        }
    }

    /// When the next thing happens, and whether that is an ACK.
    fn next_event(&self) -> Option<(u64, bool)> {
        let may_send = self.in_flight() + MSS <= self.control.window();
        let send_at = may_send.then_some(self.now.max(self.release));
        let ack_at = self.flying.front().map(|packet| packet.ack_at);
        match (send_at, ack_at) {
            (Some(send), Some(ack)) if send < ack => Some((send, false)),
            (_, Some(ack)) => Some((ack, true)),
            (Some(send), None) => Some((send, false)),
            (None, None) => None,
        }
    }

    /// Changes the path for everything sent from now on.
    pub fn set_path(&mut self, path: Path) {
        self.path = path;
    }

    pub fn in_flight(&self) -> u64 {
        self.flying.len() as u64 * MSS
    }

    /// Segments that wait or are being sent.
    pub fn backlog(&self) -> u64 {
        self.free.get().saturating_sub(self.now).div_ceil(self.path.segment_time)
    }

    pub fn in_recovery(&self) -> bool {
        self.reaction.is_some_and(|(phase, _)| phase == Phase::Recovery)
    }

    fn send(&mut self) {
        if self.flying.is_empty() {
            (self.first_sent_at, self.delivered_at) = (self.now, self.now);
        }
        let lost = self.backlog() > self.path.buffer;
        let begins = self.now.max(self.free.get());
        if !lost {
            self.free.set(begins + self.path.segment_time);
        }
        self.flying.push_back(Packet {
            sent_at: self.now,
            ack_at: begins + self.path.segment_time + self.path.delay,
            lost,
            marked: self.path.mark_above.is_some_and(|most| self.backlog() > most),
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
        });
        self.sent += MSS;
        self.control.on_sent(MSS, self.in_flight(), Nanos(self.now));
        if let Some(rate) = self.control.pacing_rate() {
            self.release = self.now + MSS * 8_000_000_000 / rate.bits_per_second();
        }
    }

    /// The oldest packet is acknowledged, or found lost.
    fn resolve(&mut self) {
        let Some(packet) = self.flying.pop_front() else { return };
        let now = Nanos(self.now);
        self.resolved += MSS;
        if packet.lost {
            self.lost += MSS;
            if !self.in_recovery() {
                self.react(Phase::Recovery, MSS);
            }
        } else {
            self.delivered += MSS;
            self.delivered_at = self.now;
            self.first_sent_at = packet.sent_at;
        }
        if self.reaction.is_some_and(|(_, end)| self.resolved > end) {
            self.reaction = None;
            self.control.on_recovered(now);
        }
        if packet.marked && self.reaction.is_none() {
            self.react(Phase::Reduced, 0);
        }
        let rtt = self.now - packet.sent_at;
        self.smoothed = if self.smoothed == 0 { rtt } else { (7 * self.smoothed + rtt) / 8 };
        let delivered = if packet.lost { 0 } else { MSS };
        let interval = (packet.sent_at - packet.first_sent_at).max(self.now - packet.delivered_at);
        let ack = Ack {
            acked: delivered,
            delivered,
            in_flight_before: self.in_flight() + MSS,
            in_flight: self.in_flight(),
            unacknowledged: self.resolved,
            next: self.sent,
            left_last: self.sent,
            rtt: (!packet.lost).then_some(Nanos(rtt)),
            smoothed_rtt: Nanos(self.smoothed),
            phase: self.reaction.map_or(Phase::Open, |(phase, _)| phase),
            window: self.control.window(),
            marked: if packet.marked { delivered } else { 0 },
            counted: Some(delivered),
            window_limited: true,
            rate: Some(RateSample {
                delivered: self.delivered,
                prior_delivered: packet.delivered,
                amount: self.delivered - packet.delivered,
                interval: if packet.lost { Nanos::ZERO } else { Nanos(interval) },
                application_limited: false,
                lost: if packet.lost { MSS } else { 0 },
            }),
        };
        self.control.on_ack(&ack, now);
    }

    fn react(&mut self, phase: Phase, lost: u64) {
        self.reaction = Some((phase, self.sent));
        let in_flight = self.in_flight() + MSS;
        self.control.on_congestion(&Congestion { in_flight, lost, delivered: 0, next: self.sent }, Nanos(self.now));
    }
}
