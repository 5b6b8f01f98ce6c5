//! Questions whose answers are merged.

use super::clocks::NO_CLOCK;
use super::{AskedMembers, Coordinator, CutError, Reply};
use crate::answer::{AskError, Asked, IpcLimits, Merged, Merging, Partial, RowsError, schema_name};
use crate::locked::lock;
use crate::protocol::{MemberAnswer, Part, QueryRequest, QueryResponse, Question, State};
use queuescope_wire::Nanos;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The longest time to wait for answers.
const LONGEST: Nanos = Nanos(600_000_000_000);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The question is wrong.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The cut is not there, or void.
    #[error(transparent)]
    Cut(#[from] CutError),
    /// A bug of ours; the panic was printed.
    #[error("the coordinator failed while it merged the answers; its log has the reason")]
    Failed,
    /// The answer cannot be sent.
    #[error(transparent)]
    Rows(#[from] RowsError),
}

/// An answer, and what each member contributed to it.
#[derive(Debug)]
pub struct Answered {
    /// The joined parts.
    pub merged: Merged,
    /// A line for each member, whether it answered or not.
    pub members: Vec<MemberAnswer>,
}

impl Coordinator {
    /// Puts a question to members, and merges their answers. The result has a line for each member, whether it answered or not.
    ///
    /// # Errors
    /// Fails if the question is wrong, or if the cut that it names is not there or void.
    pub async fn query(&self, request: QueryRequest) -> Result<QueryResponse, QueryError> {
        let asked = Arc::new(Asked::of_request(&request)?);
        let Answered { merged, members } = self.answer(Arc::clone(&asked), request).await?;
        // This takes its time: other streams must not wait for it.
        let rows = tokio::task::spawn_blocking(move || merged.encode(&asked)).await;
        Ok(QueryResponse { rows: rows.map_err(|_| QueryError::Failed)??, members })
    }

    /// Puts a question that is parsed to members, and merges their answers.
    ///
    /// # Errors
    /// Fails if the cut that it names is not there or void.
    pub async fn answer(&self, asked: Arc<Asked>, request: QueryRequest) -> Result<Answered, QueryError> {
        let limits = IpcLimits { bytes: self.options().part_bytes, rows: self.options().groups as usize };
        let schema = schema_name(&request).to_owned();
        let QueryRequest { expression, select, group, from, to, cut, members, within, filter, at, .. } = request;
        let to = at.map(|at| at.saturating_add(1)).into_iter().chain(to).min();
        let within = Nanos(within.saturating_mul(1_000_000)).min(LONGEST);
        let question = Question { expression, select, group, from, to, filter, at, ..Question::default() };
        // A slow member keeps one question waiting; others go on meanwhile. The semaphores are never closed.
        let replies = {
            let _place = self.shared.waiting.acquire().await;
            self.ask(AskedMembers { question, schema, members, cut, within }).await?
        };
        let _turn = self.shared.merging.acquire().await;
        let failed_before = replies.iter().filter(|reply| reply.state == State::Failed).count();
        let merged = tokio::task::spawn_blocking(move || merged(&asked, limits, replies)).await;
        let mut answered = merged.map_err(|_| QueryError::Failed)?;
        let failed = answered.members.iter().filter(|member| member.state() == State::Failed).count();
        self.shared.counts.malformed.fetch_add(failed.saturating_sub(failed_before) as u64, Ordering::Relaxed);
        if at.is_some() {
            let known = lock(&self.shared.members);
            for member in &mut answered.members {
                member.clock = known.clock(&member.name);
                if member.clock.is_none() && matches!(member.state(), State::Answered | State::Shedding) {
                    member.notes.push(NO_CLOCK.to_owned());
                }
            }
        }
        Ok(answered)
    }
}

/// Joins the parts of members, in the order of their names: sums of fractions depend on it in their last bits.
fn merged(asked: &Asked, limits: IpcLimits, replies: Vec<Reply>) -> Answered {
    let mut merging = Merging::new(asked);
    let mut members = Vec::new();
    for reply in replies {
        let mut answer = MemberAnswer { name: reply.name, problem: reply.problem, ..MemberAnswer::default() };
        answer.set_state(reply.state);
        if let Some(part) = reply.part {
            match joined(&part, asked, limits, &mut merging) {
                Ok(()) => {
                    (answer.records, answer.left_out, answer.notes) = (part.records, part.left_out, part.notes);
                    answer.problem = [part.damage, part.lacks]
                        .into_iter()
                        .filter(|why| !why.is_empty())
                        .collect::<Vec<_>>()
                        .join("; ");
                }
                Err(why) => {
                    answer.set_state(State::Failed);
                    answer.problem = why;
                }
            }
        }
        members.push(answer);
    }
    Answered { merged: merging.finish(), members }
}

/// Joins a member's part to the answer.
fn joined(part: &Part, asked: &Asked, limits: IpcLimits, merging: &mut Merging<'_>) -> Result<(), String> {
    let partial = Partial::of_part(part, asked, limits).map_err(|error| error.to_string())?;
    merging.add(&partial).map_err(|error| error.to_string())
}
