//! The round trips of one flow: a row of counters for each.

use queuescope_wire::{Departure, Ecn, Nanos};

/// The number of rows that a flow has. Most are of its last round trips; 128 are for drops of packets that arrived after the
/// newest packet that has left.
pub const ROUNDS: usize = 1024;

/// Rows ahead of the newest departure.
const AHEAD: usize = 128;

/// The shortest length of a round, in ns. A shorter round-trip time has several in a round.
const SHORTEST: u64 = 100_000;

/// The length of a round of a flow whose round-trip time is not known, in ns.
const UNKNOWN: u64 = 50_000_000;

/// What arrived at the queue in one round: a round-trip time without queueing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Round {
    /// Packets that arrived and later left the queue.
    pub packets: u32,
    /// Their bytes.
    pub bytes: u32,
    /// The sum of their size times their sojourn time, in bytes times 1024 ns.
    pub waited: f32,
    /// The shortest sojourn time of a packet, in units of 1024 ns.
    pub least_sojourn: u32,
    /// The longest sojourn time of a packet, in units of 1024 ns.
    pub most_sojourn: u32,
    /// Bytes of all flows that left the queue meanwhile.
    pub total: u32,
    /// Packets that were dropped at the queue.
    pub drops: u16,
    /// Packets that left with a mark (CE).
    pub marks: u16,
}

impl Round {
    /// The flow's own mean backlog in the queue, in bytes, by Little's law, in a round of a given length.
    pub fn backlog(&self, length: Nanos) -> f64 {
        f64::from(self.waited) * 1024.0 / length.0.max(1) as f64
    }

    /// The mean sojourn time of a byte, in ns.
    pub fn sojourn(&self) -> f64 {
        f64::from(self.waited) * 1024.0 / f64::from(self.bytes.max(1))
    }
}

/// The last round trips of a flow.
#[derive(Debug, Clone)]
pub struct FlowRounds {
    /// The length of a round, in ns, and whether that is the flow's round-trip time.
    length: u64,
    is_measured: bool,
    /// When round 0 began.
    origin: u64,
    /// A ring: round `n` is at `n % ROUNDS`.
    rows: Box<[Round]>,
    /// The number of the newest round that has a row, and that of the round of the newest departure.
    newest: u64,
    reached: u64,
    /// The row of the last packet, and when its round begins and ends.
    current: usize,
    begins: u64,
    ends: u64,
    /// Bytes of all flows when the round of the newest departure began.
    total_before: u64,
    packets: u64,
    capable: u64,
    l4s: u64,
    missed: u64,
}

impl FlowRounds {
    /// A flow with a round-trip time without queueing of `rtt`, if that is known. Its first round begins at `now`, when `total` bytes
    /// of all flows have left the queue.
    pub(super) fn new(rtt: Option<Nanos>, now: Nanos, total: u64) -> Self {
        let length = rtt.map_or(UNKNOWN, |rtt| rtt.0.max(SHORTEST));
        Self {
            length,
            is_measured: rtt.is_some(),
            origin: now.0,
            rows: vec![Round::default(); ROUNDS].into(),
            newest: 0,
            reached: 0,
            current: 0,
            begins: now.0,
            ends: now.0 + length,
            total_before: total,
            packets: 0,
            capable: 0,
            l4s: 0,
            missed: 0,
        }
    }

    /// Rows of past rounds, such as stored ones.
    pub fn from_rounds(rtt: Option<Nanos>, first: u64, rounds: &[Round], ecn: [u64; 3]) -> Self {
        let mut flow = Self::new(rtt, Nanos::ZERO, 0);
        let kept = rounds.len().min(ROUNDS - AHEAD);
        let skipped = rounds.len() - kept;
        flow.reached = first + rounds.len() as u64;
        flow.newest = flow.reached;
        for (number, round) in (first + skipped as u64..).zip(&rounds[skipped..]) {
            flow.rows[number as usize % ROUNDS] = *round;
        }
        [flow.packets, flow.capable, flow.l4s] = ecn;
        flow
    }

    /// The length of a round.
    pub fn length(&self) -> Nanos {
        Nanos(self.length)
    }

    /// The flow's round-trip time without queueing, if its handshake was seen.
    pub fn rtt(&self) -> Option<Nanos> {
        self.is_measured.then_some(Nanos(self.length))
    }

    /// The rows of the last rounds that are over, oldest first.
    pub fn rounds(&self) -> impl ExactSizeIterator<Item = &Round> + DoubleEndedIterator {
        let count = (self.reached as usize).min(ROUNDS - AHEAD);
        let first = self.reached as usize - count;
        (0..count).map(move |number| &self.rows[(first + number) % ROUNDS])
    }

    /// The number of the first round that [`rounds`](Self::rounds) returns, from 0.
    pub fn first(&self) -> u64 {
        self.reached - self.rounds().len() as u64
    }

    /// The numbers of packets, of those that were ECN-capable, and of those with ECT(1), as L4S has.
    pub fn ecn(&self) -> [u64; 3] {
        [self.packets, self.capable, self.l4s]
    }

    /// Events of rounds that have no row: too old, or too far ahead.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// A packet left the queue; `total` are the bytes of all flows so far.
    #[inline]
    pub(super) fn departed(&mut self, departure: &Departure, total: u64) {
        let arrived = departure.enqueued.0;
        if (arrived < self.begins || arrived >= self.ends) && !self.turn(arrived, total) {
            return;
        }
        let size = departure.packet.size.0;
        let sojourn = clamped(departure.sojourn().0 >> 10);
        let row = &mut self.rows[self.current];
        row.least_sojourn = if row.packets == 0 { sojourn } else { row.least_sojourn.min(sojourn) };
        row.most_sojourn = row.most_sojourn.max(sojourn);
        row.packets += 1;
        row.bytes = row.bytes.saturating_add(clamped(size));
        row.waited += size as f32 * sojourn as f32;
        let ecn = departure.packet.ecn;
        row.marks = row.marks.saturating_add(u16::from(ecn == Ecn::Ce));
        self.packets += 1;
        self.capable += u64::from(ecn.is_capable());
        self.l4s += u64::from(ecn == Ecn::Ect1);
    }

    /// A packet that had arrived at `arrived` was dropped.
    pub(super) fn dropped(&mut self, arrived: Nanos) {
        let Some(number) = self.number(arrived.0) else { return };
        if number > self.reached + AHEAD as u64 - 1 || self.is_gone(number) {
            self.missed += 1;
            return;
        }
        self.clear_to(number);
        let row = &mut self.rows[number as usize % ROUNDS];
        row.drops = row.drops.saturating_add(1);
    }

    /// Moves to the round of a packet that arrived at `arrived`. Returns whether it has a row.
    fn turn(&mut self, arrived: u64, total: u64) -> bool {
        let Some(number) = self.number(arrived) else { return false };
        if self.is_gone(number) {
            self.missed += 1;
            return false;
        }
        if number > self.reached {
            // A drop may have been further ahead.
            self.clear_to(number);
            self.rows[self.reached as usize % ROUNDS].total = clamped(total - self.total_before);
            (self.reached, self.total_before) = (number, total);
        }
        self.current = number as usize % ROUNDS;
        self.begins = self.origin + number * self.length;
        self.ends = self.begins + self.length;
        true
    }

    /// The number of the round that a time is in.
    fn number(&self, at: u64) -> Option<u64> {
        at.checked_sub(self.origin)?.checked_div(self.length)
    }

    fn is_gone(&self, number: u64) -> bool {
        number + (ROUNDS - AHEAD) as u64 <= self.reached
    }

    /// Makes sure that all rounds up to a number have rows.
    fn clear_to(&mut self, number: u64) {
        if number <= self.newest {
            return;
        }
        let first = (self.newest + 1).max((number + 1).saturating_sub(ROUNDS as u64));
        for number in first..=number {
            self.rows[number as usize % ROUNDS] = Round::default();
        }
        self.newest = number;
    }
}

fn clamped(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
