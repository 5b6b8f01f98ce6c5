//! An action, as it is stored and shown.

use crate::protocol::{self, ActState};
use queuescope_wire::Nanos;
use serde::{Deserialize, Serialize};

/// An action on a host, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// Its number, from 1 on.
    pub id: u64,
    /// When it was decided, in nanoseconds since 1970.
    #[serde(rename = "at_ns", with = "number")]
    pub at: Nanos,
    /// When it ends or ended, in nanoseconds since 1970.
    #[serde(rename = "until_ns", with = "number")]
    pub until: Nanos,
    /// The program.
    pub program: String,
    /// The alert.
    pub cause: String,
    /// The host; empty if the program's pattern matches no host.
    #[serde(rename = "host")]
    pub member: String,
    /// The flow, for people.
    pub flow: String,
    /// What is done, as programs write it.
    pub action: String,
    /// Whether the program wants a dry run.
    pub dry: bool,
    /// What became of it.
    pub state: ActionState,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Packets that were changed or dropped, or would be in a dry run.
    pub touched: u64,
    /// All packets of the flow meanwhile.
    pub packets: u64,
}

/// What became of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionState {
    /// Decided; the host has not replied.
    Sent,
    /// In progress.
    Applied,
    /// In progress as a dry run.
    Dry,
    /// Not begun.
    Refused,
    /// Its time ended.
    Expired,
    /// It was ended before that.
    Undone,
    /// Not begun, or not ended in order.
    Failed,
}

impl ActionState {
    /// All states.
    pub const ALL: [Self; 7] =
        [Self::Sent, Self::Applied, Self::Dry, Self::Refused, Self::Expired, Self::Undone, Self::Failed];

    /// Its name, as in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Applied => "applied",
            Self::Dry => "dry",
            Self::Refused => "refused",
            Self::Expired => "expired",
            Self::Undone => "undone",
            Self::Failed => "failed",
        }
    }

    /// Whether the action is in progress, or may be.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Sent | Self::Applied | Self::Dry)
    }
}

impl ActionRecord {
    /// It is over.
    pub(super) fn end(&mut self, state: ActionState, why: &str) {
        (self.state, self.reason) = (state, why.to_owned());
    }

    /// In words, for the audit log.
    pub(super) fn about(&self) -> String {
        let Self { id, member, action, flow, cause, reason, touched, .. } = self;
        let dry = if self.dry { " (dry run)" } else { "" };
        let end = match self.state.is_open() {
            true => String::new(),
            false => format!("; {touched} packets; {reason}"),
        };
        let member = if member.is_empty() { "no host" } else { member };
        format!("{id} on {member}: {action} {flow}{dry}, after {cause}{end}")
    }

    /// As a message.
    pub fn message(&self) -> protocol::ActionState {
        let Self { id, program, cause, member, flow, action, dry, reason, touched, packets, .. } = self.clone();
        let (at, until) = (self.at.0, self.until.0);
        let state = match self.state {
            ActionState::Sent => ActState::ActSent,
            ActionState::Applied => ActState::ActApplied,
            ActionState::Dry => ActState::ActDry,
            ActionState::Refused => ActState::ActRefused,
            ActionState::Expired => ActState::ActExpired,
            ActionState::Undone => ActState::ActUndone,
            ActionState::Failed => ActState::ActFailed,
        };
        let state = state.into();
        protocol::ActionState {
            id,
            at,
            until,
            program,
            cause,
            member,
            flow,
            action,
            dry,
            state,
            reason,
            touched,
            packets,
        }
    }
}

/// Nanoseconds as a number.
mod number {
    use queuescope_wire::Nanos;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub fn serialize<S: Serializer>(time: &Nanos, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(time.0)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
        u64::deserialize(from).map(Nanos)
    }
}
