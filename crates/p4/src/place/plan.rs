//! A placement under construction.

use super::Used;
use crate::graph::{Chains, Node};
use crate::target::Target;

/// The stages of the parts that are placed so far.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    nodes: &'a [Node],
    /// The resources that each node takes.
    pub needs: &'a [Used],
    /// The resources of a stage, and the number of stages.
    has: Used,
    most: usize,
    /// The resources taken of each stage.
    used: Vec<Used>,
    /// The placed parts, in order.
    put: Vec<PlacedPart>,
    /// The first and the last stage of each node that is placed.
    ends: Vec<Option<(usize, usize)>>,
    /// How often a part was tried in a stage.
    pub looks: u64,
}

/// A node, a stage, and the resources that the node takes there.
type PlacedPart = (usize, usize, Used);

/// How a search for a placement in the available stages ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    /// A placement was found.
    Found,
    /// There is no placement.
    None,
    /// The search stopped before everything was tried.
    GivenUp,
}

impl<'a> Plan<'a> {
    pub fn new(nodes: &'a [Node], needs: &'a [Used], target: &Target) -> Self {
        Self {
            nodes,
            needs,
            has: Used::all_of(&target.per_stage),
            most: target.stages,
            used: Vec::new(),
            put: Vec::new(),
            ends: vec![None; nodes.len()],
            looks: 0,
        }
    }

    /// How many stages are needed.
    pub fn stages(&self) -> usize {
        self.ends.iter().flatten().map(|(_, last)| last + 1).max().unwrap_or(0)
    }

    /// All parts with their stages.
    pub fn parts(&self) -> impl Iterator<Item = PlacedPart> + '_ {
        self.put.iter().copied()
    }

    /// The stage in which a node begins.
    pub fn begin(&self, node: usize) -> Option<usize> {
        self.ends[node].map(|(begin, _)| begin)
    }

    /// Places all nodes, stage by stage: as long as there is room, the first in order of those that are ready.
    pub fn in_order(&mut self, order: &[usize]) {
        self.clear();
        let mut left = order.to_vec();
        let mut at = 0;
        while !left.is_empty() {
            left.retain(|&node| {
                self.looks += 1;
                self.earliest(node).is_none_or(|earliest| earliest > at) || !self.put(node, at)
            });
            at += 1;
        }
    }

    /// Like [`Self::in_order`] with one or two nodes moved to the front, until the stages suffice. Stops after
    /// `most_looks` tries.
    pub fn other_orders(&mut self, order: &[usize], most_looks: u64) -> Search {
        let pairs = (0..order.len()).flat_map(|one| (one..order.len()).map(move |other| [one, other]));
        for [one, other] in pairs {
            if self.looks >= most_looks {
                break;
            }
            let mut changed = order.to_vec();
            // Removes the later one first, so that the other keeps its position.
            let later = changed.remove(other);
            changed.insert(0, later);
            let first = changed.remove(one + usize::from(one != other));
            changed.insert(0, first);
            self.in_order(&changed);
            if self.stages() <= self.most {
                return Search::Found;
            }
        }
        Search::GivenUp
    }

    /// Places all nodes in the available stages by trying each node in each stage. Stops after `most_looks` tries.
    /// Without tables that can continue in other stages, this covers all placements.
    pub fn all_ways(&mut self, order: &[usize], chains: &[Chains], most_looks: u64) -> Search {
        self.clear();
        // The stage in which each placed node begins.
        let mut begins: Vec<usize> = Vec::new();
        let mut from = 0;
        while let Some(&node) = order.get(begins.len()) {
            if self.looks >= most_looks {
                return Search::GivenUp;
            }
            let end = self.most.saturating_sub(chains[node].behind);
            let earliest = self.earliest(node).unwrap_or(0);
            match (from.max(earliest)..end).find(|stage| self.put_before(node, *stage, end)) {
                Some(stage) => {
                    begins.push(stage);
                    from = 0;
                }
                None => {
                    let Some(stage) = begins.pop() else {
                        let can_be_split = |needs: &Used| needs.registers == 0 && needs.sram + needs.tcam > 1;
                        return if self.needs.iter().any(can_be_split) { Search::GivenUp } else { Search::None };
                    };
                    self.take_out(order[begins.len()]);
                    from = stage + 1;
                }
            }
        }
        Search::Found
    }

    /// Puts a node into a stage, if it has room there and ends before stage `end`.
    fn put_before(&mut self, node: usize, at: usize, end: usize) -> bool {
        self.looks += 1;
        let has_room = self.put(node, at);
        let is_in_time = self.ends[node].is_some_and(|(_, last)| last < end);
        if has_room && !is_in_time {
            self.take_out(node);
        }
        has_room && is_in_time
    }

    /// The first stage after everything that a node needs; `None` while something is not placed.
    fn earliest(&self, node: usize) -> Option<usize> {
        let behind = |need: &usize| self.ends[*need].map(|(_, last)| last + 1);
        self.nodes[node].needs.iter().try_fold(0, |earliest, need| Some(earliest.max(behind(need)?)))
    }

    /// Puts a node into a stage, if there is room. The rest of a table goes into the stages that follow.
    fn put(&mut self, node: usize, at: usize) -> bool {
        let mut needs = self.needs[node];
        for stage in at.. {
            if self.used.len() <= stage {
                self.used.resize_with(stage + 1, Used::default);
            }
            let here = self.used[stage];
            // A register is in one stage. A table may be in several, from the stage of its first block on.
            let part = if needs.registers > 0 {
                needs
            } else {
                let (sram, tcam) = (self.has.sram - here.sram, self.has.tcam - here.tcam);
                Used { sram: needs.sram.min(sram), tcam: needs.tcam.min(tcam), ..needs }
            };
            let nothing = part.sram + part.tcam == 0 && needs.sram + needs.tcam > 0;
            if nothing || !here.plus(part).within(self.has) {
                if stage == at {
                    return false;
                }
                continue;
            }
            self.used[stage] = here.plus(part);
            self.put.push((node, stage, part));
            needs = Used { sram: needs.sram - part.sram, tcam: needs.tcam - part.tcam, ..needs };
            if needs.sram + needs.tcam == 0 {
                self.ends[node] = Some((at, stage));
                return true;
            }
        }
        false
    }

    /// Removes the node that was placed last.
    fn take_out(&mut self, node: usize) {
        self.ends[node] = None;
        while let Some((_, stage, part)) = self.put.pop_if(|(other, ..)| *other == node) {
            self.used[stage] = self.used[stage].less(part);
        }
    }

    fn clear(&mut self) {
        self.used.clear();
        self.put.clear();
        self.ends.fill(None);
    }
}
