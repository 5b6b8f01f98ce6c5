//! A sweep as a page: its parameters, plots and a table of its results.

use super::{SIM_STYLE, page};
use crate::model::Sweep;
use std::io::{self, Write};

/// Additional styles of this page.
pub(super) const STYLE: &str = include_str!("../../assets/sweep.css");

/// The scripts of this page, in the same order as those of a report.
pub(super) const SCRIPTS: [&str; 14] = [
    include_str!("../../assets/format.js"),
    include_str!("../../assets/dom.js"),
    include_str!("../../assets/colours.js"),
    include_str!("../../assets/axes.js"),
    include_str!("../../assets/theme.js"),
    include_str!("../../assets/tables.js"),
    include_str!("../../assets/sorted.js"),
    include_str!("../../assets/quantities.js"),
    include_str!("../../assets/plotaxes.js"),
    include_str!("../../assets/marks.js"),
    include_str!("../../assets/roles.js"),
    include_str!("../../assets/sweepplot.js"),
    include_str!("../../assets/sweepplots.js"),
    include_str!("../../assets/sweep.js"),
];

/// Writes `sweep` as one self-contained page.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write(sweep: &Sweep, out: &mut impl Write) -> io::Result<()> {
    page(&sweep.name, sweep, &[SIM_STYLE, STYLE], SCRIPTS.iter(), out)
}
