//! One capture behind several disciplines, as text: a table, and below it the flows with drops or marks.

use super::{BOLD, DIM, HOT, field, notes, plain};
use crate::format::{bytes, count, duration, percent, rate};
use crate::model::{AffectedFlow, AqmComparison, AqmReplay};
use std::io::{self, Write};

/// The most flows that are listed for each discipline.
const PAYERS: usize = 5;
/// The minimum width of the column of names, and the width of the other columns.
const NAME: usize = 12;
const VALUE: usize = 10;

/// Writes a comparison as text.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write(comparison: &AqmComparison, out: &mut impl Write) -> io::Result<()> {
    let AqmComparison { setup, replays } = comparison;
    writeln!(out, "{BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}", setup.input.name, setup.input.format)?;
    let (packets, size, time) = (count(setup.packets), bytes(setup.bytes), duration(setup.duration_ns));
    field(out, "input", &format!("{packets} packets, {size} in {time}"))?;
    let limit = if setup.limit == "none" { "without a limit".to_owned() } else { format!("of {}", setup.limit) };
    let speedup = if setup.speedup == "1" { String::new() } else { format!(", sent {}x faster", setup.speedup) };
    field(out, "queue", &format!("each {limit} at {}{speedup}", rate(setup.rate_bps as f64)))?;
    let width = replays.iter().map(|replay| plain(&replay.aqm).chars().count()).max().unwrap_or(0).max(NAME);
    write!(out, "\n{BOLD}{:width$}", "aqm")?;
    for head in ["drops", "marks", "p50", "p90", "p99", "max", "busy"] {
        write!(out, " {head:>VALUE$}")?;
    }
    writeln!(out, "{BOLD:#}")?;
    replays.iter().try_for_each(|replay| row(replay, width, out))?;
    for replay in replays {
        affected(replay, &setup.granularity, out)?;
    }
    writeln!(out)?;
    notes(&setup.skipped, setup.input.damage.as_deref(), out)
}

fn row(replay: &AqmReplay, width: usize, out: &mut impl Write) -> io::Result<()> {
    let (drops, marks) = (replay.drops.values().sum(), replay.marks.values().sum());
    write!(out, "{:width$} {:>VALUE$} {:>VALUE$}", plain(&replay.aqm), count(drops), count(marks))?;
    for (_, delay) in &replay.delay_percentiles {
        write!(out, " {:>VALUE$}", duration(*delay))?;
    }
    writeln!(out, " {:>VALUE$}", percent(replay.utilisation))
}

fn affected(replay: &AqmReplay, granularity: &str, out: &mut impl Write) -> io::Result<()> {
    let name = plain(&replay.aqm);
    if replay.affected.is_empty() {
        return writeln!(out, "\n{BOLD}{name}{BOLD:#}: no flow had drops or marks");
    }
    let flows = match replay.flows_affected {
        1 => "1 flow had drops or marks".to_owned(),
        paying => format!("{} flows had drops or marks", count(paying)),
    };
    let most = if replay.flows_affected > PAYERS as u64 { "; those with the most" } else { "" };
    writeln!(out, "\n{BOLD}{name}{BOLD:#}: {flows} by {granularity}{most}")?;
    for AffectedFlow { flow, packets, dropped, marked, dropped_share, longest_delay_ns } in
        replay.affected.iter().take(PAYERS)
    {
        writeln!(
            out,
            "  {HOT}{:>9}{HOT:#} dropped ({} of its {}), {} marked, waited up to {}  {}",
            count(*dropped),
            percent(*dropped_share),
            count(*packets),
            count(*marked),
            duration(*longest_delay_ns),
            plain(flow)
        )?;
    }
    Ok(())
}
