//! `queuescope analyze`: from arguments to a report.

use crate::analysis::{Analysis, AnalysisParams};
use crate::args::{Analyze, ExpiryName, Question};
use crate::door::Door;
use crate::findings::Findings;
use crate::outcome::{Outcome, print};
use crate::outputs::{Outputs, cannot_write, create};
use crate::source::{self, Opened, Source};
use anyhow::{Context, Result, bail};
use queuescope_meter::{History, Tau};
use queuescope_pcap::CaptureReader;
use queuescope_queue::Limit;
use queuescope_report::model::Report;
use queuescope_report::{html, json, text};
use queuescope_sketch::{ConQuestParams, Expiry, Passes, Weights};
use queuescope_table::DepartureReader;
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
    // What cannot be read must not cost an older report.
    let input = source::open(&args.input)?;
    let html = args.output.html.as_deref().map(|path| anyhow::Ok((path, create(path)?))).transpose()?;
    let outputs = Outputs::create(args.output.pcapng.as_deref(), args.output.parquet.as_deref())?;
    let (report, outputs) = match input {
        Opened::Capture(reader, rate) => from_capture(args, reader, rate, outputs)?,
        Opened::Table(reader) => from_departures(args, reader, outputs)?,
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

fn from_capture(args: &Analyze, reader: CaptureReader, rate: Rate, outputs: Outputs) -> Result<(Report, Outputs)> {
    let door = Flows::new(&source::granularities(&args.keys), FLOWS);
    let floor = rate.time_for(ByteCount(NO_CONGESTION * FULL_FRAME.0)).min(half_full(args.input.queue.limit, rate));
    let params = params(args, Some(rate), History::Fifo, floor, rate.time_for(FULL_FRAME))?;
    let mut analysis = Analysis::new(door, params, outputs)?;
    let source = source::replay(reader, rate, &args.input, &args.keys, &mut analysis)?;
    Ok(finish(analysis, source, args))
}

fn from_departures(args: &Analyze, reader: DepartureReader, outputs: Outputs) -> Result<(Report, Outputs)> {
    let params = params(args, None, History::Departures(DEPARTURES), Nanos(1_000), Nanos(1_000))?;
    let mut analysis = Analysis::new(FlowTable::with_limit(FLOWS), params, outputs)?;
    let source = source::table(reader, &args.input, &mut analysis)?;
    Ok(finish(analysis, source, args))
}

fn finish<D: Door>(analysis: Analysis<D, Outputs>, source: Source, args: &Analyze) -> (Report, Outputs) {
    let (findings, outputs): (Findings<D>, _) = analysis.finish();
    let Question { alpha, ramped, .. } = &args.question;
    (findings.report(source, window_source(args), alpha.0, ramped.map(|factor| factor.0)), outputs)
}

fn params(
    args: &Analyze,
    rate: Option<Rate>,
    history: History,
    floor: Nanos,
    shortest_window: Nanos,
) -> Result<AnalysisParams> {
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
        worst: history == History::Fifo && (args.output.json || args.output.html.is_some()),
        rate,
    })
}

/// How long a packet waits where the queue is half as full as it can be: that is no longer "no congestion".
fn half_full(limit: Limit, rate: Rate) -> Nanos {
    let full = match limit {
        Limit::None => Nanos::MAX,
        Limit::Bytes(bytes) => rate.time_for(bytes),
        Limit::Packets(packets) => rate.time_for(ByteCount(packets.saturating_mul(FULL_FRAME.0))),
        Limit::Time(time) => time,
    };
    Nanos(full.0 / 2)
}

fn window_source(args: &Analyze) -> String {
    if args.sketch.window.is_some() { "given".to_owned() } else { "chosen".to_owned() }
}
