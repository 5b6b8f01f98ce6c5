//! Control programs: what agents compute, and what the coordinator asks and raises. `docs/reference/programs.md` describes the text.

mod acts;
mod condition;
mod hosts;
mod read;
mod saw;

pub use acts::Act;
pub use condition::{Condition, Held};
pub use hosts::Hosts;
pub use saw::{AskedHosts, Saw};

use crate::answer::Asked;
use queuescope_log::{Definitions, TextError};
use queuescope_wire::Nanos;
use std::sync::Arc;

/// A control program, parsed.
///
/// ```
/// use queuescope_fleet::program::Program;
///
/// let text = r#"
///     about = "hosts that send much"
///     [run]
///     every = "1s"
///     last = "1s"
///     [[ask]]
///     name = "sent"
///     select = "sum(length)"
///     group = "src_ip"
///     [[raise]]
///     name = "heavy"
///     condition = "sent > 10MB"
/// "#;
/// let program = Program::parse("heavy.toml", text, &[])?;
/// assert_eq!(program.raises()[0].name, "heavy");
/// # Ok::<_, queuescope_log::TextError>(())
/// ```
#[derive(Debug)]
pub struct Program {
    about: String,
    installs: Vec<Install>,
    run: Option<Run>,
    asks: Vec<Ask>,
    raises: Vec<Raise>,
    acts: Vec<Act>,
}

/// Definitions for some hosts.
#[derive(Debug)]
pub struct Install {
    /// The hosts.
    pub hosts: Hosts,
    /// What they compute.
    pub definitions: Definitions,
}

/// When a program asks its questions, and of which records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// After alerts of these triggers, which it installs.
    pub on: Vec<String>,
    /// In these intervals: always, or if `on` has triggers, for the time `during` after an alert.
    pub every: Option<Nanos>,
    /// For how long runs are repeated after an alert.
    pub during: Nanos,
    /// Only records of this time before the run; `None`: all.
    pub last: Option<Nanos>,
    /// The time until hosts have recorded the packets of the moment that a run is about: runs after alerts wait for so long, and the others are about
    /// an earlier moment.
    pub settle: Nanos,
    /// Whether all questions are about one moment.
    pub cut: bool,
    /// How long to wait for each host.
    pub within: Nanos,
}

/// A question to some hosts.
#[derive(Debug)]
pub struct Ask {
    /// Its name in conditions.
    pub name: String,
    /// The hosts.
    pub hosts: AskedHosts,
    /// A filter that the program installs: only packets that it matched, as far as they are in memory.
    pub filter: Option<String>,
    /// The texts of the question, as for `queuescope fleet query`.
    pub expression: String,
    /// The functions.
    pub select: String,
    /// The groups.
    pub group: String,
    /// Only the groups with the highest values.
    pub top: Option<u64>,
    /// The same, parsed.
    pub asked: Arc<Asked>,
}

/// An alert over answers.
#[derive(Debug)]
pub struct Raise {
    /// The name that alerts have, behind that of the program.
    pub name: String,
    /// When there is an alert.
    pub condition: Condition,
}

impl Program {
    /// What it is for, for people.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// When it runs; `None`: it installs definitions, and asks nothing.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Its questions.
    pub fn asks(&self) -> &[Ask] {
        &self.asks
    }

    /// Its alerts.
    pub fn raises(&self) -> &[Raise] {
        &self.raises
    }

    /// What it does on hosts after its alerts.
    pub fn acts(&self) -> &[Act] {
        &self.acts
    }

    /// The number of bytes of all definitions as text.
    pub fn definitions_bytes(&self) -> usize {
        self.installs.iter().map(|install| install.definitions.text().len()).sum()
    }

    /// The definitions of a host; `None`: it has none.
    ///
    /// # Errors
    /// Fails if two parts of the program define the same name for it.
    pub fn definitions(&self, host: &str) -> Result<Option<Definitions>, TextError> {
        let mut parts = self.installs.iter().filter(|install| install.hosts.contains(host));
        let Some(first) = parts.next() else { return Ok(None) };
        let mut all = first.definitions.clone();
        parts.try_for_each(|part| all.add_text("another [[install]] for this host", &part.definitions.text()))?;
        Ok(Some(all))
    }
}
