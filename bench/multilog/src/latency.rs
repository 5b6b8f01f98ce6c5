//! How long appending one record takes, without indexes and filters.

use crate::traffic::{self, Flows, SIZE, pool};
use hdrhistogram::Histogram;
use quanta::Clock;

/// Records of a block.
const BLOCK: u64 = 1 << 16;

pub fn measure(records: u64, runs: usize) {
    let pool = pool(Flows::Few);
    let clock = Clock::new();
    println!("nanoseconds, of {records} appends of one record; the clock's own time is taken out");
    println!(
        "{:>6} {:>6} {:>6} {:>6} {:>8} {:>10} {:>10} {:>24}",
        "run", "clock", "p50", "p99", "p99.99", "p99.9999", "longest", "longest that begins 64 Ki"
    );
    for run in 0..runs {
        let own = own(&clock);
        let (log, _) = traffic::log(records, 0, 0);
        let mut histogram = Histogram::<u64>::new(3).expect("three digits");
        let (mut left, mut longest_first) = (records, 0);
        'all: loop {
            for record in pool.chunks_exact(SIZE) {
                if left == 0 {
                    break 'all;
                }
                left -= 1;
                let start = clock.raw();
                let appended = log.append(record);
                let end = clock.raw();
                assert_eq!(appended.refused, 0);
                let took = clock.delta_as_nanos(start, end).saturating_sub(own);
                if appended.positions.start % BLOCK == 0 {
                    longest_first = longest_first.max(took);
                }
                histogram += took;
            }
        }
        let at = |quantile| histogram.value_at_quantile(quantile);
        println!(
            "{run:>6} {own:>6} {:>6} {:>6} {:>8} {:>10} {:>10} {longest_first:>24}",
            at(0.5),
            at(0.99),
            at(0.9999),
            at(0.999_999),
            histogram.max()
        );
    }
}

/// The median time between two readings of the clock.
fn own(clock: &Clock) -> u64 {
    let mut apart: Vec<_> = (0..10_001).map(|_| clock.delta_as_nanos(clock.raw(), clock.raw())).collect();
    apart.sort_unstable();
    apart[apart.len() / 2]
}
