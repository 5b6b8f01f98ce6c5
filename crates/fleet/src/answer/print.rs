//! An answer for people and programs: its rows, and what each host contributed.

use super::asked::Asked;
use super::merge::Merged;
use crate::protocol::{ClockOffset, MemberAnswer, State};
use queuescope_recording::query::{Foot, Form, share, write_groups};
use queuescope_report::format::count;
use queuescope_report::model::ClockError;
use queuescope_wire::Nanos;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes the rows of an answer as `queuescope query` writes those of one input, except that text has points in time as dates; and below them what is
/// missing from which host. With CSV, `note` receives the notes. Returns why the answer is incomplete, if it is.
///
/// # Errors
/// Returns the first write error.
pub fn write_answer(
    asked: &Asked,
    merged: &Merged,
    members: &[MemberAnswer],
    form: Form,
    out: &mut dyn Write,
    note: &mut dyn FnMut(&str),
) -> io::Result<Option<String>> {
    write_groups(asked.selection(), &merged.groups, merged.packets, asked.schema(), form, out)?;
    let answered = members.iter().filter(|member| has_answered(member.state()));
    let input: Vec<_> = answered.map(|member| member.name.as_str()).collect();
    let mut skipped: BTreeMap<String, u64> = BTreeMap::new();
    let (mut notes, mut damage, mut clocks) = (Vec::new(), Vec::new(), BTreeMap::new());
    for member in members {
        let name = printable(&member.name);
        notes.extend(member.notes.iter().map(|note| format!("{name}: {}", printable(note))));
        if let Some(clock) = &member.clock {
            notes.push(format!("{name}: its clock is {}", clock_text(clock)));
            clocks.insert(name.clone(), ClockError { least_ns: clock.least, most_ns: clock.most });
        }
        if let Some(why) = why_incomplete(member) {
            notes.push(format!("{name}: {why}"));
            damage.push(format!("{name}: {why}"));
            *skipped.entry("members".to_owned()).or_default() += 1;
        }
    }
    if members.is_empty() {
        damage.push(format!("no host has records of `{}`", asked.schema().name()));
        notes.push(format!("no host of the fleet has records of `{}`, so there is no answer", asked.schema().name()));
    }
    if merged.left_out > 0 {
        skipped.insert("groups".to_owned(), merged.left_out);
    }
    let hosts = if members.len() == 1 { "host" } else { "hosts" };
    let of = share(input.len() as u64, Some(members.len() as u64));
    let damage = (!damage.is_empty()).then(|| damage.join("; "));
    let foot = Foot {
        head: format!("{} packets of {of} {hosts}", share(merged.packets, Some(merged.records))),
        notes,
        input: input.join(", "),
        format: "fleet".to_owned(),
        records: Some(merged.records),
        packets: merged.packets,
        skipped,
        damage: damage.clone(),
        clocks,
        estimates: merged
            .groups
            .iter()
            .flat_map(|group| asked.selection().estimates(group))
            .map(str::to_owned)
            .collect(),
        ..Foot::default()
    };
    foot.write(form, out, note)?;
    Ok(damage)
}

/// How far a clock is ahead of the coordinator's, for people: `1.20ms ahead of the coordinator's, give or take 0.15ms`.
pub fn clock_text(clock: &ClockOffset) -> String {
    let middle = (i128::from(clock.least) + i128::from(clock.most)).div_euclid(2);
    let half = (i128::from(clock.most) - i128::from(clock.least) + 1).div_euclid(2);
    let nanos = |value: i128| Nanos(u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX));
    let side = if middle < 0 { "behind" } else { "ahead of" };
    format!("{} {side} the coordinator's, give or take {}", nanos(middle), nanos(half))
}

/// Whether a member's part is in the answer.
fn has_answered(state: State) -> bool {
    matches!(state, State::Answered | State::Shedding)
}

/// Why a member's part is missing or incomplete, if it is.
fn why_incomplete(member: &MemberAnswer) -> Option<String> {
    let state = match member.state() {
        State::Answered => None,
        State::Unspecified => Some("its state is not known"),
        State::Absent => Some("it is not connected"),
        State::Late => Some("it did not answer in time"),
        State::Failed => Some("it answered with an error"),
        State::OtherVersion => Some("it has another version"),
        State::Shedding => Some("it does not record all packets"),
    };
    let left_out = (member.left_out > 0).then(|| format!("{} groups are missing", count(member.left_out)));
    let problem = (!member.problem.is_empty()).then(|| printable(&member.problem));
    let all: Vec<_> = state.map(str::to_owned).into_iter().chain(problem).chain(left_out).collect();
    (!all.is_empty()).then(|| all.join(": "))
}

/// A text from another host, with escapes so that it cannot control the terminal. Lines stay lines: errors point at places in a text.
fn printable(text: &str) -> String {
    let is_harmless = |c: char| !c.is_control() || c == '\n';
    text.chars().map(|c| if is_harmless(c) { c.to_string() } else { c.escape_default().to_string() }).collect()
}
