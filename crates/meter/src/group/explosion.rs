//! Very many flows of one kind, by the names that they have in the field.

use super::{Group, Weight};
use std::fmt;

/// Why there are so many flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Explosion {
    /// One source looks for something: a few small packets to each of many addresses or ports.
    Scan,
    /// Many sources send a little each to one destination.
    Flood,
    /// Many sources send much each to one destination at the same time.
    Incast,
}

impl Explosion {
    /// What the flows of a group are, if they are many and of one end. `targets` are the different pairs of destination and
    /// port, `asking` is the part of the flows whose destination port is the lower one: those of a server that answers have
    /// the higher one. Of connections nobody knows who started them.
    pub(super) fn of(group: &Group, targets: impl FnOnce() -> u64, asking: impl FnOnce() -> f64) -> Option<Self> {
        let Weight { flows, bytes, packets } = group.weight;
        let single = |end: Option<super::Subnet>| end.is_some_and(|end| end.is_whole());
        if group.pattern.connections || group.flow.is_some() || flows == 0 {
            return None;
        }
        let few = packets <= MOST_PACKETS * flows;
        let small = bytes <= MOST_BYTES * packets;
        let large = bytes >= LEAST_OF_INCAST * flows;
        if single(group.pattern.src) && few && small && targets() >= MANY && asking() >= MOST {
            Some(Self::Scan)
        } else if !single(group.pattern.dst) {
            None
        } else if large && group.sources >= MANY_SENDERS {
            Some(Self::Incast)
        } else if few && group.sources >= MANY {
            Some(Self::Flood)
        } else {
            None
        }
    }
}

impl fmt::Display for Explosion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scan => "scan",
            Self::Flood => "flood",
            Self::Incast => "incast",
        })
    }
}

/// Sources or targets that are many.
const MANY: u64 = 16;
/// Senders that are many where each sends much.
const MANY_SENDERS: u64 = 8;
/// Packets of a flow that are few, on average: an open port is answered, and tried again.
const MOST_PACKETS: u64 = 4;
/// The part of a scan's flows that ask, and do not answer.
const MOST: f64 = 0.75;
/// Bytes of a small packet, on average.
const MOST_BYTES: u64 = 200;
/// Bytes of a large flow, on average: two full packets, as more than that of each waits at once.
const LEAST_OF_INCAST: u64 = 3_000;
