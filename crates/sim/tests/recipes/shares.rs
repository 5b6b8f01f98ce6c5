//! Shares of flows: outcast, incast, heavy hitters, the traffic matrix.

use crate::recipes::networks::{MS, incast, lasting_outcast, matrix, outcast};
use crate::recipes::watch::{Seen, host, seeds, watch};
use queuescope_sim::{DatagramRecord, LinkId, NodeId};
use std::collections::BTreeMap;

const ALWAYS: (u64, u64) = (0, u64::MAX);

/// Packets of each flow to a receiver up to a time, by source.
fn packets(seen: &Seen, receiver: NodeId, until: u64) -> BTreeMap<NodeId, u64> {
    let expression = format!("dst_ip == 10.0.0.{} and protocol == TCP and payload_length > 0B", receiver.0);
    let flows = seen.ask(&expression, (0, until), &["src_ip"], &["count"]);
    flows.into_iter().map(|(keys, values)| (host(keys[0]), values[0])).collect()
}

/// The ratio of the fewest packets of a flow to the most.
fn ratio(flows: &BTreeMap<NodeId, u64>) -> f64 {
    let (low, high) = (flows.values().min(), flows.values().max());
    *low.unwrap_or(&0) as f64 / *high.unwrap_or(&1) as f64
}

/// The flow from near the last switch falls silent while the others fill its port. In the end it has about a third of
/// the others' packets, and it has the shortest path among all flows with so few.
#[test]
fn an_outcast_is_detected_and_has_the_shortest_path() {
    for seed in seeds() {
        let network = outcast(seed, true);
        let (near, receiver) = network.hosts[0];
        let seen = watch(network);
        // Others may also time out, once.
        assert!(seen.names().contains(&&*format!("outcast_{}", near.0)), "seed {seed}: {:?}", seen.alerts);
        let flows = packets(&seen, receiver, u64::MAX);
        let mean = flows.values().sum::<u64>() as f64 / flows.len() as f64;
        let low: Vec<_> =
            flows.iter().filter(|(_, packets)| (**packets as f64) < 0.6 * mean).map(|(from, _)| *from).collect();
        let ways = seen.ask(&format!("dst_ip == 10.0.0.{}", receiver.0), ALWAYS, &["src_ip"], &["min(hops)"]);
        let ways = ways.iter().map(|(keys, values)| (values[0], host(keys[0])));
        let shortest = ways.filter(|(_, from)| low.contains(from)).min();
        assert_eq!(shortest, Some((1, near)), "seed {seed}: {flows:?}");
        assert!(ratio(&flows) < 0.5 && flows.len() == 15, "seed {seed}: {flows:?}");
        let clean = watch(outcast(seed, false));
        assert!(clean.alerts.is_empty() && clean.log.snapshot().len() > 100, "seed {seed}: {:?}", clean.alerts);
    }
}

/// Figure 10(a) of the Confluo paper: the ratio of the fewest to the most packets since the beginning settles
/// near 0.4 within a second.
#[test]
fn the_ratio_of_an_outcast_settles() {
    let (mut last, seeds) = (Vec::new(), seeds().take(4));
    for seed in seeds {
        let network = lasting_outcast(seed);
        let (near, receiver) = network.hosts[0];
        let seen = watch(network);
        assert!(seen.names().contains(&&*format!("outcast_{}", near.0)), "seed {seed}: {:?}", seen.alerts);
        let flows = packets(&seen, receiver, u64::MAX);
        assert_eq!(flows.iter().min_by_key(|(_, packets)| **packets).map(|(from, _)| *from), Some(near), "seed {seed}");
        let ratios: Vec<_> = (10..=20).map(|step| ratio(&packets(&seen, receiver, step * 100 * MS))).collect();
        println!("seed {seed}: {ratios:.2?}");
        let (low, high) = ratios.iter().fold((1.0f64, 0.0f64), |(low, high), of| (low.min(*of), high.max(*of)));
        assert!(low > 0.3 && high < 0.55 && high - low < 0.12, "seed {seed}: {ratios:.2?}");
        last.extend(ratios.last());
    }
    let mean = last.iter().sum::<f64>() / last.len() as f64;
    assert!((mean - 0.4).abs() < 0.06, "{last:.2?}");
}

#[test]
fn an_incast_is_detected_with_all_its_senders() {
    for seed in seeds() {
        let network = incast(seed, true);
        let (switch, hosts) = (network.switches[0], network.hosts.clone());
        let seen = watch(network);
        assert_eq!(seen.names(), ["incast_r"], "seed {seed}");
        let at = seen.alerts[0].1.0;
        // The sources of data to the receiver in the milliseconds before, and the location of the queue.
        let expression = format!("dst_ip == 10.0.0.{} and payload_length > 0B", hosts[0].1.0);
        let flows =
            seen.ask(&expression, (at - 2 * MS, at), &["src_ip", "hops", "switch_2"], &["count", "max(queue_2)"]);
        assert_eq!(flows.len(), hosts.len(), "seed {seed}: {flows:?}");
        assert!(
            flows.iter().all(|(keys, _)| (keys[1], keys[2]) == (2, u128::from(switch.0))),
            "seed {seed}: {flows:?}"
        );
        let clean = watch(incast(seed, false));
        assert!(clean.alerts.is_empty() && clean.log.snapshot().len() > 100, "seed {seed}: {:?}", clean.alerts);
    }
}

#[test]
fn a_heavy_source_is_detected_and_the_matrix_agrees_with_deliveries() {
    for seed in seeds() {
        let network = matrix(seed, true);
        let (from, to) = network.hosts[0];
        let seen = watch(network);
        let mut names = seen.names();
        names.sort_unstable();
        assert_eq!(names, [format!("full_{}_{}", from.0, to.0), format!("heavy_{}", from.0)], "seed {seed}");
        let cells = seen.ask("", ALWAYS, &["src_ip", "dst_ip"], &["sum(length)", "count"]);
        let heaviest = cells.iter().max_by_key(|(_, values)| values[0]).expect("there are some");
        assert_eq!((host(heaviest.0[0]), host(heaviest.0[1])), (from, to), "seed {seed}");
        is_the_matrix(&seen, &cells, seed);
        let clean = watch(matrix(seed, false));
        assert!(clean.alerts.is_empty() && clean.log.snapshot().len() > 100, "seed {seed}: {:?}", clean.alerts);
    }
}

/// Bytes by source and receiver agree with the deliveries; packets by link agree with the links' counters.
fn is_the_matrix(seen: &Seen, cells: &[(Vec<u128>, Vec<u64>)], seed: u64) {
    let mut expected: Vec<_> = seen
        .simulation
        .datagrams()
        .map(|DatagramRecord { hosts, delivered, .. }| (NodeId(hosts[0].0), NodeId(hosts[1].0), delivered.bytes.0))
        .collect();
    expected.sort_unstable();
    let found: Vec<_> = cells.iter().map(|(keys, values)| (host(keys[0]), host(keys[1]), values[0])).collect();
    assert_eq!(found, expected, "seed {seed}");
    // From switch to switch, at any hop of a path; the last link leads to the receiver.
    let mut links: BTreeMap<(NodeId, NodeId), u64> = BTreeMap::new();
    for hop in 1..=4 {
        let keys = [format!("switch_{hop}"), format!("switch_{}", hop + 1)];
        let between = seen.ask(&format!("hops > {hop}"), ALWAYS, &[&keys[0], &keys[1]], &["count"]);
        let last = seen.ask(&format!("hops == {hop}"), ALWAYS, &[&keys[0], "dst_ip"], &["count"]);
        let between = between.into_iter().map(|(keys, values)| (NodeId(keys[1] as u32), keys[0], values[0]));
        let last = last.into_iter().map(|(keys, values)| (host(keys[1]), keys[0], values[0]));
        for (to, from, count) in between.chain(last) {
            *links.entry((NodeId(from as u32), to)).or_default() += count;
        }
    }
    let topology = seen.simulation.topology();
    let sent = |link: LinkId| {
        let ends = topology.link(link);
        ((ends.from, ends.to), seen.simulation.link(link).sent.packets)
    };
    let from_switches = |link: &LinkId| topology.link(*link).from.0 < 4;
    let expected: BTreeMap<_, _> =
        topology.links().filter(from_switches).map(sent).filter(|(_, packets)| *packets > 0).collect();
    assert_eq!(links, expected, "seed {seed}");
}
