//! Flows whose ids were released during a burst: all of them, or a sample if there are many.
//!
//! The sample is a Poisson sample with probabilities in proportion to size (threshold sampling; Duffield, Lund and Thorup, *Learn More,
//! Sample Less*, IEEE Trans. Inf. Theory 2005). An item that was kept with probability p counts 1/p times, so that the sum over any set of
//! flows is unbiased. Here p is the larger of the probabilities for bytes and for packets, so that both sums are good. An item with
//! probability 1 counts as it is.

use crate::{Amount, Share};

/// The departures of released ids, in bounded memory.
#[derive(Debug)]
pub(crate) struct Retired<K> {
    /// At most [`STEP_ROOM`] times `steps` items.
    kept: Vec<RetiredFlow<K>>,
    /// The number of steps that all bytes, and all packets, are divided into when the sample is thinned. On average it then has at most
    /// twice as many items, and [`GROWTH`] times that before the next thinning.
    steps: u64,
    /// The number of released ids; a flow that comes back and is released again counts twice.
    count: u64,
    /// The departures of all of them.
    all: Amount,
    /// The unit of the sample, once there is one.
    unit: Option<Unit>,
    /// The departures of all when the sample was last thinned.
    thinned: Amount,
}

/// One step of a sample: an id with at least this many bytes or packets was kept for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

#[derive(Debug)]
struct RetiredFlow<K> {
    key: K,
    share: Share,
    /// A random number in [0, 1); the item is kept while it is below the item's probability.
    rank: f32,
}

/// Twice [`GROWTH`], with room for chance: eight standard deviations at 16 384 ids.
const STEP_ROOM: f64 = 8.0 / 3.0;
/// The sample is thinned when bytes or packets have grown by this factor since the last time.
const GROWTH: f64 = 1.25;

impl<K> Retired<K> {
    /// Keeps `most` ids.
    pub(crate) fn new(most: usize) -> Self {
        let steps = (most as f64 / STEP_ROOM) as u64;
        Self {
            kept: Vec::new(),
            steps: steps.max(1),
            count: 0,
            all: Amount::default(),
            unit: None,
            thinned: Amount::default(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        (self.count, self.all, self.unit, self.thinned) = (0, Amount::default(), None, Amount::default());
    }

    /// The number of released ids.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// An id was released.
    pub(crate) fn add(&mut self, key: impl FnOnce() -> K, share: Share) {
        let rank = rank(self.count);
        self.count += 1;
        self.all.bytes += share.bytes;
        self.all.packets += share.packets;
        let grown = |now: u64, then: u64| now as f64 >= GROWTH * then as f64;
        let grown = grown(self.all.bytes, self.thinned.bytes) || grown(self.all.packets, self.thinned.packets);
        let full = self.kept.len() as f64 >= STEP_ROOM * self.steps as f64;
        if full || self.unit.is_some() && grown {
            self.thin();
        }
        if self.unit.is_none_or(|unit| f64::from(rank) < unit.probability(share)) {
            self.kept.push(RetiredFlow { key: key(), share, rank });
        }
    }

    fn thin(&mut self) {
        let unit = Unit {
            bytes: self.all.bytes.div_ceil(self.steps).max(1),
            packets: self.all.packets.div_ceil(self.steps).max(1),
        };
        self.kept.retain(|retired| f64::from(retired.rank) < unit.probability(retired.share));
        (self.unit, self.thinned) = (Some(unit), self.all);
    }

    /// Takes the kept items, scaled to what they stand for; those that stand for others come first, with their weights.
    pub(crate) fn take(&mut self) -> (Vec<(K, Share)>, Vec<f32>) {
        let probability = |share: Share| self.unit.map_or(1.0, |unit| unit.probability(share));
        let mut kept = std::mem::take(&mut self.kept);
        kept.sort_unstable_by_key(|retired| probability(retired.share) >= 1.0);
        let sampled = kept.partition_point(|retired| probability(retired.share) < 1.0);
        let stand_for = kept[..sampled].iter().map(|retired| (1.0 / probability(retired.share)) as f32).collect();
        // In place, because it is large. The rank is uniform below the probability, so rounding with it is unbiased.
        let scaled = kept.into_iter().map(|RetiredFlow { key, share, rank }| {
            let probability = probability(share);
            let up = if probability < 1.0 { f64::from(rank) / probability } else { 0.0 };
            let scaled = |amount: u64| (amount as f64 / probability + up) as u64;
            (key, Share { bytes: scaled(share.bytes), packets: scaled(share.packets), ..share })
        });
        (scaled.collect(), stand_for)
    }

    /// The unit of the sample, if there is one.
    pub(crate) fn unit(&self) -> Option<Unit> {
        self.unit
    }
}

impl Unit {
    fn probability(self, share: Share) -> f64 {
        let part = |amount: u64, step: u64| amount as f64 / step as f64;
        part(share.bytes, self.bytes).max(part(share.packets, self.packets)).min(1.0)
    }

    /// The possible error of a sum of which `sum` comes from the sample: the true value is outside with a probability of less
    /// than [`MISSED`] on each side.
    ///
    /// Each id adds at most a step, independently of the others, so Chernoff's inequality bounds the sum: it is below the mean by t steps with
    /// probability exp(-t²/2m) at most, and above it with exp(-t²/(2m + 2t/3)).
    pub(crate) fn error(self, sum: Amount) -> Amount {
        let of = |amount: u64, step: u64| {
            let (steps, exponent) = (amount as f64 / step as f64, -libm::log(MISSED));
            ((exponent + libm::sqrt(exponent * exponent + 2.0 * exponent * steps)) * step as f64).ceil() as u64
        };
        Amount { bytes: of(sum.bytes, self.bytes), packets: of(sum.packets, self.packets) }
    }
}

/// See [`Unit::error`].
const MISSED: f64 = 1e-6;

/// The rank of the n-th id: uniform, and the same in every run (splitmix64).
fn rank(n: u64) -> f32 {
    let a = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let a = (a ^ a >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let a = (a ^ a >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((a ^ a >> 31) >> 40) as f32 / (1u64 << 24) as f32
}
