//! The hosts that a question of a program went to, and their names in alerts.

use crate::program::Program;
use crate::protocol::State;

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
pub(super) fn shown(names: &[String]) -> String {
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
