//! A small switch: ports with tail-drop queues served round robin or by priority, a link of a rate at each, recirculation, timers.
//!
//! It does what a pipeline answers, and checks that every packet that came is on a link, dropped or in a queue, once.

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
    /// Of what is in the switch, by packet.
    headers: BTreeMap<u64, Headers>,
    offered: u64,
}

/// What became of packets.
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
    /// Of all queues, as departures tell it.
    fn backlog(&self) -> Backlog {
        let mut sum = Backlog::default();
        for queue in &self.queues {
            sum.packets += queue.backlog().packets;
            sum.bytes += queue.backlog().bytes;
        }
        sum
    }
}

/// At the same time, in the order in which they were scheduled.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival(u16, Came),
    Free(u16),
}

/// A packet at ingress, with its headers' place; a copy carries its own.
struct Came(Packet, Headers);

impl PartialEq for Came {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Came {}
impl PartialOrd for Came {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Came {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.id.cmp(&other.0.id)
    }
}

impl Sink for Log {
    fn dropped(&mut self, dropped: &Dropped) {
        self.dropped.push(*dropped);
    }

    fn marked(&mut self, packet: &Packet, reason: MarkReason, now: Nanos) {
        assert_eq!(packet.ecn, Ecn::Ce, "a marked packet shows it");
        self.marked.push((packet.id.0, reason, now));
    }
}

/// Ports at a rate, each of whose queues holds so many packets; queues are numbered on from port to port.
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

    /// A packet comes at `time` and will leave through `port`.
    pub fn offer(&mut self, time: Nanos, port: u16, packet: Packet, headers: Headers) {
        self.offered += 1;
        self.schedule(time, Event::Arrival(port, Came(packet, headers)));
    }

    /// Everything that happens up to `end`.
    pub fn run_until(&mut self, end: Nanos) {
        loop {
            let next = self.events.peek().map(|Reverse((time, ..))| *time);
            if let Some(timer) = self.program.next_timer().filter(|timer| *timer <= next.unwrap_or(end).min(end)) {
                self.now = self.now.max(timer);
                self.log.timers.push(self.now);
                self.program.on_timer(self.now);
                assert!(self.program.next_timer().is_none_or(|next| next > self.now), "a timer goes on");
            } else if next.is_some_and(|next| next <= end) {
                let Some(Reverse((time, _, event))) = self.events.pop() else { unreachable!() };
                assert!(time >= self.now);
                self.now = time;
                match event {
                    Event::Arrival(port, Came(packet, headers)) => self.arrive(port, packet, headers),
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

    /// Runs until nothing is left in the switch, and checks the sums.
    pub fn run_out(&mut self) {
        while let Some(Reverse((time, ..))) = self.events.peek() {
            let time = *time;
            self.run_until(time);
        }
        self.check();
        assert!(self.headers.is_empty(), "what waits is on no link");
    }

    /// What waits in all queues of a port.
    pub fn backlog(&self, port: u16) -> Backlog {
        self.ports[usize::from(port)].backlog()
    }

    pub fn check(&self) {
        let waiting = self.ports.iter().flat_map(|port| &port.queues).map(|queue| queue.backlog().packets).sum::<u64>();
        let arrivals = self.events.iter().filter(|event| match &event.0.2 {
            Event::Arrival(_, Came(_, headers)) => !headers.fed_back,
            Event::Free(_) => false,
        });
        let (sent, dropped) = (self.log.sent.len() as u64, self.log.dropped.len() as u64);
        assert_eq!(self.offered, sent + dropped + waiting + arrivals.count() as u64, "no packet is lost or invented");
        let mut ids = Vec::new();
        ids.extend(self.log.sent.iter().map(|sent| sent.departure.packet.id.0));
        ids.extend(self.log.dropped.iter().map(|dropped| dropped.packet.id.0));
        ids.sort_unstable();
        assert!(ids.is_sorted_by(|a, b| a < b), "each packet ends once");
    }

    fn arrive(&mut self, port: u16, mut packet: Packet, mut headers: Headers) {
        let was_copy = headers.fed_back;
        let verdict = self.program.ingress(Port(port), &mut packet, &mut headers, self.now, &mut self.log);
        if was_copy {
            assert_eq!(verdict, Ingress::Consume, "a copy is no packet for a queue");
            return;
        }
        let out = &mut self.ports[usize::from(port)];
        match verdict {
            Ingress::Enqueue(queue) => {
                let queue = &mut out.queues[usize::from(queue)];
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
                self.schedule(self.now.saturating_add(self.recirculation), Event::Arrival(port, Came(packet, headers)));
            }
            Ingress::Consume => panic!("{packet:?} is no copy, and may not vanish"),
        }
    }

    fn serve(&mut self, port: u16) {
        let out = &mut self.ports[usize::from(port)];
        if out.busy {
            return;
        }
        let count = out.queues.len();
        let found = (0..count).find_map(|n| {
            let turn = (out.turn + n) % count;
            out.queues[turn].dequeue(self.now, &mut self.log).map(|departure| (turn, departure))
        });
        let Some((turn, mut departure)) = found else { return };
        departure.backlog_out = out.backlog();
        out.turn = if self.by_priority { 0 } else { (turn + 1) % count };
        out.busy = true;
        let time = out.rate.time_for(departure.packet.size);
        let id = departure.packet.id.0;
        let mut headers = self.headers.remove(&id).expect("headers of what waits are kept");
        let verdict = self.program.egress(Port(port), &mut departure, &mut headers, &mut self.log);
        let back = self.now.saturating_add(self.recirculation);
        match verdict {
            Egress::Send | Egress::SendAndFeedBack => {
                if verdict == Egress::SendAndFeedBack {
                    self.log.fed_back += 1;
                    let copy = Headers { fed_back: true, ..headers };
                    self.schedule(back, Event::Arrival(port, Came(departure.packet, copy)));
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
                self.schedule(back, Event::Arrival(port, Came(departure.packet, headers)));
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
    /// Packets of a flow that were sent, dropped, marked.
    pub fn sent_of(&self, flow: u32) -> usize {
        self.sent.iter().filter(|sent| sent.departure.packet.flow.0 == flow).count()
    }

    /// Packets of a flow that were sent from some time on, up to another.
    pub fn sent_between(&self, flow: u32, from: Nanos, to: Nanos) -> impl Iterator<Item = &Departure> {
        let sent = self.sent.iter().map(|sent| &sent.departure);
        sent.filter(move |left| left.packet.flow.0 == flow && (from..to).contains(&left.dequeued))
    }

    pub fn dropped_for(&self, reason: DropReason) -> usize {
        self.dropped.iter().filter(|dropped| dropped.reason == reason).count()
    }
}

/// A packet of `flow`.
pub fn packet(id: u64, flow: u32, size: u64) -> Packet {
    Packet { id: PacketId(id), flow: FlowId(flow), size: ByteCount(size), class: Class(0), ecn: Ecn::NotEct }
}

/// Headers of a packet from host `source`; its ACKs would be flow `reverse`.
pub fn headers(source: u32, reverse: u32) -> Headers {
    Headers::plain(Host(source), Host(999), FlowId(reverse))
}

/// Goes round before the queue, then once more behind it, and is dropped there if it came late.
struct Rounds {
    /// How often each packet has been at ingress and at egress.
    seen: BTreeMap<u64, (u32, u32)>,
    copies: Vec<(u64, Nanos)>,
}

impl Pipeline for Rounds {
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
        let seen = self.seen.entry(packet.id.0).or_default();
        seen.0 += 1;
        if seen.0 < 3 { Ingress::Recirculate } else { Ingress::Enqueue(0) }
    }

    fn egress(&mut self, _: Port, departure: &mut Departure, _: &mut Headers, sink: &mut impl Sink) -> Egress {
        let seen = self.seen.entry(departure.packet.id.0).or_default();
        seen.1 += 1;
        departure.packet.ecn = Ecn::Ce;
        sink.marked(&departure.packet, MarkReason::Threshold, departure.dequeued);
        match (seen.1, departure.packet.id.0) {
            (1, _) => Egress::Recirculate,
            (_, 0) => Egress::SendAndFeedBack,
            (_, 1) => Egress::Drop(DropReason::Early),
            _ => Egress::Send,
        }
    }
}

#[test]
fn packets_go_round_as_the_program_says() {
    let ports = outlets(&[8_000_000_000], 1);
    let program = Rounds { seen: BTreeMap::new(), copies: Vec::new() };
    let mut switch = Switch::new(program, &ports, 1, Limit::Packets(3), Nanos(700));
    for id in 0..3 {
        switch.offer(Nanos(0), 0, packet(id, 0, 1000), headers(0, 0));
    }
    switch.run_out();
    // Two rounds before the queue take 1400 ns. Each turn on the link takes 1000, lost or not: at 1400, 2400 and 3400 the
    // packets leave the queue for another round, at 4400, 5400 and 6400 they end.
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
