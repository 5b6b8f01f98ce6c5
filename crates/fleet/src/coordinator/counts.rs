//! What a coordinator counts as it goes on.

use crate::protocol::State;
use queuescope_wire::Nanos;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cuts that were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CutCounts {
    /// All of them.
    pub made: u64,
    /// Those that are void.
    pub void: u64,
    /// Those that lack a member.
    pub partial: u64,
    /// The time of all together, from the first *freeze* to the last reply to *thaw*.
    pub time: Nanos,
}

/// Counts that several threads change.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub questions: AtomicU64,
    /// By the number of the state.
    pub replies: [AtomicU64; STATES.len()],
    pub calls_refused: AtomicU64,
    /// Messages of unknown kinds, and parts of answers that could not be read.
    pub unknown: AtomicU64,
    pub malformed: AtomicU64,
}

/// The states of members and their replies, by number.
pub(super) const STATES: [State; 7] = [
    State::Unspecified,
    State::Answered,
    State::Absent,
    State::Late,
    State::Failed,
    State::OtherVersion,
    State::Shedding,
];

/// The name of a state.
pub(super) fn state_name(state: State) -> &'static str {
    match state {
        State::Unspecified => "unknown",
        State::Answered => "here",
        State::Absent => "absent",
        State::Late => "late",
        State::Failed => "failed",
        State::OtherVersion => "other_version",
        State::Shedding => "shedding",
    }
}

impl Counts {
    /// A member replied to a question, or did not.
    pub fn replied(&self, state: State) {
        if let Some(replies) = self.replies.get(state as usize) {
            replies.fetch_add(1, Ordering::Relaxed);
        }
    }
}
