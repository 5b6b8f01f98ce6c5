//! The file of alerts: one line of JSON each.

use super::last::{LastAlerts, LastLine};
use crate::protocol::Alert;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

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

/// The file, open to append to it. It is written again without the oldest alerts when it has twice as many as are kept.
#[derive(Debug)]
pub struct AlertFile {
    path: PathBuf,
    file: File,
    length: u64,
    alerts: usize,
    /// When it has more alerts than this, it is made shorter.
    long: usize,
    /// The end may have something else behind the length, because a write failed.
    is_torn: bool,
    /// The folder has the file, and this is not on the disk yet.
    is_moved: bool,
}

/// What a file has.
#[derive(Debug, Default)]
pub struct ReadAlerts {
    /// The newest alerts.
    pub alerts: VecDeque<Alert>,
    /// The number of the next.
    pub next: u64,
    /// The last of each store, also of those that are not in the file any more.
    pub last: LastAlerts,
}

/// The first line of a file from which the oldest alerts were removed.
#[derive(Debug, Serialize, Deserialize)]
struct Removed {
    /// Alerts that were removed.
    removed: u64,
    /// The last alert of each store among all.
    last: Vec<LastLine>,
}

/// An alert as a line.
#[derive(Debug, Serialize, Deserialize)]
struct Line<'a> {
    number: u64,
    #[serde(borrow)]
    member: Cow<'a, str>,
    store: u64,
    sequence: u64,
    #[serde(borrow)]
    trigger: Cow<'a, str>,
    at_ns: u64,
    /// Absent if it is not a finite number, which JSON does not have.
    value: Option<f64>,
    packets: u64,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    detail: Cow<'a, str>,
}

impl AlertFile {
    /// Opens a file, or creates it, and reads the newest `keep` alerts. An incomplete last line is cut off.
    ///
    /// # Errors
    /// Fails if it cannot be read or written, or has something else in it.
    pub fn open(path: &Path, keep: usize) -> Result<(Self, ReadAlerts), AlertStoreError> {
        let failed = |what| move |why| AlertStoreError::File { what, path: path.to_owned(), why };
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed("open"))?;
        let mut read = ReadAlerts { next: 1, ..ReadAlerts::default() };
        let (mut reader, mut bytes, mut length, mut count) = (BufReader::new(&file), Vec::new(), 0, 0);
        for line in 1.. {
            bytes.clear();
            let size = reader.read_until(b'\n', &mut bytes).map_err(failed("read"))?;
            if !bytes.ends_with(b"\n") {
                break;
            }
            length += size as u64;
            let wrong = |why| AlertStoreError::Line { path: path.to_owned(), line, why };
            if line == 1 && bytes.starts_with(br#"{"removed""#) {
                let Removed { removed, last } = serde_json::from_slice(&bytes).map_err(wrong)?;
                read.next = removed + 1;
                read.last = LastAlerts::of_lines(last);
                continue;
            }
            let alert = serde_json::from_slice::<Line<'_>>(&bytes).map_err(wrong)?.into_alert(read.next);
            read.last.note(&alert);
            read.next += 1;
            count += 1;
            if read.alerts.len() == keep {
                read.alerts.pop_front();
            }
            read.alerts.push_back(alert);
        }
        file.set_len(length).map_err(failed("shorten"))?;
        let path = path.to_owned();
        let mut opened = Self { path, file, length, alerts: count, long: 2 * keep, is_torn: false, is_moved: true };
        if opened.is_long() {
            read.last.forget_old();
            let first = read.next - read.alerts.len() as u64;
            opened.shorten(keep, first, &read.alerts, &read.last);
        }
        Ok((opened, read))
    }

    /// Appends alerts, and waits until they are on the disk. If that fails, none of them is there.
    ///
    /// # Errors
    /// Fails if they cannot be written.
    pub fn append(&mut self, alerts: &[Alert]) -> Result<(), AlertStoreError> {
        if alerts.is_empty() {
            return Ok(());
        }
        let lines: Vec<u8> = alerts.iter().flat_map(line).collect();
        if let Err(why) = self.append_lines(&lines) {
            // What was written of them must not stand in front of the next.
            self.is_torn = self.file.set_len(self.length).is_err();
            return Err(AlertStoreError::File { what: "write", path: self.path.clone(), why });
        }
        self.length += lines.len() as u64;
        self.alerts += alerts.len();
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "the coordinator's folder is this crate's own")]
    fn append_lines(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.is_torn = false;
        }
        if self.is_moved {
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
            self.is_moved = false;
        }
        self.file.write_all(lines)?;
        self.file.sync_data()
    }

    /// Whether it should be made shorter.
    pub fn is_long(&self) -> bool {
        self.alerts > self.long
    }

    /// Writes the file again with these alerts, of which the first has this number. If that fails, the longer file stays, and it is tried again
    /// when as many alerts have come as are kept.
    pub fn shorten(&mut self, keep: usize, first: u64, alerts: &VecDeque<Alert>, last: &LastAlerts) {
        match self.written_again(first, alerts, last) {
            Ok((file, length)) => {
                (self.file, self.length, self.alerts) = (file, length, alerts.len());
                (self.is_torn, self.is_moved) = (false, true);
            }
            // The new file is of no use; it may not be there.
            Err(_) => _ = fs::remove_file(self.beside()),
        }
        self.long = self.alerts + keep;
    }

    fn written_again(&self, first: u64, alerts: &VecDeque<Alert>, last: &LastAlerts) -> io::Result<(File, u64)> {
        let beside = self.beside();
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&beside)?;
        let mut out = BufWriter::new(file);
        serde_json::to_writer(&mut out, &Removed { removed: first - 1, last: last.lines() })?;
        out.write_all(b"\n")?;
        for alert in alerts {
            out.write_all(&line(alert))?;
        }
        let file = out.into_inner()?;
        file.sync_all()?;
        let length = file.metadata()?.len();
        let file = OpenOptions::new().read(true).append(true).open(&beside)?;
        fs::rename(&beside, &self.path)?;
        Ok((file, length))
    }

    /// Takes another file, for tests; returns the one before.
    #[cfg(test)]
    pub fn replace_file(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }

    fn beside(&self) -> PathBuf {
        self.path.with_extension("new")
    }
}

/// An alert as a line of the file.
fn line(alert: &Alert) -> Vec<u8> {
    let mut line = serde_json::to_vec(&Line::of(alert)).unwrap_or_default();
    line.push(b'\n');
    line
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

    fn into_alert(self, number: u64) -> Alert {
        Alert {
            number,
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
