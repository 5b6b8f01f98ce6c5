//! Values that no row names: addresses, their prefixes and ports that many flows have in common, in any rows.
//!
//! These are the hierarchical heavy hitters of one field at a time (Zhang et al., section 3): from the finest level up, a value is named if
//! enough of it is not covered by finer named values. A row covers a value if it requires that value or a finer one, and a heavy flow covers
//! its own values.

use super::amount::Measure;
use super::fields::{BOTH_ENDS, DIMENSIONS, ENDS, Picks, is_prefix};
use super::lattice::{Lattice, Members};
use crate::Amount;

/// Finds the values that no row covers; `rows` are the picks of the rows, in the order in which they were found. A connection has a value
/// if either of its ends has it.
pub(super) fn overlaps(lattice: &Lattice, rows: &[Picks], connections: bool) -> Vec<Members> {
    let fields: Vec<&[usize]> =
        if connections { BOTH_ENDS.iter().map(|ends| &ends[..]).collect() } else { ENDS.chunks(1).collect() };
    let mut found = Vec::<Members>::new();
    for ends in fields {
        let mut field = FieldCoverage::new(lattice, rows, ends);
        found.iter().for_each(|members| field.cover(members));
        for level in (0..DIMENSIONS[ends[0]].len()).rev() {
            let sums = field.uncovered(level);
            for (item, _) in (0..).zip(&sums).skip(1).filter(|(_, sum)| sum.reaches(lattice.least)) {
                let members = field.members(level, item);
                field.cover(&members);
                if !repeats(lattice, rows, &members) {
                    found.push(members);
                }
            }
        }
    }
    found
}

/// A field of the cells: one dimension, or the two ends of connections.
struct FieldCoverage<'a> {
    lattice: &'a Lattice<'a>,
    ends: &'a [usize],
    /// For each cell and end, the finest level at which the value is covered.
    covered: Vec<[Option<usize>; 2]>,
}

impl<'a> FieldCoverage<'a> {
    /// Starts with the values that rows and heavy flows cover.
    fn new(lattice: &'a Lattice<'a>, rows: &[Picks], ends: &'a [usize]) -> Self {
        let covered = (lattice.all.cells.iter().zip(&lattice.taken)).map(|(cell, row)| {
            let mut levels = [None; 2];
            for (level, dimension) in levels.iter_mut().zip(ends) {
                let slots = &DIMENSIONS[*dimension];
                let pick = row.and_then(|row| rows.get(row)?[*dimension]);
                let is_heavy = cell.flows == 1 && cell.amount.reaches(lattice.heavy);
                *level = if is_heavy { Some(slots.len()) } else { pick.map(|(slot, _)| slot - slots.start) };
            }
            levels
        });
        Self { lattice, ends, covered: covered.collect() }
    }

    /// The values of a cell at a level, with the places of their ends; 0 if the value is not frequent.
    fn items(&self, cell: usize, level: usize) -> impl Iterator<Item = (usize, u16)> + use<'a> {
        let items = &self.lattice.all.cells[cell].items;
        self.ends.iter().enumerate().map(move |(place, dimension)| (place, items[DIMENSIONS[*dimension].start + level]))
    }

    fn has(&self, cell: usize, level: usize, item: u16) -> bool {
        self.items(cell, level).any(|(_, other)| other == item)
    }

    /// For each value at a level, the amount that is not covered yet.
    fn uncovered(&self, level: usize) -> Vec<Amount> {
        let all = &self.lattice.all;
        let mut sums = vec![Amount::default(); all.items[DIMENSIONS[self.ends[0]].start + level].len() + 1];
        for cell in 0..all.cells.len() {
            let is_said = |item: u16| {
                self.items(cell, level).any(|(place, other)| other == item && self.covered[cell][place] >= Some(level))
            };
            // A flow with the same value at both ends counts once.
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
        let cells: Vec<_> = (0..self.covered.len()).filter(|cell| self.has(*cell, level, item)).collect();
        let common = common(self.lattice, &cells);
        let is_at = |place: usize| cells.iter().all(|cell| self.items(*cell, level).nth(place) == Some((place, item)));
        let picks = if (0..self.ends.len()).any(is_at) {
            common
        } else {
            // The value is at either end, so the cells have nothing else of an end in common.
            let mut picks =
                common.map(|pick| pick.filter(|(slot, _)| ENDS.iter().all(|end| !DIMENSIONS[*end].contains(slot))));
            picks[self.ends[0]] = Some((DIMENSIONS[self.ends[0]].start + level, item));
            picks
        };
        Members { cells, picks, score: 0.0, single: false, measure: Measure::Bytes }
    }

    /// Marks the common value of `members` as covered.
    fn cover(&mut self, members: &Members) {
        for dimension in self.ends {
            let Some((slot, item)) = members.picks[*dimension] else { continue };
            let level = slot - DIMENSIONS[*dimension].start;
            for cell in &members.cells {
                for (place, _) in self.items(*cell, level).filter(|(_, other)| *other == item) {
                    let covered = &mut self.covered[*cell][place];
                    *covered = (*covered).max(Some(level));
                }
            }
        }
    }
}

/// Whether `members` are the flows of a row, and their common values add only prefixes to those of the row. The row does not have these
/// prefixes because too many other flows have them.
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

/// Everything that cells have in common: in each dimension the finest value.
fn common(lattice: &Lattice, cells: &[usize]) -> Picks {
    let item = |slot: usize, cell: usize| lattice.all.cells[cell].items[slot];
    let shared = |slot: usize| {
        let first = item(slot, *cells.first()?);
        (first > 0 && cells.iter().all(|cell| item(slot, *cell) == first)).then_some((slot, first))
    };
    DIMENSIONS.map(|slots| slots.rev().find_map(shared))
}
