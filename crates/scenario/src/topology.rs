//! Topologies: the switches, and the links between them.

use crate::keys::{Choice, KeyVisitor, Table, fields};
use crate::link::Link;

/// The switches, and the links between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// Two switches, `left` and `right`, and the link `bottleneck` between them.
    Dumbbell,
    /// Switches `r1`, `r2`, ... in a row, and equal links `hop1`, `hop2`, ... between them.
    ParkingLot {
        /// The number of links.
        hops: u16,
    },
    /// The switches and links of `[[wires]]`.
    Graph,
}

/// A link of a graph, with its two switches.
#[derive(Debug, Clone, PartialEq)]
pub struct Wire {
    /// The name. By default FROM-TO, from the names of its switches.
    pub name: String,
    /// The switch at whose port its queue is.
    pub from: String,
    /// The switch at the other end.
    pub to: String,
    /// The properties of the link.
    pub link: Link,
}

fields!(tables: Wire; choices: Topology);

impl Topology {
    /// The default switches of senders and receivers; `None` for a graph.
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
                "Switches `r1`, `r2`, ... in a row, and the links `hop1`, `hop2`, ... between them, each as in `[link]`. By \
                 default flows go from the first switch to the last."
            }
            Self::Graph => "The switches and links of `[[wires]]`.",
        }
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        if let Self::ParkingLot { hops } = self {
            keys.within("hops", hops, 1..=1000, "The number of links in the row.");
        }
    }
}

impl Wire {
    /// A wire with the defaults of `link`.
    pub(crate) fn like(link: &Link) -> Self {
        Self { name: String::new(), from: String::new(), to: String::new(), link: link.clone() }
    }
}

impl Table for Wire {
    fn fresh() -> Self {
        Self::like(&Link::fresh())
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.key("from", &mut self.from, "The switch at whose port the queue is.");
        keys.required("from");
        keys.key("to", &mut self.to, "The switch at the other end.");
        keys.required("to");
        let default = format!("{}-{}", self.from, self.to);
        keys.inherited(
            "name",
            &mut self.name,
            &default,
            "The name of the link, for meters and reports; by default FROM-TO.",
        );
        self.link.keys(keys);
    }
}
