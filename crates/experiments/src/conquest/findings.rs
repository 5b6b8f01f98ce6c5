//! The paper's statements beside ours.

use super::measure::{
    CONTRIBUTING, DEEPEST, LONGEST, MEAN_ERROR, MEAN_FLOWS, MEDIAN_ERROR, P95_FLOWS, P999_FLOWS, PRECISION, RECALL,
    UTILISATION,
};
use super::outcome::{Grid, OverAlphas};
use super::{READINGS, WORKLOAD, readings};
use crate::outcome::Finding;
use crate::results::value_at;
use queuescope_sketch::Estimator;

/// All statements, for the workload that replaces the paper's trace.
pub fn all(grid: &Grid<'_>) -> Vec<Finding> {
    let figures =
        [figure_6(grid), as_many_as_flows(grid), figure_7(grid), figure_8(grid), figure_9(grid), figure_15(grid)];
    [traffic(grid), figures.concat(), which_windows(grid), at_four(grid)].concat()
}

/// For any capture: statements that do not depend on its sizes.
pub fn of_any(grid: &Grid<'_>) -> Vec<Finding> {
    [figure_6(grid), figure_7(grid), figure_9(grid), at_four(grid)].concat()
}

/// The number of columns from which on the paper's precision is level: 32 counters in two rows.
const LEVEL: u32 = 16;

/// The largest difference, as a share, at which a property of the traffic is near the paper's.
const NEAR: f64 = 0.1;

fn traffic(grid: &Grid<'_>) -> Vec<Finding> {
    let point = grid.results.of(WORKLOAD).next();
    let row = |(value, paper, more): (&str, f64, &str)| {
        let difference = value_at(point, value) / paper - 1.0;
        let chosen = if difference.abs() <= NEAR {
            "what the workload is made of was chosen so that this comes near"
        } else {
            "what the workload is made of was chosen for all of these together, over ten seeds of 12.5 s; this one is farther off \
             than a tenth"
        };
        Finding::of_mean("traffic", value, paper, point, value, format!("{chosen}{more}"))
    };
    let rows = [
        (UTILISATION, 7.5, "; the paper's 25.3 Mb/s, 50 times faster, would be 12.7 %"),
        (LONGEST, 6.4, "; the longest of a seed: windows and tau are in proportion to it"),
        (DEEPEST, 8.0, "; the longest wait at the link's rate"),
        (MEAN_FLOWS, 63.6, ""),
        (P95_FLOWS, 130.0, ""),
        (P999_FLOWS, 200.0, ""),
        (CONTRIBUTING, 3.7, ""),
    ];
    rows.into_iter().map(row).collect()
}

/// Precision by the size of a sketch: level from 32 counters on.
fn figure_6(grid: &Grid<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (least, most) = ends(&grid.columns());
    for estimator in Estimator::ALL {
        let precision = |columns| grid.mean(4, columns, estimator, PRECISION);
        let (few, level, many, ideal) =
            (precision(Some(least)), precision(Some(LEVEL)), precision(Some(most)), precision(None));
        findings.push(Finding::of_words(
            "figure 6",
            format!("precision with 32 counters, h = 4: {estimator} (%)"),
            "level from here on",
            format!("{level:.1}"),
            format!(
                "with {} counters {few:.1}, with {} {many:.1}, without collisions {ideal:.1}: of what {} counters lack, 32 have {:.0} %",
                2 * least,
                2 * most,
                2 * least,
                100.0 * (level - few) / (many - few)
            ),
        ));
    }
    findings
}

/// Precision with as many counters as flows in the queue, 64 in the paper.
fn as_many_as_flows(grid: &Grid<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (_, most) = ends(&grid.columns());
    let flows = value_at(grid.results.of(WORKLOAD).next(), MEAN_FLOWS);
    for estimator in Estimator::ALL {
        let columns = if grid.columns().contains(&32) { 32 } else { most };
        let ours = grid.mean(4, Some(columns), estimator, PRECISION);
        let ideal = grid.mean(4, None, estimator, PRECISION);
        findings.push(Finding::of_words(
            "figure 6",
            format!(
                "precision with {} counters for {flows:.0} flows in the queue on average, h = 4: {estimator} (%)",
                2 * columns
            ),
            "nearly 100",
            format!("{ours:.1}"),
            format!("without collisions {ideal:.1}: the rest is rounding to windows"),
        ));
    }
    findings
}

/// Recall by the number of snapshots.
fn figure_7(grid: &Grid<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (_, most) = ends(&grid.snapshots());
    for estimator in Estimator::ALL {
        let mut why = format!("without collisions {:.1}", grid.mean(4, None, estimator, RECALL));
        if estimator == Estimator::Inner {
            why.push_str(&short_waits(grid));
        }
        let what = format!("recall with 4 snapshots, 32 counters: {estimator} (%)");
        let (four, value) = (grid.point(4, Some(LEVEL)), format!("{estimator} {RECALL}"));
        findings.push(Finding::of_mean("figure 7", &what, 93.0, four, &value, why));
    }
    for estimator in Estimator::ALL {
        let recall = |h| grid.mean(h, Some(LEVEL), estimator, RECALL);
        let (four, eight, last) = (recall(4), recall(8), recall(most));
        findings.push(Finding::of_words(
            "figure 7",
            format!("recall beyond 8 snapshots, 32 counters: {estimator} (percentage points)"),
            "diminishing returns",
            format!("{:+.1} to {most}", last - eight),
            format!("from 4 to 8 it is {:+.1}: {four:.1}, {eight:.1}, {last:.1} %", eight - four),
        ));
    }
    for estimator in Estimator::ALL {
        let of = |columns| grid.mean(4, Some(columns), estimator, RECALL);
        let all: Vec<_> = grid.columns().into_iter().map(of).collect();
        let (low, high) = (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(0.0, f64::max));
        findings.push(Finding::of_words(
            "figure 7",
            format!("how far apart recall is between sizes of sketches, h = 4: {estimator} (percentage points)"),
            "hardly",
            format!("{:.1}", high - low),
            format!(
                "from {low:.1} to {high:.1} %; the smallest sketch has {:.1}",
                all.first().copied().unwrap_or(f64::NAN)
            ),
        ));
    }
    for estimator in Estimator::ALL {
        let precision = |h| grid.mean(h, Some(LEVEL), estimator, PRECISION);
        let (four, sixteen) = (precision(4), precision(16));
        findings.push(Finding::of_words(
            "figure 7",
            format!("precision from 4 to 16 snapshots, 32 counters: {estimator} (percentage points)"),
            "slightly better",
            format!("{:+.1}", sixteen - four),
            format!(
                "{four:.1} and {sixteen:.1} %; without collisions {:.1} and {:.1}",
                grid.mean(4, None, estimator, PRECISION),
                grid.mean(16, None, estimator, PRECISION)
            ),
        ));
    }
    findings
}

/// How rounding inwards affects recall.
fn short_waits(grid: &Grid<'_>) -> String {
    let point = grid.results.of(READINGS).find(|point| point.number(super::H) == 4.0);
    let mean = |value| value_at(point, value);
    format!(
        "; {:.0} % of the packets wait less than two windows, of which one or none lies within the wait: {:.1} among those, {:.1} \
         among the others",
        mean(readings::SHORT),
        mean(readings::SHORT_RECALL),
        mean(readings::LONG_RECALL)
    )
}

/// Size errors, and how much of them is rounding.
fn figure_8(grid: &Grid<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for estimator in Estimator::ALL {
        let error = |columns| grid.mean(16, columns, estimator, MEAN_ERROR);
        let (ours, ideal, few) = (error(Some(64)), error(None), error(Some(4)));
        let what = format!("mean error with 64 columns, h = 16: {estimator} (kB)");
        let why =
            format!("without collisions {ideal:.1}; with 4 columns {few:.1}; {}", of_window(grid, 16, ours, 120.0));
        let (point, value) = (grid.point(16, Some(64)), format!("{estimator} {MEAN_ERROR}"));
        findings.push(Finding::of_mean("figure 8", &what, 120.0, point, &value, why));
    }
    for estimator in Estimator::ALL {
        let error = |columns| grid.mean(16, columns, estimator, MEAN_ERROR);
        let ideal = error(None);
        let share = |columns| 100.0 * (1.0 - ideal / error(Some(columns)));
        findings.push(Finding::of_words(
            "figure 8",
            format!("share of the mean error that is collisions, with 4 and 64 columns, h = 16: {estimator} (%)"),
            "prominent; the least part",
            format!("{:.1}; {:.1}", share(4), share(64)),
            "what is more than without collisions".to_owned(),
        ));
    }
    findings
}

/// How the readings of the paper compare with its results. Recall is without collisions, which change it little.
fn which_windows(grid: &Grid<'_>) -> Vec<Finding> {
    let at = |h: f64| grid.results.of(READINGS).find(|point| point.number(super::H) == h);
    let mean = |h: f64, name: &str, what: &str| value_at(at(h), &format!("{name}: {what}"));
    let row = |name: &&str| {
        let share = |h: f64, what: &str| share_of_window(grid, h, mean(h, name, what));
        let more = grid.snapshots().into_iter().filter(|h| *h > 4);
        let more: Vec<_> = more.map(|h| format!("{:.1} with {h}", mean(f64::from(h), name, RECALL))).collect();
        let why = format!(
            "{}; of what a window holds, mean errors are {:.1} and {:.1} % with 4 and 16 snapshots (paper: 23.1, 24.0), the median \
             with 4 is {:.1} % (14.1)",
            more.join(", "),
            share(4.0, MEAN_ERROR),
            share(16.0, MEAN_ERROR),
            share(4.0, MEDIAN_ERROR)
        );
        let value = format!("{name}: {RECALL}");
        Finding::of_mean("which windows", &format!("recall, h = 4: {name} (%)"), 93.0, at(4.0), &value, why)
    };
    readings::NAMES.iter().map(row).collect()
}

/// An error in kB as a percentage of a window's content while packets wait.
fn share_of_window(grid: &Grid<'_>, h: f64, error: f64) -> f64 {
    let deepest = value_at(grid.results.of(WORKLOAD).next(), DEEPEST);
    100.0 * error / (1e3 * deepest / h)
}

/// An error as a percentage of a window's content, which does not depend on the longest wait.
fn of_window(grid: &Grid<'_>, h: u32, ours: f64, paper: f64) -> String {
    let (ours, paper) = (share_of_window(grid, f64::from(h), ours), paper * f64::from(h) / 80.0);
    format!("of what a window holds {ours:.1} %, in the paper {paper:.1} %")
}

fn figure_15(grid: &Grid<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (h, value, paper) in [(16, MEAN_ERROR, 120.0), (4, MEAN_ERROR, 461.0), (4, MEDIAN_ERROR, 281.0)] {
        for estimator in Estimator::ALL {
            let error = |columns| grid.mean(h, columns, estimator, value);
            let ours = error(Some(16));
            let what = format!("{} with {h} snapshots, C = 16: {estimator} (kB)", value.trim_end_matches(" (kB)"));
            let why = format!("without collisions {:.1}; {}", error(None), of_window(grid, h, ours, paper));
            let (point, value) = (grid.point(h, Some(16)), format!("{estimator} {value}"));
            findings.push(Finding::of_mean("figure 15", &what, paper, point, &value, why));
        }
    }
    findings
}

/// Precision and recall over alpha.
fn figure_9(grid: &Grid<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (what, best) in [("reporting from alpha on", false), ("from the best threshold on", true)] {
        for estimator in Estimator::ALL {
            let OverAlphas { least, without } = grid.over_alphas(estimator, best);
            let (ours, mut why) = match least {
                Some((precision, recall)) => {
                    (format!("{precision:.1} / {recall:.1}"), verdict(precision, recall).to_owned())
                }
                None => ("-".to_owned(), "no alpha has both".to_owned()),
            };
            if !without.is_empty() {
                // Precision is a share of the reports.
                why.push_str(&format!("; not of alpha {} %: nothing is reported there", without.join(", ")));
            }
            findings.push(Finding::of_words(
                "figure 9",
                format!("least precision / recall over all alphas, {what}: {estimator} (%)"),
                "over 90 / 90",
                ours,
                why,
            ));
        }
    }
    findings
}

fn verdict(precision: f64, recall: f64) -> &'static str {
    match (precision > 90.0, recall > 90.0) {
        (true, true) => "as the paper says",
        (true, false) => "precision as the paper says, recall not",
        (false, true) => "recall as the paper says, precision not",
        (false, false) => "neither is as the paper says",
    }
}

/// Which estimator keeps the abstract's promise, with four snapshots in less than 65 KB.
fn at_four(grid: &Grid<'_>) -> Vec<Finding> {
    let (_, most) = ends(&grid.columns());
    let of = |estimator| {
        let value = |what| grid.mean(4, Some(most), estimator, what);
        let (precision, recall) = (value(PRECISION), value(RECALL));
        let bytes = 2 * most * 4 * 5;
        let what =
            format!("precision / recall with 4 snapshots of {most} columns ({bytes} bytes with tags): {estimator} (%)");
        Finding::of_words(
            "abstract",
            what,
            "over 90 / 90",
            format!("{precision:.1} / {recall:.1}"),
            verdict(precision, recall).to_owned(),
        )
    };
    Estimator::ALL.map(of).to_vec()
}

/// The first and the last number.
fn ends(numbers: &[u32]) -> (u32, u32) {
    (numbers.first().copied().unwrap_or(0), numbers.last().copied().unwrap_or(0))
}
