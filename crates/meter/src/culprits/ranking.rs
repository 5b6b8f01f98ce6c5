//! The answer to a query: flows with their parts, and related facts.

use super::{Departed, record::PackedDeparture};
use hashbrown::HashMap;
use queuescope_wire::{Backlog, Class, FlowId, Nanos};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The culprits of one victim or of several. No departed byte is in two of the kinds, except that `original` is another view
/// of the same past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Culprits<L> {
    /// The victims.
    pub victims: Victims,
    /// The queue at the moment that `original` is about.
    pub standing: QueueSnapshot,
    /// Flows that left while a victim waited.
    pub direct: Ranking<L>,
    /// Flows that left before that, since the queue was last empty.
    pub indirect: Ranking<L>,
    /// Flows that raised the queue to the levels (bytes) that stood at `standing.at`.
    pub original: Ranking<L>,
    /// Whether all departures that the answer depends on are remembered. If not, the oldest are missing in `indirect` (and, for a
    /// time range or a drop, among the victims and in `direct`), and `original` attributes the levels that they raised to later
    /// packets.
    pub complete: bool,
}

/// The packets that waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Victims {
    /// The number of packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of their sojourn times; for a time range, only the parts within it.
    pub waited: Nanos,
    /// The one that waited longest (the first if several are equal), with its whole sojourn time. A dropped packet does not wait.
    pub longest: Option<Departed>,
}

/// The queue at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueSnapshot {
    /// The moment.
    pub at: Nanos,
    /// The backlog; at a victim's arrival, without the victim.
    pub backlog: Backlog,
    /// The first arrival after the queue was last empty; `at` if it was empty at that moment.
    pub since: Nanos,
}

/// The parts of a total, by label and by class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranking<L> {
    /// The part of each label, largest (most bytes) first, equal ones in the order of labels.
    pub parts: Vec<(L, Amount)>,
    /// The part of each class, in the order of classes.
    pub classes: Vec<(Class, Amount)>,
    /// The total.
    pub total: Amount,
}

/// Packets and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

impl Culprits<FlowId> {
    /// The same by a coarser label: flows with the same label are joined.
    pub fn by<L: Ord>(&self, label: impl Fn(FlowId) -> L) -> Culprits<L> {
        let &Self { victims, standing, complete, .. } = self;
        let [direct, indirect, original] = [&self.direct, &self.indirect, &self.original].map(|r| r.by(&label));
        Culprits { victims, standing, direct, indirect, original, complete }
    }
}

impl Ranking<FlowId> {
    /// The same by a coarser label: flows with the same label are joined.
    pub fn by<L: Ord>(&self, label: impl Fn(FlowId) -> L) -> Ranking<L> {
        let mut sums = BTreeMap::<L, Amount>::new();
        for (flow, amount) in &self.parts {
            sums.entry(label(*flow)).or_default().add(*amount);
        }
        let mut parts: Vec<_> = sums.into_iter().collect();
        // A stable sort: equal ones stay in the order of their labels.
        parts.sort_by_key(|(_, amount)| Reverse(amount.bytes));
        Ranking { parts, classes: self.classes.clone(), total: self.total }
    }
}

impl Amount {
    fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.packets += other.packets;
    }
}

/// Sums for a ranking.
#[derive(Debug, Default)]
pub(super) struct Tally {
    flows: HashMap<FlowId, Amount, foldhash::fast::FixedState>,
    classes: BTreeMap<Class, Amount>,
    total: Amount,
}

impl Tally {
    /// Adds `bytes` of a packet, or of levels that it raised.
    pub(super) fn add(&mut self, left: &PackedDeparture, bytes: u64) {
        let amount = Amount { bytes, packets: 1 };
        self.flows.entry(left.flow).or_default().add(amount);
        self.classes.entry(left.class()).or_default().add(amount);
        self.total.add(amount);
    }

    pub(super) fn ranking(self) -> Ranking<FlowId> {
        let mut parts: Vec<_> = self.flows.into_iter().collect();
        parts.sort_unstable_by_key(|(flow, amount)| (Reverse(amount.bytes), *flow));
        Ranking { parts, classes: self.classes.into_iter().collect(), total: self.total }
    }
}

impl<'a> FromIterator<&'a PackedDeparture> for Tally {
    fn from_iter<I: IntoIterator<Item = &'a PackedDeparture>>(lefts: I) -> Self {
        let mut tally = Self::default();
        lefts.into_iter().for_each(|left| tally.add(left, u64::from(left.size)));
        tally
    }
}
