//! Cuts through the logs of many hosts, which are processes on this machine: `cuts hosts [MOST [CUTS]]`, `cuts ingest [SECONDS]`,
//! `cuts alerts [ALERTS]` and `cuts diagnosis [MOST [ROUNDS]]`.
//!
//! `hosts` alternates cuts with rounds of empty messages over the same streams: a cut is two messages to each agent and two replies, so
//! two rounds are compared with it. `ingest` has one agent that appends as fast as it can, with a cut each millisecond and without.
//! `alerts` is the time from a trigger to the coordinator, and `diagnosis` that of a new connection, a cut, and a question about its records.
//! Folders are in `TMPDIR`: with one in memory the disk does not count.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads clocks and arguments")]

mod agent;
mod alerts;
mod diagnosis;
mod hosts;
mod ingest;

use rustix::time::{ClockId, clock_gettime};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| arguments.get(at).map_or(Some(default), |text| text.parse().ok());
    match (arguments.first().map_or("", String::as_str), number(1, 128), number(2, 1_000)) {
        ("hosts", Some(most), Some(cuts)) => hosts::measure(most as usize, cuts as usize),
        ("ingest", ..) => ingest::measure(number(1, 10).unwrap_or(10)),
        ("alerts", Some(alerts), _) => alerts::measure(if arguments.len() > 1 { alerts as usize } else { 1_000 }),
        ("diagnosis", Some(most), rounds) => {
            diagnosis::measure(most as usize, rounds.filter(|_| arguments.len() > 2).unwrap_or(100) as usize);
        }
        ("agent", ..) => agent::run(&arguments[1..]),
        _ => eprintln!("cuts hosts [MOST [CUTS]] | ingest [SECONDS] | alerts [ALERTS] | diagnosis [MOST [ROUNDS]]"),
    }
}

/// Seconds of CPU time of all threads of this process.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
