//! The folder of `--log`, for what a queue did to each packet.

use crate::args::Queued;
use crate::terminal::note;
use anyhow::Result;
use queuescope_ingest::Stop;
use queuescope_log::queued;
use queuescope_recording::QueuedLog;

/// Makes signals end a recording early, if there is a folder to record to. Without a folder there is nothing to finish, and
/// signals end the process as usual.
///
/// # Errors
/// Fails if the signal handlers cannot be installed.
pub fn stop(args: &Queued) -> Result<Option<Stop>> {
    Ok(args.log.as_ref().map(|_| Stop::on_signals()).transpose()?)
}

/// Opens the folder of `--log`, if it is given, so that a folder that cannot be recorded to fails before the work is done.
///
/// # Errors
/// Fails if the folder cannot be recorded to.
pub fn open(args: &Queued) -> Result<Option<QueuedLog>> {
    let Some(path) = &args.log else { return Ok(None) };
    let keeping = args.keeping.options(queued::schema())?;
    Ok(Some(QueuedLog::open(path, &keeping, Box::new(note))?))
}
