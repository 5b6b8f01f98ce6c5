//! A simulation: traffic over a network, event by event.

use crate::Observer;
use crate::connection::{Connection, ConnectionIdentity, FlowRecord, Transport};
use crate::detour::{Detour, DetourParams};
use crate::event::Event;
use crate::link::{LinkStats, Sending};
use crate::network::{Arrival, Network};
use crate::packets::{InFlight, Kind, Owner, flow_id};
use crate::sample::{FlowSample, LinkSample, Sample};
use crate::topology::{LinkId, NodeId, Routes, Topology};
use crate::traffic::{DATAGRAM_HEADERS, Datagram, DatagramParams, DatagramRecord, Source, Traffic, Workload};
use crate::workload::FlowStart;
use crate::{BuildError, seed};
use queuescope_queue::{AnyPipeline, Headers, Host};
use queuescope_tcp::CongestionControl;
use queuescope_wire::{Backlog, ByteCount, Nanos, PacketId};
use std::collections::BTreeMap;

/// The most flows of a sample.
const FLOWS_SAMPLED: usize = 64;

/// Traffic over a network. The results are the same for the same topology, traffic and seed, on every machine.
///
/// ```
/// use queuescope_queue::{Limit, TailDropParams, DisciplineParams};
/// use queuescope_sim::shapes::{Dumbbell, Wire};
/// use queuescope_sim::workload::FlowStart;
/// use queuescope_sim::{Simulation, Transport};
/// use queuescope_tcp::{Algorithm, Profile, TcpParams};
/// use queuescope_wire::Nanos;
///
/// let buffer = DisciplineParams::TailDrop(TailDropParams { limit: Limit::Packets(100) });
/// let bottleneck = Wire::new("10mbps".parse()?, "10ms".parse()?, buffer);
/// let host = Wire::new("100mbps".parse()?, "1ms".parse()?, DisciplineParams::default());
/// let dumbbell = Dumbbell::new(&bottleneck, None, [host]);
/// let mut simulation = Simulation::new(dumbbell.topology, 1, Nanos::ZERO)?;
///
/// let cubic = Transport::new(TcpParams::linux(), Algorithm::Cubic.params(Profile::Linux));
/// let start = FlowStart { bytes: Some(1_000_000), ..FlowStart::new(dumbbell.left[0], dumbbell.right[0]) };
/// simulation.add_flows(0, cubic, None, std::iter::once(start))?;
/// simulation.run_until("10s".parse()?, &mut ());
/// let finished = simulation.flows()[0].finished.ok_or("the flow is not done")?;
/// println!("a megabyte took {finished}");
/// assert!(finished > "800ms".parse()? && finished < "2s".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Simulation {
    network: Network,
    topology: Topology,
    traffic: Traffic,
    /// Routes by source and destination.
    ways: BTreeMap<(NodeId, NodeId), u32>,
    /// Routes by the node where they start.
    routes: BTreeMap<NodeId, Routes>,
    seed: u64,
    warmup: Nanos,
    interval: Option<Nanos>,
    samples: Vec<Sample>,
}

impl Simulation {
    /// A network without traffic. Nothing counts before `warmup`.
    ///
    /// # Errors
    /// Fails if a switch cannot run its program, or if a link's loss is not a share.
    pub fn new(topology: Topology, seed: u64, warmup: Nanos) -> Result<Self, BuildError> {
        let network = Network::new(&topology, seed)?;
        let (traffic, ways, routes) = (Traffic::default(), BTreeMap::new(), BTreeMap::new());
        let (interval, samples) = (None, Vec::new());
        let mut simulation = Self { network, topology, traffic, ways, routes, seed, warmup, interval, samples };
        if warmup > Nanos::ZERO {
            simulation.network.events.push(warmup, Event::WarmedUp);
        }
        Ok(simulation)
    }

    /// Events of the same time come in the order of ns-3: the end of a transmission and the arrival at the other end
    /// as if they had been pushed when it began. Otherwise links are served last. Applies to everything after this call.
    pub fn order_as_ns3(&mut self) {
        self.network.events.come_in_turn();
    }

    /// Rounds the transmission time of each packet to the nearest nanosecond, as in ns-3; except where the rate
    /// varies. Otherwise no rounding error accumulates.
    pub fn round_as_ns3(&mut self) {
        for link in &mut self.network.links {
            if let Sending::Constant(transmitter) = &mut link.transmitter {
                transmitter.round_each();
            }
        }
    }

    /// Samples the state at each multiple of `interval`.
    ///
    /// # Panics
    /// Panics if `interval` is zero.
    pub fn sample_every(&mut self, interval: Nanos) {
        assert!(interval > Nanos::ZERO, "sample_every: the interval between samples must be above zero");
        self.interval = Some(interval);
        self.network.events.push(Nanos::ZERO, Event::Sample);
    }

    /// Adds flows of the same kind. Their `from` and `to` are numbers of nodes. `group` is a number of the caller's choice. At `stop` they
    /// still send what was handed to TCP, and no more. Later flows without a route do not start;
    /// [`flows_without_route`](Self::flows_without_route) counts them.
    ///
    /// # Errors
    /// Fails if there is no route for the first flow and its acknowledgements, as from a node to itself.
    pub fn add_flows(
        &mut self,
        group: u32,
        transport: Transport,
        stop: Option<Nanos>,
        starts: impl Iterator<Item = FlowStart> + Send + 'static,
    ) -> Result<(), BuildError> {
        let index = self.traffic.workloads.len() as u32;
        let mut workload = Workload { group, transport, starts: Box::new(starts), next: None };
        workload.next = workload.starts.next();
        if let Some(next) = &workload.next {
            let [from, to] = [next.from, next.to].map(|node| NodeId(node as u32));
            self.way(from, to)?;
            self.way(to, from)?;
            self.network.events.push(next.at, Event::Start(index));
        }
        if let Some(stop) = stop {
            self.network.events.push(stop, Event::Stop(index));
        }
        self.traffic.workloads.push(workload);
        Ok(())
    }

    /// Adds a source of datagrams, which must be in order of time.
    ///
    /// # Errors
    /// Fails if there is no route.
    pub fn add_datagrams(
        &mut self,
        datagrams_of: DatagramParams,
        datagrams: impl Iterator<Item = Datagram> + Send + 'static,
    ) -> Result<(), BuildError> {
        let DatagramParams { group, from, to, class, ecn, flows, activity } = datagrams_of;
        let route = self.way(from, to)?;
        let index = self.traffic.sources.len() as u32;
        let hosts = [Host(from.0), Host(to.0)];
        let none = Backlog::default();
        let mut source = Source {
            datagrams: Box::new(datagrams),
            next: None,
            route,
            hosts,
            first: self.traffic.datagram_flows,
            class,
            ecn,
            activity,
            record: DatagramRecord { group, hosts, sent: none, delivered: none },
        };
        source.next = source.datagrams.next();
        if let Some(next) = &source.next {
            self.network.events.push(next.at, Event::Datagram(index));
        }
        self.traffic.datagram_flows = self.traffic.datagram_flows.wrapping_add(flows.max(1));
        self.traffic.sources.push(source);
        Ok(())
    }

    /// Adds a fault: some packets from one host to another go through a node that is not on their route, by the shortest route to it
    /// and from it. Applies to packets sent after this call; if several detours could apply to a packet, the first one chosen at random does.
    ///
    /// # Errors
    /// Fails if there is no route.
    pub fn add_detour(&mut self, params: &DetourParams) -> Result<(), BuildError> {
        let DetourParams { from, via, to, .. } = *params;
        let [there, on] = [self.way(from, via)?, self.way(via, to)?];
        let direct = self.way(from, to)?;
        let routes = &mut self.network.routes;
        routes.push([&*routes[there as usize], &*routes[on as usize]].concat().into());
        let by = routes.len() as u32 - 1;
        let seed = seed::derive(self.seed, self.network.detours.len() as u64);
        self.network.detours.push(Detour::new(params, direct, by, seed));
        Ok(())
    }

    /// The number of the route from one node to another.
    ///
    /// # Errors
    /// Fails if there is no route.
    pub fn way(&mut self, from: NodeId, to: NodeId) -> Result<u32, BuildError> {
        if let Some(way) = self.ways.get(&(from, to)) {
            return Ok(*way);
        }
        let Some(links) = self.links_between(from, to).filter(|links| !links.is_empty()) else {
            let exists = |node: NodeId| (node.0 as usize) < self.topology.len();
            let name =
                |node| if exists(node) { self.topology.node_name(node).to_owned() } else { format!("node {}", node.0) };
            return Err(BuildError::NoWay { from: name(from), to: name(to) });
        };
        self.network.routes.push(links.into());
        let way = self.network.routes.len() as u32 - 1;
        self.ways.insert((from, to), way);
        Ok(way)
    }

    /// The links from one node to another. A host has only one link away from it: its routes continue as those of the switch there, which are
    /// computed once.
    fn links_between(&mut self, from: NodeId, to: NodeId) -> Option<Vec<u32>> {
        if [from, to].iter().any(|node| node.0 as usize >= self.topology.len()) {
            return None;
        }
        let mut links = Vec::new();
        let mut start = from;
        if let Some(only) = self.topology.only_link_from(from)
            && from != to
        {
            links.push(only.0);
            start = self.topology.link(only).to;
        }
        let routes = self.routes.entry(start).or_insert_with(|| self.topology.routes_from(start));
        links.extend(routes.to(to)?);
        Some(links)
    }

    /// Runs until `end`, including the events at that time. It can be called again with a later end.
    pub fn run_until(&mut self, end: Nanos, observer: &mut impl Observer) {
        while self.network.events.next_time().is_some_and(|at| at <= end) && !self.is_full() {
            let Some((at, event)) = self.network.events.pop() else { break };
            self.network.now = at;
            self.happen(event, observer);
            self.network.serve_idle(observer);
            self.count_gone();
        }
        self.network.now = self.network.now.max(end);
    }

    /// Adds the results of a flow whose packets came from outside.
    pub fn add_record(&mut self, record: FlowRecord) {
        self.traffic.records.push(record);
    }

    /// Adds the results of datagrams that came from outside.
    pub fn add_datagram_record(&mut self, record: DatagramRecord) {
        self.traffic.foreign.push(record);
    }

    /// Sends a packet from outside now.
    pub(crate) fn send_foreign(&mut self, packet: InFlight, headers: Headers, observer: &mut impl Observer) {
        self.network.send(packet, headers, observer);
        self.network.serve_idle(observer);
        self.count_gone();
    }

    #[inline]
    fn happen(&mut self, event: Event, observer: &mut impl Observer) {
        match event {
            Event::Serve(link) => self.network.serve(link, observer),
            Event::Arrive(link) => {
                if let Arrival::Delivered(packet) = self.network.arrive(link, observer) {
                    self.receive(packet, observer);
                }
            }
            Event::QueueTimer(link) => self.network.on_queue_timer(link),
            Event::SwitchTimer(switch) => self.network.on_switch_timer(switch),
            Event::Recirculated(switch) => self.network.on_recirculated(switch, observer),
            Event::SenderTimer(connection) => self.on_sender_timer(connection, observer),
            Event::ReceiverTimer(connection) => self.on_receiver_timer(connection, observer),
            Event::Start(workload) => self.start(workload, observer),
            Event::Stop(workload) => self.stop(workload, observer),
            Event::Datagram(source) => self.send_datagram(source, observer),
            Event::WarmedUp => self.warmed_up(),
            Event::Sample => self.sample(),
        }
    }

    /// A packet reached its destination.
    #[inline]
    fn receive(&mut self, id: PacketId, observer: &mut impl Observer) {
        let now = self.network.now;
        let packet = self.network.packets.remove(id);
        match (packet.owner, &self.network.packets.headers(id).tcp) {
            (Owner::Receiver(index), Some(segment)) => {
                let connection = &mut self.traffic.connections[index as usize];
                connection.in_flight -= 1;
                connection.receiver.receive(segment, packet.ecn, now);
                self.answer(index, observer);
            }
            (Owner::Sender(index), Some(segment)) => {
                let connection = &mut self.traffic.connections[index as usize];
                connection.in_flight -= 1;
                connection.sender.receive(segment, packet.ecn, now);
                self.pump(index, observer);
            }
            (Owner::Datagrams(index), _) => {
                let delivered = &mut self.traffic.sources[index as usize].record.delivered;
                delivered.packets += 1;
                delivered.bytes += ByteCount(u64::from(packet.bytes));
            }
            _ => {}
        }
    }

    /// A sender sends as much as it may.
    #[inline]
    fn pump(&mut self, index: u32, observer: &mut impl Observer) {
        let now = self.network.now;
        let connection = &mut self.traffic.connections[index as usize];
        let place = connection.place;
        connection.take_turns(&mut self.network.events);
        while let Some((segment, ecn)) = connection.sender.transmit(now) {
            connection.take_turns(&mut self.network.events);
            connection.in_flight += 1;
            let (packet, headers) = Connection::packet(place, true, segment, ecn);
            self.network.send(packet, headers, observer);
        }
        if let Some(due) = connection.sender.next_timer()
            && due < connection.sender_timer
        {
            connection.sender_timer = due;
            connection.events += 1;
            let turn = connection.turn(due, &mut self.network.events);
            self.network.events.push_in_turn(due, Event::SenderTimer(index), turn);
        }
        self.count_gone();
        self.retire(index);
    }

    /// A receiver sends the acknowledgements that are due.
    #[inline]
    fn answer(&mut self, index: u32, observer: &mut impl Observer) {
        let now = self.network.now;
        let connection = &mut self.traffic.connections[index as usize];
        let place = connection.place;
        while let Some((segment, ecn)) = connection.receiver.transmit(now) {
            connection.in_flight += 1;
            let (packet, headers) = Connection::packet(place, false, segment, ecn);
            self.network.send(packet, headers, observer);
        }
        let due = connection.receiver.next_timer();
        connection.answers.set(due, &mut self.network.events);
        if let Some(due) = due
            && due < connection.receiver_timer
        {
            connection.receiver_timer = due;
            connection.events += 1;
            self.network.events.push_in_turn(due, Event::ReceiverTimer(index), connection.answers.turn);
        }
        if !connection.reported && connection.record.bytes.is_some_and(|bytes| connection.receiver.delivered() >= bytes)
        {
            connection.reported = true;
            connection.record.finished = Some(now);
            observer.finished(&connection.record());
        }
        self.count_gone();
        self.retire(index);
    }

    fn on_sender_timer(&mut self, index: u32, observer: &mut impl Observer) {
        let now = self.network.now;
        let connection = &mut self.traffic.connections[index as usize];
        connection.events -= 1;
        if now >= connection.sender_timer {
            connection.sender_timer = Nanos::MAX;
            if connection.sender.next_timer().is_some_and(|due| due <= now) {
                connection.sender.on_timer(now);
            }
        }
        self.pump(index, observer);
    }

    fn on_receiver_timer(&mut self, index: u32, observer: &mut impl Observer) {
        let now = self.network.now;
        let connection = &mut self.traffic.connections[index as usize];
        connection.events -= 1;
        if now >= connection.receiver_timer {
            connection.receiver_timer = Nanos::MAX;
            if connection.receiver.next_timer().is_some_and(|due| due <= now) {
                connection.receiver.on_timer(now);
            }
        }
        self.answer(index, observer);
    }

    /// A workload's next flow starts.
    fn start(&mut self, index: u32, observer: &mut impl Observer) {
        let workload = &mut self.traffic.workloads[index as usize];
        let group = workload.group;
        let Some(start) = workload.next.take() else { return };
        workload.next = workload.starts.next();
        if let Some(next) = &workload.next {
            // If a workload's times go back, its next flow starts at once.
            self.network.events.push(next.at.max(self.network.now), Event::Start(index));
        }
        let nodes = [NodeId(start.from as u32), NodeId(start.to as u32)];
        let (Ok(there), Ok(back)) = (self.way(nodes[0], nodes[1]), self.way(nodes[1], nodes[0])) else {
            self.traffic.without_route += 1;
            return;
        };
        let traffic = &mut self.traffic;
        let (number, now) = (traffic.started, self.network.now);
        traffic.started += 1;
        let seed = seed::derive(!self.seed, number);
        let transport = &traffic.workloads[index as usize].transport;
        let free = traffic.free.pop().unwrap_or(traffic.connections.len() as u32);
        let hosts = nodes.map(|node| Host(node.0));
        let Transport { tcp, class, l4s, activity, .. } = transport;
        let (network_header, class, l4s, activity) = (tcp.network_header, *class, *l4s, *activity);
        let routes = [there, back];
        let place =
            ConnectionIdentity { index: free, number, group, routes, hosts, network_header, class, l4s, activity };
        let mut connection = Connection::new(transport, place, index, start.bytes, seed, now);
        connection.sender.connect(now);
        match traffic.connections.get_mut(free as usize) {
            Some(old) => *old = connection,
            None => traffic.connections.push(connection),
        }
        self.pump(free, observer);
    }

    /// The connections of a workload stop handing data to TCP.
    fn stop(&mut self, index: u32, observer: &mut impl Observer) {
        self.traffic.workloads[index as usize].next = None;
        for connection in 0..self.traffic.connections.len() as u32 {
            let place = &mut self.traffic.connections[connection as usize];
            if place.workload == index && !place.sender.is_done() {
                place.sender.stop();
                self.pump(connection, observer);
            }
        }
    }

    fn send_datagram(&mut self, index: u32, observer: &mut impl Observer) {
        let source = &mut self.traffic.sources[index as usize];
        let Some(Datagram { size, flow, .. }) = source.next.take() else { return };
        let size = size.max(ByteCount(u64::from(DATAGRAM_HEADERS)));
        source.next = source.datagrams.next();
        if let Some(next) = &source.next {
            // If a source's times go back, it sends at once.
            self.network.events.push(next.at.max(self.network.now), Event::Datagram(index));
        }
        let number = source.first.wrapping_add(flow);
        let flow = flow_id(u64::from(number), Kind::Datagrams);
        source.record.sent.packets += 1;
        source.record.sent.bytes += size;
        let [from, to] = source.hosts;
        let packet = InFlight {
            flow,
            number,
            group: source.record.group,
            hosts: source.hosts,
            bytes: u32::try_from(size.0).unwrap_or(u32::MAX),
            ecn: source.ecn,
            class: source.class,
            route: source.route,
            hop: 0,
            owner: Owner::Datagrams(index),
        };
        let headers = Headers { activity: source.activity, ..Headers::plain(from, to, flow) };
        self.network.send(packet, headers, observer);
    }

    /// Counts dropped packets as no longer in flight.
    #[inline]
    fn count_gone(&mut self) {
        while let Some(owner) = self.network.gone.pop() {
            if let Owner::Receiver(index) | Owner::Sender(index) = owner {
                self.traffic.connections[index as usize].in_flight -= 1;
                // It may have been the last reference to a connection.
                self.retire(index);
            }
        }
    }

    /// Frees the slot of a connection that is over.
    #[inline]
    fn retire(&mut self, index: u32) {
        let connection = &mut self.traffic.connections[index as usize];
        if connection.reported && connection.is_over() {
            // The slot is freed only once: nothing refers to the connection, so no event comes here again.
            connection.reported = false;
            self.traffic.records.push(connection.record());
            connection.record.bytes = None;
            self.traffic.free.push(index);
        }
    }

    fn warmed_up(&mut self) {
        for link in &mut self.network.links {
            link.stats.reset();
        }
        for connection in &mut self.traffic.connections {
            let now = connection.record();
            connection.record.in_warmup = now.progress();
        }
        for record in &mut self.traffic.records {
            record.in_warmup = record.progress();
        }
        for source in &mut self.traffic.sources {
            (source.record.sent, source.record.delivered) = (Backlog::default(), Backlog::default());
        }
    }

    fn sample(&mut self) {
        let Some(interval) = self.interval else { return };
        self.network.events.push(self.network.now.saturating_add(interval), Event::Sample);
        let measured = self.network.links.iter().filter(|link| link.stats.is_measured());
        let links = measured.map(|link| LinkSample {
            link: link.id,
            backlog: link.queue.backlog(),
            sent: link.stats.sent,
            lost: link.stats.lost,
            drops: link.stats.drops.iter().sum(),
            marks: link.stats.marks.iter().sum(),
            drop_probability: self.network.drop_probability(link.id),
        });
        let active = self.traffic.connections.iter().filter(|connection| !connection.sender.is_done());
        let flows = active.take(FLOWS_SAMPLED).map(|connection| FlowSample {
            number: connection.record.number,
            window: connection.sender.control().window(),
            in_flight: connection.sender.in_flight(),
            smoothed_rtt: connection.sender.smoothed_rtt(),
            delivered: connection.receiver.delivered(),
        });
        self.samples.push(Sample { at: self.network.now, links: links.collect(), flows: flows.collect() });
    }
}

/// Access to the state and results.
impl Simulation {
    /// The current time.
    pub fn now(&self) -> Nanos {
        self.network.now
    }

    /// The time of the next event, unless a packet comes from outside before.
    #[inline]
    pub fn next_time(&self) -> Option<Nanos> {
        self.network.events.next_time()
    }

    /// The duration of the warm-up, in which nothing counts.
    pub fn warmup(&self) -> Nanos {
        self.warmup
    }

    /// The nodes and links.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The counters of a link.
    pub fn link(&self, link: LinkId) -> &LinkStats {
        self.network.stats(link)
    }

    /// The links whose sojourn times are recorded.
    pub fn measured(&self) -> impl Iterator<Item = LinkId> {
        self.network.links.iter().filter(|link| link.stats.is_measured()).map(|link| link.id)
    }

    /// The name of what manages a link's queue, and its counters since the start.
    pub fn discipline(&self, link: LinkId) -> (&'static str, Vec<(&'static str, u64)>) {
        self.network.discipline(link)
    }

    /// The switch program that manages a link's queues; `None` if a discipline does.
    pub fn program(&self, link: LinkId) -> Option<&AnyPipeline> {
        self.network.program(link)
    }

    /// Whether packets leave a link's queue in the order in which they came.
    pub fn is_fifo(&self, link: LinkId) -> bool {
        self.network.is_fifo(link)
    }

    /// The backlog of a link.
    pub fn backlog(&self, link: LinkId) -> Backlog {
        self.network.backlog(link)
    }

    /// The results of each flow so far, in the order in which they started.
    pub fn flows(&self) -> Vec<FlowRecord> {
        let traffic = &self.traffic;
        let over: std::collections::BTreeSet<_> = traffic.free.iter().collect();
        let running = (0..).zip(&traffic.connections).filter(|(index, _)| !over.contains(index));
        let mut flows: Vec<_> = running.map(|(_, connection)| connection.record()).collect();
        flows.extend(traffic.records.iter().cloned());
        flows.sort_unstable_by_key(|flow| flow.number);
        flows
    }

    /// Flows that could not start, because there is no route between their hosts.
    pub fn flows_without_route(&self) -> u64 {
        self.traffic.without_route
    }

    /// The results of each source of datagrams.
    pub fn datagrams(&self) -> impl Iterator<Item = &DatagramRecord> {
        self.traffic.sources.iter().map(|source| &source.record).chain(&self.traffic.foreign)
    }

    /// The samples so far.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Packets that left a link, over all links, since the warm-up.
    pub fn hops(&self) -> u64 {
        self.network.links.iter().map(|link| link.stats.sent.packets).sum()
    }

    /// Slots for connections: the highest number of concurrent connections.
    pub fn places(&self) -> usize {
        self.traffic.connections.len()
    }

    /// Whether it cannot continue because more packets are in flight, or wait, than it has room for: 15 million.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.network.packets.is_full()
    }

    /// Packets that are in flight or wait.
    pub fn on_their_way(&self) -> usize {
        self.network.packets.len()
    }
}
