//! Aggregates and triggers that are evaluated while packets are recorded.

use crate::error::Error;
use crate::keep_options::Derived;
use crate::recording::Recording;
use queuescope_archive::{ALERTS, Installed, definitions, open_with};
use queuescope_log::{Alert, Defined, Definitions, Log, NamedMonitor, Schema, Single, SingleKind};
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
    /// Those of the folder's definitions, which have no number, and those of what was installed.
    monitors: Vec<Watching<'a>>,
    /// The number of changes of what is installed after which `monitors` are; `None`: nothing is installed in this folder.
    changes: Option<u64>,
    path: PathBuf,
    out: File,
    /// The time of the last packet, and the next time at which a trigger is due.
    last: Nanos,
    due: Option<u64>,
    /// How often a trigger fired that had not fired at its previous check.
    pub fired: u64,
}

/// The triggers of one text.
#[derive(Debug)]
struct Watching<'a> {
    installed: Option<Installed>,
    monitor: NamedMonitor<'a>,
    /// The longest period.
    longest: u64,
}

impl<'a> Watching<'a> {
    fn new(log: &'a Log, defined: &Defined, installed: Option<Installed>) -> Result<Self, Error> {
        let longest = defined.triggers().map(|(_, trigger)| trigger.period).max().unwrap_or_default();
        Ok(Self { installed, monitor: defined.monitor(log)?, longest })
    }

    /// The name that alerts of a trigger have: that of what was installed is in front of it.
    fn name(installed: Option<&Installed>, trigger: &str) -> String {
        installed.map_or_else(|| trigger.to_owned(), |installed| format!("{}.{trigger}", installed.name))
    }
}

impl<'a> Alarms<'a> {
    /// The triggers of a folder's definitions; `None` if there are none.
    ///
    /// # Errors
    /// Fails if alerts cannot be written.
    pub fn from_definitions(recording: &'a Recording, definitions: &Definitions) -> Result<Option<Self>, Error> {
        if definitions.triggers().is_empty() { Ok(None) } else { Self::new(recording).map(Some) }
    }

    /// The triggers of a folder's definitions, if there are any.
    fn new(recording: &'a Recording) -> Result<Self, Error> {
        let (path, recorder) = (recording.path().join(ALERTS), recording.recorder());
        let out = whole_lines(&path).map_err(Error::write(&path))?;
        let own = recorder.defined().filter(|defined| defined.triggers().next().is_some());
        let monitors =
            own.map(|defined| Watching::new(recorder.log(), defined, None)).transpose()?.into_iter().collect();
        let mut alarms = Self { recording, monitors, changes: None, path, out, last: Nanos::ZERO, due: None, fired: 0 };
        alarms.note_due();
        Ok(alarms)
    }

    /// From now on also checks triggers that are installed while packets come.
    ///
    /// # Errors
    /// Fails if alerts cannot be written.
    pub fn with_installed(alarms: Option<Self>, recording: &'a Recording) -> Result<Self, Error> {
        let mut alarms = alarms.map_or_else(|| Self::new(recording), Ok)?;
        alarms.follow_installed();
        Ok(alarms)
    }

    /// Call this when a packet comes: checks the triggers that are due by `time`, over the packets before it.
    ///
    /// # Errors
    /// Fails if alerts cannot be written, or if an earlier packet cannot be kept.
    #[inline]
    pub fn at(&mut self, time: Nanos) -> Result<(), Error> {
        // Time does not go back.
        self.last = self.last.max(time);
        if self.changes.is_some_and(|changes| changes != self.recording.recorder().install_changes()) {
            self.follow_installed();
        }
        if self.due.is_none_or(|due| due > self.last.0) {
            return Ok(());
        }
        self.look(self.last)
    }

    /// Call this after the last packet: checks each trigger once more.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn finish(&mut self) -> Result<(), Error> {
        let longest = self.monitors.iter().map(|watching| watching.longest).max().unwrap_or_default();
        self.look(self.last.saturating_add(Nanos(longest)))
    }

    /// Takes the triggers of what is installed now. Those that were there before go on with their windows.
    fn follow_installed(&mut self) {
        let recorder = self.recording.recorder();
        let (changes, installed) = recorder.installed();
        self.changes = Some(changes);
        let is_there = |number| installed.iter().any(|installed| installed.number == number);
        self.monitors.retain(|watching| watching.installed.as_ref().is_none_or(|known| is_there(known.number)));
        let known: Vec<_> = self.monitors.iter().filter_map(|known| known.installed.as_ref()?.number.into()).collect();
        for new in installed.into_iter().filter(|installed| !known.contains(&installed.number)) {
            let defined = new.defined.clone();
            // It fails only if it was removed in the meantime, which is another change.
            self.monitors.extend(Watching::new(recorder.log(), &defined, Some(new)));
        }
        self.note_due();
    }

    fn note_due(&mut self) {
        self.due = self.monitors.iter().filter_map(|watching| watching.monitor.monitor.due()).min();
    }

    fn look(&mut self, now: Nanos) -> Result<(), Error> {
        self.recording.flush()?;
        let (mut lines, recorder) = (Vec::new(), self.recording.recorder());
        for Watching { installed, monitor, .. } in &mut self.monitors {
            monitor.pass(now.0, |name, Alert { at, value, position, new, .. }| {
                if new {
                    let (trigger, packets) = (Watching::name(installed.as_ref(), name), recorder.position(position));
                    lines.push(Line::Alert(model::Alert { trigger, at_ns: at, value: value.to_f64(), packets }));
                }
            });
        }
        self.note_due();
        if lines.is_empty() {
            return Ok(());
        }
        self.fired += lines.len() as u64;
        let length = self.write(&lines).map_err(Error::write(&self.path))?;
        recorder.alerted(length);
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
