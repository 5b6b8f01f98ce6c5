//! The answer: who, how much, and the facts that go with it.

use super::{Departed, record::Left};
use hashbrown::HashMap;
use queuescope_wire::{Backlog, Class, FlowId, Nanos};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The culprits of one victim or of several. The three kinds share no byte that left, except that `original` looks at
/// the same past in another way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Culprits<L> {
    /// Who suffered.
    pub victims: Victims,
    /// The queue at the moment that `original` is about.
    pub standing: Standing,
    /// Who left while a victim waited.
    pub direct: Ranking<L>,
    /// Who left before that, since the queue was last empty.
    pub indirect: Ranking<L>,
    /// Who raised the queue to each of the levels (bytes) that stood at `standing.at`.
    pub original: Ranking<L>,
    /// Whether all departures that the answer is about are remembered. If not, the oldest are missing in `indirect` (and,
    /// of a time range or a drop, among the victims and in `direct`), and `original` takes levels that they raised for
    /// later packets'.
    pub complete: bool,
}

/// Who suffered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Victims {
    /// How many packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long they waited, summed; of a time range, only what lies in it.
    pub waited: Nanos,
    /// The one that waited longest (the first of equals), with all of its wait. A dropped packet waits not.
    pub longest: Option<Departed>,
}

/// The queue at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// The moment.
    pub at: Nanos,
    /// What was in the queue; as a victim came, without it.
    pub backlog: Backlog,
    /// When the first packet came to the queue after it was last empty; `at`, where it was empty at that moment.
    pub since: Nanos,
}

/// Parts of something, by label and by class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranking<L> {
    /// Each label's part, heaviest (most bytes) first, ties in the order of labels.
    pub parts: Vec<(L, Amount)>,
    /// Each class's part, in the order of classes.
    pub classes: Vec<(Class, Amount)>,
    /// The whole.
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
    /// The same by a coarser label: flows that have one label are one.
    pub fn by<L: Ord>(&self, label: impl Fn(FlowId) -> L) -> Culprits<L> {
        let &Self { victims, standing, complete, .. } = self;
        let [direct, indirect, original] = [&self.direct, &self.indirect, &self.original].map(|r| r.by(&label));
        Culprits { victims, standing, direct, indirect, original, complete }
    }
}

impl Ranking<FlowId> {
    /// The same by a coarser label: flows that have one label are one.
    pub fn by<L: Ord>(&self, label: impl Fn(FlowId) -> L) -> Ranking<L> {
        let mut sums = BTreeMap::<L, Amount>::new();
        for (flow, amount) in &self.parts {
            sums.entry(label(*flow)).or_default().add(*amount);
        }
        let mut parts: Vec<_> = sums.into_iter().collect();
        // Stable: equals stay in the order of their labels.
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

/// A ranking in the making.
#[derive(Debug, Default)]
pub(super) struct Tally {
    flows: HashMap<FlowId, Amount, foldhash::fast::FixedState>,
    classes: BTreeMap<Class, Amount>,
    total: Amount,
}

impl Tally {
    /// Adds `bytes` of a packet, or of levels that it raised.
    pub(super) fn add(&mut self, left: &Left, bytes: u64) {
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

impl<'a> FromIterator<&'a Left> for Tally {
    fn from_iter<I: IntoIterator<Item = &'a Left>>(lefts: I) -> Self {
        let mut tally = Self::default();
        lefts.into_iter().for_each(|left| tally.add(left, u64::from(left.size)));
        tally
    }
}
