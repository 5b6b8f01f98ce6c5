//! The remembered busy periods, each with the culprits of its worst victim. The older a period, the longer it must be to be kept.

use queuescope_sketch::Share;
use queuescope_wire::{ByteCount, Departure, FlowId, Nanos};

/// A time during which the queue was never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyPeriod {
    /// The arrival of its first packet.
    pub start: Nanos,
    /// The departure of its last packet.
    pub end: Nanos,
    /// Packets that left.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The flow of the packet that waited longest; the first if several are equal.
    pub victim: FlowId,
    /// The arrival of that packet.
    pub victim_came: Nanos,
    /// Its departure.
    pub victim_left: Nanos,
    /// The backlog that it met.
    pub victim_met: ByteCount,
    /// The arrival of the latest packet.
    pub(super) last_came: Nanos,
    /// Bytes of each kind of culprits of the victim, and the number of culprits that are kept.
    bytes_of: [u64; KINDS],
    kept: [u32; KINDS],
    /// The index of its first culprit in `Periods::shares`.
    place: u32,
}

impl BusyPeriod {
    pub(super) fn new(start: Nanos) -> Self {
        Self {
            start,
            end: start,
            packets: 0,
            bytes: 0,
            victim: FlowId(0),
            victim_came: start,
            victim_left: start,
            victim_met: ByteCount(0),
            last_came: start,
            bytes_of: [0; KINDS],
            kept: [0; KINDS],
            place: 0,
        }
    }

    /// The longest sojourn time.
    #[inline]
    pub fn longest_wait(&self) -> Nanos {
        self.victim_left.saturating_sub(self.victim_came)
    }

    /// Whether a time is within the busy period.
    pub fn contains(&self, at: Nanos) -> bool {
        self.start <= at && at <= self.end
    }

    /// Makes this packet the victim, because it waited longest so far.
    #[inline]
    pub(super) fn peak(&mut self, departure: &Departure) {
        self.victim = departure.packet.flow;
        (self.victim_came, self.victim_left) = (departure.enqueued, departure.dequeued);
        self.victim_met = departure.backlog_in.bytes;
    }
}

/// The kinds of culprits: direct, indirect, original.
pub(super) const KINDS: usize = 3;

/// Culprits of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ranked {
    /// The flows with their bytes, largest first.
    pub flows: Vec<Share>,
    /// The bytes of all flows, including those too small to be kept.
    pub bytes: u64,
}

impl Ranked {
    /// The flows with at least the share `alpha` of the bytes, largest first.
    pub fn at_least(&self, alpha: f64) -> impl Iterator<Item = Share> {
        let least = alpha * self.bytes as f64;
        self.flows.iter().copied().take_while(move |share| share.bytes as f64 >= least)
    }
}

/// The past busy periods.
#[derive(Debug)]
pub(super) struct Periods {
    /// The periods in order of time.
    periods: Vec<BusyPeriod>,
    /// The culprits, in the order of their periods and kinds.
    shares: Vec<KeptCulprit>,
    /// The largest lengths of both lists.
    most: usize,
    most_shares: usize,
    /// Flows with less than `1/parts` of the bytes are not kept.
    parts: u64,
}

/// A culprit, in eight bytes.
#[derive(Debug, Clone, Copy)]
struct KeptCulprit {
    flow: FlowId,
    bytes: f32,
}

impl Periods {
    /// Creates room for `most` periods and `shares` culprits in all; culprits with less than `1/parts` of the bytes are not kept.
    pub fn new(most: usize, shares: usize, parts: u32) -> Self {
        Self {
            periods: Vec::with_capacity(most),
            shares: Vec::with_capacity(shares),
            most,
            most_shares: shares,
            parts: u64::from(parts),
        }
    }

    /// Adds a period that is over, with the culprits of its worst victim, of each kind.
    pub fn push(&mut self, mut period: BusyPeriod, culprits: &[Ranked; KINDS]) {
        for (kind, ranked) in culprits.iter().enumerate() {
            let large = ranked.flows.iter().take_while(|share| share.bytes.saturating_mul(self.parts) >= ranked.bytes);
            // Estimates may add up to more than the total; without this limit, memory would not be bounded.
            period.kept[kind] = large.take(self.parts as usize).count() as u32;
            period.bytes_of[kind] = ranked.bytes;
        }
        let needed: usize = period.kept.iter().map(|count| *count as usize).sum();
        while self.periods.len() == self.most || self.shares.len() + needed > self.most_shares {
            if !self.forget_one(period.end) {
                return;
            }
        }
        period.place = self.shares.len() as u32;
        for (ranked, count) in culprits.iter().zip(period.kept) {
            let large = ranked.flows[..count as usize].iter();
            self.shares.extend(large.map(|share| KeptCulprit { flow: share.flow, bytes: share.bytes as f32 }));
        }
        self.periods.push(period);
    }

    pub fn at(&self, at: Nanos) -> Option<&BusyPeriod> {
        let next = self.periods.partition_point(|period| period.start <= at);
        self.periods[..next].last().filter(|period| period.contains(at))
    }

    pub fn culprits(&self, period: &BusyPeriod) -> [Ranked; KINDS] {
        let mut place = period.place as usize;
        std::array::from_fn(|kind| {
            let kept = &self.shares[place..place + period.kept[kind] as usize];
            place += kept.len();
            let flows = kept.iter().map(|kept| Share { flow: kept.flow, bytes: kept.bytes as u64 }).collect();
            Ranked { flows, bytes: period.bytes_of[kind] }
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = &BusyPeriod> {
        self.periods.iter()
    }

    pub fn memory(&self) -> usize {
        self.periods.capacity() * size_of::<BusyPeriod>() + self.shares.capacity() * size_of::<KeptCulprit>()
    }

    /// The memory for this number of periods and of culprits, bytes.
    pub const fn memory_for(most: usize, shares: usize) -> usize {
        most * size_of::<BusyPeriod>() + shares * size_of::<KeptCulprit>()
    }

    /// Forgets the period that is shortest for its age; returns whether there was one.
    fn forget_one(&mut self, now: Nanos) -> bool {
        let length_by_age = |period: &BusyPeriod| {
            let length = period.end.saturating_sub(period.start).0 as f64 + 1.0;
            length / (now.saturating_sub(period.end).0 as f64 + 1.0)
        };
        let ages = self.periods.iter().map(length_by_age).enumerate();
        let Some((place, _)) = ages.min_by(|a, b| a.1.total_cmp(&b.1)) else { return false };
        let gone = self.periods.remove(place);
        let count: u32 = gone.kept.iter().sum();
        let start = gone.place as usize;
        self.shares.drain(start..start + count as usize);
        for period in &mut self.periods[place..] {
            period.place -= count;
        }
        true
    }
}
