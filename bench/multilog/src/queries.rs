//! The paper's queries q1 to q5 (figure 8), with and without indexes; results counted and iterated.

use crate::median;
use crate::traffic::{self, Flows, SIZE, append, attribute, expression, pool};
use queuescope_log::{Dnf, Log};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

pub fn measure(records: u64, runs: usize) {
    let pool = pool(Flows::Few);
    let queries = queries(&pool[..SIZE]);
    for indexes in [4, 0] {
        let (log, _) = traffic::log(records, indexes, 0);
        append(&log, &pool, records, 32);
        println!("{records} records, {indexes} indexes; milliseconds, medians of {runs}");
        println!("{:32} {:>10} {:>9} {:>9} {:>9}", "", "records", "counted", "iterated", "first");
        for (name, text) in &queries {
            let query = expression(text);
            let (count, counted) = timed(runs, || log.snapshot().query().matching(&query).matched().count());
            let (_, iterated) = timed(runs, || iterate(&log, &query));
            let (_, first) = timed(runs, || log.snapshot().query().matching(&query).matched().next().map(|(at, _)| at));
            println!("{name:32} {count:>10} {counted:>9.2} {iterated:>9.2} {first:>9.3}");
        }
        println!();
    }
    beside(&pool, &queries, records, runs);
}

/// How fast records are appended while the queries run continuously one after the other, and without queries.
fn beside(pool: &[u8], queries: &[(&str, String)], records: u64, runs: usize) {
    let queries: Vec<_> = queries.iter().map(|(_, text)| expression(text)).collect();
    let (mut quiet, mut busy, mut queries_run) = (Vec::new(), Vec::new(), 0);
    for run in 0..2 * runs {
        let (log, _) = traffic::log(records, 4, 0);
        append(&log, pool, records / 2, 32);
        let over = AtomicBool::new(run % 2 == 0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut count = 0;
                while !over.load(Ordering::Relaxed) {
                    black_box(log.snapshot().query().matching(&queries[count % queries.len()]).matched().count());
                    count += 1;
                }
                if count > 0 {
                    queries_run = count;
                }
            });
            let start = Instant::now();
            append(&log, pool, records / 2, 32);
            let rate = (records / 2) as f64 / start.elapsed().as_secs_f64() / 1e6;
            if run % 2 == 0 { &mut quiet } else { &mut busy }.push(rate);
            over.store(true, Ordering::Relaxed);
        });
    }
    let middle = |rates: &mut Vec<f64>| {
        rates.sort_unstable_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let (quiet, busy) = (middle(&mut quiet), middle(&mut busy));
    println!(
        "appended with 4 indexes behind {} records: {quiet:.1} million/s, while {queries_run} queries ran {busy:.1} ({:+.1} %)",
        records / 2,
        (busy / quiet - 1.0) * 100.0
    );
}

/// The queries, about the flow of a record.
fn queries(record: &[u8]) -> [(&'static str, String); 5] {
    let of = |name: &str| {
        let id = attribute(name);
        traffic::schema().attribute(id).text_of(traffic::schema().key(id, record))
    };
    let (a, b, p, q) = (of("src_ip"), of("dst_ip"), of("src_port"), of("dst_port"));
    [
        ("q1, from A to B", format!("src_ip == {a} and dst_ip == {b}")),
        ("q2, to A", format!("dst_ip == {a}")),
        ("q3, from A to port P", format!("src_ip == {a} and dst_port == {p}")),
        (
            "q4, between (A, P) and (B, Q)",
            format!(
                "src_ip == {a} and src_port == {p} and dst_ip == {b} and dst_port == {q} or \
                 src_ip == {b} and src_port == {q} and dst_ip == {a} and dst_port == {p}"
            ),
        ),
        ("q5, to or from A", format!("src_ip == {a} or dst_ip == {a}")),
    ]
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
