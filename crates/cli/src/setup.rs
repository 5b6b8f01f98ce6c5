//! From arguments to an analysis, and from what it found to a report.

use crate::args::{ExpiryName, Focus, Keys, Output, Question, Sketch};
use queuescope_analysis::{Analysis, AnalysisOptions, FlowIndex};
use queuescope_ingest::Source;
use queuescope_recording::Outputs;
use queuescope_report::model::Report;
use queuescope_sketch::{Expiry, Passes};

/// What the arguments ask of a queue.
pub fn options(keys: &Keys, question: &Question, sketch: &Sketch, output: &Output) -> AnalysisOptions {
    let mut options = asked(keys, question);
    options.sketch.snapshots = sketch.snapshots;
    options.sketch.rows = sketch.rows;
    options.sketch.columns = sketch.columns;
    options.sketch.window = sketch.window;
    options.sketch.memory = sketch.memory;
    options.sketch.expiry = match sketch.expiry {
        ExpiryName::Tag => Expiry::Tag,
        ExpiryName::Clean => Expiry::Clean { passes: Passes::Generated },
        ExpiryName::CleanPlain => Expiry::Clean { passes: Passes::None },
    };
    options.estimators.clone_from(&sketch.estimator);
    options.pictures = output.html.is_some();
    options.details = output.json || output.html.is_some();
    options
}

/// The same where nothing is said of the sketch and of where the answer goes.
pub fn asked(keys: &Keys, question: &Question) -> AnalysisOptions {
    let mut options = focused(keys, &question.focus);
    options.tau = question.tau;
    options.alpha = question.alpha.0;
    options.ramped = question.ramped.map(|factor| factor.0);
    options.most_bursts = question.most_bursts as usize;
    options.across_classes = question.across_classes;
    options
}

/// What a flow is, whose waiting is examined and which flows are listed.
pub fn focused(keys: &Keys, focus: &Focus) -> AnalysisOptions {
    let mut options = AnalysisOptions::default();
    options.by.clone_from(&keys.by);
    options.victims.clone_from(&focus.victims);
    options.show.clone_from(&focus.show);
    options
}

/// The report of an analysis whose input has ended.
pub fn finish<D: FlowIndex>(analysis: Analysis<D, Outputs>, source: Source) -> (Report, Outputs) {
    let (findings, outputs) = analysis.finish();
    (findings.report(source), outputs)
}
