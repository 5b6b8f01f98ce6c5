//! Packet loss: detected by retransmissions, and explained by the flows that found long queues.

use crate::recipes::networks::{MS, Network, loss, losses};
use crate::recipes::watch::{Seen, host, seeds, watch};
use queuescope_log::{Number, Schema};
use queuescope_sim::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// The longest time before an alert that matters.
const BEFORE: u64 = 250 * MS;

/// The flows with a retransmission alert.
fn retransmitting(seen: &Seen) -> BTreeSet<(NodeId, NodeId)> {
    let ends = |name: &str| {
        let (from, to) = name.strip_prefix("loss_")?.split_once('_')?;
        Some((NodeId(from.parse().ok()?), NodeId(to.parse().ok()?)))
    };
    seen.names().into_iter().map(|name| ends(name).unwrap_or_else(|| panic!("{name} is another's"))).collect()
}

/// The switches on a flow's path.
fn path(seen: &Seen, (from, to): (NodeId, NodeId)) -> BTreeSet<NodeId> {
    let expression = format!("src_ip == 10.0.0.{} and dst_ip == 10.0.0.{}", from.0, to.0);
    let keys = ["hops", "switch_1", "switch_2", "switch_3", "switch_4", "switch_5"];
    let paths = seen.ask(&expression, (0, u64::MAX), &keys, &["count"]);
    let switches = |(keys, _): &(Vec<u128>, Vec<u64>)| {
        keys[1..].iter().take(keys[0] as usize).map(|switch| NodeId(*switch as u32)).collect::<Vec<_>>()
    };
    paths.iter().flat_map(switches).collect()
}

/// The flows that found a long queue at a switch: packets, bytes and class by source and receiver.
fn crowd(seen: &Seen, switch: NodeId, span: (u64, u64)) -> BTreeMap<(NodeId, NodeId), (u64, u64, u64)> {
    let mut all = BTreeMap::new();
    for hop in 1..=5 {
        let expression = format!("hops >= {hop} and switch_{hop} == {} and queue_{hop} >= 5kB", switch.0);
        for (keys, values) in seen.ask(&expression, span, &["src_ip", "dst_ip", "dscp"], &["count", "sum(length)"]) {
            let known = all.entry((host(keys[0]), host(keys[1]))).or_insert((0, 0, keys[2] as u64));
            *known = (known.0 + values[0], known.1 + values[1], known.2);
        }
    }
    all
}

#[test]
fn the_competing_flows_at_a_lossy_port_are_found() {
    for seed in seeds() {
        let network = loss(seed, true);
        let Network { switches, hosts, others, .. } = &network;
        let (switch, hosts, other) = (switches[0], hosts.clone(), others[0]);
        let seen = watch(network);
        are_counted_as_they_arrive(&seen, &hosts, seed);
        let suffering = retransmitting(&seen);
        assert!(!suffering.is_empty() && !suffering.contains(&other), "seed {seed}: {:?}", seen.alerts);
        let at = seen.alerts[0].1.0;
        // Among the switches on the paths of the flows with losses, one is crowded; all flows there share its slow port.
        let named: Vec<_> = suffering
            .iter()
            .flat_map(|flow| path(&seen, *flow))
            .filter(|switch| !crowd(&seen, *switch, (at.saturating_sub(BEFORE), at + MS)).is_empty())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        assert_eq!(named, [switch], "seed {seed}");
        let crowd = crowd(&seen, switch, (0, u64::MAX));
        assert!(crowd.keys().all(|flow| hosts.contains(flow)), "seed {seed}: {crowd:?}");
        assert!(suffering.iter().all(|flow| crowd.contains_key(flow)), "seed {seed}: {crowd:?} {suffering:?}");
        let clean = watch(loss(seed, false));
        assert!(clean.alerts.is_empty() && clean.log.snapshot().len() > 100, "seed {seed}: {:?}", clean.alerts);
    }
}

#[test]
fn losses_at_two_switches_are_distinguished() {
    for seed in seeds() {
        let network = losses(seed, true);
        let Network { switches, hosts, others, .. } = &network;
        let (switches, hosts, others) = (switches.clone(), hosts.clone(), others.clone());
        let seen = watch(network);
        assert_eq!(retransmitting(&seen), BTreeSet::from([hosts[0]]), "seed {seed}");
        let crowds: Vec<_> = path(&seen, hosts[0])
            .into_iter()
            .map(|switch| (switch, crowd(&seen, switch, (0, u64::MAX))))
            .filter(|(_, crowd)| !crowd.is_empty())
            .collect();
        assert_eq!(crowds.iter().map(|(switch, _)| *switch).collect::<Vec<_>>(), switches, "seed {seed}");
        for ((switch, all), crossing) in crowds.iter().zip(&others) {
            // Besides the flow itself there is one other, which has a higher class and sends more during that time.
            let rivals: Vec<_> = all.iter().filter(|(flow, _)| **flow != hosts[0]).collect();
            let [(rival, (packets, _, class))] = rivals.as_slice() else { panic!("seed {seed}: {all:?}") };
            let expression = format!("src_ip == 10.0.0.{}", rival.0.0);
            let times = seen.ask(&expression, (0, u64::MAX), &[], &["min(ts)", "max(ts)"]);
            let meanwhile = crowd(&seen, *switch, (times[0].1[0], times[0].1[1]));
            let own = meanwhile.get(&hosts[0]).map_or(0, |(packets, ..)| *packets);
            assert!(*rival == crossing && *class > 0 && *packets > own, "seed {seed}: {all:?}, {own} meanwhile");
        }
        let clean = watch(losses(seed, false));
        assert!(clean.alerts.is_empty() && clean.log.snapshot().len() > 100, "seed {seed}: {:?}", clean.alerts);
    }
}

/// Retransmissions agree with a direct look at all data in order.
fn are_counted_as_they_arrive(seen: &Seen, hosts: &[(NodeId, NodeId)], seed: u64) {
    let schema = Schema::packet();
    let id = |name| schema.find(name).unwrap_or_else(|| panic!("no {name}"));
    let ids = ["src_ip", "dst_ip", "tcp_seq", "payload_length"].map(id);
    let snapshot = seen.log.snapshot();
    let (mut highest, mut again) = (BTreeMap::new(), BTreeMap::new());
    for position in 0..snapshot.len() {
        let [from, to, seq, payload] = ids.map(|id| schema.key(id, snapshot.record(position)));
        if payload > 0 {
            let flow = (host(from), host(to));
            let highest = highest.entry(flow).or_insert(0);
            *again.entry(flow).or_insert(0) += u64::from(seq <= *highest);
            *highest = seq.max(*highest);
        }
    }
    let scope = seen.log.scope();
    let mut sum = 0;
    for (from, to) in hosts {
        let name = format!("retransmissions_{}_{}", from.0, to.0);
        let aggregate = scope.aggregate(&name).expect("it is defined");
        let expected = again.get(&(*from, *to)).copied().unwrap_or(0);
        assert_eq!(snapshot.value(aggregate), Some(Number::Unsigned(expected.into())), "seed {seed}: {name}");
        sum += expected;
    }
    let sent: u64 = seen.simulation.flows().iter().map(|flow| flow.retransmissions).sum();
    assert!(0 < sum && sum <= sent, "seed {seed}: {sum} arrived again, and {sent} were sent");
}
