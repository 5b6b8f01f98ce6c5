//! Aggregates and triggers that are evaluated while packets are recorded.

use crate::error::Error;
use crate::keep_options::Derived;
use crate::recording::Recording;
use queuescope_archive::{ALERTS, definitions, open_with};
use queuescope_log::{Alert, Definitions, NamedMonitor, Schema, Single, SingleKind};
use queuescope_report::json::{self, Line};
use queuescope_report::model;
use queuescope_text::TextError;
use queuescope_wire::Nanos;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The definitions for a folder: those that it has already, plus the new ones.
///
/// # Errors
/// Fails if the new definitions are wrong, or differ from existing ones of the same name.
pub fn wanted(folder: &Path, schema: &Schema, derived: &Derived) -> Result<Definitions, Error> {
    let known = folder.join("log.toml").exists().then(|| definitions(folder)).transpose()?;
    let mut all = known.unwrap_or_else(|| Definitions::new(schema));
    let mut alone = Definitions::new(schema);
    add(&mut alone, derived)?;
    if alone.is_empty() || alone.text() == all.text() {
        return Ok(all);
    }
    add(&mut all, derived).map_err(|why| Error::Definitions { folder: folder.to_owned(), why })?;
    Ok(all)
}

fn add(to: &mut Definitions, derived: &Derived) -> Result<(), TextError> {
    if let Some(file) = &derived.definitions {
        let values: Vec<_> = file.values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        to.add_text_with(&file.name, &file.text, &values)?;
    }
    let of = |option: &'static str, texts: &'_ [String], kind| -> Vec<_> {
        texts.iter().map(|text| (option, text.clone(), kind)).collect()
    };
    let singles = [
        of("--filter", &derived.filters, SingleKind::Filter),
        of("--aggregate", &derived.aggregates, SingleKind::Aggregate),
        of("--trigger", &derived.triggers, SingleKind::Trigger),
    ]
    .concat();
    let singles: Vec<_> = singles.iter().map(|(option, text, kind)| Single { option, text, kind: *kind }).collect();
    to.add_singles(&singles)
}

/// Cuts off an incomplete last alert, before any others are added; returns the remaining size of the alerts in bytes.
///
/// # Errors
/// Returns the error of the system call.
pub fn cut_off(folder: &Path) -> Result<u64, Error> {
    let path = folder.join(ALERTS);
    let cut = if path.exists() { whole_lines(&path).and_then(|file| Ok(file.metadata()?.len())) } else { Ok(0) };
    cut.map_err(Error::write(&path))
}

/// The most bytes of a line: it has the name of a trigger and some numbers.
const LONGEST_LINE: u64 = 4096;

/// Opens a file of lines to append to it. An incomplete last line is cut off: its writer was stopped. An end that is longer than a line is an error.
fn whole_lines(path: &Path) -> io::Result<File> {
    let mut file = open_with(path, OpenOptions::new().read(true).append(true).create(true))?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(LONGEST_LINE);
    let mut last = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    Read::by_ref(&mut file).take(LONGEST_LINE).read_to_end(&mut last)?;
    let whole = match last.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => from + end as u64 + 1,
        None if from == 0 => 0,
        None => {
            return Err(io::Error::other("its end is not a line of alerts; it is left as it is: move it elsewhere"));
        }
    };
    if whole < length {
        file.set_len(whole)?;
    }
    Ok(file)
}

/// Triggers that are checked as packets come.
#[derive(Debug)]
pub struct Alarms<'a> {
    recording: &'a Recording,
    monitor: NamedMonitor<'a>,
    path: PathBuf,
    out: File,
    /// The time of the last packet, and the longest period of the triggers.
    last: Nanos,
    longest: u64,
    /// How often a trigger fired that had not fired at its previous check.
    pub fired: u64,
}

impl<'a> Alarms<'a> {
    /// The triggers of a folder's definitions; `None` if there are none.
    ///
    /// # Errors
    /// Fails if alerts cannot be written.
    pub fn from_definitions(recording: &'a Recording, definitions: &Definitions) -> Result<Option<Self>, Error> {
        let Some(defined) = recording.recorder().defined().filter(|_| !definitions.triggers().is_empty()) else {
            return Ok(None);
        };
        let monitor = defined.monitor(recording.recorder().log())?;
        let path = recording.path().join(ALERTS);
        let out = whole_lines(&path).map_err(Error::write(&path))?;
        let longest = definitions.triggers().iter().map(|trigger| trigger.period).max().unwrap_or_default();
        Ok(Some(Self { recording, monitor, path, out, last: Nanos::ZERO, longest, fired: 0 }))
    }

    /// Call this when a packet comes: checks the triggers that are due by `time`, over the packets before it.
    ///
    /// # Errors
    /// Fails if alerts cannot be written, or if an earlier packet cannot be kept.
    #[inline]
    pub fn at(&mut self, time: Nanos) -> Result<(), Error> {
        // Time does not go back.
        self.last = self.last.max(time);
        if self.monitor.monitor.due().is_none_or(|due| due > self.last.0) {
            return Ok(());
        }
        self.look(self.last)
    }

    /// Call this after the last packet: checks each trigger once more.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn finish(&mut self) -> Result<(), Error> {
        self.look(self.last.saturating_add(Nanos(self.longest)))
    }

    fn look(&mut self, now: Nanos) -> Result<(), Error> {
        self.recording.flush()?;
        let mut lines = Vec::new();
        self.monitor.pass(now.0, |name, Alert { at, value, position, new, .. }| {
            if new {
                let packets = self.recording.recorder().position(position);
                let alert = model::Alert { trigger: name.to_owned(), at_ns: at, value: value.to_f64(), packets };
                lines.push(Line::Alert(alert));
            }
        });
        if lines.is_empty() {
            return Ok(());
        }
        self.fired += lines.len() as u64;
        let length = self.write(&lines).map_err(Error::write(&self.path))?;
        self.recording.recorder().alerted(length);
        Ok(())
    }

    /// Writes some lines; returns the length of the file after that.
    fn write(&mut self, lines: &[Line]) -> io::Result<u64> {
        let mut text = Vec::new();
        for line in lines {
            json::write_line(line, &mut text)?;
        }
        self.out.write_all(&text)?;
        if self.recording.is_synced() {
            self.out.sync_data()?;
        }
        Ok(self.out.metadata()?.len())
    }
}
