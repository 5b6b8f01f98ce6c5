//! A thousand triggers each millisecond: CPU time of a pass, and the delay of an alert.

use crate::thread_cpu;
use crate::traffic::{self, Flows, SIZE, append, count_all, pool};
use hdrhistogram::Histogram;
use queuescope_log::{Log, Monitor, Number, Relation, Trigger};
use std::hint::black_box;
use std::num::NonZeroU64;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;

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
    // The noise of this machine, in a pass that always does the same.
    passes(runs * 1000, "none: a loop of that length", |_| {
        black_box((0..10_000u32).fold(1u32, |x, n| black_box(x.wrapping_mul(5) ^ n)));
    });
    let (log, filters) = traffic::log(records, 0, 64);
    let counts = count_all(&log, &filters);
    alerts(&log, &pool, records, counts[1]);
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

/// At full rate: the time from appending a record to the alert that it causes.
fn alerts(log: &Log, pool: &[u8], records: u64, count: queuescope_log::AggregateId) {
    let (clock, done) = (Instant::now(), AtomicBool::new(false));
    let mut delays = Histogram::<u64>::new(3).expect("three digits");
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
        let (relation, threshold) = (Relation::Greater, Number::Unsigned(0));
        let trigger = Trigger { aggregate: count, relation, threshold, period: MS, window: None };
        monitor.add(trigger).expect("it can be");
        let (mut pass, mut raised) = (0, 0);
        while !done.load(Ordering::Relaxed) {
            monitor.pass(pass * MS, |alert| {
                let at = clock.elapsed();
                let appended = appended.lock().expect("nobody panics");
                for (position, when) in &appended[raised..] {
                    if *position <= alert.position {
                        delays += at.saturating_sub(*when).as_nanos() as u64;
                        raised += 1;
                    }
                }
            });
            pass += 1;
            until(clock, pass);
        }
    });
    let at = |quantile| delays.value_at_quantile(quantile) as f64 / 1e6;
    println!(
        "\nat full rate an alert comes after its record: p50 {:.2} ms, p99 {:.2}, longest {:.2}, of {}",
        at(0.5),
        at(0.99),
        delays.max() as f64 / 1e6,
        delays.len()
    );
}
