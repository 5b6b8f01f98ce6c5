//! The outcome: figures, tables, and the paper's statements beside ours.

use super::measure::{
    CONGESTED, CONTRIBUTING, DEEPEST, FLOWS, LONGEST, MEAN_ERROR, MEAN_FLOWS, MEDIAN_ERROR, P95_FLOWS, P999_FLOWS,
    PACKETS, POSITIVES, PRECISION, RECALL, UTILISATION,
};
use super::{
    ALPHA, C, FIGURE_9, FIGURE_15A, GRID, H, IDEAL, PACE, PACES, READINGS, THRESHOLD, WORKLOAD, findings, readings,
    scatter,
};
use crate::outcome::{Outcome, Table};
use crate::plot::{Axis, Line, Plot, line};
use crate::results::{Point, Results, value_at};
use queuescope_sketch::Estimator;

/// The complete outcome.
pub fn outcome(is_the_papers: bool, results: &Results) -> Outcome {
    let outcome = Grid { results };
    let plots = [outcome.figure_6(), outcome.figure_7(), outcome.figure_8(), outcome.figure_15b(), outcome.figure_9()];
    let findings = if is_the_papers { findings::all(&outcome) } else { findings::of_any(&outcome) };
    let has_scatter = results.of(FIGURE_15A).next().is_some();
    Outcome {
        plots: plots
            .into_iter()
            .flatten()
            .filter(|plot| plot.lines.iter().any(|line| !line.points.is_empty()))
            .collect(),
        findings,
        tables: [vec![outcome.traffic(is_the_papers), outcome.at_four(), outcome.readings()], outcome.paces()].concat(),
        panels: scatter::panels(results),
        sheets: if has_scatter { vec![scatter::sheet(results)] } else { Vec::new() },
    }
}

/// The measurements, by h and C.
pub struct Grid<'a> {
    pub results: &'a Results,
}

/// The number of counters of a sketch, as in figure 6.
const COUNTERS: &str = "counters in a sketch (2 C)";

impl<'a> Grid<'a> {
    /// The points with `h` snapshots.
    pub fn with_snapshots(&self, h: u32) -> impl Iterator<Item = &'a Point> + use<'a> {
        self.results.of(GRID).filter(move |point| point.number(H) == f64::from(h))
    }

    /// The point with `h` snapshots and this many columns, or without collisions.
    pub fn point(&self, h: u32, columns: Option<u32>) -> Option<&'a Point> {
        let columns = columns.map_or_else(|| IDEAL.to_owned(), |columns| columns.to_string());
        self.with_snapshots(h).find(|point| point.parameter(C) == columns)
    }

    /// A mean; NaN if it was not measured.
    pub fn mean(&self, h: u32, columns: Option<u32>, estimator: Estimator, what: &str) -> f64 {
        value_at(self.point(h, columns), &format!("{estimator} {what}"))
    }

    /// The numbers of snapshots, ascending.
    pub fn snapshots(&self) -> Vec<u32> {
        numbers(self.results, H)
    }

    /// The numbers of columns, ascending.
    pub fn columns(&self) -> Vec<u32> {
        numbers(self.results, C)
    }

    /// Precision against the size of a sketch, with a line for each number of snapshots.
    fn figure_6(&self) -> Vec<Plot> {
        let names = ["figure-6-inner", "figure-6-outer", "figure-6-overlap"];
        let lines = |estimator| {
            let value = format!("{estimator} {PRECISION}");
            self.snapshots().into_iter().map(|h| self.by_columns(format!("h = {h}"), h, 2.0, &value)).collect()
        };
        let plot = |(name, estimator)| Plot {
            name,
            title: format!("Precision by the size of a snapshot: {estimator}"),
            axes: [Axis::logarithmic(COUNTERS), Axis::linear(PRECISION)],
            lines: lines(estimator),
        };
        names.into_iter().zip(Estimator::ALL).map(plot).collect()
    }

    /// Recall against the number of snapshots, with a line for each size of a sketch.
    fn figure_7(&self) -> Vec<Plot> {
        let names = ["figure-7-inner", "figure-7-outer", "figure-7-overlap"];
        let shown = self.columns().into_iter().filter(|columns| [4, 8, 16, 64].contains(columns));
        let shown: Vec<_> = shown.map(Some).chain([None]).collect();
        let lines = |estimator| {
            let value = format!("{estimator} {RECALL}");
            let of = |columns: &Option<u32>| {
                let name =
                    columns.map_or_else(|| "no collisions".to_owned(), |columns| format!("2 C = {}", 2 * columns));
                let points = self.snapshots().into_iter().filter_map(|h| self.point(h, *columns));
                line(name, points, H, &value)
            };
            shown.iter().map(of).collect()
        };
        let plot = |(name, estimator)| Plot {
            name,
            title: format!("Recall by the number of snapshots: {estimator}"),
            axes: [Axis::logarithmic("snapshots (h)"), Axis::linear(RECALL)],
            lines: lines(estimator),
        };
        names.into_iter().zip(Estimator::ALL).map(plot).collect()
    }

    /// Size error against the size of a sketch, with 16 snapshots; and how much of it is rounding.
    fn figure_8(&self) -> Vec<Plot> {
        let lines = Estimator::ALL.into_iter().flat_map(|estimator| {
            let value = format!("{estimator} {MEAN_ERROR}");
            [
                self.by_columns(estimator.to_string(), 16, 1.0, &value),
                self.rounding(format!("{estimator}, rounding"), 16, &value),
            ]
        });
        vec![Plot {
            name: "figure-8",
            title: "Mean error of estimated size, 16 snapshots; and without collisions".to_owned(),
            axes: [Axis::logarithmic("columns (C)"), Axis::linear("mean error (kB)")],
            lines: lines.collect(),
        }]
    }

    /// The same for several numbers of snapshots.
    fn figure_15b(&self) -> Vec<Plot> {
        let names = ["figure-15b-inner", "figure-15b-outer", "figure-15b-overlap"];
        let shown: Vec<_> = self.snapshots().into_iter().filter(|h| [2, 4, 16].contains(h)).collect();
        let plot = |(name, estimator): (&'static str, Estimator)| {
            let value = format!("{estimator} {MEAN_ERROR}");
            let lines = shown.iter().flat_map(|h| {
                let name = format!("h = {h}");
                [self.by_columns(name.clone(), *h, 1.0, &value), self.rounding(format!("{name}, rounding"), *h, &value)]
            });
            Plot {
                name,
                title: format!("Mean error of estimated size, and without collisions: {estimator}"),
                axes: [Axis::logarithmic("columns (C)"), Axis::linear("mean error (kB)")],
                lines: lines.collect(),
            }
        };
        names.into_iter().zip(Estimator::ALL).map(plot).collect()
    }

    /// Precision against recall for varying thresholds, with a line for each alpha.
    fn figure_9(&self) -> Vec<Plot> {
        let names = ["figure-9-inner", "figure-9-outer", "figure-9-overlap"];
        let mut alphas: Vec<_> = self.results.of(FIGURE_9).map(|point| point.parameter(ALPHA)).collect();
        alphas.dedup();
        let plot = |(name, estimator): (&'static str, Estimator)| {
            let [precision, recall] = [PRECISION, RECALL].map(|what| format!("{estimator} {what}"));
            let of = |alpha: &&str| {
                let points = self.results.of(FIGURE_9).filter(|point| point.parameter(ALPHA) == *alpha);
                let points = points.filter_map(|point| Some((point.mean(&recall)?.mean, point.mean(&precision)?)));
                Line { name: format!("alpha {alpha} %"), points: points.collect() }
            };
            Plot {
                name,
                title: format!("Precision against recall, h = 4, R = 2, C = 8: {estimator}"),
                axes: [Axis::linear(RECALL), Axis::linear(PRECISION)],
                lines: alphas.iter().map(of).collect(),
            }
        };
        names.into_iter().zip(Estimator::ALL).map(plot).collect()
    }

    /// A value against the number of columns, or a multiple of it.
    fn by_columns(&self, name: String, h: u32, factor: f64, value: &str) -> Line {
        let points = self.with_snapshots(h).filter_map(|point| Some((factor * columns_of(point)?, point.mean(value)?)));
        Line { name, points: points.collect() }
    }

    /// A value without collisions, at both ends of the range of columns.
    fn rounding(&self, name: String, h: u32, value: &str) -> Line {
        let columns = self.columns();
        let ends = columns.first().into_iter().chain(columns.last()).map(|columns| f64::from(*columns));
        let mean = self.point(h, None).and_then(|point| point.mean(value));
        Line { name, points: mean.map_or_else(Vec::new, |mean| ends.map(|at| (at, mean)).collect()) }
    }

    /// The traffic in the queue, beside what the paper says of its trace.
    fn traffic(&self, is_the_papers: bool) -> Table {
        let rows = [
            (UTILISATION, "7.5", 2),
            (LONGEST, "6.4", 2),
            (DEEPEST, "8", 2),
            (MEAN_FLOWS, "63.6", 1),
            (P95_FLOWS, "130", 0),
            (P999_FLOWS, "200", 0),
            (CONTRIBUTING, "3.7", 2),
            (FLOWS, "550000", 0),
            (PACKETS, "-", 0),
            (CONGESTED, "-", 1),
            (POSITIVES, "-", 1),
        ];
        let row = |(value, paper, digits): (&str, &str, usize)| {
            let point = self.results.of(WORKLOAD).next();
            let ours = point.map_or("-".to_owned(), |point| match point.mean(value).and_then(|mean| mean.half_width) {
                Some(half) if half > 0.0 => point.shown_within(value, digits),
                _ => point.shown(value, digits),
            });
            [Some(value.to_owned()), is_the_papers.then(|| paper.to_owned()), Some(ours)]
                .into_iter()
                .flatten()
                .collect()
        };
        let columns = [Some("traffic"), is_the_papers.then_some("paper"), Some("ours")];
        Table {
            title: "What passes the queue; it is congested when packets wait tau, an eighth of the longest wait"
                .to_owned(),
            columns: columns.into_iter().flatten().map(str::to_owned).collect(),
            rows: rows.into_iter().map(row).collect(),
        }
    }

    /// How accurate each estimator is with four snapshots.
    fn at_four(&self) -> Table {
        let mut rows = Vec::new();
        for estimator in Estimator::ALL {
            for point in self.with_snapshots(4) {
                let shown = |what: &str| point.shown_within(&format!("{estimator} {what}"), 1);
                let values = [PRECISION, RECALL, MEAN_ERROR, MEDIAN_ERROR].map(shown);
                rows.push([estimator.to_string(), point.parameter(C).to_owned()].into_iter().chain(values).collect());
            }
        }
        Table {
            title: "With four snapshots, alpha 1 %".to_owned(),
            columns: ["estimator", C, PRECISION, RECALL, MEAN_ERROR, MEDIAN_ERROR].map(str::to_owned).to_vec(),
            rows,
        }
    }

    /// Other readings of the paper.
    fn readings(&self) -> Table {
        let mut rows = Vec::new();
        for point in self.results.of(READINGS).filter(|point| [4.0, 16.0].contains(&point.number(H))) {
            for name in readings::NAMES {
                let shown = |what: &str| point.shown(&format!("{name}: {what}"), 1);
                let values = [PRECISION, RECALL, MEAN_ERROR, MEDIAN_ERROR].map(shown);
                rows.push([name.to_owned(), point.parameter(H).to_owned()].into_iter().chain(values).collect());
            }
        }
        Table {
            title: "Which windows are added up: readings of the paper, without collisions, alpha 1 %".to_owned(),
            columns: ["windows", H, PRECISION, RECALL, MEAN_ERROR, MEDIAN_ERROR].map(str::to_owned).to_vec(),
            rows,
        }
    }

    /// How the recall of the readings depends on the speed of flows, if that was varied.
    fn paces(&self) -> Vec<Table> {
        let usual = self.results.of(READINGS).find(|point| point.number(H) == 4.0);
        let points: Vec<_> = self.results.of(PACES).collect();
        if points.is_empty() {
            return Vec::new();
        }
        let row = |name: &&str| {
            let shown = |point: Option<&Point>| {
                point.map_or("-".to_owned(), |point| point.shown(&format!("{name}: {RECALL}"), 1))
            };
            let varied = points.iter().map(|point| shown(Some(*point)));
            [(*name).to_owned(), shown(usual)].into_iter().chain(varied).collect()
        };
        let varied = points.iter().map(|point| format!("{} Gb/s", point.parameter(PACE)));
        vec![Table {
            title: "Recall with four snapshots, without collisions, as flows of bursts send slower or faster (%)"
                .to_owned(),
            columns: ["windows".to_owned(), "as above".to_owned()].into_iter().chain(varied).collect(),
            rows: readings::NAMES.iter().map(row).collect(),
        }]
    }

    /// The lowest precision and recall over all alphas at h = 4 and C = 8, with alpha as threshold; or, if `best`, with
    /// the threshold at which the lower of the two is highest.
    pub fn over_alphas(&self, estimator: Estimator, best: bool) -> OverAlphas {
        let mut over = OverAlphas::default();
        let mut alphas: Vec<_> = self.results.of(FIGURE_9).map(|point| point.parameter(ALPHA)).collect();
        alphas.dedup();
        for alpha in alphas {
            let points = self.results.of(FIGURE_9).filter(|point| point.parameter(ALPHA) == alpha);
            let points = points.filter(|point| best || point.number(THRESHOLD) == 1.0);
            let both = points.filter_map(|point| {
                let value = |what: &str| Some(point.mean(&format!("{estimator} {what}"))?.mean);
                Some((value(PRECISION)?, value(RECALL)?))
            });
            match both.max_by(|one, other| one.0.min(one.1).total_cmp(&other.0.min(other.1))) {
                Some((precision, recall)) => {
                    let before = over.least.unwrap_or((precision, recall));
                    over.least = Some((before.0.min(precision), before.1.min(recall)));
                }
                None => over.without.push(alpha.to_owned()),
            }
        }
        over
    }
}

/// A result over all alphas.
#[derive(Debug, Default, PartialEq)]
pub struct OverAlphas {
    /// The lowest precision and recall, over the alphas that have both.
    pub least: Option<(f64, f64)>,
    /// The alphas that lack one of them, in percent.
    pub without: Vec<String>,
}

fn columns_of(point: &Point) -> Option<f64> {
    point.parameter(C).parse().ok()
}

/// The numeric values of a parameter of the grid, ascending.
fn numbers(results: &Results, name: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = results.of(GRID).filter_map(|point| point.parameter(name).parse().ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Values;
    use crate::study::Cell;

    /// At a high alpha a sketch may report nothing, and then has no precision. The mean is over the others, and the
    /// result lists the alphas without one.
    #[test]
    fn an_alpha_without_precision_is_named() {
        let mut results = Results::new(0.95);
        let mut add = |alpha: &str, threshold: &str, values: &[(&str, f64)]| {
            let parameters = vec![(ALPHA, alpha.to_owned()), (THRESHOLD, threshold.to_owned())];
            let cell = Cell { figure: FIGURE_9, parameters, seed: 1, scenario: String::new() };
            let named = values.iter().map(|(name, value)| (format!("{} {name}", Estimator::Inner), *value));
            results.add(&cell, named.collect::<Values>());
        };
        add("1", "0.5", &[(PRECISION, 80.0), (RECALL, 95.0)]);
        add("1", "1", &[(PRECISION, 90.0), (RECALL, 70.0)]);
        add("30", "0.5", &[(PRECISION, 60.0), (RECALL, 99.0)]);
        add("30", "1", &[(RECALL, 0.0)]);
        let over = |best| Grid { results: &results }.over_alphas(Estimator::Inner, best);
        assert_eq!(over(false), OverAlphas { least: Some((90.0, 70.0)), without: vec!["30".to_owned()] });
        assert_eq!(over(true), OverAlphas { least: Some((60.0, 95.0)), without: Vec::new() });
        let none = Grid { results: &results }.over_alphas(Estimator::Outer, true);
        assert_eq!(none, OverAlphas { least: None, without: vec!["1".to_owned(), "30".to_owned()] });
    }
}
