//! What the rows leave unsaid: addresses, their prefixes and ports that many flows have, whichever rows those are in.
//!
//! These are the hierarchical heavy hitters of one dimension at a time (Zhang et al., section 3): from the finest level
//! up, a value is named if it has enough beyond what is named below it. A row says as much as a value of its own would if
//! it requires this or a finer one, and a heavy flow is named as it is.

use super::amount::Measure;
use super::fields::{DIMENSIONS, PROTOCOL, Picks};
use super::lattice::{Lattice, Members};
use crate::Amount;

/// The values that rows leave unsaid; `rows` are their picks, in the order in which they were found.
pub(super) fn overlaps(lattice: &Lattice, rows: &[Picks]) -> Vec<Members> {
    let cells = &lattice.all.cells;
    let mut found = Vec::new();
    for (dimension, slots) in DIMENSIONS.iter().enumerate().filter(|(_, slots)| slots.start != PROTOCOL) {
        // For each cell the finest slot at which it is named.
        let mut named: Vec<Option<usize>> = (0..cells.len())
            .map(|cell| {
                let flow = cells[cell].flows == 1 && cells[cell].amount.reaches(lattice.heavy);
                let row = lattice.taken[cell].and_then(|row| rows.get(row)?[dimension]);
                if flow { Some(slots.end) } else { row.map(|(slot, _)| slot) }
            })
            .collect();
        for slot in slots.clone().rev() {
            let item = |cell: usize| usize::from(cells[cell].items[slot]);
            let mut sums = vec![Amount::default(); lattice.all.items[slot].len() + 1];
            for cell in (0..cells.len()).filter(|cell| named[*cell].is_none_or(|finest| finest < slot)) {
                sums[item(cell)] = sums[item(cell)].and(cells[cell].amount);
            }
            for (number, _) in sums.iter().enumerate().skip(1).filter(|(_, sum)| sum.reaches(lattice.least)) {
                let having: Vec<_> = (0..cells.len()).filter(|cell| item(*cell) == number).collect();
                having.iter().for_each(|cell| named[*cell] = named[*cell].max(Some(slot)));
                let mut picks = Picks::default();
                picks[dimension] = Some((slot, number as u16));
                found.push(Members { cells: having, picks, score: 0.0, single: false, measure: Measure::Bytes });
            }
        }
    }
    found
}
