//! What a coordinator has done and what waits, for a monitoring system.

use super::counts::{STATES, state_name};
use super::{ActionState, Coordinator, CutCounts, SinkReport};
use crate::locked::lock;
use crate::protocol::{State, UploadState};
use crate::transport::Listening;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a coordinator has done since its start, and what waits.
#[derive(Debug, Clone, Default)]
pub struct Measures {
    /// Members by state: the name of each, and how many are in it.
    pub members: BTreeMap<&'static str, u64>,
    /// Cuts.
    pub cuts: CutCounts,
    /// Questions to members.
    pub questions: u64,
    /// Replies of members to questions by state, those that did not come included.
    pub replies: BTreeMap<&'static str, u64>,
    /// Alerts that were stored, those before this start included.
    pub alerts: u64,
    /// Alerts that wait at members to be stored.
    pub alerts_waiting: u64,
    /// What each sink did, and the alerts that it has not sent yet.
    pub sinks: Vec<(SinkReport, u64)>,
    /// Actions that are kept, by state.
    pub actions: BTreeMap<&'static str, u64>,
    /// What members upload, all together. Its last trouble is empty.
    pub uploads: UploadState,
    /// Members whose uploads had an error last.
    pub uploads_troubled: u64,
    /// Open connections.
    pub connections: u64,
    /// Connections that were refused: without a valid certificate, too slow, or over the limit.
    pub connections_refused: u64,
    /// Calls that were refused: by the caller's role or certificate.
    pub calls_refused: u64,
    /// Messages of members that were rejected, by reason.
    pub rejected: [(&'static str, u64); 3],
}

/// Reads the measures of a coordinator that serves.
#[derive(Debug, Clone)]
pub struct Measuring {
    pub(super) coordinator: Coordinator,
    pub(super) listening: Listening,
}

impl Measuring {
    /// The measures now.
    pub fn read(&self) -> Measures {
        let shared = &self.coordinator.shared;
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let members = self.coordinator.members();
        // States without members are there, too: a graph needs their zeros.
        let mut by_state: BTreeMap<_, _> = [State::Answered, State::Absent, State::OtherVersion, State::Shedding]
            .map(|state| (state_name(state), 0))
            .into();
        let (mut uploads, mut uploads_troubled, mut alerts_waiting) = (UploadState::default(), 0, 0u64);
        for member in &members {
            *by_state.entry(state_name(member.state())).or_default() += 1;
            alerts_waiting = alerts_waiting.saturating_add(member.waiting);
            if let Some(of_member) = &member.uploads {
                uploads_troubled += u64::from(!of_member.trouble.is_empty());
                add_uploads(&mut uploads, of_member);
            }
        }
        let alerts = shared.alerts.last();
        let sinks = self.coordinator.sinks().into_iter().map(|report| {
            let waiting = alerts.saturating_sub(report.position);
            (report, waiting)
        });
        let unasked = lock(&shared.questions).unasked();
        Measures {
            members: by_state,
            cuts: lock(&shared.cuts).counts(),
            questions: of(&shared.counts.questions),
            replies: STATES
                .into_iter()
                .skip(1)
                .map(|state| (state_name(state), of(&shared.counts.replies[state as usize])))
                .collect(),
            alerts,
            alerts_waiting,
            sinks: sinks.collect(),
            actions: actions_by_state(&self.coordinator),
            uploads,
            uploads_troubled,
            connections: self.listening.open(),
            connections_refused: self.listening.refused(),
            calls_refused: of(&shared.counts.calls_refused),
            rejected: [
                ("unknown", of(&shared.counts.unknown)),
                ("malformed", of(&shared.counts.malformed)),
                ("not_asked", unasked),
            ],
        }
    }
}

fn actions_by_state(coordinator: &Coordinator) -> BTreeMap<&'static str, u64> {
    let mut by_state: BTreeMap<_, _> = ActionState::ALL.map(|state| (state.name(), 0)).into();
    for action in coordinator.actions(usize::MAX).0 {
        *by_state.entry(action.state.name()).or_default() += 1;
    }
    by_state
}

/// Adds what a member uploads. Numbers from outside saturate.
fn add_uploads(all: &mut UploadState, one: &UploadState) {
    let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
    add(&mut all.waiting, one.waiting);
    add(&mut all.waiting_bytes, one.waiting_bytes);
    add(&mut all.confirmed, one.confirmed);
    add(&mut all.confirmed_bytes, one.confirmed_bytes);
    add(&mut all.retries, one.retries);
    add(&mut all.held, one.held);
    add(&mut all.held_bytes, one.held_bytes);
}
