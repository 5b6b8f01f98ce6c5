//! Drives a discipline and checks each answer against what went in.

use queuescope_queue::{
    AnyDiscipline, Discipline, DisciplineParams, DropReason, Dropped, Limit, MarkReason, Outlet, Sink,
};
use queuescope_wire::{Backlog, ByteCount, Class, Departure, Ecn, FlowId, Nanos, Packet, PacketId, QueueId, Rate};
use std::collections::BTreeMap;

/// The link that paces: 1 Mb/s.
pub fn rate() -> Rate {
    Rate::from_bits_per_second(1_000_000).unwrap()
}

/// A discipline to be driven.
#[derive(Debug)]
pub struct Contestant {
    params: DisciplineParams,
    limit: Limit,
    drops: Vec<DropReason>,
    marks: Vec<MarkReason>,
}

impl Contestant {
    /// With the limit that its parameters set to all that it holds.
    pub fn new(params: DisciplineParams, limit: Limit) -> Self {
        Self { params, limit, drops: Vec::new(), marks: Vec::new() }
    }

    /// A long run drops for these reasons.
    pub fn drops(self, drops: &[DropReason]) -> Self {
        Self { drops: drops.to_vec(), ..self }
    }

    /// A long run marks for these reasons.
    pub fn marks(self, marks: &[MarkReason]) -> Self {
        Self { marks: marks.to_vec(), ..self }
    }

    pub fn name(&self) -> String {
        format!("{:?}", self.params)
    }
}

/// What happens next: after a while a packet of a flow and size arrives, or the link asks for one.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub gap: Nanos,
    pub packet: Option<(u32, u64)>,
}

/// Some 30 s with half as much again as the link sends.
pub fn long_run() -> Vec<Step> {
    let mut bits = 1u64;
    let mut random = |below: u64| {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (bits >> 33) % below
    };
    // Every other flow of eight sends twice as much as the others.
    let flow = |random: u64| (random % 12).min(7) as u32;
    (0..4000)
        .map(|_| Step { gap: Nanos(random(15_400_000)), packet: Some((flow(random(1 << 20)), 40 + random(2800))) })
        .collect()
}

/// What came out.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    pub left: Vec<Departure>,
    pub drops: BTreeMap<DropReason, u64>,
    pub marks: BTreeMap<MarkReason, u64>,
}

impl Outcome {
    /// The reasons that should have been met and were not.
    pub fn missing(&self, contestant: &Contestant) -> Vec<String> {
        let drops = contestant.drops.iter().filter(|&reason| !self.drops.contains_key(reason));
        let marks = contestant.marks.iter().filter(|&reason| !self.marks.contains_key(reason));
        let drops = drops.map(|reason| format!("no drop: {}", reason.name()));
        drops.chain(marks.map(|reason| format!("no mark: {}", reason.name()))).collect()
    }
}

/// Drives it twice, with the same result, and checks everything on the way.
pub fn holds_what_is_promised(contestant: &Contestant, steps: &[Step], paced: bool, seed: u64) -> Outcome {
    let outcome = run(contestant, steps, paced, seed);
    assert_eq!(outcome, run(contestant, steps, paced, seed), "the same seed gives the same result");
    outcome
}

fn run(contestant: &Contestant, steps: &[Step], paced: bool, seed: u64) -> Outcome {
    let outlet = Outlet { overhead: 0, rate: rate(), queue: QueueId(100), seed };
    let discipline = contestant.params.build(outlet);
    let mut driver = Driver {
        ids: 100..100 + discipline.queues(),
        discipline,
        books: Books::default(),
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
    // Whatever is left.
    while driver.dequeue(now).is_some() {
        now = now + Nanos(1_000_000);
        driver.timers_until(now);
    }
    driver.finish()
}

/// A discipline, and the books about it.
struct Driver {
    discipline: AnyDiscipline,
    ids: std::ops::Range<u16>,
    books: Books,
    limit: Limit,
    link_free: Nanos,
}

impl Driver {
    /// A flow has a class and a codepoint of its own, so that its packets stay in order wherever these decide.
    fn enqueue(&mut self, flow: u32, size: u64, now: Nanos) {
        let id = self.books.offered.len() as u64;
        let class = Class((flow / 4) as u8);
        let ecn = Ecn::from_bits(flow as u8);
        let packet = Packet { id: PacketId(id), flow: FlowId(flow), size: ByteCount(size), class, ecn };
        self.books.now = now;
        self.books.arriving = true;
        self.books.offered.push(Offered { packet, at: now, backlog: self.discipline.backlog(), fate: Fate::Waits });
        self.books.backlog.packets += 1;
        self.books.backlog.bytes += packet.size;
        self.discipline.enqueue(packet, now, &mut self.books);
        self.books.arriving = false;
        self.check_backlog();
    }

    fn dequeue(&mut self, now: Nanos) -> Option<Departure> {
        self.books.now = now;
        let left = self.discipline.dequeue(now, &mut self.books);
        match &left {
            Some(left) => {
                assert_eq!(left.dequeued, now);
                assert!(self.ids.contains(&left.queue.0), "{left:?} of {:?}", self.ids);
                self.books.leave(left);
                assert_eq!(left.backlog_out, self.discipline.backlog(), "{left:?}");
            }
            None => assert_eq!(self.discipline.backlog().packets, 0, "what waits is served"),
        }
        self.check_backlog();
        left
    }

    /// The link sends whenever it is free.
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
            assert!(self.discipline.next_timer().is_none_or(|next| next > due), "a timer comes to an end");
            self.check_backlog();
        }
    }

    fn check_backlog(&self) {
        let backlog = self.discipline.backlog();
        assert_eq!(backlog, self.books.backlog, "the backlog is what waits");
        let largest = rate().time_for(ByteCount(3000));
        let held = match self.limit {
            Limit::None => true,
            Limit::Packets(most) => backlog.packets <= most,
            Limit::Bytes(most) => backlog.bytes <= most,
            Limit::Time(most) => rate().time_for(backlog.bytes) <= most + largest,
        };
        assert!(held, "{backlog:?} is above {:?}", self.limit);
    }

    /// Nothing is lost, and the discipline counted the same.
    fn finish(self) -> Outcome {
        let Self { discipline, books, .. } = self;
        let dropped: u64 = books.outcome.drops.values().sum();
        let offered = books.offered.len() as u64;
        assert_eq!(discipline.backlog(), Backlog::default());
        assert_eq!(offered, books.outcome.left.len() as u64 + dropped);
        assert!(books.offered.iter().all(|offered| offered.fate == Fate::Gone));
        // A counter of several kinds of departure or drop has the kind behind its name.
        let stats = discipline.counters();
        let counted = |name: &str| -> u64 {
            stats.iter().filter(|(counter, _)| counter.starts_with(name)).map(|&(_, count)| count).sum()
        };
        assert_eq!((counted("offered"), counted("departed")), (offered, offered - dropped));
        for reason in DROPS {
            let told = books.outcome.drops.get(&reason).copied().unwrap_or(0);
            assert_eq!(counted(&reason.name().replace('-', "_")), told, "{reason:?} in {stats:?}");
        }
        assert_eq!(counted("marked"), books.outcome.marks.values().sum::<u64>(), "{stats:?}");
        for reason in MARKS {
            let name = format!("marked_{}", reason.name().replace('-', "_"));
            if let Some(&(_, count)) = stats.iter().find(|(counter, _)| *counter == name) {
                assert_eq!(count, books.outcome.marks.get(&reason).copied().unwrap_or(0), "{reason:?} in {stats:?}");
            }
        }
        books.outcome
    }
}

const DROPS: [DropReason; 8] = [
    DropReason::Overlimit,
    DropReason::Early,
    DropReason::Forced,
    DropReason::Target,
    DropReason::FattestFlow,
    DropReason::FlowWeight,
    DropReason::Activity,
    DropReason::Lost,
];

const MARKS: [MarkReason; 5] =
    [MarkReason::Early, MarkReason::Forced, MarkReason::Target, MarkReason::Threshold, MarkReason::FlowWeight];

/// What went in, and what has become of it.
#[derive(Default)]
struct Books {
    now: Nanos,
    /// Whether the last packet offered is arriving just now.
    arriving: bool,
    offered: Vec<Offered>,
    backlog: Backlog,
    /// The last packet of each flow that left.
    last: BTreeMap<FlowId, PacketId>,
    outcome: Outcome,
}

struct Offered {
    /// As it is now: marked, if it was.
    packet: Packet,
    at: Nanos,
    /// What waited when it came.
    backlog: Backlog,
    fate: Fate,
}

#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Waits,
    Gone,
}

impl Books {
    /// A packet is out: it was in, and is as it was.
    fn take(&mut self, packet: &Packet) -> &Offered {
        let offered = &mut self.offered[packet.id.0 as usize];
        assert_eq!((&offered.packet, &offered.fate), (packet, &Fate::Waits));
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

impl Sink for Books {
    fn dropped(&mut self, dropped: &Dropped) {
        let is_arriving = self.arriving && dropped.packet.id.0 as usize == self.offered.len() - 1;
        let (now, at) = (self.now, self.take(&dropped.packet).at);
        assert_eq!((dropped.at, dropped.link_time), (now, Nanos::ZERO));
        match dropped.enqueued {
            Some(enqueued) => assert_eq!(enqueued, at),
            None => assert!(is_arriving, "{dropped:?} had been in the queue"),
        }
        *self.outcome.drops.entry(dropped.reason).or_default() += 1;
    }

    fn marked(&mut self, packet: &Packet, reason: MarkReason, now: Nanos) {
        assert_eq!(now, self.now);
        let offered = &mut self.offered[packet.id.0 as usize];
        assert!(offered.packet.ecn.is_capable(), "{packet:?} is not ECN-capable");
        assert_eq!(offered.fate, Fate::Waits);
        offered.packet.ecn = Ecn::Ce;
        assert_eq!(offered.packet, *packet);
        *self.outcome.marks.entry(reason).or_default() += 1;
    }
}
