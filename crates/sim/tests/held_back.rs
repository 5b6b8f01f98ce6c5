//! Disciplines that hold packets back, with timers and without, and components that would make a run hang.

use queuescope_queue::{
    Discipline, DisciplineFactory, Dropped, Egress, Fifo, Headers, Host, Ingress, Limit, MarkReason, Outlet, Pipeline,
    PipelineFactory, Sink,
};
use queuescope_sim::shapes::{Wire, add_both};
use queuescope_sim::{Aqm, DatagramParams, LinkId, Output, Replay, Simulation, SwitchParams, Topology};
use queuescope_wire::{Backlog, ByteCount, Departure, FlowId, Nanos, Packet, PacketId, QueueId, Rate};

const MS: u64 = 1_000_000;

/// When packets may leave.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Release {
    /// If three or more wait; it has no timer.
    InThrees,
    /// Never, and it has no timer.
    Never,
    /// Never, although it has a timer every millisecond.
    NeverWithTimer,
    /// Never: it sets its timer for now.
    SoonForEver,
    /// At once, but its timer stays where it is.
    WithStuckTimer,
}

#[derive(Debug)]
struct Held {
    release: Release,
    fifo: Fifo,
    timer: Option<Nanos>,
}

impl Held {
    fn new(release: Release) -> Self {
        let timer = (release == Release::NeverWithTimer || release == Release::WithStuckTimer).then_some(Nanos(MS));
        Self { release, fifo: Fifo::default(), timer }
    }
}

impl Discipline for Held {
    fn enqueue(&mut self, packet: Packet, now: Nanos, _: &mut impl Sink) {
        self.fifo.push(packet, now);
    }

    fn dequeue(&mut self, now: Nanos, _: &mut impl Sink) -> Option<Departure> {
        match self.release {
            Release::InThrees if self.fifo.backlog().packets >= 3 => {}
            Release::WithStuckTimer => {}
            Release::SoonForEver => {
                self.timer = Some(now);
                return None;
            }
            _ => return None,
        }
        let first = self.fifo.pop()?;
        Some(first.depart(QueueId(0), now, self.fifo.backlog()))
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    fn on_timer(&mut self, now: Nanos) {
        match self.release {
            Release::WithStuckTimer => {}
            Release::NeverWithTimer => self.timer = Some(now + Nanos(MS)),
            _ => self.timer = None,
        }
    }
}

fn rate() -> Rate {
    Rate::from_bits_per_second(8_000_000).unwrap()
}

fn outlet() -> Outlet {
    Outlet { rate: rate(), overhead: 0, queue: QueueId(0), seed: 0 }
}

#[derive(Default)]
struct Log(Vec<(u64, u64)>);

impl Sink for Log {
    fn dropped(&mut self, dropped: &Dropped) {
        panic!("{dropped:?}");
    }
    fn marked(&mut self, packet: &Packet, _: MarkReason, _: Nanos) {
        panic!("{packet:?}");
    }
}

impl Output for Log {
    fn departed(&mut self, departure: &Departure) {
        self.0.push((departure.packet.id.0, departure.dequeued.0));
    }
}

fn packet(id: u64) -> Packet {
    Packet { id: PacketId(id), size: ByteCount(1_000), ..Packet::default() }
}

/// Ten packets, one every 5 ms, with transmission times of 1 ms.
fn replay(release: Release) -> (Log, u64) {
    let (mut replay, mut log) = (Replay::new(Held::new(release), &outlet()), Log::default());
    for id in 0..10 {
        replay.arrive(packet(id), Nanos(id * 5 * MS), &mut log);
    }
    replay.finish(&mut log);
    (log, replay.discipline().backlog().packets)
}

fn simulate(release: Release) -> (Simulation, LinkId) {
    let mut topology = Topology::default();
    let [from, to] = ["from", "to"].map(|name| topology.add_node(name));
    let discipline = DisciplineFactory::new("held", move |_| Held::new(release));
    let (link, _) = add_both(&mut topology, ("", ""), (from, to), &Wire::new(rate(), Nanos::ZERO, discipline), true);
    let mut simulation = Simulation::new(topology, 1, Nanos::ZERO).unwrap();
    let datagrams = (0..10).map(|n| (Nanos(n * 5 * MS), ByteCount(1_000)).into());
    simulation.add_datagrams(DatagramParams::new(from, to), datagrams).unwrap();
    simulation.run_until(Nanos(1_000 * MS), &mut ());
    (simulation, link)
}

/// Without a timer, the arrival of the third packet releases the first, and so on. The last two stay.
#[test]
fn without_a_timer_arrivals_release_packets() {
    let (log, left) = replay(Release::InThrees);
    assert_eq!(log.0, (0..8).map(|id| (id, (id + 2) * 5 * MS)).collect::<Vec<_>>());
    assert_eq!(left, 2);
    let (simulation, link) = simulate(Release::InThrees);
    assert_eq!((simulation.link(link).sent.packets, simulation.backlog(link).packets), (8, 2));
    assert_eq!(simulation.link(link).sojourn().unwrap().range(), Some((Nanos(10 * MS), Nanos(10 * MS))));
}

#[test]
fn packets_that_are_never_released_stay() {
    for release in [Release::Never, Release::NeverWithTimer] {
        let (log, left) = replay(release);
        assert_eq!((log.0.len(), left), (0, 10), "{release:?}");
        let (simulation, link) = simulate(release);
        assert_eq!((simulation.link(link).sent.packets, simulation.backlog(link).packets), (0, 10), "{release:?}");
    }
}

#[test]
#[should_panic(expected = "the discipline 'held' holds its packets back at 0 ns")]
fn a_timer_that_asks_for_now_ends_a_simulation() {
    simulate(Release::SoonForEver);
}

#[test]
#[should_panic(expected = "held_back::Held' holds its packets back at 0 ns")]
fn a_timer_that_asks_for_now_ends_a_replay() {
    replay(Release::SoonForEver);
}

#[test]
#[should_panic(expected = "'held' did not move its timer on: after on_timer(1000000 ns)")]
fn a_stuck_timer_ends_a_simulation() {
    simulate(Release::WithStuckTimer);
}

#[test]
#[should_panic(expected = "held_back::Held' did not move its timer on: after on_timer(1000000 ns)")]
fn a_stuck_timer_ends_a_replay() {
    replay(Release::WithStuckTimer);
}

/// A switch program that recirculates every packet, at ingress or at egress, or has a timer that never moves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Round {
    Ingress,
    Egress,
    Timer,
}

impl Pipeline for Round {
    fn ingress(
        &mut self,
        _: queuescope_queue::Port,
        _: &mut Packet,
        _: &mut Headers,
        _: Nanos,
        _: &mut impl Sink,
    ) -> Ingress {
        if *self == Self::Ingress { Ingress::Recirculate } else { Ingress::Enqueue(0) }
    }

    fn egress(&mut self, _: queuescope_queue::Port, _: &mut Departure, _: &mut Headers, _: &mut impl Sink) -> Egress {
        if *self == Self::Egress { Egress::Recirculate } else { Egress::Send }
    }

    fn next_timer(&self) -> Option<Nanos> {
        (*self == Self::Timer).then_some(Nanos(MS))
    }
}

fn replay_program(round: Round) {
    let aqm = Aqm::custom_program(PipelineFactory::new("round", move |_| round));
    let (mut queue, mut log) = (aqm.replay(Limit::None, &outlet()), Log::default());
    let headers = || Headers::plain(Host(0), Host(1), FlowId(0));
    queue.arrive(packet(0), headers, Nanos::ZERO, &mut log);
    queue.arrive(packet(1), headers, Nanos(5 * MS), &mut log);
    queue.finish(&mut log);
}

fn simulate_program(round: Round, recirculation: Nanos) -> u64 {
    let mut topology = Topology::default();
    let [from, switch, to] = ["from", "switch", "to"].map(|name| topology.add_node(name));
    let wire = Wire::new(rate(), Nanos::ZERO, queuescope_queue::DisciplineParams::default());
    add_both(&mut topology, ("", ""), (from, switch), &wire, false);
    let (link, _) = add_both(&mut topology, ("", ""), (switch, to), &wire, true);
    let pipeline = PipelineFactory::new("round", move |_| round).into();
    topology.set_switch(switch, SwitchParams { pipeline, managed: vec![(link, Limit::None)], recirculation });
    let mut simulation = Simulation::new(topology, 1, Nanos::ZERO).unwrap();
    let datagram = std::iter::once((Nanos::ZERO, ByteCount(1_000)).into());
    simulation.add_datagrams(DatagramParams::new(from, to), datagram).unwrap();
    simulation.run_until(Nanos(1_000 * MS), &mut ());
    simulation.datagrams().next().unwrap().delivered.packets
}

#[test]
#[should_panic(expected = "the switch program 'round' recirculated a packet 10000 times")]
fn a_program_that_recirculates_at_ingress_ends_a_simulation() {
    simulate_program(Round::Ingress, Nanos::ZERO);
}

/// At egress each pass takes time on the link, so the simulation reaches its end.
#[test]
fn a_program_that_recirculates_at_egress_delivers_nothing() {
    assert_eq!(simulate_program(Round::Egress, Nanos::ZERO), 0);
}

#[test]
#[should_panic(expected = "'round' did not move its timer on")]
fn a_program_with_a_stuck_timer_ends_a_simulation() {
    simulate_program(Round::Timer, Nanos::ZERO);
}

#[test]
#[should_panic(expected = "the switch program 'round' recirculated a packet 10000 times")]
fn a_program_that_recirculates_at_ingress_ends_a_replay() {
    replay_program(Round::Ingress);
}

#[test]
#[should_panic(expected = "the switch program 'round' recirculated a packet 10000 times")]
fn a_program_that_recirculates_at_egress_ends_a_replay() {
    replay_program(Round::Egress);
}

#[test]
#[should_panic(expected = "'round' did not move its timer on")]
fn a_program_with_a_stuck_timer_ends_a_replay() {
    replay_program(Round::Timer);
}

#[test]
#[should_panic(expected = "the interval between samples must be above zero")]
fn samples_need_an_interval() {
    let mut simulation = Simulation::new(Topology::default(), 1, Nanos::ZERO).unwrap();
    simulation.sample_every(Nanos::ZERO);
}

/// A FIFO that departs or drops packets that it does not have.
#[derive(Debug)]
struct Inventive {
    fifo: Fifo,
    drops: bool,
}

impl Discipline for Inventive {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        self.fifo.push(packet, now);
        if self.drops {
            let unknown = Packet { id: PacketId(12_345), ..packet };
            sink.dropped(&Dropped::on_arrival(unknown, QueueId(0), now, queuescope_queue::DropReason::Early));
        }
    }

    fn dequeue(&mut self, now: Nanos, _: &mut impl Sink) -> Option<Departure> {
        let mut first = self.fifo.pop()?;
        first.packet.id = PacketId(12_345);
        Some(first.depart(QueueId(0), now, self.fifo.backlog()))
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

fn simulate_inventive(drops: bool) {
    let mut topology = Topology::default();
    let [from, to] = ["from", "to"].map(|name| topology.add_node(name));
    let discipline = DisciplineFactory::new("inventive", move |_| Inventive { fifo: Fifo::default(), drops });
    add_both(&mut topology, ("", ""), (from, to), &Wire::new(rate(), Nanos::ZERO, discipline), true);
    let mut simulation = Simulation::new(topology, 1, Nanos::ZERO).unwrap();
    let datagrams = std::iter::once((Nanos::ZERO, ByteCount(1_000)).into());
    simulation.add_datagrams(DatagramParams::new(from, to), datagrams).unwrap();
    simulation.run_until(Nanos(MS), &mut ());
}

#[test]
#[should_panic(expected = "the discipline 'inventive' departed Packet { id: PacketId(12345)")]
fn a_departure_of_an_unknown_packet_names_the_discipline() {
    simulate_inventive(false);
}

#[test]
#[should_panic(expected = "the discipline 'inventive' dropped Packet { id: PacketId(12345)")]
fn a_drop_of_an_unknown_packet_names_the_discipline() {
    simulate_inventive(true);
}

/// A link cannot lose a share of its packets that is not a share.
#[test]
fn a_loss_is_a_share() {
    use queuescope_sim::{BuildError, DisciplineChoice, LinkParams, LinkRate};
    for loss in [f64::NAN, -1.0, 2.0, f64::INFINITY] {
        let mut topology = Topology::default();
        let [from, to] = ["from", "to"].map(|name| topology.add_node(name));
        topology.add_link(LinkParams {
            name: "lossy".to_owned(),
            from,
            to,
            rate: LinkRate::Constant(rate()),
            delay: Nanos::ZERO,
            loss,
            overhead: 0,
            discipline: DisciplineChoice::default(),
            measured: false,
        });
        let error = Simulation::new(topology, 1, Nanos::ZERO).unwrap_err();
        assert!(matches!(&error, BuildError::Loss { link, .. } if link == "lossy"), "{error}");
        assert!(error.to_string().contains(&format!("a share of {loss}")), "{error}");
    }
}

/// Flows need a route there and back. Of a later flow this is known only when it starts.
#[test]
fn a_flow_without_a_route_is_an_error() {
    use queuescope_sim::workload::FlowStart;
    use queuescope_sim::{BuildError, NodeId, Transport};
    use queuescope_tcp::{Algorithm, Profile, TcpParams};
    let mut topology = Topology::default();
    let [from, to, alone] = ["from", "to", "alone"].map(|name| topology.add_node(name));
    let wire = Wire::new(rate(), Nanos::ZERO, queuescope_queue::DisciplineParams::default());
    add_both(&mut topology, ("", ""), (from, to), &wire, true);
    let mut simulation = Simulation::new(topology, 1, Nanos::ZERO).unwrap();
    let transport = || Transport::new(TcpParams::linux(), Algorithm::Cubic.params(Profile::Linux));
    for (there, name) in [(alone, "alone"), (from, "from"), (NodeId(77), "node 77")] {
        let start = std::iter::once(FlowStart::new(from, there));
        let error = simulation.add_flows(0, transport(), None, start).unwrap_err();
        assert_eq!(error, BuildError::NoWay { from: "from".to_owned(), to: name.to_owned() });
    }
    let starts = [FlowStart::new(from, to), FlowStart { at: Nanos(1), ..FlowStart::new(from, alone) }];
    simulation.add_flows(0, transport(), None, starts.into_iter()).unwrap();
    simulation.run_until(Nanos(MS), &mut ());
    assert_eq!((simulation.flows().len(), simulation.flows_without_route()), (1, 1));
}
