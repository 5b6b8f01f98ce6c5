//! A folder for what a queue did to each packet, as the arguments name it.

use crate::args::Queued;
use crate::terminal::note;
use anyhow::Result;
use queuescope_ingest::Stop;
use queuescope_log::queued;
use queuescope_recording::QueuedLog;

/// What ends a recording early, if there is a folder to record to: signals. Otherwise there is nothing to finish, and they end the
/// process as usual.
///
/// # Errors
/// If the system refuses.
pub fn stop(args: &Queued) -> Result<Option<Stop>> {
    Ok(args.log.as_ref().map(|_| Stop::on_signals()).transpose()?)
}

/// Opens the folder that was asked for, so that what cannot be recorded to fails before the work is done.
///
/// # Errors
/// If it cannot be recorded to.
pub fn open(args: &Queued) -> Result<Option<QueuedLog>> {
    let Some(path) = &args.log else { return Ok(None) };
    let keeping = args.keeping.options(queued::schema())?;
    Ok(Some(QueuedLog::open(path, &keeping, Box::new(note))?))
}
