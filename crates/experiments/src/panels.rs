//! Small plots of points with common axes, in rows and columns.

use super::plot::{Axis, FONT};
use crate::error::{Error, Result};
use plotters::prelude::*;

/// Panels of points with common axes, each with the line on which both values are equal.
#[derive(Debug)]
pub struct Panels {
    /// The name of its file.
    pub name: &'static str,
    /// Its title.
    pub title: String,
    /// The axes, both linear.
    pub axes: [Axis; 2],
    /// The rows from top to bottom; each has as many panels as the first.
    pub rows: Vec<Vec<Panel>>,
}

/// A panel of points.
#[derive(Debug)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// The points.
    pub points: Vec<(f64, f64)>,
}

/// The size of a panel, in pixels.
const SIZE: (u32, u32) = (230, 190);
const TITLE: u32 = 30;

/// Draws panels.
///
/// # Errors
/// Fails if there are none.
pub fn svg(panels: &Panels) -> Result<String> {
    let mut text = String::new();
    draw(panels, &mut text).map_err(|why| Error::Draw { name: panels.name.to_string(), why: why.to_string() })?;
    Ok(text)
}

fn draw(panels: &Panels, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let columns = panels.rows.first().map_or(0, Vec::len);
    let points = panels.rows.iter().flatten().flat_map(|panel| &panel.points);
    let most = points.fold(0.0, |most: f64, (x, y)| most.max(*x).max(*y));
    if columns == 0 || most <= 0.0 {
        return Err("it has no points".into());
    }
    let size = (SIZE.0 * columns as u32, TITLE + SIZE.1 * panels.rows.len() as u32);
    let root = SVGBackend::with_string(text, size).into_drawing_area();
    root.fill(&WHITE)?;
    let (title, below) = root.split_vertically(TITLE);
    title.draw(&Text::new(panels.title.clone(), (16, 8), (FONT, 17)))?;
    let areas = below.split_evenly((panels.rows.len(), columns));
    for (panel, area) in panels.rows.iter().flatten().zip(areas) {
        let mut chart = ChartBuilder::on(&area)
            .margin(8)
            .caption(&panel.title, (FONT, 13))
            .x_label_area_size(34)
            .y_label_area_size(46)
            .build_cartesian_2d(0.0..most, 0.0..most)?;
        let [x, y] = panels.axes;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.1))
            .axis_style(BLACK.mix(0.4))
            .x_labels(4)
            .y_labels(5)
            .x_desc(x.name)
            .y_desc(y.name)
            .label_style((FONT, 10))
            .axis_desc_style((FONT, 11))
            .draw()?;
        chart.draw_series(LineSeries::new([(0.0, 0.0), (most, most)], BLACK.mix(0.4)))?;
        let colour = RGBColor(0, 114, 178).mix(0.6);
        chart.draw_series(panel.points.iter().map(|point| Circle::new(*point, 1, colour.filled())))?;
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_panel_has_its_points() {
        let panel = |title: &str, points| Panel { title: title.to_owned(), points };
        let rows = vec![vec![panel("one", vec![(1.0, 2.0), (3.0, 4.0)]), panel("other", vec![(5.0, 5.0)])]];
        let axes = [Axis::linear("x"), Axis::linear("y")];
        let text = svg(&Panels { name: "test", title: "all".to_owned(), axes, rows }).unwrap();
        assert_eq!(text.matches("<circle").count(), 3);
        assert!(["all", "one", "other"].iter().all(|title| text.contains(title)));
        let none = Panels { name: "test", title: String::new(), axes, rows: Vec::new() };
        assert_eq!(svg(&none).unwrap_err().to_string(), "cannot draw test: it has no points");
    }
}
