//! Records per second of CPU time of all threads, by the data derived from them. Each row also has the ratio to the limit: a loop
//! that reserves with a fetch-and-add and copies the same records into allocated memory, in the same run.

use crate::traffic::{self, Flows, SIZE, append, count_all, expression, pool};
use crate::{cpu, median, triggers};
use memmap2::{Advice, MmapOptions};
use queuescope_log::{Function, Log};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BATCH: usize = 32;
const MS: u64 = 1_000_000;

/// How many indexes and filters.
const ROWS: [(usize, usize); 9] = [(0, 0), (1, 0), (2, 0), (5, 0), (0, 1), (0, 16), (0, 64), (2, 16), (5, 64)];

/// One row of results, in millions of records per second.
#[derive(Default)]
struct Row {
    one: Option<f64>,
    batched: f64,
    bytes: f64,
    /// By wall-clock time, with one writer and with two.
    writers: Option<[f64; 2]>,
}

pub fn measure(records: u64, runs: usize) {
    for (name, flows) in [("a /24, ten ports", Flows::Few), ("a million flows", Flows::Million)] {
        let pool = pool(flows);
        let [limit, two] = [1, 2].map(|writers| median(runs, || limit(&pool, records, writers)));
        println!(
            "{name}: reserve and copy, batches of {BATCH}: {limit:.1} million/s, two writers {two:.1} by the clock\n"
        );
        println!(
            "{:38} {:>9} {:>6} {:>9} {:>6} {:>8} {:>9} {:>9}",
            "", "one", "ratio", "batches", "ratio", "B/record", "1 writer", "2 writers"
        );
        for (indexes, filters) in ROWS {
            let mut bytes = 0.0;
            let log = || {
                let (log, filters) = traffic::log(records, indexes, filters);
                count_all(&log, &filters);
                log
            };
            let mut rate = |batch| {
                median(runs, || {
                    let log = log();
                    let rate = timed(records, || append(&log, &pool, records, batch));
                    bytes = per_record(&log, records);
                    rate
                })
            };
            let (one, batched) = (Some(rate(1)), rate(BATCH));
            let writers = Some([1, 2].map(|writers| median(runs, || by_clock(&log(), &pool, records, writers, BATCH))));
            row(
                &format!("{indexes} indexes, {filters} filters with COUNT"),
                limit,
                &Row { one, batched, bytes, writers },
            );
        }
        let mut bytes = 0.0;
        let batched = median(runs, || {
            let (log, filters) = traffic::log(records, 5, 64);
            let rate = timed(records, || triggered(&log, &filters, &pool, records));
            bytes = per_record(&log, records);
            rate
        });
        row("5 indexes, 64 filters, 1000 triggers", limit, &Row { batched, bytes, ..Row::default() });
        let batched = median(runs, || {
            let (log, _) = traffic::log(records, 0, 0);
            let filter = log.add_filter(expression("ethertype == IPv4"));
            log.add_aggregate(&["ALL"], Some(filter), &Function::Count).expect("the name is free");
            timed(records, || append(&log, &pool, records, BATCH))
        });
        row("a filter that matches everything", limit, &Row { batched, ..Row::default() });
        println!();
    }
}

fn row(name: &str, limit: f64, row: &Row) {
    let cell = |value: Option<f64>, digits: usize| value.map_or(String::new(), |value| format!("{value:.digits$}"));
    println!(
        "{name:38} {:>9} {:>6} {:>9.1} {:>6.2} {:>8} {:>9} {:>9}",
        cell(row.one, 1),
        cell(row.one.map(|one| one / limit), 2),
        row.batched,
        row.batched / limit,
        cell((row.bytes > 0.0).then_some(row.bytes), 1),
        cell(row.writers.map(|[one, _]| one), 1),
        cell(row.writers.map(|[_, two]| two), 1),
    );
}

/// Million records per second of wall-clock time, shared by a number of writers.
pub fn by_clock(log: &Log, pool: &[u8], records: u64, writers: u64, batch: usize) -> f64 {
    let each = records / writers;
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..writers {
            scope.spawn(|| append(log, pool, each, batch));
        }
    });
    (each * writers) as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// Million records a second of CPU time.
fn timed(records: u64, work: impl FnOnce()) -> f64 {
    let before = cpu();
    work();
    records as f64 / (cpu() - before) / 1e6
}

fn per_record(log: &Log, records: u64) -> f64 {
    let snapshot = log.snapshot();
    assert_eq!(snapshot.len(), records);
    snapshot.usage().total() as f64 / records as f64
}

/// A writer, and a thread that evaluates 1000 triggers each millisecond.
fn triggered(log: &Log, filters: &[queuescope_log::FilterId], pool: &[u8], records: u64) {
    let counts = count_all(log, filters);
    let over = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut monitor = triggers::thousand(log, &counts);
            let mut now = 0;
            while over.load(Ordering::Relaxed) == 0 {
                monitor.pass(now, |alert| {
                    black_box(alert);
                });
                now += MS;
                thread::sleep(Duration::from_millis(1));
            }
        });
        append(log, pool, records, BATCH);
        over.store(1, Ordering::Relaxed);
    });
}

/// The limit by CPU time; and for two writers by wall-clock time, with separate memory and a shared counter.
fn limit(pool: &[u8], records: u64, writers: usize) -> f64 {
    let mut memory = MmapOptions::new().len(records as usize * SIZE).map_anon().expect("there is memory");
    // Without large pages it is the system's way.
    let _ = memory.advise(Advice::HugePage);
    memory.fill(1);
    let next = AtomicU64::new(0);
    let each = records as usize / writers;
    let (before, start) = (cpu(), Instant::now());
    thread::scope(|scope| {
        for memory in memory.chunks_exact_mut(each * SIZE).take(writers) {
            scope.spawn(|| reserve_and_copy(memory, &next, pool));
        }
    });
    let took = if writers == 1 { cpu() - before } else { start.elapsed().as_secs_f64() };
    black_box(&memory);
    (each * writers) as f64 / took / 1e6
}

fn reserve_and_copy(memory: &mut [u8], next: &AtomicU64, pool: &[u8]) {
    let batches = pool.chunks_exact(BATCH * SIZE).cycle();
    for (target, batch) in memory.chunks_mut(BATCH * SIZE).zip(batches) {
        black_box(next.fetch_add((target.len() / SIZE) as u64, Ordering::Relaxed));
        target.copy_from_slice(&batch[..target.len()]);
    }
}
