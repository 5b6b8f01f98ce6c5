//! The table of flows: registers that are found by a hash of the flow, as on a switch, or one entry for each flow.

use super::rtt::{RttSource, RttWatch};
use super::{Headers, Nanos, Port, ranks};
use crate::hash_to_queues::{digest, reduce};
use queuescope_sketch::{FlowGroup, QueueGrowth, SendingRate, Ticks};
use queuescope_wire::FlowId;
use std::collections::BTreeMap;

/// Where a program keeps its flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowTable {
    /// Registers that are found by a hash. Two flows with the same hash are one flow to the switch (section III-D).
    Hashed {
        /// Registers; 0 counts as 1.
        entries: u32,
        /// Chooses the hash function.
        seed: u64,
    },
    /// One entry for each flow, without collisions.
    Exact,
}

/// 2^16 registers, as in the paper's section IV-C.
impl Default for FlowTable {
    fn default() -> Self {
        Self::Hashed { entries: 1 << 16, seed: 0 }
    }
}

/// A flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow {
    /// The flow that opened the entry. On a switch, only its hash is known.
    pub flow: FlowId,
    /// The port that its data leaves through.
    pub port: Port,
    /// When its last packet came.
    pub last: Ticks,
    pub group: FlowGroup,
    /// Its queue, counted from the first one of long-lived flows; `None` until it has one in its group.
    pub queue: Option<u16>,
    /// When it was assigned to its group: the number of that assignment on this switch.
    pub assigned: u32,
    pub rate: SendingRate,
    pub growth: QueueGrowth,
    /// Whether it sent more than its share in this round trip, and in the previous one.
    pub is_above: bool,
    pub was_above: bool,
    /// For how many round trips, with this one, it counts that a packet waited longer than the target.
    pub late: u8,
    /// Whether egress has reported such a packet in this round trip.
    pub is_reported: bool,
    pub watch: RttWatch,
    /// It has sent a FIN.
    pub has_ended: bool,
    /// Round trips so far: for [`super::GroupMove`] only.
    pub round: u32,
}

impl Flow {
    /// A report may come behind the last packet of a round trip, so it counts in the next one, too.
    pub const LATE: u8 = 2;

    pub fn new(flow: FlowId, port: Port, group: FlowGroup, rate: SendingRate, now: Ticks) -> Self {
        Self {
            flow,
            port,
            last: now,
            group,
            queue: None,
            assigned: 0,
            rate,
            growth: QueueGrowth::default(),
            is_above: false,
            was_above: false,
            late: 0,
            is_reported: false,
            watch: RttWatch::default(),
            has_ended: false,
            round: 0,
        }
    }
}

impl Flow {
    /// Whether the delay of a packet must be reported to ingress: it is `late`, and the first such packet in the round trip.
    /// `starts` is whether it begins a round trip.
    pub fn reports_delay(&mut self, late: bool, starts: bool) -> bool {
        self.is_reported &= !starts;
        let reports = late && !self.is_reported;
        self.is_reported |= reports;
        reports
    }

    /// Its order by round-trip time in its group.
    #[inline]
    pub fn rank_key(&self) -> u16 {
        ranks::key(Ticks::new(self.rate.rtt().unwrap_or_default()), self.flow)
    }

    /// Measures the round-trip time with a packet at ingress; `ends_handshake` is whether it is the one behind the SYN.
    pub fn measure_rtt(&mut self, source: RttSource, headers: &Headers, ends_handshake: bool, now: Nanos) {
        if ends_handshake && source == RttSource::LessQueueing {
            // The SYN waited here and at the switches behind, this packet at those before.
            let waited = [self.watch.waited, self.watch.waited_behind, headers.queueing];
            let waited = waited.into_iter().map(u64::from).sum();
            self.rate.set_rtt(Nanos(self.rate.rtt().unwrap_or_default().0.saturating_sub(waited)));
        }
        let sample = headers.tcp.and_then(|tcp| self.watch.on_packet(source, &tcp, now));
        self.estimate_rtt(source, sample);
    }

    /// A sample of the round-trip time.
    pub fn estimate_rtt(&mut self, source: RttSource, sample: Option<Nanos>) {
        if let (Some(sample), Some(filter)) = (sample, source.filter())
            && let Some(estimate) = self.rate.rtt()
        {
            self.rate.set_rtt(filter.next(estimate, sample));
        }
    }
}

/// The flows of a switch.
#[derive(Debug)]
pub(super) struct Flows {
    entries: Vec<Option<Flow>>,
    places: Places,
}

/// How entries are found.
#[derive(Debug)]
enum Places {
    Hashed(u64),
    Exact(BTreeMap<FlowId, u32>),
}

impl Flows {
    pub fn new(table: FlowTable) -> Self {
        match table {
            FlowTable::Hashed { entries, seed } => {
                Self { entries: vec![None; entries.max(1) as usize], places: Places::Hashed(seed) }
            }
            FlowTable::Exact => Self { entries: Vec::new(), places: Places::Exact(BTreeMap::new()) },
        }
    }

    pub fn is_hashed(&self) -> bool {
        matches!(self.places, Places::Hashed(_))
    }

    /// The entry of a flow, whether it is in use or not.
    #[inline]
    pub fn slot(&mut self, flow: FlowId) -> u32 {
        match &mut self.places {
            Places::Hashed(seed) => reduce(digest(u64::from(flow.0) ^ *seed), self.entries.len() as u32),
            Places::Exact(places) => *places.entry(flow).or_insert_with(|| {
                self.entries.push(None);
                self.entries.len() as u32 - 1
            }),
        }
    }

    /// The entry of a flow, if it is in use.
    #[inline]
    pub fn find(&self, flow: FlowId) -> Option<u32> {
        let entry = match &self.places {
            Places::Hashed(seed) => reduce(digest(u64::from(flow.0) ^ *seed), self.entries.len() as u32),
            Places::Exact(places) => *places.get(&flow)?,
        };
        self.get(entry).map(|_| entry)
    }

    #[inline]
    pub fn get(&self, entry: u32) -> Option<&Flow> {
        self.entries.get(entry as usize)?.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, entry: u32) -> Option<&mut Flow> {
        self.entries.get_mut(entry as usize)?.as_mut()
    }

    /// An entry that is in use.
    #[inline]
    pub fn at(&self, entry: u32) -> &Flow {
        self.get(entry).expect("the entry is in use")
    }

    /// An entry that is in use.
    #[inline]
    pub fn at_mut(&mut self, entry: u32) -> &mut Flow {
        self.get_mut(entry).expect("the entry is in use")
    }

    pub fn insert(&mut self, entry: u32, flow: Flow) {
        self.entries[entry as usize] = Some(flow);
    }

    pub fn remove(&mut self, entry: u32) -> Option<Flow> {
        self.entries.get_mut(entry as usize)?.take()
    }

    /// The entries in use whose flow is `wanted`.
    pub fn entries(&self, wanted: impl Fn(&Flow) -> bool) -> Vec<u32> {
        let used = self.entries.iter().enumerate();
        used.filter(|(_, flow)| flow.as_ref().is_some_and(&wanted)).map(|(entry, _)| entry as u32).collect()
    }

    /// The flows in use.
    pub fn all(&self) -> impl Iterator<Item = &Flow> {
        self.entries.iter().flatten()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.iter().all(Option::is_none)
    }
}
