//! Plots as SVG.

use crate::error::{Error, Result};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use queuescope_report::model::SweepMean;
use std::fmt::Display;
use std::ops::Range;

/// A plot of lines over numbers, with confidence intervals.
#[derive(Debug)]
pub struct Plot {
    /// The name of its file.
    pub name: &'static str,
    /// Its title.
    pub title: String,
    /// The axes.
    pub axes: [Axis; 2],
    /// The lines.
    pub lines: Vec<Line>,
}

/// An axis.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// Its name with the unit.
    pub name: &'static str,
    /// Equal lengths are equal factors; values not above 0 are left out.
    logarithmic: bool,
}

/// A line.
#[derive(Debug)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, SweepMean)>,
}

/// Colours that colour-blind readers can distinguish (Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
];
/// The dashes of lines once all colours are used: solid, then dashes and gaps of these lengths in pixels.
const DASHES: [Option<(u32, u32)>; 3] = [None, Some((7, 5)), Some((2, 4))];
const SIZE: (u32, u32) = (860, 440);
/// The width of the legend at the right, in pixels.
const LEGEND: u32 = 190;
/// How many letters of a line's name fit there.
const LEGEND_LETTERS: usize = 24;
pub const FONT: &str = "sans-serif";

impl Axis {
    /// An axis on which equal lengths are equal differences.
    pub const fn linear(name: &'static str) -> Self {
        Self { name, logarithmic: false }
    }

    /// An axis on which equal lengths are equal factors.
    pub const fn logarithmic(name: &'static str) -> Self {
        Self { name, logarithmic: true }
    }

    /// The position of a value along the axis; `None` if it has none.
    fn place(self, value: f64) -> Option<f64> {
        if self.logarithmic { (value > 0.0).then(|| value.log10()) } else { Some(value) }
    }

    /// The positions of labels: at one, two and five times powers of ten. If those are too many, at powers of ten; if
    /// they are too few, at more.
    fn ticks(self, places: &Range<f64>) -> Vec<f64> {
        if !self.logarithmic {
            let width = places.end - places.start;
            let power = 10f64.powf((width / MOST_TICKS).log10().floor());
            let step =
                [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| width / step <= MOST_TICKS);
            let step = step.unwrap_or(width);
            let first = (places.start / step).ceil() as i64;
            return (first..).map(|n| n as f64 * step).take_while(|place| *place <= places.end).collect();
        }
        let powers = places.start.floor() as i32..=places.end.ceil() as i32;
        let at = |times: &[f64]| -> Vec<f64> {
            let all = powers.clone().flat_map(|power| times.iter().map(move |times| times.log10() + f64::from(power)));
            all.filter(|place| places.contains(place)).collect()
        };
        let fine = at(&[1.0, 2.0, 5.0]);
        match fine.len() {
            0 | 1 => at(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]),
            few if few as f64 <= MOST_TICKS => fine,
            _ => at(&[1.0]),
        }
    }

    /// The part of the axis that is shown.
    fn scale(self, places: Range<f64>) -> Scale {
        Scale { ticks: self.ticks(&places), axis: self, places }
    }

    /// The value at a position.
    fn label(self, place: &f64) -> String {
        shown(if self.logarithmic { 10f64.powf(*place) } else { *place })
    }
}

/// An axis as it is drawn.
struct Scale {
    axis: Axis,
    places: Range<f64>,
    ticks: Vec<f64>,
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (low, high): (i32, i32)) -> i32 {
        let share = (place - self.places.start) / (self.places.end - self.places.start);
        low + (share * f64::from(high - low)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.places.clone()
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(place: &f64) -> String {
        shown(*place)
    }

    fn format_ext(&self, place: &f64) -> String {
        self.axis.label(place)
    }
}

/// The most labels of an axis.
const MOST_TICKS: f64 = 11.0;

/// Draws a plot.
///
/// # Errors
/// Fails if it has no points.
pub fn svg(plot: &Plot) -> Result<String> {
    let mut text = String::new();
    draw(plot, &mut text).map_err(|why| Error::Draw { name: plot.name.to_string(), why: why.to_string() })?;
    Ok(text)
}

fn draw(plot: &Plot, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let [x, y] = plot.axes;
    let [across, upwards] = ranges(plot).ok_or("it has no points")?;
    let (across, upwards) = (x.scale(across), y.scale(upwards));
    let (left, right) = root.split_horizontally(SIZE.0 - LEGEND);
    let mut chart = ChartBuilder::on(&left)
        .margin(16)
        .caption(&plot.title, (FONT, 17))
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(across, upwards)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.1))
        .axis_style(BLACK.mix(0.4))
        .x_desc(x.name)
        .y_desc(y.name)
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .draw()?;
    for (line, LineStyle { colour, dash }) in plot.lines.iter().zip(line_styles()) {
        let points = line.points.iter().filter_map(|(at, mean)| Some((x.place(*at)?, y.place(mean.mean)?)));
        match dash {
            None => _ = chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?,
            Some((size, gap)) => {
                let line = DashedLineSeries::new(points.clone(), size, gap, colour.stroke_width(2));
                chart.draw_series(line)?;
            }
        }
        chart.draw_series(points.map(|point| Circle::new(point, 3, colour.filled())))?;
        chart.draw_series(line.points.iter().filter_map(|(at, mean)| {
            let half = mean.half_width.filter(|half| *half > 0.0)?;
            let [low, middle, high] = [mean.mean - half, mean.mean, mean.mean + half].map(|value| y.place(value));
            Some(ErrorBar::new_vertical(x.place(*at)?, low?, middle?, high?, colour.stroke_width(1), 6))
        }))?;
    }
    legend(plot, &right)?;
    root.present()?;
    Ok(())
}

/// The names of the lines, one below the other.
fn legend(plot: &Plot, area: &DrawingArea<SVGBackend, Shift>) -> Result<(), Box<dyn std::error::Error>> {
    const ROW: i32 = 16;
    let mut y = 60;
    for (line, LineStyle { colour, dash }) in plot.lines.iter().zip(line_styles()) {
        let (ends, style) = ([(0, y), (20, y)], colour.stroke_width(2));
        match dash {
            None => area.draw(&PathElement::new(ends, style))?,
            Some((size, gap)) => area.draw(&DashedPathElement::new(ends, size, gap, style))?,
        }
        area.draw(&Circle::new((10, y), 3, colour.filled()))?;
        for part in textwrap::wrap(&line.name, LEGEND_LETTERS) {
            area.draw(&Text::new(part.into_owned(), (28, y - 6), (FONT, 13)))?;
            y += ROW;
        }
        y += 6;
    }
    let bars = |line: &Line| line.points.iter().any(|(_, mean)| mean.half_width.is_some_and(|half| half > 0.0));
    if plot.lines.iter().any(bars) {
        area.draw(&Text::new("bars: confidence intervals", (0, y + 4), (FONT, 12).into_font().color(&BLACK.mix(0.6))))?;
    }
    Ok(())
}

/// The style of a line.
#[derive(Debug, Clone, Copy)]
struct LineStyle {
    colour: RGBColor,
    dash: Option<(u32, u32)>,
}

/// The styles of the lines in order; eighteen can be distinguished.
fn line_styles() -> impl Iterator<Item = LineStyle> {
    DASHES.into_iter().cycle().flat_map(|dash| COLOURS.map(|colour| LineStyle { colour, dash }))
}

/// A number at an axis, with three significant digits and no trailing zeros.
fn shown(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { (2 - value.abs().log10().floor() as i32).clamp(0, 9) };
    let text = format!("{value:.digits$}", digits = digits as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The shown ranges of the axes, as positions. Linear axes start at 0 if nothing is below.
fn ranges(plot: &Plot) -> Option<[Range<f64>; 2]> {
    let points = plot.lines.iter().flat_map(|line| &line.points);
    let tops = points.clone().map(|(_, mean)| mean.mean + mean.half_width.unwrap_or(0.0));
    Some([range(plot.axes[0], points.map(|(x, _)| *x))?, range(plot.axes[1], tops)?])
}

fn range(axis: Axis, values: impl Iterator<Item = f64>) -> Option<Range<f64>> {
    let least = if axis.logarithmic { f64::MAX } else { 0.0 };
    let places = values.filter_map(|value| axis.place(value));
    let (low, high) = places.fold((least, f64::MIN), |(low, high), place| (low.min(place), high.max(place)));
    // A single value gets room around it.
    let room = if high > low { 0.05 * (high - low) } else { 0.1 };
    (high > f64::MIN).then_some(if axis.logarithmic { low - room..high + room } else { low..high + room })
}

/// A line through the values measured at some points: the parameter `x`, and the mean of the value `y`.
pub fn line<'a>(name: impl Display, points: impl Iterator<Item = &'a super::results::Point>, x: &str, y: &str) -> Line {
    let points = points.filter_map(|point| Some((point.number(x), point.mean(y)?))).collect();
    Line { name: name.to_string(), points }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With more lines than colours, lines of the same colour differ in their dashes, in the plot and in its legend.
    #[test]
    fn many_lines_can_be_distinguished() {
        let at = |x: f64, y: f64| (x, SweepMean { mean: y, half_width: None, cells: 1 });
        let lines = |count: u32| {
            let line =
                |n| Line { name: format!("line {n}"), points: vec![at(1.0, f64::from(n)), at(2.0, f64::from(n))] };
            let axes = [Axis::linear("x"), Axis::linear("y")];
            svg(&Plot { name: "test", title: "all".to_owned(), axes, lines: (1..=count).map(line).collect() }).unwrap()
        };
        // A solid line is one path in the plot and one in the legend.
        let paths = |text: &str, colour: RGBColor| {
            let RGBColor(red, green, blue) = colour;
            let stroke = format!("stroke=\"#{red:02X}{green:02X}{blue:02X}\"");
            text.lines().filter(|line| line.starts_with("<polyline") && line.contains(&stroke)).count()
        };
        let (six, twelve, eighteen) = (lines(6), lines(12), lines(18));
        for colour in COLOURS {
            assert_eq!(paths(&six, colour), 2);
            let dashes = paths(&twelve, colour) - 2;
            assert!(dashes > 20, "{dashes}");
            assert!(paths(&eighteen, colour) - 2 - dashes > dashes);
        }
        assert!(eighteen.contains("line 18"));
    }
    #[test]
    fn axes_have_labels_however_short_they_are() {
        let labels = |low: f64, high: f64| {
            let axis = Axis::logarithmic("x");
            axis.ticks(&(low.log10()..high.log10())).iter().map(|place| axis.label(place)).collect::<Vec<_>>()
        };
        assert_eq!(labels(1.0, 250.0), ["1", "2", "5", "10", "20", "50", "100", "200"]);
        assert_eq!(labels(1.0, 2e6), ["1", "10", "100", "1000", "10000", "100000", "1000000"]);
        assert_eq!(labels(21.0, 45.0), ["30", "40"]);
    }
}
