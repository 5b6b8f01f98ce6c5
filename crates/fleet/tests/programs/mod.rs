//! Control programs of `recipes/fleet` on simulated fleets: each finds its planted fault, and raises nothing on the same network without it.
//! `QUEUESCOPE_SEEDS` sets the number of seeds.

mod errors;
pub mod simulated;

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../../../sim/tests/recipes/networks.rs"]
mod networks;

use networks::{MS, Network, address, checks, incast, loss, losses, matrix, outcast, stray};
use queuescope_fleet::coordinator::ActionState;
use queuescope_log::packet;
use queuescope_sim::NodeId;
use queuescope_sim::workload::Random;
use queuescope_wire::{Ecn, FlowKey, Nanos};
use simulated::{Added, Arrivals, Ran, Runs, host, pair, play, run};
use std::collections::BTreeSet;

/// The number of seeds for each test: 2, or the value of the environment variable.
pub fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("QUEUESCOPE_SEEDS").ok().and_then(|count| count.parse().ok());
    0..count.unwrap_or(2)
}

/// Nothing happens on a clean network, on which there is traffic.
fn is_quiet(ran: &Ran, seed: u64) {
    assert!(ran.raised.is_empty() && ran.of_agents.is_empty() && ran.packets > 50, "seed {seed}: {ran:?}");
}

/// The values that name a flow: the number of its connection decides its port.
fn flow(name: &str, (from, to): (NodeId, NodeId), number: usize) -> Vec<(&'static str, String)> {
    vec![
        ("flow", name.to_owned()),
        ("src", address(from)),
        ("src_port", (1024 + number).to_string()),
        ("dst", address(to)),
        ("receiver", host(to)),
    ]
}

#[test]
fn strays_are_named_by_their_hosts() {
    let program = |network: &Network| {
        let values = vec![("switch", network.switches[0].0.to_string())];
        [Added { name: "path", recipe: "path-conformance", values }]
    };
    for seed in seeds() {
        let network = stray(seed, true, &checks(1));
        let (expected, programs) = (pair(network.hosts[0]), program(&network));
        let ran = run(network, &programs, Runs::ONCE);
        assert_eq!(ran.about("path.stray"), BTreeSet::from([&*expected]), "seed {seed}: {ran:?}");
        let clean = stray(seed, false, &checks(1));
        let programs = program(&clean);
        is_quiet(&run(clean, &programs, Runs::ONCE), seed);
    }
}

#[test]
fn competitors_at_a_lossy_port_are_named() {
    for seed in seeds() {
        let network = loss(seed, true);
        let (hosts, other) = (network.hosts.clone(), network.others[0]);
        let flows: Vec<_> = hosts.iter().chain([&other]).copied().collect();
        let names: Vec<_> = (0..flows.len()).map(|number| format!("flow_{number}")).collect();
        let programs = |network: &Network| -> Vec<_> {
            let values = |number: usize| {
                let mut values = flow(&names[number], flows[number], number);
                values.extend([("dst_port", "5001".to_owned()), ("queue", "5kB".to_owned())]);
                values.extend([("switch", network.switches[0].0.to_string()), ("during", "0s".to_owned())]);
                values
            };
            let added = |number: usize| Added { name: &names[number], recipe: "packet-loss", values: values(number) };
            (0..flows.len()).map(added).collect()
        };
        let added = programs(&network);
        let ran = run(network, &added, Runs::ONCE);
        let suffering: BTreeSet<_> = ran.of_agents.iter().map(|alert| alert.member.as_str()).collect();
        let receivers: BTreeSet<_> = hosts.iter().map(|(_, to)| host(*to)).collect();
        assert!(
            !suffering.is_empty() && suffering.iter().all(|name| receivers.contains(*name)),
            "seed {seed}: {ran:?}"
        );
        // All flows that share the port are competitors, and no others.
        let named: BTreeSet<_> = names.iter().flat_map(|name| ran.about(&format!("{name}.competitor"))).collect();
        let known: BTreeSet<_> = hosts.iter().map(|flow| format!("{}, dscp CS0", pair(*flow))).collect();
        assert!(!named.is_empty() && named.iter().all(|about| known.contains(*about)), "seed {seed}: {named:?}");
        assert!(ran.about(&format!("flow_{}.competitor", flows.len() - 1)).is_empty(), "seed {seed}: {ran:?}");
        let clean = loss(seed, false);
        let added = programs(&clean);
        is_quiet(&run(clean, &added, Runs::ONCE), seed);
    }
}

#[test]
fn competitors_at_two_switches_are_distinguished() {
    let programs = |network: &Network| {
        let values = |number: usize| {
            let mut values = flow(["f_first", "f_second"][number], network.hosts[0], 0);
            values.extend([("dst_port", "5001".to_owned()), ("queue", "5kB".to_owned())]);
            values.extend([("switch", network.switches[number].0.to_string()), ("during", "0s".to_owned())]);
            values
        };
        [0, 1].map(|number| Added { name: ["first", "second"][number], recipe: "packet-loss", values: values(number) })
    };
    // Time is simulated, so the test repeats the runs.
    let again = Runs::After { every: 25 * MS, during: 500 * MS };
    for seed in seeds() {
        let network = losses(seed, true);
        let (own, others) = (network.hosts[0], network.others.clone());
        let added = programs(&network);
        let ran = run(network, &added, again);
        for (name, rival) in [("first", others[0]), ("second", others[1])] {
            let about = ran.about(&format!("{name}.competitor"));
            assert!(about.iter().any(|about| about.starts_with(&pair(rival))), "seed {seed}: {ran:?}");
            let is_known = |about: &&str| [own, rival].iter().any(|flow| about.starts_with(&pair(*flow)));
            assert!(about.iter().all(is_known), "seed {seed}: {ran:?}");
        }
        let clean = losses(seed, false);
        let added = programs(&clean);
        is_quiet(&run(clean, &added, again), seed);
    }
}

#[test]
fn an_outcast_is_named() {
    let program = |network: &Network| {
        let mut values = flow("near", network.hosts[0], 0);
        values.push(("during", "0s".to_owned()));
        [Added { name: "near", recipe: "outcast", values }]
    };
    // Time is simulated, so the test repeats the runs.
    let again = Runs::After { every: 10 * MS, during: 500 * MS };
    for seed in seeds() {
        let network = outcast(seed, true);
        let added = program(&network);
        let ran = run(network, &added, again);
        assert!(ran.raised.iter().any(|alert| alert.trigger == "near.outcast"), "seed {seed}: {ran:?}");
        assert!(ran.raised.iter().all(|alert| alert.value < 0.5), "seed {seed}: {ran:?}");
        let clean = outcast(seed, false);
        let added = program(&clean);
        is_quiet(&run(clean, &added, again), seed);
    }
}

/// Segments of a flow, one each millisecond, some of which are lost and sent again 20 ms later: one in 100 ms, or as many at random times.
fn losing(seed: u64, is_regular: bool) -> Arrivals {
    let (from, to) = (NodeId(1), NodeId(2));
    let mut chance = Random::new(seed);
    let (_, key) = FlowKey::named("10.0.0.1:1024 > 10.0.0.2:5001 tcp").expect("it is a name");
    let phase = chance.below(100);
    let mut segments = Vec::new();
    for number in 0..2_000 {
        let is_lost = if is_regular { number % 100 == phase } else { chance.below(100) == 0 };
        let late = if is_lost { 20 * MS + chance.below(MS / 2) } else { 0 };
        segments.push((Nanos(number * MS + late), 1 + number as u32 * 1_000));
    }
    segments.sort_unstable();
    let record = |(at, seq): (Nanos, u32)| {
        let tcp = Some(packet::Segment { seq, payload: 1_000, words: 5, ..packet::Segment::default() });
        let mut record = [0; packet::SIZE];
        packet::fill_known(&mut record, &packet::Known { at, length: 1_040, key: &key, ecn: Ecn::NotEct, tcp });
        (at, to, record)
    };
    Arrivals { hosts: vec![from, to], records: segments.into_iter().map(record).collect(), end: Nanos(2_100 * MS) }
}

#[test]
fn regular_losses_are_distinguished_from_others() {
    let mut values = flow("a", (NodeId(1), NodeId(2)), 0);
    values.push(("dst_port", "5001".to_owned()));
    let program = [Added { name: "rhythm", recipe: "periodic-loss", values }];
    for seed in seeds() {
        let ran = play(&losing(seed, true), &program, Runs::ONCE);
        assert!(ran.raised.iter().any(|alert| alert.trigger == "rhythm.regular"), "seed {seed}: {ran:?}");
        let clean = play(&losing(seed, false), &program, Runs::ONCE);
        assert!(clean.of_agents.len() > 5 && clean.raised.is_empty(), "seed {seed}: {clean:?}");
    }
}

#[test]
fn packets_that_do_not_arrive_are_counted() {
    let (from, to) = (NodeId(1), NodeId(2));
    let values = [("sender", host(from)), ("src", address(from)), ("receiver", host(to)), ("dst", address(to))];
    let more = [("limit", "10".to_owned()), ("every", "100ms".to_owned())];
    let program = [Added { name: "way", recipe: "lost-between", values: values.into_iter().chain(more).collect() }];
    let (_, key) = FlowKey::named("10.0.0.1:1024 > 10.0.0.2:5001 udp").expect("it is a name");
    for seed in seeds() {
        for one_of in [5, u64::MAX] {
            let mut chance = Random::new(seed);
            let mut records = Vec::new();
            for at in (0..1_000).map(|number| Nanos(number * MS)) {
                let mut record = [0; packet::SIZE];
                packet::fill_known(
                    &mut record,
                    &packet::Known { at, length: 500, key: &key, ecn: Ecn::NotEct, tcp: None },
                );
                records.push((at, from, record));
                if chance.below(one_of) > 0 {
                    records.push((at, to, record));
                }
            }
            let arrivals = Arrivals { hosts: vec![from, to], records, end: Nanos(1_000 * MS) };
            let ran = play(&arrivals, &program, Runs::Every(100 * MS));
            assert_eq!(one_of == 5, ran.raised.iter().any(|alert| alert.trigger == "way.lost"), "seed {seed}: {ran:?}");
        }
    }
}

#[test]
fn an_incast_is_named_with_the_number_of_its_senders() {
    let program = |network: &Network| {
        let to = network.hosts[0].1;
        let values =
            [("name", "r".to_owned()), ("dst", address(to)), ("receiver", host(to)), ("queue", "40kB".to_owned())];
        [Added { name: "burst", recipe: "incast", values: values.to_vec() }]
    };
    for seed in seeds() {
        let network = incast(seed, true);
        let (senders, added) = (network.hosts.len(), program(&network));
        let ran = run(network, &added, Runs::ONCE);
        assert!(ran.raised.iter().any(|alert| alert.value == senders as f64), "seed {seed}, {senders}: {ran:?}");
        let clean = incast(seed, false);
        let added = program(&clean);
        is_quiet(&run(clean, &added, Runs::ONCE), seed);
    }
}

#[test]
fn an_incast_is_limited_at_its_senders() {
    let program = |network: &Network, dry: &str| {
        let to = network.hosts[0].1;
        let mut values = vec![("name", "r".to_owned()), ("dst", address(to)), ("receiver", host(to))];
        values.extend([("senders", "host-*".to_owned()), ("queue", "40kB".to_owned())]);
        // Longer than the test.
        values.push(("time", "240s".to_owned()));
        values.extend([("above", "10kB".to_owned()), ("dry", dry.to_owned()), ("last", "20ms".to_owned())]);
        [Added { name: "limit", recipe: "limit-incast", values }]
    };
    for (seed, dry) in seeds().flat_map(|seed| [(seed, "true"), (seed, "false")]) {
        let network = incast(seed, true);
        let senders: BTreeSet<_> = network.hosts.iter().map(|(from, _)| address(*from)).collect();
        let added = program(&network, dry);
        let ran = run(network, &added, Runs::ONCE);
        let taken: Vec<_> = ran.actions.iter().filter(|action| action.state.is_open()).collect();
        let state = if dry == "true" { ActionState::Dry } else { ActionState::Applied };
        assert!(!taken.is_empty() && taken.len() <= 32, "seed {seed}: {ran:?}");
        for action in &taken {
            let cause = action.cause.split_once("limit.heaviest: ");
            let about = action.flow.replace("protocol 6", "protocol TCP");
            assert_eq!(cause.map(|(_, about)| about), Some(&*about), "seed {seed}: {action:?}");
            assert!(action.state == state && action.action.starts_with("limit 10"), "seed {seed}: {action:?}");
        }
        // What hosts got is what was decided, and only flows of the incast.
        let orders: Vec<_> = ran.orders.values().flatten().collect();
        assert_eq!(orders.len(), taken.len(), "seed {seed}: {orders:?}");
        for order in orders {
            let from = order.flow.src.map(|from| from.to_string()).unwrap_or_default();
            assert!(senders.contains(&from) && order.dry == (dry == "true"), "seed {seed}: {order:?}");
        }
        // Alerts beyond the limits are refused, and say so.
        let refused = ran.actions.iter().filter(|action| !action.state.is_open());
        assert!(refused.into_iter().all(|action| action.reason.contains("which is `")), "seed {seed}: {ran:?}");
        let clean = incast(seed, false);
        let added = program(&clean, dry);
        let quiet = run(clean, &added, Runs::ONCE);
        is_quiet(&quiet, seed);
        assert!(quiet.actions.is_empty(), "seed {seed}: {quiet:?}");
    }
}

#[test]
fn a_heavy_source_and_a_full_cell_are_named_over_all_hosts() {
    let programs = || {
        let values = |limit: &str| vec![("limit", limit.to_owned()), ("every", "20ms".to_owned())];
        [
            Added { name: "heavy", recipe: "heavy-hitters", values: values("80kB") },
            Added { name: "matrix", recipe: "traffic-matrix", values: values("60kB") },
        ]
    };
    for seed in seeds() {
        let network = matrix(seed, true);
        let heavy = network.hosts[0];
        let ran = run(network, &programs(), Runs::Every(20 * MS));
        let source = format!("src_ip {}", address(heavy.0));
        assert_eq!(ran.about("heavy.heavy"), BTreeSet::from([&*source]), "seed {seed}: {ran:?}");
        assert_eq!(ran.about("matrix.full"), BTreeSet::from([&*pair(heavy)]), "seed {seed}: {ran:?}");
        is_quiet(&run(matrix(seed, false), &programs(), Runs::Every(20 * MS)), seed);
    }
}
