//! A thousand triggers each millisecond: CPU time of a pass, and the delay of an alert.

use crate::thread_cpu;
use crate::traffic::{self, Flows, SIZE, count_all, pool};
use hdrhistogram::Histogram;
use queuescope_log::{Log, Monitor, Number, Relation, Trigger};
use std::hint::black_box;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;
/// The delay of an alert is measured for one record of each step of this length.
const STEP: u64 = 10_000;

pub fn measure(records: u64, runs: usize) {
    // By default, the system lets a thread sleep 50 us longer.
    rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN)).expect("any thread may");
    let pool = pool(Flows::Few);
    println!("1000 triggers over 64 COUNTs each millisecond, {runs} x 1000 passes; CPU time of the pass");
    println!("{:32} {:>9} {:>9} {:>9} {:>9}", "records a second", "core (%)", "p50 (us)", "p99.9", "longest");
    for rate in [0, 100_000, 1_000_000] {
        let (log, filters) = traffic::log(records, 0, 64);
        let counts = count_all(&log, &filters);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| write_at(&log, &pool, rate, &over));
            let mut monitor = thousand(&log, &counts);
            passes(runs * 1000, &rate.to_string(), |now| monitor.pass(now, |_| {}));
            over.store(true, Ordering::Relaxed);
        });
    }
    // The noise of this machine, in a pass that always does the same: alone, and beside the writer that sleeps and wakes.
    for rate in [0, 100_000] {
        let (log, over) = (traffic::log(records, 0, 0).0, AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| write_at(&log, &pool, rate, &over));
            passes(runs * 1000, &format!("{rate}: a loop of that length"), |_| {
                black_box((0..5_000u32).fold(1u32, |x, n| black_box(x.wrapping_mul(5) ^ n)));
            });
            over.store(true, Ordering::Relaxed);
        });
    }
    println!("\nat full rate, from a record to its alert, in milliseconds");
    println!("{:32} {:>9} {:>9} {:>9} {:>9}", "", "p50", "p99", "longest", "records");
    for passes in [Passes::Own, Passes::Writer] {
        for _ in 0..runs {
            alerts(&pool, records, passes);
        }
    }
}

/// A thousand triggers, of which none fires.
pub fn thousand<'a>(log: &'a Log, counts: &[queuescope_log::AggregateId]) -> Monitor<'a> {
    let mut monitor = Monitor::new(log);
    for n in 0..1000 {
        let (aggregate, threshold) = (counts[n % counts.len()], Number::Unsigned(u128::MAX));
        let trigger = Trigger { aggregate, relation: Relation::AtLeast, threshold, period: MS, window: None };
        monitor.add(trigger).expect("it can be");
    }
    monitor
}

fn passes(passes: usize, name: &str, mut pass: impl FnMut(u64)) {
    let mut histogram = Histogram::<u64>::new(3).expect("three digits");
    let (start, mut all) = (Instant::now(), 0.0);
    for number in 0..passes as u64 {
        let before = thread_cpu();
        pass(number * MS);
        let took = thread_cpu() - before;
        all += took;
        histogram += (took * 1e9) as u64;
        until(start, number + 1);
    }
    let share = all / start.elapsed().as_secs_f64() * 100.0;
    let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
    println!("{name:32} {share:>9.2} {:>9.2} {:>9.2} {:>9.2}", at(0.5), at(0.999), histogram.max() as f64 / 1e3);
}

/// Sleeps until a number of milliseconds after the start.
fn until(start: Instant, ms: u64) {
    thread::sleep(Duration::from_millis(ms).saturating_sub(start.elapsed()));
}

/// Writes at a rate of records per second, in batches of a hundredth of a millisecond.
fn write_at(log: &Log, pool: &[u8], rate: u64, over: &AtomicBool) {
    let (start, mut sent) = (Instant::now(), 0);
    let mut batches = pool.chunks_exact(SIZE).cycle();
    while rate > 0 && !over.load(Ordering::Relaxed) {
        let due = (start.elapsed().as_secs_f64() * rate as f64) as u64;
        while sent < due {
            if let Some(record) = batches.next() {
                let _full = log.append(record).refused;
            }
            sent += 1;
        }
        thread::sleep(Duration::from_micros(100));
    }
}

/// The thread that makes the passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passes {
    /// A thread of its own, which sleeps between them.
    Own,
    /// The writer, which reads the clock after each batch.
    Writer,
}

/// At full rate: the time from appending a record to the alert that it causes.
fn alerts(pool: &[u8], records: u64, passes: Passes) {
    let (log, filters) = traffic::log(records, 0, 64);
    let log = &log;
    let count = count_all(log, &filters)[1];
    let (clock, done) = (Instant::now(), AtomicBool::new(false));
    let now = || clock.elapsed().as_nanos() as u64;
    // When each step of records was in the log; zero before. Neither thread waits for the other.
    let appended: Vec<_> = (0..records / STEP).map(|_| AtomicU64::new(0)).collect();
    let mut delays = Histogram::<u64>::new(3).expect("three digits");
    let mut monitor = Monitor::new(log);
    // One record of 256 matches, so that each step raises the count.
    let (relation, threshold) = (Relation::Greater, Number::Unsigned(0));
    let trigger = Trigger { aggregate: count, relation, threshold, period: MS, window: None };
    monitor.add(trigger).expect("it can be");
    let mut raised = 0;
    let mut pass = || {
        monitor.pass(now(), |alert| {
            let at = now();
            for when in appended.iter().skip(raised).take((alert.position / STEP) as usize - raised) {
                // The record may be seen before its time is noted.
                let when = when.load(Ordering::Acquire);
                if when > 0 {
                    delays += at.saturating_sub(when);
                }
                raised += 1;
            }
        });
        monitor.due().unwrap_or_default()
    };
    let write = |pass: Option<&mut dyn FnMut() -> u64>| {
        let mut own = pass;
        let (mut due, mut position) = (0, 0);
        for batch in pool.chunks_exact(32 * SIZE).cycle().take((records / 32) as usize) {
            let before = position;
            position = log.append(batch).positions.end;
            if before / STEP < position / STEP {
                appended[(before / STEP) as usize].store(now(), Ordering::Release);
            }
            if let Some(pass) = &mut own
                && now() >= due
            {
                due = pass();
            }
        }
        done.store(true, Ordering::Relaxed);
    };
    match passes {
        Passes::Writer => write(Some(&mut pass)),
        Passes::Own => thread::scope(|scope| {
            scope.spawn(|| write(None));
            while !done.load(Ordering::Relaxed) {
                let due = pass();
                thread::sleep(Duration::from_nanos(due.saturating_sub(now())));
            }
        }),
    }
    let at = |quantile| delays.value_at_quantile(quantile) as f64 / 1e6;
    println!(
        "{:32} {:>9.2} {:>9.2} {:>9.2} {:>9}",
        if passes == Passes::Own { "passes by a thread of their own" } else { "passes by the writer" },
        at(0.5),
        at(0.99),
        delays.max() as f64 / 1e6,
        delays.len()
    );
}
