//! The cost of recording to a folder, and the delay of its acknowledgements. The folder is made in `TMPDIR`,
//! and removed afterwards.

use crate::traffic::{Flows, SIZE, pool, schema};
use crate::{median, thread_cpu};
use hdrhistogram::Histogram;
use queuescope_archive::{Durability, Full, Recorder, RecorderOptions, Retention, VOLUME_RECORDS};
use queuescope_log::{Log, Memory, Options};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Records that are appended at once where many are.
const BATCH: usize = 100;
/// Records a second that are offered.
const PACE: f64 = 5e6;

/// A folder for temporary files, which goes with it.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("multilog-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn options(durability: Durability, archive: bool) -> RecorderOptions {
    RecorderOptions {
        memory: 2 << 30,
        full: Full::Wait,
        durability,
        journal_records: VOLUME_RECORDS,
        archive,
        indexes: Vec::new(),
        keep: Retention::default(),
    }
}

pub fn recorder(path: &Path, options: RecorderOptions) -> Recorder {
    Recorder::open(path, schema(), options).unwrap_or_else(|error| panic!("{error}")).0
}

pub fn measure(records: u64, runs: usize) {
    relaxed(records, runs);
    println!();
    println!("synced, batches of 1000: million/s acknowledged, and how long an acknowledgement takes in ms");
    println!("{:>8} {:>12} {:>8} {:>8} {:>8}", "writers", "million/s", "p50", "p99", "longest");
    for writers in [1, 4, 16, 32] {
        synced(writers, 1000, records / 4);
    }
    println!("synced, one record at a time, and batches of 32");
    for (writers, batch) in [(1, 1), (1, 32), (16, 1), (16, 32)] {
        synced(writers, batch, (batch * writers) as u64 * 300);
    }
}

/// How much longer appending takes where records are written as they come.
fn relaxed(records: u64, runs: usize) {
    let pool = pool(Flows::Few);
    println!("relaxed, {records} records in batches of {BATCH}, {:.0} million/s offered", PACE / 1e6);
    println!("{:24} {:>22} {:>14}", "", "ns of CPU a record", "million/s");
    let mut first = None;
    for (name, to_disk, archive) in
        [("memory", false, false), ("journals", true, false), ("journals and volumes", true, true)]
    {
        let mut rates = Vec::new();
        let nanoseconds = median(runs, || {
            let folder = Folder::new("relaxed");
            let (spent, rate) = if to_disk {
                let recorder = recorder(&folder.0, options(Durability::Relaxed, archive));
                paced(&pool, records, |batch| assert_eq!(recorder.append(batch).expect("there is room").refused, 0))
            } else {
                let options = Options { records, memory: Memory::Lazy };
                let log = Log::new(schema().clone(), options).unwrap_or_else(|error| panic!("{error}"));
                paced(&pool, records, |batch| assert_eq!(log.append(batch).refused, 0))
            };
            rates.push(rate);
            spent
        });
        let before = *first.get_or_insert(nanoseconds);
        let share = format!("{nanoseconds:.1} ({:+.0} %)", 100.0 * (nanoseconds / before - 1.0));
        rates.sort_unstable_by(f64::total_cmp);
        println!("{name:24} {share:>22} {:>14.2}", rates[runs / 2]);
    }
}

/// Appends at a pace: nanoseconds of this thread's CPU time a record, and million records a second.
fn paced(pool: &[u8], records: u64, append: impl Fn(&[u8])) -> (f64, f64) {
    let (start, mut spent, mut done) = (Instant::now(), 0.0, 0u64);
    let mut batches = pool.chunks_exact(BATCH * SIZE).cycle();
    while done < records {
        // A millisecond's worth at once.
        let due = (start.elapsed().as_secs_f64() * PACE) as u64;
        let cpu = thread_cpu();
        while done < due.min(records) {
            append(batches.next().unwrap_or_default());
            done += BATCH as u64;
        }
        spent += thread_cpu() - cpu;
        thread::sleep(Duration::from_millis(1));
    }
    (spent * 1e9 / done as f64, done as f64 / start.elapsed().as_secs_f64() / 1e6)
}

/// Many writers, each of which waits until its records are on disk.
fn synced(writers: usize, batch: usize, records: u64) {
    let (pool, folder) = (pool(Flows::Few), Folder::new("synced"));
    let recorder = recorder(&folder.0, options(Durability::Synced, false));
    let left = AtomicU64::new(records / batch as u64);
    let start = Instant::now();
    let histograms: Vec<_> = thread::scope(|scope| {
        let each = |writer: usize| {
            let (recorder, pool, left) = (&recorder, &pool, &left);
            scope.spawn(move || {
                let mut histogram = Histogram::<u64>::new(3).expect("three digits");
                for records in pool.chunks_exact(batch * SIZE).cycle().skip(writer) {
                    if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err() {
                        break;
                    }
                    let start = Instant::now();
                    assert_eq!(recorder.append(records).expect("there is room").refused, 0);
                    histogram += start.elapsed().as_micros() as u64;
                }
                histogram
            })
        };
        let threads: Vec<_> = (0..writers).map(each).collect();
        threads.into_iter().map(|thread| thread.join().expect("nothing fails")).collect()
    });
    let rate = (records / batch as u64 * batch as u64) as f64 / start.elapsed().as_secs_f64() / 1e6;
    let mut all = Histogram::<u64>::new(3).expect("three digits");
    histograms.iter().for_each(|histogram| all.add(histogram).expect("they have the same digits"));
    let at = |quantile| all.value_at_quantile(quantile) as f64 / 1e3;
    println!("{writers:>8} {rate:>12.4} {:>8.1} {:>8.1} {:>8.1}", at(0.5), at(0.99), all.max() as f64 / 1e3);
}
