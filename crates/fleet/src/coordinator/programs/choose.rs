//! The members that the questions of a program go to: by their names, and by what they saw.

use super::super::{AskedMembers, Coordinator};
use crate::program::{Ask, Program, Run, Saw};
use crate::protocol::{Question, State};
use queuescope_log::Schema;
use queuescope_wire::Nanos;

/// The most hosts that an alert names.
const MOST: usize = 16;

/// The members that a question goes to.
#[derive(Debug, Default)]
pub(super) struct ChosenHosts {
    pub names: Vec<String>,
    /// Those that saw what the question wants, if it wants that.
    pub seen_at: Option<Vec<String>>,
    /// Those that did not say completely whether they saw it, with the reason. They are not asked, and the answer misses them.
    pub unknown: Vec<String>,
}

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

/// The hosts that saw what questions of these indices want, for people; empty if none wants that. With several such questions, each has its own hosts.
pub(super) fn seen_at(program: &Program, chosen: &[ChosenHosts], questions: &[usize]) -> String {
    let of = |question: &usize| {
        let seen_at = chosen.get(*question)?.seen_at.as_ref().filter(|names| !names.is_empty())?;
        Some((program.asks().get(*question)?.name.as_str(), shown(seen_at)))
    };
    let all: Vec<_> = questions.iter().filter_map(of).collect();
    match &all[..] {
        [] => String::new(),
        [(_, first), others @ ..] if others.iter().all(|(_, other)| other == first) => format!("seen at {first}"),
        all => all.iter().map(|(name, hosts)| format!("{name} seen at {hosts}")).collect::<Vec<_>>().join("; "),
    }
}

/// Names, of which the last ones may be left out.
fn shown(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST);
    let text = names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

/// A state in an alert.
pub(super) fn state_text(state: State) -> &'static str {
    match state {
        State::Answered => "incomplete",
        State::Shedding => "shedding",
        State::Absent => "absent",
        State::Late => "late",
        State::OtherVersion => "other version",
        State::Failed | State::Unspecified => "failed",
    }
}
