//! A scenario's file with its overrides, and the files that it names.

use crate::captured;
use crate::error::Error;
use crate::files::open_regular;
use queuescope_ingest::is_standard_input;
use queuescope_report::model::Skipped;
use queuescope_scenario::{Override, Scenario};
use queuescope_sim::{Files, NamedFiles, RateTrace};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The most bytes that are read of a scenario, more than a valid one has. Without a limit, reading an endless device would never end.
const LARGEST: u64 = (1 << 20) + 1;
/// The most bytes of a trace: room for more than ten million opportunities to send.
const LARGEST_TRACE: u64 = 1 << 26;

/// The text of a scenario's file, read once. Any number of variants can be made of it.
#[derive(Debug)]
pub struct ScenarioFile {
    /// The path as the user gave it.
    pub name: String,
    folder: PathBuf,
    text: Vec<u8>,
    /// Values that replace those of the file.
    overrides: Vec<Override>,
}

impl ScenarioFile {
    /// Reads a scenario from a file, or from standard input if the path is `-`. `overrides` replace values of it.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    #[expect(clippy::disallowed_methods, reason = "the scenario is the file that the user names, and may be a pipe")]
    pub fn read(path: &Path, overrides: impl IntoIterator<Item = Override>) -> Result<Self, Error> {
        let name = path.display().to_string();
        let mut text = Vec::new();
        let read = if is_standard_input(path) {
            io::stdin().take(LARGEST).read_to_end(&mut text)
        } else {
            fs::File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut text))
        };
        read.map_err(Error::read(path))?;
        let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
        Ok(Self { name, folder, text, overrides: overrides.into_iter().collect() })
    }

    /// A scenario whose text is at hand. Errors call it `name`; paths in it are relative to `folder`. `overrides` replace values of it.
    pub fn from_text(
        name: impl Into<String>,
        text: impl Into<Vec<u8>>,
        folder: impl Into<PathBuf>,
        overrides: impl IntoIterator<Item = Override>,
    ) -> Self {
        let (name, text, folder) = (name.into(), text.into(), folder.into());
        Self { name, folder, text, overrides: overrides.into_iter().collect() }
    }

    /// Parses the scenario.
    ///
    /// # Errors
    /// Fails if the scenario is not valid; the error shows where in the user's text.
    pub fn scenario(&self) -> Result<Scenario, Error> {
        self.parse(&[])
    }

    /// Parses the scenario with more overrides, and without its sweep.
    ///
    /// # Errors
    /// As [`scenario`](Self::scenario).
    pub fn variant(&self, overrides: &[Override]) -> Result<Scenario, Error> {
        let overrides: Vec<_> = overrides.iter().cloned().chain([Override::new(NO_SWEEP)]).collect();
        self.parse(&overrides)
    }

    fn parse(&self, overrides: &[Override]) -> Result<Scenario, Error> {
        let overrides: Vec<_> = self.overrides.iter().chain(overrides).cloned().collect();
        Ok(Scenario::parse_bytes(&self.name, &self.text, &overrides)?)
    }

    /// The path of a file that the scenario names, relative to the scenario's folder.
    pub fn beside(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// Reads the files that a scenario names: traces of links, and captures. Also returns notes on what was left out of them.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or is not a trace or a capture.
    pub fn files(&self, named: NamedFiles) -> Result<(Files, Vec<Skipped>), Error> {
        let (mut files, mut skipped) = (Files::default(), Vec::new());
        for path in named.paths() {
            // A pipe would block until somebody writes to it, which is fine only for a path that the user typed.
            open_regular(&self.beside(path)).map_err(Error::read(path.as_ref()))?;
        }
        for path in named.traces {
            let trace = trace(&self.beside(&path), &path)?;
            files.traces.insert(path, trace);
        }
        for path in named.captures {
            let (packets, notes) = captured::read(&self.beside(&path))?;
            files.captures.insert(path, packets);
            skipped.extend(notes);
        }
        Ok((files, skipped))
    }
}

/// Reads a trace of a link. Errors call it `name`.
///
/// # Errors
/// Fails if the file cannot be read, or is not a trace.
#[expect(clippy::disallowed_methods, reason = "a user names the trace, and it may be a pipe")]
pub fn trace(path: &Path, name: &str) -> Result<RateTrace, Error> {
    let name = || name.to_owned();
    let mut text = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(LARGEST_TRACE + 1).read_to_end(&mut text));
    read.map_err(|why| Error::Read { name: format!("the trace {}", name()), why })?;
    if text.len() as u64 > LARGEST_TRACE {
        return Err(Error::LongTrace { name: name() });
    }
    let text = String::from_utf8(text).map_err(|_| Error::NoText { name: name() })?;
    RateTrace::mahimahi(&text).map_err(|why| Error::NoTrace { name: name(), why })
}

/// An override that removes the sweep of a scenario.
pub const NO_SWEEP: &str = "sweep={}";
