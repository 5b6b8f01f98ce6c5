//! What the rows leave unsaid: addresses, their prefixes and ports that many flows have, whichever rows those are in.
//!
//! These are the hierarchical heavy hitters of one field at a time (Zhang et al., section 3): from the finest level
//! up, a value is named if it has enough beyond what is named below it. A row says as much as a value of its own would if
//! it requires this or a finer one, and a heavy flow is named as it is.

use super::amount::Measure;
use super::fields::{BOTH_ENDS, DIMENSIONS, ENDS, Picks, is_prefix};
use super::lattice::{Lattice, Members};
use crate::Amount;

/// The values that rows leave unsaid; `rows` are their picks, in the order in which they were found. A connection has a value if
/// either of its ends has it.
pub(super) fn overlaps(lattice: &Lattice, rows: &[Picks], connections: bool) -> Vec<Members> {
    let fields: Vec<&[usize]> =
        if connections { BOTH_ENDS.iter().map(|ends| &ends[..]).collect() } else { ENDS.chunks(1).collect() };
    let mut found = Vec::<Members>::new();
    for ends in fields {
        let mut field = Field::new(lattice, rows, ends);
        found.iter().for_each(|members| field.say(members));
        for level in (0..DIMENSIONS[ends[0]].len()).rev() {
            let sums = field.unsaid(level);
            for (item, _) in (0..).zip(&sums).skip(1).filter(|(_, sum)| sum.reaches(lattice.least)) {
                let members = field.members(level, item);
                field.say(&members);
                if !repeats(lattice, rows, &members) {
                    found.push(members);
                }
            }
        }
    }
    found
}

/// A field of the cells: one dimension, or the two ends of connections.
struct Field<'a> {
    lattice: &'a Lattice<'a>,
    ends: &'a [usize],
    /// For each cell and end, the finest level at which the value is named.
    said: Vec<[Option<usize>; 2]>,
}

impl<'a> Field<'a> {
    /// What rows and heavy flows say.
    fn new(lattice: &'a Lattice<'a>, rows: &[Picks], ends: &'a [usize]) -> Self {
        let said = (lattice.all.cells.iter().zip(&lattice.taken)).map(|(cell, row)| {
            let mut levels = [None; 2];
            for (level, dimension) in levels.iter_mut().zip(ends) {
                let slots = &DIMENSIONS[*dimension];
                let pick = row.and_then(|row| rows.get(row)?[*dimension]);
                let is_heavy = cell.flows == 1 && cell.amount.reaches(lattice.heavy);
                *level = if is_heavy { Some(slots.len()) } else { pick.map(|(slot, _)| slot - slots.start) };
            }
            levels
        });
        Self { lattice, ends, said: said.collect() }
    }

    /// The values of a cell at a level, with the places of their ends; 0 where it is not frequent.
    fn items(&self, cell: usize, level: usize) -> impl Iterator<Item = (usize, u16)> + use<'a> {
        let items = &self.lattice.all.cells[cell].items;
        self.ends.iter().enumerate().map(move |(place, dimension)| (place, items[DIMENSIONS[*dimension].start + level]))
    }

    fn has(&self, cell: usize, level: usize, item: u16) -> bool {
        self.items(cell, level).any(|(_, other)| other == item)
    }

    /// How much of each value at a level is not said yet.
    fn unsaid(&self, level: usize) -> Vec<Amount> {
        let all = &self.lattice.all;
        let mut sums = vec![Amount::default(); all.items[DIMENSIONS[self.ends[0]].start + level].len() + 1];
        for cell in 0..all.cells.len() {
            let is_said = |item: u16| {
                self.items(cell, level).any(|(place, other)| other == item && self.said[cell][place] >= Some(level))
            };
            // What has the same value at both ends counts once.
            let is_first = |(place, item): &(usize, u16)| {
                self.items(cell, level).find(|(_, other)| other == item) == Some((*place, *item))
            };
            for (_, item) in self.items(cell, level).filter(is_first).filter(|(_, item)| !is_said(*item)) {
                let sum = &mut sums[usize::from(item)];
                *sum = sum.and(all.cells[cell].amount);
            }
        }
        sums
    }

    /// All cells that have a value, with what they have in common.
    fn members(&self, level: usize, item: u16) -> Members {
        let cells: Vec<_> = (0..self.said.len()).filter(|cell| self.has(*cell, level, item)).collect();
        let common = common(self.lattice, &cells);
        let is_at = |place: usize| cells.iter().all(|cell| self.items(*cell, level).nth(place) == Some((place, item)));
        let picks = if (0..self.ends.len()).any(is_at) {
            common
        } else {
            // It is now the one end and now the other, so nothing else of an end is in common.
            let mut picks =
                common.map(|pick| pick.filter(|(slot, _)| ENDS.iter().all(|end| !DIMENSIONS[*end].contains(slot))));
            picks[self.ends[0]] = Some((DIMENSIONS[self.ends[0]].start + level, item));
            picks
        };
        Members { cells, picks, score: 0.0, single: false, measure: Measure::Bytes }
    }

    /// What `members` have in common is named.
    fn say(&mut self, members: &Members) {
        for dimension in self.ends {
            let Some((slot, item)) = members.picks[*dimension] else { continue };
            let level = slot - DIMENSIONS[*dimension].start;
            for cell in &members.cells {
                for (place, _) in self.items(*cell, level).filter(|(_, other)| *other == item) {
                    let said = &mut self.said[*cell][place];
                    *said = (*said).max(Some(level));
                }
            }
        }
    }
}

/// Whether `members` are the flows of a row, and nothing but prefixes is said beside what the row says: the row leaves them out since too
/// many other flows are like that.
fn repeats(lattice: &Lattice, rows: &[Picks], members: &Members) -> bool {
    let Some(row) = members.cells.first().and_then(|cell| lattice.taken[*cell]) else { return false };
    let of_row = lattice.taken.iter().filter(|taken| **taken == Some(row)).count();
    let is_more = |dimension: usize| {
        let own = members.picks[dimension];
        own.is_some_and(|(slot, _)| !is_prefix(slot)) && own != rows[row][dimension]
    };
    of_row == members.cells.len()
        && members.cells.iter().all(|cell| lattice.taken[*cell] == Some(row))
        && row < rows.len()
        && !(0..DIMENSIONS.len()).any(is_more)
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
