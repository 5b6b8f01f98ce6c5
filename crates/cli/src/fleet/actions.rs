//! `queuescope fleet actions`: what control programs did on hosts.

use super::{table, with_client};
use crate::args::FleetActions;
use crate::outcome::{Outcome, print};
use anyhow::Result;
use queuescope_fleet::protocol::{ActState, ActionState};
use queuescope_report::format::count;
use serde_json::{Value, json};
use std::io::Write;

/// Runs `fleet actions`.
///
/// # Errors
/// Fails if the coordinator cannot be reached, or if it refuses the call.
pub fn run(args: &FleetActions) -> Result<Outcome> {
    let answer = with_client(&args.access, async |client| Ok(client.actions(args.last.unwrap_or(0)).await?))?;
    let (actions, more) = (answer.actions, answer.more_refused);
    let lines = |out: &mut dyn Write| actions.iter().try_for_each(|action| writeln!(out, "{}", as_json(action)));
    print(args.json, lines, |out| {
        let rows = actions.iter().map(|action| {
            let ActionState { id, program, member, flow, action: what, reason, touched, packets, .. } = action.clone();
            let member = if member.is_empty() { "-".to_owned() } else { member };
            let reason = if reason.is_empty() { action.cause.clone() } else { reason };
            let touched = format!("{} of {}", count(touched), count(packets));
            [id.to_string(), time(action.at), program, member, what, flow, state(action), touched, reason]
        });
        table(&["id", "time", "program", "host", "action", "flow", "state", "packets", "why"], rows, out)?;
        if more > 0 {
            writeln!(out, "{} more refusals are not listed: there were too many", count(more))?;
        }
        Ok(())
    })?;
    Ok(Outcome::Complete)
}

/// The name of a state.
fn name(state: ActState) -> &'static str {
    match state {
        ActState::ActUnspecified => "unknown",
        ActState::ActSent => "sent",
        ActState::ActApplied => "applied",
        ActState::ActDry => "dry",
        ActState::ActRefused => "refused",
        ActState::ActExpired => "expired",
        ActState::ActUndone => "undone",
        ActState::ActFailed => "failed",
    }
}

/// A state for people: a dry run that is over says so, too.
fn state(action: &ActionState) -> String {
    let state = name(action.state());
    if action.dry && action.state() != ActState::ActDry { format!("{state} (dry)") } else { state.to_owned() }
}

/// A time since 1970, to the millisecond.
fn time(at: u64) -> String {
    let at = chrono::DateTime::from_timestamp_nanos(i64::try_from(at).unwrap_or(i64::MAX));
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

fn as_json(action: &ActionState) -> Value {
    let reason = (!action.reason.is_empty()).then_some(&action.reason);
    json!({
        "id": action.id, "at_ns": action.at.to_string(), "until_ns": action.until.to_string(), "program": action.program,
        "cause": action.cause, "host": action.member, "flow": action.flow, "action": action.action, "dry": action.dry,
        "state": name(action.state()), "reason": reason, "touched": action.touched, "packets": action.packets,
    })
}
