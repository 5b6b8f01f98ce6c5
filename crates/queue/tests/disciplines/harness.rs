//! Drives a discipline, and checks each departure, drop, mark and counter against the packets that it enqueued.

use queuescope_queue::{
    AnyDiscipline, Checked, Discipline, DisciplineParams, DropReason, Dropped, Limit, MarkReason, Outlet, Sink,
};
use queuescope_wire::{Backlog, ByteCount, Class, Departure, Ecn, FlowId, Nanos, Packet, PacketId, QueueId, Rate};
use std::collections::BTreeMap;

/// The rate of the link in paced runs: 1 Mb/s.
pub fn rate() -> Rate {
    Rate::from_bits_per_second(1_000_000).unwrap()
}

/// The parameters of a discipline to drive, and the reasons for drops and marks that a long run must show.
#[derive(Debug)]
pub struct Contestant {
    params: DisciplineParams,
    limit: Limit,
    drops: Vec<DropReason>,
    marks: Vec<MarkReason>,
}

impl Contestant {
    /// `limit` is the limit that the parameters set for the whole discipline.
    pub fn new(params: DisciplineParams, limit: Limit) -> Self {
        Self { params, limit, drops: Vec::new(), marks: Vec::new() }
    }

    /// Expects drops for these reasons in a long run.
    pub fn drops(self, drops: &[DropReason]) -> Self {
        Self { drops: drops.to_vec(), ..self }
    }

    /// Expects marks for these reasons in a long run.
    pub fn marks(self, marks: &[MarkReason]) -> Self {
        Self { marks: marks.to_vec(), ..self }
    }

    pub fn name(&self) -> String {
        format!("{:?}", self.params)
    }
}

/// One step of a run: after `gap` a packet (flow, size) arrives. `None`: without pacing, a dequeue.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub gap: Nanos,
    pub packet: Option<(u32, u64)>,
}

/// About 30 s of arrivals at 1.5 times the rate of the link.
pub fn long_run() -> Vec<Step> {
    let mut bits = 1u64;
    let mut random = |below: u64| {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (bits >> 33) % below
    };
    // Eight flows. The last one sends about five times as much as each of the others.
    let flow = |random: u64| (random % 12).min(7) as u32;
    (0..4000)
        .map(|_| Step { gap: Nanos(random(15_400_000)), packet: Some((flow(random(1 << 20)), 40 + random(2800))) })
        .collect()
}

/// The departures, and the number of drops and marks by reason.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    pub left: Vec<Departure>,
    pub drops: BTreeMap<DropReason, u64>,
    pub marks: BTreeMap<MarkReason, u64>,
}

impl Outcome {
    /// The expected reasons that did not occur.
    pub fn missing(&self, contestant: &Contestant) -> Vec<String> {
        let drops = contestant.drops.iter().filter(|&reason| !self.drops.contains_key(reason));
        let marks = contestant.marks.iter().filter(|&reason| !self.marks.contains_key(reason));
        let drops = drops.map(|reason| format!("no drop: {}", reason.name()));
        drops.chain(marks.map(|reason| format!("no mark: {}", reason.name()))).collect()
    }
}

/// Checks the contract of [`Discipline`] at each step. Runs the steps twice; both runs must give the same result.
pub fn check_contract(contestant: &Contestant, steps: &[Step], paced: bool, seed: u64) -> Outcome {
    let outcome = run(contestant, steps, paced, seed);
    assert_eq!(outcome, run(contestant, steps, paced, seed), "the same seed gives the same result");
    outcome
}

fn run(contestant: &Contestant, steps: &[Step], paced: bool, seed: u64) -> Outcome {
    let outlet = Outlet { overhead: 0, rate: rate(), queue: QueueId(100), seed };
    let discipline = Checked::new(contestant.params.build(outlet));
    let mut driver = Driver {
        ids: 100..100 + discipline.queues(),
        discipline,
        records: Records::default(),
        limit: contestant.limit,
        link_free: Nanos::ZERO,
    };
    let mut now = Nanos::ZERO;
    for step in steps {
        let until = now + step.gap;
        if paced {
            driver.serve_until(until);
        }
        now = until;
        driver.timers_until(now);
        match step.packet {
            Some((flow, size)) => driver.enqueue(flow, size, now),
            None if !paced => _ = driver.dequeue(now),
            None => {}
        }
    }
    // Empty the queue.
    while driver.dequeue(now).is_some() {
        now = now + Nanos(1_000_000);
        driver.timers_until(now);
    }
    driver.finish()
}

/// A discipline, and the records to check it against.
struct Driver {
    discipline: Checked<AnyDiscipline>,
    ids: std::ops::Range<u16>,
    records: Records,
    limit: Limit,
    link_free: Nanos,
}

impl Driver {
    /// Each flow has one class and one codepoint. So its packets keep their order, even if these select the queue.
    fn enqueue(&mut self, flow: u32, size: u64, now: Nanos) {
        let id = self.records.offered.len() as u64;
        let class = Class((flow / 4) as u8);
        let ecn = Ecn::from_bits(flow as u8);
        let packet = Packet { id: PacketId(id), flow: FlowId(flow), size: ByteCount(size), class, ecn };
        self.records.now = now;
        self.records.arriving = true;
        self.records.offered.push(Offered { packet, at: now, backlog: self.discipline.backlog(), fate: Fate::Queued });
        self.records.backlog.packets += 1;
        self.records.backlog.bytes += packet.size;
        self.discipline.enqueue(packet, now, &mut self.records);
        self.records.arriving = false;
        self.check_backlog();
    }

    fn dequeue(&mut self, now: Nanos) -> Option<Departure> {
        self.records.now = now;
        let left = self.discipline.dequeue(now, &mut self.records);
        match &left {
            Some(left) => {
                assert_eq!(left.dequeued, now);
                assert!(self.ids.contains(&left.queue.0), "{left:?} of {:?}", self.ids);
                self.records.leave(left);
                assert_eq!(left.backlog_out, self.discipline.backlog(), "{left:?}");
            }
            None => assert_eq!(self.discipline.backlog().packets, 0, "a dequeue returns a packet while there is one"),
        }
        self.check_backlog();
        left
    }

    /// The link dequeues whenever it is free.
    fn serve_until(&mut self, until: Nanos) {
        while self.link_free < until {
            self.timers_until(self.link_free);
            match self.dequeue(self.link_free) {
                Some(left) => self.link_free = self.link_free + rate().time_for(left.packet.size),
                None => self.link_free = until,
            }
        }
    }

    fn timers_until(&mut self, until: Nanos) {
        while let Some(due) = self.discipline.next_timer().filter(|&due| due <= until) {
            self.discipline.on_timer(due);
            assert!(self.discipline.next_timer().is_none_or(|next| next > due), "each call moves the timer on");
            self.check_backlog();
        }
    }

    fn check_backlog(&self) {
        let backlog = self.discipline.backlog();
        assert_eq!(backlog, self.records.backlog, "the backlog is the packets that have not left");
        let largest = rate().time_for(ByteCount(3000));
        let held = match self.limit {
            Limit::None => true,
            Limit::Packets(most) => backlog.packets <= most,
            Limit::Bytes(most) => backlog.bytes <= most,
            Limit::Time(most) => rate().time_for(backlog.bytes) <= most + largest,
        };
        assert!(held, "{backlog:?} is above {:?}", self.limit);
    }

    /// Checks that no packet is lost, and that the discipline's counters agree.
    fn finish(self) -> Outcome {
        let Self { discipline, records, .. } = self;
        let dropped: u64 = records.outcome.drops.values().sum();
        let offered = records.offered.len() as u64;
        assert_eq!(discipline.backlog(), Backlog::default());
        assert_eq!(offered, records.outcome.left.len() as u64 + dropped);
        assert!(records.offered.iter().all(|offered| offered.fate == Fate::Gone));
        // If there are several counters for departures or for a reason, the reason is a prefix of their names.
        let stats = discipline.counters();
        let counted = |name: &str| -> u64 {
            stats.iter().filter(|(counter, _)| counter.starts_with(name)).map(|&(_, count)| count).sum()
        };
        assert_eq!((counted("offered"), counted("departed")), (offered, offered - dropped));
        for reason in DROPS {
            let reported = records.outcome.drops.get(&reason).copied().unwrap_or(0);
            assert_eq!(counted(&reason.name().replace('-', "_")), reported, "{reason:?} in {stats:?}");
        }
        assert_eq!(counted("marked"), records.outcome.marks.values().sum::<u64>(), "{stats:?}");
        for reason in MARKS {
            let name = format!("marked_{}", reason.name().replace('-', "_"));
            if let Some(&(_, count)) = stats.iter().find(|(counter, _)| *counter == name) {
                assert_eq!(count, records.outcome.marks.get(&reason).copied().unwrap_or(0), "{reason:?} in {stats:?}");
            }
        }
        records.outcome
    }
}

const DROPS: [DropReason; 10] = [
    DropReason::Overlimit,
    DropReason::Early,
    DropReason::Forced,
    DropReason::Target,
    DropReason::FattestFlow,
    DropReason::FlowWeight,
    DropReason::Activity,
    DropReason::Lost,
    DropReason::SlowStart,
    DropReason::FairShare,
];

const MARKS: [MarkReason; 5] =
    [MarkReason::Early, MarkReason::Forced, MarkReason::Target, MarkReason::Threshold, MarkReason::FlowWeight];

/// The packets that were enqueued, and what became of each.
#[derive(Default)]
struct Records {
    now: Nanos,
    /// Whether the discipline is enqueuing the last packet of `offered`.
    arriving: bool,
    offered: Vec<Offered>,
    backlog: Backlog,
    /// The last packet that left, for each flow.
    last: BTreeMap<FlowId, PacketId>,
    outcome: Outcome,
}

struct Offered {
    /// The packet in its current state, with CE if it was marked.
    packet: Packet,
    at: Nanos,
    /// The backlog that it found.
    backlog: Backlog,
    fate: Fate,
}

#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Queued,
    Gone,
}

impl Records {
    /// Removes a packet. It must have been in the queue, unchanged except for recorded marks.
    fn take(&mut self, packet: &Packet) -> &Offered {
        let offered = &mut self.offered[packet.id.0 as usize];
        assert_eq!((&offered.packet, &offered.fate), (packet, &Fate::Queued));
        offered.fate = Fate::Gone;
        self.backlog.packets -= 1;
        self.backlog.bytes -= packet.size;
        offered
    }

    fn leave(&mut self, left: &Departure) {
        let offered = self.take(&left.packet);
        assert_eq!((left.enqueued, left.backlog_in), (offered.at, offered.backlog), "{left:?}");
        let last = self.last.insert(left.packet.flow, left.packet.id);
        assert!(last.is_none_or(|last| last < left.packet.id), "{left:?} overtook {last:?}");
        self.outcome.left.push(*left);
    }
}

impl Sink for Records {
    fn dropped(&mut self, dropped: &Dropped) {
        let is_arriving = self.arriving && dropped.packet.id.0 as usize == self.offered.len() - 1;
        let (now, at) = (self.now, self.take(&dropped.packet).at);
        assert_eq!((dropped.at, dropped.link_time), (now, Nanos::ZERO));
        match dropped.enqueued {
            Some(enqueued) => assert_eq!(enqueued, at),
            None => assert!(is_arriving, "{dropped:?} had entered the queue"),
        }
        *self.outcome.drops.entry(dropped.reason).or_default() += 1;
    }

    fn marked(&mut self, packet: &Packet, reason: MarkReason, now: Nanos) {
        assert_eq!(now, self.now);
        let offered = &mut self.offered[packet.id.0 as usize];
        assert!(offered.packet.ecn.is_capable(), "{packet:?} is not ECN-capable");
        assert_eq!(offered.fate, Fate::Queued);
        offered.packet.ecn = Ecn::Ce;
        assert_eq!(offered.packet, *packet);
        *self.outcome.marks.entry(reason).or_default() += 1;
    }
}
