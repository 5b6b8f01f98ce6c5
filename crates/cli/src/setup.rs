//! Options of an analysis from the arguments, and its report.

use crate::args::{ExpiryName, Focus, Keys, Output, Question, Sketch};
use queuescope_analysis::{Analysis, AnalysisOptions, FlowIndex};
use queuescope_ingest::Source;
use queuescope_recording::Outputs;
use queuescope_report::model::Report;
use queuescope_sketch::{Expiry, Passes};

/// The options of an analysis, from the arguments.
pub fn options(keys: &Keys, question: &Question, sketch: &Sketch, output: &Output) -> AnalysisOptions {
    let mut options = options_of_question(keys, question);
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

/// The same for commands without arguments about the sketch and the output.
pub fn options_of_question(keys: &Keys, question: &Question) -> AnalysisOptions {
    let mut options = focused(keys, &question.focus);
    options.tau = question.tau;
    options.alpha = question.alpha.0;
    options.ramped = question.ramped.map(|factor| factor.0);
    options.most_bursts = question.most_bursts as usize;
    options.across_classes = question.across_classes;
    options
}

/// The same with only the granularities, the victims and the flows to show.
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
