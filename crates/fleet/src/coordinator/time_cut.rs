//! Cuts by time: how many records of each member have a time or an earlier one.
//!
//! Nothing is frozen, so the clocks of the members decide what is in it. How far each is off stands beside it.

use super::clocks::NO_CLOCK;
use super::{AskedMembers, Coordinator, CutError};
use crate::locked::lock;
use crate::protocol::{CutMember, CutResponse, Question, State};
use queuescope_wire::Nanos;

/// What a cut lacks of a member.
const SHEDDING: &str = "it does not record all packets";

impl Coordinator {
    /// A cut with what is known of its members: their clocks, and which of them do not record all packets.
    pub(super) fn with_states(&self, mut cut: CutResponse) -> CutResponse {
        let known = lock(&self.shared.members);
        for member in &mut cut.members {
            member.clock = known.clock(&member.name);
            if member.state() == State::Answered && known.state(&member.name) == State::Shedding {
                member.lacks = SHEDDING.to_owned();
            }
        }
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
            let is_in = matches!(reply.state, State::Answered | State::Shedding);
            let (clock, schema) = (known.clock(&reply.name), known.schema(&reply.name));
            let mut lacks = vec![(reply.state == State::Shedding).then(|| SHEDDING.to_owned())];
            let mut problems = vec![Some(reply.problem)];
            if let Some(part) = reply.part.filter(|_| is_in) {
                lacks.push(Some(part.lacks));
                problems.extend(part.notes.into_iter().map(Some));
                problems.push(clock.is_none().then(|| NO_CLOCK.to_owned()));
            }
            let joined = |all: Vec<Option<String>>| {
                let all: Vec<_> = all.into_iter().flatten().filter(|why| !why.is_empty()).collect();
                all.join("; ")
            };
            let (lacks, problem) = (joined(lacks), joined(problems));
            let mut member =
                CutMember { name: reply.name, position, at, clock, schema, problem, lacks, ..CutMember::default() };
            // It is in the cut with the records that it has.
            member.set_state(if is_in { State::Answered } else { reply.state });
            member
        });
        Ok(CutResponse { members: members.collect(), ..CutResponse::default() })
    }
}
