//! Plots as SVG.

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use queuescope_report::model::SweepMean;
use std::fmt::Display;
use std::ops::Range;

/// Lines over numbers, with confidence intervals.
#[derive(Debug)]
pub struct Plot {
    /// Of its file.
    pub name: &'static str,
    /// What it shows.
    pub title: String,
    /// The axes, with units.
    pub axes: [&'static str; 2],
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line.
#[derive(Debug)]
pub struct Line {
    /// As in the legend.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, SweepMean)>,
}

/// Colours that can be told apart by those who see few (Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
];
const SIZE: (u32, u32) = (860, 440);
/// The part at the right that tells the lines.
const LEGEND: u32 = 190;
const FONT: &str = "sans-serif";

/// Draws a plot.
///
/// # Errors
/// If it has no points.
pub fn svg(plot: &Plot) -> Result<String> {
    let mut text = String::new();
    draw(plot, &mut text).map_err(|why| anyhow!("cannot draw {}: {why}", plot.name))?;
    Ok(text)
}

fn draw(plot: &Plot, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let [across, upwards] = ranges(plot).ok_or("it has no points")?;
    let (left, right) = root.split_horizontally(SIZE.0 - LEGEND);
    let mut chart = ChartBuilder::on(&left)
        .margin(16)
        .caption(&plot.title, (FONT, 17))
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(across, upwards)?;
    let [x, y] = plot.axes;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.1))
        .axis_style(BLACK.mix(0.4))
        .x_desc(x)
        .y_desc(y)
        .x_label_formatter(&shown)
        .y_label_formatter(&shown)
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .draw()?;
    for (line, colour) in plot.lines.iter().zip(COLOURS.iter().cycle()) {
        let points = line.points.iter().map(|(x, mean)| (*x, mean.mean));
        chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
        chart.draw_series(points.map(|point| Circle::new(point, 3, colour.filled())))?;
        chart.draw_series(line.points.iter().filter_map(|(x, mean)| {
            let half = mean.half_width.filter(|half| *half > 0.0)?;
            let (low, high) = (mean.mean - half, mean.mean + half);
            Some(ErrorBar::new_vertical(*x, low, mean.mean, high, colour.stroke_width(1), 6))
        }))?;
    }
    for (n, (line, colour)) in (0..).zip(plot.lines.iter().zip(COLOURS.iter().cycle())) {
        let y = 60 + 22 * n;
        right.draw(&PathElement::new([(0, y), (20, y)], colour.stroke_width(2)))?;
        right.draw(&Circle::new((10, y), 3, colour.filled()))?;
        right.draw(&Text::new(line.name.clone(), (28, y - 6), (FONT, 13)))?;
    }
    root.present()?;
    Ok(())
}

/// A number at an axis, without zeros that say nothing.
fn shown(value: &f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What the axes show: from 0 on, if nothing is below.
fn ranges(plot: &Plot) -> Option<[Range<f64>; 2]> {
    let points = plot.lines.iter().flat_map(|line| &line.points);
    let range = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) = values.fold((0.0f64, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        (high > low).then_some(low..high + 0.05 * (high - low))
    };
    let tops = points.clone().map(|(_, mean)| mean.mean + mean.half_width.unwrap_or(0.0));
    Some([range(&mut points.map(|(x, _)| *x))?, range(&mut { tops })?])
}

/// A line from what was measured at some points.
pub fn line<'a>(
    name: impl Display,
    points: impl Iterator<Item = &'a super::results::Point>,
    (x, y): (&str, &str),
) -> Line {
    let points = points.filter_map(|point| Some((point.number(x), point.mean(y)?))).collect();
    Line { name: name.to_string(), points }
}
