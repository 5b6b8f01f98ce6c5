//! Cuts through the logs of all members ([`cut`](crate::cut)).

use super::{Coordinator, CutCounts, Session, ShownTime};
use crate::clock;
use crate::cut::{Busy, Cut, Cutter, Missing, Next};
use crate::locked::lock;
use crate::protocol::{CutMember, CutResponse, Freeze, Frozen, State, Thaw, Thawed, to_agent};
use queuescope_wire::Nanos;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Cuts that can be named in queries.
const KEPT: usize = 1_024;

/// Why a member has no part in cuts.
const NO_CUTS: &str =
    "it serves a folder that another process records to, whose log cannot be frozen: cut by time (--at)";

/// The running cut, and earlier ones.
#[derive(Debug)]
pub struct Cuts {
    cutter: Cutter<u64>,
    running: Option<RunningCut>,
    made: VecDeque<Arc<MadeCut>>,
    counts: CutCounts,
}

#[derive(Debug)]
struct RunningCut {
    sessions: BTreeMap<u64, Session>,
    /// Members without a stream, and those that have no part in cuts.
    absent: Vec<(String, State)>,
    /// The clocks of the members that replied.
    clocks: BTreeMap<u64, u64>,
    begun: Nanos,
    frozen: Nanos,
    done: oneshot::Sender<Arc<MadeCut>>,
}

/// A cut that was made.
#[derive(Debug)]
pub struct MadeCut {
    /// Its number.
    pub number: u64,
    /// For each member in it the number of records, the member's clock when it froze, and the folder that it recorded to.
    pub positions: BTreeMap<String, CutPosition>,
    /// Members that are not in it, and why.
    pub missing: BTreeMap<String, State>,
    /// Members whose lease ended too early: if there are any, the cut is void.
    pub lapsed: Vec<String>,
    /// The time from the first *freeze* to the last reply.
    pub frozen_within: Nanos,
    /// The time from then to the last reply to *thaw*.
    pub thawed_within: Nanos,
}

/// A member's place in a cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutPosition {
    /// The number of its records that are in the cut.
    pub records: u64,
    /// Its clock when it froze, nanoseconds since 1970.
    pub clock: u64,
    /// The folder that it recorded to: positions mean nothing in another.
    pub store: u64,
    /// The name of the schema of its records.
    pub schema: String,
}

/// Why there is no cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CutError {
    /// Another cut is being made.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// A number of a cut that is not there.
    #[error("there is no cut {0}: the last {KEPT} are kept, until the coordinator ends")]
    Unknown(u64),
    /// The cut is void.
    #[error("cut {number} is void: the lease of {} ended before it thawed; make another", members.join(", "))]
    Void {
        /// The cut.
        number: u64,
        /// The members.
        members: Vec<String>,
    },
}

impl Cuts {
    pub fn new(epoch: u32) -> Self {
        Self {
            cutter: Cutter::after(u64::from(epoch) << 32),
            running: None,
            made: VecDeque::new(),
            counts: CutCounts::default(),
        }
    }

    /// How many cuts were made.
    pub fn counts(&self) -> CutCounts {
        self.counts
    }

    fn finish(&mut self, cut: &Cut<u64>) {
        let Some(running) = self.running.take() else { return };
        let name = |number: &u64| running.sessions[number].name().to_owned();
        let positions = cut.positions.iter();
        let missing = cut.missing.iter().map(|(number, why)| {
            let state = match why {
                Missing::Gone => State::Absent,
                Missing::Late => State::Late,
            };
            (name(number), state)
        });
        let now = clock::steady();
        let frozen = if running.frozen == Nanos::ZERO { now } else { running.frozen };
        let made = Arc::new(MadeCut {
            number: cut.number,
            positions: positions
                .map(|(number, records)| {
                    let (clock, session) = (running.clocks.get(number).copied(), &running.sessions[number]);
                    let (clock, store, schema) = (clock.unwrap_or(0), session.store(), session.schema().to_owned());
                    (name(number), CutPosition { records: *records, clock, store, schema })
                })
                .collect(),
            missing: missing.chain(running.absent).collect(),
            lapsed: cut.lapsed.iter().map(name).collect(),
            frozen_within: frozen.saturating_sub(running.begun),
            thawed_within: now.saturating_sub(frozen),
        });
        self.counts.made += 1;
        self.counts.void += u64::from(!made.lapsed.is_empty());
        self.counts.partial += u64::from(!made.missing.is_empty());
        self.counts.time = self.counts.time.saturating_add(made.frozen_within).saturating_add(made.thawed_within);
        if self.made.len() == KEPT {
            self.made.pop_front();
        }
        self.made.push_back(Arc::clone(&made));
        // The caller may have gone away; the cut is kept all the same.
        let _ = running.done.send(made);
    }
}

impl Coordinator {
    /// Makes a cut through the logs of these members, or of all if there are no names. Waits `within` for their replies, at most half a
    /// lease.
    ///
    /// # Errors
    /// Fails if a cut is being made.
    pub async fn cut(&self, names: &[String], within: Nanos) -> Result<Arc<MadeCut>, CutError> {
        let (number, made) = self.begin_cut(names, within)?;
        // The cut must end even if nobody waits for it any more.
        let coordinator = self.clone();
        tokio::spawn(async move { coordinator.watch_cut(number).await });
        // The sender lives until the cut is done.
        made.await.map_err(|_| CutError::Unknown(number))
    }

    /// Sends *freeze* to all. The result comes when the cut is done.
    fn begin_cut(&self, names: &[String], within: Nanos) -> Result<(u64, oneshot::Receiver<Arc<MadeCut>>), CutError> {
        let (sessions, absent) = lock(&self.shared.members).sessions(names);
        let (sessions, others): (Vec<_>, Vec<_>) = sessions.into_iter().partition(Session::is_in_cuts);
        let others = others.iter().map(|session| (session.name().to_owned(), State::Failed));
        let absent = absent.into_iter().map(|name| (name, State::Absent)).chain(others).collect();
        let lease = self.shared.options.lease;
        let within = within.min(Nanos(lease.0 / 2));
        let (done, made) = oneshot::channel();
        let mut cuts = lock(&self.shared.cuts);
        let begun = clock::steady();
        let number = cuts.cutter.begin(begun, sessions.iter().map(Session::number), within)?;
        let by_number = sessions.iter().map(|session| (session.number(), session.clone())).collect();
        let clocks = BTreeMap::new();
        cuts.running = Some(RunningCut { sessions: by_number, absent, clocks, begun, frozen: Nanos::ZERO, done });
        drop(cuts);
        for session in &sessions {
            self.send(session, to_agent::Message::Freeze(Freeze { cut: number, lease: lease.0 }));
        }
        Ok((number, made))
    }

    /// A cut that was made and is not void.
    ///
    /// # Errors
    /// Fails if there is none of this number.
    pub fn made_cut(&self, number: u64) -> Result<Arc<MadeCut>, CutError> {
        let cuts = lock(&self.shared.cuts);
        let made = cuts.made.iter().find(|made| made.number == number).ok_or(CutError::Unknown(number))?;
        if made.lapsed.is_empty() {
            Ok(Arc::clone(made))
        } else {
            Err(CutError::Void { number, members: made.lapsed.clone() })
        }
    }

    /// Goes on without late members when it is time.
    async fn watch_cut(&self, number: u64) {
        loop {
            let until = {
                let cuts = lock(&self.shared.cuts);
                match cuts.cutter.until() {
                    Some(until) if cuts.cutter.running() == Some(number) => until,
                    _ => return,
                }
            };
            tokio::time::sleep_until(clock::instant(until)).await;
            self.step(|cutter| if cutter.running() == Some(number) { cutter.expire(clock::steady()) } else { None });
        }
    }

    pub(super) fn frozen(&self, now: Nanos, session: &Session, frozen: &Frozen) {
        let sent = {
            let mut cuts = lock(&self.shared.cuts);
            let is_running = cuts.cutter.running() == Some(frozen.cut);
            let running = cuts.running.as_mut().filter(|_| is_running);
            running.map(|running| {
                running.clocks.insert(session.number(), frozen.at);
                running.begun
            })
        };
        if let Some(sent) = sent {
            lock(&self.shared.members).measured(session, ShownTime::now(sent, frozen.at));
        }
        self.step(|cutter| cutter.frozen(now, &session.number(), frozen.cut, frozen.position));
    }

    pub(super) fn thawed(&self, session: &Session, thawed: &Thawed) {
        self.step(|cutter| cutter.thawed(&session.number(), thawed.cut, thawed.lapsed));
    }

    pub(super) fn left_cut(&self, session: &Session) {
        self.step(|cutter| cutter.gone(clock::steady(), &session.number()));
    }

    /// Takes a step of the cut, and does what follows.
    fn step(&self, step: impl FnOnce(&mut Cutter<u64>) -> Option<Next<u64>>) {
        let mut cuts = lock(&self.shared.cuts);
        let mut thaw = Vec::new();
        match step(&mut cuts.cutter) {
            None => {}
            Some(Next::Done(cut)) => cuts.finish(&cut),
            Some(Next::Thaw(members)) => {
                let cut = cuts.cutter.running().unwrap_or_default();
                if let Some(running) = &mut cuts.running {
                    running.frozen = clock::steady();
                    let sessions = members.iter().filter_map(|number| running.sessions.get(number));
                    thaw.extend(sessions.map(|session| (session.clone(), cut)));
                }
            }
        }
        drop(cuts);
        for (session, cut) in thaw {
            self.send(&session, to_agent::Message::Thaw(Thaw { cut }));
        }
    }
}

impl MadeCut {
    /// As a message.
    pub fn response(&self) -> CutResponse {
        let of = |state: State, mut member: CutMember| {
            member.set_state(state);
            member
        };
        let here = self.positions.iter().map(|(name, at)| {
            let (name, schema) = (name.clone(), at.schema.clone());
            let member =
                CutMember { name, position: at.records, at: at.clock, store: at.store, schema, ..CutMember::default() };
            of(State::Answered, member)
        });
        let missing = self.missing.iter();
        let missing = missing.map(|(name, state)| {
            let problem = if *state == State::Failed { NO_CUTS.to_owned() } else { String::new() };
            of(*state, CutMember { name: name.clone(), problem, ..CutMember::default() })
        });
        let mut members: Vec<_> = here.chain(missing).collect();
        members.sort_by(|a, b| a.name.cmp(&b.name));
        let void = if self.lapsed.is_empty() {
            String::new()
        } else {
            CutError::Void { number: self.number, members: self.lapsed.clone() }.to_string()
        };
        CutResponse {
            cut: self.number,
            members,
            void,
            frozen_within: self.frozen_within.0,
            thawed_within: self.thawed_within.0,
        }
    }
}
