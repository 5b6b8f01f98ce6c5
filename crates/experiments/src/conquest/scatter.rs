//! Figure 15a: estimates against true sizes.

use super::{C, FIGURE_15A, H};
use crate::outcome::Sheet;
use crate::panels::{Panel, Panels};
use crate::plot::Axis;
use crate::results::{Point, Results, Values};
use queuescope_meter::ExactDepartures;
use queuescope_sketch::{Estimator, Snapshots};
use queuescope_wire::Nanos;

/// How many of the queried packets are shown.
const SHOWN: usize = 250;
const TRUTH: &str = "true size (kB)";

/// True flow sizes and estimates for evenly chosen packets.
pub fn measure(truths: &ExactDepartures, tau: Nanos, sketch: &mut impl Snapshots) -> Values {
    let waiting = truths.waited(tau).count();
    let (mut values, mut number) = (Values::new(), 0);
    truths.ask(sketch, tau, Estimator::ALL, |truth, said| {
        // Takes the first packet of each of `SHOWN` equal parts.
        let part = number * SHOWN / waiting;
        if number == 0 || part > (number - 1) * SHOWN / waiting {
            values.insert(named(part, TRUTH), truth.part.own as f64 / 1e3);
            let said = Estimator::ALL.iter().zip(said);
            values.extend(said.map(|(estimator, said)| (named(part, &estimate(*estimator)), said as f64 / 1e3)));
        }
        number += 1;
    });
    values
}

fn named(packet: usize, what: &str) -> String {
    format!("{packet:03} {what}")
}

fn estimate(estimator: Estimator) -> String {
    format!("{estimator} (kB)")
}

/// The packets of a cell: true size and estimates.
fn packets(point: &Point) -> Vec<[f64; 4]> {
    let Some((_, values)) = point.runs.first() else { return Vec::new() };
    let [first, second, third] = Estimator::ALL.map(estimate);
    let packet = |number| {
        let value = |what: &str| values.get(&named(number, what)).copied();
        Some([value(TRUTH)?, value(&first)?, value(&second)?, value(&third)?])
    };
    (0..SHOWN).map_while(packet).collect()
}

/// The data, with a row for each packet.
pub fn sheet(results: &Results) -> Sheet {
    let [first, second, third] = Estimator::ALL.map(estimate);
    let columns = [H.to_owned(), C.to_owned(), "packet".to_owned(), TRUTH.to_owned(), first, second, third];
    let rows = results.of(FIGURE_15A).flat_map(|point| {
        let of = [point.parameter(H), point.parameter(C)].map(str::to_owned);
        packets(point).into_iter().zip(0..).map(move |(values, number): ([f64; 4], u32)| {
            let values = values.iter().map(f64::to_string);
            of.clone().into_iter().chain([number.to_string()]).chain(values).collect()
        })
    });
    Sheet { name: FIGURE_15A, columns: columns.to_vec(), rows: rows.collect() }
}

/// A drawing for each estimator: many snapshots above few, many columns to the right of few, as in the paper.
pub fn panels(results: &Results) -> Vec<Panels> {
    let names = ["figure-15a-inner", "figure-15a-outer", "figure-15a-overlap"];
    let drawing = |(index, name): (usize, &'static str)| {
        let mut rows: Vec<Vec<Panel>> = Vec::new();
        let mut last = String::new();
        for point in results.of(FIGURE_15A) {
            let (h, columns) = (point.parameter(H), point.parameter(C));
            if rows.is_empty() || h != last {
                rows.insert(0, Vec::new());
                h.clone_into(&mut last);
            }
            let points = packets(point).into_iter().map(|values| (values[0], values[1 + index])).collect();
            rows[0].push(Panel { title: format!("h = {h}, C = {columns}"), points });
        }
        let title = format!("Estimated against true sizes: {}", Estimator::ALL[index]);
        Panels { name, title, axes: [Axis::linear(TRUTH), Axis::linear("estimate (kB)")], rows }
    };
    names.into_iter().enumerate().map(drawing).filter(|drawing| !drawing.rows.is_empty()).collect()
}
