//! The lattice of keys: finds the frequent keys, and the one that explains the most.

use super::amount::Measure;
use super::cells::{Bounds, Cell, Cells};
use super::fields::{
    Common, DIMENSIONS, DST, FLOW_BITS, LEAST_BITS, Picks, Value, bits, has_address, is_prefix, value,
};
use super::pattern::{Pattern, Subnet};
use super::{GroupParams, Sampled, Weight};
use crate::{Amount, Share};
use queuescope_wire::{Family, FlowKey, Granularity};

/// With fewer other addresses, it is unknown whether a prefix is special.
const FEW: u64 = 8;
/// A prefix is special if the group's addresses would all be in it with at most this probability if they were distributed like the others.
const CHANCE: f64 = 0.01;

/// The cells of a burst, and which of them are still to be explained.
pub(super) struct Lattice<'a> {
    pub(super) all: Cells<'a>,
    /// The current measure: first bytes, then packets.
    measure: Measure,
    /// The row that explains each cell.
    pub(super) taken: Vec<Option<usize>>,
    rows: usize,
    params: &'a GroupParams,
    /// The smallest amount of a group, and of a heavy flow.
    pub(super) least: Amount,
    pub(super) heavy: Amount,
    /// The slots of the longest prefix lengths of each family.
    finest: [Option<u8>; 2],
    /// Whether the rest was examined as a whole.
    closed: bool,
}

/// Cells that form a row.
pub(super) struct Members {
    pub(super) cells: Vec<usize>,
    pub(super) picks: Picks,
    /// How much the row explains.
    pub(super) score: f64,
    /// Whether it is one heavy flow.
    pub(super) single: bool,
    /// The measure by which it was found.
    pub(super) measure: Measure,
}

/// The size of cells as a group.
#[derive(Debug, Clone, Copy)]
struct GroupSize {
    flows: u64,
    /// Bytes or packets, by the current measure.
    amount: u64,
    /// The cell of a flow that is not counted, because it outweighs all others together.
    dominating: Option<usize>,
}

impl<'a> Lattice<'a> {
    pub(super) fn new(
        flows: &'a [(FlowKey, Share)],
        sampled: Option<Sampled<'_>>,
        granularity: Granularity,
        params: &'a GroupParams,
    ) -> Self {
        let sum = || flows.iter().fold(Amount::default(), |sum, (_, share)| sum.and(Amount::from_share(share)));
        let total = sampled.map_or_else(sum, |sampled| sampled.total);
        // The bound is lower by the error, so that everything is found that may reach it.
        let at_least = |part: f64| {
            let least = total.part(part);
            sampled.map_or(least, |sampled| least.less(sampled.unit.error(least)))
        };
        let (least, heavy) = (at_least(params.least), at_least(params.heavy));
        let bounds = Bounds { frequent: least.part(params.keep), alone: least.min(heavy) };
        let stand_for = sampled.map_or(&[][..], |sampled| sampled.stand_for);
        let all = Cells::new(flows, stand_for, bounds, granularity, params);
        let taken = vec![None; all.cells.len()];
        let finest = [params.v4.iter().max().copied(), params.v6.iter().max().copied()];
        Self { all, measure: Measure::Bytes, taken, rows: 0, params, least, heavy, finest, closed: false }
    }

    /// The next row; its flows are then explained. First groups, then heavy flows, then what all of the rest has in common; by bytes, and
    /// then by packets.
    pub(super) fn next(&mut self) -> Option<Members> {
        let found = self.of_measure().or_else(|| {
            (self.measure, self.closed) = (Measure::Packets, false);
            self.of_measure()
        })?;
        for cell in &found.cells {
            self.taken[*cell] = Some(self.rows);
        }
        self.rows += 1;
        Some(found)
    }

    fn of_measure(&mut self) -> Option<Members> {
        self.group().or_else(|| self.flow()).or_else(|| self.closure())
    }

    /// The flows that are in no row.
    pub(super) fn rest(&self) -> Weight {
        self.weight(self.left())
    }

    /// The size of cells.
    pub(super) fn weight(&self, cells: impl Iterator<Item = usize>) -> Weight {
        let (mut flows, mut sum) = (0.0, Amount::default());
        for cell in cells.map(|cell| &self.all.cells[cell]) {
            flows += cell.stand_for;
            sum = sum.and(cell.amount);
        }
        Weight { flows: flows.round() as u64, bytes: sum.bytes, packets: sum.packets }
    }

    /// The flows of a row.
    pub(super) fn flows_of(&self, members: &Members) -> impl Iterator<Item = &'a (FlowKey, Share)> {
        members.cells.iter().flat_map(|cell| self.all.flows_in(*cell))
    }

    /// Whether flows fit the pattern of a group that are not its members.
    pub(super) fn is_remainder(&self, members: &Members, pattern: &Pattern) -> bool {
        let mut is_member = vec![false; self.all.cells.len()];
        members.cells.iter().for_each(|cell| is_member[*cell] = true);
        let others: Vec<_> = (0..self.all.cells.len()).filter(|cell| !is_member[*cell]).collect();
        if pattern.connections {
            // A connection fits in either direction, but cells have only one.
            return others.iter().any(|cell| self.all.flows_in(*cell).any(|(key, _)| pattern.fits(key)));
        }
        !self.matching(&members.picks, &others).is_empty()
    }

    /// What the flows of a row have in common; for a single flow, its key.
    pub(super) fn pattern(&self, members: &Members, granularity: Granularity) -> Pattern {
        let flow = self.flows_of(members).next().filter(|_| members.single);
        let picked = |dimension: usize| match (members.picks[dimension], flow) {
            (Some((slot, item)), None) => self.all.items[slot].get(usize::from(item) - 1).copied(),
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

    /// The group that explains the most: widened while that gains bytes, and then narrowed while that keeps them.
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
            // Beside a whole address, a prefix must be special. `narrow` checks that, and adds it again.
            for pick in &mut picks {
                *pick = pick.filter(|(slot, _)| !is_prefix(*slot));
            }
        }
        self.widen(&mut picks, &left, &common);
        let cells = self.members(&picks, &left);
        let cells = self.narrow(&mut picks, cells, true);
        let amount: u64 = cells.iter().map(|cell| self.amount(*cell)).sum();
        let score = amount as f64 * bits(&self.all.items, &picks, &common).max(LEAST_BITS);
        Some(Members { cells, picks, score, single: false, measure: self.measure })
    }

    /// The next heavy flow that is in no group.
    fn flow(&self) -> Option<Members> {
        self.left().find(|cell| self.is_heavy(*cell)).map(|cell| self.single(cell))
    }

    /// What nearly all of the rest has in common, if that is an address, a prefix, or a port.
    fn closure(&mut self) -> Option<Members> {
        if std::mem::replace(&mut self.closed, true) {
            return None;
        }
        let mut picks = [None; DIMENSIONS.len()];
        let left: Vec<_> = self.left().collect();
        let standing = self.standing(&picks, &left);
        if standing.amount < self.least.by(self.measure) || standing.flows < 2 || standing.dominating.is_some() {
            return None;
        }
        let cells = self.narrow(&mut picks, left, false);
        let measure = self.measure;
        picks[..4].iter().any(Option::is_some).then_some(Members { cells, picks, score: 0.0, single: false, measure })
    }

    fn single(&self, cell: usize) -> Members {
        let score = self.amount(cell) as f64 * FLOW_BITS;
        Members { cells: vec![cell], picks: [None; DIMENSIONS.len()], score, single: true, measure: self.measure }
    }

    /// Searches all frequent keys, depth first; the best one has the largest product of bytes and bits.
    fn search(
        &self,
        dimension: usize,
        picks: &mut Picks,
        cells: &[usize],
        common: &Common,
        best: &mut Option<(f64, Picks)>,
    ) {
        let Some(slots) = DIMENSIONS.get(dimension) else {
            let bits = bits(&self.all.items, picks, common);
            let standing = self.standing(picks, cells);
            let score = standing.amount as f64 * bits;
            let worth = bits >= LEAST_BITS && standing.flows >= 2 && standing.amount >= self.least.by(self.measure);
            if worth && best.is_none_or(|(least, _)| score > least) {
                *best = Some((score, *picks));
            }
            return;
        };
        self.search(dimension + 1, picks, cells, common, best);
        for slot in slots.clone() {
            for (item, amount) in self.sums(slot, cells).into_iter().enumerate().skip(1) {
                if amount >= self.least.by(self.measure) {
                    picks[dimension] = Some((slot, item as u16));
                    let within = cells.iter().copied().filter(|cell| self.all.cells[*cell].items[slot] == item as u16);
                    self.search(dimension + 1, picks, &within.collect::<Vec<_>>(), common, best);
                }
            }
        }
        picks[dimension] = None;
    }

    /// Removes requirements that do not dominate the wider group, while a whole address remains. An example is a port of 10.0.0.7, if
    /// too much of the traffic to that address goes to other ports.
    fn widen(&self, picks: &mut Picks, left: &[usize], common: &Common) {
        loop {
            let amount = self.standing(picks, &self.members(picks, left)).amount as f64;
            let mut best: Option<(f64, Picks)> = None;
            for dimension in 0..picks.len() {
                let mut wider = *picks;
                if wider[dimension].take().is_none() || !has_address(&wider) {
                    continue;
                }
                let standing = self.standing(&wider, &self.members(&wider, left));
                let score = standing.amount as f64 * bits(&self.all.items, &wider, common);
                let gains = standing.dominating.is_none() && amount < self.params.dominance * standing.amount as f64;
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

    /// Adds requirements while nearly all bytes remain, the most common first; among equal ones, the finest.
    fn narrow(&self, picks: &mut Picks, mut cells: Vec<usize>, doubtful: bool) -> Vec<usize> {
        let sum = |cells: &[usize]| cells.iter().map(|cell| self.amount(*cell)).sum::<u64>();
        let needed = (sum(&cells) as f64 * self.params.keep).ceil() as u64;
        loop {
            let mut options = Vec::new();
            for (dimension, slots) in DIMENSIONS.iter().enumerate() {
                let finer = picks[dimension].map_or(slots.start, |(slot, _)| slot + 1)..slots.end;
                for slot in finer {
                    for (item, amount) in self.sums(slot, &cells).into_iter().enumerate().skip(1) {
                        if amount >= needed.max(1) {
                            options.push((amount, slot, dimension, item as u16));
                        }
                    }
                }
            }
            options.sort_unstable_by(|a, b| b.cmp(a));
            let next = options.into_iter().find_map(|(_, slot, dimension, item)| {
                let within: Vec<_> =
                    cells.iter().copied().filter(|cell| self.all.cells[*cell].items[slot] == item).collect();
                let flows: u64 = within.iter().map(|cell| self.all.cells[*cell].flows).sum();
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

    /// Whether a common prefix is special: if the group's addresses were distributed like those of all other flows, they would
    /// hardly all be in it. If there are few others, only the longest prefix counts as special.
    fn is_special(&self, slot: usize, item: u16, cells: &[usize]) -> bool {
        if !is_prefix(slot) {
            return true;
        }
        let end = |key: &FlowKey| if slot < DST { key.dst } else { key.src };
        let mut inside: Vec<_> = self.all.some_flows(cells).map(|(_, key)| end(key)).collect();
        inside.sort_unstable();
        inside.dedup();
        let mut member = vec![false; self.all.cells.len()];
        cells.iter().for_each(|cell| member[*cell] = true);
        let others: Vec<_> = (0..self.all.cells.len()).filter(|cell| !member[*cell]).collect();
        let mut others: Vec<_> = self
            .all
            .some_flows(&others)
            .map(|(cell, key)| (key.family, end(key), self.all.cells[cell].items[slot] == item))
            .collect();
        others.sort_unstable();
        others.dedup();
        let Some((family, _, length)) = self.all.items[slot].get(usize::from(item) - 1) else { return false };
        if (others.len() as u64) < FEW {
            return Some(*length) == self.finest[usize::from(*family == Family::V6)];
        }
        let like = others.iter().filter(|(.., within)| *within).count() as f64 + 1.0;
        let part = like / (others.len() as f64 + 1.0);
        part <= 0.5 && part.powf(inside.len().saturating_sub(1) as f64) <= CHANCE
    }

    /// The size of cells as a group. With a whole address, heavy flows are members unless one dominates; without one, the key is too
    /// coarse to represent them.
    fn standing(&self, picks: &Picks, cells: &[usize]) -> GroupSize {
        let all = has_address(picks);
        let mut standing = GroupSize { flows: 0, amount: 0, dominating: None };
        let mut largest = None;
        for cell in cells.iter().copied().filter(|cell| all || !self.is_heavy(*cell)) {
            let Cell { flows, largest: own, .. } = &self.all.cells[cell];
            standing.flows += flows;
            standing.amount += self.amount(cell);
            largest = largest.max(Some((own.by(self.measure), std::cmp::Reverse(cell))));
        }
        if let Some((amount, std::cmp::Reverse(cell))) = largest
            && amount as f64 > self.params.dominance * standing.amount as f64
        {
            standing.flows -= 1;
            standing.amount -= amount;
            standing.dominating = Some(cell);
        }
        standing
    }

    /// The cells that a group of this key would have.
    fn members(&self, picks: &Picks, left: &[usize]) -> Vec<usize> {
        let mut cells = self.matching(picks, left);
        if !has_address(picks) {
            cells.retain(|cell| !self.is_heavy(*cell));
        }
        cells
    }

    fn matching(&self, picks: &Picks, cells: &[usize]) -> Vec<usize> {
        let fits =
            |cell: &usize| picks.iter().flatten().all(|(slot, item)| self.all.cells[*cell].items[*slot] == *item);
        cells.iter().copied().filter(fits).collect()
    }

    /// Amounts by item of a slot; index 0 is for no item.
    fn sums(&self, slot: usize, cells: &[usize]) -> Vec<u64> {
        let mut sums = vec![0; self.all.items[slot].len() + 1];
        for cell in cells {
            sums[usize::from(self.all.cells[*cell].items[slot])] += self.amount(*cell);
        }
        sums
    }

    /// How common each item is: the share of the flows that have it, among the rest or among all, whichever is less.
    /// What all of the rest has in common still is informative if the flows that were explained before do not have it.
    fn common(&self, left: &[usize]) -> Common {
        let all: Vec<_> = (0..self.all.cells.len()).collect();
        let [left, all] = [left, &all].map(|cells| {
            let total: u64 = cells.iter().map(|cell| self.all.cells[*cell].flows).sum();
            move |slot: usize| {
                let mut flows = vec![0; self.all.items[slot].len() + 1];
                for cell in cells {
                    flows[usize::from(self.all.cells[*cell].items[slot])] += self.all.cells[*cell].flows;
                }
                flows.into_iter().map(move |flows| flows as f64 / total.max(1) as f64)
            }
        });
        std::array::from_fn(|slot| left(slot).zip(all(slot)).map(|(left, all)| left.min(all)).collect())
    }

    fn left(&self) -> impl Iterator<Item = usize> {
        (0..self.all.cells.len()).filter(|cell| self.taken[*cell].is_none())
    }

    /// A cell's bytes or packets, by the current measure.
    fn amount(&self, cell: usize) -> u64 {
        self.all.cells[cell].amount.by(self.measure)
    }

    /// Whether a cell is a flow that is heavy by itself, by the current measure.
    fn is_heavy(&self, cell: usize) -> bool {
        self.all.cells[cell].largest.by(self.measure) >= self.heavy.by(self.measure)
    }
}
