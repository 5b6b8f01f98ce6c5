//! The outcome of the comparison.

use super::{
    AQM, DELAY, FLOWS, GOODPUT, GRID, JAIN, LATE, LIMITED, LOSS, MARKS, P99, RATE, REAL, RTT, SIMULATED, TCP, named,
};
use crate::outcome::{Finding, Outcome, Table};
use crate::plot::{Axis, Line, Plot};
use crate::results::{Point, Results};
use queuescope_report::model::SweepMean;

/// The largest difference of equal goodputs and mean delays, in percent, and of equal delays in milliseconds.
const GOODPUT_WITHIN: f64 = 5.0;
const DELAY_WITHIN: f64 = 20.0;
const DELAY_WITHIN_MS: f64 = 1.0;
/// The share of cells that should be equal, in percent.
const WANTED: f64 = 90.0;

/// A cell in both worlds, means of its runs.
struct CellPair<'a> {
    point: &'a Point,
}

impl CellPair<'_> {
    fn values(&self, name: &str) -> [f64; 2] {
        [SIMULATED, REAL].map(|world| self.point.value(&named(world, name)))
    }

    /// The percentage by which the real world's value is higher.
    fn more(&self, name: &str) -> f64 {
        let [simulated, real] = self.values(name);
        100.0 * (real / simulated - 1.0)
    }

    fn same_goodput(&self) -> bool {
        self.more(GOODPUT).abs() <= GOODPUT_WITHIN
    }

    fn same_delay(&self) -> bool {
        let [simulated, real] = self.values(DELAY);
        self.more(DELAY).abs() <= DELAY_WITHIN || (real - simulated).abs() <= DELAY_WITHIN_MS
    }

    fn name(&self) -> String {
        let [tcp, flows, aqm, rate, rtt] = [TCP, FLOWS, AQM, RATE, RTT].map(|name| self.point.parameter(name));
        format!("{tcp}, {flows}, {aqm}, {rate} Mb/s, {rtt} ms")
    }
}

/// All tables, plots and findings.
pub fn outcome(results: &Results) -> Outcome {
    let cells: Vec<_> = results.of(GRID).map(|point| CellPair { point }).collect();
    let findings = vec![
        finding(&cells, "cells with the same goodput, within 5 %", GOODPUT, CellPair::same_goodput),
        finding(&cells, "cells with the same mean delay, within 20 % or 1 ms", DELAY, CellPair::same_delay),
        exactness(&cells),
    ];
    let plots = vec![
        plot(&cells, "goodput", GOODPUT, "Cells whose goodput in both worlds differs by at most this much"),
        plot(&cells, "delay", DELAY, "Cells whose mean delay in both worlds differs by at most this much"),
    ];
    Outcome { plots, findings, tables: vec![table(&cells)], ..Outcome::default() }
}

fn finding<'a>(cells: &[CellPair<'a>], what: &str, value: &str, same: fn(&CellPair<'a>) -> bool) -> Finding {
    let alike = cells.iter().filter(|cell| same(cell)).count();
    let share = 100.0 * alike as f64 / cells.len().max(1) as f64;
    let others = cells.iter().filter(|cell| !same(cell));
    let others: Vec<_> = others.map(|cell| format!("{} ({:+.1} %)", cell.name(), cell.more(value))).collect();
    let why = if others.is_empty() { "all".to_owned() } else { format!("not: {}", others.join("; ")) };
    let ours = format!("{share:.0} % ({alike} of {})", cells.len());
    Finding::of_words(GRID, what.to_owned(), &format!("{WANTED:.0} %"), ours, why)
}

/// The cells in which the machine was a bottleneck.
fn exactness(cells: &[CellPair<'_>]) -> Finding {
    let limited = |cell: &&CellPair<'_>| cell.point.value(&named(REAL, LIMITED)) > 0.0;
    let names: Vec<_> = cells.iter().filter(limited).map(CellPair::name).collect();
    let what = "cells in which this machine was the bottleneck at times, and not the link";
    let why = if names.is_empty() { "none".to_owned() } else { names.join("; ") };
    Finding::of_words(GRID, what.to_owned(), "0", format!("{} of {}", names.len(), cells.len()), why)
}

fn table(cells: &[CellPair<'_>]) -> Table {
    let row = |cell: &CellPair<'_>| {
        let both = |name, digits: usize| {
            [SIMULATED, REAL].map(|world| cell.point.shown_within(&named(world, name), digits)).into_iter()
        };
        let own = [TCP, FLOWS, AQM, RATE, RTT].map(|name| cell.point.parameter(name).to_owned());
        let mut row = own.to_vec();
        row.extend(both(GOODPUT, 2));
        row.push(format!("{:+.1}{}", cell.more(GOODPUT), mark(cell.same_goodput())));
        row.extend(both(DELAY, 2));
        row.push(format!("{:+.1}{}", cell.more(DELAY), mark(cell.same_delay())));
        row.extend(both(P99, 1).chain(both(LOSS, 2)).chain(both(MARKS, 2)).chain(both(JAIN, 2)));
        row.push(cell.point.shown(&named(REAL, LATE), 2));
        row
    };
    let both = |name: &'static str| [SIMULATED, REAL].map(|world| named(world, name)).into_iter();
    let mut columns = [TCP, FLOWS, AQM, RATE, RTT].map(str::to_owned).to_vec();
    columns.extend(both(GOODPUT).chain(["%".to_owned()]).chain(both(DELAY)).chain(["%".to_owned()]));
    columns.extend(both(P99).chain(both(LOSS)).chain(both(MARKS)).chain(both(JAIN)).chain([named(REAL, LATE)]));
    Table {
        title: "Each cell in both worlds; ! is a difference that is too large".to_owned(),
        columns,
        rows: cells.iter().map(row).collect(),
    }
}

fn mark(is_same: bool) -> &'static str {
    if is_same { "" } else { " !" }
}

/// The share of cells with at most a given difference, for each way to manage the queue and for all.
fn plot(cells: &[CellPair<'_>], name: &'static str, value: &str, title: &str) -> Plot {
    let line = |name: &str, mut apart: Vec<f64>| {
        apart.sort_unstable_by(f64::total_cmp);
        let all = apart.len() as f64;
        let share = |number: usize| SweepMean { mean: 100.0 * number as f64 / all, half_width: None, cells: 1 };
        Line { name: name.to_owned(), points: (1..).zip(apart).map(|(number, apart)| (apart, share(number))).collect() }
    };
    let apart = |cell: &CellPair<'_>| cell.more(value).abs();
    let mut names: Vec<_> = cells.iter().map(|cell| cell.point.parameter(AQM)).collect();
    names.dedup();
    let mut lines = vec![line("all", cells.iter().map(apart).collect())];
    let mut seen = Vec::new();
    for aqm in names {
        if !seen.contains(&aqm) {
            seen.push(aqm);
            let own = cells.iter().filter(|cell| cell.point.parameter(AQM) == aqm).map(apart);
            lines.push(line(aqm, own.collect()));
        }
    }
    lines.iter_mut().for_each(|line| line.points.retain(|(apart, _)| apart.is_finite()));
    let axes = [Axis::linear("difference (%)"), Axis::linear("cells (%)")];
    Plot { name, title: title.to_owned(), axes, lines }
}
