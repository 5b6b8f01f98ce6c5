//! `queuescope analyze`: the report of a capture or of a table of departures.

use crate::args::Analyze;
use crate::expressions::{analysis_error, rendered};
use crate::outcome::{Outcome, print};
use crate::paths::check_outputs;
use crate::setup::{finish, options};
use crate::views::Views;
use crate::{queued, source};
use anyhow::{Context, Result, bail};
use queuescope_analysis::{Analysis, DEPARTURES, FLOWS, Scale, Tally};
use queuescope_ingest::records::Unknown;
use queuescope_ingest::{Opened, OpenedCapture, OpenedTable, is_standard_input};
use queuescope_meter::History;
use queuescope_recording::Outputs;
use queuescope_report::model::{AqmComparison, AqmSetup, Report};
use queuescope_report::{json, text};
use queuescope_scenario::Management;
use queuescope_sim::Aqm;
use queuescope_wire::{FlowTable, Flows, KeyMask};

/// Runs `analyze`.
///
/// # Errors
/// Fails if the input cannot be read, if arguments are invalid, or if an output cannot be written.
pub fn run(args: &Analyze) -> Result<Outcome> {
    if let Some(list) = &args.compare_aqm {
        return compare(args, list);
    }
    let output = &args.output;
    check_outputs(&args.input.file, [&output.html, &args.pcapng, &output.parquet])?;
    // Open the input before creating outputs: if it fails, an older report must stay.
    let stop = queued::stop(&args.queued)?;
    let aqm = args.aqm.as_deref().map(|text| aqm("--aqm", text)).transpose()?;
    let input = source::open(&args.input, stop.as_ref())?;
    let log = queued::open(&args.queued)?;
    let views = Views::create(output)?;
    let outputs = Outputs::create(args.pcapng.as_deref(), output.parquet.as_deref(), log)?;
    let (report, outputs) = match input {
        Opened::Capture(opened) => from_capture(args, aqm, opened, outputs)?,
        Opened::Table(opened) => from_departures(args, opened, outputs)?,
    };
    let written = outputs.finish()?.ended_by(stop.as_ref());
    views.write(report, &written)
}

fn from_capture(
    args: &Analyze,
    aqm: Option<Aqm>,
    opened: OpenedCapture,
    outputs: Outputs,
) -> Result<(Report, Outputs)> {
    let rate = opened.rate();
    let queue = source::queue(&args.input, &args.keys, aqm);
    let analysis_options = options(&args.keys, &args.question, &args.sketch, &args.output);
    let mask = if queue.managed().is_some() { KeyMask::WHOLE } else { analysis_options.mask() };
    let flows = Flows::masked(mask, &analysis_options.granularities(), FLOWS);
    let scale = Scale::of_queue(rate, args.input.queue.limit);
    let params = analysis_options.params(Unknown::NOTHING, History::Fifo, Some(rate), scale).map_err(analysis_error)?;
    let params = if queue.is_fifo() { params } else { params.in_any_order() };
    let mut analysis = Analysis::new(flows, params, outputs)?;
    let source = source::replay(opened, &queue, mask, &mut analysis)?;
    Ok(finish(analysis, source))
}

/// Sends the capture through one discipline after another.
fn compare(args: &Analyze, list: &str) -> Result<Outcome> {
    if is_standard_input(args.input.path()) {
        bail!(
            "--compare-aqm reads the capture once for each discipline, and standard input can be read only once: name a file"
        );
    }
    let names = Management::split(list);
    if let Some(name) = names.iter().enumerate().find_map(|(n, name)| names[..n].contains(name).then_some(name)) {
        bail!("--compare-aqm names {name} twice: name each once, with the parameters that differ");
    }
    if names.iter().any(|name| name.is_empty()) && names.len() > 1 {
        bail!("--compare-aqm has no name between two commas: '{list}'");
    }
    let aqms = names.into_iter().map(|text| aqm("--compare-aqm", text)).collect::<Result<Vec<_>>>()?;
    let [granularity, ..] = args.keys.by[..] else { bail!("--by names no granularity") };
    let (mut replays, mut setup) = (Vec::new(), None::<AqmSetup>);
    for aqm in aqms {
        let Opened::Capture(opened) = source::open(&args.input, None)? else { bail!("--compare-aqm needs a --rate") };
        let name = aqm.to_string();
        let queue = source::queue(&args.input, &args.keys, Some(aqm));
        let mask = queue.mask(&[granularity]);
        let mut tally = Tally::new(granularity, mask);
        let Ok(source) = source::replay(opened, &queue, mask, &mut tally);
        let (replay, found) = tally.finish(&name, source);
        replays.push(replay);
        // The replay through a tail-drop queue lacks the note on senders, so keep the setup with the most notes.
        let has_more = setup.as_ref().is_none_or(|setup| found.skipped.len() > setup.skipped.len());
        setup = if has_more { Some(found) } else { setup };
    }
    let setup =
        setup.context("--compare-aqm names no discipline: give it a list such as tail-drop,codel,fq-codel,pie")?;
    let comparison = AqmComparison { setup, replays };
    print(
        args.output.json,
        |mut out| json::write_aqm_comparison(&comparison, &mut out),
        |mut out| text::write_aqm_comparison(&comparison, &mut out),
    )?;
    Ok(Outcome::from_damage(comparison.setup.input.damage))
}

/// Parses the discipline or switch program that `option` names.
fn aqm(option: &'static str, text: &str) -> Result<Aqm> {
    Aqm::parse(option, text).map_err(|error| rendered(&error))
}

fn from_departures(args: &Analyze, opened: OpenedTable, outputs: Outputs) -> Result<(Report, Outputs)> {
    let history = History::Departures(DEPARTURES);
    let analysis_options = options(&args.keys, &args.question, &args.sketch, &args.output);
    let mut params =
        analysis_options.params(Unknown::OF_TABLE, history, None, Scale::from_rate(None)).map_err(analysis_error)?;
    params.not_judged = None;
    let mut analysis = Analysis::new(FlowTable::with_limit(FLOWS), params, outputs)?;
    let source = source::table(opened, &mut analysis)?;
    Ok(finish(analysis, source))
}
