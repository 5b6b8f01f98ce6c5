//! Cuts by time: how many records of each member have a time or an earlier one.
//!
//! Nothing is frozen, so the clocks of the members decide what is in it. How far each is off stands beside it.

use super::{AskedMembers, Coordinator, CutError};
use crate::answer::{Asked, IpcLimits, Partial, Texts};
use crate::locked::lock;
use crate::protocol::{CutMember, CutResponse, Question, State};
use queuescope_log::Schema;
use queuescope_wire::Nanos;

/// What members are asked: each counts its records.
const COUNT: Texts<'static> = Texts { expression: "", select: "count", group: "", top: None };
/// The most bytes of a count.
const LIMITS: IpcLimits = IpcLimits { bytes: 1 << 16, rows: 1 };

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
        let question = Question {
            select: COUNT.select.to_owned(),
            to: Some(at.saturating_add(1)),
            at: Some(at),
            ..Question::default()
        };
        let asked = AskedMembers { question, members: names, within, ..AskedMembers::default() };
        let replies = self.ask(asked).await?;
        // A count has the same form for records of each schema.
        let asked = Asked::new(&COUNT, Schema::packet()).map_err(|_| CutError::Unknown(0))?;
        let known = lock(&self.shared.members);
        let members = replies.into_iter().map(|reply| {
            let (mut state, mut problem, mut position) = (reply.state, reply.problem, 0);
            if let Some(part) = reply.part {
                problem = part.notes.join("; ");
                match Partial::of_part(&part, &asked, LIMITS) {
                    Ok(part) => position = part.packets,
                    Err(error) => (state, problem) = (State::Failed, error.to_string()),
                }
                if !part.damage.is_empty() {
                    (state, problem) = (State::Failed, part.damage);
                }
            }
            let (clock, schema) = (known.clock(&reply.name), known.schema(&reply.name));
            let mut member =
                CutMember { name: reply.name, position, at, clock, schema, problem, ..CutMember::default() };
            member.set_state(state);
            member
        });
        Ok(CutResponse { members: members.collect(), ..CutResponse::default() })
    }
}
