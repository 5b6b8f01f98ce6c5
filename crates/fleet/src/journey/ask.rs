//! Questions to one host.

use super::{JourneyError, LIMITS};
use crate::answer::{Asked, Merged};
use crate::protocol::{MemberAnswer, QueryRequest, QueryResponse, State};
use queuescope_log::{Number, Schema};
use queuescope_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// A question to one host.
#[derive(Default)]
pub struct Question {
    /// Which records.
    pub expression: String,
    /// The functions over them.
    pub select: String,
    /// What records of a group have in common.
    pub group: String,
    /// The most groups: those with the highest values of the first function.
    pub top: u64,
    /// Only records from this time on, and before that one.
    pub span: (Option<u64>, Option<u64>),
}

/// The questions for one answer.
#[derive(Default)]
pub struct Asking {
    /// The most flows that are named of each kind of culprits.
    pub flows: usize,
    /// How long to wait for each host.
    pub within: Nanos,
    /// Hosts whose answers are missing or incomplete.
    pub missing: BTreeSet<String>,
    /// What hosts said of their answers, by host and meaning.
    pub notes: BTreeMap<(String, String), String>,
}

impl Asking {
    /// A host's answer to a question.
    ///
    /// # Errors
    /// Fails if the call fails or the answer cannot be read. Hosts without an answer are among the missing.
    pub async fn rows<E>(
        &mut self,
        host: &str,
        question: Question,
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<Merged, JourneyError<E>> {
        let Question { expression, select, group, top, span: (from, to) } = question;
        let request = QueryRequest {
            expression,
            select,
            group,
            top: Some(top),
            from,
            to,
            members: vec![host.to_owned()],
            within: self.within.0 / 1_000_000,
            schema: Schema::queued().name().to_owned(),
            ..QueryRequest::default()
        };
        let asked = Asked::of_request(&request).map_err(JourneyError::Ask)?;
        let answer = ask(request).await.map_err(JourneyError::Call)?;
        self.missing.extend(answer.members.iter().filter_map(why_missing));
        for (member, note) in
            answer.members.iter().flat_map(|member| member.notes.iter().map(move |note| (member, note)))
        {
            let known = self.notes.entry((member.name.clone(), meaning_of(note))).or_default();
            // Of the same note about several times, that about most of it.
            if known.is_empty() || number_of(note) > number_of(known) {
                known.clone_from(note);
            }
        }
        Merged::decode(&answer.rows, &asked, LIMITS).map_err(JourneyError::Rows)
    }
}

impl Asking {
    /// What hosts said of their answers, as text.
    pub fn notes(&self) -> Vec<String> {
        self.notes.iter().map(|((host, _), note)| format!("{host}: {note}")).collect()
    }
}

/// A note without its number and its times.
fn meaning_of(note: &str) -> String {
    let text = note.split_once(' ').map_or(note, |(_, text)| text);
    text.split(" (from ").next().unwrap_or(text).to_owned()
}

/// The number at the start of a note.
fn number_of(note: &str) -> u64 {
    let digits: String = note.split(' ').next().into_iter().flat_map(str::chars).filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// A value as a whole number.
pub fn whole(value: Option<&Number>) -> u64 {
    match value {
        Some(Number::Unsigned(value)) => u64::try_from(*value).unwrap_or(u64::MAX),
        _ => 0,
    }
}

/// Why a host's answer is missing or incomplete, if it is.
pub fn why_missing(member: &MemberAnswer) -> Option<String> {
    let state = match member.state() {
        State::Answered if member.problem.is_empty() => return None,
        State::Answered => "incomplete",
        State::Shedding => "it does not record all packets",
        State::Absent => "absent",
        State::Late => "late",
        State::OtherVersion => "other version",
        State::Failed | State::Unspecified => "failed",
    };
    Some(format!("{} ({state})", member.name))
}
