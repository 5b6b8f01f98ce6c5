//! A thousand triggers each millisecond: CPU time of a pass, and how soon an alert comes.

use crate::thread_cpu;
use crate::traffic::{self, Flows, SIZE, append, count_all, pool};
use hdrhistogram::Histogram;
use queuescope_log::{Log, Monitor, Number, Relation, Trigger};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;

pub fn measure(records: u64, runs: usize) {
    let pool = pool(Flows::Few);
    println!("1000 triggers over 64 COUNTs each millisecond, {runs} x 1000 passes; CPU time of the pass");
    println!("{:32} {:>9} {:>9} {:>9} {:>9}", "records a second", "core (%)", "p50 (us)", "p99.9", "longest");
    for rate in [0, 100_000, 1_000_000] {
        let (log, filters) = traffic::log(records, 0, 64);
        let counts = count_all(&log, &filters);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| write_at(&log, &pool, rate, &over));
            passes(&log, &counts, runs * 1000, &rate.to_string());
            over.store(true, Ordering::Relaxed);
        });
    }
    let (log, filters) = traffic::log(records, 0, 64);
    let counts = count_all(&log, &filters);
    alerts(&log, &pool, records, counts[1]);
}

fn passes(log: &Log, counts: &[queuescope_log::AggregateId], passes: usize, name: &str) {
    let mut monitor = Monitor::new(log);
    for n in 0..1000 {
        let (aggregate, threshold) = (counts[n % counts.len()], Number::Unsigned(u128::MAX));
        let trigger = Trigger { aggregate, relation: Relation::AtLeast, threshold, period: MS, window: None };
        monitor.add(trigger).expect("it can be");
    }
    let mut histogram = Histogram::<u64>::new(3).expect("three digits");
    let (start, mut all) = (Instant::now(), 0.0);
    for pass in 0..passes {
        let before = thread_cpu();
        monitor.pass(pass as u64 * MS, |_| {});
        let took = thread_cpu() - before;
        all += took;
        histogram.saturating_record((took * 1e9) as u64);
        let next = Duration::from_millis(pass as u64 + 1);
        thread::sleep(next.saturating_sub(start.elapsed()));
    }
    let share = all / start.elapsed().as_secs_f64() * 100.0;
    let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
    println!("{name:32} {share:>9.2} {:>9.2} {:>9.2} {:>9.2}", at(0.5), at(0.999), histogram.max() as f64 / 1e3);
}

/// Writes so many records a second, a hundredth of a millisecond's at a time.
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

/// At full rate: from when a record is appended to when the alert is told that it causes.
fn alerts(log: &Log, pool: &[u8], records: u64, count: queuescope_log::AggregateId) {
    let (clock, done) = (Instant::now(), AtomicBool::new(false));
    let mut worst = Duration::ZERO;
    // Which positions were reached when. One record of 256 matches, so that each step raises the count.
    let appended = Mutex::new(Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let step = 10_000;
            for at in 0..records / step {
                append(log, pool, step, 32);
                appended.lock().expect("nobody panics").push(((at + 1) * step, clock.elapsed()));
            }
            done.store(true, Ordering::Relaxed);
        });
        let mut monitor = Monitor::new(log);
        let trigger = Trigger {
            aggregate: count,
            relation: Relation::Greater,
            threshold: Number::Unsigned(0),
            period: MS,
            window: None,
        };
        monitor.add(trigger).expect("it can be");
        let (mut now, mut told) = (0, 0);
        while !done.load(Ordering::Relaxed) {
            monitor.pass(now, |alert| {
                let at = clock.elapsed();
                let appended = appended.lock().expect("nobody panics");
                for (position, when) in &appended[told..] {
                    if *position <= alert.position {
                        worst = worst.max(at.saturating_sub(*when));
                        told += 1;
                    }
                }
            });
            now += MS;
            thread::sleep(Duration::from_millis(1));
        }
    });
    println!("\nat full rate an alert comes at most {:.2} ms after its record", worst.as_secs_f64() * 1e3);
}
