//! How right the probe of a Linux interface is, and what it costs: `probe right|cheap|cost|throughput|owners [SECONDS [ROUNDS]]`, as root.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads clocks, files and arguments")]

#[cfg(target_os = "linux")]
mod captured;
#[cfg(target_os = "linux")]
mod cheap;
#[cfg(target_os = "linux")]
mod empty;
#[cfg(target_os = "linux")]
mod owners;
#[cfg(target_os = "linux")]
mod right;
#[cfg(target_os = "linux")]
mod road;
#[cfg(target_os = "linux")]
mod truth;

use anyhow::{Result, bail};
use std::time::Duration;

const USAGE: &str = "probe right|cheap|cost|throughput|owners [SECONDS [ROUNDS]]";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| arguments.get(at).map_or(Ok(default), |text| text.parse());
    measure(arguments.first().map_or("", String::as_str), number(1, 3)?, number(2, 7)?)
}

#[cfg(target_os = "linux")]
fn measure(what: &str, seconds: u64, rounds: u64) -> Result<()> {
    match what {
        "right" => right::measure(seconds),
        "cheap" => cheap::measure(seconds, rounds),
        "cost" => cheap::costs(Duration::from_secs(seconds), rounds),
        "throughput" => cheap::throughput(Duration::from_secs(seconds), rounds),
        "owners" => owners::measure(rounds),
        _ => bail!(USAGE),
    }
}

#[cfg(not(target_os = "linux"))]
fn measure(_: &str, _: u64, _: u64) -> Result<()> {
    bail!("{USAGE}, on Linux")
}
