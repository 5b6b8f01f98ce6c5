//! What `live` does to flows, and how that changes while it runs.
//!
//! A file that is looked at is the one way to change it: any editor, shell or program writes one, no terminal is needed, and what is
//! asked stands somewhere. It holds the options themselves, so that there is nothing else to learn or to parse.

use crate::args::{ActingArgs, PolicyArgs};
use crate::capture::noted;
use anyhow::{Context, Result};
use queuescope_live::{Acted, Probe};
use queuescope_report::model::Skipped;
use std::path::PathBuf;

/// What is done, and what came of it.
pub struct Acts {
    file: Option<PathBuf>,
    /// What the file held when it was looked at last.
    text: String,
    /// Times that it held what cannot be done, and why not when it did last.
    refused: (u64, String),
    acted: Acted,
}

impl Acts {
    /// Begins to act as asked.
    ///
    /// # Errors
    /// If the file cannot be read or means nothing, and those of the kernel.
    pub fn begin(args: &ActingArgs, probe: &mut Probe) -> Result<Self> {
        let mut acts = Self {
            file: args.policy_file.clone(),
            text: String::new(),
            refused: (0, String::new()),
            acted: Acted::default(),
        };
        acts.text = acts.read()?.unwrap_or_default();
        match &acts.file {
            Some(file) => follow(&acts.text, probe).with_context(|| format!("cannot act as {} says", file.display())),
            None => ask(&args.policy, probe),
        }?;
        Ok(acts)
    }

    /// Looks whether it is to be done otherwise. What cannot be done is noted, and what was done before goes on.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn look(&mut self, probe: &mut Probe) -> Result<()> {
        self.acted = probe.acted()?;
        match self.read() {
            // Who writes a file anew has it empty for a moment.
            Ok(Some(text)) if text != self.text && !text.is_empty() => {
                if let Err(why) = follow(&text, probe) {
                    self.refused = (self.refused.0 + 1, format!("{why:#}"));
                }
                self.text = text;
            }
            // While it is not there, nothing changes.
            _ => (),
        }
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "the command reads the files that it is given")]
    fn read(&self) -> Result<Option<String>> {
        let Some(file) = &self.file else { return Ok(None) };
        std::fs::read_to_string(file).map(Some).with_context(|| format!("cannot read {}", file.display()))
    }

    /// What was done when it was looked at last.
    pub fn acted(&self) -> Acted {
        self.acted
    }

    /// What was done to packets, and what would have been.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        let acted = &self.acted;
        let (refused, why) = &self.refused;
        let first = why.lines().next().unwrap_or_default();
        let why =
            format!("times that the policy's file held what cannot be done; what was done before went on: {first}");
        let notes = [
            noted("marked", acted.marked, "packets (CE) of flows that contribute, before the queue"),
            noted("would_mark", acted.would_mark, "packets would have been marked; --for-real does it"),
            noted("marked_before", acted.marked_before, "packets were to be marked, and had been before"),
            noted("unmarkable", acted.unmarkable, "packets were to be marked, but are not capable of ECN, or not IP"),
            noted("dropped", acted.dropped, "packets of flows that contribute, before the queue"),
            noted("would_drop", acted.would_drop, "packets would have been dropped; --for-real does it"),
            noted("limited", acted.limited, "packets beyond their flow's limit, dropped before the queue"),
            noted(
                "would_limit",
                acted.would_limit,
                "packets beyond their flow's limit would have been dropped; --for-real does it",
            ),
            noted("spared", acted.spared, "packets of flows that contribute, neither chosen nor beyond a limit"),
            noted(
                "no_room_to_act",
                acted.full,
                "times that a flow was to be acted on and there was no room to remember it",
            ),
            noted("policy_refused", *refused, &why),
        ];
        notes.into_iter().flatten()
    }
}

/// Does what a text says.
fn follow(text: &str, probe: &mut Probe) -> Result<()> {
    ask(&PolicyArgs::read(text)?, probe)
}

fn ask(policy: &PolicyArgs, probe: &mut Probe) -> Result<()> {
    match policy.acting() {
        Some(acting) => probe.act(&acting)?,
        None => probe.rest()?,
    }
    Ok(())
}
