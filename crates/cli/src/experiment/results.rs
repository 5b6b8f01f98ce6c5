//! What came of the cells of an experiment, by what was varied.

use super::Cell;
use crate::sweep::interval::mean_at;
use queuescope_report::model::SweepMean;
use std::collections::BTreeMap;

/// What was measured of a cell, by name; units are in the names.
pub type Values = BTreeMap<String, f64>;

/// What came of all cells.
#[derive(Debug)]
pub struct Results {
    confidence: f64,
    points: Vec<Point>,
}

/// The cells that differ in their seeds only.
#[derive(Debug)]
pub struct Point {
    /// The figure or table that it is for.
    pub figure: &'static str,
    /// What is varied, by name.
    pub parameters: Vec<(&'static str, String)>,
    /// Of the intervals of means.
    confidence: f64,
    /// What was measured, by seed.
    pub runs: Vec<(u64, Values)>,
}

impl Results {
    /// Nothing yet; means will have intervals of this confidence.
    pub fn new(confidence: f64) -> Self {
        Self { confidence, points: Vec::new() }
    }

    /// One more.
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

    /// Those of a figure, in order.
    pub fn of(&self, figure: &str) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |point| point.figure == figure)
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
    /// What a parameter is here; empty if it is not varied.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.iter().find(|(own, _)| *own == name).map_or("", |(_, value)| value)
    }

    /// A parameter that is a number.
    pub fn number(&self, name: &str) -> f64 {
        self.parameter(name).parse().unwrap_or(f64::NAN)
    }

    /// The mean of what was measured, with its confidence interval; nothing if it never was.
    pub fn mean(&self, value: &str) -> Option<SweepMean> {
        let values: Vec<_> = self.runs.iter().filter_map(|(_, values)| values.get(value).copied()).collect();
        mean_at(self.confidence, &values)
    }
}
