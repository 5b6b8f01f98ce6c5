//! How fast the log takes records: `multilog [RECORDS [RUNS]]`.
//!
//! Headers of 54 bytes, addresses of a /24 and ports of ten values, or a million flows; one at a time and in batches of
//! 32; CPU time of all threads. Each row is a median of the runs, and its ratio to the limit: a loop that reserves with
//! a fetch-and-add and copies the same records into memory that is there, in the same run.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads clocks and arguments")]

use queuescope_log::{Dnf, Log, Memory, Options, Schema, Scope};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::RngCore;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

const SIZE: usize = 54;
const POOL: usize = 1 << 20;
const BATCH: usize = 32;

fn main() {
    let number = |at| std::env::args().nth(at).and_then(|text| text.parse().ok());
    let (records, runs) = (number(1).unwrap_or(20_000_000), number(2).unwrap_or(5) as usize);
    for (name, flows) in [("a /24, ten ports", None), ("a million flows", Some(1 << 20))] {
        println!("{name}");
        let pool = pool(flows);
        let limit = median(runs, || limit(&pool, records));
        println!("  {:38} {:>8.1}", "reserve and copy, batches of 32", limit);
        for (indexes, filters) in [(0, 0), (1, 0), (2, 0), (5, 0), (0, 1), (0, 16), (0, 64), (2, 16), (5, 64)] {
            for batch in [1, BATCH] {
                let rate = median(runs, || ours(&pool, records, batch, indexes, filters));
                let name = format!("{indexes} indexes, {filters} filters, {batch} at a time");
                println!("  {name:38} {rate:>8.1} {:>6.2}", rate / limit);
            }
        }
    }
}

fn pool(flows: Option<usize>) -> Vec<u8> {
    let mut random = Pcg64::new(1, 2);
    let schema = Schema::ethernet_tcp();
    let mut pool = vec![0; POOL * SIZE];
    let mut set = |record: &mut [u8], name: &str, key: u64| {
        let id = schema.find(name).unwrap_or_else(|| panic!("no {name}"));
        schema.reader(id).write(record, u128::from(key));
    };
    for (at, record) in pool.chunks_exact_mut(SIZE).enumerate() {
        let mut below = |n: u64| random.next_u64() % n;
        if flows.is_some() {
            set(record, "src_ip", below(1 << 32));
            set(record, "dst_ip", below(1 << 32));
            set(record, "src_port", below(1 << 16));
            set(record, "dst_port", below(1 << 16));
        } else {
            set(record, "src_ip", 0x0a00_0000 | below(256));
            set(record, "dst_ip", 0x0a00_0000 | below(256));
            set(record, "src_port", 8000 + 17 * below(10));
            set(record, "dst_port", 8000 + 17 * below(10));
        }
        set(record, "tcp_seq", (at * 10) as u64);
        set(record, "ethertype", 0x800);
        set(record, "protocol", 6);
    }
    pool
}

/// Seconds of CPU time of this process.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn median(runs: usize, mut run: impl FnMut() -> f64) -> f64 {
    let mut rates: Vec<_> = (0..runs).map(|_| run()).collect();
    rates.sort_unstable_by(f64::total_cmp);
    rates[runs / 2]
}

fn limit(pool: &[u8], records: u64) -> f64 {
    let mut memory = vec![1u8; records as usize * SIZE];
    let next = AtomicU64::new(0);
    let before = cpu();
    let mut done = 0;
    while done < records {
        for batch in pool.chunks_exact(BATCH * SIZE) {
            if done >= records {
                break;
            }
            let at = next.fetch_add(BATCH as u64, Ordering::Relaxed) as usize * SIZE;
            memory[at..at + BATCH * SIZE].copy_from_slice(batch);
            done += BATCH as u64;
        }
    }
    let took = cpu() - before;
    black_box(&memory);
    records as f64 / took / 1e6
}

fn ours(pool: &[u8], records: u64, batch: usize, indexes: usize, filters: usize) -> f64 {
    let schema = Schema::ethernet_tcp();
    let log =
        Log::new(schema.clone(), Options { records, memory: Memory::Prefaulted }).unwrap_or_else(|e| panic!("{e}"));
    for name in ["src_ip", "dst_ip", "src_port", "dst_port", "tcp_seq"].iter().take(indexes) {
        log.add_index(schema.find(name).unwrap_or_else(|| panic!("no {name}")));
    }
    for n in 0..filters {
        log.add_filter(filter(schema, n));
    }
    let before = cpu();
    let mut done = 0;
    while done < records {
        for batch in pool.chunks_exact(batch * SIZE) {
            if done >= records {
                break;
            }
            done += (batch.len() / SIZE) as u64;
            black_box(log.append(batch));
        }
    }
    let took = cpu() - before;
    assert_eq!(log.snapshot().len(), records);
    records as f64 / took / 1e6
}

/// The paper's templates.
fn filter(schema: &Schema, n: usize) -> Dnf {
    let (a, b, port) = (n % 256, (n * 7 + 3) % 256, 8000 + 17 * (n % 10));
    let text = match n % 4 {
        0 => format!("src_ip == 10.0.0.{a} and dst_ip == 10.0.0.{b}"),
        1 => format!("dst_ip == 10.0.0.{a}"),
        2 => format!("src_ip == 10.0.0.{a} and dst_port == {port}"),
        _ => format!("src_ip == 10.0.0.{a} and src_port == {port} and dst_ip == 10.0.0.{b} and dst_port == {port}"),
    };
    let scope = Scope::new(schema);
    scope.parse(&text).unwrap_or_else(|e| panic!("{e}")).dnf(&scope).unwrap_or_else(|e| panic!("{e}"))
}
