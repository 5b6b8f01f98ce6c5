//! TCP over a bottleneck: properties that hold for every discipline and congestion control.

use crate::common::{Setting, run};
use queuescope_queue::{DisciplineParams, Limit, TailDropParams};
use queuescope_sim::workload::FlowStart;
use queuescope_sim::{FlowRecord, GroupStats, NodeId, Simulation};
use queuescope_tcp::Algorithm;
use queuescope_wire::{ByteCount, Nanos};

fn buffer(bytes: u64) -> DisciplineParams {
    DisciplineParams::TailDrop(TailDropParams { limit: Limit::Bytes(ByteCount(bytes)) })
}

/// Payload as a share of packets on the link: 1448 of 1500 bytes.
const PAYLOAD: f64 = 1448.0 / 1500.0;

#[test]
fn one_flow_of_any_congestion_control_fills_the_link() {
    for algorithm in Algorithm::ALL {
        // 20 Mb/s and 20 ms: 50 kB in flight, and a buffer of twice that.
        let simulation = run(&Setting { algorithm: *algorithm, discipline: buffer(100_000), ..Setting::default() });
        let flow = &simulation.flows()[0];
        let seconds = (simulation.now() - simulation.warmup()).as_secs_f64();
        let share = delivered(flow) as f64 * 8.0 / (seconds * Setting::default().rate as f64 * PAYLOAD);
        assert!((0.9..=1.0).contains(&share), "{algorithm} gets {share}");
    }
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    let outcome = |seed| {
        let discipline = DisciplineParams::defaults().into_iter().find(|params| params.name() == "red").unwrap();
        let simulation = run(&Setting { flows: 5, seed, discipline, ..Setting::default() });
        (simulation.flows(), simulation.hops())
    };
    assert_eq!(outcome(1), outcome(1));
    assert_ne!(outcome(1), outcome(2));
}

/// A thousand flows one after another: each is delivered completely, and their slots are reused.
#[test]
fn flows_with_an_end_finish_and_make_room() {
    let setting = Setting { flows: 1, discipline: buffer(20_000), ..Setting::default() };
    let (mut simulation, from, to) = setting.network();
    let starts = (0..1_000u64).map(move |n| FlowStart {
        at: Nanos(n * 20_000_000),
        from: from[0].0 as usize,
        to: to[0].0 as usize,
        bytes: Some(1 + n * 97 % 40_000),
    });
    simulation.add_flows(0, setting.transport(), None, starts).unwrap();
    simulation.run_until(Nanos(40_000_000_000), &mut ());
    let flows = simulation.flows();
    assert_eq!(flows.len(), 1_000);
    for (number, flow) in (0..).zip(&flows) {
        assert_eq!((flow.number, Some(flow.delivered)), (number, flow.bytes));
        assert!(flow.finished.is_some_and(|at| at > flow.started), "{flow:?}");
    }
    assert_eq!(simulation.on_their_way(), 0);
    assert!(simulation.places() < 60, "{} places for flows that overlap little", simulation.places());
}

/// Two equal flows get equal shares, and together no more than the capacity.
#[test]
fn flows_share() {
    let discipline = DisciplineParams::defaults().into_iter().find(|params| params.name() == "fq-codel").unwrap();
    let simulation = run(&Setting { flows: 4, discipline, ..Setting::default() });
    let got: Vec<_> = simulation.flows().iter().map(delivered).collect();
    let total: u64 = got.iter().sum();
    let able = (simulation.now() - simulation.warmup()).as_secs_f64() * Setting::default().rate as f64 / 8.0;
    assert!(total as f64 <= able * PAYLOAD, "{total} of {able}");
    for bytes in got {
        assert!((0.23..0.27).contains(&(bytes as f64 / total as f64)), "{bytes} of {total}");
    }
}

/// A link's counters of groups add up to its total; and the group with a queue of its own waits less.
#[test]
fn a_link_counts_each_group() {
    let discipline = DisciplineParams::defaults().into_iter().find(|params| params.name() == "fq-codel").unwrap();
    let setting = Setting { flows: 4, discipline, ..Setting::default() };
    let (mut simulation, from, to) = setting.network();
    for group in 0..4 {
        let (from, to) = (from[group].0 as usize, to[group].0 as usize);
        let starts: Vec<_> = match group {
            // The third group has no flows.
            2 => Vec::new(),
            // Small transfers: never more than one packet in the queue.
            3 => (1..100).map(|n| FlowStart { at: Nanos(n * 150_000_000), from, to, bytes: Some(1_000) }).collect(),
            _ => vec![FlowStart { at: Nanos::ZERO, from, to, bytes: None }],
        };
        simulation.add_flows(group as u32, setting.transport(), None, starts.into_iter()).unwrap();
    }
    simulation.run_until(Nanos(15_000_000_000), &mut ());
    let bottleneck = simulation.measured().next().unwrap();
    let stats = simulation.link(bottleneck);
    let groups = stats.groups();
    let sum = |of: fn(&GroupStats) -> u64| groups.iter().map(of).sum::<u64>();
    assert_eq!(sum(|group| group.sojourn.count()), stats.sent.packets);
    assert_eq!(sum(|group| group.dropped), stats.drops.iter().sum::<u64>());
    assert_eq!(sum(|group| group.marked), stats.marks.iter().sum::<u64>());
    assert!(sum(|group| group.dropped) > 0);
    assert_eq!(stats.sojourn().unwrap().count(), stats.sent.packets);
    assert_eq!((groups.len(), groups[2].sojourn.count()), (4, 0));
    let mean = |group: usize| groups[group].sojourn.mean().unwrap();
    assert!(mean(3) * 5.0 < mean(0) && mean(3) * 5.0 < mean(1), "{} {} {}", mean(0), mean(1), mean(3));
}

/// Prague's data is ECT(1), so DualPI2 puts it into its L queue, where it waits for about a millisecond. CUBIC's waits
/// for the 15 ms of the C queue. Both get about the same rate, as RFC 9332 intends.
#[test]
fn prague_waits_little_beside_cubic_in_dual_pi2() {
    let discipline = DisciplineParams::defaults().into_iter().find(|params| params.name() == "dual-pi2").unwrap();
    let setting = |algorithm| Setting {
        algorithm,
        flows: 2,
        ecn: true,
        discipline: discipline.clone(),
        seconds: 30,
        warmup: 10,
        ..Setting::default()
    };
    let (mut simulation, from, to) = setting(Algorithm::Cubic).network();
    for (group, algorithm) in [Algorithm::Prague, Algorithm::Cubic].into_iter().enumerate() {
        let start = FlowStart { at: Nanos::ZERO, from: from[group].0 as usize, to: to[group].0 as usize, bytes: None };
        let transport = setting(algorithm).transport();
        simulation.add_flows(group as u32, transport, None, std::iter::once(start)).unwrap();
    }
    simulation.run_until(Nanos(30_000_000_000), &mut ());
    let groups = simulation.link(simulation.measured().next().unwrap()).groups().to_vec();
    let [prague, cubic] = [0, 1].map(|group: usize| groups[group].sojourn.mean().unwrap() * 1e-6);
    assert!(prague < 1.5 && cubic > 5.0, "{prague} {cubic} ms");
    assert!(groups[0].dropped == 0 && groups[0].marked > 100, "{} {}", groups[0].dropped, groups[0].marked);
    let rates: Vec<_> = simulation.flows().iter().map(delivered).collect();
    let ratio = rates[0] as f64 / rates[1] as f64;
    assert!((0.5..2.0).contains(&ratio), "{rates:?}");
}

/// The bytes that a link sent are those that came out of it: payload, headers, and retransmitted data.
#[test]
fn delivered_bytes_were_sent() {
    let simulation: Simulation = run(&Setting { flows: 3, discipline: buffer(9_000), warmup: 0, ..Setting::default() });
    let payload: u64 = simulation.flows().iter().map(delivered).sum();
    let stats = simulation.link(simulation.measured().next().unwrap());
    assert!(stats.drops.iter().sum::<u64>() > 0, "the buffer is small");
    assert!(payload as f64 <= stats.sent.bytes.0 as f64 * PAYLOAD);
    assert!(payload as f64 >= stats.sent.bytes.0 as f64 * PAYLOAD * 0.97, "{payload} of {}", stats.sent.bytes.0);
    assert_eq!(simulation.flows().iter().map(|flow| NodeId(flow.hosts[0].0)).filter(|node| node.0 == 0).count(), 0);
}

fn delivered(flow: &FlowRecord) -> u64 {
    flow.counted().delivered
}

/// After its stop, a flow sends no more than the data that was already handed over.
#[test]
fn a_flow_that_stops_is_over() {
    let setting = Setting { discipline: buffer(20_000), warmup: 0, ..Setting::default() };
    let (mut simulation, from, to) = setting.network();
    let (from, to) = (from[0].0 as usize, to[0].0 as usize);
    let start = FlowStart { at: Nanos(0), from, to, bytes: None };
    simulation.add_flows(0, setting.transport(), Some(Nanos(2_000_000_000)), std::iter::once(start)).unwrap();
    simulation.run_until(Nanos(2_000_000_000), &mut ());
    let at_the_stop = simulation.flows()[0].delivered;
    simulation.run_until(Nanos(8_000_000_000), &mut ());
    let in_the_end = simulation.flows()[0].delivered;
    // 50 kB are in flight, and 20 kB wait.
    assert!((at_the_stop..at_the_stop + 200_000).contains(&in_the_end), "{at_the_stop} {in_the_end}");
    assert!(at_the_stop > 3_000_000 && simulation.on_their_way() == 0);
}
