//! Flows whose ids were taken back while a burst lasted: all of them, or a sample if they are many.
//!
//! The sample is of Poisson's kind, with probabilities in proportion to size (Duffield, Lund and Thorup, *Learn More,
//! Sample Less*, IEEE Trans. Inf. Theory 2005, threshold sampling): what was kept with probability p counts 1/p times, so
//! that the sum over any set of flows is right on average. Here p is the larger of those that bytes and packets call for,
//! so that both are. What had probability 1 counts as it is.

use crate::{Amount, Share};

/// What left under ids that were taken back, in bounded memory.
#[derive(Debug)]
pub(crate) struct Retired<K> {
    /// At most [`STEP_ROOM`] times `steps`.
    kept: Vec<Gone<K>>,
    /// Steps that all bytes, and all packets, are divided in when the sample is made smaller: what is kept then is at most
    /// twice as many on average, and [`GROWTH`] times that before the next time.
    steps: u64,
    /// How many ids were taken back; a flow that comes and goes again is two.
    count: u64,
    /// All that they left.
    all: Amount,
    /// Of what is kept, once that is a sample.
    unit: Option<Unit>,
    /// What all had left when the sample was made smaller last.
    thinned: Amount,
}

/// What one step of a sample amounts to: an id that left as much, in bytes or packets, was kept for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

#[derive(Debug)]
struct Gone<K> {
    key: K,
    share: Share,
    /// Uniform in [0, 1): it is kept while this is below its probability.
    rank: f32,
}

/// Twice [`GROWTH`], and room for chance: of 16 384 ids, eight standard deviations.
const STEP_ROOM: f64 = 8.0 / 3.0;
/// The sample is made smaller when bytes or packets are so many times those of the last time.
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

    /// How many ids were taken back.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// An id was taken back.
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
            self.kept.push(Gone { key: key(), share, rank });
        }
    }

    fn thin(&mut self) {
        let unit = Unit {
            bytes: self.all.bytes.div_ceil(self.steps).max(1),
            packets: self.all.packets.div_ceil(self.steps).max(1),
        };
        self.kept.retain(|gone| f64::from(gone.rank) < unit.probability(gone.share));
        (self.unit, self.thinned) = (Some(unit), self.all);
    }

    /// Takes what is kept, each as much as it stands for; first those that stand for others too, with how many.
    pub(crate) fn take(&mut self) -> (Vec<(K, Share)>, Vec<f32>) {
        let probability = |share: Share| self.unit.map_or(1.0, |unit| unit.probability(share));
        let mut kept = std::mem::take(&mut self.kept);
        kept.sort_unstable_by_key(|gone| probability(gone.share) >= 1.0);
        let sampled = kept.partition_point(|gone| probability(gone.share) < 1.0);
        let stand_for = kept[..sampled].iter().map(|gone| (1.0 / probability(gone.share)) as f32).collect();
        // In the same memory: it is large. Its rank is uniform below its probability, and rounds without a bias.
        let scaled = kept.into_iter().map(|Gone { key, share, rank }| {
            let probability = probability(share);
            let up = if probability < 1.0 { f64::from(rank) / probability } else { 0.0 };
            let scaled = |amount: u64| (amount as f64 / probability + up) as u64;
            (key, Share { bytes: scaled(share.bytes), packets: scaled(share.packets), ..share })
        });
        (scaled.collect(), stand_for)
    }

    /// One step of the sample, if it is one.
    pub(crate) fn unit(&self) -> Option<Unit> {
        self.unit
    }
}

impl Unit {
    fn probability(self, share: Share) -> f64 {
        let part = |amount: u64, step: u64| amount as f64 / step as f64;
        part(share.bytes, self.bytes).max(part(share.packets, self.packets)).min(1.0)
    }

    /// By how much a sum may be wrong of which so much is of the sample: it is more with a probability of
    /// less than [`MISSED`] on each side.
    ///
    /// Each id adds at most a step, independently of the others, so that the sum is bounded as in Chernoff's inequality:
    /// less than the mean by t steps with probability exp(-t²/2m) at most, more with exp(-t²/(2m + 2t/3)).
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

/// The rank of the n-th: uniform, and the same in every run (splitmix64).
fn rank(n: u64) -> f32 {
    let a = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let a = (a ^ a >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let a = (a ^ a >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((a ^ a >> 31) >> 40) as f32 / (1u64 << 24) as f32
}
