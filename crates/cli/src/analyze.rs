//! `queuescope analyze`: from arguments to a report.

use crate::analysis::{Analysis, AnalysisParams};
use crate::args::{Analyze, ExpiryName};
use crate::door::Door;
use crate::findings::Findings;
use crate::outcome::{Outcome, print};
use crate::outputs::{Outputs, cannot_write, create};
use crate::source::{self, Source};
use anyhow::{Context, Result, bail};
use queuescope_meter::{History, Tau};
use queuescope_report::model::Report;
use queuescope_report::{html, json, text};
use queuescope_sketch::{ConQuestParams, Expiry, Passes, Weights};
use queuescope_wire::{ByteCount, FlowTable, Flows, Nanos, Rate};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Live flows from which on idle ones are taken back.
const FLOWS: usize = 1 << 14;
/// Departures that are remembered where packets leave in any order.
const DEPARTURES: usize = 1 << 20;
/// A full Ethernet frame.
const FULL_FRAME: ByteCount = ByteCount(1514);
/// Full frames in a row that are no congestion.
const NO_CONGESTION: u64 = 10;
/// Snapshots, unless told otherwise.
const SNAPSHOTS: usize = 8;

/// Runs `analyze`.
///
/// # Errors
/// If nothing could be done: no input, impossible arguments, or an output that cannot be written.
pub fn run(args: &Analyze) -> Result<Outcome> {
    check_outputs(args)?;
    let html = args.output.html.as_deref().map(|path| anyhow::Ok((path, create(path)?))).transpose()?;
    let outputs = Outputs::create(args.output.pcapng.as_deref(), args.output.parquet.as_deref())?;
    let (report, outputs) = match source::rate(&args.input) {
        Some(rate) => from_capture(args, rate, outputs)?,
        None => from_departures(args, outputs)?,
    };
    outputs.finish()?;
    if let Some((path, file)) = html {
        let mut out = BufWriter::new(file);
        html::write(&report, &mut out).and_then(|()| out.flush()).with_context(|| cannot_write(path))?;
    }
    print(args.output.json, |mut out| json::write(&report, &mut out), |mut out| text::write(&report, &mut out))?;
    Ok(Outcome::of(report.input.damage))
}

/// Refuses outputs that would overwrite the input or each other.
fn check_outputs(args: &Analyze) -> Result<()> {
    let output = &args.output;
    let outputs = [&output.html, &output.pcapng, &output.parquet].into_iter().flatten();
    let file = &args.input.file;
    let input = if source::is_standard_input(file) { Path::new("/dev/stdin") } else { file };
    let mut taken = vec![(place(input), "the input")];
    for path in outputs {
        let place = place(path);
        // Devices, such as /dev/null, take any number of outputs.
        if path.exists() && !path.is_file() {
            continue;
        }
        if let Some((_, what)) = taken.iter().find(|(other, _)| *other == place) {
            bail!("{}: it is {what}, which would be overwritten; name another file", cannot_write(path));
        }
        taken.push((place, "another output"));
    }
    Ok(())
}

/// Which file a path leads to, by whatever name; or where it would be.
#[derive(PartialEq)]
enum Place {
    /// Device and inode: hard links are one file.
    Exists(u64, u64),
    New(PathBuf),
}

fn place(path: &Path) -> Place {
    #[cfg(unix)]
    if let Ok(metadata) = std::fs::metadata(path) {
        use std::os::unix::fs::MetadataExt;
        return Place::Exists(metadata.dev(), metadata.ino());
    }
    let parent = || {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(parent.canonicalize().ok()?.join(path.file_name()?))
    };
    Place::New(path.canonicalize().ok().or_else(parent).unwrap_or_else(|| path.to_owned()))
}

fn from_capture(args: &Analyze, rate: Rate, outputs: Outputs) -> Result<(Report, Outputs)> {
    let door = Flows::new(&source::granularities(&args.keys), FLOWS);
    let floor = rate.time_for(ByteCount(NO_CONGESTION * FULL_FRAME.0));
    let params = params(args, History::Fifo, floor, rate.time_for(FULL_FRAME))?;
    let mut analysis = Analysis::new(door, params, outputs)?;
    let source = source::replay(&args.input, &args.keys, rate, &mut analysis)?;
    Ok(finish(analysis, source, args))
}

fn from_departures(args: &Analyze, outputs: Outputs) -> Result<(Report, Outputs)> {
    let params = params(args, History::Departures(DEPARTURES), Nanos(1_000), Nanos(1_000))?;
    let mut analysis = Analysis::new(FlowTable::with_limit(FLOWS), params, outputs)?;
    let source = source::table(&args.input, &mut analysis)?;
    Ok(finish(analysis, source, args))
}

fn finish<D: Door>(analysis: Analysis<D, Outputs>, source: Source, args: &Analyze) -> (Report, Outputs) {
    let (findings, outputs): (Findings<D>, _) = analysis.finish();
    (findings.report(source, window_source(args), args.question.alpha.0), outputs)
}

fn params(args: &Analyze, history: History, floor: Nanos, shortest_window: Nanos) -> Result<AnalysisParams> {
    let (question, sketch) = (&args.question, &args.sketch);
    let expiry = match sketch.expiry {
        ExpiryName::Tag => Expiry::Tag,
        ExpiryName::Clean => Expiry::Clean { passes: Passes::Generated },
        ExpiryName::CleanPlain => Expiry::Clean { passes: Passes::None },
    };
    let snapshots = sketch.snapshots.unwrap_or(SNAPSHOTS);
    let mut params = match sketch.columns {
        Some(columns) => ConQuestParams {
            snapshots,
            rows: sketch.rows.unwrap_or(2),
            columns,
            window: Nanos(1),
            expiry,
            weights: Weights::default(),
            seed: 0,
        },
        None => ConQuestParams::fit(Nanos(1), sketch.memory, snapshots, sketch.rows, expiry)?,
    };
    // A window that is a power of two needs no division, here as on a switch (section 4.1).
    params.window = sketch.window.unwrap_or(Nanos(shortest_window.0.max(64).next_power_of_two()));
    let mut estimators = sketch.estimator.clone();
    estimators.sort_unstable();
    estimators.dedup();
    Ok(AnalysisParams {
        history,
        tau: question.tau.map_or_else(|| Tau::adaptive(floor), Tau::Given),
        alpha: question.alpha.0,
        estimators,
        sketch: params,
        window_grows: sketch.window.is_none(),
        across_classes: question.across_classes,
        pictures: args.output.html.is_some(),
        most_bursts: question.most_bursts as usize,
    })
}

fn window_source(args: &Analyze) -> String {
    if args.sketch.window.is_some() { "given".to_owned() } else { "chosen".to_owned() }
}
