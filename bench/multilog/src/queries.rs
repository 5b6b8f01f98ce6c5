//! The paper's queries q1 to q5 (figure 8), with and without indexes; results counted and iterated.

use crate::traffic::{self, Flows, SIZE, append, attribute, expression, pool};
use crate::{median, thread_cpu};
use queuescope_log::{Dnf, Log};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

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

/// What runs on the other core while records are appended.
const NEIGHBOURS: [&str; 4] = ["nothing", "queries", "a loop without memory", "a loop that reads 256 MB"];
/// Records that are appended beside one neighbour before the next one's turn.
const TURN: u64 = 500_000;

/// How fast records are appended beside each neighbour. They take short turns in one log, so that the drift of the machine's speed meets all of them.
fn beside(pool: &[u8], queries: &[(&str, String)], records: u64, runs: usize) {
    let queries: Vec<_> = queries.iter().map(|(_, text)| expression(text)).collect();
    let other: Vec<u64> = (0..32 << 20).collect();
    let turns = records / 2 / TURN / NEIGHBOURS.len() as u64 * NEIGHBOURS.len() as u64;
    let mut took = [const { Vec::new() }; NEIGHBOURS.len()];
    for _ in 0..runs {
        let (log, _) = traffic::log(records, 4, 0);
        append(&log, pool, records - turns * TURN, 32);
        let (wanted, there) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut count = 0;
                loop {
                    let neighbour = wanted.load(Ordering::Acquire);
                    there.store(neighbour, Ordering::Release);
                    match neighbour {
                        0 => thread::sleep(Duration::from_millis(1)),
                        1 => {
                            let query = &queries[count % queries.len()];
                            black_box(log.snapshot().query().matching(query).matched().count());
                            count += 1;
                        }
                        2 => {
                            black_box((0..100_000u64).fold(0, |x, n| black_box((x * 5) ^ n)));
                        }
                        3 => {
                            let part = &other[(count * 65_536) % other.len()..][..65_536];
                            black_box(part.iter().step_by(8).sum::<u64>());
                            count += 1;
                        }
                        _ => break,
                    }
                }
            });
            for turn in 0..turns as usize {
                let neighbour = turn % NEIGHBOURS.len();
                wanted.store(neighbour, Ordering::Release);
                while there.load(Ordering::Acquire) != neighbour {
                    std::hint::spin_loop();
                }
                let (start, cpu) = (Instant::now(), thread_cpu());
                append(&log, pool, TURN, 32);
                let each = |seconds: f64| seconds / TURN as f64 * 1e9;
                took[neighbour].push((each(start.elapsed().as_secs_f64()), each(thread_cpu() - cpu)));
            }
            wanted.store(NEIGHBOURS.len(), Ordering::Release);
        });
    }
    println!("nanoseconds for a record that is appended with 4 indexes, medians of {} turns", took[0].len());
    println!("{:32} {:>9} {:>9} {:>9}", "beside", "by clock", "CPU time", "cost (%)");
    let middle = |mut times: Vec<f64>| {
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let mut alone = None;
    for (name, took) in NEIGHBOURS.iter().zip(&took) {
        let (clock, cpu) = took.iter().copied().unzip();
        let (clock, cpu) = (middle(clock), middle(cpu));
        let alone = *alone.get_or_insert(clock);
        println!("{name:32} {clock:>9.2} {cpu:>9.2} {:>9.1}", (clock / alone - 1.0) * 100.0);
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
