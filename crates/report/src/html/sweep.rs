//! A sweep as a page: what was swept, and a table of what was found.

use super::page;
use crate::model::Sweep;
use std::io::{self, Write};

/// The scripts of such a page; as those of a report.
pub(super) const SCRIPTS: [&str; 5] = [
    include_str!("../../assets/format.js"),
    include_str!("../../assets/dom.js"),
    include_str!("../../assets/tables.js"),
    include_str!("../../assets/sorted.js"),
    include_str!("../../assets/sweep.js"),
];

/// Writes `sweep` as one self-contained page.
///
/// # Errors
/// Those of `out`.
pub fn write(sweep: &Sweep, out: &mut impl Write) -> io::Result<()> {
    page(&sweep.name, sweep, None, SCRIPTS.iter(), out)
}
