//! Plain models of RFC 8033's pseudocode and of ns-3.37: seconds as floating point, one step after the other, without
//! regard for speed. Their random numbers are the same as the discipline's.

use queuescope_wire::{Ecn, Nanos};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use std::collections::VecDeque;

/// The fate of a packet at enqueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Enqueued,
    Marked,
    Early,
    Overlimit,
}

pub struct UniformRandom(Pcg64Mcg);

impl UniformRandom {
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    fn draw(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn seconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e9
}

fn autotuned(p: f64, drop_prob: f64) -> f64 {
    if drop_prob < 0.000001 {
        p / 2048.0
    } else if drop_prob < 0.00001 {
        p / 512.0
    } else if drop_prob < 0.0001 {
        p / 128.0
    } else if drop_prob < 0.001 {
        p / 32.0
    } else if drop_prob < 0.01 {
        p / 8.0
    } else if drop_prob < 0.1 {
        p / 2.0
    } else {
        p
    }
}

/// Appendix A. It is updated every 15 ms from the first packet on.
pub struct AppendixA {
    queue: VecDeque<(u64, Nanos)>,
    drop_prob: f64,
    burst_allowance: Nanos,
    current_qdelay: Nanos,
    qdelay_old: Nanos,
    random: UniformRandom,
}

const QDELAY_REF: f64 = 0.015;
const T_UPDATE: Nanos = Nanos(15_000_000);
const MAX_BURST: Nanos = Nanos(150_000_000);

impl AppendixA {
    pub fn new(seed: u64) -> Self {
        Self {
            queue: VecDeque::new(),
            drop_prob: 0.0,
            burst_allowance: MAX_BURST,
            current_qdelay: Nanos(0),
            qdelay_old: Nanos(0),
            random: UniformRandom::new(seed),
        }
    }

    pub fn drop_prob(&self) -> f64 {
        self.drop_prob
    }

    pub fn enque(&mut self, size: u64, now: Nanos) -> Fate {
        if self.drop_prob == 0.0
            && seconds(self.current_qdelay) < QDELAY_REF / 2.0
            && seconds(self.qdelay_old) < QDELAY_REF / 2.0
        {
            self.burst_allowance = MAX_BURST;
        }
        if self.burst_allowance == Nanos(0) && self.drop_early() {
            return Fate::Early;
        }
        self.queue.push_back((size, now));
        Fate::Enqueued
    }

    fn drop_early(&mut self) -> bool {
        let length: u64 = self.queue.iter().map(|(size, _)| size).sum();
        if (seconds(self.qdelay_old) < QDELAY_REF / 2.0 && self.drop_prob < 0.2) || length <= 2000 {
            return false;
        }
        self.random.draw() < self.drop_prob
    }

    pub fn deque(&mut self, now: Nanos) -> bool {
        let Some((_, since)) = self.queue.pop_front() else { return false };
        self.current_qdelay = now - since;
        true
    }

    pub fn calculate_drop_prob(&mut self) {
        let (delay, old) = (seconds(self.current_qdelay), seconds(self.qdelay_old));
        let p = 0.125 * (delay - QDELAY_REF) + 1.25 * (delay - old);
        self.drop_prob += autotuned(p, self.drop_prob);
        if delay == 0.0 && old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = self.burst_allowance.saturating_sub(T_UPDATE);
    }
}

/// Appendix B with the choices that the discipline states: no drop decision during a burst, marked packets are
/// enqueued, marks reset the accumulated probability, and PIE becomes inactive by section 5.3's calm once less than a
/// third of the limit is used and the delay is known.
pub struct AppendixB {
    queue: VecDeque<(u64, Nanos)>,
    tail_drop: u64,
    active: bool,
    updated: bool,
    drop_prob: f64,
    accu_prob: f64,
    burst_allowance: Nanos,
    current_qdelay: Nanos,
    qdelay_old: Nanos,
    in_measurement: bool,
    measurement_start: Nanos,
    dq_count: u64,
    avg_dq_time: f64,
    random: UniformRandom,
}

const DQ_THRESHOLD: u64 = 16_384;

impl AppendixB {
    pub fn new(tail_drop: u64, seed: u64) -> Self {
        Self {
            queue: VecDeque::new(),
            tail_drop,
            active: false,
            updated: true,
            drop_prob: 0.0,
            accu_prob: 0.0,
            burst_allowance: MAX_BURST,
            current_qdelay: Nanos(0),
            qdelay_old: Nanos(0),
            in_measurement: false,
            measurement_start: Nanos(0),
            dq_count: 0,
            avg_dq_time: 0.0,
            random: UniformRandom::new(seed),
        }
    }

    pub fn drop_prob(&self) -> f64 {
        self.drop_prob
    }

    pub fn active(&self) -> bool {
        self.active
    }

    fn byte_length(&self) -> u64 {
        self.queue.iter().map(|(size, _)| size).sum()
    }

    fn calm(&self) -> bool {
        self.drop_prob == 0.0
            && seconds(self.current_qdelay) < QDELAY_REF / 2.0
            && seconds(self.qdelay_old) < QDELAY_REF / 2.0
    }

    pub fn enque(&mut self, size: u64, ecn: Ecn, now: Nanos) -> Fate {
        if self.calm() {
            self.burst_allowance = MAX_BURST;
        }
        let fate = if self.byte_length() + size > self.tail_drop {
            self.accu_prob = 0.0;
            Fate::Overlimit
        } else if self.active && self.burst_allowance == Nanos(0) && self.drop_early() {
            self.accu_prob = 0.0;
            if self.drop_prob < 0.1 && ecn != Ecn::NotEct { Fate::Marked } else { Fate::Early }
        } else {
            Fate::Enqueued
        };
        if matches!(fate, Fate::Enqueued | Fate::Marked) {
            self.queue.push_back((size, now));
        }
        let full = self.byte_length() * 3 >= self.tail_drop;
        if full && !self.active {
            self.active = true;
            self.updated = false;
            self.qdelay_old = Nanos(0);
            self.drop_prob = 0.0;
            self.in_measurement = true;
            self.dq_count = 0;
            self.avg_dq_time = 0.0;
            self.burst_allowance = MAX_BURST;
            self.accu_prob = 0.0;
            self.measurement_start = now;
        }
        if self.active && !full && self.updated && self.avg_dq_time > 0.0 && self.calm() {
            self.active = false;
            self.in_measurement = false;
        }
        fate
    }

    fn drop_early(&mut self) -> bool {
        if (seconds(self.qdelay_old) < QDELAY_REF / 2.0 && self.drop_prob < 0.2) || self.byte_length() <= 2000 {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob >= 8.5 {
            return true;
        }
        self.random.draw() < self.drop_prob
    }

    pub fn calculate_drop_prob(&mut self) {
        if !self.active {
            return;
        }
        self.updated = true;
        let time = self.byte_length() as f64 * self.avg_dq_time / DQ_THRESHOLD as f64;
        self.current_qdelay = Nanos(time as u64);
        let (delay, old) = (seconds(self.current_qdelay), seconds(self.qdelay_old));
        let mut p = autotuned(0.125 * (delay - QDELAY_REF) + 1.25 * (delay - old), self.drop_prob);
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if delay < QDELAY_REF / 2.0 && old < QDELAY_REF / 2.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = self.burst_allowance.saturating_sub(T_UPDATE);
    }

    pub fn deque(&mut self, now: Nanos) -> bool {
        let Some((size, _)) = self.queue.pop_front() else { return false };
        if self.in_measurement {
            self.dq_count += size;
            if self.dq_count >= DQ_THRESHOLD {
                let dq_time = (now - self.measurement_start).0 as f64;
                if self.avg_dq_time == 0.0 {
                    self.avg_dq_time = dq_time;
                } else {
                    let weight = DQ_THRESHOLD as f64 / 65_536.0;
                    self.avg_dq_time = dq_time * weight + self.avg_dq_time * (1.0 - weight);
                }
                self.in_measurement = false;
            }
        }
        if self.byte_length() >= DQ_THRESHOLD && !self.in_measurement {
            self.in_measurement = true;
            self.measurement_start = now;
            self.dq_count = 0;
        }
        true
    }
}

/// ns-3.37's queue disc with its defaults and a limit in packets. Updates are at multiples of 15 ms. A burst allowance
/// starts with a packet and again after 1.5 s of calm; the probability is 0 meanwhile.
pub struct Ns3 {
    queue: VecDeque<(u64, Nanos)>,
    limit: usize,
    p: f64,
    delay: Nanos,
    old: Nanos,
    allowance: Nanos,
    /// The state of the burst allowance. 0: the next packet starts it; 1: it is running; 2: it is over.
    burst: u8,
    calm_updates: u64,
    random: UniformRandom,
}

impl Ns3 {
    pub fn new(limit: usize, seed: u64) -> Self {
        Self {
            queue: VecDeque::new(),
            limit,
            p: 0.0,
            delay: Nanos(0),
            old: Nanos(0),
            allowance: Nanos(0),
            burst: 0,
            calm_updates: 0,
            random: UniformRandom::new(seed),
        }
    }

    pub fn drop_prob(&self) -> f64 {
        self.p
    }

    pub fn enque(&mut self, size: u64, now: Nanos) -> Fate {
        if self.queue.len() + 1 > self.limit {
            return Fate::Overlimit;
        }
        if self.drop_early() {
            return Fate::Early;
        }
        self.queue.push_back((size, now));
        Fate::Enqueued
    }

    fn drop_early(&mut self) -> bool {
        if self.allowance > Nanos(0) {
            return false;
        }
        if self.burst == 0 {
            self.burst = 1;
            self.allowance = MAX_BURST;
        }
        if seconds(self.old) < 0.5 * QDELAY_REF && self.p < 0.2 || self.queue.len() <= 2 {
            return false;
        }
        self.random.draw() < self.p
    }

    pub fn deque(&mut self, now: Nanos) -> bool {
        let Some((_, since)) = self.queue.pop_front() else { return false };
        self.delay = if self.queue.is_empty() { Nanos(0) } else { now - since };
        true
    }

    pub fn calculate(&mut self) {
        let (delay, old) = (seconds(self.delay), seconds(self.old));
        let mut p = 0.0;
        if self.allowance > Nanos(0) {
            self.p = 0.0;
        } else {
            p = autotuned(0.125 * (delay - QDELAY_REF) + 1.25 * (delay - old), self.p);
            if self.p >= 0.1 && p > 0.02 {
                p = 0.02;
            }
        }
        p += self.p;
        if delay == 0.0 && old == 0.0 {
            p *= 0.98;
        }
        self.p = p.clamp(0.0, 1.0);
        self.allowance = self.allowance.saturating_sub(T_UPDATE);
        let low = delay < 0.5 * QDELAY_REF && old < 0.5 * QDELAY_REF && self.p == 0.0;
        if low && self.allowance == Nanos(0) {
            if self.burst == 1 {
                self.burst = 2;
                self.calm_updates = 0;
            } else if self.burst == 2 {
                self.calm_updates += 1;
                if self.calm_updates > 100 {
                    self.calm_updates = 0;
                    self.burst = 0;
                }
            }
        } else if self.burst == 2 {
            self.calm_updates = 0;
        }
        self.old = self.delay;
    }
}
