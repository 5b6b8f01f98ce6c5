//! A small switch for tests of switch programs: ports with tail-drop queues, served round robin or by priority, a link
//! at each port, recirculation and timers.
//!
//! It carries out a program's decisions, and checks that every packet is sent, dropped or in a queue exactly once.

use queuescope_queue::{
    Discipline, DropReason, Dropped, Egress, Headers, Host, Ingress, Limit, MarkReason, Outlet, Pipeline, Port, Sink,
    TailDrop, TailDropParams,
};
use queuescope_wire::{Backlog, ByteCount, Class, Departure, Ecn, FlowId, Nanos, Packet, PacketId, QueueId, Rate};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A switch that runs a program.
pub struct Switch<P> {
    pub program: P,
    pub log: Log,
    /// Whether the first queue is always served first.
    pub by_priority: bool,
    ports: Vec<OutPort>,
    recirculation: Nanos,
    now: Nanos,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    scheduled: u64,
    /// The headers of the packets in the queues, by packet id.
    headers: BTreeMap<u64, Headers>,
    offered: u64,
}

/// What the switch did with packets, and when it called the program's timer.
#[derive(Default)]
pub struct Log {
    pub sent: Vec<Sent>,
    pub dropped: Vec<Dropped>,
    pub marked: Vec<(u64, MarkReason, Nanos)>,
    pub fed_back: u64,
    pub recirculated: u64,
    pub timers: Vec<Nanos>,
}

/// A packet that went onto a link.
#[derive(Clone, Copy)]
pub struct Sent {
    pub port: Port,
    pub departure: Departure,
    pub headers: Headers,
}

struct OutPort {
    rate: Rate,
    queues: Vec<TailDrop>,
    turn: usize,
    busy: bool,
}

impl OutPort {
    /// The backlog of all queues of the port.
    fn backlog(&self) -> Backlog {
        let mut sum = Backlog::default();
        for queue in &self.queues {
            sum.packets += queue.backlog().packets;
            sum.bytes += queue.backlog().bytes;
        }
        sum
    }
}

/// Events at the same time happen in the order in which they were scheduled.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival(u16, ArrivingPacket),
    Free(u16),
}

/// A packet that arrives at ingress, with its headers.
struct ArrivingPacket(Packet, Headers);

impl PartialEq for ArrivingPacket {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for ArrivingPacket {}
impl PartialOrd for ArrivingPacket {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for ArrivingPacket {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.id.cmp(&other.0.id)
    }
}

impl Sink for Log {
    fn dropped(&mut self, dropped: &Dropped) {
        self.dropped.push(*dropped);
    }

    fn marked(&mut self, packet: &Packet, reason: MarkReason, now: Nanos) {
        assert_eq!(packet.ecn, Ecn::Ce, "a marked packet carries CE");
        self.marked.push((packet.id.0, reason, now));
    }
}

/// Ports with these rates in bit/s and `queues` queues each. The numbers of queues continue from port to port.
pub fn outlets(rates: &[u64], queues: u16) -> Vec<Outlet> {
    let outlet = |(port, rate): (usize, &u64)| Outlet {
        rate: Rate::from_bits_per_second(*rate).unwrap(),
        overhead: 0,
        queue: QueueId(port as u16 * queues),
        seed: port as u64 + 1,
    };
    rates.iter().enumerate().map(outlet).collect()
}

impl<P: Pipeline> Switch<P> {
    pub fn new(program: P, ports: &[Outlet], queues: u16, limit: Limit, recirculation: Nanos) -> Self {
        let port = |outlet: &Outlet| OutPort {
            rate: outlet.rate,
            queues: (0..queues)
                .map(|n| {
                    TailDrop::new(TailDropParams { limit }, Outlet { queue: QueueId(outlet.queue.0 + n), ..*outlet })
                })
                .collect(),
            turn: 0,
            busy: false,
        };
        Self {
            program,
            log: Log::default(),
            by_priority: false,
            ports: ports.iter().map(port).collect(),
            recirculation,
            now: Nanos::ZERO,
            events: BinaryHeap::new(),
            scheduled: 0,
            headers: BTreeMap::new(),
            offered: 0,
        }
    }

    /// Schedules the arrival at `time` of a packet that will leave through `port`.
    pub fn offer(&mut self, time: Nanos, port: u16, packet: Packet, headers: Headers) {
        self.offered += 1;
        self.schedule(time, Event::Arrival(port, ArrivingPacket(packet, headers)));
    }

    /// Processes all events up to `end`, inclusive.
    pub fn run_until(&mut self, end: Nanos) {
        loop {
            let next = self.events.peek().map(|Reverse((time, ..))| *time);
            if let Some(timer) = self.program.next_timer().filter(|timer| *timer <= next.unwrap_or(end).min(end)) {
                self.now = self.now.max(timer);
                self.log.timers.push(self.now);
                self.program.on_timer(self.now);
                assert!(self.program.next_timer().is_none_or(|next| next > self.now), "each call moves the timer on");
            } else if next.is_some_and(|next| next <= end) {
                let Some(Reverse((time, _, event))) = self.events.pop() else { unreachable!() };
                assert!(time >= self.now);
                self.now = time;
                match event {
                    Event::Arrival(port, ArrivingPacket(packet, headers)) => self.arrive(port, packet, headers),
                    Event::Free(port) => {
                        self.ports[usize::from(port)].busy = false;
                        self.serve(port);
                    }
                }
            } else {
                self.now = self.now.max(end);
                return;
            }
        }
    }

    /// Runs until the switch is empty, then checks that every packet ended once.
    pub fn run_out(&mut self) {
        while let Some(Reverse((time, ..))) = self.events.peek() {
            let time = *time;
            self.run_until(time);
        }
        self.check();
        assert!(self.headers.is_empty(), "no packet is left in a queue");
    }

    /// The backlog of all queues of a port.
    pub fn backlog(&self, port: u16) -> Backlog {
        self.ports[usize::from(port)].backlog()
    }

    pub fn check(&self) {
        let waiting = self.ports.iter().flat_map(|port| &port.queues).map(|queue| queue.backlog().packets).sum::<u64>();
        let arrivals = self.events.iter().filter(|event| match &event.0.2 {
            Event::Arrival(_, ArrivingPacket(_, headers)) => !headers.fed_back,
            Event::Free(_) => false,
        });
        let (sent, dropped) = (self.log.sent.len() as u64, self.log.dropped.len() as u64);
        assert_eq!(
            self.offered,
            sent + dropped + waiting + arrivals.count() as u64,
            "every packet is sent, dropped, queued or still to arrive"
        );
        let mut ids = Vec::new();
        ids.extend(self.log.sent.iter().map(|sent| sent.departure.packet.id.0));
        ids.extend(self.log.dropped.iter().map(|dropped| dropped.packet.id.0));
        ids.sort_unstable();
        assert!(ids.is_sorted_by(|a, b| a < b), "each packet is sent or dropped once");
    }

    fn arrive(&mut self, port: u16, mut packet: Packet, mut headers: Headers) {
        let was_copy = headers.fed_back;
        let verdict = self.program.ingress(Port(port), &mut packet, &mut headers, self.now, &mut self.log);
        if was_copy {
            assert_eq!(verdict, Ingress::Consume, "the program must consume a copy");
            return;
        }
        let out = &mut self.ports[usize::from(port)];
        match verdict {
            Ingress::Enqueue(queue) => {
                let queue = &mut out.queues[usize::from(queue)];
                headers.queue_depth = queue.backlog().packets as u32;
                self.headers.insert(packet.id.0, headers);
                let drops = self.log.dropped.len();
                queue.enqueue(packet, self.now, &mut self.log);
                for dropped in &self.log.dropped[drops..] {
                    self.headers.remove(&dropped.packet.id.0);
                }
                self.serve(port);
            }
            Ingress::Drop(reason) => {
                let queue = QueueId(0);
                self.log.dropped.push(Dropped::on_arrival(packet, queue, self.now, reason));
            }
            Ingress::Recirculate => {
                self.log.recirculated += 1;
                self.schedule(
                    self.now.saturating_add(self.recirculation),
                    Event::Arrival(port, ArrivingPacket(packet, headers)),
                );
            }
            Ingress::Consume => panic!("{packet:?} is not a copy and must not be consumed"),
        }
    }

    fn serve(&mut self, port: u16) {
        let out = &mut self.ports[usize::from(port)];
        if out.busy {
            return;
        }
        let count = out.queues.len();
        let served = (0..count).find_map(|n| {
            let turn = (out.turn + n) % count;
            out.queues[turn].dequeue(self.now, &mut self.log).map(|departure| (turn, departure))
        });
        let Some((turn, mut departure)) = served else { return };
        departure.backlog_out = out.backlog();
        out.turn = if self.by_priority { 0 } else { (turn + 1) % count };
        out.busy = true;
        let time = out.rate.time_for(departure.packet.size);
        let id = departure.packet.id.0;
        let mut headers = self.headers.remove(&id).expect("the headers of a queued packet are kept");
        let verdict = self.program.egress(Port(port), &mut departure, &mut headers, &mut self.log);
        let back = self.now.saturating_add(self.recirculation);
        match verdict {
            Egress::Send | Egress::SendAndFeedBack => {
                if verdict == Egress::SendAndFeedBack {
                    self.log.fed_back += 1;
                    let copy = Headers { fed_back: true, ..headers };
                    self.schedule(back, Event::Arrival(port, ArrivingPacket(departure.packet, copy)));
                }
                self.log.sent.push(Sent { port: Port(port), departure, headers });
            }
            Egress::Drop(reason) => {
                let Departure { packet, queue, enqueued, .. } = departure;
                let dropped = Dropped::from_queue(packet, queue, enqueued, self.now, reason);
                self.log.dropped.push(Dropped { link_time: time, ..dropped });
            }
            Egress::Recirculate => {
                self.log.recirculated += 1;
                self.schedule(back, Event::Arrival(port, ArrivingPacket(departure.packet, headers)));
            }
        }
        self.schedule(self.now.saturating_add(time), Event::Free(port));
    }

    fn schedule(&mut self, time: Nanos, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }
}

impl Log {
    /// The number of packets of a flow that were sent.
    pub fn sent_of(&self, flow: u32) -> usize {
        self.sent.iter().filter(|sent| sent.departure.packet.flow.0 == flow).count()
    }

    /// The packets of a flow that were sent from `from` on and before `to`.
    pub fn sent_between(&self, flow: u32, from: Nanos, to: Nanos) -> impl Iterator<Item = &Departure> {
        let sent = self.sent.iter().map(|sent| &sent.departure);
        sent.filter(move |left| left.packet.flow.0 == flow && (from..to).contains(&left.dequeued))
    }

    /// The number of packets that were dropped for this reason.
    pub fn dropped_for(&self, reason: DropReason) -> usize {
        self.dropped.iter().filter(|dropped| dropped.reason == reason).count()
    }
}

/// A packet of `flow`.
pub fn packet(id: u64, flow: u32, size: u64) -> Packet {
    Packet { id: PacketId(id), flow: FlowId(flow), size: ByteCount(size), class: Class(0), ecn: Ecn::NotEct }
}

/// The headers of a packet from host `source` whose ACKs are flow `reverse`.
pub fn headers(source: u32, reverse: u32) -> Headers {
    Headers::plain(Host(source), Host(999), FlowId(reverse))
}

/// A program that recirculates each packet twice at ingress and once at egress. At the next egress it feeds back packet
/// 0, drops packet 1 and sends the others.
struct Recirculator {
    /// How often each packet has been at ingress and at egress.
    visits: BTreeMap<u64, (u32, u32)>,
    copies: Vec<(u64, Nanos)>,
}

impl Pipeline for Recirculator {
    fn ingress(
        &mut self,
        _: Port,
        packet: &mut Packet,
        headers: &mut Headers,
        now: Nanos,
        _: &mut impl Sink,
    ) -> Ingress {
        if headers.fed_back {
            self.copies.push((packet.id.0, now));
            return Ingress::Consume;
        }
        let visits = self.visits.entry(packet.id.0).or_default();
        visits.0 += 1;
        if visits.0 < 3 { Ingress::Recirculate } else { Ingress::Enqueue(0) }
    }

    fn egress(&mut self, _: Port, departure: &mut Departure, _: &mut Headers, sink: &mut impl Sink) -> Egress {
        let visits = self.visits.entry(departure.packet.id.0).or_default();
        visits.1 += 1;
        departure.packet.ecn = Ecn::Ce;
        sink.marked(&departure.packet, MarkReason::Threshold, departure.dequeued);
        match (visits.1, departure.packet.id.0) {
            (1, _) => Egress::Recirculate,
            (_, 0) => Egress::SendAndFeedBack,
            (_, 1) => Egress::Drop(DropReason::Early),
            _ => Egress::Send,
        }
    }
}

#[test]
fn the_switch_carries_out_each_decision_of_a_program() {
    let ports = outlets(&[8_000_000_000], 1);
    let program = Recirculator { visits: BTreeMap::new(), copies: Vec::new() };
    let mut switch = Switch::new(program, &ports, 1, Limit::Packets(3), Nanos(700));
    for id in 0..3 {
        switch.offer(Nanos(0), 0, packet(id, 0, 1000), headers(0, 0));
    }
    switch.run_out();
    // Two recirculations before the queue take 1400 ns. Each packet takes 1000 ns of the link, even if it is
    // recirculated or dropped. At 1400, 2400 and 3400 ns the packets leave the queue and are recirculated; at 4400,
    // 5400 and 6400 ns they leave for good.
    let log = &switch.log;
    assert_eq!((log.recirculated, log.fed_back, log.marked.len()), (3 * 2 + 3, 1, 6));
    assert_eq!(switch.program.copies, [(0, Nanos(5_100))]);
    let ends = |id| {
        let sent = log.sent.iter().find(|sent| sent.departure.packet.id.0 == id);
        sent.map(|sent| (sent.departure.enqueued, sent.departure.dequeued))
    };
    assert_eq!(ends(0), Some((Nanos(2_100), Nanos(4_400))));
    assert_eq!(ends(2), Some((Nanos(4_100), Nanos(6_400))));
    let dropped = log.dropped.iter().map(|dropped| (dropped.packet.id.0, dropped.reason, dropped.link_time));
    assert_eq!(dropped.collect::<Vec<_>>(), [(1, DropReason::Early, Nanos(1_000))]);
}
