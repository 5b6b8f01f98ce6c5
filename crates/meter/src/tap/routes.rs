//! Which routes lead out of the link that is tapped, so that losses are told from what went elsewhere.

use hashbrown::HashMap;
use queuescope_wire::{FlowKey, Granularity, Prefixes};

/// What packets share that are routed alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RouteBy {
    /// Their five-tuple. Right also where a router balances over several links; a flow of which nothing came out counts
    /// as gone elsewhere.
    Flow,
    /// Their destination address: a flow of which everything was lost counts as lost if others to the same place came
    /// out.
    #[default]
    Destination,
}

/// The routes on which packets came out, as many as fit.
#[derive(Debug, Clone)]
pub struct Routes {
    by: RouteBy,
    known: HashMap<u64, Route, foldhash::fast::FixedState>,
    limit: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Route {
    leads_out: bool,
    /// Packets that did not come out, before any was known to.
    undecided: u64,
}

/// What is to be thought of a packet that did not come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Lost,
    /// Others on its route may come out later.
    Undecided,
}

impl Routes {
    /// No route is known. Of those that are not known to lead out, no more than `limit` are remembered, and as many of
    /// those that are.
    pub fn new(by: RouteBy, limit: usize) -> Self {
        let known = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0));
        Self { by, known, limit: limit.max(1) }
    }

    /// Forgets the packets that are not decided on, and keeps which routes lead out: for another pass over the captures.
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

    /// A packet came out; how many before it on its route, that did not, are now known to be lost.
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
    pub(super) fn did_not(&mut self, key: &FlowKey) -> Fate {
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
