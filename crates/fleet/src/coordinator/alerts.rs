//! The alerts that members sent, in a file: one line of JSON each.

use crate::locked::lock;
use crate::protocol::Alert;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tokio::sync::watch;

/// The alerts of all members, numbered from 1 on in the order in which they came. They survive the end of the process.
///
/// An alert that comes again, because its agent did not learn that it was stored, is recognised by its member, store and sequence number.
#[derive(Debug)]
pub struct AlertStore {
    path: PathBuf,
    state: Mutex<Stored>,
    /// The number of alerts.
    count: watch::Sender<u64>,
}

#[derive(Debug)]
struct Stored {
    file: File,
    length: u64,
    alerts: Vec<Alert>,
    /// For each member and store the sequence number of its last alert.
    last: BTreeMap<(String, u64), u64>,
}

/// Why alerts cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum AlertStoreError {
    /// The file cannot be read or written.
    #[error("cannot {what} {}: {why}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// A line of the file is not an alert.
    #[error("{}, line {line}, is no alert: {why}; move the file away to begin a new one", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: u64,
        /// What is wrong with it.
        why: serde_json::Error,
    },
}

/// An alert as a line.
#[derive(Debug, Serialize, Deserialize)]
struct Line<'a> {
    number: u64,
    #[serde(borrow)]
    member: std::borrow::Cow<'a, str>,
    store: u64,
    sequence: u64,
    #[serde(borrow)]
    trigger: std::borrow::Cow<'a, str>,
    at_ns: u64,
    /// Absent if it is not a finite number, which JSON does not have.
    value: Option<f64>,
    packets: u64,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    detail: std::borrow::Cow<'a, str>,
}

impl AlertStore {
    /// Opens the file, or creates it. An incomplete last line, which a crash leaves, is cut off.
    ///
    /// # Errors
    /// Fails if it cannot be read or written, or has something else in it.
    pub fn open(path: &Path) -> Result<Self, AlertStoreError> {
        let failed = |what| move |why| AlertStoreError::File { what, path: path.to_owned(), why };
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed("open"))?;
        let (mut alerts, mut last, mut length) = (Vec::new(), BTreeMap::new(), 0);
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).map_err(failed("read"))?;
            if !line.ends_with(b"\n") {
                break;
            }
            let number = alerts.len() as u64 + 1;
            let parsed: Line<'_> = serde_json::from_slice(&line).map_err(|why| AlertStoreError::Line {
                path: path.to_owned(),
                line: number,
                why,
            })?;
            let alert = parsed.into_alert();
            last.insert((alert.member.clone(), alert.store), alert.sequence);
            alerts.push(alert);
            length += read as u64;
        }
        file.set_len(length).map_err(failed("shorten"))?;
        let count = watch::Sender::new(alerts.len() as u64);
        Ok(Self { path: path.to_owned(), state: Mutex::new(Stored { file, length, alerts, last }), count })
    }

    /// Stores an alert on the disk, unless it came before.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn store(&self, alert: Alert) -> Result<(), AlertStoreError> {
        self.put(&mut lock(&self.state), alert)
    }

    /// Stores an alert that the coordinator raised itself.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn raise(&self, alert: Alert) -> Result<(), AlertStoreError> {
        let mut state = lock(&self.state);
        let sequence = state.last.get(&(String::new(), 0)).map_or(1, |last| last + 1);
        self.put(&mut state, Alert { member: String::new(), store: 0, sequence, ..alert })
    }

    fn put(&self, state: &mut Stored, alert: Alert) -> Result<(), AlertStoreError> {
        let of = (alert.member.clone(), alert.store);
        if state.last.get(&of).is_some_and(|last| *last >= alert.sequence) {
            return Ok(());
        }
        let alert = Alert { number: state.alerts.len() as u64 + 1, ..alert };
        let mut line = serde_json::to_vec(&Line::of(&alert)).unwrap_or_default();
        line.push(b'\n');
        if let Err(why) = state.file.write_all(&line).and_then(|()| state.file.sync_data()) {
            // What was written of the line must not stand in front of the next.
            let length = state.length;
            let _ = state.file.set_len(length).and_then(|()| state.file.seek(io::SeekFrom::End(0)));
            return Err(AlertStoreError::File { what: "write", path: self.path.clone(), why });
        }
        state.length += line.len() as u64;
        state.last.insert(of, alert.sequence);
        state.alerts.push(alert);
        self.count.send_replace(state.alerts.len() as u64);
        Ok(())
    }

    /// Alerts from a number on, at most `most`.
    pub fn from(&self, number: u64, most: usize) -> Vec<Alert> {
        let state = lock(&self.state);
        let from = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX).min(state.alerts.len());
        state.alerts[from..].iter().take(most).cloned().collect()
    }

    /// The sequence number of the last alert of a member's store; 0 if it has none.
    pub fn last_of(&self, member: &str, store: u64) -> u64 {
        lock(&self.state).last.get(&(member.to_owned(), store)).copied().unwrap_or(0)
    }

    /// The number of alerts, which changes when one comes.
    pub fn count(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }
}

impl<'a> Line<'a> {
    fn of(alert: &'a Alert) -> Self {
        Self {
            number: alert.number,
            member: alert.member.as_str().into(),
            store: alert.store,
            sequence: alert.sequence,
            trigger: alert.trigger.as_str().into(),
            at_ns: alert.at,
            value: Some(alert.value).filter(|value| value.is_finite()),
            packets: alert.packets,
            detail: alert.detail.as_str().into(),
        }
    }

    fn into_alert(self) -> Alert {
        Alert {
            number: self.number,
            member: self.member.into_owned(),
            store: self.store,
            sequence: self.sequence,
            trigger: self.trigger.into_owned(),
            at: self.at_ns,
            value: self.value.unwrap_or(f64::NAN),
            packets: self.packets,
            detail: self.detail.into_owned(),
        }
    }
}
