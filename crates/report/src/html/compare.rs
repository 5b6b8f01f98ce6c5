//! A scenario simulated and on real hosts as a page: each quantity of both, side by side and on one scale.

use super::{SIM_STYLE, page};
use crate::model::Comparison;
use std::io::{self, Write};

/// Additional styles of this page.
pub(super) const STYLE: &str = include_str!("../../assets/compare.css");

/// The scripts of this page, in the same order as those of a report.
pub(super) const SCRIPTS: [&str; 5] = [
    include_str!("../../assets/format.js"),
    include_str!("../../assets/dom.js"),
    include_str!("../../assets/theme.js"),
    include_str!("../../assets/tables.js"),
    include_str!("../../assets/compare.js"),
];

/// Writes `comparison` as one self-contained page.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    page(&comparison.name, comparison, &[SIM_STYLE, STYLE], SCRIPTS.iter(), out)
}
