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
    let mut found = Vec::<Members>::new();
    for (dimension, slots) in DIMENSIONS.iter().enumerate().filter(|(_, slots)| slots.start != PROTOCOL) {
        // For each cell the finest slot at which it is named.
        let mut named: Vec<Option<usize>> = (0..cells.len())
            .map(|cell| {
                let flow = cells[cell].flows == 1 && cells[cell].amount.reaches(lattice.heavy);
                let row = lattice.taken[cell].and_then(|row| rows.get(row)?[dimension]);
                if flow { Some(slots.end) } else { row.map(|(slot, _)| slot) }
            })
            .collect();
        let name = |named: &mut [Option<usize>], members: &Members| {
            if let Some((slot, _)) = members.picks[dimension] {
                members.cells.iter().for_each(|cell| named[*cell] = named[*cell].max(Some(slot)));
            }
        };
        found.iter().for_each(|members| name(&mut named, members));
        for slot in slots.clone().rev() {
            let item = |cell: usize| usize::from(cells[cell].items[slot]);
            let mut sums = vec![Amount::default(); lattice.all.items[slot].len() + 1];
            for cell in (0..cells.len()).filter(|cell| named[*cell].is_none_or(|finest| finest < slot)) {
                sums[item(cell)] = sums[item(cell)].and(cells[cell].amount);
            }
            for (number, _) in sums.iter().enumerate().skip(1).filter(|(_, sum)| sum.reaches(lattice.least)) {
                let having: Vec<_> = (0..cells.len()).filter(|cell| item(*cell) == number).collect();
                let picks = common(lattice, &having);
                let members = Members { cells: having, picks, score: 0.0, single: false, measure: Measure::Bytes };
                name(&mut named, &members);
                found.push(members);
            }
        }
    }
    found
}

/// All that cells have in common: of each dimension the finest.
fn common(lattice: &Lattice, cells: &[usize]) -> Picks {
    let item = |slot: usize, cell: usize| lattice.all.cells[cell].items[slot];
    let shared = |slot: usize| {
        let first = item(slot, *cells.first()?);
        (first > 0 && cells.iter().all(|cell| item(slot, *cell) == first)).then_some((slot, first))
    };
    DIMENSIONS.map(|slots| slots.rev().find_map(shared))
}
