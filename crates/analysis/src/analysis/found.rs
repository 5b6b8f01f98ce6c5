//! What an analysis has found: counts, meters, and bursts that have ended.

use crate::worst::Worst;
use queuescope_meter::{Burst, DistinctFlows, ExactMeter, Jump};
use queuescope_queue::{DropReason, MarkReason};
use queuescope_report::model;
use queuescope_wire::{Backlog, Nanos};
use std::collections::BTreeMap;

/// Counts and extremes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub departed: Backlog,
    /// Of those, how many nobody saw coming, or are no victims: their own waiting is not examined.
    pub passed: u64,
    /// The victims that left, and those that were dropped, where not everybody is one.
    pub victims: Backlog,
    pub victims_dropped: u64,
    /// Packets of which it is not known who they belong to, as that was asked.
    pub unnamed: u64,
    /// Packets of bursts that were no longer remembered when it was known that they were part of them.
    pub unjoined: u64,
    pub waited: u64,
    pub longest: Nanos,
    pub hit: u64,
    pub flows_met: u64,
    /// Questions about more than was remembered.
    pub history_too_short: u64,
    /// Flows that were forgotten early, since there was no room for more.
    pub forgotten: u64,
    pub drops: BTreeMap<DropReason, u64>,
    pub marks: BTreeMap<MarkReason, u64>,
    pub peak: Backlog,
    pub last: Nanos,
}

/// What is measured at one granularity.
#[derive(Debug)]
pub(crate) struct Meters {
    pub exact: ExactMeter,
    pub distinct: DistinctFlows,
    /// Those that left packets in bursts.
    pub in_bursts: DistinctFlows,
}

/// A burst, and what is found out as it ends.
#[derive(Debug, Clone)]
pub(crate) struct FoundBurst<K> {
    /// From 1, in the order of the bursts, also of those that were not kept.
    pub number: u64,
    pub burst: Burst<K>,
    /// What its flows have in common; nothing where nobody wants to know.
    pub groups: Vec<model::Group>,
    /// Flows of the first granularity whose rates jumped, by what factor at most.
    pub ramps: Vec<(K, Jump)>,
    pub worst: Option<Worst<K>>,
}
