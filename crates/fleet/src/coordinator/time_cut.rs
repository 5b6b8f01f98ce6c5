//! Cuts by time: how many records of each member have a time or an earlier one.
//!
//! Nothing is frozen, so the clocks of the members decide what is in it. How far each is off stands beside it.

use super::{AskedMembers, Coordinator, CutError};
use crate::locked::lock;
use crate::protocol::{CutMember, CutResponse, Question};
use queuescope_wire::Nanos;

impl Coordinator {
    /// A cut with what is known of the clocks of its members.
    pub(super) fn with_clocks(&self, mut cut: CutResponse) -> CutResponse {
        let known = lock(&self.shared.members);
        cut.members.iter_mut().for_each(|member| member.clock = known.clock(&member.name));
        cut
    }

    /// The records of these members, or of all if there are no names, with the time `at` or an earlier one, in nanoseconds since 1970 by the clock of each. Waits
    /// `within` for each. A member whose records are not complete by then is late.
    ///
    /// # Errors
    /// None are expected.
    pub async fn cut_at(&self, names: Vec<String>, at: u64, within: Nanos) -> Result<CutResponse, CutError> {
        let question = Question { to: Some(at.saturating_add(1)), at: Some(at), ..Question::default() };
        let replies = self.count(AskedMembers { question, members: names, within, ..AskedMembers::default() }).await?;
        let known = lock(&self.shared.members);
        let members = replies.into_iter().map(|(reply, position)| {
            let notes = reply.part.map(|part| part.notes.join("; ")).filter(|_| reply.problem.is_empty());
            let (clock, schema) = (known.clock(&reply.name), known.schema(&reply.name));
            let problem = notes.unwrap_or(reply.problem);
            let mut member =
                CutMember { name: reply.name, position, at, clock, schema, problem, ..CutMember::default() };
            member.set_state(reply.state);
            member
        });
        Ok(CutResponse { members: members.collect(), ..CutResponse::default() })
    }
}
