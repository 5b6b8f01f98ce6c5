//! Topologies: which switches there are, and which links between them.

use crate::keys::{Choice, Keys, Table, fields};
use crate::link::Link;

/// Which switches there are, and which links between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// Two switches, `left` and `right`, and the link `bottleneck` between them.
    Dumbbell,
    /// Switches `r1`, `r2`, ... in a row, and the links `hop1`, `hop2`, ... between them, all alike.
    ParkingLot {
        /// How many links.
        hops: u16,
    },
    /// Those that `[[wires]]` name.
    Graph,
}

/// A link of a graph, with two ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Wire {
    /// Its name; of both ends, if none is given.
    pub name: String,
    /// The switch whose queue it has.
    pub from: String,
    /// The switch at its other end.
    pub to: String,
    /// What it is like.
    pub link: Link,
}

fields!(tables: Wire; choices: Topology);

impl Topology {
    /// The switches between which flows go that do not say.
    pub fn ends(&self) -> Option<(String, String)> {
        match self {
            Self::Dumbbell => Some(("left".to_owned(), "right".to_owned())),
            Self::ParkingLot { hops } => Some(("r1".to_owned(), format!("r{}", u32::from(*hops) + 1))),
            Self::Graph => None,
        }
    }
}

impl Choice for Topology {
    const WHAT: &'static str = "topology";

    fn fresh() -> Self {
        Self::Dumbbell
    }

    fn options(&self) -> Vec<Self> {
        vec![Self::Dumbbell, Self::ParkingLot { hops: 3 }, Self::Graph]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Dumbbell => "dumbbell",
            Self::ParkingLot { .. } => "parking-lot",
            Self::Graph => "graph",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::Dumbbell => "Two switches, `left` and `right`, and the link `bottleneck` between them.",
            Self::ParkingLot { .. } => {
                "Switches `r1`, `r2`, ... in a row, and the links `hop1`, `hop2`, ... between them, all as `[link]` says. \
                 Flows go from the first to the last unless they say otherwise."
            }
            Self::Graph => "The switches and links that `[[wires]]` name.",
        }
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        if let Self::ParkingLot { hops } = self {
            keys.within("hops", hops, 1..=1000, "How many links there are in a row.");
        }
    }
}

impl Wire {
    /// The one of a number, like `link` where it does not say.
    pub(crate) fn like(link: &Link) -> Self {
        Self { name: String::new(), from: String::new(), to: String::new(), link: link.clone() }
    }
}

impl Table for Wire {
    fn fresh() -> Self {
        Self::like(&Link::fresh())
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        keys.key("from", &mut self.from, "The switch at whose port the queue is.");
        keys.required("from");
        keys.key("to", &mut self.to, "The switch at the other end.");
        keys.required("to");
        let default = format!("{}-{}", self.from, self.to);
        keys.inherited("name", &mut self.name, &default, "What meters call it; if not said, FROM-TO.");
        self.link.keys(keys);
    }
}
