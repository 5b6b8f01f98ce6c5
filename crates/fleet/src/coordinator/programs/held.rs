//! The groups with which the conditions of a program hold, and the alerts about them.

use super::hosts::{ChosenHosts, seen_at, state_text};
use crate::answer::Merged;
use crate::program::{Held, Program, Raise};
use crate::protocol::{Alert, MemberAnswer, State};
use queuescope_recording::query::keys_text;
use queuescope_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The most alerts that a condition raises in a run; one more has the number of the others.
const MOST: usize = 16;
/// The longest detail of an alert, in characters.
const LONGEST: usize = 1_024;

/// What a run found.
#[derive(Default)]
pub(super) struct Found {
    /// For each condition the groups with which it holds; `None`: it was not decided.
    pub held: Vec<Option<Vec<HeldAlert>>>,
    pub trouble: String,
}

impl Found {
    /// A run that decided nothing.
    pub fn failed(trouble: String) -> Self {
        Self { trouble, ..Self::default() }
    }

    /// What the answers to the questions of a program show. `chosen` has the hosts that each question went to. An alert names the missing hosts
    /// of the questions on which its condition rests, and no others.
    pub fn of(
        name: &str,
        program: &Program,
        chosen: &[ChosenHosts],
        answers: &[(Merged, Vec<MemberAnswer>)],
        at: Nanos,
    ) -> Self {
        let merged: Vec<_> = answers.iter().map(|(merged, _)| merged).collect();
        let mut undecided = BTreeSet::new();
        let mut of_raise = |raise: &Raise| {
            let questions = raise.condition.questions();
            let missing = missing(&questions, chosen, answers);
            if raise.condition.needs_all() && !missing.is_empty() {
                undecided.extend(missing);
                return None;
            }
            let (seen_at, without) = (seen_at(program, chosen, &questions), without(&missing));
            let alert = |Held { keys, value }: Held| {
                let mut hasher = DefaultHasher::new();
                keys.hash(&mut hasher);
                let group = keys.clone();
                let (about, packets) = match keys {
                    Some((question, keys)) => {
                        let asked = &program.asks()[question].asked;
                        (keys_text(asked.selection(), &(keys, Vec::new()), asked.schema()), merged[question].packets)
                    }
                    None => (String::new(), questions.first().map_or(0, |question| merged[*question].packets)),
                };
                let parts: Vec<_> =
                    [about, seen_at.clone(), without.clone()].into_iter().filter(|part| !part.is_empty()).collect();
                let (trigger, detail) =
                    (format!("{name}.{}", raise.name), parts.join("; ").chars().take(LONGEST).collect());
                let alert = Alert { trigger, at: at.0, value: value.to_f64(), packets, detail, ..Alert::default() };
                HeldAlert { digest: hasher.finish(), alert, group }
            };
            Some(raise.condition.held(&merged).into_iter().map(alert).collect())
        };
        let held: Vec<_> = program.raises().iter().map(&mut of_raise).collect();
        let unknown: BTreeSet<_> = chosen.iter().flat_map(|hosts| &hosts.unknown).cloned().collect();
        let trouble = if !undecided.is_empty() {
            format!("conditions that need all hosts were not evaluated, {}", without(&undecided))
        } else if !unknown.is_empty() {
            format!("questions were put {}", without(&unknown))
        } else {
            String::new()
        };
        Self { held, trouble }
    }
}

/// A group with which a condition holds: its alert, and what distinguishes it from others.
pub(super) struct HeldAlert {
    pub digest: u64,
    pub alert: Alert,
    /// The question whose group it is, and the group's keys.
    pub group: Option<(usize, Vec<u128>)>,
}

/// The groups with which conditions held in the last run: there is an alert when one comes, and not in each run. By the indices of conditions.
#[derive(Debug, Default)]
pub(super) struct LastHeld {
    held: BTreeMap<usize, BTreeSet<u64>>,
}

impl LastHeld {
    pub fn clear(&mut self) {
        self.held.clear();
    }

    /// Takes what holds now. Returns the alerts about what did not hold before, and the number of conditions that were not decided.
    pub fn replace(&mut self, now: Vec<Option<Vec<HeldAlert>>>) -> (Vec<(usize, HeldAlert)>, u64) {
        let (mut alerts, mut undecided) = (Vec::new(), 0);
        for (index, now) in now.into_iter().enumerate() {
            let Some(now) = now else {
                undecided += 1;
                continue;
            };
            let before = self.held.insert(index, now.iter().map(|held| held.digest).collect()).unwrap_or_default();
            let mut new: Vec<_> = now.into_iter().filter(|held| !before.contains(&held.digest)).collect();
            let more = new.len().saturating_sub(MOST);
            if more > 0 {
                new.truncate(MOST + 1);
                if let Some(last) = new.last_mut() {
                    (last.alert.value, last.alert.packets) = (more as f64, 0);
                    last.alert.detail = format!("{more} more groups");
                    last.group = None;
                }
            }
            alerts.extend(new.into_iter().map(|held| (index, held)));
        }
        (alerts, undecided)
    }

    /// An alert could not be stored: the next run raises it again, if it still holds then.
    pub fn forget(&mut self, index: usize, digest: u64) {
        if let Some(held) = self.held.get_mut(&index) {
            held.remove(&digest);
        }
    }
}

/// The hosts that the answers to some questions lack, with the reasons.
fn missing(questions: &[usize], chosen: &[ChosenHosts], answers: &[(Merged, Vec<MemberAnswer>)]) -> BTreeSet<String> {
    let of_answers = questions.iter().filter_map(|question| answers.get(*question));
    let of_answers = of_answers.flat_map(|(_, members)| members).filter_map(why_missing);
    let unknown = questions.iter().filter_map(|question| chosen.get(*question)).flat_map(|hosts| &hosts.unknown);
    of_answers.chain(unknown.cloned()).collect()
}

fn without(missing: &BTreeSet<String>) -> String {
    if missing.is_empty() {
        return String::new();
    }
    format!("without {}", missing.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
}

/// Why a member's part of an answer is missing or incomplete, if it is.
fn why_missing(member: &MemberAnswer) -> Option<String> {
    let is_complete = member.state() == State::Answered && member.problem.is_empty() && member.left_out == 0;
    (!is_complete).then(|| format!("{} ({})", member.name, state_text(member.state())))
}
