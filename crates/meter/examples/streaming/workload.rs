//! A link with ten bursts a second, with selectable sizes of flows and packets.

use queuescope_wire::{Backlog, ByteCount, Class, Departure, Ecn, FlowId, Nanos, Packet, PacketId, QueueId};
use std::collections::VecDeque;

/// Sizes in bytes, each with the share of flows that are no larger: web search (DCTCP, SIGCOMM 2010).
pub const WEB_SEARCH: &[(f64, f64)] = &[
    (1.0, 0.0),
    (10e3, 0.15),
    (20e3, 0.2),
    (30e3, 0.3),
    (50e3, 0.4),
    (80e3, 0.53),
    (200e3, 0.6),
    (1e6, 0.7),
    (2e6, 0.8),
    (5e6, 0.9),
    (10e6, 0.97),
    (30e6, 1.0),
];

/// The same: data mining (VL2, SIGCOMM 2009).
pub const DATA_MINING: &[(f64, f64)] = &[
    (1.0, 0.0),
    (180.0, 0.1),
    (216.0, 0.2),
    (560.0, 0.3),
    (900.0, 0.4),
    (1100.0, 0.5),
    (1870.0, 0.6),
    (3160.0, 0.7),
    (10e3, 0.8),
    (400e3, 0.9),
    (3.16e6, 0.95),
    (100e6, 0.98),
    (1e9, 1.0),
];

/// The traffic.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    pub name: &'static str,
    /// Bits per second.
    pub rate: f64,
    /// The shortest and the longest burst, in seconds; lengths are uniform on a logarithmic scale.
    pub lengths: (f64, f64),
    pub flows: Mix,
}

#[derive(Debug, Clone, Copy)]
pub enum Mix {
    /// This number of concurrent flows with sizes from the distribution. Each is followed by a new one; rates are by Pareto, and packets come
    /// in trains. A packet has 1514 bytes or, as often, is an acknowledgement of 64.
    Sizes(&'static [(f64, f64)], usize),
    /// This number of flows with rates by Zipf and this exponent; single packets of 64 to 1514 bytes.
    Zipf(usize, f64),
    /// This number of equal flows with packets of 64 bytes.
    Equal(usize),
}

/// The load between bursts.
const CALM: f64 = 0.3;
const BURSTS_PER_SECOND: f64 = 10.0;

/// The stream of departures.
pub struct Stream {
    workload: Workload,
    random: Random,
    calm: Source,
    burst: Source,
    next_burst: f64,
    /// The time until which the burst's flows send, and their load.
    until: f64,
    load: f64,
    now: f64,
    /// The time at which the link is free, in seconds.
    free: f64,
    queued: VecDeque<(Nanos, u64)>,
    backlog: u64,
    id: u64,
    last: u64,
    next_flow: u32,
}

impl Stream {
    pub fn new(workload: Workload, seed: u64) -> Self {
        let mut random = Random(seed);
        let mut next_flow = 0;
        let calm = Source::new(workload.flows, &mut random, &mut next_flow);
        let burst = Source::new(workload.flows, &mut random, &mut next_flow);
        // A permanent burst starts at once.
        let next_burst = if workload.lengths.0 > 1.0 { 0.0 } else { random.exponential(1.0 / BURSTS_PER_SECOND) };
        Self {
            workload,
            random,
            calm,
            burst,
            next_burst,
            until: 0.0,
            load: 0.0,
            now: 0.0,
            free: 0.0,
            queued: VecDeque::new(),
            backlog: 0,
            id: 0,
            last: 0,
            next_flow,
        }
    }

    pub fn next(&mut self) -> Departure {
        if self.now >= self.until && self.now >= self.next_burst {
            let (least, most) = self.workload.lengths;
            let length = least * (most / least).powf(self.random.fraction());
            // Overload, until the queue needs the rest of the time to drain.
            let excess = 0.2 + 1.8 * self.random.fraction();
            self.until = self.now + length / (1.0 + excess / (1.0 - CALM));
            self.load = 1.0 + excess - CALM;
            self.burst = Source::new(self.workload.flows, &mut self.random, &mut self.next_flow);
            self.next_burst += self.random.exponential(1.0 / BURSTS_PER_SECOND);
        }
        let bursting = self.now < self.until;
        let load = if bursting { CALM + self.load } else { CALM };
        let from_burst = bursting && self.random.fraction() * load < self.load;
        let source = if from_burst { &mut self.burst } else { &mut self.calm };
        let (flow, size) = source.packet(&mut self.random, &mut self.next_flow);
        let seconds = |size: u64| size as f64 * 8.0 / self.workload.rate;
        // Even gaps with jitter, so that only bursts cause queues.
        self.now += 2.0 * self.random.fraction() * seconds(size) / load;
        let start = self.free.max(self.now);
        self.free = start + seconds(size);
        let enqueued = Nanos((self.now * 1e9) as u64);
        // Rounded to nanoseconds, in order.
        let dequeued = Nanos(((start * 1e9) as u64).max(self.last).max(enqueued.0));
        self.last = dequeued.0;
        while let Some(&(left, bytes)) = self.queued.front()
            && left < enqueued
        {
            self.queued.pop_front();
            self.backlog -= bytes;
        }
        let backlog_in = Backlog { packets: self.queued.len() as u64, bytes: ByteCount(self.backlog) };
        self.queued.push_back((dequeued, size));
        self.backlog += size;
        self.id += 1;
        let packet = Packet {
            id: PacketId(self.id),
            flow: FlowId(flow),
            size: ByteCount(size),
            class: Class(0),
            ecn: Ecn::default(),
        };
        Departure { packet, queue: QueueId(0), enqueued, dequeued, backlog_in, backlog_out: Backlog::default() }
    }
}

/// The senders of packets.
struct Source {
    mix: Mix,
    active: Vec<(u32, f64)>,
    /// Cumulative sums of the rates.
    sums: Vec<f64>,
    first: u32,
    train: (usize, u32),
}

impl Source {
    fn new(mix: Mix, random: &mut Random, next_flow: &mut u32) -> Self {
        let count = match mix {
            Mix::Sizes(_, flows) | Mix::Zipf(flows, _) | Mix::Equal(flows) => flows,
        };
        let first = *next_flow;
        *next_flow += count as u32;
        let (mut sums, mut sum) = (Vec::with_capacity(count), 0.0);
        let mut active = Vec::with_capacity(count);
        for rank in 0..count {
            sum += match mix {
                Mix::Sizes(..) => random.fraction().max(1e-3).powf(-1.0 / 1.2),
                Mix::Zipf(_, exponent) => (rank as f64 + 1.0).powf(-exponent),
                Mix::Equal(_) => 1.0,
            };
            sums.push(sum);
            if let Mix::Sizes(sizes, _) = mix {
                active.push((first + rank as u32, quantile(sizes, random.fraction())));
            }
        }
        Self { mix, active, sums, first, train: (0, 0) }
    }

    fn packet(&mut self, random: &mut Random, next_flow: &mut u32) -> (u32, u64) {
        if let Mix::Sizes(sizes, _) = self.mix {
            if self.train.1 == 0 {
                self.train = (self.rank(random), 1 + random.below(16) as u32);
            }
            self.train.1 -= 1;
            let (flow, left) = &mut self.active[self.train.0];
            let sender = *flow;
            let size = if random.below(2) == 0 { 64.0 } else { left.clamp(64.0, 1514.0) };
            *left -= size;
            if *left <= 0.0 {
                (*flow, *left) = (*next_flow, quantile(sizes, random.fraction()));
                *next_flow += 1;
                self.train.1 = 0;
            }
            return (sender, size as u64);
        }
        let size = if matches!(self.mix, Mix::Equal(_)) { 64 } else { 64 + random.below(1451) };
        (self.first + self.rank(random) as u32, size)
    }

    fn rank(&self, random: &mut Random) -> usize {
        let point = random.fraction() * self.sums[self.sums.len() - 1];
        self.sums.partition_point(|sum| *sum <= point).min(self.sums.len() - 1)
    }
}

fn quantile(points: &[(f64, f64)], at: f64) -> f64 {
    let next = points.partition_point(|point| point.1 <= at).clamp(1, points.len() - 1);
    let ((low, from), (high, to)) = (points[next - 1], points[next]);
    low + (high - low) * (at - from) / (to - from)
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.fraction()).ln()
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}
