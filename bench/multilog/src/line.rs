//! CPU time at 10 Gb/s by the size of packets, as the paper's figures 8(d) and 8(e).

use crate::traffic::{self, Flows, append_from, count_all, pool};
use crate::{cpu, triggers};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const SIZES: [u64; 7] = [64, 128, 256, 512, 750, 1024, 1500];
/// Preamble and gap between frames.
const BETWEEN: u64 = 20;
const LINE: u64 = 10_000_000_000;
const MS: Duration = Duration::from_millis(1);

pub fn measure(records: u64, _runs: usize) {
    let pool = pool(Flows::Few);
    println!("percent of a core at 10 Gb/s, all threads, by the size of packets; -: it does not keep up");
    print!("{:38}", "");
    SIZES.iter().for_each(|size| print!(" {size:>6}"));
    println!();
    let rows = [(0, 1), (0, 4), (0, 16), (0, 64), (0, 0), (1, 0), (2, 0), (4, 0), (2, 16), (5, 64)];
    for (indexes, filters) in rows {
        print!("{:38}", format!("{indexes} indexes, {filters} filters with COUNT"));
        SIZES.iter().for_each(|size| print!(" {:>6}", share(&pool, records, (indexes, filters), *size, false)));
        println!();
    }
    print!("{:38}", "5 indexes, 64 filters, 1000 triggers");
    SIZES.iter().for_each(|size| print!(" {:>6}", share(&pool, records, (5, 64), *size, true)));
    println!();
}

/// For a second, or as long as there are records: what has come is appended each millisecond.
fn share(pool: &[u8], records: u64, (indexes, filters): (usize, usize), size: u64, triggered: bool) -> String {
    let rate = LINE / 8 / (size + BETWEEN);
    let (log, filters) = traffic::log(records, indexes, filters);
    let counts = count_all(&log, &filters);
    let over = AtomicBool::new(false);
    let (used, kept_up) = thread::scope(|scope| {
        if triggered {
            scope.spawn(|| {
                let (mut monitor, mut now) = (triggers::thousand(&log, &counts), 0);
                while !over.load(Ordering::Relaxed) {
                    monitor.pass(now, |_| {});
                    now += 1_000_000;
                    thread::sleep(MS);
                }
            });
        }
        let last = records.min(rate);
        let (before, start, mut sent) = (cpu(), Instant::now(), 0);
        while sent < last {
            let due = (start.elapsed().as_nanos() * u128::from(rate) / 1_000_000_000) as u64;
            let count = due.min(last) - sent;
            append_from(&log, pool, sent, count, 32);
            sent += count;
            thread::sleep(MS);
        }
        let took = start.elapsed().as_secs_f64();
        let used = (cpu() - before) / took;
        over.store(true, Ordering::Relaxed);
        (used, took < 1.02 * last as f64 / rate as f64 + 0.01)
    });
    if kept_up { format!("{:.1}", used * 100.0) } else { "-".to_owned() }
}
