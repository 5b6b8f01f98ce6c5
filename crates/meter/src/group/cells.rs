//! The flows of a burst, by what they have in common: flows that agree in every frequent value form one *cell*.
//!
//! After one pass over the flows, everything works on cells, of which there are few. A flow that may become a row of its own is a cell of its
//! own.

use super::GroupParams;
use super::fields::{BOTH_ENDS, DIMENSIONS, SLOTS, Value, value};
use crate::{Amount, Share};
use hashbrown::HashMap;
use queuescope_wire::{FlowKey, Granularity};
use std::ops::Range;

/// All flows of a burst, in cells.
pub(super) struct Cells<'a> {
    flows: &'a [(FlowKey, Share)],
    /// Indices of flows, in the order of their cells.
    order: Vec<u32>,
    /// The cells, in the order of their items.
    pub(super) cells: Vec<Cell>,
    /// The frequent values of each slot.
    pub(super) items: [Vec<Value>; SLOTS],
}

/// Flows that agree in every frequent value, or one flow that may become a row of its own.
pub(super) struct Cell {
    /// For each slot, the number of the frequent value, from 1; 0 if the value is not frequent.
    pub(super) items: [u16; SLOTS],
    pub(super) flows: u64,
    /// The number of flows that these stand for; equal to their number if all flows were kept.
    pub(super) stand_for: f64,
    pub(super) amount: Amount,
    /// The part of `amount` that comes from flows that stand for others.
    pub(super) of_sample: Amount,
    /// The most bytes and the most packets of any of the flows.
    pub(super) largest: Amount,
    /// The range of its flows in `order`.
    place: Range<usize>,
}

/// Thresholds; bytes or packets suffice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// From this amount on, a value is frequent.
    pub(super) frequent: Amount,
    /// From this amount on, a flow may become a row of its own.
    pub(super) alone: Amount,
}

impl<'a> Cells<'a> {
    /// Builds the cells. `stand_for` is the number of flows for which each of the first flows stands.
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
        let of_flow = |slot: usize, flow: usize| value(&flows[flow].0, slot, granularity, params);
        if granularity == Granularity::Connection {
            for ends in BOTH_ENDS {
                classes.extend(classify(flows, ends, bounds.frequent, of_flow, &mut items, &mut codes));
            }
            classes.extend(classify(flows, [4], bounds.frequent, of_flow, &mut items, &mut codes));
        } else {
            for dimension in 0..DIMENSIONS.len() {
                classes.extend(classify(flows, [dimension], bounds.frequent, of_flow, &mut items, &mut codes));
            }
        }
        let alone = |flow: usize| Amount::from_share(&flows[flow].1).reaches(bounds.alone);
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
            let (cell, amount) = (&mut cells[place], Amount::from_share(share));
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

    /// The number of distinct values that flows of cells have, by digests of 64 bits.
    pub(super) fn distinct(&self, cells: &[usize], digest: impl Fn(&FlowKey) -> u64) -> u64 {
        let mut all: Vec<_> = cells.iter().flat_map(|cell| self.flows_in(*cell)).map(|(key, _)| digest(key)).collect();
        all.sort_unstable();
        all.dedup();
        all.len() as u64
    }

    /// Every n-th flow of the cells, with n such that there are at most one or two thousand.
    pub(super) fn some_flows(&self, cells: &[usize]) -> impl Iterator<Item = (usize, &'a FlowKey)> {
        let count: u64 = cells.iter().map(|cell| self.cells[*cell].flows).sum();
        let flows = cells.iter().flat_map(|cell| self.flows_in(*cell).map(|(key, _)| (*cell, key)));
        flows.step_by(1 + count as usize / SOME)
    }
}

/// See [`Cells::some_flows`].
const SOME: usize = 1_024;

/// For each combination of frequent values in a dimension, the items of its slots; 0 is none.
type Classes = Vec<(Range<usize>, [u16; 4])>;

/// Bits of a dimension's class in a flow's code: far more than there are classes, because few values are frequent.
const CLASS_BITS: u32 = 12;

/// Finds the frequent values of a field, which is a dimension, or those of both ends of connections, where the sum of both ends counts.
/// Appends each flow's class in each dimension to its code. A value that is not frequent has no finer value that is, so most flows are
/// examined once only.
fn classify<const ENDS: usize>(
    flows: &[(FlowKey, Share)],
    field: [usize; ENDS],
    frequent: Amount,
    of_flow: impl Fn(usize, usize) -> Option<Value> + Copy,
    items: &mut [Vec<Value>; SLOTS],
    codes: &mut [u64],
) -> Vec<Classes> {
    // The index of an end is the flow's index times the number of ends, plus the end.
    let slots_of = |end: u32| DIMENSIONS[field[end as usize % ENDS]].clone();
    let mut rows = vec![[0u16; 4]; flows.len() * ENDS];
    let mut left: Vec<u32> = (0..rows.len() as u32).collect();
    for level in 0..DIMENSIONS[field[0]].len() {
        let values = |end: u32| of_flow(slots_of(end).start + level, end as usize / ENDS);
        let amount = |end: u32| Amount::from_share(&flows[end as usize / ENDS].1);
        let frequent = Frequent::new(&left, frequent, amount, values);
        let mut at = 0;
        left.retain(|end| {
            let item = frequent.item(frequent.buckets_of[at], || values(*end));
            at += 1;
            rows[*end as usize][level] = item.unwrap_or(0);
            item != Some(0)
        });
        field.iter().for_each(|dimension| items[DIMENSIONS[*dimension].start + level].clone_from(&frequent.values));
    }
    let of_dimension = |place: usize| {
        let slots = slots_of(place as u32);
        let mut classes: Classes = vec![(slots.clone(), [0; 4])];
        let mut known = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0));
        for (code, row) in codes.iter_mut().zip(rows.iter().skip(place).step_by(ENDS)) {
            let mut class = 0;
            if *row != [0; 4] {
                class = *known.entry(*row).or_insert_with(|| {
                    classes.push((slots.clone(), *row));
                    classes.len() as u64 - 1
                });
            }
            *code = *code << CLASS_BITS | class;
        }
        classes
    };
    (0..ENDS).map(of_dimension).collect()
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

/// The frequent values of a slot.
struct Frequent {
    /// In ascending order.
    values: Vec<Value>,
    /// Which buckets can contain frequent values.
    buckets: Vec<bool>,
    /// The bucket of each examined flow; [`NONE`] if it has no value.
    buckets_of: Vec<u16>,
}

/// The number of buckets. Values are first summed by a hash, because a frequent value is in a bucket whose sum is frequent.
const BUCKETS: usize = 1 << 11;
/// The bucket of flows without a value.
const NONE: u16 = u16::MAX;

impl Frequent {
    fn new(left: &[u32], least: Amount, amount: impl Fn(u32) -> Amount, value: impl Fn(u32) -> Option<Value>) -> Self {
        let mut sums = vec![Amount::default(); BUCKETS];
        let mut buckets_of = Vec::with_capacity(left.len());
        for flow in left {
            let bucket = value(*flow).map_or(NONE, |value| bucket(&value));
            if let Some(sum) = sums.get_mut(usize::from(bucket)) {
                *sum = sum.and(amount(*flow));
            }
            buckets_of.push(bucket);
        }
        let buckets: Vec<_> = sums.iter().map(|sum| sum.reaches(least)).collect();
        let mut places = HashMap::<Value, usize, _>::with_hasher(foldhash::fast::FixedState::with_seed(0));
        let mut sums = Vec::<(Value, Amount)>::new();
        // Consecutive flows often have the same value.
        let mut last = 0;
        for (flow, bucket) in left.iter().zip(&buckets_of) {
            if buckets.get(usize::from(*bucket)) != Some(&true) {
                continue;
            }
            let Some(value) = value(*flow) else { continue };
            if sums.get(last).is_none_or(|(known, _)| *known != value) {
                last = *places.entry(value).or_insert(sums.len());
                if last == sums.len() {
                    sums.push((value, Amount::default()));
                }
            }
            sums[last].1 = sums[last].1.and(amount(*flow));
        }
        let frequent = sums.iter().filter(|(_, sum)| sum.reaches(least));
        let mut values: Vec<_> = frequent.map(|(value, _)| *value).collect();
        values.sort_unstable();
        Self { values, buckets, buckets_of }
    }

    /// The number of a value from 1, or 0 if it is not frequent; none if there is no value.
    fn item(&self, bucket: u16, value: impl FnOnce() -> Option<Value>) -> Option<u16> {
        match self.buckets.get(usize::from(bucket))? {
            true => Some(self.values.binary_search(&value()?).map_or(0, |place| place as u16 + 1)),
            false => Some(0),
        }
    }
}

fn bucket((_, address, _): &Value) -> u16 {
    let word = (*address as u64).wrapping_add((address >> 64) as u64);
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BUCKETS.ilog2())) as u16
}

/// A cell that is being built.
struct NewCell {
    number: usize,
    /// One of its flows.
    flow: usize,
    flows: usize,
    alone: bool,
}

/// Numbers cells in the order of their first flows: returns the cell's number for each flow, and the cells.
fn number(codes: &[u64], alone: impl Fn(usize) -> bool) -> (Vec<u32>, Vec<NewCell>) {
    let mut found = Vec::<NewCell>::new();
    let mut known = HashMap::<u64, usize, _>::with_hasher(foldhash::fast::FixedState::with_seed(0));
    let mut of = Vec::with_capacity(codes.len());
    for (flow, code) in codes.iter().enumerate() {
        let alone = alone(flow);
        let next = found.len();
        let number = if alone { next } else { *known.entry(*code).or_insert(next) };
        if number == next {
            found.push(NewCell { number, flow, flows: 0, alone });
        }
        found[number].flows += 1;
        of.push(number as u32);
    }
    (of, found)
}
