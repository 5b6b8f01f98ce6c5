//! The scenario's file with what the command line changes of it, and the files that it names.

use super::captured;
use crate::args::Sim;
use crate::expressions::shown;
use crate::paths::open_regular;
use anyhow::{Context, Result, ensure};
use queuescope_ingest::is_standard_input;
use queuescope_report::model::Skipped;
use queuescope_scenario::{Override, Scenario, TextError};
use queuescope_sim::{Files, RateTrace};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// More than any scenario has, which is refused then: a device without end is not read for ever.
const LARGEST: u64 = (1 << 20) + 1;
/// The same of a trace: ten million opportunities to send and more.
const LARGEST_TRACE: u64 = 1 << 26;

/// A scenario's file, read once, of which any number of variants can be made.
#[derive(Debug)]
pub struct ScenarioFile {
    /// As the user named it.
    pub name: String,
    folder: PathBuf,
    text: Vec<u8>,
    /// What the command line changes.
    overrides: Vec<Override>,
}

impl ScenarioFile {
    /// Reads it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(args: &Sim) -> Result<Self> {
        let sweep = &args.sweep;
        let mut file = Self::with(&args.scenario, &args.set)?;
        file.overrides.extend(sweep.lists.iter().map(Override::sweep));
        file.overrides.extend(sweep.seeds.map(|seeds| Override::new(format!("sweep.seeds={seeds}"))));
        if sweep.no_sweep {
            file.overrides.push(Override::new(NO_SWEEP));
        }
        Ok(file)
    }

    /// Reads it, and replaces values of it.
    ///
    /// # Errors
    /// If it cannot be read.
    #[expect(clippy::disallowed_methods, reason = "the command reads the scenario that it is given")]
    pub fn with(path: &Path, set: &[String]) -> Result<Self> {
        let name = path.display().to_string();
        let mut text = Vec::new();
        let read = if is_standard_input(path) {
            io::stdin().take(LARGEST).read_to_end(&mut text)
        } else {
            fs::File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut text))
        };
        read.with_context(|| format!("cannot read {name}"))?;
        let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
        Ok(Self { name, folder, text, overrides: set.iter().map(Override::new).collect() })
    }

    /// What it says.
    ///
    /// # Errors
    /// Shown in the text that the user wrote.
    pub fn scenario(&self) -> Result<Scenario> {
        self.parse(&[]).map_err(|error| shown(&error))
    }

    /// What it says with more overrides, and without its sweep.
    ///
    /// # Errors
    /// As [`scenario`](Self::scenario).
    pub fn variant(&self, overrides: &[Override]) -> Result<Scenario> {
        let overrides: Vec<_> = overrides.iter().cloned().chain([Override::new(NO_SWEEP)]).collect();
        self.parse(&overrides).map_err(|error| shown(&error))
    }

    fn parse(&self, overrides: &[Override]) -> Result<Scenario, TextError> {
        let overrides: Vec<_> = self.overrides.iter().chain(overrides).cloned().collect();
        Scenario::parse_bytes(&self.name, &self.text, &overrides)
    }

    /// The path of a file that the scenario names.
    pub fn beside(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// Reads files that a scenario names, traces of links and captures, and tells what is remarkable in them.
    ///
    /// # Errors
    /// If one cannot be read, or is not what it should be.
    pub fn files(&self, (traces, captures): (BTreeSet<String>, BTreeSet<String>)) -> Result<(Files, Vec<Skipped>)> {
        let (mut files, mut skipped) = (Files::default(), Vec::new());
        for path in traces.iter().chain(&captures) {
            // What a file names is not waited for, as what is named by hand is.
            open_regular(&self.beside(path)).with_context(|| format!("cannot read {path}"))?;
        }
        for path in traces {
            let trace = trace(&self.beside(&path), &path)?;
            files.traces.insert(path, trace);
        }
        for path in captures {
            let (packets, notes) = captured::read(&self.beside(&path))?;
            files.captures.insert(path, packets);
            skipped.extend(notes);
        }
        Ok((files, skipped))
    }
}

/// Reads a trace of a link, which the user calls `name`.
///
/// # Errors
/// If it cannot be read, or is none.
#[expect(clippy::disallowed_methods, reason = "the command reads the files that it is given")]
pub fn trace(path: &Path, name: &str) -> Result<RateTrace> {
    let mut text = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(LARGEST_TRACE + 1).read_to_end(&mut text));
    read.with_context(|| format!("cannot read the trace {name}"))?;
    ensure!(
        text.len() as u64 <= LARGEST_TRACE,
        "the trace {name} is longer than 64 MiB: traces repeat, and may be shorter"
    );
    let text = String::from_utf8(text).ok().with_context(|| format!("{name} is no trace of a link: it is no text"))?;
    RateTrace::mahimahi(&text).with_context(|| format!("{name} is no trace of a link"))
}

/// A scenario with this sweeps nothing.
const NO_SWEEP: &str = "sweep={}";
