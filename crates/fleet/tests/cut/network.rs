//! A fleet in one thread: hosts with logs, a coordinator, and a network that delays, reorders and loses messages.

use queuescope_fleet::cut::{Cut, Cutter, Freezer, Next};
use queuescope_log::{FrozenTail, Log, Memory, Options, Schema, departure};
use queuescope_wire::Nanos;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::iter::Sum;
use std::sync::Arc;

/// Mistakes of coordinators and members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// There is none.
    None,
    /// The coordinator thaws the first member as soon as it has replied.
    ThawsOneEarly,
    /// The coordinator thaws each member as soon as it has replied.
    ThawsEachEarly,
    /// Members do not say that their lease had ended.
    IgnoresLapses,
    /// The coordinator takes replies of an earlier cut as those of the current one.
    TakesOldReplies,
    /// Members reply with their positions, and do not freeze.
    DoesNotFreeze,
    /// Members have no leases, and do not notice that their coordinator is gone.
    HasNoLease,
}

/// What happened.
#[derive(Debug, Default)]
pub struct Outcome {
    pub cuts: u64,
    pub void: u64,
    /// Members that were not in a cut.
    pub missing: u64,
    /// Records in valid cuts that had a cause on another host of the cut.
    pub effects: u64,
    /// Those whose cause was not in the cut.
    pub violations: u64,
    pub crashes: u64,
    pub frozen_at_the_end: u64,
}

impl Sum for Outcome {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, next| Self {
            cuts: sum.cuts + next.cuts,
            void: sum.void + next.void,
            missing: sum.missing + next.missing,
            effects: sum.effects + next.effects,
            violations: sum.violations + next.violations,
            crashes: sum.crashes + next.crashes,
            frozen_at_the_end: sum.frozen_at_the_end + next.frozen_at_the_end,
        })
    }
}

/// Microseconds.
const US: u64 = 1_000;
/// When nothing new begins, and what was begun ends.
const END: u64 = 30_000 * US;
const LEASE: Nanos = Nanos(400 * US);
const WITHIN: Nanos = Nanos(500 * US);
/// The longest time that a message takes.
const SLOW: u64 = 2_500 * US;

/// A host between two crashes: its log begins again.
type Life = (usize, u64);

/// A record that caused another.
type Cause = (Life, u64);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A host writes a record.
    Write(usize, Option<Cause>),
    /// A message to a member, or to the coordinator; both are of a session of the coordinator.
    ToMember(Life, u64, ToMember),
    ToCoordinator(Life, u64, FromMember),
    /// A member looks at its lease; the coordinator looks for late replies.
    Lease(Life),
    Late,
    BeginCut,
    HostCrashes(usize),
    CoordinatorCrashes,
    /// A member notices that a session of the coordinator is over; the coordinator notices that a life of a host is.
    CoordinatorGone(Life, u64),
    MemberGone(Life),
    /// A host that was stopped goes on.
    Continues(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ToMember {
    Freeze(u64),
    Thaw(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum FromMember {
    Frozen(u64, u64),
    Thawed(u64, bool),
}

struct Host {
    life: u64,
    log: Owned,
    freezer: Freezer<FrozenTail<Owned>>,
    causes: Vec<Option<Cause>>,
    /// Records whose append has not returned.
    pending: Vec<u64>,
    /// While the host is stopped: what it did not handle.
    stopped: Option<Vec<Event>>,
}

#[derive(Clone)]
struct Owned(Arc<Log>);

impl AsRef<Log> for Owned {
    fn as_ref(&self) -> &Log {
        &self.0
    }
}

impl Host {
    fn new(life: u64) -> Self {
        let options = Options { records: 1 << 16, memory: Memory::Lazy };
        let log = Log::new(Schema::departure().clone(), options).expect("there is memory for it");
        let log = Owned(Arc::new(log));
        Self { life, log, freezer: Freezer::default(), causes: Vec::new(), pending: Vec::new(), stopped: None }
    }

    fn visible(&self) -> u64 {
        self.log.0.snapshot().len()
    }
}

/// The fleet.
pub struct Fleet {
    fault: Fault,
    random: Pcg64Mcg,
    now: u64,
    number: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    hosts: Vec<Host>,
    cutter: Cutter<Life>,
    session: u64,
    /// The number of the newest cut.
    cut: u64,
    /// Members that a mistaken coordinator thawed early.
    thawed_early: Vec<Life>,
    /// The causes of records of hosts that crashed, for cuts that they were in.
    buried: BTreeMap<Life, Vec<Option<Cause>>>,
    outcome: Outcome,
}

impl Fleet {
    pub fn new(seed: u64, fault: Fault) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let hosts = (0..2 + random.next_u64() % 4).map(|_| Host::new(0)).collect();
        let mut fleet = Self {
            fault,
            random,
            now: 0,
            number: 0,
            events: BinaryHeap::new(),
            hosts,
            cutter: Cutter::after(0),
            session: 0,
            cut: 0,
            thawed_early: Vec::new(),
            buried: BTreeMap::new(),
            outcome: Outcome::default(),
        };
        (0..fleet.hosts.len()).for_each(|host| fleet.after(10 * US, Event::Write(host, None)));
        fleet.after(500 * US, Event::BeginCut);
        fleet
    }

    pub fn run(mut self) -> Outcome {
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            self.now = at;
            self.handle(event);
            self.look_at_appends();
        }
        for host in &self.hosts {
            let _ = host.log.0.append(&[0; departure::SIZE]);
            self.outcome.frozen_at_the_end += u64::from(host.visible() != host.causes.len() as u64 + 1);
        }
        self.outcome
    }

    fn handle(&mut self, event: Event) {
        let of_host = match &event {
            Event::Write(host, _) => Some(*host),
            Event::ToMember((host, _), ..) | Event::Lease((host, _)) | Event::CoordinatorGone((host, _), _) => {
                Some(*host)
            }
            _ => None,
        };
        if let Some(stopped) = of_host.and_then(|host| self.hosts[host].stopped.as_mut()) {
            stopped.push(event);
            return;
        }
        match event {
            Event::Write(host, cause) => self.write(host, cause),
            Event::ToMember(life, session, message) => {
                if self.hosts[life.0].life == life.1 && session == self.session {
                    self.member_receives(life, message);
                }
            }
            Event::ToCoordinator(life, session, message) => {
                if session == self.session {
                    self.coordinator_receives(life, &message);
                }
            }
            Event::Lease((host, life)) => {
                if self.hosts[host].life == life && self.fault != Fault::HasNoLease {
                    let now = Nanos(self.now);
                    self.hosts[host].freezer.expire(now);
                }
            }
            Event::Late => {
                let next = self.cutter.expire(Nanos(self.now));
                self.go_on(next);
            }
            Event::BeginCut => self.begin_cut(),
            Event::HostCrashes(host) => self.host_crashes(host),
            Event::CoordinatorCrashes => self.coordinator_crashes(),
            Event::CoordinatorGone((host, life), session) => {
                // A newer session has been opened only after the old one ended.
                if self.hosts[host].life == life && session < self.session && self.fault != Fault::HasNoLease {
                    self.hosts[host].freezer.let_go();
                }
            }
            Event::MemberGone(life) => {
                let next = self.cutter.gone(Nanos(self.now), &life);
                self.go_on(next);
            }
            Event::Continues(host) => {
                for event in self.hosts[host].stopped.take().into_iter().flatten() {
                    self.after(US, event);
                }
            }
        }
    }

    // Hosts write.

    fn write(&mut self, host: usize, cause: Option<Cause>) {
        let is_first = cause.is_none();
        let of_host = &mut self.hosts[host];
        let position = of_host.log.0.append(&[0; departure::SIZE]).positions.start;
        assert_eq!(position, of_host.causes.len() as u64);
        of_host.causes.push(cause);
        of_host.pending.push(position);
        if is_first && self.now < END {
            self.after(600 * US, Event::Write(host, None));
            if self.chance(60) {
                self.after(US, Event::HostCrashes(host));
            } else if self.chance(60) {
                self.hosts[host].stopped = Some(Vec::new());
                self.after(3_000 * US, Event::Continues(host));
            }
        }
    }

    /// Appends whose records have become visible return, and may cause records elsewhere.
    fn look_at_appends(&mut self) {
        for host in 0..self.hosts.len() {
            if self.hosts[host].pending.is_empty() || self.hosts[host].stopped.is_some() {
                continue;
            }
            let (visible, life) = (self.hosts[host].visible(), self.hosts[host].life);
            let returned: Vec<_> = self.hosts[host].pending.extract_if(.., |position| *position < visible).collect();
            for position in returned {
                if self.now < END && !self.chance(3) {
                    let to = self.draw(self.hosts.len() as u64) as usize;
                    self.after(60 * US, Event::Write(to, Some(((host, life), position))));
                }
            }
        }
    }

    // Members and the coordinator.

    fn member_receives(&mut self, life: Life, message: ToMember) {
        let (fault, now) = (self.fault, Nanos(self.now));
        let host = &mut self.hosts[life.0];
        match message {
            ToMember::Freeze(cut) if fault == Fault::DoesNotFreeze => {
                let position = host.visible();
                self.reply(life, FromMember::Frozen(cut, position));
            }
            ToMember::Freeze(cut) => {
                let lease = if fault == Fault::HasNoLease { Nanos::MAX } else { LEASE };
                let log = &host.log;
                let frozen = host.freezer.freeze(now, cut, lease, || FrozenTail::of(log.clone()));
                if let Some(position) = frozen.map(FrozenTail::position) {
                    self.at(self.now + LEASE.0, Event::Lease(life));
                    self.reply(life, FromMember::Frozen(cut, position));
                }
            }
            ToMember::Thaw(cut) => {
                let lapsed = host.freezer.thaw(cut);
                let says = lapsed && fault != Fault::IgnoresLapses && fault != Fault::DoesNotFreeze;
                self.reply(life, FromMember::Thawed(cut, says));
            }
        }
    }

    fn coordinator_receives(&mut self, life: Life, message: &FromMember) {
        let next = match *message {
            FromMember::Frozen(cut, position) => {
                let cut = if self.fault == Fault::TakesOldReplies { self.cut } else { cut };
                let is_early = match self.fault {
                    Fault::ThawsOneEarly => self.thawed_early.is_empty(),
                    Fault::ThawsEachEarly => true,
                    _ => false,
                };
                let next = self.cutter.frozen(Nanos(self.now), &life, cut, position);
                if is_early && next.is_none() {
                    self.thawed_early.push(life);
                    self.send(life, ToMember::Thaw(cut));
                }
                next
            }
            FromMember::Thawed(cut, lapsed) => self.cutter.thawed(&life, cut, lapsed),
        };
        self.go_on(next);
    }

    fn begin_cut(&mut self) {
        let members: Vec<_> = self.hosts.iter().enumerate().map(|(host, state)| (host, state.life)).collect();
        if let Ok(cut) = self.cutter.begin(Nanos(self.now), members.iter().copied(), WITHIN) {
            self.cut = cut;
            self.thawed_early.clear();
            members.into_iter().for_each(|member| self.send(member, ToMember::Freeze(cut)));
            self.at(self.now + WITHIN.0, Event::Late);
        }
        if self.now < END {
            self.after(800 * US, Event::BeginCut);
            if self.chance(40) {
                self.after(300 * US, Event::CoordinatorCrashes);
            }
        }
    }

    fn go_on(&mut self, mut next: Option<Next<Life>>) {
        while let Some(step) = next.take() {
            match step {
                Next::Thaw(members) => {
                    self.at(self.now + WITHIN.0, Event::Late);
                    for member in members {
                        if self.thawed_early.contains(&member) {
                            next = self.cutter.thawed(&member, self.cut, false).or(next);
                        } else {
                            self.send(member, ToMember::Thaw(self.cut));
                        }
                    }
                }
                Next::Done(cut) => self.check(&cut),
            }
        }
    }

    /// Each record of a valid cut has its cause in the cut, if the host of that is in it.
    fn check(&mut self, cut: &Cut<Life>) {
        self.outcome.missing += cut.missing.len() as u64;
        if cut.is_void() {
            self.outcome.void += 1;
            return;
        }
        self.outcome.cuts += 1;
        for (life, position) in &cut.positions {
            let host = &self.hosts[life.0];
            let causes = if host.life == life.1 { &host.causes } else { &self.buried[life] };
            for (cause_life, cause) in causes[..*position as usize].iter().flatten() {
                if let Some(position) = cut.positions.get(cause_life).filter(|_| cause_life != life) {
                    self.outcome.effects += 1;
                    self.outcome.violations += u64::from(cause >= position);
                }
            }
        }
    }

    // Faults of hosts and of the coordinator.

    fn host_crashes(&mut self, host: usize) {
        self.outcome.crashes += 1;
        let life = self.hosts[host].life;
        let dead = std::mem::replace(&mut self.hosts[host], Host::new(life + 1));
        self.buried.insert((host, life), dead.causes);
        self.after(100 * US, Event::MemberGone((host, life)));
        // Writes that waited in a stopped host are the next life's.
        for event in dead.stopped.into_iter().flatten().filter(|event| matches!(event, Event::Write(..))) {
            self.after(US, event);
        }
    }

    fn coordinator_crashes(&mut self) {
        let ended = self.session;
        self.session += 1;
        self.cutter = Cutter::after(self.session << 32);
        for host in 0..self.hosts.len() {
            let life = (host, self.hosts[host].life);
            self.after(200 * US, Event::CoordinatorGone(life, ended));
        }
    }

    // The network and the clock.

    fn send(&mut self, to: Life, message: ToMember) {
        let session = self.session;
        self.deliver(Event::ToMember(to, session, message));
    }

    fn reply(&mut self, from: Life, message: FromMember) {
        let session = self.session;
        self.deliver(Event::ToCoordinator(from, session, message));
    }

    /// Most messages take some tens of microseconds; some are lost, and some take longer than a lease.
    fn deliver(&mut self, event: Event) {
        if self.chance(50) {
            return;
        }
        let most = if self.chance(20) { SLOW } else { 60 * US };
        self.after(most, event);
    }

    /// Within this time.
    fn after(&mut self, most: u64, event: Event) {
        let after = 1 + self.draw(most);
        self.at(self.now + after, event);
    }

    fn at(&mut self, at: u64, event: Event) {
        self.number += 1;
        self.events.push(Reverse((at, self.number, event)));
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random.next_u64() % below
    }

    /// Whether something happens that happens once in `of` times.
    fn chance(&mut self, of: u64) -> bool {
        self.draw(of) == 0
    }
}
