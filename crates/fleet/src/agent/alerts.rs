//! The alerts of a folder, for the coordinator: the folder keeps them, so nothing is lost while it is away.

use crate::protocol::Alert;
use queuescope_archive::AlertLines;
use serde::Deserialize;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

/// Reads the alerts that the coordinator has not stored, and numbers them: the first of the folder is 1.
#[derive(Debug)]
pub struct Alerts {
    folder: PathBuf,
    lines: AlertLines,
    store: u64,
    read: u64,
    /// The last that was returned.
    last: u64,
    /// The coordinator has all up to this one.
    stored: u64,
    /// Lines that are no alerts.
    malformed: u64,
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
        Self { folder: folder.to_owned(), lines, store, read: 0, last: 0, stored, malformed: 0 }
    }

    /// Returns alerts again that were returned and not stored.
    pub fn again(&mut self) {
        *self = Self::after(&self.folder, self.store, self.stored);
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

    /// Alerts that were not returned before.
    ///
    /// # Errors
    /// Fails if the folder cannot be read.
    pub fn more(&mut self) -> io::Result<Vec<Alert>> {
        let lines = self.lines.more()?;
        let mut alerts = Vec::new();
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
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
