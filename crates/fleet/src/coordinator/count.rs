//! Counts of members: a question to each of them, whose answers are not merged.

use super::{AskedMembers, Coordinator, CutError, Reply};
use crate::answer::{Asked, IpcLimits, Partial, Texts};
use crate::protocol::State;
use queuescope_log::Schema;

/// The most bytes of a count.
const LIMITS: IpcLimits = IpcLimits { bytes: 1 << 16, rows: 1 };

impl Coordinator {
    /// Asks members how many of their records match: for each its reply, and the number if it answered. The functions of the question are replaced. An answer that cannot be
    /// read, or is incomplete, is a failure.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub(super) async fn count(&self, mut asked: AskedMembers) -> Result<Vec<(Reply, u64)>, CutError> {
        asked.question.select = "count".to_owned();
        asked.question.group.clear();
        let replies = self.ask(asked).await?;
        // A count has the same form for records of each schema.
        let count = Asked::new(&Texts { select: "count", ..Texts::default() }, Schema::packet());
        let Ok(count) = count else { return Ok(Vec::new()) };
        let counted = |mut reply: Reply| {
            let Some(part) = &reply.part else { return (reply, 0) };
            let problem = match Partial::of_part(part, &count, LIMITS) {
                Ok(partial) if partial.damage.is_none() => return (reply, partial.packets),
                Ok(partial) => partial.damage.unwrap_or_default(),
                Err(error) => error.to_string(),
            };
            (reply.state, reply.problem) = (State::Failed, problem);
            (reply, 0)
        };
        Ok(replies.into_iter().map(counted).collect())
    }
}
