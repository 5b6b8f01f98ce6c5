//! Released records give their memory back. The test has a process of its own, because it measures all memory of the process.

#![allow(clippy::disallowed_methods, reason = "a test reads the system's statistics of its process")]

use queuescope_log::{Function, Log, Memory, Options, Schema};

/// The least number of records that are kept.
const KEPT: u64 = 2 * Log::BLOCK;
const BATCH: u64 = 4096;

/// Resident memory of the process in bytes, if the system reports it.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    // Pages are 4 KiB or more.
    Some(text.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
}

#[test]
fn memory_stays_the_same_however_much_comes() {
    let schema = Schema::ethernet_tcp();
    let size = schema.record_size() as u64;
    let options = Options { records: 1 << 30, memory: Memory::Lazy };
    let log = Log::new(schema.clone(), options).unwrap_or_else(|error| panic!("{error}"));
    let scope = log.scope();
    let dnf = scope.parse("src_port < 30000").expect("it is right").dnf(&scope).expect("it is simple");
    let filter = log.add_filter(dnf);
    let port = schema.find("src_port").expect("it is there");
    log.add_index(port);
    log.add_aggregate(&["SUM"], Some(filter), &Function::Sum(port)).expect("the name is free");
    let (held, before) = (log.snapshot(), resident());
    let reader = schema.reader(port);
    let mut batch = vec![0; (BATCH * size) as usize];
    let mut append = |count: u64| {
        for start in (0..count).step_by(BATCH as usize) {
            for (row, number) in batch.chunks_exact_mut(size as usize).zip(start..) {
                reader.write(row, u128::from(number * 40_503 % 65_536));
            }
            assert_eq!(log.append(&batch).refused, 0);
            log.release(log.snapshot().len().saturating_sub(KEPT));
        }
    };
    // Records that a snapshot holds stay.
    append(3 * KEPT);
    let all = log.snapshot().usage();
    assert_eq!(all.records, 3 * KEPT * size);
    drop(held);
    assert_eq!(log.release(0), 2 * KEPT);
    let few = log.snapshot().usage();
    assert_eq!(few.records, KEPT * size);
    assert!(few.aggregates + 10_000 < all.aggregates, "{few:?} of {all:?}");
    assert!(few.indexes < all.indexes / 2 && few.filters < all.filters * 2 / 3, "{few:?} of {all:?}");
    // Ten times as much; the remaining room is for the block being written, and for parts of large pages.
    append(10 * KEPT);
    let much = log.snapshot().usage();
    assert!(much.total() < few.total() * 2, "{much:?} after {few:?}");
    if cfg!(target_os = "linux")
        && let (Some(before), Some(after)) = (before, resident())
    {
        let most = (KEPT + Log::BLOCK) * size + (16 << 20);
        assert!(after.saturating_sub(before) < most, "{before} bytes became {after}, of {} in all", 13 * KEPT * size);
    }
}
