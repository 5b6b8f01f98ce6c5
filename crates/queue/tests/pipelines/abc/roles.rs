//! The roles of ABC nodes (edge, core, exit), and delay classes.

use super::{BOTTLENECK, Clients, abc, goodputs};
use crate::pipelines::driver::{Switch, headers, outlets, packet};
use proptest::prelude::*;
use queuescope_queue::{
    Abc, AbcParams, Activity, ActivityAqmParams, Aggregates, Contract, DelayClass, DropReason, Headers, Host, Limit,
    Missing, Others, Port, PortRole,
};
use queuescope_wire::{Class, FlowId, Nanos};
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;

fn node(params: AbcParams, rate: u64) -> Switch<Abc> {
    let ports = outlets(&[rate], 1);
    Switch::new(Abc::new(params, &ports).unwrap(), &ports, 1, Limit::Packets(24), Nanos(0))
}

fn role(role: PortRole) -> AbcParams {
    AbcParams { ports: vec![role], ..AbcParams::default() }
}

/// Packets that left one node arrive at the next about 5 ms later.
fn pass_on(from: &Switch<Abc>, to: &mut Switch<Abc>) {
    for sent in &from.log.sent {
        to.offer(sent.departure.dequeued + Nanos(5_120_000), 0, sent.departure.packet, sent.headers);
    }
}

/// Two edges, a core node with the bottleneck, a second core node and an exit. The shares are those of a single node,
/// although the core keeps no state about aggregates.
#[test]
fn activity_is_measured_at_the_edge_used_in_the_core_and_removed_at_the_exit() {
    let aqm = ActivityAqmParams::default();
    for rates in [[20.0, 40.0], [80.0, 40.0]] {
        let (mut single, until) = (abc(AbcParams::default()), Nanos(6 * SECOND));
        Clients::new(&rates, 3).send(&mut single, until);
        single.run_out();

        let mut core = node(role(PortRole::core(aqm)), BOTTLENECK);
        let mut activities = BTreeMap::<u32, Activity>::new();
        for client in 0..2 {
            let mut edge = node(role(PortRole::edge(aqm)), 100_000_000);
            let own = [0, 1].map(|n| if n == client { rates[n] } else { 0.0 });
            Clients::new(&own, 3 + client as u64).send(&mut edge, until);
            edge.run_out();
            assert_eq!(edge.program.stats().stripped, 0);
            // Keep the packet ids of the two edges distinct.
            for sent in &mut edge.log.sent {
                sent.departure.packet.id.0 = sent.departure.packet.id.0 * 2 + client as u64;
                activities.insert(client as u32, sent.headers.activity.expect("an edge writes it"));
            }
            pass_on(&edge, &mut core);
        }
        core.run_out();
        let stats = *core.program.stats();
        assert_eq!((stats.metered, stats.missing, stats.stripped), (0, 0, 0));
        // 2000, 4000 or 8000 times the reference rate, times the ratio of frame to payload.
        for (client, activity) in activities {
            let expected = (rates[client as usize] * 100.0 * 1500.0 / 1448.0).log2();
            assert!((activity.value() - expected).abs() < 0.05, "{activity:?}, not {expected}");
        }

        let mut second = node(role(PortRole::core(aqm)), BOTTLENECK + 1_000_000);
        pass_on(&core, &mut second);
        second.run_out();
        assert_eq!(second.log.dropped.len(), 0);
        let mut exit = node(role(PortRole::exit()), 100_000_000);
        pass_on(&second, &mut exit);
        exit.run_out();
        assert!(exit.log.sent.iter().all(|sent| sent.headers.activity.is_none()));
        assert_eq!(exit.program.stats().stripped, exit.log.sent.len() as u64);

        let shares = [&single, &exit].map(|node| goodputs(node, 2, Nanos(SECOND), until));
        assert!(shares[0].iter().zip(&shares[1]).all(|(one, other)| (one - other).abs() < 1.5), "{shares:?}");
    }
}

#[test]
fn activity_from_outside_is_overwritten() {
    let mut edge = node(role(PortRole::edge(ActivityAqmParams::default())), BOTTLENECK);
    let forged = Headers { activity: Some(Activity(i16::MIN)), ..headers(1, 0) };
    edge.offer(Nanos(10), 0, packet(0, 1, 1500), forged);
    edge.offer(Nanos(20), 0, packet(1, 2, 1500), headers(2, 0));
    edge.run_out();
    let activities = edge.log.sent.iter().map(|sent| sent.headers.activity).collect::<Vec<_>>();
    assert_eq!(activities, [Some(Activity(1362)); 2]);
    assert_eq!((edge.program.stats().metered, edge.program.stats().overwritten), (2, 1));
}

/// A node that is an edge for some hosts, and forwards packets of other hosts that another edge has metered.
#[test]
fn packets_from_inside_keep_their_activity() {
    let aggregates =
        Aggregates { contracts: vec![Contract::default()], hosts: vec![(Host(1), 0)], others: Others::Inside };
    let params = AbcParams { aggregates, ..role(PortRole::edge(ActivityAqmParams::default())) };
    let mut edge = node(params, BOTTLENECK);
    let known = Headers { activity: Some(Activity(77)), ..headers(2, 0) };
    edge.offer(Nanos(10), 0, packet(0, 2, 1500), known);
    edge.offer(Nanos(20), 0, packet(1, 1, 1500), Headers { source: Host(1), ..known });
    edge.offer(Nanos(30), 0, packet(2, 3, 1500), headers(3, 0));
    edge.run_out();
    let activities = edge.log.sent.iter().map(|sent| sent.headers.activity).collect::<Vec<_>>();
    assert_eq!(activities, [Some(Activity(77)), Some(Activity(1362)), None]);
    assert_eq!((edge.program.stats().metered, edge.program.stats().missing), (1, 1));
}

/// Sends 40 packets at once to a core node; every second one has an activity of 5. Returns the ids of the dropped
/// packets and the average activity.
fn burst(missing: Missing) -> (Vec<u64>, Option<f64>) {
    let mut core = node(AbcParams { missing, ..role(PortRole::core(ActivityAqmParams::default())) }, BOTTLENECK);
    for id in 0..40 {
        let activity = (id % 2 == 0).then_some(Activity(5 * 256));
        core.offer(Nanos(id), 0, packet(id, 0, 1500), Headers { activity, ..headers(0, 0) });
    }
    core.run_until(Nanos(40));
    assert_eq!(core.program.stats().missing, 20);
    let dropped = core.log.dropped.iter();
    let dropped = dropped.filter(|dropped| dropped.reason == DropReason::Activity).map(|dropped| dropped.packet.id.0);
    (dropped.collect(), core.program.average_activity(Port(0)))
}

#[test]
fn a_packet_without_activity_counts_as_average_or_as_configured() {
    // All packets are average. They are dropped once 21 packets are in the queue; the first is on the link.
    assert_eq!(burst(Missing::Average), ((22..40).collect(), Some(5.0)));
    // Packets without activity count as far more active, so their threshold is Q_min = 6. Packets 1, 3, 5 and 7 are
    // accepted; 7 finds 6 packets.
    let (dropped, average) = burst(Missing::Assumed(100.0));
    assert_eq!(dropped[..4], [9, 11, 13, 15]);
    assert!((average.unwrap() - (20.0 * 5.0 + 4.0 * 100.0) / 24.0).abs() < 1e-4, "{average:?}");
}

/// Runs clients at these rates in two delay classes, served by priority. The clients in `high` are in the high class,
/// which has the surcharge. Returns the goodput of each client in Mb/s and its mean sojourn time in ms.
fn classes(surcharge: f64, rates: &[f64], high: &[u32]) -> (Vec<f64>, Vec<f64>) {
    let contract = |class| Contract { class: Class(class), ..Contract::default() };
    let aggregates = Aggregates {
        contracts: vec![contract(0), contract(1)],
        hosts: high.iter().map(|host| (Host(*host), 0)).collect(),
        others: Others::EachHost { contract: contract(1), most: 10 },
    };
    let classes = vec![DelayClass { queue: 0, surcharge }, DelayClass { queue: 1, surcharge: 0.0 }];
    let params = AbcParams { aggregates, classes, ..AbcParams::default() };
    let ports = outlets(&[BOTTLENECK], 2);
    let mut node = Switch::new(Abc::new(params, &ports).unwrap(), &ports, 2, Limit::Packets(24), Nanos(0));
    node.by_priority = true;
    let (from, to) = (Nanos(SECOND), Nanos(6 * SECOND));
    Clients::new(rates, 11).send(&mut node, to);
    node.run_until(to);
    node.check();
    assert_eq!(node.program.queue_length(Port(0)), node.backlog(0).packets);
    let delay = |flow| {
        let sent = node.log.sent_between(flow, from, to).map(|left| left.sojourn().0 as f64 / 1e6);
        let (sum, count) = sent.fold((0.0, 0), |(sum, count), delay| (sum + delay, count + 1));
        sum / f64::from(count)
    };
    let flows = rates.len() as u32;
    (goodputs(&node, flows, from, to), (0..flows).map(delay).collect())
}

#[test]
fn a_class_changes_the_delay_and_not_the_share() {
    let (goodput, delay) = classes(0.0, &[40.0, 40.0], &[0]);
    assert!((goodput[0] - goodput[1]).abs() < 4.0, "{goodput:?}");
    assert!(delay[0] < 1.0 && delay[1] > 4.0, "{delay:?}");
}

#[test]
fn a_heavy_client_in_the_high_class_starves_nobody() {
    let (goodput, _) = classes(0.0, &[100.0, 5.0, 20.0], &[0]);
    assert!(goodput[1] > 4.95 && goodput[2] > 19.0, "{goodput:?}");
    assert!(goodput[0] > 22.0, "{goodput:?}");
}

#[test]
fn a_surcharge_makes_the_high_class_count_as_more_active() {
    let (goodput, delay) = classes(1.0, &[30.0, 40.0], &[0]);
    // With a surcharge of 1, 30 Mb/s in the high class count as 60.
    assert!(goodput[1] > 39.0 && goodput[0] < 10.0 && delay[0] < 1.0, "{goodput:?} {delay:?}");
}

proptest! {
    /// For any arrivals, the packets of a host keep their order, and each is sent or dropped once.
    #[test]
    fn packets_of_a_host_keep_their_order(
        arrivals in prop::collection::vec((0..300_000u64, 0..5u32, 40..1500u64, 0..4u8, prop::option::of(any::<i16>())), 0..200),
        high in prop::collection::btree_set(0..5u32, 0..5), inside in any::<bool>()
    ) {
        let contract = Contract { class: Class(1), ..Contract::default() };
        let aggregates = Aggregates {
            contracts: vec![Contract::default()],
            hosts: high.iter().map(|host| (Host(*host), 0)).collect(),
            others: if inside { Others::Inside } else { Others::EachHost { contract, most: 2 } },
        };
        let classes = vec![DelayClass { queue: 0, surcharge: 0.5 }, DelayClass { queue: 1, surcharge: 0.0 }];
        let params = AbcParams { aggregates, classes, ..AbcParams::default() };
        let ports = outlets(&[BOTTLENECK], 2);
        let mut node = Switch::new(Abc::new(params, &ports).unwrap(), &ports, 2, Limit::Packets(24), Nanos(0));
        let mut time = 0;
        for (id, (gap, host, size, class, activity)) in arrivals.into_iter().enumerate() {
            time += gap;
            // An edge inside the domain wrote the class of these packets: one class for each host.
            let class = if inside { Class((host % 3) as u8) } else { Class(class) };
            let mut packet = packet(id as u64, host, size);
            packet.class = class;
            let headers = Headers { activity: activity.map(Activity), ..Headers::plain(Host(host), Host(9), FlowId(0)) };
            node.offer(Nanos(time), 0, packet, headers);
        }
        node.run_out();
        let mut last = BTreeMap::new();
        for sent in &node.log.sent {
            let before = last.insert(sent.headers.source, sent.departure.packet.id);
            prop_assert!(before.is_none_or(|before| before < sent.departure.packet.id));
            prop_assert!(sent.headers.activity.is_none());
        }
        prop_assert!(node.log.dropped.iter().all(|dropped| dropped.enqueued.is_none()));
    }
}
