//! Which of the capabilities that this process was granted a command uses.

use crate::args::Command;
use anyhow::{Context, Result};
use queuescope_live::capabilities::{CapabilitySet, NAMESPACES, PACKETS, PROBE, Seer, TUN, USED, keep_only};

/// Gives up all that a command does not use, before it opens anything. Who sees processes of other users is left to those that look for
/// owners of flows, and ends for all others.
///
/// # Errors
/// Those of the kernel.
pub fn keep_for(command: &Command, seer: Option<Seer>) -> Result<Option<Seer>> {
    keep_only(used_by(command)).context("cannot give up capabilities")?;
    Ok(seer.filter(|_| matches!(command, Command::Live(_) | Command::Doctor(_))))
}

/// What a command uses.
fn used_by(command: &Command) -> CapabilitySet {
    match command {
        Command::Live(_) => PROBE,
        // It opens nothing that a user names.
        Command::Doctor(_) => USED,
        Command::Capture(_) => PACKETS,
        // Real hosts may have congestion controls that are programs of the kernel.
        #[cfg(feature = "experiments")]
        Command::Experiment(_) => NAMESPACES | TUN | PROBE,
        #[cfg(not(feature = "experiments"))]
        Command::Experiment { .. } => CapabilitySet::empty(),
        Command::Link(_) | Command::Compare(_) => NAMESPACES | TUN | PROBE,
        Command::Keep(_) => NAMESPACES,
        Command::Traffic(_) => PROBE,
        Command::Analyze(_)
        | Command::Why(_)
        | Command::Tap(_)
        | Command::Query(_)
        | Command::Record(_)
        | Command::Watch(_)
        | Command::Log(_)
        | Command::Sim(_)
        | Command::Merge(_)
        | Command::P4(_)
        | Command::Generate { .. } => CapabilitySet::empty(),
    }
}
