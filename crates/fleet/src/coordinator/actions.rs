//! Actions of control programs on hosts: which may begin, which are in progress, and what became of them.
//!
//! Each decision is on the disk before it goes to its host. After a restart of the coordinator, earlier actions are over: their hosts ended
//! them when they lost the coordinator, and nothing is done again.

mod record;
mod store;

pub use record::{ActionRecord, ActionState};
pub use store::{ActionStore, ActionStoreError};

use super::{AuditEntry, AuditLog, Coordinator, Session};
use crate::act::{Flow, LONGEST, Minute, Order};
use crate::clock;
use crate::locked::lock;
use crate::program::{Act, Program};
use crate::protocol::{self, ActState, Acted, Hold, to_agent};
use queuescope_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Time between two messages about the actions that go on. An agent ends its actions when none has come for [`LEASE`](crate::act::LEASE).
const HOLD: Duration = Duration::from_secs(1);
/// How long after its end an action is awaited to be reported as over.
const LATE: Nanos = Nanos(5_000_000_000);
/// The most actions in progress, of all programs and hosts.
const MOST: usize = 1_024;
/// The most refusals of a program in a minute that are stored; others are counted. After as many by hosts, no more actions go to hosts in that minute.
const REFUSALS: u32 = 60;
/// The most characters of what a host says.
const REASON: usize = 512;

/// All actions.
#[derive(Debug)]
pub struct Actions {
    store: ActionStore,
    audit: Option<Arc<AuditLog>>,
    /// Actions in progress.
    open: BTreeMap<u64, Open>,
    /// Actions of each `[[act]]` of each program in the last minute.
    minutes: BTreeMap<(String, usize), Minute>,
    programs: BTreeMap<String, OfProgram>,
    more_refused: u64,
}

/// An action in progress.
#[derive(Debug)]
struct Open {
    act: usize,
    session: Session,
    flow: Flow,
    /// When it ends, by the steady clock.
    until: Nanos,
    /// When it went to the host, by the steady clock, if the host has not replied: it counts in `per_minute`, unless the host does not begin it.
    sent: Option<Nanos>,
}

/// What a program did.
#[derive(Debug)]
struct OfProgram {
    acted: u64,
    refused: u64,
    /// Refusals of the last minute that were stored.
    stored: Minute,
    /// Actions of the last minute that hosts did not begin.
    not_begun: Minute,
}

/// What an action is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cause<'a> {
    /// The program's name.
    pub program: &'a str,
    /// The index of the `[[act]]`.
    pub number: usize,
    pub act: &'a Act,
    /// The alert, for people.
    pub text: &'a str,
    pub flow: &'a Flow,
}

/// The time of both clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub steady: Nanos,
    pub wall: Nanos,
}

impl Now {
    fn read() -> Self {
        Self { steady: clock::steady(), wall: clock::wall() }
    }
}

impl Default for OfProgram {
    fn default() -> Self {
        let minute = || Minute::new(REFUSALS);
        Self { acted: 0, refused: 0, stored: minute(), not_begun: minute() }
    }
}

impl Actions {
    /// The actions of a store; `audit` gets each decision and each end, too.
    pub fn new(store: ActionStore, audit: Option<Arc<AuditLog>>) -> Self {
        let (open, minutes, programs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { store, audit, open, minutes, programs, more_refused: 0 }
    }

    /// Decides about an action on a host, and sends it. Returns whether the host's stream took it.
    fn decide(
        &mut self,
        now: Now,
        cause: Cause<'_>,
        member: &str,
        session: Option<&Session>,
    ) -> Result<bool, ActionStoreError> {
        let is_same =
            |open: &Open| open.session.name() == member && open.act == cause.number && open.flow == *cause.flow;
        let same = self.open.iter().find(|(id, open)| is_same(open) && self.is_of(**id, cause.program));
        let same = same.map(|(id, _)| *id);
        let session = match (self.refusal(now, cause, same.is_some()), session) {
            (Some(why), _) => return self.refuse(now, cause, member, &why).map(|()| true),
            (None, None) => return self.refuse(now, cause, member, "the host is absent").map(|()| true),
            (None, Some(session)) => session,
        };
        let Act { action, time, dry, .. } = *cause.act;
        let order = Order { flow: *cause.flow, action, time, dry };
        let id = same.unwrap_or_else(|| self.store.next_id());
        let mut record = self.record(now, cause, member);
        record.id = id;
        // A new end of an action is another decision about the same one.
        if let Some(earlier) = self.store.get(id) {
            (record.at, record.touched, record.packets) = (earlier.at, earlier.touched, earlier.packets);
            record.state = earlier.state;
        }
        self.note(&record, None);
        self.store.decide(record)?;
        let until = now.steady.saturating_add(time);
        self.of_program(cause.program).acted += 1;
        let message = to_agent::Message::Act(order.message(id, cause.program, cause.text));
        let is_sent = session.send(protocol::ToAgent { message: Some(message) });
        // It was free when the limits were looked at.
        let minute = self.minutes.get_mut(&(cause.program.to_owned(), cause.number)).filter(|_| is_sent);
        let sent = minute.is_some_and(|minute| minute.take(now.steady)).then_some(now.steady);
        let open = Open { act: cause.number, session: session.clone(), flow: *cause.flow, until, sent };
        self.open.insert(id, open);
        Ok(is_sent)
    }

    /// Why an action may not begin, if it may not.
    fn refusal(&mut self, now: Now, cause: Cause<'_>, is_again: bool) -> Option<String> {
        let Cause { program, number, act, flow, .. } = cause;
        if !act.allows(flow) {
            return Some("an address of the flow is not in `only`".to_owned());
        }
        let open = self.open.iter().filter(|(id, open)| open.act == number && self.is_of(**id, program)).count();
        if !is_again && open >= act.most as usize {
            return Some(format!("{} actions are in progress, which is `most`", act.most));
        }
        if !is_again && self.open.len() >= MOST {
            return Some(format!("{MOST} actions of all programs are in progress, which is the coordinator's limit"));
        }
        if !self.of_program(program).not_begun.is_free(now.steady) {
            return Some(format!(
                "hosts did not begin {REFUSALS} actions in the last minute, which is the coordinator's limit"
            ));
        }
        let minute = self.minutes.entry((program.to_owned(), number)).or_insert_with(|| Minute::new(act.per_minute));
        let is_full = !minute.is_free(now.steady);
        is_full.then(|| format!("{} actions were in the last minute, which is `per_minute`", act.per_minute))
    }

    /// Notes that an action does not begin. Of very many, some are counted only.
    fn refuse(&mut self, now: Now, cause: Cause<'_>, member: &str, why: &str) -> Result<(), ActionStoreError> {
        let of_program = self.of_program(cause.program);
        of_program.refused += 1;
        if !of_program.stored.take(now.steady) {
            self.more_refused += 1;
            return Ok(());
        }
        let mut record = self.record(now, cause, member);
        (record.id, record.until) = (self.store.next_id(), now.wall);
        record.end(ActionState::Refused, why);
        self.note(&record, Some(why));
        self.store.decide(record)
    }

    /// A host reports about an action.
    fn acted(&mut self, now: Now, session: &Session, acted: &Acted) -> Result<(), ActionStoreError> {
        let is_its = self.open.get(&acted.id).is_some_and(|open| open.session.number() == session.number());
        let Some(mut record) = self.store.get(acted.id).cloned().filter(|record| record.member == session.name())
        else {
            return Ok(());
        };
        let counts = (record.touched.max(acted.touched), record.packets.max(acted.packets));
        (record.touched, record.packets) = counts;
        if !is_its {
            // The last counts of an action that the coordinator ended; an end that a host reports later changes nothing.
            if record.state == ActionState::Undone {
                self.store.update(record);
            }
            return Ok(());
        }
        let reason: String = acted.reason.chars().filter(|c| !c.is_control()).take(REASON).collect();
        let state = match acted.state() {
            ActState::ActApplied => ActionState::Applied,
            ActState::ActDry => ActionState::Dry,
            ActState::ActRefused => ActionState::Refused,
            ActState::ActExpired => ActionState::Expired,
            ActState::ActUndone => ActionState::Undone,
            ActState::ActFailed => ActionState::Failed,
            ActState::ActUnspecified | ActState::ActSent => return Ok(()),
        };
        if state.is_open() {
            self.open.entry(acted.id).and_modify(|open| open.sent = None);
            record.state = state;
            record.until = now.wall.saturating_add(Nanos(acted.left.min(LONGEST.0)));
            self.store.update(record);
            return Ok(());
        }
        if state == ActionState::Refused || (state == ActionState::Failed && record.state == ActionState::Sent) {
            self.not_begun(now, acted.id, &record.program);
        }
        if state == ActionState::Refused {
            self.of_program(&record.program).refused += 1;
            if record.state != ActionState::Sent {
                // It is in progress, and ends when it would have ended before.
                record.reason = format!("it has no later end: {reason}");
                self.store.update(record);
                return Ok(());
            }
        }
        self.open.remove(&acted.id);
        record.until = now.wall;
        record.end(state, &reason);
        self.finish(record)
    }

    /// A host did not begin an action, or did not give it another end: it does not count in `per_minute`.
    fn not_begun(&mut self, now: Now, id: u64, program: &str) {
        self.of_program(program).not_begun.take(now.steady);
        let Some(Open { act, sent, .. }) = self.open.get_mut(&id) else { return };
        let (act, sent) = (*act, sent.take());
        if let Some((minute, sent)) = self.minutes.get_mut(&(program.to_owned(), act)).zip(sent) {
            minute.give_back(sent);
        }
    }

    /// Ends actions here; their hosts hear of it by the next message about what goes on.
    fn end_if(
        &mut self,
        now: Now,
        state: ActionState,
        why: &str,
        ends: impl Fn(&ActionRecord, &Open) -> bool,
    ) -> Result<(), ActionStoreError> {
        let over: Vec<_> = self
            .open
            .iter()
            .filter(|(id, open)| self.store.get(**id).is_none_or(|record| ends(record, open)))
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            self.open.remove(&id);
            if let Some(mut record) = self.store.get(id).cloned() {
                record.until = now.wall;
                record.end(state, why);
                self.finish(record)?;
            }
        }
        Ok(())
    }

    /// A program is gone or has another text: its actions end, and its limits begin again.
    fn end_program(&mut self, now: Now, name: &str) -> Result<(), ActionStoreError> {
        self.minutes.retain(|(program, _), _| program != name);
        let why = "the program was removed or replaced";
        self.end_if(now, ActionState::Undone, why, |record, _| record.program == name)
    }

    /// The actions that go on, by stream; and what is late.
    fn hold(&mut self, now: Now) -> Result<Vec<(Session, Vec<u64>)>, ActionStoreError> {
        let is_late = |open: &Open| open.until.saturating_add(LATE) <= now.steady;
        self.end_if(now, ActionState::Failed, "the host did not reply", |record, open| {
            is_late(open) && record.state == ActionState::Sent
        })?;
        self.end_if(now, ActionState::Expired, "the host did not report its end", |_, open| is_late(open))?;
        let mut held: BTreeMap<u64, (Session, Vec<u64>)> = BTreeMap::new();
        for (id, Open { session, .. }) in &self.open {
            held.entry(session.number()).or_insert_with(|| (session.clone(), Vec::new())).1.push(*id);
        }
        Ok(held.into_values().collect())
    }

    /// The streams of actions of a program.
    fn sessions_of(&self, program: &str) -> Vec<Session> {
        let of = self.open.iter().filter(|(id, _)| self.is_of(**id, program));
        let by_number: BTreeMap<_, _> = of.map(|(_, open)| (open.session.number(), open.session.clone())).collect();
        by_number.into_values().collect()
    }

    fn record(&self, now: Now, cause: Cause<'_>, member: &str) -> ActionRecord {
        let Act { action, time, dry, .. } = *cause.act;
        ActionRecord {
            id: 0,
            at: now.wall,
            until: now.wall.saturating_add(time),
            program: cause.program.to_owned(),
            cause: cause.text.to_owned(),
            member: member.to_owned(),
            flow: cause.flow.to_string(),
            action: action.to_string(),
            dry,
            state: ActionState::Sent,
            reason: String::new(),
            touched: 0,
            packets: 0,
        }
    }

    fn finish(&mut self, record: ActionRecord) -> Result<(), ActionStoreError> {
        let is_failure = matches!(record.state, ActionState::Refused | ActionState::Failed);
        self.note(&record, is_failure.then_some(&*record.reason));
        self.store.finish(record)
    }

    /// Adds an action to the audit log.
    fn note(&mut self, record: &ActionRecord, error: Option<&str>) {
        let Some(audit) = &self.audit else { return };
        let is_begin = record.state.is_open() || record.state == ActionState::Refused;
        let call = if is_begin { "act" } else { "act_end" };
        let about = record.about();
        let entry = AuditEntry { name: &record.program, role: "program", call, about: &about, error };
        if let Err(why) = audit.add(entry) {
            self.store.troubled(format!("the audit log cannot be written: {why}"));
        }
    }

    fn of_program(&mut self, name: &str) -> &mut OfProgram {
        self.programs.entry(name.to_owned()).or_default()
    }

    fn is_of(&self, id: u64, program: &str) -> bool {
        self.store.get(id).is_some_and(|record| record.program == program)
    }
}

impl Coordinator {
    /// Acts on a flow after an alert of a program, on all hosts that the program names. Waits for the disk.
    pub(super) fn act(&self, name: &str, program: &Program, raise: usize, flow: &Flow, text: &str) {
        let known = self.members();
        for (number, act) in program.acts().iter().enumerate().filter(|(_, act)| act.after == raise) {
            let cause = Cause { program: name, number, act, text, flow };
            let members = act.hosts.of(known.iter().map(|member| member.name.as_str()));
            if members.is_empty() {
                let why = format!("no host matches `hosts` = {}", act.hosts);
                let refused = lock(&self.shared.actions).refuse(Now::read(), cause, "", &why);
                self.or_trouble(refused);
            }
            for member in members {
                let (sessions, _) = lock(&self.shared.members).sessions(std::slice::from_ref(&member));
                let session = sessions.first();
                let decided = lock(&self.shared.actions).decide(Now::read(), cause, &member, session);
                match (decided, session) {
                    (Ok(false), Some(session)) => self.detach(session),
                    (Ok(_), _) => {}
                    (Err(why), _) => self.troubled(format!("an action of {name} was not taken: {why}")),
                }
            }
        }
        self.action_troubles();
    }

    /// A host reports about an action.
    pub(super) fn acted(&self, session: &Session, acted: &Acted) {
        let noted = lock(&self.shared.actions).acted(Now::read(), session, acted);
        self.or_trouble(noted);
    }

    /// A stream ended: its host has ended its actions.
    pub(super) fn left_actions(&self, session: &Session) {
        let why = format!("the stream of {} ended", session.name());
        let is_its = |_: &ActionRecord, open: &Open| open.session.number() == session.number();
        let noted = lock(&self.shared.actions).end_if(Now::read(), ActionState::Undone, &why, is_its);
        self.or_trouble(noted);
    }

    /// A program is gone or has another text: hosts end its actions.
    pub(super) fn end_actions(&self, program: &str) {
        let sessions = {
            let mut actions = lock(&self.shared.actions);
            let sessions = actions.sessions_of(program);
            let noted = actions.end_program(Now::read(), program);
            drop(actions);
            self.or_trouble(noted);
            sessions
        };
        self.hold(&sessions);
    }

    /// Says to hosts which actions go on, again and again, until it is dropped. Without this, hosts end their actions.
    pub async fn hold_actions(&self) {
        loop {
            tokio::time::sleep(HOLD).await;
            self.hold(&[]);
        }
    }

    /// Says to hosts which actions go on; these hosts hear of it also if none does.
    fn hold(&self, others: &[Session]) {
        let held = lock(&self.shared.actions).hold(Now::read());
        let held = held.unwrap_or_else(|why| {
            self.troubled(why.to_string());
            Vec::new()
        });
        let numbers: BTreeSet<_> = held.iter().map(|(session, _)| session.number()).collect();
        let others = others.iter().filter(|session| !numbers.contains(&session.number()));
        for (session, ids) in held.iter().cloned().chain(others.map(|session| (session.clone(), Vec::new()))) {
            self.send(&session, to_agent::Message::Hold(Hold { ids }));
        }
        self.action_troubles();
    }

    /// The newest actions that are kept, the oldest first; and how many refusals are not among them because there were too many.
    pub fn actions(&self, most: usize) -> (Vec<ActionRecord>, u64) {
        let actions = lock(&self.shared.actions);
        (actions.store.newest(most), actions.more_refused)
    }

    /// The number of actions of a program that were sent, and of those that were refused.
    pub(super) fn action_counts(&self, program: &str) -> (u64, u64) {
        lock(&self.shared.actions).programs.get(program).map_or((0, 0), |of| (of.acted, of.refused))
    }

    fn or_trouble(&self, noted: Result<(), ActionStoreError>) {
        if let Err(why) = noted {
            self.troubled(why.to_string());
        }
    }

    fn action_troubles(&self) {
        let troubles = lock(&self.shared.actions).store.troubles();
        troubles.into_iter().for_each(|why| self.troubled(why));
    }
}

#[cfg(test)]
mod tests;
