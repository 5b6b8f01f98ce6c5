//! The first pass over the captures: estimates the offsets between their clocks.
//!
//! Of each side, packets are remembered whose fingerprints fall into a sampled part of all fingerprints, the same part on both sides:
//! trajectory sampling (Duffield and Grossglauser, SIGCOMM 2000). The part is halved whenever there are too many packets. So a packet that is
//! remembered on one side is also remembered on the other if it was captured there, however far apart the clocks or the captures' starts are.
//! Each packet on both sides gives a difference of clocks; the right one is where the most packets agree to within the longest
//! delay.

use super::envelope::difference;
use super::{ClockEstimate, Envelope, TapPacket};
use hashbrown::HashMap;
use queuescope_wire::Nanos;

/// Parameters of the search for clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurveyParams {
    /// The longest time that a packet can be in the router.
    pub max_delay: Nanos,
    /// The largest number of packets of each side that are remembered.
    pub most: usize,
    /// Whether all captures before the router use the same clock.
    pub shared_clock: bool,
}

/// Samples of both sides.
#[derive(Debug)]
pub struct Survey {
    params: SurveyParams,
    links: usize,
    ingress: Sample,
    egress: Sample,
}

/// The result for one link into the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSurvey {
    /// Its clock, and the accuracy of the estimate.
    pub estimate: ClockEstimate,
    /// Packets in the sample that were captured once on each side and agree with the estimate.
    pub agreeing: u64,
    /// Packets that do not agree: different packets with the same fingerprint, or delays beyond the longest.
    pub disagreeing: u64,
    /// Packets in the opposite direction, by their TTL.
    pub reverse: u64,
    /// The largest possible error of the clock's offset, if packets of both directions limit it: the sum of the shortest times through the
    /// router in both directions. The true offset is lower by at most this.
    pub transit: Option<Nanos>,
    /// The sampling ratio: one packet in this number was examined.
    pub one_in: u64,
}

/// Why no clock was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SurveyError {
    /// No packet was captured on both sides.
    #[error(
        "no packet of ingress capture {} was seen again at the egress: {ingress} of its packets and {egress} behind the \
         router were compared; check that the captures ran at the same time, that both are of this router, and whether \
         it translates addresses (--nat)",
        link + 1
    )]
    NothingInCommon {
        /// The link's number, from 0.
        link: usize,
        /// The number of compared packets before the router.
        ingress: u64,
        /// The number of compared packets behind the router.
        egress: u64,
    },
    /// The packets captured on both sides go in the opposite direction.
    #[error(
        "the {reverse} packets of ingress capture {} that were seen again at the egress go the other way, by their TTL: \
         are the captures interchanged?",
        link + 1
    )]
    OnlyReverse {
        /// The link's number, from 0.
        link: usize,
        /// Packets that go the other way.
        reverse: u64,
    },
}

/// The sample of one side.
#[derive(Debug)]
struct Sample {
    packets: HashMap<u64, Sampled, foldhash::fast::FixedState>,
    /// Only fingerprints with this number of zero low bits are in the sample.
    halvings: u32,
    limit: usize,
}

#[derive(Debug, Clone, Copy)]
struct Sampled {
    time: Nanos,
    link: u32,
    ttl: u8,
    again: bool,
}

/// A packet that was captured on both sides.
#[derive(Debug, Clone, Copy)]
struct Pair {
    before: Nanos,
    after: Nanos,
    ahead: i64,
}

/// The largest drift between the clocks over the captures, for the search: one part in this number.
const DRIFT: u64 = 5_000;

impl Default for SurveyParams {
    fn default() -> Self {
        Self { max_delay: Nanos(200_000_000), most: 1 << 18, shared_clock: false }
    }
}

impl Survey {
    /// Creates a survey of `links` links into the router and one out of it.
    pub fn new(params: SurveyParams, links: usize) -> Self {
        Self { params, links, ingress: Sample::new(params.most), egress: Sample::new(params.most) }
    }

    /// A packet was captured on its way in, on link number `link`. The order among captures does not matter.
    #[inline]
    pub fn ingress(&mut self, link: usize, seen: &TapPacket) {
        self.ingress.add(link as u32, seen);
    }

    /// A packet was captured on its way out.
    #[inline]
    pub fn egress(&mut self, seen: &TapPacket) {
        self.egress.add(0, seen);
    }

    /// The clock of each link.
    ///
    /// # Errors
    /// For each link without an estimate, the reason.
    pub fn finish(mut self) -> Vec<Result<LinkSurvey, SurveyError>> {
        let halvings = self.ingress.halvings.max(self.egress.halvings);
        self.ingress.thin(halvings);
        self.egress.thin(halvings);
        if self.params.shared_clock {
            let all = self.link(None);
            return (0..self.links).map(|_| all).collect();
        }
        (0..self.links).map(|link| self.link(Some(link))).collect()
    }

    /// Packets captured on both sides: those that were captured once on each side or, with `again`, also the first of repeated ones.
    fn pairs(&self, link: Option<usize>, again: bool) -> Pairs {
        let mut pairs = Pairs { forward: Vec::new(), reverse: Vec::new(), ingress: 0 };
        for (digest, before) in &self.ingress.packets {
            if link.is_some_and(|link| before.link as usize != link) {
                continue;
            }
            pairs.ingress += 1;
            let after = self.egress.packets.get(digest).filter(|after| again || !after.again && !before.again);
            let Some(after) = after else { continue };
            let Some(ahead) = difference(before.time, after.time) else { continue };
            let pair = Pair { before: before.time, after: after.time, ahead };
            if after.ttl > before.ttl { pairs.reverse.push(pair) } else { pairs.forward.push(pair) }
        }
        pairs
    }

    fn link(&self, link: Option<usize>) -> Result<LinkSurvey, SurveyError> {
        let mut pairs = self.pairs(link, false);
        if pairs.forward.is_empty() && pairs.reverse.is_empty() {
            // Traffic with many repeated packets: the first of each suffices, because most agree on the difference.
            pairs = self.pairs(link, true);
        }
        let Pairs { mut forward, reverse, ingress } = pairs;
        let (egress, number) = (self.egress.packets.len() as u64, link.unwrap_or(0));
        if forward.is_empty() && reverse.is_empty() {
            return Err(SurveyError::NothingInCommon { link: number, ingress, egress });
        }
        let agreeing = agreeing(&mut forward, self.params.max_delay);
        let mut envelope = Envelope::new();
        // In order of time, so that the result does not depend on the order of the hash table.
        let mut inside = agreeing.to_vec();
        inside.sort_unstable_by_key(|pair| (pair.before, pair.after));
        inside.iter().for_each(|pair| envelope.add(pair.before, pair.after));
        let Some(estimate) = envelope.fit() else {
            return Err(SurveyError::OnlyReverse { link: number, reverse: reverse.len() as u64 });
        };
        let below = |pair: &Pair| estimate.clock.offset_at(pair.before).checked_sub(pair.ahead).filter(|&by| by >= 0);
        let transit = reverse.iter().filter_map(below).min().map(|by| Nanos(by as u64));
        Ok(LinkSurvey {
            estimate,
            agreeing: inside.len() as u64,
            disagreeing: (forward.len() - inside.len()) as u64,
            reverse: reverse.len() as u64,
            transit: transit.filter(|transit| *transit <= self.params.max_delay),
            one_in: 1 << self.ingress.halvings,
        })
    }
}

/// Packets of one link, or of all, that were captured on both sides.
struct Pairs {
    forward: Vec<Pair>,
    reverse: Vec<Pair>,
    /// The number of compared packets of the link.
    ingress: u64,
}

/// The pairs that agree on a difference of clocks, to within the longest delay and the drift.
fn agreeing(pairs: &mut [Pair], max_delay: Nanos) -> &[Pair] {
    pairs.sort_unstable_by_key(|pair| (pair.ahead, pair.before));
    let (first, last) = (pairs.iter().map(|pair| pair.before).min(), pairs.iter().map(|pair| pair.before).max());
    let span = last.unwrap_or_default().saturating_sub(first.unwrap_or_default());
    let room = max_delay.0.saturating_add(span.0 / DRIFT);
    let (mut best, mut from) = (0..0, 0);
    for to in 0..pairs.len() {
        while pairs[to].ahead.abs_diff(pairs[from].ahead) > room {
            from += 1;
        }
        if to + 1 - from > best.len() {
            best = from..to + 1;
        }
    }
    &pairs[best]
}

impl Sample {
    fn new(limit: usize) -> Self {
        let packets = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0));
        Self { packets, halvings: 0, limit: limit.max(2) }
    }

    #[inline]
    fn add(&mut self, link: u32, seen: &TapPacket) {
        let Ok(print) = seen.print else { return };
        if !is_in(print.digest, self.halvings) {
            return;
        }
        let new = Sampled { time: seen.time, link, ttl: print.ttl, again: false };
        self.packets.entry(print.digest).and_modify(|known| known.again = true).or_insert(new);
        // A fingerprint of all zeros is in every sample: if it were the only one, thinning would not help.
        if self.packets.len() > self.limit && self.halvings < 63 {
            self.thin(self.halvings + 1);
        }
    }

    fn thin(&mut self, halvings: u32) {
        self.halvings = halvings;
        self.packets.retain(|digest, _| is_in(*digest, halvings));
    }
}

fn is_in(digest: u64, halvings: u32) -> bool {
    digest.trailing_zeros() >= halvings
}
