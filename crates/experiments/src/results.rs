//! The results of the cells of an experiment, by the varied parameters.
//!
//! A run may lack a value. The mean is then over the other runs, and whatever shows it states over how many.

use crate::study::Cell;
use queuescope_report::model::SweepMean;
use queuescope_run::sweep::mean_at;
use std::collections::{BTreeMap, BTreeSet};

/// The measured values of a cell, by name; units are in the names.
pub type Values = BTreeMap<String, f64>;

/// The results of all cells.
#[derive(Debug)]
pub struct Results {
    confidence: f64,
    points: Vec<Point>,
}

/// The cells that differ only in their seeds.
#[derive(Debug)]
pub struct Point {
    /// The figure or table that it belongs to.
    pub figure: &'static str,
    /// The varied parameters, by name.
    pub parameters: Vec<(&'static str, String)>,
    /// The confidence of the intervals of means.
    confidence: f64,
    /// The measured values, by seed.
    pub runs: Vec<(u64, Values)>,
}

/// A value of a figure whose mean is over some runs only.
#[derive(Debug, PartialEq, Eq)]
pub struct Lacking {
    /// The figure.
    pub figure: &'static str,
    /// The value's name.
    pub value: String,
    /// The number of points at which runs lack it.
    pub points: usize,
    /// At the point where the fewest runs have it: how many do, and how many were run.
    pub least: (usize, usize),
}

impl Results {
    /// Empty results, whose means will have intervals of this confidence.
    pub fn new(confidence: f64) -> Self {
        Self { confidence, points: Vec::new() }
    }

    /// Adds the values of a cell.
    pub(super) fn add(&mut self, cell: &Cell, values: Values) {
        let same = |point: &Point| point.figure == cell.figure && point.parameters == cell.parameters;
        if let Some(point) = self.points.iter_mut().find(|point| same(point)) {
            point.runs.push((cell.seed, values));
        } else {
            let (figure, parameters) = (cell.figure, cell.parameters.clone());
            let confidence = self.confidence;
            self.points.push(Point { figure, parameters, confidence, runs: vec![(cell.seed, values)] });
        }
    }

    /// The points of a figure, in order.
    pub fn of(&self, figure: &str) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |point| point.figure == figure)
    }

    /// Values that some runs of a point have and others do not.
    pub fn lacking(&self) -> Vec<Lacking> {
        let mut all: Vec<Lacking> = Vec::new();
        for point in &self.points {
            let names: BTreeSet<_> = point.runs.iter().flat_map(|(_, values)| values.keys()).collect();
            let runs = point.runs.len();
            for value in names {
                let have = point.runs.iter().filter(|(_, values)| values.contains_key(value)).count();
                if have == runs {
                    continue;
                }
                match all.iter_mut().find(|it| it.figure == point.figure && it.value == *value) {
                    Some(it) => {
                        it.points += 1;
                        it.least = it.least.min((have, runs));
                    }
                    None => {
                        let figure = point.figure;
                        all.push(Lacking { figure, value: value.clone(), points: 1, least: (have, runs) });
                    }
                }
            }
        }
        all
    }

    /// All figures, in the order of their first cells.
    pub fn figures(&self) -> Vec<&'static str> {
        let mut figures = Vec::new();
        for point in &self.points {
            if !figures.contains(&point.figure) {
                figures.push(point.figure);
            }
        }
        figures
    }
}

impl Point {
    /// The value of a parameter at this point; empty if it is not varied.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.iter().find(|(own, _)| *own == name).map_or("", |(_, value)| value)
    }

    /// The value of a numeric parameter.
    pub fn number(&self, name: &str) -> f64 {
        self.parameter(name).parse().unwrap_or(f64::NAN)
    }

    /// The mean of a measured value, with its confidence interval; `None` if it was never measured.
    pub fn mean(&self, value: &str) -> Option<SweepMean> {
        let values: Vec<_> = self.runs.iter().filter_map(|(_, values)| values.get(value).copied()).collect();
        mean_at(self.confidence, &values)
    }

    /// The mean of a measured value; NaN if it was never measured.
    pub fn value(&self, value: &str) -> f64 {
        self.mean(value).map_or(f64::NAN, |mean| mean.mean)
    }

    /// The mean in a table's notation, with `digits` decimals; `-` if there is none.
    pub fn shown(&self, value: &str, digits: usize) -> String {
        self.mean(value).map_or_else(|| "-".to_owned(), |mean| format!("{:.digits$}{}", mean.mean, self.of(&mean)))
    }

    /// The same with its confidence interval, if it has one.
    pub fn shown_within(&self, value: &str, digits: usize) -> String {
        match self.mean(value) {
            Some(it @ SweepMean { mean, half_width: Some(half), .. }) => {
                format!("{mean:.digits$} ± {half:.digits$}{}", self.of(&it))
            }
            _ => self.shown(value, digits),
        }
    }

    /// Over how many runs a value is averaged, if not over all; otherwise empty.
    pub fn of_runs(&self, value: &str) -> String {
        self.mean(value).map_or_else(String::new, |mean| self.of(&mean))
    }

    fn of(&self, mean: &SweepMean) -> String {
        let runs = self.runs.len() as u64;
        if mean.cells < runs { format!(" ({} of {runs})", mean.cells) } else { String::new() }
    }
}

/// The mean of a value at a point, if there is one; otherwise NaN.
pub fn value_at(point: Option<&Point>, value: &str) -> f64 {
    point.map_or(f64::NAN, |point| point.value(value))
}

/// The finite values. A run does not have any others, and JSON cannot represent them.
pub fn numbers(values: Values) -> Values {
    values.into_iter().filter(|(_, value)| value.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(all: &[(&str, f64)]) -> Values {
        all.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    fn results(runs: &[Values]) -> Results {
        let mut results = Results::new(0.95);
        for (seed, values) in (1..).zip(runs) {
            let cell = Cell { figure: "test", parameters: vec![("h", "4".to_owned())], seed, scenario: String::new() };
            results.add(&cell, values.clone());
        }
        results
    }

    #[test]
    fn a_mean_of_some_runs_states_how_many() {
        let runs = [values(&[("all", 1.0), ("one", 5.0)]), values(&[("all", 2.0)]), values(&[("all", 3.0)])];
        let results = results(&runs);
        let point = results.of("test").next().unwrap();
        assert_eq!((point.shown("all", 1), point.of_runs("all")), ("2.0".to_owned(), String::new()));
        assert_eq!(point.shown_within("all", 1), "2.0 ± 2.5");
        assert_eq!((point.shown("one", 2), point.of_runs("one")), ("5.00 (1 of 3)".to_owned(), " (1 of 3)".to_owned()));
        assert_eq!(point.shown_within("one", 0), "5 (1 of 3)");
        assert_eq!((point.shown("none", 1), point.of_runs("none")), ("-".to_owned(), String::new()));
        assert!(point.value("none").is_nan() && value_at(None, "all").is_nan());
        assert_eq!(value_at(Some(point), "one"), 5.0);
    }

    #[test]
    fn values_that_are_not_finite_are_left_out() {
        let all = values(&[("nan", f64::NAN), ("infinite", f64::INFINITY), ("zero", 0.0)]);
        assert_eq!(numbers(all), values(&[("zero", 0.0)]));
    }

    /// One row for each value of a figure, whatever the number of its points.
    #[test]
    fn values_that_some_runs_lack_are_listed() {
        let runs = [values(&[("all", 1.0), ("one", 5.0)]), values(&[("all", 2.0)]), values(&[("all", 3.0)])];
        let row = Lacking { figure: "test", value: "one".to_owned(), points: 1, least: (1, 3) };
        assert_eq!(results(&runs).lacking(), [row]);
        assert!(results(&runs[..1]).lacking().is_empty());
    }
}
