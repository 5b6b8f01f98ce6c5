//! Which of the granted capabilities of the process a command keeps.

use crate::args::Command;
use anyhow::{Context, Result};
use queuescope_live::capabilities::{CapabilitySet, NAMESPACES, PACKETS, PROBE, Seer, TUN, USED, keep_only};

/// Gives up all capabilities that a command does not use, before it opens anything. The `seer`, which sees the processes of
/// other users, is kept for commands that look for owners of flows, and dropped for all others.
///
/// # Errors
/// Returns the error of the system call if the kernel refuses.
pub fn keep_for(command: &Command, seer: Option<Seer>) -> Result<Option<Seer>> {
    keep_only(used_by(command)).context("cannot give up capabilities")?;
    Ok(seer.filter(|_| matches!(command, Command::Live(_) | Command::Doctor(_))))
}

/// The capabilities that a command uses.
fn used_by(command: &Command) -> CapabilitySet {
    match command {
        Command::Live(_) => PROBE,
        // `doctor` opens nothing that a user names.
        Command::Doctor(_) => USED,
        Command::Capture(_) => PACKETS,
        #[cfg(feature = "fleet")]
        Command::Agent(args) if args.acting.act.is_some() => PACKETS | PROBE,
        #[cfg(feature = "fleet")]
        Command::Agent(_) => PACKETS,
        #[cfg(feature = "fleet")]
        Command::Coordinator(_) | Command::Fleet(_) => CapabilitySet::empty(),
        #[cfg(not(feature = "fleet"))]
        Command::Fleet { .. } => CapabilitySet::empty(),
        // Real hosts may have congestion controls that are BPF programs in the kernel.
        #[cfg(feature = "experiments")]
        Command::Experiment(_) => NAMESPACES | TUN | PROBE,
        #[cfg(not(feature = "experiments"))]
        Command::Experiment { .. } => CapabilitySet::empty(),
        Command::Link(args) if !args.between.is_empty() => PACKETS | TUN,
        Command::Link(_) | Command::Compare(_) => NAMESPACES | TUN | PROBE,
        Command::Keep(_) => NAMESPACES,
        Command::GuardQueues => TUN,
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
