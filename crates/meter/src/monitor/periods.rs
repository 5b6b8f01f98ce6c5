//! The busy periods that are remembered, each with the culprits of its worst victim: the longer ago, the longer ones.

use queuescope_sketch::Share;
use queuescope_wire::{ByteCount, Departure, FlowId, Nanos};

/// A time in which the queue was never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyPeriod {
    /// When its first packet came.
    pub start: Nanos,
    /// When its last packet left.
    pub end: Nanos,
    /// Packets that left.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The flow of the packet that waited longest, the first of them.
    pub victim: FlowId,
    /// When that packet came.
    pub victim_came: Nanos,
    /// When it left.
    pub victim_left: Nanos,
    /// What stood in the queue as it came.
    pub victim_met: ByteCount,
    /// When its latest packet came.
    pub(super) last_came: Nanos,
    /// Bytes of each kind of culprits of the victim, and how many of them are kept.
    bytes_of: [u64; KINDS],
    kept: [u32; KINDS],
    /// Where they stand.
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

    /// The longest that a packet waited.
    #[inline]
    pub fn longest_wait(&self) -> Nanos {
        self.victim_left.saturating_sub(self.victim_came)
    }

    /// Whether the queue was not empty because of it.
    pub fn contains(&self, at: Nanos) -> bool {
        self.start <= at && at <= self.end
    }

    /// This packet waited longest so far.
    #[inline]
    pub(super) fn peak(&mut self, departure: &Departure) {
        self.victim = departure.packet.flow;
        (self.victim_came, self.victim_left) = (departure.enqueued, departure.dequeued);
        self.victim_met = departure.backlog_in.bytes;
    }
}

/// Direct, indirect, original.
pub(super) const KINDS: usize = 3;

/// Culprits of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ranked {
    /// The flows with their bytes, largest first.
    pub flows: Vec<Share>,
    /// Bytes of all flows, also of those too small to be kept.
    pub bytes: u64,
}

impl Ranked {
    /// The flows that are at least `alpha` of it, largest first.
    pub fn at_least(&self, alpha: f64) -> impl Iterator<Item = Share> {
        let least = alpha * self.bytes as f64;
        self.flows.iter().copied().take_while(move |share| share.bytes as f64 >= least)
    }
}

/// Past busy periods.
#[derive(Debug)]
pub(super) struct Periods {
    /// In order of time.
    periods: Vec<BusyPeriod>,
    /// Culprits, in the order of their periods and kinds.
    shares: Vec<Kept>,
    /// Room in both.
    most: usize,
    most_shares: usize,
    /// A flow with less than one such part is not kept.
    parts: u64,
}

/// A culprit, in eight bytes.
#[derive(Debug, Clone, Copy)]
struct Kept {
    flow: FlowId,
    bytes: f32,
}

impl Periods {
    /// Room for so many, with so many culprits in all; those with less than one of so many parts are not kept.
    pub fn new(most: usize, shares: usize, parts: u32) -> Self {
        Self {
            periods: Vec::with_capacity(most),
            shares: Vec::with_capacity(shares),
            most,
            most_shares: shares,
            parts: u64::from(parts),
        }
    }

    /// A period is over, and these are the culprits of its worst victim, of each kind.
    pub fn push(&mut self, mut period: BusyPeriod, culprits: &[Ranked; KINDS]) {
        for (kind, ranked) in culprits.iter().enumerate() {
            let large = ranked.flows.iter().take_while(|share| share.bytes.saturating_mul(self.parts) >= ranked.bytes);
            // Estimates may add up to more than all; without a bound there would be no bound on memory.
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
            self.shares.extend(large.map(|share| Kept { flow: share.flow, bytes: share.bytes as f32 }));
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
        self.periods.capacity() * size_of::<BusyPeriod>() + self.shares.capacity() * size_of::<Kept>()
    }

    /// Bytes of so many periods with so many culprits in all.
    pub const fn memory_for(most: usize, shares: usize) -> usize {
        most * size_of::<BusyPeriod>() + shares * size_of::<Kept>()
    }

    /// Forgets the period that is the shortest for its age; whether there was one.
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
