//! The routes that lead out of the captured link, to distinguish lost packets from packets that were routed elsewhere.

use hashbrown::HashMap;
use queuescope_wire::{FlowKey, Granularity, Prefixes};

/// What packets on the same route have in common.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RouteBy {
    /// Their five-tuple. It is also correct if a router balances over several links. A flow of which no packet came out counts as routed
    /// elsewhere.
    Flow,
    /// Their destination address. A flow whose packets were all lost counts as lost if other packets to the same address came
    /// out.
    #[default]
    Destination,
}

/// The known routes, up to a limit.
#[derive(Debug, Clone)]
pub struct Routes {
    by: RouteBy,
    known: HashMap<u64, Route, foldhash::fast::FixedState>,
    limit: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Route {
    leads_out: bool,
    /// Packets that did not come out, before any packet of the route did.
    undecided: u64,
}

/// What happened to a packet that did not come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Lost,
    /// Unknown: other packets on its route may come out later.
    Undecided,
}

impl Routes {
    /// Creates an empty table. It remembers at most `limit` routes that are not known to lead out, and as many
    /// that are.
    pub fn new(by: RouteBy, limit: usize) -> Self {
        let known = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0));
        Self { by, known, limit: limit.max(1) }
    }

    /// Forgets undecided packets, and keeps the routes that lead out, for another pass over the captures.
    #[must_use]
    pub fn learnt(mut self) -> Self {
        self.known.retain(|_, route| route.leads_out);
        self
    }

    fn digest(&self, key: &FlowKey) -> u64 {
        match self.by {
            RouteBy::Flow => Granularity::FiveTuple.project(key).digest(),
            RouteBy::Destination => Granularity::Destination(Prefixes::WHOLE).project(key).digest(),
        }
    }

    /// A packet came out. Returns the number of earlier packets on its route that did not come out, and are now known to be lost.
    #[inline]
    pub(super) fn came_out(&mut self, key: &FlowKey) -> u64 {
        let digest = self.digest(key);
        match self.known.get_mut(&digest) {
            Some(route) => {
                route.leads_out = true;
                std::mem::take(&mut route.undecided)
            }
            None => {
                if self.known.len() < 2 * self.limit {
                    self.known.insert(digest, Route { leads_out: true, undecided: 0 });
                }
                0
            }
        }
    }

    /// A packet did not come out.
    pub(super) fn did_not_come_out(&mut self, key: &FlowKey) -> Fate {
        let digest = self.digest(key);
        match self.known.get_mut(&digest) {
            Some(route) if route.leads_out => Fate::Lost,
            Some(route) => {
                route.undecided += 1;
                Fate::Undecided
            }
            None => {
                if self.known.len() < self.limit {
                    self.known.insert(digest, Route { leads_out: false, undecided: 1 });
                }
                Fate::Undecided
            }
        }
    }
}
