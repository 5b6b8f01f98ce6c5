//! The alerts that members sent and the coordinator raised.

mod file;
mod last;
#[cfg(test)]
mod tests;

pub use file::AlertStoreError;

use crate::locked::lock;
use crate::protocol::Alert;
use file::AlertFile;
use last::{LastAlerts, NewLast};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::watch;

/// The newest alerts of all members, numbered from 1 on in the order in which they came. They survive the end of the process.
///
/// An alert that comes again, because its agent did not learn that it was stored, is recognised by its member, store and sequence number.
/// Alerts that come at the same time are written together: one wait for the disk is for all of them.
#[derive(Debug)]
pub struct AlertStore {
    /// The most alerts that are kept in memory.
    keep: usize,
    /// Alerts that no thread writes yet.
    waiting: Mutex<Vec<Waiting>>,
    /// The thread that locks it writes all that wait.
    file: Mutex<AlertFile>,
    kept: Mutex<Kept>,
    /// The number of the last alert.
    count: watch::Sender<u64>,
}

/// An alert that is to be written, and what became of it.
#[derive(Debug)]
struct Waiting {
    alert: Alert,
    /// Whether the coordinator raised it: then it is numbered when it is written.
    is_own: bool,
    result: Written,
}

/// What became of an alert.
type Written = Arc<OnceLock<Result<(), Arc<AlertStoreError>>>>;

/// What readers see.
#[derive(Debug)]
struct Kept {
    /// The number of the first.
    first: u64,
    alerts: VecDeque<Alert>,
    last: LastAlerts,
}

impl AlertStore {
    /// Alerts that a store keeps if nothing else is said: some 20 MB in memory.
    pub const KEPT: usize = 100_000;

    /// Opens the file, or creates it. An incomplete last line, which a crash leaves, is cut off. The file has at most twice as many alerts as
    /// the store keeps: `keep`, at least 1.
    ///
    /// # Errors
    /// Fails if it cannot be read or written, or has something else in it.
    pub fn open(path: &Path, keep: usize) -> Result<Self, AlertStoreError> {
        let keep = keep.max(1);
        let (file, read) = AlertFile::open(path, keep)?;
        let first = read.next - read.alerts.len() as u64;
        let kept = Kept { first, alerts: read.alerts, last: read.last };
        Ok(Self {
            keep,
            waiting: Mutex::default(),
            file: Mutex::new(file),
            count: watch::Sender::new(kept.next() - 1),
            kept: Mutex::new(kept),
        })
    }

    /// Stores an alert on the disk, unless it came before.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn store(&self, alert: Alert) -> Result<(), Arc<AlertStoreError>> {
        self.put(vec![alert], false).pop().unwrap_or(Ok(()))
    }

    /// Stores alerts that the coordinator raised itself; returns for each what became of it.
    pub fn raise(&self, alerts: Vec<Alert>) -> Vec<Result<(), Arc<AlertStoreError>>> {
        self.put(alerts, true)
    }

    fn put(&self, alerts: Vec<Alert>, is_own: bool) -> Vec<Result<(), Arc<AlertStoreError>>> {
        let alerts = alerts.into_iter().map(|alert| Waiting { alert, is_own, result: Written::default() });
        let alerts: Vec<_> = alerts.collect();
        let results: Vec<Written> = alerts.iter().map(|waiting| Arc::clone(&waiting.result)).collect();
        lock(&self.waiting).extend(alerts);
        // The thread that had the file before may have written these.
        let mut file = lock(&self.file);
        if results.iter().any(|result| result.get().is_none()) {
            let waiting = std::mem::take(&mut *lock(&self.waiting));
            self.write(&mut file, waiting);
        }
        drop(file);
        // All that waited before the file was free have a result.
        results.iter().map(|result| result.get().cloned().unwrap_or(Ok(()))).collect()
    }

    /// Writes alerts that wait, and shows them to readers.
    fn write(&self, file: &mut AlertFile, waiting: Vec<Waiting>) {
        let (mut new, mut results) = (Vec::new(), Vec::with_capacity(waiting.len()));
        let last = {
            let kept = lock(&self.kept);
            let (next, mut last) = (kept.next(), NewLast::new(&kept.last));
            for Waiting { mut alert, is_own, result } in waiting {
                results.push(result);
                if is_own {
                    (alert.member, alert.store) = (String::new(), 0);
                    alert.sequence = last.of("", 0) + 1;
                }
                alert.number = next + new.len() as u64;
                if last.note(&alert) {
                    new.push(alert);
                }
            }
            last.into_new()
        };
        let written = file.append(&new).map_err(Arc::new);
        if written.is_ok() {
            let mut kept = lock(&self.kept);
            kept.alerts.extend(new);
            kept.last.append(last);
            while kept.alerts.len() > self.keep {
                kept.alerts.pop_front();
                kept.first += 1;
            }
            let count = kept.next() - 1;
            let short = file.is_long().then(|| {
                kept.last.forget_old();
                (kept.first, kept.alerts.clone(), kept.last.clone())
            });
            drop(kept);
            self.count.send_replace(count);
            if let Some((first, alerts, last)) = short {
                file.shorten(self.keep, first, &alerts, &last);
            }
        }
        // Readers see an alert before its sender learns that it is stored.
        for result in results {
            // Each has one result.
            let _ = result.set(written.clone());
        }
    }

    /// Alerts from a number on, at most `most`. Those that are not kept any more are left out: the first then has a higher number.
    pub fn from(&self, number: u64, most: usize) -> Vec<Alert> {
        let kept = lock(&self.kept);
        let from = usize::try_from(number.saturating_sub(kept.first)).unwrap_or(usize::MAX);
        kept.alerts.range(from.min(kept.alerts.len())..).take(most).cloned().collect()
    }

    /// The number of the first alert that is kept; that of the next one if none is.
    pub fn first(&self) -> u64 {
        lock(&self.kept).first
    }

    /// The sequence number of the last alert of a member's store; 0 if it has none.
    pub fn last_of(&self, member: &str, store: u64) -> u64 {
        lock(&self.kept).last.of(member, store)
    }

    /// The same for a store that had another name in earlier versions, 0 if it had not: if the last alerts of the member came under that name, they are of this store.
    pub fn last_of_either(&self, member: &str, store: u64, earlier: u64) -> u64 {
        lock(&self.kept).last.renamed(member, store, earlier)
    }

    /// The number of the last alert; 0 if none came.
    pub fn last(&self) -> u64 {
        *self.count.borrow()
    }

    /// The number of the last alert, which changes when one comes; 0 if none came.
    pub fn count(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }
}

impl Kept {
    /// The number that the next alert gets.
    fn next(&self) -> u64 {
        self.first + self.alerts.len() as u64
    }
}
