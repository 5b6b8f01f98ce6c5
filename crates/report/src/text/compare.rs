//! One scenario simulated and on real hosts, as text, side by side.

use super::{BOLD, DIM, field, notes, plain, sim};
use crate::format::{count, duration, percent, rate};
use crate::model::{Compared, Comparison, Of, Quantity};
use std::io::{self, Write};

/// The most flows that are listed.
const FLOWS: usize = 20;
/// Widths of the column of quantities and of the columns of values.
const NAME: usize = 18;
const VALUE: usize = 12;

/// Writes a comparison as text.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{BOLD}{}{BOLD:#}  {DIM}simulated and real{DIM:#}", plain(&comparison.name))?;
    if let Some(about) = &comparison.about {
        field(out, "about", &plain(about))?;
    }
    let runs = comparison.real_time.len() as u64;
    let warmup = match comparison.warmup_ns {
        0 => String::new(),
        warmup => format!(", the first {} of it warm-up", duration(warmup)),
    };
    let seeds = if runs > 1 { format!("{} in each world, from seed", count(runs)) } else { "seed".to_owned() };
    field(out, "run", &format!("{}{warmup}; {seeds} {}", duration(comparison.duration_ns), comparison.seed))?;
    for real in &comparison.real_time {
        sim::timing(real, out)?;
    }
    if runs > 1 {
        field(out, "", "means of the runs, with the least and the most in brackets")?;
    }
    let names = comparison.rows.iter().filter(|row| row.subject == Of::Flow).take(FLOWS);
    let longest = names.map(|row| plain(&row.name).chars().count()).max().unwrap_or(0);
    let mut head: Option<(Of, &str, &str)> = None;
    let mut flows = 0;
    for row in &comparison.rows {
        flows += usize::from(row.subject == Of::Flow);
        if flows > FLOWS {
            continue;
        }
        let own = (row.subject, row.name.as_str(), row.detail.as_str());
        let width = if row.subject == Of::Flow { longest.max(NAME) } else { NAME };
        if row.subject == Of::Flow {
            if head.is_none_or(|(of, ..)| of != Of::Flow) {
                heading(out, "goodput of each flow", "", width)?;
            }
        } else if head != Some(own) {
            heading(out, &plain(&row.name), &plain(&row.detail), width)?;
        }
        head = Some(own);
        line(row, width, out)?;
    }
    if flows > FLOWS {
        writeln!(out, "  {DIM}and {} more flows (--json lists them){DIM:#}", count((flows - FLOWS) as u64))?;
    }
    notes(&comparison.skipped, None, out)
}

/// Writes the name of the following rows, and the worlds above their values. The worlds go on the next line if the name
/// is too long.
fn heading(out: &mut impl Write, name: &str, about: &str, width: usize) -> io::Result<()> {
    let words = name.chars().count() + 1 + about.chars().count();
    write!(out, "\n{BOLD}{name}{BOLD:#} {DIM}{about}{DIM:#}")?;
    let room = match (width + 3).checked_sub(words) {
        Some(room) => room,
        None => {
            writeln!(out)?;
            width + 3
        }
    };
    writeln!(out, "{:room$}{BOLD}{:>VALUE$} {:>VALUE$} {:>VALUE$}{BOLD:#}", "", "simulated", "real", "difference")
}

fn line(row: &Compared, width: usize, out: &mut impl Write) -> io::Result<()> {
    let name = if row.subject == Of::Flow { plain(&row.name) } else { row.quantity.label().into() };
    let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| row.quantity.shown(value));
    let (simulated, real) = (mean(&row.simulated), mean(&row.real));
    let difference = simulated.zip(real).map_or_else(String::new, |(from, to)| row.quantity.difference(from, to));
    let name = format!("{name:>width$}");
    write!(out, "  {name} {:>VALUE$} {:>VALUE$} {difference:>VALUE$}", show(simulated), show(real))?;
    let differ = |values: &[f64]| values.iter().any(|value| show(Some(*value)) != show(Some(values[0])));
    if differ(&row.simulated) || differ(&row.real) {
        let span = |values: &[f64]| {
            let least = values.iter().copied().reduce(f64::min);
            let most = values.iter().copied().reduce(f64::max);
            format!("{} to {}", show(least), show(most))
        };
        write!(out, "  {DIM}({}; {}){DIM:#}", span(&row.simulated), span(&row.real))?;
    }
    writeln!(out)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

impl Quantity {
    /// Its label in a table.
    fn label(self) -> &'static str {
        match self {
            Self::Utilisation => "busy",
            Self::DelayMeanNs => "delay, mean",
            Self::DelayP50Ns => "median",
            Self::DelayP95Ns => "95 %",
            Self::DelayP99Ns => "99 %",
            Self::DropRate => "dropped",
            Self::LossRate => "lost on the link",
            Self::MarkRate => "marked",
            Self::GoodputBps => "goodput",
            Self::LeastLifetimeGoodputBps => "least of a flow",
            Self::MostLifetimeGoodputBps => "most of a flow",
            Self::Jain => "Jain's index",
            Self::Retransmissions => "retransmitted",
            Self::CompletionP50Ns => "completion, median",
            Self::CompletionP99Ns => "99 %",
        }
    }

    fn shown(self, value: f64) -> String {
        match self {
            Self::Utilisation | Self::DropRate | Self::LossRate | Self::MarkRate => percent(value),
            Self::GoodputBps | Self::LeastLifetimeGoodputBps | Self::MostLifetimeGoodputBps => rate(value),
            Self::Jain => format!("{value:.3}"),
            Self::Retransmissions => count(value.round() as u64),
            _ => duration(value.round() as u64),
        }
    }

    /// The change from the simulation to the real world: of shares in points, of other quantities as a fraction.
    fn difference(self, simulated: f64, real: f64) -> String {
        match self {
            Self::Utilisation | Self::DropRate | Self::LossRate | Self::MarkRate => {
                format!("{:+.2} points", 100.0 * (real - simulated))
            }
            Self::Jain => format!("{:+.3}", real - simulated),
            _ if simulated == real => "0 %".to_owned(),
            _ if simulated == 0.0 => String::new(),
            _ => format!("{:+.1} %", 100.0 * (real / simulated - 1.0)),
        }
    }
}
