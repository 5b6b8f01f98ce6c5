//! Traffic that does not react: the results of a simulation are known without one.

use proptest::prelude::*;
use queuescope_queue::{
    CodelFlavour, Discipline, DisciplineParams, DropReason, Dropped, FqCodel, FqCodelParams, Headers, Limit,
    MarkReason, Outlet, Sink, TailDrop, TailDropParams,
};
use queuescope_sim::shapes::{Dumbbell, Wire, add_both};
use queuescope_sim::{
    BuildError, Datagram, DatagramParams, InFlight, Journey, LinkId, LinkRate, NodeId, Observer, Output, Replay,
    Simulation, Telemetry, Topology, number,
};
use queuescope_wire::{Backlog, ByteCount, Class, Departure, Ecn, FlowId, Nanos, Packet, PacketId, QueueId, Rate};

/// Departures and drops of a link.
#[derive(Default)]
struct Log {
    link: u32,
    departures: Vec<(u64, Nanos, Nanos, Backlog)>,
    drops: Vec<(u64, Nanos)>,
}

impl Observer for Log {
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &InFlight, _headers: &Headers) {
        assert_eq!(u64::from(packet.bytes), departure.packet.size.0, "links add nothing");
        if link.0 == self.link {
            let id = number(departure.packet.id);
            self.departures.push((id, departure.enqueued, departure.dequeued, departure.backlog_in));
        }
    }

    fn dropped(&mut self, link: LinkId, dropped: &Dropped, _packet: &InFlight, _headers: &Headers) {
        assert_eq!((link.0, dropped.reason), (self.link, DropReason::Overlimit));
        self.drops.push((number(dropped.packet.id), dropped.at));
    }
}

/// The results of a replay.
impl Sink for Log {
    fn dropped(&mut self, dropped: &Dropped) {
        self.drops.push((dropped.packet.id.0, dropped.at));
    }

    fn marked(&mut self, packet: &Packet, _reason: MarkReason, _now: Nanos) {
        panic!("{packet:?} was marked");
    }
}

impl Output for Log {
    fn departed(&mut self, departure: &Departure) {
        self.departures.push((departure.packet.id.0, departure.enqueued, departure.dequeued, departure.backlog_in));
    }
}

fn rate(bits: u64) -> Rate {
    Rate::from_bits_per_second(bits).unwrap()
}

fn wire(bits: u64, delay: u64, limit: Limit) -> Wire {
    let discipline = DisciplineParams::TailDrop(TailDropParams { limit });
    Wire { rate: LinkRate::Constant(rate(bits)), delay: Nanos(delay), overhead: 0, discipline: discipline.into() }
}

fn one_link(wire: &Wire) -> (Topology, [NodeId; 2], LinkId) {
    let mut topology = Topology::default();
    let (from, to) = (topology.add_node("a"), topology.add_node("b"));
    let (link, _) = add_both(&mut topology, ("there", "back"), (from, to), wire, true);
    (topology, [from, to], link)
}

proptest! {
    /// A single link is a replay: the same packets leave at the same times, behind the same backlog.
    #[test]
    fn a_link_is_a_replay(
        bits in prop_oneof![1_000_000..20_000_000_000u64, Just(8_000_000_000)],
        most in prop::option::of(0..10u64),
        gaps in prop::collection::vec((0..4_000u64, 28..3_000u64), 1..120)
    ) {
        let limit = most.map_or(Limit::None, Limit::Packets);
        let arrivals: Vec<_> =
            gaps.iter().scan(0, |now, (gap, size)| { *now += gap; Some((Nanos(*now), ByteCount(*size))) }).collect();
        let (topology, [from, to], link) = one_link(&wire(bits, 7, limit));
        let mut simulation = Simulation::new(topology, 0, Nanos::ZERO).unwrap();
        simulation.add_datagrams(DatagramParams::new(from, to), arrivals.clone().into_iter().map(Datagram::from)).unwrap();
        let mut simulated = Log::default();
        simulation.run_until(Nanos(u64::MAX / 2), &mut simulated);

        let outlet = Outlet { overhead: 0, rate: rate(bits), queue: QueueId(0), seed: 0 };
        let mut replay = Replay::new(TailDrop::new(TailDropParams { limit }, outlet), &outlet);
        let mut replayed = Log::default();
        for (id, (now, size)) in (0..).zip(&arrivals) {
            let packet = Packet { id: PacketId(id), flow: FlowId(0), size: *size, class: Class(0), ecn: Ecn::NotEct };
            replay.arrive(packet, *now, &mut replayed);
        }
        replay.finish(&mut replayed);
        prop_assert_eq!(&simulated.departures, &replayed.departures);
        prop_assert_eq!(&simulated.drops, &replayed.drops);

        let (stats, record) = (simulation.link(link), simulation.datagrams().next().unwrap());
        prop_assert_eq!(stats.offered.packets, arrivals.len() as u64);
        prop_assert_eq!(stats.drops[DropReason::Overlimit as usize], replayed.drops.len() as u64);
        prop_assert_eq!(record.sent.bytes.0, arrivals.iter().map(|(_, size)| size.0).sum::<u64>());
        prop_assert_eq!((record.delivered, simulation.on_their_way()), (stats.sent, 0));
        prop_assert_eq!(replay.discipline().backlog().packets, 0);
    }

    /// At any time, each packet sent has arrived, was dropped, or is in flight.
    #[test]
    fn no_packet_is_lost_or_invented(
        ends in prop::collection::vec(1..40_000_000u64, 1..6), rates in prop::collection::vec(1..60u64, 1..5), most in 1..30u64
    ) {
        let hosts = rates.iter().map(|_| wire(100_000_000, 100_000, Limit::Packets(20)));
        let dumbbell = Dumbbell::new(&wire(20_000_000, 1_000_000, Limit::Packets(most)), None, hosts);
        let links = dumbbell.topology.clone();
        let mut simulation = Simulation::new(dumbbell.topology, 0, Nanos::ZERO).unwrap();
        for (n, megabits) in rates.iter().enumerate() {
            let gap = 1_500 * 8 * 1_000 / megabits;
            let datagrams = (0..).map(move |k| (Nanos(k * gap), ByteCount(1_500)).into());
            simulation.add_datagrams(DatagramParams::new(dumbbell.left[n], dumbbell.right[n]), datagrams).unwrap();
        }
        let mut ends = ends;
        ends.sort_unstable();
        for end in ends {
            simulation.run_until(Nanos(end), &mut ());
            let sent: u64 = simulation.datagrams().map(|record| record.sent.packets).sum();
            let delivered: u64 = simulation.datagrams().map(|record| record.delivered.packets).sum();
            let all = || (0..2 + 4 * rates.len() as u32).map(LinkId);
            let dropped: u64 = all().map(|link| simulation.link(link).drops.iter().sum::<u64>()).sum();
            prop_assert_eq!(sent, delivered + dropped + simulation.on_their_way() as u64);
            for link in all() {
                let stats = simulation.link(link);
                let waiting = simulation.backlog(link).packets;
                prop_assert_eq!(stats.offered.packets, stats.sent.packets + waiting + stats.drops.iter().sum::<u64>());
                let able = links.link(link).rate.mean().bytes_in(Nanos(end)).0 + 1_500;
                prop_assert!(stats.sent.bytes.0 <= able, "{} sends {} of {able}", links.link(link).name, stats.sent.bytes.0);
            }
        }
    }
}

/// A discipline that polls when empty is polled once more after the last packet was sent, unless another came before that.
#[test]
fn a_queue_that_wants_to_be_asked_is_asked_at_the_end_of_a_transmission() {
    // Transmissions of 1 ms each: the third comes while the second is sent, and the fourth as the third ends.
    let times = [0, 1_500_000, 2_400_000, 3_500_000, 10_000_000];
    for (flavour, became_active) in [(CodelFlavour::Rfc, 1), (CodelFlavour::Ns3, 3)] {
        let params = FqCodelParams { flavour, ..FqCodelParams::default() };
        let mut topology = Topology::default();
        let nodes = ["a", "b"].map(|name| topology.add_node(name));
        let link = Wire { discipline: DisciplineParams::FqCodel(params).into(), ..wire(8_000_000, 0, Limit::None) };
        let (link, _) = add_both(&mut topology, ("", ""), (nodes[0], nodes[1]), &link, true);
        let mut simulation = Simulation::new(topology, 0, Nanos::ZERO).unwrap();
        let datagrams = times.map(|at| Datagram::from((Nanos(at), ByteCount(1_000))));
        simulation.add_datagrams(DatagramParams::new(nodes[0], nodes[1]), datagrams.into_iter()).unwrap();
        simulation.run_until(Nanos(20_000_000), &mut ());
        assert_eq!(simulation.link(link).sent.packets, 5);
        assert!(simulation.discipline(link).1.contains(&("new_flows", became_active)), "{flavour:?}");

        let outlet = Outlet { overhead: 0, rate: rate(8_000_000), queue: QueueId(0), seed: 0 };
        let mut replay = Replay::new(FqCodel::new(params, outlet), &outlet);
        let mut log = Log::default();
        for (id, at) in (0..).zip(times) {
            let size = ByteCount(1_000);
            let packet = Packet { id: PacketId(id), flow: FlowId(0), size, class: Class(0), ecn: Ecn::NotEct };
            replay.arrive(packet, Nanos(at), &mut log);
        }
        replay.finish(&mut log);
        assert_eq!((log.departures.len(), replay.discipline().stats().new_flows), (5, became_active), "{flavour:?}");
    }
}

/// Two links in a row: a packet arrives after both delays and both transmission times.
#[test]
fn delays_add_up() {
    let mut topology = Topology::default();
    let nodes = ["a", "b", "c"].map(|name| topology.add_node(name));
    let first = wire(8_000_000, 3_000_000, Limit::None);
    add_both(&mut topology, ("ab", "ba"), (nodes[0], nodes[1]), &first, true);
    let (second, _) =
        add_both(&mut topology, ("bc", "cb"), (nodes[1], nodes[2]), &wire(4_000_000, 5_000_000, Limit::None), true);
    let mut simulation = Simulation::new(topology, 0, Nanos::ZERO).unwrap();
    let datagrams = [(Nanos(1_000), ByteCount(1_000)), (Nanos(1_000), ByteCount(500))];
    simulation
        .add_datagrams(DatagramParams::new(nodes[0], nodes[2]), datagrams.into_iter().map(Datagram::from))
        .unwrap();
    let mut log = Log { link: second.0, ..Log::default() };
    simulation.run_until(Nanos(1_000 + 3_000_000 + 1_000_000 + 5_000_000 + 2_000_000 - 1), &mut log);
    assert_eq!(simulation.datagrams().next().unwrap().delivered.packets, 0);
    simulation.run_until(Nanos(simulation.now().0 + 1), &mut log);
    assert_eq!(simulation.datagrams().next().unwrap().delivered.packets, 1);
    // The second packet reaches the second link half a millisecond after the first, whose transmission takes two: it waits for the rest.
    assert_eq!(log.departures[1].1, Nanos(1_000 + 3_000_000 + 1_500_000));
    assert_eq!(log.departures[1].2, Nanos(1_000 + 3_000_000 + 1_000_000 + 2_000_000));
}

#[test]
fn the_shortest_way_is_taken_and_no_way_is_an_error() {
    let mut topology = Topology::default();
    let nodes = ["a", "b", "c", "d"].map(|name| topology.add_node(name));
    for (from, to, delay) in [(0, 2, 10), (0, 1, 4), (1, 2, 5)] {
        add_both(&mut topology, ("", ""), (nodes[from], nodes[to]), &wire(1_000_000, delay, Limit::None), false);
    }
    let routes = topology.routes_from(nodes[0]);
    assert_eq!((routes.to(nodes[2]), routes.to(nodes[3]), routes.to(nodes[0])), (Some(vec![2, 4]), None, Some(vec![])));
    let mut simulation = Simulation::new(topology, 0, Nanos::ZERO).unwrap();
    let no_way = BuildError::NoWay { from: "a".to_owned(), to: "d".to_owned() };
    assert_eq!(simulation.add_datagrams(DatagramParams::new(nodes[0], nodes[3]), [].into_iter()), Err(no_way));
}

/// Packets before the end of the warm-up do not count; packets in flight at that time count when they arrive.
#[test]
fn a_warm_up_does_not_count() {
    let (topology, [from, to], link) = one_link(&wire(8_000_000, 0, Limit::None));
    let mut simulation = Simulation::new(topology, 0, Nanos(10_500_000)).unwrap();
    let datagrams = (0..20).map(|n| (Nanos(n * 1_000_000), ByteCount(1_000)).into());
    simulation.add_datagrams(DatagramParams::new(from, to), datagrams).unwrap();
    simulation.run_until(Nanos(1_000_000_000), &mut ());
    let record = simulation.datagrams().next().unwrap();
    assert_eq!((record.sent.packets, record.delivered.packets), (9, 10));
    assert_eq!((simulation.link(link).offered.packets, simulation.link(link).sent.packets), (9, 9));
    assert_eq!(record.payload_delivered(), 10 * (1_000 - 28));
}

/// A packet's telemetry agrees with the events of its links.
#[test]
fn telemetry_follows_a_packet() {
    let dumbbell =
        Dumbbell::new(&wire(8_000_000, 1_000, Limit::Packets(2)), None, [wire(80_000_000, 500, Limit::None)]);
    let (from, to, bottleneck) = (dumbbell.left[0], dumbbell.right[0], dumbbell.bottleneck);
    let mut journeys = Vec::new();
    let check_journey = |journey: &Journey<'_>| {
        let hops: Vec<_> = journey.hops.iter().map(|hop| (hop.node, hop.ingress.0, hop.egress.0)).collect();
        journeys.push((journey.number, hops, journey.at.0, journey.dropped));
    };
    let mut telemetry = Telemetry::new(&dumbbell.topology, Log { link: bottleneck.0, ..Log::default() }, check_journey);
    let mut simulation = Simulation::new(dumbbell.topology, 0, Nanos::ZERO).unwrap();
    simulation
        .add_datagrams(DatagramParams::new(from, to), (0..5).map(|_| (Nanos(0), ByteCount(1_000)).into()))
        .unwrap();
    simulation.run_until(Nanos(1_000_000_000), &mut telemetry);
    let (left, right) = (NodeId(0), NodeId(1));
    // A packet takes 100 us to the bottleneck, 1 ms on it, and 100 us behind it.
    let first = vec![(from, 0, 0), (left, 100_500, 100_500), (right, 1_101_500, 1_101_500)];
    let overlimit = Some((bottleneck, DropReason::Overlimit));
    assert_eq!(telemetry.inner.departures.len(), 3);
    assert_eq!(journeys[0], (3, vec![(from, 0, 300_000)], 400_500, overlimit));
    assert_eq!(journeys[1], (4, vec![(from, 0, 400_000)], 500_500, overlimit));
    assert_eq!(journeys[2], (0, first, 1_202_000, None));
    assert_eq!(journeys[3].1[1], (left, 200_500, 1_100_500));
    assert_eq!(journeys.len(), 5);
}
