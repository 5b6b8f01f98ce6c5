//! The flows of a burst, by what they have in common: flows that agree in every frequent value are one *cell*.
//!
//! After one pass over the flows everything works on cells, of which there are few. A flow that may have to stand alone
//! is a cell of its own.

use super::GroupParams;
use super::fields::{DIMENSIONS, SLOTS, Value, value};
use crate::{Amount, Share};
use hashbrown::{HashMap, HashTable};
use queuescope_wire::{FlowKey, Granularity};
use std::hash::BuildHasher;
use std::ops::Range;

/// All flows of a burst, by cells.
pub(super) struct Cells<'a> {
    flows: &'a [(FlowKey, Share)],
    /// Flows in the order of their cells.
    order: Vec<u32>,
    /// In the order of what they have.
    pub(super) cells: Vec<Cell>,
    /// The frequent values of each slot.
    pub(super) items: [Vec<Value>; SLOTS],
}

/// Flows that agree in every frequent value, or one flow that may have to stand alone.
pub(super) struct Cell {
    /// For each slot the number of the frequent value, from 1; 0 where the value is not frequent.
    pub(super) items: [u16; SLOTS],
    pub(super) flows: u64,
    /// For how many flows these stand: as many, if all flows were kept.
    pub(super) stand_for: f64,
    pub(super) amount: Amount,
    /// As much of that is of flows that stand for others too.
    pub(super) of_sample: Amount,
    /// The most bytes and the most packets of a flow.
    pub(super) largest: Amount,
    /// Where its flows stand in the order.
    place: Range<usize>,
}

/// From which amounts on something counts: either is enough.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// A value is frequent.
    pub(super) frequent: Amount,
    /// A flow may have to stand alone.
    pub(super) alone: Amount,
}

impl<'a> Cells<'a> {
    /// The first flows stand for others too, each for so many.
    pub(super) fn new(
        flows: &'a [(FlowKey, Share)],
        stand_for: &[f32],
        bounds: Bounds,
        granularity: Granularity,
        params: &GroupParams,
    ) -> Self {
        let mut items: [Vec<Value>; SLOTS] = Default::default();
        let mut codes = vec![0u64; flows.len()];
        let mut classes = Vec::new();
        for slots in DIMENSIONS {
            let of_flow = |slot: usize, flow: usize| value(&flows[flow].0, slot, granularity, params);
            classes.push(classify(flows, slots, bounds.frequent, of_flow, &mut items, &mut codes));
        }
        let alone = |flow: usize| Amount::of(&flows[flow].1).reaches(bounds.alone);
        let (numbers, mut found) = number(&codes, alone);
        found.sort_unstable_by_key(|found| {
            let key = found.alone.then(|| flows[found.flow].0);
            (row(&classes, codes[found.flow]), key)
        });
        let mut place_of = vec![0u32; found.len()];
        let mut cells = Vec::with_capacity(found.len());
        let mut start = 0;
        for (place, found) in found.iter().enumerate() {
            place_of[found.number] = place as u32;
            let items = row(&classes, codes[found.flow]);
            let place = start..start + found.flows;
            let (flows, none) = (found.flows as u64, Amount::default());
            cells.push(Cell { items, flows, stand_for: 0.0, amount: none, of_sample: none, largest: none, place });
            start += found.flows;
        }
        let mut next: Vec<_> = cells.iter().map(|cell| cell.place.start).collect();
        let mut order = vec![0u32; flows.len()];
        for (flow, (number, (_, share))) in numbers.iter().zip(flows).enumerate() {
            let place = place_of[*number as usize] as usize;
            order[next[place]] = flow as u32;
            next[place] += 1;
            let (cell, amount) = (&mut cells[place], Amount::of(share));
            cell.amount = cell.amount.and(amount);
            cell.stand_for += stand_for.get(flow).map_or(1.0, |many| f64::from(*many));
            cell.of_sample = if flow < stand_for.len() { cell.of_sample.and(amount) } else { cell.of_sample };
            cell.largest = cell.largest.max(amount);
        }
        Self { flows, order, cells, items }
    }

    /// The flows of a cell.
    pub(super) fn flows_in(&self, cell: usize) -> impl Iterator<Item = &'a (FlowKey, Share)> {
        let flows = self.flows;
        self.order[self.cells[cell].place.clone()].iter().map(move |flow| &flows[*flow as usize])
    }

    /// How many different things flows of cells have.
    pub(super) fn distinct<T: Ord>(&self, cells: &[usize], what: impl Fn(&FlowKey) -> T) -> u64 {
        let mut all: Vec<_> = cells.iter().flat_map(|cell| self.flows_in(*cell)).map(|(key, _)| what(key)).collect();
        all.sort_unstable();
        all.dedup();
        all.len() as u64
    }
}

/// For each combination of frequent values that a dimension has, the items of its slots; 0 is none.
type Classes = Vec<(Range<usize>, [u16; 4])>;

/// Bits of a dimension's class in a flow's code: far more than there are classes, as few values are frequent.
const CLASS_BITS: u32 = 12;

/// Finds a dimension's frequent values and appends each flow's class to its code.
fn classify(
    flows: &[(FlowKey, Share)],
    slots: Range<usize>,
    frequent: Amount,
    of_flow: impl Fn(usize, usize) -> Option<Value>,
    items: &mut [Vec<Value>; SLOTS],
    codes: &mut [u64],
) -> Classes {
    let finest = slots.end - 1;
    let fine = Tally::new(flows.len(), |flow| of_flow(finest, flow), |flow| Amount::of(&flows[flow].1));
    let mut rows = vec![[0u16; 4]; fine.sums.len()];
    for slot in slots.clone() {
        let at = slot - slots.start;
        let set = |items: Vec<u16>, rows: &mut [[u16; 4]]| {
            rows.iter_mut().zip(items).for_each(|(row, item)| row[at] = item);
        };
        if slot == finest {
            let numbered = fine.frequent(frequent, |flow| of_flow(slot, flow), &mut items[slot]);
            set(numbered, &mut rows);
        } else {
            let of_fine = |value: usize| of_flow(slot, fine.first[value] as usize);
            let coarse = Tally::new(fine.sums.len(), of_fine, |value| fine.sums[value]);
            let numbered = coarse.frequent(frequent, of_fine, &mut items[slot]);
            let item = |value: &u32| numbered.get(*value as usize).copied().unwrap_or(0);
            set(coarse.of.iter().map(item).collect(), &mut rows);
        }
    }
    let mut classes: Classes = vec![(slots.clone(), [0; 4])];
    let mut known = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0));
    known.insert([0; 4], 0);
    let class_of: Vec<u64> = rows
        .into_iter()
        .map(|row| {
            *known.entry(row).or_insert_with(|| {
                classes.push((slots.clone(), row));
                classes.len() as u64 - 1
            })
        })
        .collect();
    for (code, value) in codes.iter_mut().zip(&fine.of) {
        *code = *code << CLASS_BITS | class_of.get(*value as usize).copied().unwrap_or(0);
    }
    classes
}

/// The items of all slots, from a flow's code.
fn row(classes: &[Classes], code: u64) -> [u16; SLOTS] {
    let mut row = [0; SLOTS];
    for (position, classes) in classes.iter().rev().enumerate() {
        let class = code >> (CLASS_BITS * position as u32) & ((1 << CLASS_BITS) - 1);
        if let Some((slots, items)) = classes.get(class as usize) {
            row[slots.clone()].copy_from_slice(&items[..slots.len()]);
        }
    }
    row
}

/// Sums by value, without a copy of the values.
struct Tally {
    /// For each that was counted the number of its value; [`u32::MAX`] if it has none.
    of: Vec<u32>,
    /// For each value the first that has it, and what all that have it amount to.
    first: Vec<u32>,
    sums: Vec<Amount>,
}

impl Tally {
    fn new(count: usize, value: impl Fn(usize) -> Option<Value>, amount: impl Fn(usize) -> Amount) -> Self {
        let hasher = foldhash::fast::FixedState::with_seed(0);
        let hash = |(family, address, length): &Value| {
            hasher.hash_one((*address as u64, (address >> 64) as u64 ^ (*family as u64) << 8 ^ u64::from(*length)))
        };
        let mut table = HashTable::<u32>::new();
        let (mut of, mut first, mut sums) = (Vec::with_capacity(count), Vec::<u32>::new(), Vec::<Amount>::new());
        for index in 0..count {
            let Some(own) = value(index) else {
                of.push(u32::MAX);
                continue;
            };
            let known = table.find(hash(&own), |number| value(first[*number as usize] as usize).as_ref() == Some(&own));
            let number = known.copied().unwrap_or_else(|| {
                let number = first.len() as u32;
                first.push(index as u32);
                sums.push(Amount::default());
                let rehash = |number: &u32| value(first[*number as usize] as usize).map_or(0, |value| hash(&value));
                table.insert_unique(hash(&own), number, rehash);
                number
            });
            of.push(number);
            let sum = &mut sums[number as usize];
            *sum = sum.and(amount(index));
        }
        Self { of, first, sums }
    }

    /// Lists the frequent values in their order; for each value its number in the list from 1, or 0.
    fn frequent(&self, least: Amount, value: impl Fn(usize) -> Option<Value>, items: &mut Vec<Value>) -> Vec<u16> {
        let frequent = |number: &usize| self.sums[*number].reaches(least);
        let mut found: Vec<_> = (0..self.sums.len())
            .filter(frequent)
            .filter_map(|number| Some((value(self.first[number] as usize)?, number)))
            .collect();
        found.sort_unstable();
        let mut numbered = vec![0; self.sums.len()];
        for (position, (value, number)) in found.into_iter().enumerate() {
            items.push(value);
            numbered[number] = position as u16 + 1;
        }
        numbered
    }
}

/// A cell as it is found.
struct Found {
    number: usize,
    /// One of its flows.
    flow: usize,
    flows: usize,
    alone: bool,
}

/// Numbers cells as they come: for each flow its cell's, and the cells.
fn number(codes: &[u64], alone: impl Fn(usize) -> bool) -> (Vec<u32>, Vec<Found>) {
    let mut found = Vec::<Found>::new();
    let mut known = HashMap::<u64, usize, _>::with_hasher(foldhash::fast::FixedState::with_seed(0));
    let mut of = Vec::with_capacity(codes.len());
    for (flow, code) in codes.iter().enumerate() {
        let alone = alone(flow);
        let next = found.len();
        let number = if alone { next } else { *known.entry(*code).or_insert(next) };
        if number == next {
            found.push(Found { number, flow, flows: 0, alone });
        }
        found[number].flows += 1;
        of.push(number as u32);
    }
    (of, found)
}
