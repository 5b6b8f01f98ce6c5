//! The paper's queries q1 to q5 (figure 8), with and without indexes; results counted and iterated.

use crate::median;
use crate::traffic::{self, Flows, append, expression, pool};
use queuescope_log::{Dnf, Log};
use std::hint::black_box;
use std::time::Instant;

pub fn measure(records: u64, runs: usize) {
    let pool = pool(Flows::Few);
    let queries = [
        ("q1, from A to B", "src_ip == 10.0.0.7 and dst_ip == 10.0.0.9"),
        ("q2, to A", "dst_ip == 10.0.0.7"),
        ("q3, from A to port P", "src_ip == 10.0.0.7 and dst_port == 8017"),
        (
            "q4, between (A, P) and (B, Q)",
            "src_ip == 10.0.0.7 and src_port == 8017 and dst_ip == 10.0.0.9 and dst_port == 8034 or \
             src_ip == 10.0.0.9 and src_port == 8034 and dst_ip == 10.0.0.7 and dst_port == 8017",
        ),
        ("q5, to or from A", "src_ip == 10.0.0.7 or dst_ip == 10.0.0.7"),
    ];
    for indexes in [4, 0] {
        let (log, _) = traffic::log(records, indexes, 0);
        append(&log, &pool, records, 32);
        println!("{records} records, {indexes} indexes; milliseconds, medians of {runs}");
        println!("{:32} {:>10} {:>9} {:>9} {:>9}", "", "records", "counted", "iterated", "first");
        for (name, text) in queries {
            let query = expression(text);
            let (count, counted) = timed(runs, || log.snapshot().query().matching(&query).matched().count());
            let (_, iterated) = timed(runs, || iterate(&log, &query));
            let (_, first) = timed(runs, || log.snapshot().query().matching(&query).matched().next().map(|(at, _)| at));
            println!("{name:32} {count:>10} {counted:>9.2} {iterated:>9.2} {first:>9.3}");
        }
        println!();
    }
}

/// Reads a byte of each record.
fn iterate(log: &Log, query: &Dnf) -> u64 {
    log.snapshot().query().matching(query).matched().map(|(_, record)| u64::from(record[53])).sum()
}

/// The last answer, and the median time in milliseconds.
fn timed<T>(runs: usize, mut ask: impl FnMut() -> T) -> (T, f64) {
    let mut answer = ask();
    let time = median(runs, || {
        let start = Instant::now();
        answer = black_box(ask());
        start.elapsed().as_secs_f64() * 1e3
    });
    (answer, time)
}
