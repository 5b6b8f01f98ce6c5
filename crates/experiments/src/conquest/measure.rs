//! What one cell measures.

use super::traffic::Traffic;
use super::{
    ALPHA, ALPHA_PAPER, C, FIGURE_9, FIGURE_15A, GRID, H, IDEAL, PACES, READINGS, ROWS, THRESHOLD, readings, scatter,
};
use crate::error::{Error, Result};
use crate::results::Values;
use crate::study::Cell;
use crate::truths::RecordedDepartures;
use queuescope_meter::{ExactDepartures, Score};
use queuescope_sketch::{ConQuest, ConQuestParams, Estimator, Expiry, Ideal, Snapshots, Weights};
use std::fmt::Display;
use std::str::FromStr;

/// Measures a cell.
///
/// # Errors
/// Fails if its traffic is not available, or the sketch's parameters are impossible.
pub fn measure(traffic: &Traffic, cell: &Cell) -> Result<Values> {
    let departures = traffic.departures(&cell.scenario)?;
    let truths = &departures.truths;
    let sketch = |h, columns| params(truths, h, columns, cell.seed);
    match cell.figure {
        GRID => {
            let h = number(cell, H)?;
            let sizes = true;
            Ok(match value(cell, C)? {
                IDEAL => accuracy(truths, &mut Ideal::new(&sketch(h, 1))?, ALPHA_PAPER, ALPHA_PAPER, sizes),
                columns => {
                    let params = sketch(h, parsed(columns)?);
                    accuracy(truths, &mut ConQuest::new(params)?, ALPHA_PAPER, ALPHA_PAPER, sizes)
                }
            })
        }
        FIGURE_9 => {
            let alpha = number::<f64>(cell, ALPHA)? / 100.0;
            let threshold = alpha * number::<f64>(cell, THRESHOLD)?;
            Ok(accuracy(truths, &mut ConQuest::new(sketch(4, 8))?, alpha, threshold, false))
        }
        FIGURE_15A => {
            let params = sketch(number(cell, H)?, number(cell, C)?);
            Ok(scatter::measure(truths, truths.tau(), &mut ConQuest::new(params)?))
        }
        READINGS => readings::measure(truths, truths.tau(), &sketch(number(cell, H)?, 1)),
        PACES => readings::measure(truths, truths.tau(), &sketch(4, 1)),
        _ => Ok(workload(&departures)),
    }
}

fn value<'a>(cell: &'a Cell, name: &str) -> Result<&'a str> {
    let found = cell.parameters.iter().find(|(own, _)| *own == name);
    found.map(|(_, value)| value.as_str()).ok_or_else(|| Error::lacks(format!("the cell has no {name}")))
}

fn number<T: FromStr<Err: Display>>(cell: &Cell, name: &str) -> Result<T> {
    parsed(value(cell, name)?)
}

fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T> {
    text.parse().map_err(|why| Error::lacks(format!("'{text}' is not a number: {why}")))
}

/// `snapshots` snapshots that together cover the longest wait.
fn params(truths: &ExactDepartures, snapshots: usize, columns: usize, seed: u64) -> ConQuestParams {
    let window = truths.window(snapshots);
    ConQuestParams { snapshots, rows: ROWS, columns, window, expiry: Expiry::Tag, weights: Weights::Fine, seed }
}

/// Precision, recall and, if `with_errors`, the size error, of each estimator.
fn accuracy(
    truths: &ExactDepartures,
    sketch: &mut impl Snapshots,
    alpha: f64,
    threshold: f64,
    with_errors: bool,
) -> Values {
    let mut scores = Estimator::ALL.map(|estimator| Score::new(estimator, alpha).reporting_from(threshold));
    let mut errors = Estimator::ALL.map(|_| Vec::new());
    truths.ask(sketch, truths.tau(), Estimator::ALL, |truth, said| {
        for ((score, errors), said) in scores.iter_mut().zip(&mut errors).zip(said) {
            score.judge(truth.part, said);
            if with_errors {
                errors.push(said.abs_diff(truth.part.own));
            }
        }
    });
    let mut values = Values::new();
    for (score, mut errors) in scores.into_iter().zip(errors) {
        let named = |what: &str| format!("{} {what}", score.estimator);
        values.extend(score.precision().map(|share| (named(PRECISION), 100.0 * share)));
        values.extend(score.recall().map(|share| (named(RECALL), 100.0 * share)));
        if with_errors {
            values.extend(score.mean_error().map(|error| (named(MEAN_ERROR), error / 1e3)));
            values.extend(median(&mut errors).map(|error| (named(MEDIAN_ERROR), error as f64 / 1e3)));
        }
    }
    values
}

pub const PRECISION: &str = "precision (%)";
pub const RECALL: &str = "recall (%)";
pub const MEAN_ERROR: &str = "mean error (kB)";
pub const MEDIAN_ERROR: &str = "median error (kB)";

/// The value that at least half of them do not exceed.
pub fn median(values: &mut [u64]) -> Option<u64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

pub const UTILISATION: &str = "mean utilisation (%)";
pub const LONGEST: &str = "longest wait (ms)";
pub const DEEPEST: &str = "deepest queue (MB)";
pub const FLOWS: &str = "flows";
pub const MEAN_FLOWS: &str = "mean flows in the queue";
pub const P95_FLOWS: &str = "p95 flows in the queue";
pub const P999_FLOWS: &str = "p99.9 flows in the queue";
pub const CONTRIBUTING: &str = "contributing flows";
pub const CONGESTED: &str = "packets that wait tau (%)";
pub const POSITIVES: &str = "of those, of contributing flows (%)";
pub const PACKETS: &str = "packets";

/// Properties of the traffic.
fn workload(departures: &RecordedDepartures) -> Values {
    let truths = &departures.truths;
    let (tau, longest, packets) = (truths.tau(), truths.longest(), truths.all().len());
    let crowd = truths.crowd(tau, ALPHA_PAPER);
    let waiting = crowd.flows.len() as f64;
    let positives = truths.waited(tau).filter(|truth| truth.part.is_at_least(ALPHA_PAPER)).count();
    let deepest = truths.all().iter().map(|truth| truth.part.total).max().unwrap_or(0);
    let rate = departures.rate.bits_per_second() as f64;
    let count = |value: Option<u32>| value.map_or(f64::NAN, f64::from);
    // A value over no packets is not a number, and is left out.
    [
        (PACKETS, packets as f64),
        (FLOWS, departures.flows as f64),
        (UTILISATION, 100.0 * departures.bytes as f64 * 8.0 / (rate * departures.time.as_secs_f64())),
        (LONGEST, longest.as_secs_f64() * 1e3),
        (DEEPEST, deepest as f64 / 1e6),
        (CONGESTED, 100.0 * waiting / packets as f64),
        (POSITIVES, 100.0 * positives as f64 / waiting),
        (MEAN_FLOWS, crowd.mean().unwrap_or(f64::NAN)),
        (P95_FLOWS, count(crowd.quantile(0.95))),
        (P999_FLOWS, count(crowd.quantile(0.999))),
        (CONTRIBUTING, crowd.contributing),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_one_of_them() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [5]), Some(5));
        assert_eq!(median(&mut [9, 1, 5, 3]), Some(3));
        assert_eq!(median(&mut [9, 1, 5]), Some(5));
    }
}
