//! The members that the questions of a program go to: by their names, and by what they saw.

use super::super::{AskedMembers, Coordinator};
use super::hosts::{ChosenHosts, shown, state_text};
use crate::program::{Ask, Program, Run, Saw};
use crate::protocol::{Question, State};
use queuescope_log::Schema;
use queuescope_wire::Nanos;

impl Coordinator {
    /// The members that each question goes to.
    pub(super) async fn choose(&self, program: &Program, run: &Run, at: Nanos) -> Result<Vec<ChosenHosts>, String> {
        let choices: Vec<_> = program
            .asks()
            .iter()
            .map(|ask| {
                let (coordinator, names, hosts, run) = (self.clone(), self.names(ask), ask.hosts.clone(), run.clone());
                tokio::spawn(async move {
                    let names = names?;
                    match hosts.saw {
                        None => Ok(ChosenHosts { names, ..ChosenHosts::default() }),
                        Some(saw) => coordinator.that_saw(names, &saw, &run, at).await,
                    }
                })
            })
            .collect();
        let mut chosen = Vec::new();
        for (ask, choice) in program.asks().iter().zip(choices) {
            let hosts =
                choice.await.map_err(|_| "choosing hosts failed; the coordinator's log has the reason".to_owned())?;
            chosen.push(hosts.map_err(|why| format!("the hosts of the question {}: {why}", ask.name))?);
        }
        Ok(chosen)
    }

    /// Those of some members that saw what is wanted. A host that found nothing counts as one that did not see it only if its answer is complete.
    async fn that_saw(&self, names: Vec<String>, saw: &Saw, run: &Run, at: Nanos) -> Result<ChosenHosts, String> {
        let last = saw.last.or(run.last);
        let question = Question {
            expression: saw.expression.clone(),
            from: last.map(|last| at.0.saturating_sub(last.0)),
            to: last.map(|_| at.0.saturating_add(1)),
            ..Question::default()
        };
        let asked = AskedMembers { question, members: names, within: run.within, ..AskedMembers::default() };
        let replies = self.count(asked).await.map_err(|why| why.to_string())?;
        let (mut names, mut unknown) = (Vec::new(), Vec::new());
        for (reply, packets) in replies {
            let has_answered = matches!(reply.state, State::Answered | State::Shedding);
            if has_answered && packets > 0 {
                names.push(reply.name);
            } else if reply.state != State::Answered {
                unknown.push(format!("{} (unknown whether it saw this: {})", reply.name, state_text(reply.state)));
            }
        }
        Ok(ChosenHosts { seen_at: Some(names.clone()), names, unknown })
    }

    /// The members that a question names, at least one. Programs ask about captured packets, so hosts with other records are not among them.
    fn names(&self, ask: &Ask) -> Result<Vec<String>, String> {
        let members = self.members();
        let packets = Schema::packet().name();
        let is_capture = |name: &str| {
            let member = members.iter().find(|member| member.name == name);
            member.is_none_or(|member| member.schema.is_empty() || member.schema == packets)
        };
        let named = ask.hosts.named.of(members.iter().map(|member| member.name.as_str()));
        let (names, others): (Vec<_>, Vec<_>) = named.into_iter().partition(|name| is_capture(name));
        // A question without names would go to all members.
        match (names.is_empty(), others.is_empty()) {
            (false, _) => Ok(names),
            (true, true) => Err("no host has a name that it asks for".to_owned()),
            (true, false) => Err(format!(
                "programs ask only about packets (`{packets}`), and these hosts record something else: {}",
                shown(&others)
            )),
        }
    }
}
