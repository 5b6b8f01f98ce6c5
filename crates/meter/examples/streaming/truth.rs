//! The true culprits of some victims of each burst, from a plain log of the current busy period.

use crate::ALPHA;
use crate::workload::Random;
use queuescope_wire::{Departure, FlowId, Nanos};
use std::collections::BTreeMap;
use std::fmt;

/// A busy period in which a packet waited long.
pub struct Burst {
    pub start: Nanos,
    pub end: Nanos,
    /// The packet that waited longest, and others.
    pub victims: Vec<Victim>,
}

/// A packet and its true culprits of at least [`ALPHA`].
pub struct Victim {
    pub came: Nanos,
    pub left: Nanos,
    pub direct: Vec<FlowId>,
    pub indirect: Vec<FlowId>,
    pub original: Vec<FlowId>,
}

pub struct TrueBursts {
    pub bursts: Vec<Burst>,
    pub count: usize,
    tau: Nanos,
    log: Vec<Departure>,
    random: Random,
}

impl TrueBursts {
    pub fn new(tau: Nanos) -> Self {
        Self { bursts: Vec::new(), count: 0, tau, log: Vec::new(), random: Random(3) }
    }

    pub fn departed(&mut self, departure: &Departure) {
        if self.log.last().is_some_and(|last| departure.enqueued > last.dequeued) {
            self.close();
        }
        self.log.push(*departure);
    }

    /// Forgets bursts that ended before this time.
    pub fn forget(&mut self, before: Nanos) {
        self.bursts.retain(|burst| burst.end >= before);
    }

    fn close(&mut self) {
        // The first of several that waited longest.
        let worst = (0..self.log.len()).rev().max_by_key(|place| self.log[*place].sojourn()).unwrap_or(0);
        if self.log[worst].sojourn() >= self.tau {
            let mut places = vec![worst];
            places.extend((0..2).map(|_| self.random.below(self.log.len() as u64) as usize));
            let (start, end) = (self.log[0].enqueued, self.log[self.log.len() - 1].dequeued);
            let victims = places.into_iter().map(|place| self.victim(place)).collect();
            self.bursts.push(Burst { start, end, victims });
            self.count += 1;
        }
        self.log.clear();
    }

    fn victim(&self, place: usize) -> Victim {
        let (came, left) = (self.log[place].enqueued, self.log[place].dequeued);
        let first = self.log.partition_point(|departure| departure.dequeued < came);
        let end = self.log.partition_point(|departure| departure.dequeued < left);
        let bytes = |log: &[Departure]| large(log.iter().map(|d| (d.packet.flow, d.packet.size.0)));
        // The stack of the backlog, packet by packet.
        let mut stack: Vec<(FlowId, u64)> = Vec::new();
        let mut depth = 0;
        let sink = |stack: &mut Vec<(FlowId, u64)>, depth: &mut u64, to: u64| {
            while *depth > to
                && let Some((flow, bytes)) = stack.pop()
            {
                *depth -= bytes;
                if *depth < to {
                    stack.push((flow, to - *depth));
                    *depth = to;
                }
            }
        };
        for departure in &self.log[..place] {
            sink(&mut stack, &mut depth, departure.backlog_in.bytes.0);
            stack.push((departure.packet.flow, departure.packet.size.0));
            depth += departure.packet.size.0;
        }
        sink(&mut stack, &mut depth, self.log[place].backlog_in.bytes.0);
        Victim {
            came,
            left,
            direct: bytes(&self.log[first..end]),
            indirect: bytes(&self.log[..first]),
            original: large(stack.into_iter()),
        }
    }
}

/// The flows that have at least [`ALPHA`] of the total.
fn large(items: impl Iterator<Item = (FlowId, u64)>) -> Vec<FlowId> {
    let (mut sums, mut total) = (BTreeMap::new(), 0);
    for (flow, bytes) in items {
        *sums.entry(flow).or_insert(0u64) += bytes;
        total += bytes;
    }
    sums.into_iter().filter(|(_, bytes)| *bytes as f64 >= ALPHA * total as f64).map(|(flow, _)| flow).collect()
}

/// The numbers of flows found rightly, found wrongly, and missed.
#[derive(Default, Clone)]
pub struct Hits {
    right: u64,
    wrong: u64,
    missed: u64,
}

impl Hits {
    pub fn count(&mut self, found: &[FlowId], truth: &[FlowId]) {
        let right = found.iter().filter(|flow| truth.contains(flow)).count() as u64;
        self.right += right;
        self.wrong += found.len() as u64 - right;
        self.missed += truth.len() as u64 - right;
    }

    pub fn add(&mut self, other: &Self) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.missed += other.missed;
    }
}

/// Precision and recall in percent, and the number of true culprits.
impl fmt::Display for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |of: u64| 100.0 * self.right as f64 / of.max(1) as f64;
        write!(
            f,
            "{:5.1} {:5.1} {:>5}",
            part(self.right + self.wrong),
            part(self.right + self.missed),
            self.right + self.missed
        )
    }
}
