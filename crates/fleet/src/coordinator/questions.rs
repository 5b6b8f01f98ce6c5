//! Questions to many members, each with a deadline of its own.

use super::cuts::MadeCut;
use super::{Coordinator, CutError, Session};
use crate::locked::lock;
use crate::protocol::{Answer, Part, Question, State, answer, to_agent};
use queuescope_wire::Nanos;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Questions whose answers are awaited.
#[derive(Debug, Default)]
pub struct Questions {
    last: u64,
    open: BTreeMap<u64, Open>,
    /// Answers that nobody waited for.
    unasked: u64,
}

#[derive(Debug)]
struct Open {
    /// The streams that have not answered.
    awaited: BTreeMap<u64, String>,
    replies: UnboundedSender<Reply>,
}

/// What a member replied, or that it did not.
#[derive(Debug)]
pub struct Reply {
    /// The member.
    pub name: String,
    /// What became of the question there.
    pub state: State,
    /// Its part of the result, if it answered.
    pub part: Option<Part>,
    /// Why there is no part.
    pub problem: String,
}

/// A question, and the members that get it.
#[derive(Debug, Clone, Default)]
pub struct AskedMembers {
    /// The question; its number and position are set for each.
    pub question: Question,
    /// The schema of the records that it is about: members with others are not asked. Empty: all are.
    pub schema: String,
    /// Names of members; none: all, or all of the cut.
    pub members: Vec<String>,
    /// The number of a cut.
    pub cut: Option<u64>,
    /// How long to wait for each answer.
    pub within: Nanos,
}

impl Questions {
    pub fn answer(&mut self, session: &Session, answer: Answer) {
        let open = self.open.get_mut(&answer.number);
        let Some((name, open)) = open.and_then(|open| Some((open.awaited.remove(&session.number())?, open))) else {
            self.unasked += 1;
            return;
        };
        let reply = match answer.result {
            Some(answer::Result::Part(part)) => {
                Reply { name, state: State::Answered, part: Some(part), problem: String::new() }
            }
            Some(answer::Result::Error(problem)) => Reply { name, state: State::Failed, part: None, problem },
            None => {
                let problem = "its answer is empty: it may be of a later version".to_owned();
                Reply { name, state: State::Failed, part: None, problem }
            }
        };
        // The caller may have gone away.
        let _ = open.replies.send(reply);
        self.close(answer.number);
    }

    /// Answers that came although nobody waited for them: too late, or without a question.
    pub fn unasked(&self) -> u64 {
        self.unasked
    }

    pub fn gone(&mut self, session: &Session) {
        let mut done = Vec::new();
        for (number, open) in &mut self.open {
            if let Some(name) = open.awaited.remove(&session.number()) {
                let problem = "its stream ended before it answered".to_owned();
                let _ = open.replies.send(Reply { name, state: State::Absent, part: None, problem });
                done.push(*number);
            }
        }
        done.into_iter().for_each(|number| self.close(number));
    }

    /// A question goes out on these streams. Returns its number.
    fn open(&mut self, sessions: &[Session], replies: UnboundedSender<Reply>) -> u64 {
        self.last += 1;
        let awaited: BTreeMap<_, _> =
            sessions.iter().map(|session| (session.number(), session.name().to_owned())).collect();
        // With nobody to wait for, the sender of replies ends here, and so does the question.
        if !awaited.is_empty() {
            self.open.insert(self.last, Open { awaited, replies });
        }
        self.last
    }

    /// Forgets a question that all have answered.
    fn close(&mut self, number: u64) {
        if self.open.get(&number).is_some_and(|open| open.awaited.is_empty()) {
            self.open.remove(&number);
        }
    }

    /// Ends a question whose time is over.
    fn late(&mut self, number: u64) -> Vec<Reply> {
        let late = self.open.remove(&number).into_iter().flat_map(|open| open.awaited.into_values());
        late.map(|name| Reply {
            name,
            state: State::Late,
            part: None,
            problem: "it may be stopped, busy or cut off".to_owned(),
        })
        .collect()
    }
}

impl Coordinator {
    /// Puts a question to members. Returns a reply for each of them, sorted by their names, when all have replied or the time is over.
    ///
    /// # Errors
    /// Fails if the cut that it names is not there, or void.
    pub async fn ask(&self, asked: AskedMembers) -> Result<Vec<Reply>, CutError> {
        let cut = asked.cut.map(|number| self.made_cut(number)).transpose()?;
        let (sessions, mut replies) = self.asked(asked.members, &asked.schema, cut.as_deref());
        let (to, mut come) = unbounded_channel();
        let number = lock(&self.shared.questions).open(&sessions, to);
        let _open = OpenQuestion { coordinator: self, number };
        for session in &sessions {
            let before = cut.as_ref().and_then(|cut| cut.positions.get(session.name())).map(|at| at.records);
            let (groups, within) = (self.shared.options.groups, asked.within.0 / 1_000_000);
            let question = Question { number, before, groups, within, ..asked.question.clone() };
            self.send(session, to_agent::Message::Question(question));
        }
        let all = async {
            while let Some(reply) = come.recv().await {
                replies.push(reply);
            }
        };
        if tokio::time::timeout(Duration::from_nanos(asked.within.0), all).await.is_err() {
            let late = lock(&self.shared.questions).late(number);
            // Replies that came in this moment count.
            while let Ok(reply) = come.try_recv() {
                replies.push(reply);
            }
            replies.extend(late);
        }
        if let Some(at) = asked.question.at {
            replies.iter_mut().for_each(|reply| check_complete(reply, at));
        }
        self.note_states(&mut replies);
        self.shared.counts.questions.fetch_add(1, Ordering::Relaxed);
        replies.iter().for_each(|reply| self.shared.counts.replied(reply.state));
        replies.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(replies)
    }

    /// The streams that get a question to members with these names, or to all members or those of a cut if there are no names; and the
    /// replies for the others.
    fn asked(&self, names: Vec<String>, schema: &str, cut: Option<&MadeCut>) -> (Vec<Session>, Vec<Reply>) {
        let not = |name: &str, state, problem: &str| Reply {
            name: name.to_owned(),
            state,
            part: None,
            problem: problem.to_owned(),
        };
        let mut replies = Vec::new();
        let names = match cut {
            Some(cut) if names.is_empty() => {
                replies.extend(cut.missing.iter().map(|(name, state)| not(name, *state, "it is not in the cut")));
                let names: Vec<_> = cut.positions.keys().cloned().collect();
                if names.is_empty() {
                    return (Vec::new(), replies);
                }
                names
            }
            _ => names,
        };
        let (mut sessions, mut absent) = lock(&self.shared.members).sessions(&names);
        if !schema.is_empty() {
            let is_named = |name: &str| names.iter().any(|named| named == name);
            sessions.retain(|session| {
                // An agent that did not say may have them.
                let is_right = session.schema().is_empty() || session.schema() == schema;
                if !is_right && is_named(session.name()) {
                    let problem =
                        format!("it has records of `{}`, and the question is about `{schema}`", session.schema());
                    replies.push(not(session.name(), State::Failed, &problem));
                }
                is_right
            });
            let members = lock(&self.shared.members);
            absent.retain(|name| is_named(name) || members.may_have(name, schema));
        }
        replies.extend(absent.iter().map(|name| not(name, State::Absent, "")));
        if let Some(cut) = cut {
            sessions.retain(|session| {
                let problem = match cut.positions.get(session.name()) {
                    None => "it is not in the cut",
                    Some(at) if at.store != session.store() => "it records to another folder since the cut",
                    Some(_) => return true,
                };
                replies.push(not(session.name(), State::Failed, problem));
                false
            });
        }
        (sessions, replies)
    }

    /// Members that do not record all packets, and those of another version, have these states.
    fn note_states(&self, replies: &mut [Reply]) {
        let members = lock(&self.shared.members);
        for reply in replies {
            match (reply.state, members.state(&reply.name)) {
                (State::Answered, State::Shedding) => reply.state = State::Shedding,
                (State::Absent, State::OtherVersion) => reply.state = State::OtherVersion,
                _ => {}
            }
        }
    }
}

/// A member whose records up to a time are not complete is late; one that does not know is noted.
fn check_complete(reply: &mut Reply, at: u64) {
    let Some(part) = &mut reply.part else { return };
    match part.complete {
        Some(complete) if complete <= at => {
            reply.part = None;
            reply.state = State::Late;
            reply.problem = if complete == 0 {
                "its records up to that time are not complete yet".to_owned()
            } else {
                let missing = Nanos(at - complete + 1);
                format!("its records up to that time are not complete yet: the last {missing} are missing")
            };
        }
        Some(_) => {}
        None => part.notes.push("its source does not say whether its records up to that time are complete".to_owned()),
    }
}

/// A question whose caller waits: if that goes away, nothing is kept of it.
struct OpenQuestion<'a> {
    coordinator: &'a Coordinator,
    number: u64,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        lock(&self.coordinator.shared.questions).open.remove(&self.number);
    }
}
