//! The coordinator: the members of a fleet, and the questions to all of them.
//!
//! It has no connections: [`Coordinator::attach`] takes what comes from an agent, and returns what goes to it. `service` connects both to gRPC.

mod actions;
mod alerts;
mod audit;
mod clocks;
mod count;
mod counts;
mod cuts;
mod measures;
mod members;
mod programs;
mod query;
mod questions;
mod serve;
mod service;
mod sinks;
mod time_cut;

pub use actions::{ActionRecord, ActionState, ActionStore, ActionStoreError, Actions};
pub use alerts::{AlertStore, AlertStoreError};
pub use audit::{AuditEntry, AuditLog};
pub use clocks::{MeasuredClock, ShownTime};
pub use counts::CutCounts;
pub use cuts::{CutError, CutPosition, MadeCut};
pub use measures::{Measures, Measuring};
pub use members::{AttachError, Session};
pub use programs::{ProgramError, ProgramStore, ProgramStoreError, Programs};
pub use query::{Answered, QueryError};
pub use questions::{AskedMembers, Reply};
pub use serve::{CoordinatorError, CoordinatorServer, create};
pub use service::FleetService;
pub use sinks::{
    HostPort, HttpUrl, PreparedSinks, SinkAddress, SinkAddressError, SinkError, SinkLimits, SinkOptions, SinkReport,
    SinkStats, Sinks, retry_after,
};

use crate::clock;
use crate::locked::lock;
use crate::protocol::{self, FromAgent, ToAgent, from_agent, to_agent};
use counts::Counts;
use cuts::Cuts;
use members::{Members, shortened};
use questions::Questions;
use queuescope_wire::Nanos;
use sinks::{SinkHost, SinkReports};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};

/// Queries whose answers are awaited, and those whose answers are merged, at the same time; others wait. Each takes the memory of all of its parts.
const AWAITED: usize = 64;
const MERGED: usize = 4;
/// Troubles that wait until they are read; older ones are left out.
const TROUBLES: usize = 64;

/// How a coordinator treats its members.
#[derive(Debug, Clone, Copy)]
pub struct CoordinatorOptions {
    /// How long a member's tail stays frozen if the coordinator does not thaw it.
    pub lease: Nanos,
    /// The most members.
    pub members: usize,
    /// The most bytes of a member's part of an answer.
    pub part_bytes: usize,
    /// The most groups of a member's part of an answer.
    pub groups: u64,
    /// The newest alerts that are kept, at least 1. The file has at most twice as many.
    pub alerts: usize,
}

impl Default for CoordinatorOptions {
    /// 20 ms (Confluo takes 1.2 ms for 128 hosts), 10 000 members, parts of 64 MB and a million groups, and 100 000 alerts.
    fn default() -> Self {
        let alerts = AlertStore::KEPT;
        Self { lease: Nanos(20_000_000), members: 10_000, part_bytes: 64 << 20, groups: 1_000_000, alerts }
    }
}

/// The members of a fleet, and the questions to all of them. Clones share everything.
#[derive(Debug, Clone)]
pub struct Coordinator {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: CoordinatorOptions,
    members: Mutex<Members>,
    cuts: Mutex<Cuts>,
    questions: Mutex<Questions>,
    alerts: AlertStore,
    programs: Mutex<Programs>,
    /// Is notified when a program came, went, or ended a run.
    programs_changed: Notify,
    /// What programs do on hosts.
    actions: Mutex<Actions>,
    troubles: Mutex<VecDeque<String>>,
    /// What each sink of alerts did.
    sinks: Mutex<SinkReports>,
    /// What was done so far.
    counts: Counts,
    /// Whether the coordinator ends: streams of alerts end with it.
    is_ending: watch::Sender<bool>,
    /// Answers that are awaited, and those that are merged, at the same time.
    waiting: Semaphore,
    merging: Semaphore,
}

impl Coordinator {
    /// A coordinator without members. `epoch` is higher each time: cuts of an earlier one have lower numbers. Actions are not stored.
    pub fn new(options: CoordinatorOptions, epoch: u32, alerts: AlertStore, programs: Programs) -> Self {
        Self::with_actions(options, epoch, alerts, programs, Actions::new(ActionStore::default(), None))
    }

    /// A coordinator that stores actions.
    pub fn with_actions(
        options: CoordinatorOptions,
        epoch: u32,
        alerts: AlertStore,
        programs: Programs,
        actions: Actions,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                options,
                members: Mutex::new(Members::new(options.members)),
                cuts: Mutex::new(Cuts::new(epoch)),
                questions: Mutex::default(),
                alerts,
                programs: Mutex::new(programs),
                programs_changed: Notify::new(),
                actions: Mutex::new(actions),
                troubles: Mutex::default(),
                sinks: Mutex::default(),
                counts: Counts::default(),
                is_ending: watch::Sender::new(false),
                waiting: Semaphore::new(AWAITED),
                merging: Semaphore::new(MERGED),
            }),
        }
    }

    /// Its options.
    pub fn options(&self) -> CoordinatorOptions {
        self.shared.options
    }

    /// The alerts that members sent.
    pub fn alerts(&self) -> &AlertStore {
        &self.shared.alerts
    }

    /// The oldest trouble since the last calls: why something could not be stored or sent.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.shared.troubles).pop_front()
    }

    /// Sends alerts to sinks until the result is dropped. `folder` has their positions; `fingerprint` is that of the authority, which
    /// receivers can recognise.
    ///
    /// # Errors
    /// Fails if a position cannot be read or written, or if a thread cannot be started.
    pub fn start_sinks(&self, sinks: PreparedSinks, folder: &Path, fingerprint: &str) -> Result<Sinks, SinkError> {
        let host: Arc<dyn SinkHost> = Arc::clone(&self.shared) as _;
        let sinks = sinks.start(&host, folder, fingerprint)?;
        *lock(&self.shared.sinks) = sinks.reports();
        Ok(sinks)
    }

    /// What each sink did since [`start_sinks`](Self::start_sinks).
    pub fn sinks(&self) -> Vec<SinkReport> {
        lock(&self.shared.sinks).iter().map(|report| lock(report).clone()).collect()
    }

    /// Notes that something went wrong.
    fn troubled(&self, why: String) {
        self.shared.troubled(why);
    }

    /// The states of all members, by name.
    pub fn members(&self) -> Vec<protocol::Member> {
        lock(&self.shared.members).list()
    }

    /// Sends an empty message to each member, and waits for the replies, at most `within`. Returns whether all came. A later call ends an
    /// earlier one.
    pub async fn round_trip(&self, within: Duration) -> bool {
        let (sessions, _) = lock(&self.shared.members).sessions(&[]);
        let number = clock::steady().0;
        let done = lock(&self.shared.members).begin_round(number, &sessions);
        for session in &sessions {
            self.send(session, to_agent::Message::Ping(number));
        }
        matches!(tokio::time::timeout(within, done).await, Ok(Ok(())))
    }

    /// A message came from an agent.
    pub async fn receive(&self, session: &Session, message: FromAgent) {
        let now = clock::steady();
        match message.message {
            // The first message only; later ones say nothing new.
            Some(from_agent::Message::Hello(_)) => {}
            // A later version may have other messages.
            None => _ = self.shared.counts.unknown.fetch_add(1, Ordering::Relaxed),
            Some(from_agent::Message::Frozen(frozen)) => self.frozen(now, session, &frozen),
            Some(from_agent::Message::Thawed(thawed)) => self.thawed(session, &thawed),
            Some(from_agent::Message::Answer(answer)) => lock(&self.shared.questions).answer(session, answer),
            Some(from_agent::Message::Status(status)) => lock(&self.shared.members).status(session, status, now),
            Some(from_agent::Message::Shown(shown)) => {
                let time = ShownTime::now(Nanos(shown.number), shown.at);
                lock(&self.shared.members).shown(session, time);
            }
            Some(from_agent::Message::Pong(number)) => lock(&self.shared.members).pong(session, number, now),
            Some(from_agent::Message::Alert(alert)) => self.alert(session, alert).await,
            Some(from_agent::Message::Installed(installed)) => self.installed(session, installed),
            Some(from_agent::Message::Acted(acted)) => self.acted(session, &acted),
        }
        lock(&self.shared.members).seen(session, clock::wall());
    }

    /// Stores an alert, and says so to its agent, which keeps it until then, and sends it again if it is not stored. Alerts behind one that
    /// could not be stored wait for it: they come again, too.
    async fn alert(&self, session: &Session, alert: protocol::Alert) {
        let (sequence, unstored) = (alert.sequence, session.unstored());
        if unstored != 0 && sequence > unstored {
            return;
        }
        let (member, store, trigger) = (session.name().to_owned(), session.store(), shortened(&alert.trigger));
        let alert = protocol::Alert { member, store, trigger, detail: String::new(), ..alert };
        let coordinator = self.clone();
        // It waits for the disk.
        let stored = tokio::task::spawn_blocking(move || coordinator.shared.alerts.store(alert)).await;
        match stored {
            Ok(Ok(())) => {
                if sequence == unstored {
                    session.set_unstored(0);
                }
                self.send(session, to_agent::Message::Stored(sequence));
            }
            Ok(Err(why)) => {
                // It is tried again and again, and reported once.
                if unstored == 0 {
                    self.troubled(format!("{why}; the alerts of {} wait there", session.name()));
                }
                session.set_unstored(sequence);
            }
            // The thread panicked, and the panic was printed then.
            Err(_) => self.detach(session),
        }
    }

    /// Sends a message to an agent; a stream that does not take it counts as gone, and its agent opens another.
    fn send(&self, session: &Session, message: to_agent::Message) {
        if !session.send(ToAgent { message: Some(message) }) {
            self.detach(session);
        }
    }
}

impl SinkHost for Shared {
    fn alerts(&self) -> &AlertStore {
        &self.alerts
    }

    fn troubled(&self, why: String) {
        let mut troubles = lock(&self.troubles);
        if troubles.len() == TROUBLES {
            troubles.pop_front();
        }
        troubles.push_back(why);
    }
}
