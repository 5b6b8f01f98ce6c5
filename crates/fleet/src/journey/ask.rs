//! Questions to one host.

use super::{JourneyError, JourneyRequest, LIMITS};
use crate::answer::{Asked, Merged};
use crate::protocol::{MemberAnswer, QueryRequest, QueryResponse, State};
use queuescope_log::{Number, Schema};
use std::collections::BTreeSet;

/// A question to one host.
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

/// The questions about one packet.
pub struct Asking<'a> {
    /// The request.
    pub request: &'a JourneyRequest,
    /// Hosts whose answers are missing or incomplete.
    pub missing: BTreeSet<String>,
}

impl Asking<'_> {
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
            within: self.request.within.0 / 1_000_000,
            schema: Schema::queued().name().to_owned(),
            ..QueryRequest::default()
        };
        let asked = Asked::of_request(&request).map_err(JourneyError::Ask)?;
        let answer = ask(request).await.map_err(JourneyError::Call)?;
        self.missing.extend(answer.members.iter().filter_map(why_missing));
        Merged::decode(&answer.rows, &asked, LIMITS).map_err(JourneyError::Rows)
    }
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
