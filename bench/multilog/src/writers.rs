//! Two writers beside one, with nothing derived from the records, by the number of records in a batch. The two take turns.
//!
//! Beside them a bare loop of what any log in one total order has to do: reserve with a fetch-and-add, copy, store one word that
//! completes the batch. Its variants show what the second processor costs: the counter alone; records that begin and end in the
//! middle of cache lines, or in lines of their own; and words of neighbouring positions in one cache line, or in different ones.

use crate::ingest::by_clock;
use crate::median_of;
use crate::traffic::{self, Flows, pool};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// Words that complete batches, reused in turn as a log does.
const WORDS: usize = 1 << 17;
/// Words of a cache line.
const LINE: usize = 8;

pub fn measure(records: u64, runs: usize) {
    println!("million records a second by the clock, {records} records of a million flows, medians of {runs}");
    heading("");
    let pool = pool(Flows::Million);
    for batch in [1, 8, 32, 128, 512, 1024] {
        row("", batch, runs, |writers| {
            let (log, _) = traffic::log(records, 0, 0);
            by_clock(&log, &pool, records, writers, batch as usize)
        });
    }
    println!("\na loop without a log");
    heading("loop");
    for batch in [1, 8, 32] {
        row("counter alone", batch, runs, |writers| {
            let counter = AtomicU64::new(0);
            timed(records, writers, batch, || {
                black_box(counter.fetch_add(batch, Ordering::Relaxed));
            })
        });
        for (name, words, apart) in [
            ("records of 56 bytes", 7, false),
            ("the same, words apart", 7, true),
            ("records of 64 bytes", 8, false),
            ("the same, words apart", 8, true),
        ] {
            let bare = Bare::new(records, words, apart);
            row(name, batch, runs, |writers| timed(records, writers, batch, || bare.append(batch)));
        }
    }
}

fn heading(name: &str) {
    println!("{name:22} {:>7} {:>9} {:>9} {:>6}", "batch", "1 writer", "2 writers", "ratio");
}

fn row(name: &str, batch: u64, runs: usize, rate: impl Fn(u64) -> f64) {
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        for (rates, writers) in rates.iter_mut().zip([1, 2]) {
            rates.push(rate(writers));
        }
    }
    let [one, two] = rates.map(median_of);
    println!("{name:22} {batch:>7} {one:>9.1} {two:>9.1} {:>6.2}", two / one);
}

/// Million records a second of writers that append batches in a loop.
fn timed(records: u64, writers: u64, batch: u64, append: impl Fn() + Sync) -> f64 {
    let each = records / writers / batch;
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..writers {
            scope.spawn(|| (0..each).for_each(|_| append()));
        }
    });
    (each * writers * batch) as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// What a log does for a batch and no more.
struct Bare {
    counter: AtomicU64,
    /// A power of two of records; later ones are written over the first.
    records: u64,
    /// Words of a record.
    width: usize,
    rows: Box<[Line]>,
    ends: Box<[Line]>,
    /// Whether the words that complete neighbouring positions are in different lines.
    apart: bool,
}

/// A cache line.
#[repr(align(64))]
struct Line([AtomicU64; LINE]);

impl Bare {
    fn new(records: u64, width: usize, apart: bool) -> Self {
        let records = records.next_power_of_two();
        // The longest batch may begin at the last record.
        let rows = lines((records as usize + 32) * width);
        Self { counter: AtomicU64::new(0), records, width, rows, ends: lines(WORDS), apart }
    }

    fn append(&self, batch: u64) {
        let position = self.counter.fetch_add(batch, Ordering::Relaxed);
        let first = (position & (self.records - 1)) as usize * self.width;
        for word in first..first + batch as usize * self.width {
            self.rows[word / LINE].0[word % LINE].store(position, Ordering::Relaxed);
        }
        let place = position as usize % WORDS;
        let place = if self.apart { place % LINE * (WORDS / LINE) + place / LINE } else { place };
        self.ends[place / LINE].0[place % LINE].store(position + batch, Ordering::Release);
    }
}

/// Lines for a number of words, in memory already.
fn lines(words: usize) -> Box<[Line]> {
    (0..words.div_ceil(LINE)).map(|_| Line(std::array::from_fn(|_| AtomicU64::new(1)))).collect()
}
