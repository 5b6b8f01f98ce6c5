//! An agent whose records are a table of departures.

use super::reports::wait;
use super::serve;
use crate::args::Agent as AgentArgs;
use crate::capture_live::clock;
use crate::expressions::recording_error;
use crate::fleet::Access;
use crate::outcome::{Outcome, print};
use crate::terminal::note;
use anyhow::Result;
use queuescope_fleet::agent::Served;
use queuescope_ingest::{Input, Opened, Stop, open};
use queuescope_log::queued;
use queuescope_recording::{QueuedLog, TableLog};
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use queuescope_table::TableOptions;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs an agent that records a table once, and then answers about it.
///
/// # Errors
/// Fails if nothing could be recorded, or if the coordinator refuses this host.
pub fn run(args: &AgentArgs, path: &Path) -> Result<Outcome> {
    let access = Access::open(&args.access)?;
    let stop = Stop::on_signals()?;
    let options = TableOptions { columns: args.map.clone().unwrap_or_default(), time_unit: args.time_unit };
    let Opened::Table(opened) = open(&Input::table(path, options), Some(&stop))? else {
        unreachable!("it was opened as a table")
    };
    let log = QueuedLog::open(args.log(), &args.keeping.options(queued::schema())?, Box::new(note));
    let mut table = TableLog::new(log.map_err(recording_error)?);
    let source = format!("departures in {}", path.display());
    let served = Served::new(table.recorder(), args.log().to_owned(), source, Arc::default());
    let complete = Arc::new(AtomicU64::new(0));
    let (network, refused) = serve(served.completing(Arc::clone(&complete)), access, &stop)?;
    let until = match args.run_time.duration {
        Some(duration) => Some(clock()?.saturating_add(duration)),
        None => None,
    };
    let read = opened.read(&mut table, &mut |_, _| ()).and_then(|source| table.hand_over().map(|()| source));
    // No more rows come.
    complete.store(u64::MAX, Ordering::Release);
    let waited = if read.is_ok() { wait(&stop, until) } else { Ok(()) };
    network.end();
    let recorded = table.finish().map_err(recording_error)?;
    let read = read.map_err(recording_error)?;
    waited?;
    let (rows, to) = (count(read.packets), recorded.path.display());
    let notes: Vec<Skipped> =
        recorded.short().chain(recorded.others.clone()).chain(read.skipped.clone()).chain(stop.note()).collect();
    print(
        false,
        |_| Ok(()),
        |out| {
            writeln!(out, "{rows} packets of {} recorded to {to}", read.input.name)?;
            notes.iter().try_for_each(|note| writeln!(out, "{} {}", count(note.count), note.meaning))
        },
    )?;
    refused.check()?;
    Ok(Outcome::from_damage(read.input.damage.or_else(|| recorded.damage())))
}
