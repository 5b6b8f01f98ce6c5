//! The thread of a sink.

use super::delivery::{Delivery, Next, SinkStats, Stored};
use super::position::PositionFile;
use super::sender::Sender;
use crate::clock;
use crate::coordinator::alerts::AlertStore;
use crate::locked::lock;
use crate::protocol::Alert;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until};

/// Time for an attempt to end when the coordinator ends. Otherwise it is made again by the next coordinator.
const LAST: Duration = Duration::from_secs(1);

/// What a sink did since the coordinator started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkReport {
    /// Its address.
    pub sink: String,
    /// Its counts.
    pub stats: SinkStats,
    /// The number of the last alert that is done with.
    pub position: u64,
    /// Whether the last attempt failed or was refused.
    pub is_failing: bool,
}

/// Has the alerts, and takes what people should know.
pub(in crate::coordinator) trait SinkHost: Send + Sync {
    /// The alerts.
    fn alerts(&self) -> &AlertStore;
    /// Notes that something went wrong.
    fn troubled(&self, why: String);
}

/// A sink that runs.
pub(super) struct Worker {
    /// Its address as text.
    pub sink: String,
    pub delivery: Delivery,
    pub sender: Sender,
    pub file: PositionFile,
    pub host: Arc<dyn SinkHost>,
    /// The fingerprint of the coordinator's authority.
    pub fingerprint: Arc<str>,
    pub report: Arc<Mutex<SinkReport>>,
    /// Becomes true when it should end.
    pub stop: watch::Receiver<bool>,
}

impl Worker {
    /// Sends alerts as they come, until it should end.
    pub async fn run(mut self) {
        let (mut count, mut stop) = (self.host.alerts().count(), self.stop.clone());
        let (random, mut attempts, mut is_unsaved) = (RandomState::new(), 0u64, false);
        while !*stop.borrow_and_update() {
            count.borrow_and_update();
            let next = self.delivery.next(clock::steady(), self.host.alerts());
            self.save(&mut is_unsaved);
            match next {
                Next::Send => {
                    let sending = self.sender.send(&self.fingerprint, self.delivery.waiting());
                    let attempt = tokio::select! {
                        attempt = sending => attempt,
                        () = stopped(&mut stop, LAST) => return,
                    };
                    attempts += 1;
                    self.delivery.done(clock::steady(), attempt, random.hash_one(attempts));
                    self.save(&mut is_unsaved);
                }
                Next::Pause(until) => tokio::select! {
                    () = sleep_until(clock::instant(until)) => {}
                    () = stopped(&mut stop, Duration::ZERO) => {}
                },
                Next::Idle => tokio::select! {
                    changed = count.changed() => if changed.is_err() { return },
                    () = stopped(&mut stop, Duration::ZERO) => {}
                },
            }
        }
    }

    /// Saves the position, and publishes counts and notes. A position that cannot be saved costs repeats after a restart, and is tried again
    /// with the next alert.
    fn save(&mut self, is_unsaved: &mut bool) {
        for note in self.delivery.notes() {
            self.host.troubled(format!("{} {note}", self.sink));
        }
        if let Some(position) = self.delivery.unsaved(&self.sink, self.host.alerts()) {
            match self.file.write(&position) {
                Ok(()) => {
                    self.delivery.saved();
                    *is_unsaved = false;
                }
                Err(error) if !*is_unsaved => {
                    *is_unsaved = true;
                    let sink = &self.sink;
                    self.host.troubled(format!("{error}: after a restart, {sink} gets some alerts again"));
                }
                Err(_) => {}
            }
        }
        let mut report = lock(&self.report);
        report.stats = self.delivery.stats();
        report.position = self.delivery.position();
        report.is_failing = self.delivery.is_failing();
    }
}

impl Stored for AlertStore {
    fn first(&self) -> u64 {
        self.first()
    }

    fn count(&self) -> u64 {
        *self.count().borrow()
    }

    fn from(&self, number: u64, most: usize) -> Vec<Alert> {
        self.from(number, most)
    }
}

/// Ready some time after it should end.
async fn stopped(stop: &mut watch::Receiver<bool>, after: Duration) {
    // Without a sender nobody waits for it any more.
    let _ = stop.wait_for(|stop| *stop).await;
    sleep(after).await;
}
