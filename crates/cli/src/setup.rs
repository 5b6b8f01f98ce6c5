//! From arguments to an analysis, and from what it found to a report.

use crate::args::{ExpiryName, Output, Question, Sketch};
use crate::expressions::{explained, show};
use anyhow::Result;
use queuescope_analysis::{Analysis, AnalysisParams, FlowIndex, Scale, SketchOptions};
use queuescope_ingest::records::Unknown;
use queuescope_ingest::{Chosen, Source};
use queuescope_meter::{History, Tau};
use queuescope_recording::Outputs;
use queuescope_report::model::Report;
use queuescope_sketch::{Expiry, Passes};
use queuescope_wire::Rate;

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
    let mut options = SketchOptions::default();
    options.snapshots = sketch.snapshots;
    options.rows = sketch.rows;
    options.columns = sketch.columns;
    options.window = sketch.window;
    options.memory = sketch.memory;
    options.expiry = expiry;
    let mut estimators = sketch.estimator.clone();
    estimators.sort_unstable();
    estimators.dedup();
    let mut params = AnalysisParams::new(scale);
    params.history = history;
    params.tau = question.tau.map_or(params.tau, Tau::Given);
    params.alpha = question.alpha.0;
    params.ramped = question.ramped.map(|factor| factor.0);
    params.estimators = estimators;
    params.sketch = options.params(scale)?;
    params.window_grows = sketch.window.is_none();
    params.across_classes = question.across_classes;
    params.pictures = output.html.is_some();
    params.most_bursts = question.most_bursts as usize;
    params.details = output.json || output.html.is_some();
    params.rate = rate;
    params.victims = Chosen::victims(question.focus.victims.as_deref(), unknown).map_err(explained)?;
    params.show = show(question.focus.show.as_deref())?;
    Ok(params)
}

/// The report of an analysis whose input has ended.
pub fn finish<D: FlowIndex>(analysis: Analysis<D, Outputs>, source: Source) -> (Report, Outputs) {
    let (findings, outputs) = analysis.finish();
    (findings.report(source), outputs)
}
