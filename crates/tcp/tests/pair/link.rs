//! The pair: both ends, and between them a link that delays, drops, repeats, reorders and marks as it is told.

use crate::pair::reno::Reno;
use queuescope_tcp::congestion::Ns3;
use queuescope_tcp::{CongestionControl, EcnUse, Receiver, Segment, Sender, TcpParams};
use queuescope_wire::{Ecn, Nanos};
use std::collections::BTreeMap;

/// Which way a segment goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Forth,
    Back,
}

/// What becomes of a segment: at most two copies arrive, so much later than the delay says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fate {
    pub lost: bool,
    pub later: u64,
    pub again_after: Option<u64>,
    pub marked: bool,
    /// An ACK's window becomes this.
    pub window: Option<u64>,
}

/// A segment that passed, or did not.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    pub at: Nanos,
    pub way: Way,
    pub segment: Segment,
    pub ecn: Ecn,
}

type Plan = Box<dyn FnMut(Way, u64, &Segment, Nanos) -> Fate>;

pub struct Pair<C: CongestionControl = Reno> {
    pub sender: Sender<C>,
    pub receiver: Receiver,
    pub now: Nanos,
    pub delay: u64,
    /// Nanoseconds that a byte takes, headers of 22 bytes below TCP's included (IPv4 over PPP).
    pub byte_time: u64,
    pub passed: Vec<Passed>,
    plan: Plan,
    busy_until: [u64; 2],
    coming: BTreeMap<(u64, u64), (Way, Segment, Ecn)>,
    count: u64,
    forth: u64,
    back: u64,
}

impl<C: Ns3> Pair<C> {
    /// `plan` says what becomes of the segment with this number (from 0, each way for itself).
    pub fn new(
        params: &TcpParams,
        control: C,
        bytes: Option<u64>,
        plan: impl FnMut(Way, u64, &Segment, Nanos) -> Fate + 'static,
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

    /// Lets leave what may.
    pub fn flush(&mut self) {
        while let Some((segment, ecn)) = self.sender.transmit(self.now) {
            self.pass(Way::Forth, segment, ecn);
        }
        while let Some((segment, ecn)) = self.receiver.transmit(self.now) {
            self.pass(Way::Back, segment, ecn);
        }
    }

    fn pass(&mut self, way: Way, mut segment: Segment, mut ecn: Ecn) {
        let number = match way {
            Way::Forth => &mut self.forth,
            Way::Back => &mut self.back,
        };
        let fate = (self.plan)(way, *number, &segment, self.now);
        *number += 1;
        self.passed.push(Passed { at: self.now, way, segment, ecn });
        let busy_until = &mut self.busy_until[usize::from(way == Way::Back)];
        let size = segment.length + segment.header_bytes() + 22;
        *busy_until = (*busy_until).max(self.now.0) + self.byte_time * u64::from(size);
        let at = *busy_until + self.delay + fate.later;
        if fate.lost {
            return;
        }
        if let (Some(window), Way::Back) = (fate.window, way) {
            segment.window = window;
        }
        if fate.marked && ecn.is_capable() {
            ecn = Ecn::Ce;
        }
        for copy in [Some(at), fate.again_after.map(|after| at + after)].into_iter().flatten() {
            self.count += 1;
            self.coming.insert((copy, self.count), (way, segment, ecn));
        }
    }

    /// The time of what happens next.
    pub fn next(&self) -> Option<Nanos> {
        let arrival = self.coming.keys().next().map(|&(at, _)| Nanos(at));
        [arrival, self.sender.next_timer(), self.receiver.next_timer()].into_iter().flatten().min()
    }

    /// Goes to what happens next; false if nothing will.
    pub fn step(&mut self) -> bool {
        let Some(next) = self.next() else { return false };
        assert!(next >= self.now, "a timer in the past: {next:?} at {:?}", self.now);
        self.now = next;
        if let Some(entry) = self.coming.first_entry()
            && entry.key().0 == next.0
        {
            let (way, segment, ecn) = entry.remove();
            match way {
                Way::Forth => self.receiver.receive(&segment, ecn, next),
                Way::Back => self.sender.receive(&segment, ecn, next),
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

    /// Until then, or until nothing happens any more.
    pub fn run_until(&mut self, end: Nanos) {
        while self.next().is_some_and(|next| next <= end) {
            self.step();
        }
        self.now = self.now.max(end);
    }

    /// Until both ends are done; false if that is not so by `limit`.
    pub fn finish(&mut self, limit: Nanos) -> bool {
        while !(self.sender.is_done() && self.receiver.is_done()) {
            if self.next().is_none_or(|next| next > limit) {
                return false;
            }
            self.step();
        }
        true
    }

    /// Times in milliseconds and numbers of the data that left, in order.
    pub fn data(&self) -> Vec<(f64, u64)> {
        let forth = self.passed.iter().filter(|passed| passed.way == Way::Forth && passed.segment.length > 0);
        forth.map(|passed| (passed.at.0 as f64 / 1e6, passed.segment.seq)).collect()
    }
}
