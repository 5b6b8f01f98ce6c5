//! Two writers beside one, with nothing derived from the records, by the number of records in a batch. The two take turns.

use crate::ingest::by_clock;
use crate::median_of;
use crate::traffic::{self, Flows, pool};

pub fn measure(records: u64, runs: usize) {
    println!("million records a second by the clock, {records} records of a million flows, medians of {runs}");
    println!("{:>7} {:>9} {:>9} {:>6}", "batch", "1 writer", "2 writers", "ratio");
    let pool = pool(Flows::Million);
    for batch in [1, 8, 32, 128, 512, 1024] {
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..runs {
            for (rates, writers) in rates.iter_mut().zip([1, 2]) {
                let (log, _) = traffic::log(records, 0, 0);
                rates.push(by_clock(&log, &pool, records, writers, batch));
            }
        }
        let [one, two] = rates.map(median_of);
        println!("{batch:>7} {one:>9.1} {two:>9.1} {:>6.2}", two / one);
    }
}
