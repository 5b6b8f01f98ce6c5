//! Other ways to read the paper: which windows a query for `[a, d)` covers, without collisions.
//!
//! Section 3.3 rounds inwards. Section 5.1 says that packets which left before a are wrongly included, that recall is
//! below 1 for that reason, and that in the worst case one snapshot is looked at. This module checks whether some
//! reading yields the paper's figures.

use super::ALPHA_PAPER;
use super::measure::{MEAN_ERROR, MEDIAN_ERROR, PRECISION, RECALL, median};
use crate::error::Result;
use crate::results::Values;
use queuescope_meter::{ExactDepartures, Score};
use queuescope_sketch::{ConQuestParams, Estimator, Ideal, Snapshots};
use queuescope_wire::Nanos;
use std::ops::RangeInclusive;

/// A query in time: the interval `[from, to)` of a packet and the length of a window, in nanoseconds.
struct Query {
    from: u64,
    to: u64,
    window: u64,
}

/// The ages of the windows that are summed; the current window has age 0.
type Reading = fn(&Query) -> RangeInclusive<u64>;

/// Name and reading; and whether the sum is a share of the content of those windows, in place of the queue's.
const ALL: [(&str, Reading, bool); 9] = [
    ("inner (section 3.3)", inner, false),
    ("inner, at least one window", at_least_one, false),
    ("touched, without the current window", past, false),
    ("touched, with the current window", |it| 0..=it.current() - it.from / it.window, false),
    ("both ends to the nearest", nearest, false),
    ("as many whole windows as the wait has, rounded up", |it| 1..=(it.to - it.from).div_ceil(it.window), false),
    ("inner, of what its windows hold", inner, true),
    ("inner, at least one window, of what they hold", at_least_one, true),
    ("touched, without the current window, of what they hold", past, true),
];

/// The names of the readings.
pub const NAMES: [&str; 9] = {
    let mut names = [""; 9];
    let mut number = 0;
    while number < names.len() {
        names[number] = ALL[number].0;
        number += 1;
    }
    names
};

fn inner(it: &Query) -> RangeInclusive<u64> {
    1..=it.current() - it.from.div_ceil(it.window).min(it.current())
}

fn at_least_one(it: &Query) -> RangeInclusive<u64> {
    1..=(*inner(it).end()).max(1)
}

fn past(it: &Query) -> RangeInclusive<u64> {
    1..=it.current() - it.from / it.window
}

fn nearest(it: &Query) -> RangeInclusive<u64> {
    let half = it.window / 2;
    let (first, end) = ((it.from + half) / it.window, (it.to + half) / it.window);
    it.current() + 1 - end..=it.current().saturating_sub(first)
}

/// Recall of the first reading among packets that waited less than two windows, and among the others.
pub const SHORT_RECALL: &str = "inner recall, waits below 2 windows (%)";
/// See [`SHORT_RECALL`].
pub const LONG_RECALL: &str = "inner recall, waits of 2 windows and more (%)";
/// How many packets wait less than two windows.
pub const SHORT: &str = "waits below 2 windows (%)";

impl Query {
    /// The number of the window in which the packet departs.
    fn current(&self) -> u64 {
        self.to / self.window
    }
}

/// Measures how accurate each reading is.
///
/// # Errors
/// Fails if the windows' parameters are impossible.
pub fn measure(truths: &ExactDepartures, tau: Nanos, params: &ConQuestParams) -> Result<Values> {
    // One count for each flow, and one for all flows together.
    let (mut ideal, mut all) = (Ideal::new(params)?, Ideal::new(params)?);
    let fresh = || Score::new(Estimator::Inner, ALPHA_PAPER);
    let (mut scores, mut errors) = (ALL.map(|_| fresh()), ALL.map(|_| Vec::new()));
    let (mut short, mut long) = (fresh(), fresh());
    for truth in truths.all() {
        if truth.wait() >= tau {
            // This starts the packet's window.
            let inner = ideal.estimate(truth.digest, truth.from, truth.to, Estimator::Inner);
            all.estimate(0, truth.from, truth.to, Estimator::Inner);
            let (counts, totals) = (ideal.counts(truth.digest), all.counts(0));
            for (((_, reading, of_windows), score), errors) in ALL.iter().zip(&mut scores).zip(&mut errors) {
                let ages = reading(&Query { from: truth.from.0, to: truth.to.0, window: params.window.0 });
                let mut said = add_up(&counts, &ages);
                if *of_windows {
                    // The same share, applied to the queue.
                    let total = u128::from(add_up(&totals, &ages)).max(1);
                    said = (u128::from(said) * u128::from(truth.part.total) / total) as u64;
                }
                score.judge(truth.part, said);
                errors.push(said.abs_diff(truth.part.own));
            }
            let two = Nanos(2 * params.window.0);
            if truth.wait() < two { &mut short } else { &mut long }.judge(truth.part, inner);
        }
        ideal.record(truth.digest, truth.size, truth.to);
        all.record(0, truth.size, truth.to);
    }
    let mut values = Values::new();
    for (((name, ..), score), mut errors) in ALL.iter().zip(scores).zip(errors) {
        let measured = [
            (PRECISION, score.precision().map(|share| 100.0 * share)),
            (RECALL, score.recall().map(|share| 100.0 * share)),
            (MEAN_ERROR, score.mean_error().map(|error| error / 1e3)),
            (MEDIAN_ERROR, median(&mut errors).map(|error| error as f64 / 1e3)),
        ];
        values.extend(measured.into_iter().filter_map(|(what, value)| Some((format!("{name}: {what}"), value?))));
    }
    let asked = (short.asked + long.asked) as f64;
    let about = [
        (SHORT_RECALL, short.recall()),
        (LONG_RECALL, long.recall()),
        (SHORT, (asked > 0.0).then_some(short.asked as f64 / asked)),
    ];
    values.extend(about.into_iter().filter_map(|(name, share)| Some((name.to_owned(), 100.0 * share?))));
    Ok(values)
}

/// The sum of the windows of these ages, from counts that start with the current window.
fn add_up(counts: &[u32], ages: &RangeInclusive<u64>) -> u64 {
    counts.iter().zip(0..).filter(|(_, age)| ages.contains(age)).map(|(count, _)| u64::from(*count)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's example of section 3.3: windows of 3, and a packet that arrives at 2 and departs at 8.
    #[test]
    fn readings_of_the_papers_example() {
        let ages = |from, to| -> [Vec<u64>; 6] {
            [0, 1, 2, 3, 4, 5].map(|n| ALL[n].1(&Query { from, to, window: 3 }).collect())
        };
        assert_eq!(ages(2, 8), [vec![1], vec![1], vec![1, 2], vec![0, 1, 2], vec![0, 1], vec![1, 2]]);
        // Within one window, and across a border: rounding inwards leaves nothing.
        assert_eq!(ages(6, 8), [vec![], vec![1], vec![], vec![0], vec![0], vec![1]]);
        assert_eq!(ages(5, 7), [vec![], vec![1], vec![1], vec![0, 1], vec![], vec![1]]);
    }
}
