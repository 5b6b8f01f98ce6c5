//! Questions to many members, each with a deadline of its own.

use super::{Coordinator, Session};
use crate::locked::lock;
use crate::protocol::{Answer, Part, Question, State, answer, to_agent};
use queuescope_wire::Nanos;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Questions whose answers are awaited.
#[derive(Debug, Default)]
pub struct Questions {
    last: u64,
    open: BTreeMap<u64, Open>,
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
    /// Names of members; none: all, or all of the cut.
    pub members: Vec<String>,
    /// The number of a cut.
    pub cut: Option<u64>,
    /// How long to wait for each answer.
    pub within: Nanos,
}

impl Questions {
    pub fn answer(&mut self, session: &Session, answer: Answer) {
        let Some(open) = self.open.get_mut(&answer.number) else { return };
        let Some(name) = open.awaited.remove(&session.number()) else { return };
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
        // Whoever asked may have gone away.
        let _ = open.replies.send(reply);
        self.close(answer.number);
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
            problem: "it did not answer in time: it may be stopped, busy or cut off".to_owned(),
        })
        .collect()
    }
}

impl Coordinator {
    /// Puts a question to members, and passes each reply to `each` as it comes; returns when all have replied or their time is over. If
    /// `each` returns `false`, no more is awaited.
    ///
    /// # Errors
    /// Fails if the cut that it names is not there, or void.
    pub async fn ask(&self, asked: AskedMembers, mut each: impl FnMut(Reply) -> bool) -> Result<(), super::CutError> {
        let cut = asked.cut.map(|number| self.made_cut(number)).transpose()?;
        let names = match &cut {
            Some(cut) if asked.members.is_empty() => cut.positions.keys().cloned().collect(),
            _ => asked.members,
        };
        let (sessions, absent) = match &cut {
            // A cut of nobody.
            Some(_) if names.is_empty() => Default::default(),
            _ => lock(&self.shared.members).sessions(&names),
        };
        let not = |name: String, state, problem: &str| Reply { name, state, part: None, problem: problem.to_owned() };
        for name in absent {
            if !each(not(name, State::Absent, "it has no open stream")) {
                return Ok(());
            }
        }
        let (replies, mut come) = unbounded_channel();
        let (sessions, outside): (Vec<_>, Vec<_>) = sessions
            .into_iter()
            .partition(|session| cut.as_ref().is_none_or(|cut| cut.positions.contains_key(session.name())));
        for session in outside {
            if !each(not(session.name().to_owned(), State::Absent, "it is not in the cut")) {
                return Ok(());
            }
        }
        let number = {
            let mut questions = lock(&self.shared.questions);
            questions.last += 1;
            let awaited: BTreeMap<_, _> =
                sessions.iter().map(|session| (session.number(), session.name().to_owned())).collect();
            let number = questions.last;
            if !awaited.is_empty() {
                questions.open.insert(number, Open { awaited, replies });
            }
            number
        };
        let _open = OpenQuestion { coordinator: self, number };
        for session in &sessions {
            let before = cut.as_ref().and_then(|cut| cut.positions.get(session.name())).map(|(position, _)| *position);
            let groups = self.shared.options.groups;
            let question =
                Question { number, before, groups, within: asked.within.0 / 1_000_000, ..asked.question.clone() };
            self.send(session, to_agent::Message::Question(question));
        }
        let until = tokio::time::sleep(Duration::from_nanos(asked.within.0));
        tokio::pin!(until);
        loop {
            tokio::select! {
                biased;
                reply = come.recv() => match reply {
                    Some(reply) => if !each(reply) { return Ok(()) },
                    None => return Ok(()),
                },
                () = &mut until => {
                    let late = lock(&self.shared.questions).late(number);
                    // Replies that came in this moment count.
                    while let Ok(reply) = come.try_recv() {
                        if !each(reply) { return Ok(()) }
                    }
                    late.into_iter().all(each);
                    return Ok(());
                }
            }
        }
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
