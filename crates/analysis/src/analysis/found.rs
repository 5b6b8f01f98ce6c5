//! Parts of what an analysis finds: counts, meters, and bursts that have ended.

use crate::worst::Worst;
use queuescope_meter::{Burst, DistinctFlows, ExactMeter, RateChange, WindowSums};
use queuescope_queue::{DropReason, MarkReason};
use queuescope_report::model;
use queuescope_wire::{Backlog, Nanos};
use std::collections::BTreeMap;

/// Counts and extremes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub departed: Backlog,
    /// Departed packets whose waiting is not examined: their arrival was not seen, or they are not victims.
    pub passed: u64,
    /// The victims that left, and those that were dropped, if an expression chooses victims.
    pub victims: Backlog,
    pub victims_dropped: u64,
    /// Packets whose flow key is not known, where the expression for victims needs it.
    pub unnamed: u64,
    /// Packets that were already forgotten when it became known that they were part of a burst.
    pub unjoined: u64,
    pub waited: u64,
    pub longest: Nanos,
    pub hit: u64,
    pub flows_met: u64,
    /// Packets that waited longer than departures are remembered.
    pub history_too_short: u64,
    /// Flows that were forgotten early to make room for new ones.
    pub forgotten: u64,
    pub drops: BTreeMap<DropReason, u64>,
    pub marks: BTreeMap<MarkReason, u64>,
    pub peak: Backlog,
    pub last: Nanos,
}

/// The meters of one granularity.
#[derive(Debug)]
pub(crate) struct Meters {
    /// The exact part of the queue that each flow had, in a FIFO, and in queues of any order.
    pub sums: WindowSums,
    pub exact: ExactMeter,
    pub distinct: DistinctFlows,
    /// Flows with packets in bursts.
    pub in_bursts: DistinctFlows,
}

/// A burst that has ended, and what was computed at its end.
#[derive(Debug, Clone)]
pub(crate) struct FoundBurst<K> {
    /// Counted from 1 in the order of the bursts, including those that were not kept.
    pub number: u64,
    pub burst: Burst<K>,
    /// What its flows have in common; empty if it was not computed.
    pub groups: Vec<model::Group>,
    /// Flows of the first granularity whose rates jumped, with the largest factor.
    pub ramps: Vec<(K, RateChange)>,
    pub worst: Option<Worst<K>>,
}
