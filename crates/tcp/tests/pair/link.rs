//! The pair: both ends, and between them a link that delays, drops, repeats, reorders and marks as the test plans.

use crate::pair::reno::Reno;
use queuescope_tcp::congestion::Ns3;
use queuescope_tcp::{CongestionControl, EcnUse, Receiver, Segment, Sender, TcpParams};
use queuescope_wire::{Ecn, Nanos};
use std::collections::BTreeMap;

/// Which direction a segment goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Forth,
    Back,
}

/// What happens to a segment: at most two copies arrive, `later` and `again_after` nanoseconds after the link's delay.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fate {
    pub lost: bool,
    pub later: u64,
    pub again_after: Option<u64>,
    pub marked: bool,
    /// Replaces an ACK's window.
    pub window: Option<u64>,
}

/// A segment that entered the link, whether or not it arrived.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    pub at: Nanos,
    pub direction: Direction,
    pub segment: Segment,
    pub ecn: Ecn,
}

type Plan = Box<dyn FnMut(Direction, u64, &Segment, Nanos) -> Fate>;

pub struct Pair<C: CongestionControl = Reno> {
    pub sender: Sender<C>,
    pub receiver: Receiver,
    pub now: Nanos,
    pub delay: u64,
    /// Nanoseconds per byte, including 22 bytes of headers below TCP's (IPv4 over PPP).
    pub byte_time: u64,
    pub passed: Vec<Passed>,
    plan: Plan,
    busy_until: [u64; 2],
    coming: BTreeMap<(u64, u64), (Direction, Segment, Ecn)>,
    count: u64,
    forth: u64,
    back: u64,
}

impl<C: Ns3> Pair<C> {
    /// `plan` decides what happens to each segment by its number (from 0, counted in each direction).
    pub fn new(
        params: &TcpParams,
        control: C,
        bytes: Option<u64>,
        plan: impl FnMut(Direction, u64, &Segment, Nanos) -> Fate + 'static,
    ) -> Self {
        let ecn_use: EcnUse = control.ecn();
        Self {
            sender: Sender::new(params, control, bytes).following_ns3(),
            receiver: Receiver::new(params, ecn_use),
            now: Nanos::ZERO,
            delay: 10_000_000,
            byte_time: 0,
            passed: Vec::new(),
            plan: Box::new(plan),
            busy_until: [0; 2],
            coming: BTreeMap::new(),
            count: 0,
            forth: 0,
            back: 0,
        }
    }

    pub fn connect(&mut self) {
        self.sender.connect(self.now);
        self.flush();
    }

    /// Sends everything that may be sent.
    pub fn flush(&mut self) {
        while let Some((segment, ecn)) = self.sender.transmit(self.now) {
            self.pass(Direction::Forth, segment, ecn);
        }
        while let Some((segment, ecn)) = self.receiver.transmit(self.now) {
            self.pass(Direction::Back, segment, ecn);
        }
    }

    fn pass(&mut self, direction: Direction, mut segment: Segment, mut ecn: Ecn) {
        let number = match direction {
            Direction::Forth => &mut self.forth,
            Direction::Back => &mut self.back,
        };
        let fate = (self.plan)(direction, *number, &segment, self.now);
        *number += 1;
        self.passed.push(Passed { at: self.now, direction, segment, ecn });
        let busy_until = &mut self.busy_until[usize::from(direction == Direction::Back)];
        let size = segment.length + segment.header_bytes() + 22;
        *busy_until = (*busy_until).max(self.now.0) + self.byte_time * u64::from(size);
        let at = *busy_until + self.delay + fate.later;
        if fate.lost {
            return;
        }
        if let (Some(window), Direction::Back) = (fate.window, direction) {
            segment.window = window;
        }
        if fate.marked && ecn.is_capable() {
            ecn = Ecn::Ce;
        }
        for copy in [Some(at), fate.again_after.map(|after| at + after)].into_iter().flatten() {
            self.count += 1;
            self.coming.insert((copy, self.count), (direction, segment, ecn));
        }
    }

    /// The time of the next event.
    pub fn next(&self) -> Option<Nanos> {
        let arrival = self.coming.keys().next().map(|&(at, _)| Nanos(at));
        [arrival, self.sender.next_timer(), self.receiver.next_timer()].into_iter().flatten().min()
    }

    /// Advances to the next event; false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(next) = self.next() else { return false };
        assert!(next >= self.now, "a timer in the past: {next:?} at {:?}", self.now);
        self.now = next;
        if let Some(entry) = self.coming.first_entry()
            && entry.key().0 == next.0
        {
            let (direction, segment, ecn) = entry.remove();
            match direction {
                Direction::Forth => self.receiver.receive(&segment, ecn, next),
                Direction::Back => self.sender.receive(&segment, ecn, next),
            }
        } else {
            if self.sender.next_timer().is_some_and(|at| at <= next) {
                self.sender.on_timer(next);
            }
            if self.receiver.next_timer().is_some_and(|at| at <= next) {
                self.receiver.on_timer(next);
            }
        }
        self.flush();
        true
    }

    /// Runs until `end`, or until nothing more happens.
    pub fn run_until(&mut self, end: Nanos) {
        while self.next().is_some_and(|next| next <= end) {
            self.step();
        }
        self.now = self.now.max(end);
    }

    /// Runs until both ends are done; false if they are not by `limit`.
    pub fn finish(&mut self, limit: Nanos) -> bool {
        while !(self.sender.is_done() && self.receiver.is_done()) {
            if self.next().is_none_or(|next| next > limit) {
                return false;
            }
            self.step();
        }
        true
    }

    /// Times in milliseconds and numbers of the data segments that were sent, in order.
    pub fn data(&self) -> Vec<(f64, u64)> {
        let forth =
            self.passed.iter().filter(|passed| passed.direction == Direction::Forth && passed.segment.length > 0);
        forth.map(|passed| (passed.at.0 as f64 / 1e6, passed.segment.seq)).collect()
    }
}
