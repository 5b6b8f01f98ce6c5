//! The network of a running simulation: moves packets from link to link, through queues and switches.

use crate::BuildError;
use crate::Observer;
use crate::detour::Detour;
use crate::event::{Event, Events};
use crate::link::{Link, LinkSink, LinkStats, Queue, unknown_packet};
use crate::packets::{InFlight, Owner, Packets};
use crate::program::{check_passes, depth};
use crate::replay::timer_stays;
use crate::topology::{LinkId, NodeId, Topology};
use queuescope_queue::{
    AnyPipeline, Discipline, Dropped, Egress, Headers, Ingress, MultiQueue, Outlet, Pipeline, Port, Sink,
};
use queuescope_wire::{Backlog, ByteCount, Departure, Nanos, Packet, PacketId, QueueId};
use std::collections::VecDeque;

/// Links, switches, and the packets in flight between them.
#[derive(Debug)]
pub(crate) struct Network {
    pub now: Nanos,
    pub events: Events,
    pub packets: Packets,
    pub links: Vec<Link>,
    pub switches: Vec<Switch>,
    /// The links of each route.
    pub routes: Vec<Box<[u32]>>,
    /// Faults that move packets to other routes.
    pub detours: Vec<Detour>,
    /// Owners of packets that were dropped; the caller takes them for its counts.
    pub gone: Vec<Owner>,
    /// Links that were idle, and that have packets to send now.
    idle: Vec<u32>,
}

/// A switch that runs a program.
#[derive(Debug)]
pub(crate) struct Switch {
    pipeline: AnyPipeline,
    recirculation: Nanos,
    /// Recirculated packets: their time, their link, how often in a row they were, and their id.
    recirculated: VecDeque<(Nanos, u32, u32, PacketId)>,
    /// When the program's timer event comes; the latest possible time if there is none.
    timer: Nanos,
}

/// The result of a packet's arrival at the end of a link.
pub(crate) enum Arrival {
    /// It continues on its route.
    InFlight,
    /// It has reached its destination, where the caller takes it.
    Delivered(PacketId),
}

impl Network {
    /// An empty network.
    ///
    /// # Errors
    /// Fails if a switch cannot run its program, or if a link's loss is not a share.
    pub fn new(topology: &Topology, seed: u64) -> Result<Self, BuildError> {
        if topology.links.len() > Events::MOST as usize {
            return Err(BuildError::TooLarge { links: topology.links.len() });
        }
        if let Some(link) = topology.links.iter().find(|link| !(0.0..=1.0).contains(&link.loss)) {
            return Err(BuildError::Loss { link: link.name.clone(), loss: link.loss });
        }
        let mut switches = Vec::new();
        let mut links: Vec<Option<Link>> = topology.links.iter().map(|_| None).collect();
        for (node, params) in topology.nodes.iter().enumerate().filter_map(|(n, node)| Some((n, node.switch.as_ref()?)))
        {
            let ports: Vec<_> = topology.links_from(NodeId(node as u32)).collect();
            let outlets: Vec<_> = ports.iter().map(|link| outlet(topology, *link, seed)).collect();
            let name = || topology.nodes[node].name.clone();
            let pipeline = params.pipeline.build(&outlets);
            let pipeline = pipeline.map_err(|error| BuildError::Program { switch: name(), error })?;
            for (port, &id) in ports.iter().enumerate() {
                let here = topology.link(id);
                let managed = params.managed.iter().find(|(link, _)| *link == id);
                let queue = if let Some((_, limit)) = managed {
                    Queue::Many(MultiQueue::new(pipeline.queues(*limit), outlets[port]))
                } else if pipeline.sees_all_ports() {
                    Queue::One(here.discipline.build(outlets[port]))
                } else {
                    continue;
                };
                let place = (switches.len() as u32, Port(port as u16));
                links[id.index()] = Some(Link::new(id, here, queue, Some(place), seed));
            }
            switches.push(Switch {
                pipeline,
                recirculation: params.recirculation,
                recirculated: VecDeque::new(),
                timer: Nanos::MAX,
            });
        }
        let plain = |(index, link): (usize, Option<Link>)| {
            link.unwrap_or_else(|| {
                let (id, params) = (LinkId(index as u32), &topology.links[index]);
                Link::new(id, params, Queue::One(params.discipline.build(outlet(topology, id, seed))), None, seed)
            })
        };
        let links = links.into_iter().enumerate().map(plain).collect();
        let mut network = Self {
            now: Nanos::ZERO,
            events: Events::default(),
            packets: Packets::default(),
            links,
            switches,
            routes: Vec::new(),
            detours: Vec::new(),
            gone: Vec::new(),
            idle: Vec::new(),
        };
        for link in 0..network.links.len() as u32 {
            network.set_queue_timer(link);
        }
        for switch in 0..network.switches.len() as u32 {
            network.set_switch_timer(switch);
        }
        Ok(network)
    }

    /// Sends a new packet from the host at the beginning of its route.
    #[inline]
    pub fn send(&mut self, mut packet: InFlight, headers: Headers, observer: &mut impl Observer) {
        for detour in &mut self.detours {
            detour.take(&mut packet);
        }
        let link = self.routes[packet.route as usize][0];
        let id = self.packets.insert(packet, headers);
        self.offer(link, id, observer);
    }

    /// The first packet in flight on a link reaches its other end.
    #[inline]
    pub fn arrive(&mut self, link: u32, observer: &mut impl Observer) -> Arrival {
        let sent = &mut self.links[link as usize].sent;
        let Some((_, id, _)) = sent.pop_front() else { return Arrival::InFlight };
        match sent.front() {
            Some((next, _, turn)) => self.events.push_in_turn(*next, Event::Arrive(link), *turn),
            // The next packet then begins at the start of the ring, which is in the caches.
            None => sent.clear(),
        }
        if !self.packets.has(id) {
            let packet = Packet { id, flow: self.packets.at(id).flow, ..Packet::default() };
            unknown_packet(self.links[link as usize].queue.name(), "departed and dropped, or departed twice,", &packet);
        }
        let packet = self.packets.at(id);
        packet.hop += 1;
        let (route, hop) = (packet.route, packet.hop);
        match self.routes[route as usize].get(usize::from(hop)) {
            Some(next) => {
                let next = *next;
                self.offer(next, id, observer);
                Arrival::InFlight
            }
            None => {
                let (packet, headers) = self.packets.whole(id);
                observer.delivered(id, packet, headers, self.now);
                Arrival::Delivered(id)
            }
        }
    }

    /// A packet arrives at the queue of a link.
    #[inline]
    fn offer(&mut self, index: u32, id: PacketId, observer: &mut impl Observer) {
        let link = &mut self.links[index as usize];
        let on_its_way = self.packets.at(id);
        let size = ByteCount(on_its_way.bytes.into());
        let packet = Packet { id, flow: on_its_way.flow, size, class: on_its_way.class, ecn: on_its_way.ecn };
        link.stats.offered.packets += 1;
        link.stats.offered.bytes += size;
        let backlog = link.queue.backlog();
        if backlog.bytes > link.stats.longest {
            link.stats.longest = backlog.bytes;
        }
        if link.switch.is_some() {
            self.through_ingress(index, packet, 0, observer);
        } else {
            self.enqueue(index, 0, packet, observer);
        }
    }

    /// Enqueues a packet at a link, and has the link served if possible.
    #[inline]
    fn enqueue(&mut self, index: u32, queue: u16, packet: Packet, observer: &mut impl Observer) {
        let now = self.now;
        let link = &mut self.links[index as usize];
        // A link with nothing to send cannot have become free before now.
        if link.queue.backlog().packets == 0 {
            link.transmitter.wait_until(now);
        }
        if let Queue::Many(queues) = &link.queue {
            self.packets.headers(packet.id).queue_depth = depth(queues, queue);
        }
        let (packets, gone) = (&mut self.packets, &mut self.gone);
        let mut sink = LinkSink { link: link.id, stats: &mut link.stats, packets, gone, observer };
        match &mut link.queue {
            Queue::One(discipline) => discipline.enqueue(packet, now, &mut sink),
            Queue::Many(queues) => queues.enqueue_to(queue, packet, now, &mut sink),
        }
        if !link.serving && link.queue.backlog().packets > 0 {
            link.serving = true;
            if link.held_back {
                link.held_back = false;
                link.transmitter.wait_until(now);
            }
            let free = link.transmitter.free_at();
            if free <= now {
                self.idle.push(index);
            } else {
                self.events.push_in_turn(free, Event::Serve(index), link.turn);
            }
        }
        self.set_queue_timer(index);
    }

    /// Links that were idle before the event that just ended send their new packets: unless there are more events at this time and
    /// links are served last, not in turn.
    #[inline]
    pub fn serve_idle(&mut self, observer: &mut impl Observer) {
        while let Some(index) = self.idle.pop() {
            if !self.events.are_in_turn() && self.events.next_time() == Some(self.now) {
                self.events.push(self.now, Event::Serve(index));
            } else {
                self.serve(index, observer);
            }
        }
    }

    /// A link is free: it sends what its queue dequeues.
    #[inline]
    pub fn serve(&mut self, index: u32, observer: &mut impl Observer) {
        let now = self.now;
        self.links[index as usize].serving = false;
        // A packet that the switch drops behind the queue has used its turn on the link; a call serves one turn.
        let link = &mut self.links[index as usize];
        let (packets, gone) = (&mut self.packets, &mut self.gone);
        let mut sink = LinkSink { link: link.id, stats: &mut link.stats, packets, gone, observer };
        let departure = match (&mut link.queue, link.switch) {
            (Queue::Many(queues), Some((switch, port))) => {
                let program = &self.switches[switch as usize].pipeline;
                queues.dequeue_weighted(now, &mut sink, |queue| program.weight(port, queue))
            }
            (queue, _) => queue.dequeue(now, &mut sink),
        };
        let Some(departure) = departure else {
            // If packets wait, the discipline holds them back.
            link.held_back = link.queue.backlog().packets > 0;
            self.set_queue_timer(index);
            return;
        };
        if !self.packets.has(departure.packet.id) {
            unknown_packet(link.queue.name(), "departed", &departure.packet);
        }
        link.transmitter.send(ByteCount(departure.packet.size.0 + u64::from(link.overhead)));
        link.turn = self.events.turn();
        if link.switch.is_some() {
            self.through_egress(index, departure, observer);
        } else {
            self.transmit(index, &departure, observer);
        }
        let link = &mut self.links[index as usize];
        if link.queue.backlog().packets > 0 || link.queue.polls_when_empty() {
            link.serving = true;
            self.events.push_in_turn(link.transmitter.free_at(), Event::Serve(index), link.turn);
        }
        self.set_queue_timer(index);
    }

    /// Sends a packet on a link, whose transmitter has counted it.
    #[inline]
    fn transmit(&mut self, index: u32, departure: &Departure, observer: &mut impl Observer) {
        let link = &mut self.links[index as usize];
        let id = departure.packet.id;
        let (on_its_way, headers) = self.packets.whole(id);
        on_its_way.ecn = departure.packet.ecn;
        link.stats.departed(departure, on_its_way.group);
        observer.departed(link.id, departure, on_its_way, headers);
        if link.loses(on_its_way.group) {
            observer.lost(link.id, id, on_its_way, headers, self.now);
            let owner = self.packets.remove(id).owner;
            self.gone.push(owner);
            return;
        }
        let arrives = link.transmitter.finished_at().saturating_add(link.delay);
        let turn = self.events.turn();
        if link.sent.is_empty() {
            self.events.push_in_turn(arrives, Event::Arrive(index), turn);
        }
        link.sent.push_back((arrives, id, turn));
    }

    /// The timer of a link's discipline may be due.
    pub fn on_queue_timer(&mut self, index: u32) {
        let now = self.now;
        let link = &mut self.links[index as usize];
        if now < link.timer {
            return;
        }
        link.timer = Nanos::MAX;
        let mut fired = false;
        if let Queue::One(discipline) = &mut link.queue {
            while let Some(due) = discipline.next_timer().filter(|due| *due <= now) {
                discipline.on_timer(now);
                if discipline.next_timer().is_some_and(|next| next <= due) {
                    timer_stays(discipline.name(), due);
                }
                fired = true;
            }
        }
        if fired && link.held_back {
            self.serve_held_back(index);
        }
        self.set_queue_timer(index);
    }

    /// A timer came while the discipline held packets back: perhaps one of them may leave now.
    #[cold]
    fn serve_held_back(&mut self, index: u32) {
        let now = self.now;
        let link = &mut self.links[index as usize];
        link.retries.count(now, link.queue.name());
        (link.held_back, link.serving) = (false, true);
        link.transmitter.wait_until(now);
        let turn = self.events.turn();
        self.events.push_in_turn(link.transmitter.free_at().max(now), Event::Serve(index), turn);
    }

    // Each packet comes here twice per link. The compiler alone does not inline it, which takes 2 % more instructions per hop.
    #[inline(always)]
    fn set_queue_timer(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        if let Some(due) = link.queue.next_timer()
            && due < link.timer
        {
            link.timer = due;
            self.events.push(due, Event::QueueTimer(index));
        }
    }
}

/// Switches.
impl Network {
    /// `passes` is how often in a row ingress sent the packet to itself.
    fn through_ingress(&mut self, index: u32, mut packet: Packet, passes: u32, observer: &mut impl Observer) {
        let now = self.now;
        let link = &mut self.links[index as usize];
        let Some((switch, port)) = link.switch else { return };
        let mut headers = *self.packets.headers(packet.id);
        let (packets, gone) = (&mut self.packets, &mut self.gone);
        let mut sink = LinkSink { link: link.id, stats: &mut link.stats, packets, gone, observer };
        let verdict = self.switches[switch as usize].pipeline.ingress(port, &mut packet, &mut headers, now, &mut sink);
        if let Ingress::Drop(reason) = verdict {
            sink.dropped(&Dropped::on_arrival(packet, QueueId(0), now, reason));
        } else {
            self.rewrite(&packet, &headers);
        }
        match verdict {
            Ingress::Enqueue(queue) => self.enqueue(index, queue, packet, observer),
            Ingress::Recirculate => self.recirculate(switch, index, passes + 1, packet.id),
            Ingress::Consume => {
                let owner = self.packets.remove(packet.id).owner;
                self.gone.push(owner);
            }
            Ingress::Drop(_) => {}
        }
        self.set_switch_timer(switch);
    }

    fn through_egress(&mut self, index: u32, mut departure: Departure, observer: &mut impl Observer) {
        let link = &mut self.links[index as usize];
        let Some((switch, port)) = link.switch else { return };
        let mut headers = *self.packets.headers(departure.packet.id);
        let (packets, gone) = (&mut self.packets, &mut self.gone);
        let mut sink = LinkSink { link: link.id, stats: &mut link.stats, packets, gone, observer };
        let verdict = self.switches[switch as usize].pipeline.egress(port, &mut departure, &mut headers, &mut sink);
        let lost_turn = link.transmitter.finished_at().saturating_sub(self.now);
        let packet = departure.packet;
        if let Egress::Drop(reason) = verdict {
            let (queue, enqueued) = (departure.queue, departure.enqueued);
            let dropped = Dropped::from_queue(packet, queue, enqueued, self.now, reason);
            sink.dropped(&Dropped { link_time: lost_turn, ..dropped });
            link.stats.wasted = link.stats.wasted.saturating_add(lost_turn);
        } else {
            // Metadata does not leave the switch.
            let stays = verdict == Egress::Recirculate;
            self.rewrite(&packet, &Headers { metadata: if stays { headers.metadata } else { 0 }, ..headers });
        }
        match verdict {
            Egress::Send => self.transmit(index, &departure, observer),
            Egress::SendAndFeedBack => {
                let copy = InFlight { owner: Owner::Switch, ..*self.packets.at(packet.id) };
                let copy = self.packets.insert(copy, Headers { fed_back: true, ..headers });
                self.recirculate(switch, index, 0, copy);
                self.transmit(index, &departure, observer);
            }
            Egress::Recirculate => {
                let link = &mut self.links[index as usize];
                link.stats.wasted = link.stats.wasted.saturating_add(lost_turn);
                self.recirculate(switch, index, 0, packet.id);
            }
            Egress::Drop(_) => {}
        }
        self.set_switch_timer(switch);
    }

    /// Keeps what a program wrote into a packet.
    #[inline]
    fn rewrite(&mut self, packet: &Packet, headers: &Headers) {
        *self.packets.headers(packet.id) = *headers;
        let on_its_way = self.packets.at(packet.id);
        (on_its_way.ecn, on_its_way.class) = (packet.ecn, packet.class);
    }

    fn recirculate(&mut self, switch: u32, link: u32, passes: u32, id: PacketId) {
        let state = &mut self.switches[switch as usize];
        check_passes(passes, state.pipeline.name());
        let at = self.now.saturating_add(state.recirculation);
        if state.recirculated.is_empty() {
            self.events.push(at, Event::Recirculated(switch));
        }
        state.recirculated.push_back((at, link, passes, id));
    }

    /// Recirculated packets come to ingress again.
    pub fn on_recirculated(&mut self, switch: u32, observer: &mut impl Observer) {
        let state = &mut self.switches[switch as usize];
        let Some((_, index, passes, id)) = state.recirculated.pop_front() else { return };
        if let Some((next, ..)) = state.recirculated.front() {
            self.events.push(*next, Event::Recirculated(switch));
        }
        let on_its_way = self.packets.at(id);
        let size = ByteCount(on_its_way.bytes.into());
        let packet = Packet { id, flow: on_its_way.flow, size, class: on_its_way.class, ecn: on_its_way.ecn };
        self.through_ingress(index, packet, passes, observer);
    }

    /// The timer of a switch's program may be due.
    pub fn on_switch_timer(&mut self, switch: u32) {
        let now = self.now;
        let state = &mut self.switches[switch as usize];
        if now < state.timer {
            return;
        }
        state.timer = Nanos::MAX;
        while let Some(due) = state.pipeline.next_timer().filter(|due| *due <= now) {
            state.pipeline.on_timer(now);
            if state.pipeline.next_timer().is_some_and(|next| next <= due) {
                timer_stays(state.pipeline.name(), due);
            }
        }
        self.set_switch_timer(switch);
    }

    #[inline]
    fn set_switch_timer(&mut self, switch: u32) {
        let state = &mut self.switches[switch as usize];
        if let Some(due) = state.pipeline.next_timer()
            && due < state.timer
        {
            state.timer = due;
            self.events.push(due, Event::SwitchTimer(switch));
        }
    }
}

/// Access to the state.
impl Network {
    /// The backlog of a link.
    pub fn backlog(&self, link: LinkId) -> Backlog {
        self.links[link.index()].queue.backlog()
    }

    /// Whether all packets leave a link's queue in the order in which they came.
    pub fn is_fifo(&self, link: LinkId) -> bool {
        match &self.links[link.index()].queue {
            Queue::One(discipline) => discipline.is_fifo(),
            Queue::Many(queues) => queues.is_fifo(),
        }
    }

    /// The name and the counters of what manages a link's queue.
    pub fn discipline(&self, link: LinkId) -> (&'static str, Vec<(&'static str, u64)>) {
        let link = &self.links[link.index()];
        match (&link.queue, link.switch) {
            (Queue::One(discipline), _) => (discipline.name(), discipline.counters()),
            (Queue::Many(_), Some((switch, _))) => {
                let pipeline = &self.switches[switch as usize].pipeline;
                (pipeline.name(), pipeline.counters())
            }
            (Queue::Many(_), None) => ("queues", Vec::new()),
        }
    }

    /// The switch program that manages a link's queues; `None` if a discipline does.
    pub fn program(&self, link: LinkId) -> Option<&AnyPipeline> {
        let (switch, _) = self.links[link.index()].switch?;
        Some(&self.switches[switch as usize].pipeline)
    }

    /// The current drop probability of a link's queue, if its manager has one.
    pub fn drop_probability(&self, link: LinkId) -> Option<f64> {
        let link = &self.links[link.index()];
        match (&link.queue, link.switch) {
            (Queue::One(discipline), _) => discipline.drop_probability(),
            (Queue::Many(_), Some((switch, port))) => self.switches[switch as usize].pipeline.drop_probability(port),
            (Queue::Many(_), None) => None,
        }
    }

    /// The counters of a link.
    pub fn stats(&self, link: LinkId) -> &LinkStats {
        &self.links[link.index()].stats
    }
}

/// The outlet of a link's queues. Queues are numbered from 0 in each link, so observers also get the link.
fn outlet(topology: &Topology, link: LinkId, seed: u64) -> Outlet {
    Outlet {
        rate: topology.link(link).rate.mean(),
        overhead: topology.link(link).overhead,
        queue: QueueId(0),
        seed: crate::seed::derive(seed, u64::from(link.0)),
    }
}
