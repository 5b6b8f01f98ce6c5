//! An agent that serves a folder which another process records to.

use super::reports::wait;
use super::serve;
use crate::args::Agent as AgentArgs;
use crate::capture_live::clock;
use crate::fleet::Access;
use crate::outcome::Outcome;
use anyhow::{Context, Result};
use queuescope_fleet::agent::Served;
use queuescope_ingest::Stop;
use queuescope_recording::check_log;
use std::path::Path;

/// Runs an agent that answers about a folder, and never writes to it.
///
/// # Errors
/// Fails if the folder is not a log, or if the coordinator refuses this host.
pub fn run(args: &AgentArgs, folder: &Path) -> Result<Outcome> {
    check_log(folder)?;
    let access = Access::open(&args.access)?;
    let stop = Stop::on_signals()?;
    let served = Served::of_folder(folder.to_owned(), format!("folder {}", folder.display()));
    let served = served.with_context(|| format!("cannot serve {}", folder.display()))?;
    let (network, refused) = serve(served, access, &stop)?;
    let until = match args.run_time.duration {
        Some(duration) => Some(clock()?.saturating_add(duration)),
        None => None,
    };
    let waited = wait(&stop, until);
    network.end();
    waited?;
    refused.check()?;
    Ok(Outcome::Complete)
}
