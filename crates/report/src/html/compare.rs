//! One scenario in two worlds as a page: each quantity of both, side by side and on one scale.

use super::{SIM_STYLE, page};
use crate::model::Comparison;
use std::io::{self, Write};

/// What only such a page needs of style.
pub(super) const STYLE: &str = include_str!("../../assets/compare.css");

/// The scripts of such a page; as those of a report.
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
/// Those of `out`.
pub fn write(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    page(&comparison.name, comparison, &[SIM_STYLE, STYLE], SCRIPTS.iter(), out)
}
