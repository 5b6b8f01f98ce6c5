//! Known patterns of very many flows of one kind.

use super::{Group, Weight};
use std::fmt;

/// A pattern of many flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Explosion {
    /// One source searches: a few small packets to each of many addresses or ports.
    Scan,
    /// Many sources send a little each to one destination.
    Flood,
    /// Many sources send much each to one destination at the same time.
    Incast,
}

impl Explosion {
    /// The pattern of a group with many flows at one end. `targets` is the number of distinct pairs of destination and port; `requesting` is the
    /// share of the flows whose destination port is the lower one (replies of a server have the higher one as destination). Connections have
    /// no pattern, because it is unknown who opened them.
    pub(super) fn from_group(
        group: &Group,
        targets: impl FnOnce() -> u64,
        requesting: impl FnOnce() -> f64,
    ) -> Option<Self> {
        let Weight { flows, bytes, packets } = group.weight;
        let single = |end: Option<super::Subnet>| end.is_some_and(|end| end.is_whole());
        if group.pattern.connections || group.flow.is_some() || flows == 0 {
            return None;
        }
        let few = packets <= MOST_PACKETS * flows;
        let small = bytes <= MOST_BYTES * packets;
        let large = bytes >= LEAST_OF_INCAST * flows;
        if single(group.pattern.src) && few && small && targets() >= MANY && requesting() >= MOST {
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

/// The smallest number of sources or targets that counts as many.
const MANY: u64 = 16;
/// The smallest number of senders that counts as many if each sends much.
const MANY_SENDERS: u64 = 8;
/// The largest mean number of packets of a flow that counts as few: an open port replies, and the packet is retransmitted.
const MOST_PACKETS: u64 = 4;
/// The smallest share of a scan's flows that are requests, not replies.
const MOST: f64 = 0.75;
/// The largest mean size of a small packet, bytes.
const MOST_BYTES: u64 = 200;
/// The smallest mean size of a large flow, bytes: two full packets, because more than that of each flow waits at once.
const LEAST_OF_INCAST: u64 = 3_000;
