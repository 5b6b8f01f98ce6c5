//! The lattice of keys: which of them are frequent, and which explains the most.
//!
//! Flows that agree in every frequent value are one *cell*, so that after one pass over the flows everything works on
//! cells, of which there are few. A flow that may have to stand alone is a cell of its own.

use super::fields::{
    Common, DIMENSIONS, DST, FLOW_BITS, LEAST_BITS, Picks, SLOTS, Value, bits, has_address, is_prefix, value,
};
use super::pattern::{Pattern, Subnet};
use super::{GroupParams, Weight};
use crate::Share;
use hashbrown::HashMap;
use queuescope_wire::{Family, FlowKey, Granularity};
use std::ops::Range;

/// Fewer other addresses do not tell whether a prefix is anything special.
const FEW: u64 = 8;
/// A prefix is special if the group's addresses are all in it with at most this probability, were they like the others.
const CHANCE: f64 = 0.01;

/// All flows of a burst, by cells, and which cells are still to be explained.
pub(super) struct Lattice<'a> {
    flows: &'a [(FlowKey, Share)],
    /// Flows in the order of their cells.
    order: Vec<u32>,
    cells: Vec<Cell>,
    taken: Vec<bool>,
    /// The frequent values of each slot.
    items: [Vec<Value>; SLOTS],
    params: &'a GroupParams,
    /// The least bytes of a group, and of a heavy flow.
    least: u64,
    pub(super) heavy: u64,
    /// The prefix lengths that are the longest of their family.
    finest: [Option<u8>; 2],
    /// What is left was looked at as a whole.
    closed: bool,
}

struct Cell {
    items: [u16; SLOTS],
    flows: u64,
    bytes: u64,
    largest: u64,
    /// It is one flow, and is heavy.
    heavy: bool,
    /// Where its flows stand in the order.
    place: Range<usize>,
}

/// Cells that form a row.
pub(super) struct Members {
    cells: Vec<usize>,
    picks: Picks,
    /// How much the row explains.
    pub(super) score: f64,
    /// It is one heavy flow.
    pub(super) single: bool,
}

/// What cells amount to as a group.
#[derive(Debug, Clone, Copy)]
struct Standing {
    flows: u64,
    bytes: u64,
    /// The cell of a flow that is not counted, as it outweighs all others together.
    dominating: Option<usize>,
}

impl<'a> Lattice<'a> {
    pub(super) fn new(
        flows: &'a [(FlowKey, Share)],
        total: u64,
        granularity: Granularity,
        params: &'a GroupParams,
    ) -> Self {
        let part = |part: f64| ((total as f64 * part).ceil() as u64).max(1);
        let (least, heavy) = (part(params.least), part(params.heavy));
        let frequent = part(params.least * params.keep);
        let mut items: [Vec<Value>; SLOTS] = Default::default();
        let mut rows = vec![[0u16; SLOTS]; flows.len()];
        for (slot, items) in items.iter_mut().enumerate() {
            let value = |key: &FlowKey| value(key, slot, granularity, params);
            let mut sums = HashMap::<Value, u64, _>::with_hasher(foldhash::fast::FixedState::with_seed(0));
            for (key, share) in flows {
                if let Some(value) = value(key) {
                    *sums.entry(value).or_default() += share.bytes;
                }
            }
            *items = sums.iter().filter(|(_, bytes)| **bytes >= frequent).map(|(value, _)| *value).collect();
            items.sort_unstable();
            for (row, (key, _)) in rows.iter_mut().zip(flows) {
                let item = value(key).and_then(|value| items.binary_search(&value).ok());
                row[slot] = item.map_or(0, |item| item as u16 + 1);
            }
        }
        // A flow that may have to stand alone is numbered; all others are 0.
        let alone = |flow: usize| if flows[flow].1.bytes >= least.min(heavy) { flow + 1 } else { 0 };
        let mut order: Vec<u32> = (0..flows.len() as u32).collect();
        let sort_key = |flow: u32| (rows[flow as usize], alone(flow as usize));
        order.sort_unstable_by(|a, b| sort_key(*a).cmp(&sort_key(*b)).then(a.cmp(b)));
        let mut cells = Vec::new();
        let mut start = 0;
        for run in order.chunk_by(|a, b| sort_key(*a) == sort_key(*b)) {
            let bytes = run.iter().map(|flow| flows[*flow as usize].1.bytes);
            let largest = bytes.clone().max().unwrap_or(0);
            cells.push(Cell {
                items: rows[run[0] as usize],
                flows: run.len() as u64,
                bytes: bytes.fold(0, u64::saturating_add),
                largest,
                heavy: largest >= heavy,
                place: start..start + run.len(),
            });
            start += run.len();
        }
        let taken = vec![false; cells.len()];
        let finest = [params.v4.iter().max().copied(), params.v6.iter().max().copied()];
        Self { flows, order, cells, taken, items, params, least, heavy, finest, closed: false }
    }

    /// The next row, whose flows are then explained: groups, then heavy flows, then what all that is left has in common.
    pub(super) fn next(&mut self) -> Option<Members> {
        let found = self.group().or_else(|| self.flow()).or_else(|| self.closure())?;
        for cell in &found.cells {
            self.taken[*cell] = true;
        }
        Some(found)
    }

    /// What is in no row.
    pub(super) fn rest(&self) -> Weight {
        let mut rest = Weight::default();
        for (_, share) in self.left().flat_map(|cell| self.flows_in(cell)) {
            rest.add(Weight::of(share));
        }
        rest
    }

    /// The flows of a row.
    pub(super) fn flows_of(&self, members: &Members) -> impl Iterator<Item = &'a (FlowKey, Share)> {
        members.cells.iter().flat_map(|cell| self.flows_in(*cell))
    }

    /// How many different addresses the flows of a row have.
    pub(super) fn distinct(&self, members: &Members, end: impl Fn(&FlowKey) -> u128) -> u64 {
        let mut ends: Vec<_> = self.flows_of(members).map(|(key, _)| (key.family, end(key))).collect();
        ends.sort_unstable();
        ends.dedup();
        ends.len() as u64
    }

    /// What the flows of a row have in common; of a single flow, all of it.
    pub(super) fn pattern(&self, members: &Members, granularity: Granularity) -> Pattern {
        let flow = self.flows_of(members).next().filter(|_| members.single);
        let picked = |dimension: usize| match (members.picks[dimension], flow) {
            (Some((slot, item)), None) => self.items[slot].get(usize::from(item) - 1).copied(),
            (_, Some((key, _))) => value(key, DIMENSIONS[dimension].end - 1, granularity, self.params),
            (None, None) => None,
        };
        let subnet = |(family, address, length)| Subnet { family, address, length };
        let port = |(_, port, _): Value| port as u16;
        let what = picked(4);
        Pattern {
            dst: picked(0).map(subnet),
            src: picked(1).map(subnet),
            dst_port: picked(2).map(port),
            src_port: picked(3).map(port),
            protocol: what.filter(|(family, ..)| *family != Family::Link).map(|(_, protocol, _)| protocol as u8),
            ethertype: what.filter(|(family, ..)| *family == Family::Link).map(|(_, ethertype, _)| ethertype as u16),
            connections: granularity == Granularity::Connection,
        }
    }

    /// The group that explains the most: as wide as gains bytes, then as narrow as keeps them.
    fn group(&self) -> Option<Members> {
        let left: Vec<_> = self.left().collect();
        let common = self.common(&left);
        let mut best = None;
        self.search(0, &mut [None; DIMENSIONS.len()], &left, &common, &mut best);
        let (_, mut picks) = best?;
        let cells = self.matching(&picks, &left);
        if let Some(cell) = self.standing(&picks, &cells).dominating {
            return Some(self.single(cell));
        }
        if has_address(&picks) {
            // Beside a whole address a prefix must say something; narrowing asks that, and puts it back.
            for pick in &mut picks {
                *pick = pick.filter(|(slot, _)| !is_prefix(*slot));
            }
        }
        self.widen(&mut picks, &left, &common);
        let cells = self.members(&picks, &left);
        let cells = self.narrow(&mut picks, cells, true);
        let bytes: u64 = cells.iter().map(|cell| self.cells[*cell].bytes).sum();
        let score = bytes as f64 * bits(&self.items, &picks, &common).max(LEAST_BITS);
        Some(Members { cells, picks, score, single: false })
    }

    /// A heavy flow that no group has.
    fn flow(&self) -> Option<Members> {
        self.left().find(|cell| self.cells[*cell].heavy).map(|cell| self.single(cell))
    }

    /// What nearly all of the rest has in common, if that is an address, its beginning, or a port.
    fn closure(&mut self) -> Option<Members> {
        if std::mem::replace(&mut self.closed, true) {
            return None;
        }
        let mut picks = [None; DIMENSIONS.len()];
        let left: Vec<_> = self.left().collect();
        let standing = self.standing(&picks, &left);
        if standing.bytes < self.least || standing.flows < 2 || standing.dominating.is_some() {
            return None;
        }
        let cells = self.narrow(&mut picks, left, false);
        picks[..4].iter().any(Option::is_some).then_some(Members { cells, picks, score: 0.0, single: false })
    }

    fn single(&self, cell: usize) -> Members {
        let score = self.cells[cell].bytes as f64 * FLOW_BITS;
        Members { cells: vec![cell], picks: [None; DIMENSIONS.len()], score, single: true }
    }

    /// All frequent keys, depth first; the best is that of the most bytes times bits.
    fn search(
        &self,
        dimension: usize,
        picks: &mut Picks,
        cells: &[usize],
        common: &Common,
        best: &mut Option<(f64, Picks)>,
    ) {
        let Some(slots) = DIMENSIONS.get(dimension) else {
            let bits = bits(&self.items, picks, common);
            let standing = self.standing(picks, cells);
            let score = standing.bytes as f64 * bits;
            let worth = bits >= LEAST_BITS && standing.flows >= 2 && standing.bytes >= self.least;
            if worth && best.is_none_or(|(least, _)| score > least) {
                *best = Some((score, *picks));
            }
            return;
        };
        self.search(dimension + 1, picks, cells, common, best);
        for slot in slots.clone() {
            for (item, bytes) in self.sums(slot, cells).into_iter().enumerate().skip(1) {
                if bytes >= self.least {
                    picks[dimension] = Some((slot, item as u16));
                    let within = cells.iter().copied().filter(|cell| self.cells[*cell].items[slot] == item as u16);
                    self.search(dimension + 1, picks, &within.collect::<Vec<_>>(), common, best);
                }
            }
        }
        picks[dimension] = None;
    }

    /// Drops, while a whole address remains, whatever does not dominate without it: to 10.0.0.7, if too much of what goes
    /// there goes to other ports or comes from others.
    fn widen(&self, picks: &mut Picks, left: &[usize], common: &Common) {
        loop {
            let bytes = self.standing(picks, &self.members(picks, left)).bytes as f64;
            let mut best: Option<(f64, Picks)> = None;
            for dimension in 0..picks.len() {
                let mut wider = *picks;
                if wider[dimension].take().is_none() || !has_address(&wider) {
                    continue;
                }
                let standing = self.standing(&wider, &self.members(&wider, left));
                let score = standing.bytes as f64 * bits(&self.items, &wider, common);
                let gains = standing.dominating.is_none() && bytes < self.params.dominance * standing.bytes as f64;
                if gains && best.is_none_or(|(least, _)| score > least) {
                    best = Some((score, wider));
                }
            }
            match best {
                Some((_, wider)) => *picks = wider,
                None => return,
            }
        }
    }

    /// Requires more as long as nearly all bytes stay, the most common first, and of equals the finest.
    fn narrow(&self, picks: &mut Picks, mut cells: Vec<usize>, doubtful: bool) -> Vec<usize> {
        let sum = |cells: &[usize]| cells.iter().map(|cell| self.cells[*cell].bytes).sum::<u64>();
        let needed = (sum(&cells) as f64 * self.params.keep).ceil() as u64;
        loop {
            let mut options = Vec::new();
            for (dimension, slots) in DIMENSIONS.iter().enumerate() {
                let finer = picks[dimension].map_or(slots.start, |(slot, _)| slot + 1)..slots.end;
                for slot in finer {
                    for (item, bytes) in self.sums(slot, &cells).into_iter().enumerate().skip(1) {
                        if bytes >= needed.max(1) {
                            options.push((bytes, slot, dimension, item as u16));
                        }
                    }
                }
            }
            options.sort_unstable_by(|a, b| b.cmp(a));
            let next = options.into_iter().find_map(|(_, slot, dimension, item)| {
                let within: Vec<_> =
                    cells.iter().copied().filter(|cell| self.cells[*cell].items[slot] == item).collect();
                let flows: u64 = within.iter().map(|cell| self.cells[*cell].flows).sum();
                let special = !doubtful || self.is_special(slot, item, &within);
                (flows >= 2 && special).then_some((dimension, slot, item, within))
            });
            match next {
                Some((dimension, slot, item, within)) => {
                    picks[dimension] = Some((slot, item));
                    cells = within;
                }
                None => return cells,
            }
        }
    }

    /// Whether a common prefix says something: the group's addresses, were they like those of all other flows, would
    /// hardly all be in it. Where there are few others, only the longest prefix is taken to say something.
    fn is_special(&self, slot: usize, item: u16, cells: &[usize]) -> bool {
        if !is_prefix(slot) {
            return true;
        }
        let end = |key: &FlowKey| if slot < DST { key.dst } else { key.src };
        let mut inside: Vec<_> = cells.iter().flat_map(|cell| self.flows_in(*cell)).map(|(key, _)| end(key)).collect();
        inside.sort_unstable();
        inside.dedup();
        let mut member = vec![false; self.cells.len()];
        cells.iter().for_each(|cell| member[*cell] = true);
        let mut others: Vec<_> = (0..self.cells.len())
            .filter(|cell| !member[*cell])
            .flat_map(|cell| {
                let within = self.cells[cell].items[slot] == item;
                self.flows_in(cell).map(move |(key, _)| (key.family, end(key), within))
            })
            .collect();
        others.sort_unstable();
        others.dedup();
        let Some((family, _, length)) = self.items[slot].get(usize::from(item) - 1) else { return false };
        if (others.len() as u64) < FEW {
            return Some(*length) == self.finest[usize::from(*family == Family::V6)];
        }
        let like = others.iter().filter(|(.., within)| *within).count() as f64 + 1.0;
        let part = like / (others.len() as f64 + 1.0);
        part <= 0.5 && part.powf(inside.len().saturating_sub(1) as f64) <= CHANCE
    }

    /// What cells amount to. With a whole address heavy flows are members, unless one dominates; without, a key is too
    /// coarse to speak for them.
    fn standing(&self, picks: &Picks, cells: &[usize]) -> Standing {
        let all = has_address(picks);
        let mut standing = Standing { flows: 0, bytes: 0, dominating: None };
        let mut largest = None;
        for (place, cell) in cells.iter().map(|place| (*place, &self.cells[*place])) {
            if all || !cell.heavy {
                standing.flows += cell.flows;
                standing.bytes += cell.bytes;
                largest = largest.max(Some((cell.largest, std::cmp::Reverse(place))));
            }
        }
        if let Some((bytes, std::cmp::Reverse(place))) = largest
            && bytes as f64 > self.params.dominance * standing.bytes as f64
        {
            standing.flows -= 1;
            standing.bytes -= bytes;
            standing.dominating = Some(place);
        }
        standing
    }

    /// The cells that a group of this key would have.
    fn members(&self, picks: &Picks, left: &[usize]) -> Vec<usize> {
        let mut cells = self.matching(picks, left);
        if !has_address(picks) {
            cells.retain(|cell| !self.cells[*cell].heavy);
        }
        cells
    }

    fn matching(&self, picks: &Picks, cells: &[usize]) -> Vec<usize> {
        let fits = |cell: &usize| picks.iter().flatten().all(|(slot, item)| self.cells[*cell].items[*slot] == *item);
        cells.iter().copied().filter(fits).collect()
    }

    /// Bytes by item of a slot; of no item at 0.
    fn sums(&self, slot: usize, cells: &[usize]) -> Vec<u64> {
        let mut sums = vec![0; self.items[slot].len() + 1];
        for cell in cells {
            sums[usize::from(self.cells[*cell].items[slot])] += self.cells[*cell].bytes;
        }
        sums
    }

    /// How common each item is: the part of the flows that have it, among what is left or among all, whichever is less.
    /// What all that is left has in common still says something if what was explained before has it not.
    fn common(&self, left: &[usize]) -> Common {
        let all: Vec<_> = (0..self.cells.len()).collect();
        let [left, all] = [left, &all].map(|cells| {
            let total: u64 = cells.iter().map(|cell| self.cells[*cell].flows).sum();
            move |slot: usize| {
                let mut flows = vec![0; self.items[slot].len() + 1];
                for cell in cells {
                    flows[usize::from(self.cells[*cell].items[slot])] += self.cells[*cell].flows;
                }
                flows.into_iter().map(move |flows| flows as f64 / total.max(1) as f64)
            }
        });
        std::array::from_fn(|slot| left(slot).zip(all(slot)).map(|(left, all)| left.min(all)).collect())
    }

    fn left(&self) -> impl Iterator<Item = usize> {
        (0..self.cells.len()).filter(|cell| !self.taken[*cell])
    }

    fn flows_in(&self, cell: usize) -> impl Iterator<Item = &'a (FlowKey, Share)> {
        let flows = self.flows;
        self.order[self.cells[cell].place.clone()].iter().map(move |flow| &flows[*flow as usize])
    }
}
