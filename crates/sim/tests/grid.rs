//! Small scenarios of every discipline, switch program and congestion control, as a table of results that must not change.
//!
//! `UPDATE_GOLDEN=1 cargo test -p queuescope-sim --test it grid::` rewrites it; read and explain the differences.

#![allow(clippy::disallowed_methods, reason = "a test reads its golden table")]

use queuescope_queue::{DisciplineParams, PipelineParams};
use queuescope_scenario::{Override, Scenario};
use queuescope_sim::{Files, Simulation, build};
use queuescope_tcp::Algorithm;
use queuescope_wire::Nanos;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// 10 Mb/s, 20 ms, and a buffer of two bandwidth-delay products: three flows of one kind, and intermittent datagrams.
const SCENARIO: &str = r#"
duration = "4s"
warmup = "1s"
link = { rate = "10mbps", delay = "5ms", limit = "2bdp" }
access = { rate = "100mbps", delay = "2500us" }

[[flows]]
count = 3
stagger = "100ms"

[[flows]]
udp = { rate = "2mbps", packet = "400B", on = "200ms", off = "300ms" }
"#;

#[test]
fn the_grid_is_as_it_was() {
    let mut table = String::from(
        "| queue | flows | goodput b/s | datagrams | mean sojourn ns | 99 % ns | drops | marks | hops |\n",
    );
    table.push_str("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    let disciplines = DisciplineParams::NAMES.iter().map(|name| ("discipline", *name));
    let programs = PipelineParams::NAMES.iter().map(|name| ("pipeline", *name));
    for (key, queue) in disciplines.chain(programs) {
        for algorithm in Algorithm::ALL {
            row(&mut table, (key, queue), *algorithm);
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/grid.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &table).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    for (line, (was, is)) in (1..).zip(golden.lines().zip(table.lines())) {
        assert_eq!(was, is, "line {line}");
    }
    assert_eq!(golden.lines().count(), table.lines().count());
}

fn row(table: &mut String, (key, queue): (&str, &str), algorithm: Algorithm) {
    let overrides = [Override::new(format!("link.{key}={queue}")), Override::new(format!("flows.0.tcp={algorithm}"))];
    let scenario = Scenario::parse("grid", SCENARIO, &overrides).unwrap_or_else(|error| panic!("{queue}: {error}"));
    let mut built = build(&scenario, &Files::default()).unwrap();
    // The end of the warm-up is an event of its own time; the backlog just before it is the backlog at it.
    built.simulation.run_until(Nanos(scenario.warmup.0), &mut ());
    let simulation = &built.simulation;
    let waited: Vec<_> = simulation.topology().links().map(|link| simulation.backlog(link).packets).collect();
    built.simulation.run_until(scenario.duration, &mut ());
    assert_whole(&built.simulation, &waited);
    let (simulation, link) = (&built.simulation, built.meters[0]);
    let seconds = (simulation.now() - simulation.warmup()).as_secs_f64();
    let delivered: u64 = simulation.flows().iter().map(|flow| flow.counted().delivered).sum();
    let stats = simulation.link(link);
    let times = stats.sojourn().unwrap();
    writeln!(
        table,
        "| {queue} | {algorithm} | {:.0} | {} | {:.0} | {} | {} | {} | {} |",
        delivered as f64 * 8.0 / seconds,
        simulation.datagrams().map(|record| record.delivered.packets).sum::<u64>(),
        times.mean().unwrap_or(0.0),
        times.percentile(99.0).map_or(0, |time| time.0),
        stats.drops.iter().sum::<u64>(),
        stats.marks.iter().sum::<u64>(),
        simulation.hops()
    )
    .unwrap();
}

/// Every link sends no more than its capacity, and everything offered since the warm-up was sent or dropped, or waits; except for
/// packets that waited before.
fn assert_whole(simulation: &Simulation, waited: &[u64]) {
    for (link, waited) in simulation.topology().links().zip(waited) {
        let (params, stats) = (simulation.topology().link(link), simulation.link(link));
        let able = params.rate.mean().bytes_in(simulation.now() - simulation.warmup()).0 + 1_500;
        assert!(stats.sent.bytes.0 <= able, "{} sent {} of {able}", params.name, stats.sent.bytes.0);
        let gone = stats.sent.packets + stats.drops.iter().sum::<u64>();
        // Packets that a program drops behind the queue, or recirculates, may be between both.
        assert_eq!(stats.offered.packets + waited, gone + simulation.backlog(link).packets, "{}", params.name);
    }
}
