//! The alerts of a folder, for the coordinator: the folder keeps them, so nothing is lost while it is away.

use crate::protocol::Alert;
use queuescope_archive::AlertLines;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io;
use std::path::Path;

/// Reads the alerts that the coordinator has not stored, and numbers them: the first of the folder is 1.
#[derive(Debug)]
pub struct Alerts {
    lines: AlertLines,
    store: u64,
    read: u64,
    /// The last that was returned.
    last: u64,
    /// The coordinator has all up to this one.
    stored: u64,
    /// Lines that are no alerts.
    malformed: u64,
    /// The digest of the first line, if another file may take the place of this one; and whether one has.
    first: Option<u64>,
    is_other: bool,
    /// Lines that the coordinator has stored, and that are not in the file any more.
    missing: u64,
}

/// Names a file of alerts by its first line; 0 if it has none.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn first_line(folder: &Path) -> io::Result<u64> {
    let lines = AlertLines::new(folder, false).more()?;
    Ok(lines.split(|byte| *byte == b'\n').find(|line| !line.is_empty()).map_or(0, digest))
}

/// A digest of a line that is the same for all versions and machines.
fn digest(line: &[u8]) -> u64 {
    Sha256::digest(line).iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// An alert as the folder has it.
#[derive(Debug, Deserialize)]
struct Line {
    trigger: String,
    /// A number, or its digits as a string if it has more than 53 bits.
    at_ns: Value,
    /// Absent if it is not a finite number.
    value: Option<f64>,
    packets: u64,
}

impl Alerts {
    /// Those of a folder behind the first `stored`.
    pub fn after(folder: &Path, store: u64, stored: u64) -> Self {
        let lines = AlertLines::new(folder, false);
        let (first, is_other, missing) = (None, false, 0);
        Self { lines, store, read: 0, last: 0, stored, malformed: 0, first, is_other, missing }
    }

    /// Those of a file with this [first line](first_line): another one may take its place.
    pub fn of_first_line(self, first: u64) -> Self {
        Self { first: Some(first), ..self }
    }

    /// Lines that the coordinator has stored, and that were not in the file when it was read.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// Returns alerts again that were returned and not stored.
    pub fn again(&mut self) {
        self.lines.again();
        (self.read, self.last, self.malformed) = (0, 0, 0);
    }

    /// The coordinator has stored all up to a number.
    pub fn stored(&mut self, sequence: u64) {
        self.stored = self.stored.max(sequence);
    }

    /// How many wait to be stored, as far as they were read.
    pub fn waiting(&self) -> u64 {
        self.last.saturating_sub(self.stored)
    }

    /// Lines of the folder that are no alerts: the coordinator does not get them.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Whether its file was opened.
    pub fn is_open(&self) -> bool {
        self.lines.is_open()
    }

    /// Whether the file that is read is not the one that was there before. Call this when [`more`](Self::more) has been called.
    ///
    /// # Errors
    /// Fails if the file cannot be looked at.
    pub fn is_replaced(&self) -> io::Result<bool> {
        Ok(self.is_other || self.lines.is_replaced()?)
    }

    /// Whether the first line that was read is another than the expected one: then nothing of it is returned.
    pub fn is_other(&self) -> bool {
        self.is_other
    }

    /// Alerts that were not returned before.
    ///
    /// # Errors
    /// Fails if the folder cannot be read.
    pub fn more(&mut self) -> io::Result<Vec<Alert>> {
        let lines = self.lines.more()?;
        if self.is_other {
            return Ok(Vec::new());
        }
        if lines.is_empty() && self.read < self.stored {
            // The file was cut: later alerts get numbers that no other has had.
            self.missing += self.stored - self.read;
            self.read = self.stored;
        }
        let mut alerts = Vec::new();
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if self.read == 0 && self.first.is_some_and(|first| first != digest(line)) {
                self.is_other = true;
                break;
            }
            self.read += 1;
            let line = serde_json::from_slice::<Line>(line).ok();
            match line.and_then(|line| Some((number(&line.at_ns)?, line))) {
                Some(_) if self.read <= self.stored => {}
                Some((at, Line { trigger, value, packets, .. })) => {
                    self.last = self.read;
                    alerts.push(Alert {
                        sequence: self.read,
                        store: self.store,
                        trigger,
                        at,
                        value: value.unwrap_or(f64::NAN),
                        packets,
                        ..Alert::default()
                    });
                }
                None => self.malformed += 1,
            }
        }
        Ok(alerts)
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
