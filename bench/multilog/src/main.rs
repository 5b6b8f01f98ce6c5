//! How fast the log is: `multilog ingest|writers|line|latency|triggers|queries|checks|disk|archive [RECORDS [RUNS]]`. `multilog folder PATH RECORDS`
//! records a folder to query.
//!
//! Headers of 54 bytes, addresses of a /24 and ports of ten values, or a million flows.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads clocks and arguments")]

mod archive;
mod checks;
mod disk;
mod folder;
mod ingest;
mod latency;
mod line;
mod queries;
mod traffic;
mod triggers;
mod writers;

use rustix::time::{ClockId, clock_gettime};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let what = arguments.first().map_or("", String::as_str);
    if let ("folder", Some(path), Some(Ok(records))) =
        (what, arguments.get(1), arguments.get(2).map(|text| text.parse()))
    {
        return folder::write(path.as_ref(), records);
    }
    let number = |at: usize, default: u64| arguments.get(at).map_or(Some(default), |text| text.parse().ok());
    let measure: fn(u64, usize) = match what {
        "ingest" => ingest::measure,
        "writers" => writers::measure,
        "line" => line::measure,
        "latency" => latency::measure,
        "triggers" => triggers::measure,
        "queries" => queries::measure,
        "checks" => checks::measure,
        "disk" => disk::measure,
        "archive" => archive::measure,
        _ => {
            return eprintln!(
                "multilog ingest|writers|line|latency|triggers|queries|checks|disk|archive [RECORDS [RUNS]]"
            );
        }
    };
    match (number(1, if what == "queries" { 50_000_000 } else { 20_000_000 }), number(2, 5)) {
        (Some(records), Some(runs @ 1..)) => measure(records, runs as usize),
        _ => eprintln!("RECORDS and RUNS are numbers"),
    }
}

/// Seconds of CPU time of all threads of this process.
fn cpu() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

/// Seconds of CPU time of this thread.
fn thread_cpu() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn median(runs: usize, mut run: impl FnMut() -> f64) -> f64 {
    median_of((0..runs).map(|_| run()).collect())
}

fn median_of(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
