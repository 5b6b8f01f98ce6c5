//! The paper's queries q1 to q5 (figure 8), with and without indexes; results counted and iterated.

use crate::median;
use crate::traffic::{self, Flows, SIZE, append, attribute, expression, pool};
use queuescope_log::{Dnf, Log};
use std::hint::black_box;
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
