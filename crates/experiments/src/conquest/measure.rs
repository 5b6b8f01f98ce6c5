//! What one cell measures.

use super::traffic::Traffic;
use super::{
    ALPHA, ALPHA_PAPER, C, FIGURE_9, FIGURE_15A, GRID, H, IDEAL, PACES, READINGS, ROWS, THRESHOLD, readings, scatter,
};
use crate::error::{Error, Result};
use crate::results::Values;
use crate::study::Cell;
use crate::truths::Left;
use queuescope_meter::{Score, Truths};
use queuescope_sketch::{ConQuest, ConQuestParams, Estimator, Expiry, Ideal, Snapshots, Weights};
use std::fmt::Display;
use std::str::FromStr;

/// What is measured of a cell.
///
/// # Errors
/// If its traffic cannot be had, or there is no such sketch.
pub fn measure(traffic: &Traffic, cell: &Cell) -> Result<Values> {
    let left = traffic.left(&cell.scenario)?;
    let truths = &left.truths;
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
        _ => Ok(workload(&left)),
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
    text.parse().map_err(|why| Error::lacks(format!("'{text}' is no number: {why}")))
}

/// h snapshots that cover the longest wait together.
fn params(truths: &Truths, snapshots: usize, columns: usize, seed: u64) -> ConQuestParams {
    let window = truths.window(snapshots);
    ConQuestParams { snapshots, rows: ROWS, columns, window, expiry: Expiry::Tag, weights: Weights::Fine, seed }
}

/// Precision, recall and, if it is wanted, the error of size, of each estimator.
fn accuracy(truths: &Truths, sketch: &mut impl Snapshots, alpha: f64, threshold: f64, with_errors: bool) -> Values {
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

/// The value that half of them are not above.
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

/// What the traffic is like.
fn workload(left: &Left) -> Values {
    let truths = &left.truths;
    let (tau, longest, packets) = (truths.tau(), truths.longest(), truths.all().len());
    let crowd = truths.crowd(tau, ALPHA_PAPER);
    let asked = crowd.flows.len() as f64;
    let positives = truths.waited(tau).filter(|truth| truth.part.is_at_least(ALPHA_PAPER)).count();
    let deepest = truths.all().iter().map(|truth| truth.part.total).max().unwrap_or(0);
    let rate = left.rate.bits_per_second() as f64;
    let count = |value: Option<u32>| value.map_or(f64::NAN, f64::from);
    // What is of no packet is no number, and so no value.
    [
        (PACKETS, packets as f64),
        (FLOWS, left.flows as f64),
        (UTILISATION, 100.0 * left.bytes as f64 * 8.0 / (rate * left.time.as_secs_f64())),
        (LONGEST, longest.as_secs_f64() * 1e3),
        (DEEPEST, deepest as f64 / 1e6),
        (CONGESTED, 100.0 * asked / packets as f64),
        (POSITIVES, 100.0 * positives as f64 / asked),
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
