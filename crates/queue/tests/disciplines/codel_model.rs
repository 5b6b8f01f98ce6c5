//! A plain model of CoDel: the pseudocode of RFC 8289 section 5, step by step and without regard for speed, with the
//! variants of Linux and ns-3. It knows only sizes and times.

use queuescope_queue::{CodelFlavour, CodelParams};
use std::collections::VecDeque;

/// A packet in the queue. `arrived` is in nanoseconds, `markable` means ECN-capable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueuedPacket {
    pub number: u64,
    pub size: u64,
    pub arrived: u64,
    pub markable: bool,
}

/// What a dequeue does, in order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action {
    Drop(u64),
    Mark(u64),
    Leave(u64),
}

#[derive(Debug)]
pub struct Model {
    params: CodelParams,
    pub queue: VecDeque<QueuedPacket>,
    first_above_time: f64,
    drop_next: f64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    /// The reciprocal square root of the count by Newton's steps, rounded down to 16 fraction bits.
    reciprocal: f64,
}

struct Dodequeue {
    packet: Option<QueuedPacket>,
    ok_to_drop: bool,
}

impl Model {
    pub fn new(params: CodelParams) -> Self {
        Self {
            params,
            queue: VecDeque::new(),
            first_above_time: 0.0,
            drop_next: 0.0,
            count: 0,
            lastcount: 0,
            dropping: false,
            reciprocal: 0.0,
        }
    }

    fn is(&self, flavour: CodelFlavour) -> bool {
        self.params.flavour == flavour
    }

    /// Converts nanoseconds to the flavour's unit: 1024 ns for ns-3, else 1 ns.
    fn units(&self, nanoseconds: u64) -> f64 {
        if self.is(CodelFlavour::Ns3) { (nanoseconds / 1024) as f64 } else { nanoseconds as f64 }
    }

    fn dodequeue(&mut self, at: u64) -> Dodequeue {
        let now = self.units(at);
        let mut result = Dodequeue { packet: self.queue.pop_front(), ok_to_drop: false };
        let Some(packet) = result.packet else {
            self.first_above_time = 0.0;
            return result;
        };
        let bytes: u64 = self.queue.iter().map(|packet| packet.size).sum();
        let short =
            if self.is(CodelFlavour::Ns3) { bytes < self.params.min_bytes.0 } else { bytes <= self.params.min_bytes.0 };
        if self.units(at - packet.arrived) < self.units(self.params.target.0) || short {
            self.first_above_time = 0.0;
        } else if self.first_above_time == 0.0 {
            self.first_above_time = now + self.units(self.params.interval.0);
        } else if self.is(CodelFlavour::Rfc) {
            result.ok_to_drop = now >= self.first_above_time;
        } else {
            result.ok_to_drop = now > self.first_above_time;
        }
        result
    }

    /// All implementations round to whole units.
    fn control_law(&self, time: f64) -> f64 {
        let interval = self.units(self.params.interval.0);
        if self.is(CodelFlavour::Rfc) {
            time + (interval / f64::from(self.count).sqrt()).floor()
        } else {
            time + (interval * self.reciprocal).floor()
        }
    }

    /// One Newton step, x (3 - count x^2) / 2. The result has 16 fraction bits, intermediate values have 32, as in
    /// Linux.
    fn newton(&mut self) {
        let x = self.reciprocal;
        let square = (x * x * 2f64.powi(32)).floor() / 2f64.powi(32);
        self.reciprocal = (x * (3.0 - f64::from(self.count) * square) / 2.0 * 65_536.0).floor() / 65_536.0;
    }

    fn mark(&self, packet: QueuedPacket, actions: &mut Vec<Action>) -> bool {
        let marks = self.params.ecn && packet.markable;
        if marks {
            actions.push(Action::Mark(packet.number));
        }
        marks
    }

    pub fn deque(&mut self, at: u64) -> Vec<Action> {
        let now = self.units(at);
        let mut actions = Vec::new();
        let mut r = self.dodequeue(at);
        let mut marked = false;
        if self.dropping {
            if !r.ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                let packet = r.packet.expect("only a packet can be dropped");
                if self.mark(packet, &mut actions) {
                    self.count += 1;
                    self.newton();
                    let from = if self.is(CodelFlavour::Ns3) { now } else { self.drop_next };
                    self.drop_next = self.control_law(from);
                    marked = true;
                    break;
                }
                actions.push(Action::Drop(packet.number));
                if !self.is(CodelFlavour::Rfc) {
                    self.count += 1;
                    self.newton();
                }
                r = self.dodequeue(at);
                if !r.ok_to_drop {
                    self.dropping = false;
                } else {
                    if self.is(CodelFlavour::Rfc) {
                        self.count += 1;
                    }
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if r.ok_to_drop {
            let packet = r.packet.expect("only a packet can be dropped");
            marked = self.mark(packet, &mut actions);
            if !marked {
                actions.push(Action::Drop(packet.number));
                r = self.dodequeue(at);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            if delta > 1 && now - self.drop_next < 16.0 * self.units(self.params.interval.0) {
                self.count = delta;
                self.newton();
            } else {
                self.count = 1;
                self.reciprocal = 65_535.0 / 65_536.0;
            }
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
        }
        if let Some(packet) = r.packet {
            let threshold = self.params.ce_threshold.map_or(f64::INFINITY, |threshold| self.units(threshold.0));
            if !marked && packet.markable && self.units(at - packet.arrived) > threshold {
                actions.push(Action::Mark(packet.number));
            }
            actions.push(Action::Leave(packet.number));
        }
        actions
    }
}
