//! The results of a sweep, as text: a line for each combination of values, below it the half-widths of confidence
//! intervals.

use super::{BOLD, DIM, NOTE, field, notes, plain};
use crate::format::{count, duration, percent, rate};
use crate::model::{SWEEP_FIGURES, Sweep, SweepFigures, SweepMean, SweepRow};
use std::io::{self, Write};

/// Writes a sweep as text. The values of the parameters are last on their lines.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write(sweep: &Sweep, out: &mut impl Write) -> io::Result<()> {
    head(sweep, out)?;
    let widths = widths(sweep);
    // Few links lose packets: otherwise, omit the column.
    let is_lossy = sweep.rows.iter().any(|row| row.figures.loss_rate.is_some_and(|rate| rate.mean > 0.0));
    let is_shown = |column: &&Column| !column.completion && (is_lossy || column.heading != LOST);
    let of_queue: Vec<_> = COLUMNS.iter().filter(is_shown).collect();
    let of_flows: Vec<_> = COLUMNS.iter().filter(|column| column.completion).collect();
    table(sweep, &of_queue, &widths, out)?;
    if sweep.rows.iter().any(|row| row.figures.completion_mean_ns.is_some()) {
        writeln!(out, "\n{BOLD}Flow completion times{BOLD:#}")?;
        table(sweep, &of_flows, &widths, out)?;
    }
    if !sweep.skipped.is_empty() {
        writeln!(out)?;
    }
    notes(&sweep.skipped, None, out)
}

fn head(sweep: &Sweep, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{BOLD}{}{BOLD:#}  {DIM}sweep{DIM:#}", plain(&sweep.name))?;
    if let Some(about) = &sweep.about {
        field(out, "about", &plain(about))?;
    }
    let mut name = "swept";
    for parameter in &sweep.parameters {
        let values: Vec<_> = parameter.values.iter().map(|value| plain(value)).collect();
        field(out, name, &format!("{}: {}", plain(&parameter.path), shortened(&values)))?;
        name = "";
    }
    let seeds = match sweep.seeds {
        1 => format!("seed {}", sweep.seed),
        seeds => format!("{} seeds from {} on", count(u64::from(seeds)), sweep.seed),
    };
    let here = if sweep.cells_here == sweep.cells {
        String::new()
    } else {
        format!(", {NOTE}of which {} are here{NOTE:#}", count(sweep.cells_here))
    };
    field(out, "cells", &format!("{}{here}; {seeds}", count(sweep.cells)))?;
    if sweep.seeds > 1 {
        field(out, "", "means over the seeds, ± half of the 95 % confidence interval (Student's t)")?;
    }
    let mut meters: Vec<_> = sweep.rows.iter().map(|row| plain(&row.meter)).collect();
    meters.sort_unstable();
    meters.dedup();
    if !meters.is_empty() {
        field(out, "queue", &format!("that of {}; goodput and Jain's index are of all flows", meters.join(", ")))?;
    }
    writeln!(out)
}

/// A list; the middle of a long list is left out.
fn shortened(values: &[String]) -> String {
    const MOST: usize = 8;
    match values {
        [first @ .., last] if values.len() > MOST => format!("{}, …, {last}", first[..MOST - 2].join(", ")),
        _ => values.join(", "),
    }
}

/// A figure of the table.
struct Column {
    heading: &'static str,
    width: usize,
    /// Columns of space before it.
    gap: usize,
    of: fn(&SweepFigures<SweepMean>) -> Option<SweepMean>,
    shown: fn(f64) -> String,
    /// Whether it is about flows that end.
    completion: bool,
}

/// The heading of the column of packets lost on the link.
const LOST: &str = "lost";

const COLUMNS: [Column; SWEEP_FIGURES] = [
    Column { heading: "goodput", width: 10, gap: 1, of: |it| it.goodput_bps, shown: rate, completion: false },
    Column { heading: "busy", width: 7, gap: 1, of: |it| it.utilisation, shown: percent, completion: false },
    Column { heading: "delay", width: 8, gap: 2, of: |it| it.delay_mean_ns, shown: time, completion: false },
    Column { heading: "95 %", width: 8, gap: 1, of: |it| it.delay_p95_ns, shown: time, completion: false },
    Column { heading: "99 %", width: 8, gap: 1, of: |it| it.delay_p99_ns, shown: time, completion: false },
    Column { heading: "dropped", width: 8, gap: 1, of: |it| it.drop_rate, shown: super::sim::share, completion: false },
    Column { heading: LOST, width: 8, gap: 1, of: |it| it.loss_rate, shown: super::sim::share, completion: false },
    Column { heading: "marked", width: 8, gap: 1, of: |it| it.mark_rate, shown: super::sim::share, completion: false },
    Column { heading: "Jain", width: 6, gap: 1, of: |it| it.jain, shown: index, completion: false },
    Column { heading: "mean", width: 10, gap: 1, of: |it| it.completion_mean_ns, shown: time, completion: true },
    Column { heading: "median", width: 9, gap: 1, of: |it| it.completion_p50_ns, shown: time, completion: true },
    Column { heading: "95 %", width: 9, gap: 1, of: |it| it.completion_p95_ns, shown: time, completion: true },
    Column { heading: "99 %", width: 9, gap: 1, of: |it| it.completion_p99_ns, shown: time, completion: true },
];

fn table(sweep: &Sweep, columns: &[&Column], widths: &[usize], out: &mut impl Write) -> io::Result<()> {
    write!(out, "{BOLD}")?;
    for Column { heading, width, gap, .. } in columns {
        write!(out, "{:gap$}{heading:>width$}", "")?;
    }
    let paths = sweep.parameters.iter().map(|parameter| plain(&parameter.path));
    writeln!(out, "{}{BOLD:#}", padded(paths, widths))?;
    sweep.rows.iter().try_for_each(|row| line(sweep, row, columns, widths, out))
}

fn line(sweep: &Sweep, row: &SweepRow, columns: &[&Column], widths: &[usize], out: &mut impl Write) -> io::Result<()> {
    for Column { width, gap, of, shown, .. } in columns {
        let mean = of(&row.figures).map_or_else(|| "-".to_owned(), |figure| shown(figure.mean));
        write!(out, "{:gap$}{mean:>width$}", "")?;
    }
    let values = padded(row.values.iter().map(|value| plain(value)), widths);
    let few = if row.cells < u64::from(sweep.seeds) {
        format!("  {NOTE}{} of {} seeds{NOTE:#}", count(row.cells), count(u64::from(sweep.seeds)))
    } else {
        String::new()
    };
    writeln!(out, "{values}{few}")?;
    let half = |column: &&&Column| (column.of)(&row.figures).and_then(|figure| figure.half_width);
    if !columns.iter().any(|column| half(&column).is_some()) {
        return Ok(());
    }
    let mut text = String::new();
    for column in columns {
        let shown = half(&column).map_or_else(String::new, |half| spread(half, column.shown));
        let width = column.gap + column.width;
        text.push_str(&format!("{shown:>width$}"));
    }
    writeln!(out, "{DIM}{}{DIM:#}", text.trim_end())
}

/// Half of a confidence interval. Zero needs no unit.
fn spread(half: f64, shown: fn(f64) -> String) -> String {
    if half == 0.0 { "±0".to_owned() } else { format!("±{}", shown(half)) }
}

/// The widths of the columns of parameters.
fn widths(sweep: &Sweep) -> Vec<usize> {
    let widest = |parameter: &crate::model::SweepParameter| {
        let values = parameter.values.iter().chain([&parameter.path]);
        values.map(|value| plain(value).chars().count()).max().unwrap_or(0)
    };
    sweep.parameters.iter().map(widest).collect()
}

/// Values side by side, padded to the widths, except the last.
fn padded(values: impl Iterator<Item = String>, widths: &[usize]) -> String {
    let line: String = values.zip(widths).map(|(value, width)| format!("  {value:width$}")).collect();
    line.trim_end().to_owned()
}

fn time(nanos: f64) -> String {
    duration(nanos.round() as u64)
}

fn index(jain: f64) -> String {
    format!("{jain:.3}")
}
