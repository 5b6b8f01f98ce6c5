//! The way of packets through the queues of a simulated network, each of which is recorded by a host of its own: the blamed hop and what left it meanwhile are those of
//! the simulation. `QUEUESCOPE_SEEDS` sets the number of seeds, and `QUEUESCOPE_PACKETS` the packets of each.

mod clocks;
mod culprits;
mod packets;
mod waits;

use crate::programs::seeds;
use crate::programs::simulated::{PATIENCE, attach, coordinator};
use queuescope_fleet::coordinator::Coordinator;
use queuescope_fleet::journey::{CulpritKind, Journey, JourneyError, JourneyRequest, journey};
use queuescope_log::{Schema, packet};
use queuescope_meter::{Departed, QueueLog};
use queuescope_queue::{DisciplineParams, Limit, TailDropParams};
use queuescope_recording::{KeepOptions, QueuedLog};
use queuescope_sim::shapes::{Wire, add_both};
use queuescope_sim::workload::{FlowStart, Random};
use queuescope_sim::{LinkRate, NodeId, Records, Simulation, Telemetry, Topology, Transport};
use queuescope_tcp::{Algorithm, Profile, TcpParams};
use queuescope_wire::{Backlog, ByteCount, Class, Departure, FlowId, Nanos, Packet, PacketId, QueueId, Rate};
use std::collections::{BTreeMap, BTreeSet};
use tokio::runtime::Builder;

const MS: u64 = 1_000_000;
/// The place of the time to live in headers.
const TTL: usize = 74;

/// A visit of a packet to a queue.
#[derive(Clone)]
struct Visit {
    /// The packet's number.
    packet: u64,
    headers: [u8; packet::SIZE],
    enqueued: Nanos,
    dequeued: Nanos,
    backlog: Backlog,
    /// The link behind the queue.
    link: u32,
}

/// What the queues of a network did, in the order of departures.
struct Chain {
    /// The queue of each router towards the next.
    onward: Vec<Vec<Visit>>,
    /// All queues of each router.
    routers: Vec<Vec<Visit>>,
}

/// A chain of routers with three to five queues, a flow along all of them and others at each.
fn chain(seed: u64) -> Chain {
    let mut chance = Random::new(seed);
    let queues = 3 + chance.below(3) as usize;
    let mut topology = Topology::default();
    let routers: Vec<_> = (0..=queues).map(|n| topology.add_node(format!("router-{n}"))).collect();
    let link = |topology: &mut Topology, from: NodeId, to: NodeId, mbps: u64| {
        let rate = LinkRate::Constant(Rate::from_bits_per_second(mbps * 1_000_000).expect("it is more than nothing"));
        let discipline = DisciplineParams::TailDrop(TailDropParams { limit: Limit::None });
        let wire = Wire { rate, delay: Nanos(50_000), overhead: 0, discipline: discipline.into() };
        let name = format!("{}-{}", from.0, to.0);
        add_both(topology, (&name, &format!("{name}-back")), (from, to), &wire, false);
    };
    for pair in routers.windows(2) {
        link(&mut topology, pair[0], pair[1], 20 + chance.below(20));
    }
    let host = |topology: &mut Topology, router: NodeId| {
        let host = topology.add_node(format!("host at {}", router.0));
        link(topology, host, router, 1_000);
        host
    };
    let mut flows = vec![(host(&mut topology, routers[0]), host(&mut topology, routers[queues]))];
    for n in 0..queues {
        for _ in 0..1 + chance.below(2) {
            flows.push((host(&mut topology, routers[n]), host(&mut topology, routers[n + 1])));
        }
    }
    let mut simulation = Simulation::new(topology, seed, Nanos::ZERO).unwrap_or_else(|error| panic!("{error}"));
    let tcp = TcpParams { receive_window: 64_000, ..TcpParams::linux() };
    let mut starts: Vec<_> = flows.iter().map(|ends| (chance.below(30 * MS), *ends)).collect();
    starts.sort_unstable();
    for (at, (from, to)) in starts {
        let algorithm = Algorithm::NewReno.params(Profile::Linux).into();
        let transport = Transport { tcp, algorithm, class: Class(0), l4s: false, activity: None };
        let start = FlowStart { at: Nanos(at), from: from.0 as usize, to: to.0 as usize, bytes: Some(300_000) };
        simulation.add_flows(0, transport, None, std::iter::once(start)).unwrap_or_else(|error| panic!("{error}"));
    }
    let topology = simulation.topology().clone();
    let mut onward = vec![Vec::new(); queues];
    let mut of_router = vec![Vec::new(); queues + 1];
    let mut records = Records::default();
    let ended = |journey: &queuescope_sim::Journey<'_>| {
        let mut headers = *records.fill(journey);
        for (place, hop) in journey.hops.iter().enumerate() {
            let link = topology.link(hop.link);
            let (enqueued, dequeued, backlog) = (hop.ingress, hop.egress, hop.backlog_in);
            let Some(router) = routers.iter().position(|router| *router == link.from) else { continue };
            // A router lowers the time to live of what it sends on.
            headers[TTL] = 64 - place as u8;
            let visit = Visit { packet: journey.number, headers, enqueued, dequeued, backlog, link: hop.link.0 };
            if routers.get(router + 1) == Some(&link.to) {
                onward[router].push(visit.clone());
            }
            of_router[router].push(visit);
        }
    };
    let mut telemetry = Telemetry::new(&topology, (), ended);
    simulation.run_until(Nanos(3_000 * MS), &mut telemetry);
    drop(telemetry);
    onward.iter_mut().chain(&mut of_router).for_each(|visits| visits.sort_by_key(|visit| visit.dequeued));
    Chain { onward, routers: of_router }
}

/// The value of an attribute of headers.
fn field(headers: &[u8; packet::SIZE], name: &str) -> u128 {
    let schema = Schema::packet();
    schema.key(schema.find(name).expect("packets have it"), headers)
}

/// What distinguishes a packet, as an expression.
fn expression(headers: &[u8; packet::SIZE]) -> String {
    let schema = Schema::packet();
    let names = ["src_ip", "dst_ip", "src_port", "dst_port", "tcp_seq", "tcp_ack", "payload_length"];
    let term = |name: &&str| {
        let id = schema.find(name).expect("packets have it");
        format!("{name} == {}", schema.attribute(id).text_of(schema.key(id, headers)))
    };
    names.iter().map(term).collect::<Vec<_>>().join(" and ")
}

/// Bytes of each flow, by its ports.
type Bytes = BTreeMap<(u128, u128), u64>;

/// Bytes that left while a packet waited, computed literally.
fn left_meanwhile(visits: &[Visit], own: &Visit) -> Bytes {
    let mut flows = Bytes::new();
    let place = visits.iter().position(|visit| visit.packet == own.packet).expect("it is one of them");
    for visit in visits[..place].iter().filter(|visit| own.enqueued <= visit.dequeued) {
        *flows.entry(ports(visit)).or_insert(0) += field(&visit.headers, "length") as u64;
    }
    flows
}

fn ports(visit: &Visit) -> (u128, u128) {
    (field(&visit.headers, "src_port"), field(&visit.headers, "dst_port"))
}

/// The direct, indirect and original culprits of a packet, from the whole history of a queue, as `queuescope why` has them.
fn whole_truth(visits: &[Visit], own: &Visit) -> [Bytes; 3] {
    let mut flows: Vec<(u128, u128)> = Vec::new();
    let mut log = QueueLog::new();
    for (place, visit) in visits.iter().enumerate() {
        let known = flows.iter().position(|flow| *flow == ports(visit));
        let flow = known.unwrap_or_else(|| {
            flows.push(ports(visit));
            flows.len() - 1
        });
        let departure = departure(place, visit);
        let packet = Packet { flow: FlowId(flow as u32), ..departure.packet };
        log.record(&Departed::from(&Departure { packet, ..departure })).expect("they are in order");
    }
    let place = visits.iter().position(|visit| visit.packet == own.packet).expect("it is one of them");
    let truth = log.of_packet(PacketId(place as u64)).expect("it left");
    [truth.direct, truth.indirect, truth.original]
        .map(|kind| kind.parts.iter().map(|(flow, amount)| (flows[flow.0 as usize], amount.bytes)).collect())
}

/// A visit as a queue reports it.
fn departure(place: usize, visit: &Visit) -> Departure {
    let Visit { enqueued, dequeued, backlog, .. } = *visit;
    let size = ByteCount(field(&visit.headers, "length") as u64);
    let packet = Packet { id: PacketId(place as u64), size, ..Packet::default() };
    Departure {
        packet,
        enqueued,
        dequeued,
        backlog_in: backlog,
        queue: QueueId(visit.link as u16),
        ..Departure::default()
    }
}

/// The culprits of a journey's hop.
fn found(kind: &CulpritKind) -> Bytes {
    let port = |end: &str| end.rsplit(':').next().and_then(|port| port.parse::<u128>().ok()).expect("it has a port");
    let culprit = |flow: &str| {
        let (from, to) = flow.split_once(" > ").expect("it has two ends");
        (port(from), port(to.split(' ').next().expect("it has an end")))
    };
    assert_eq!(kind.others, ByteCount(0), "all are named");
    kind.flows.iter().map(|known| (culprit(&known.flow), known.bytes.0)).collect()
}

/// Records what queues did as a host of the fleet.
fn record(path: &std::path::Path, visits: &[Visit]) -> QueuedLog {
    let mut keeping = KeepOptions::default();
    keeping.memory = ByteCount(200_000_000);
    let notes = Box::new(|note: &str| panic!("{note}"));
    let mut log = QueuedLog::open(path, &keeping, notes).unwrap_or_else(|error| panic!("{error}"));
    for (place, visit) in visits.iter().enumerate() {
        log.departed(&visit.headers, &departure(place, visit)).unwrap_or_else(|error| panic!("{error}"));
    }
    log.hand_over().unwrap_or_else(|error| panic!("{error}"));
    log
}

async fn way(coordinator: &Coordinator, expression: &str) -> Result<Journey, JourneyError<String>> {
    let request = JourneyRequest {
        expression: expression.to_owned(),
        flows: 100,
        within: Nanos(60_000 * MS),
        ..JourneyRequest::default()
    };
    let ask = async |request| coordinator.query(request).await.map_err(|error| error.to_string());
    journey(&request, &coordinator.members(), ask).await
}

#[test]
fn the_blamed_hop_and_its_culprits_are_those_of_the_simulation() {
    let packets = std::env::var("QUEUESCOPE_PACKETS").ok().and_then(|count| count.parse().ok()).unwrap_or(25);
    for seed in seeds() {
        let visits = chain(seed).onward;
        let folder = tempfile::tempdir().expect("there is room");
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("there are threads");
        let coordinator = coordinator(folder.path());
        let mut logs = Vec::new();
        for (n, visits) in visits.iter().enumerate() {
            let path = folder.path().join(format!("router-{n}"));
            let log = record(&path, visits);
            attach(&runtime, &coordinator, &format!("router-{n}"), log.recorder(), &path);
            logs.push(log);
        }
        let mut chance = Random::new(seed + 1_000);
        let long: Vec<_> = visits[0]
            .iter()
            .filter(|visit| visits[visits.len() - 1].iter().any(|last| last.packet == visit.packet))
            .collect();
        let mut texts = BTreeMap::new();
        visits[0].iter().for_each(|visit| *texts.entry(expression(&visit.headers)).or_insert(0) += 1);
        let (mut compared, mut blamed) = (0, BTreeSet::new());
        while compared < packets {
            let visit = long[chance.below(long.len() as u64) as usize];
            let text = expression(&visit.headers);
            // A segment that was sent again looks like the first.
            if texts[&text] > 1 {
                continue;
            }
            compared += 1;
            let journey = runtime.block_on(way(&coordinator, &text)).unwrap_or_else(|error| panic!("{error}"));
            let own: Vec<_> = visits
                .iter()
                .map(|visits| visits.iter().find(|other| other.packet == visit.packet).expect("it came through"))
                .collect();
            let times: Vec<_> = own.iter().map(|own| (own.enqueued, own.dequeued)).collect();
            let seen: Vec<_> = journey.hops.iter().map(|hop| (hop.enqueued, hop.dequeued)).collect();
            assert_eq!(seen, times, "seed {seed}: {journey:?}");
            assert!(journey.alike == 0 && journey.missing.is_empty(), "seed {seed}: {journey:?}");
            let longest = own.iter().map(|own| own.dequeued.0 - own.enqueued.0).max();
            assert_eq!(Some(journey.hops[journey.blamed].wait().0), longest, "seed {seed}: {journey:?}");
            for (at, own) in own.iter().enumerate() {
                let culprits = &journey.hops[at].culprits;
                let [direct, indirect, original] = whole_truth(&visits[at], own);
                assert_eq!(direct, left_meanwhile(&visits[at], own), "seed {seed}, hop {at}");
                assert_eq!(found(&culprits.direct), direct, "seed {seed}, hop {at}: {journey:?}");
                assert_eq!(found(&culprits.indirect), indirect, "seed {seed}, hop {at}: {journey:?}");
                assert_eq!(found(&culprits.original), original, "seed {seed}, hop {at}: {journey:?}");
                assert!(culprits.is_complete, "seed {seed}, hop {at}: {journey:?}");
                assert_eq!(journey.hops[at].backlog, own.backlog.bytes, "seed {seed}, hop {at}");
            }
            blamed.insert(journey.blamed);
        }
        println!("seed {seed}: {} queues, hops {blamed:?} were blamed", visits.len());
        let nothing = runtime.block_on(way(&coordinator, "tcp_seq == 4294967295 and udp"));
        assert!(matches!(nothing, Err(JourneyError::NotFound { .. })), "{nothing:?}");
        runtime.shutdown_timeout(PATIENCE);
        drop(coordinator);
        logs.into_iter().for_each(|log| drop(log.finish().unwrap_or_else(|error| panic!("{error}"))));
    }
}
