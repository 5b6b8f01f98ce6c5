//! `queuescope analyze`: from arguments to a report.

use crate::args::Analyze;
use crate::outcome::Outcome;
use crate::outputs::Outputs;
use crate::paths::check_outputs;
use crate::queued::{self, QueuedLog};
use crate::setup::{finish, params};
use crate::source;
use crate::views::Views;
use anyhow::Result;
use queuescope_analysis::{Analysis, DEPARTURES, FLOWS, Scale};
use queuescope_ingest::records::Unknown;
use queuescope_ingest::{Opened, OpenedCapture, OpenedTable};
use queuescope_meter::History;
use queuescope_report::model::Report;
use queuescope_wire::FlowTable;

/// Runs `analyze`.
///
/// # Errors
/// If nothing could be done: no input, impossible arguments, or an output that cannot be written.
pub fn run(args: &Analyze) -> Result<Outcome> {
    let output = &args.output;
    check_outputs([&args.input.file], [&output.html, &args.pcapng, &output.parquet])?;
    // What cannot be read, or means nothing, must not cost an older report.
    let stop = queued::stop(&args.queued)?;
    let input = source::open(&args.input, stop.as_ref())?;
    let log = QueuedLog::open(&args.queued)?;
    let views = Views::create(output)?;
    let outputs = Outputs::create(args.pcapng.as_deref(), output.parquet.as_deref(), log)?;
    let (report, outputs) = match input {
        Opened::Capture(opened) => from_capture(args, opened, outputs)?,
        Opened::Table(opened) => from_departures(args, opened, outputs)?,
    };
    let written = outputs.finish()?.ended_by(stop.as_ref());
    views.write(report, &written)
}

fn from_capture(args: &Analyze, opened: OpenedCapture, outputs: Outputs) -> Result<(Report, Outputs)> {
    let rate = opened.rate();
    let flows = source::flows(&args.keys, &args.question.focus, FLOWS);
    let scale = Scale::of_queue(rate, args.input.queue.limit);
    let params =
        params((&args.question, &args.sketch, &args.output), Unknown::NOTHING, History::Fifo, Some(rate), scale)?;
    let mut analysis = Analysis::new(flows, params, outputs)?;
    let source = source::replay(opened, &args.input, (&args.keys, &args.question.focus), &mut analysis)?;
    Ok(finish(analysis, source))
}

fn from_departures(args: &Analyze, opened: OpenedTable, outputs: Outputs) -> Result<(Report, Outputs)> {
    let history = History::Departures(DEPARTURES);
    let params =
        params((&args.question, &args.sketch, &args.output), Unknown::OF_TABLE, history, None, Scale::of(None))?;
    let mut analysis = Analysis::new(FlowTable::with_limit(FLOWS), params, outputs)?;
    let source = source::table(opened, &mut analysis)?;
    Ok(finish(analysis, source))
}
