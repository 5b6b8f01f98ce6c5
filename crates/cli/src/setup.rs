//! From arguments to an analysis, and from what it found to a report.

use crate::analysis::{Analysis, AnalysisParams};
use crate::args::{ExpiryName, Output, Question, Sketch};
use crate::door::Door;
use crate::expressions::explained;
use crate::findings::Findings;
use crate::outputs::Outputs;
use crate::show::Show;
use anyhow::Result;
use queuescope_ingest::records::Unknown;
use queuescope_ingest::{Chosen, Source};
use queuescope_meter::{History, Tau};
use queuescope_queue::Limit;
use queuescope_report::model::Report;
use queuescope_sketch::{ConQuestParams, Expiry, Passes, Weights};
use queuescope_wire::{ByteCount, Nanos, Rate};

/// Live flows from which on idle ones are taken back.
pub const FLOWS: usize = 1 << 14;
/// A full Ethernet frame.
const FULL_FRAME: ByteCount = ByteCount(1514);
/// Full frames in a row that are no congestion.
const NO_CONGESTION: u64 = 10;
/// Snapshots, unless told otherwise.
const SNAPSHOTS: usize = 8;

/// The times that tau and the sketch's window start from.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// The least that tau is, unless it is given.
    pub tau: Nanos,
    /// The shortest window, unless it is given.
    pub window: Nanos,
}

impl Scale {
    /// Those of a link; where its rate is not known, a microsecond.
    pub fn of(rate: Option<Rate>) -> Self {
        let time = |bytes: u64| rate.map_or(Nanos(1_000), |rate| rate.time_for(ByteCount(bytes)));
        Self { tau: time(NO_CONGESTION * FULL_FRAME.0), window: time(FULL_FRAME.0) }
    }

    /// Those of a link behind a queue with a limit: how long a packet waits where it is half as full as it can be is no
    /// longer "no congestion".
    pub fn of_queue(rate: Rate, limit: Limit) -> Self {
        let full = match limit {
            Limit::None => Nanos::MAX,
            Limit::Bytes(bytes) => rate.time_for(bytes),
            Limit::Packets(packets) => rate.time_for(ByteCount(packets.saturating_mul(FULL_FRAME.0))),
            Limit::Time(time) => time,
        };
        let scale = Self::of(Some(rate));
        Self { tau: scale.tau.min(Nanos(full.0 / 2)), ..scale }
    }
}

/// How departures are analysed, by the arguments, where some attributes of packets are not known.
///
/// # Errors
/// If no sketch can be as asked for, or an expression means nothing.
pub fn params(
    (question, sketch, output): (&Question, &Sketch, &Output),
    unknown: Unknown,
    history: History,
    rate: Option<Rate>,
    scale: Scale,
) -> Result<AnalysisParams> {
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
    params.window = sketch.window.unwrap_or(Nanos(scale.window.0.max(64).next_power_of_two()));
    let mut estimators = sketch.estimator.clone();
    estimators.sort_unstable();
    estimators.dedup();
    Ok(AnalysisParams {
        history,
        tau: question.tau.map_or_else(|| Tau::adaptive(scale.tau), Tau::Given),
        alpha: question.alpha.0,
        estimators,
        sketch: params,
        window_grows: sketch.window.is_none(),
        across_classes: question.across_classes,
        pictures: output.html.is_some(),
        most_bursts: question.most_bursts as usize,
        details: output.json || output.html.is_some(),
        rate,
        tells: false,
        most_flows: None,
        order_tolerance: Nanos::ZERO,
        victims: Chosen::victims(question.focus.victims.as_deref(), unknown).map_err(explained)?,
        show: Show::of(question.focus.show.as_deref())?,
    })
}

/// The report of an analysis whose input has ended.
pub fn finish<D: Door>(
    analysis: Analysis<D, Outputs>,
    source: Source,
    question: &Question,
    sketch: &Sketch,
) -> (Report, Outputs) {
    let (findings, outputs): (Findings<D>, _) = analysis.finish();
    let window_source = if sketch.window.is_some() { "given" } else { "chosen" };
    let ramped = question.ramped.map(|factor| factor.0);
    (findings.report(source, window_source.to_owned(), question.alpha.0, ramped), outputs)
}
