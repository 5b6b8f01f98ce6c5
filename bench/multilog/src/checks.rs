//! Path conformance checks: how long a batch of 32 headers with telemetry takes (the paper's figure 9 (a)).

use crate::{median, thread_cpu};
use hdrhistogram::Histogram;
use quanta::Clock;
use queuescope_log::{Definitions, Log, Memory, Options, Schema, packet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const BATCH: usize = 32;
const RECIPE: &str = include_str!("../../../recipes/path-conformance.toml");
/// Switches that packets pass; none of them is checked.
const SWITCHES: u32 = 64;

pub fn measure(records: u64, runs: usize) {
    println!("batches of {BATCH} records of {} bytes, {runs} x {records} records; ns a batch", packet::SIZE);
    println!(
        "{:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>12}",
        "checks", "CPU", "mean", "p50", "p99", "p99.9", "CPU a packet"
    );
    let batch = batch();
    for checks in [0, 1, 10, 100] {
        let mut histogram = Histogram::<u64>::new(3).expect("three digits");
        let cpu = median(runs, || run(checks, records, &batch, &mut histogram)) * 1e9 / records as f64;
        let at = |quantile| histogram.value_at_quantile(quantile);
        println!(
            "{checks:>7} {:>9.0} {:>9.0} {:>9} {:>9} {:>9} {cpu:>12.1}",
            cpu * BATCH as f64,
            histogram.mean(),
            at(0.5),
            at(0.99),
            at(0.999)
        );
    }
}

/// Appends everything while a monitor evaluates the triggers each millisecond, and returns the CPU seconds of the appending thread.
fn run(checks: u32, records: u64, batch: &[u8], histogram: &mut Histogram<u64>) -> f64 {
    let options = Options { records, memory: Memory::Prefaulted };
    let log = Log::new(Schema::packet().clone(), options).expect("there is room");
    let mut definitions = Definitions::new(Schema::packet());
    for switch in 1000..1000 + checks {
        let values = [("switch", &*switch.to_string())];
        definitions.add_text_with("path-conformance", RECIPE, &values).expect("the recipe is right");
    }
    let defined = definitions.apply(&log).expect("it fits");
    let mut monitor = defined.monitor(&log).expect("all is there");
    let (clock, over) = (Clock::new(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            for now in 0u64.. {
                monitor.pass(now * 1_000_000, |name, _| panic!("{name} fires, and no packet passes there"));
                if over.load(Ordering::Relaxed) {
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        let before = thread_cpu();
        for _ in 0..records / BATCH as u64 {
            let start = clock.raw();
            let appended = log.append(batch);
            let took = clock.delta_as_nanos(start, clock.raw());
            assert_eq!(appended.refused, 0);
            *histogram += took;
        }
        let cpu = thread_cpu() - before;
        over.store(true, Ordering::Relaxed);
        cpu
    })
}

/// Packets of three to five hops.
fn batch() -> Vec<u8> {
    let schema = Schema::packet();
    let id = |name: &str| schema.reader(schema.find(name).expect("it is there"));
    let mut batch = vec![0; BATCH * packet::SIZE];
    for (n, record) in (0..).zip(batch.chunks_exact_mut(packet::SIZE)) {
        let hops = 3 + n % 3;
        id("hops").write(record, u128::from(hops));
        for hop in 1..=hops {
            id(&format!("switch_{hop}")).write(record, u128::from((n * 7 + hop * 13) % SWITCHES + 1));
            id(&format!("queue_{hop}")).write(record, u128::from(n * 1500));
        }
    }
    batch
}
