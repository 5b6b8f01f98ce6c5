//! Headers, and filters about them.

use queuescope_log::{AttributeId, Dnf, FilterId, Function, Log, Memory, Options, Schema, Scope};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::RngCore;

/// Bytes of a header.
pub const SIZE: usize = 54;
/// Number of headers that are made before the measurement, and then reused.
const POOL: usize = 1 << 20;
/// Attributes that are indexed, in this order.
const INDEXED: [&str; 5] = ["src_ip", "dst_ip", "src_port", "dst_port", "tcp_seq"];

/// Whose packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flows {
    /// Addresses of a /24, ports of ten values.
    Few,
    /// A million pairs of random addresses and ports.
    Million,
}

pub fn schema() -> &'static Schema {
    Schema::ethernet_tcp()
}

pub fn attribute(name: &str) -> AttributeId {
    schema().find(name).unwrap_or_else(|| panic!("no {name}"))
}

pub fn pool(flows: Flows) -> Vec<u8> {
    let mut random = Pcg64::new(1, 2);
    let mut pool = vec![0; POOL * SIZE];
    let set = |record: &mut [u8], name: &str, key: u64| schema().reader(attribute(name)).write(record, u128::from(key));
    for (at, record) in pool.chunks_exact_mut(SIZE).enumerate() {
        for name in ["src_ip", "dst_ip"] {
            let key = random.next_u64();
            set(record, name, if flows == Flows::Few { 0x0a00_0000 | (key % 256) } else { key >> 32 });
        }
        for name in ["src_port", "dst_port"] {
            let key = random.next_u64();
            set(record, name, if flows == Flows::Few { 8000 + 17 * (key % 10) } else { key >> 48 });
        }
        set(record, "tcp_seq", (at * 10) as u64);
        set(record, "ethertype", 0x0800);
        set(record, "protocol", 6);
    }
    pool
}

/// A log with a number of indexes and filters, and with allocated memory.
pub fn log(records: u64, indexes: usize, filters: usize) -> (Log, Vec<FilterId>) {
    let log = Log::new(schema().clone(), Options { records, memory: Memory::Prefaulted });
    let log = log.unwrap_or_else(|error| panic!("{error}"));
    for name in &INDEXED[..indexes] {
        log.add_index(attribute(name));
    }
    let filters = (0..filters).map(|n| log.add_filter(expression(&filter(n)))).collect();
    (log, filters)
}

/// Adds a COUNT for each filter.
pub fn count_all(log: &Log, filters: &[FilterId]) -> Vec<queuescope_log::AggregateId> {
    let named = filters.iter().enumerate().map(|(n, filter)| {
        log.add_aggregate(&[&format!("N{n}")], Some(*filter), &Function::Count).expect("the name is free")
    });
    named.collect()
}

/// Appends a number of records in batches.
pub fn append(log: &Log, pool: &[u8], records: u64, batch: usize) {
    append_from(log, pool, 0, records, batch);
}

/// The same, from the `start`th of the pool's records on.
pub fn append_from(log: &Log, pool: &[u8], start: u64, records: u64, batch: usize) {
    let start = start as usize % POOL / batch * batch * SIZE;
    let mut left = records;
    while left > 0 {
        for batch in pool[start..].chunks_exact(batch * SIZE).chain(pool[..start].chunks_exact(batch * SIZE)) {
            let count = ((batch.len() / SIZE) as u64).min(left);
            if count == 0 {
                return;
            }
            left -= count;
            assert_eq!(log.append(&batch[..count as usize * SIZE]).refused, 0);
        }
    }
}

pub fn expression(text: &str) -> Dnf {
    let scope = Scope::new(schema());
    let expr = scope.parse(text).unwrap_or_else(|error| panic!("{error}"));
    expr.dnf(&scope).unwrap_or_else(|error| panic!("{error}"))
}

/// The paper's templates of figure 8, for the `n`th filter.
fn filter(n: usize) -> String {
    let (a, b, port) = (n % 256, (n * 7 + 3) % 256, 8000 + 17 * (n % 10));
    match n % 4 {
        0 => format!("src_ip == 10.0.0.{a} and dst_ip == 10.0.0.{b}"),
        1 => format!("dst_ip == 10.0.0.{a}"),
        2 => format!("src_ip == 10.0.0.{a} and dst_port == {port}"),
        _ => format!("src_ip == 10.0.0.{a} and src_port == {port} and dst_ip == 10.0.0.{b} and dst_port == {port}"),
    }
}
