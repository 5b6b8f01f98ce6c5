//! `why`: which flows made a packet, a flow, or the packets of a time wait.

use crate::analyze::Source;
use crate::arguments::Arguments;
use crate::arrow::{Columns, RawTable, batches, table_of};
use crate::failure::{Failure, Outcome};
use crate::report::written;
use crate::task::{self, Task};
use anstream::adapter::strip_str;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use queuescope::analysis::why::{At, Question, Recorder};
use queuescope::analysis::{AnalysisOptions, Show};
use queuescope::ingest::records::Unknown;
use queuescope::ingest::{self, Input, Opened, OpenedTable, PacketFilter};
use queuescope::report::model::{Part, Ranked, Why};
use queuescope::report::{json, text};
use queuescope::table::{DepartureReader, TableOptions};
use queuescope::wire::FlowTable;
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Answers a question about the past of a queue. `input` is a path, or a table of another library.
#[pyfunction]
#[pyo3(signature = (input, arguments, progress=None))]
pub fn why(
    py: Python<'_>,
    input: &Bound<'_, PyAny>,
    arguments: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RawWhy> {
    let arguments = Arguments(arguments);
    let source = Source::new(&arguments)?;
    let (question, options) = question(&arguments, matches!(source, Source::Table(_)))?;
    let only = arguments.text("input")?;
    if let Ok(path) = input.extract::<PathBuf>() {
        return task::run(py, progress, move |task| {
            let input = match &source {
                Source::Capture(rate, _) => Input::capture(&path, *rate),
                Source::Table(options) => Input::table(&path, (**options).clone()),
            };
            let opened = ingest::open(&input.only(only), Some(task.stop()))?;
            answer(opened, source, question, &options, task)
        });
    }
    let batches = batches("departures", input)?;
    task::run(py, progress, move |task| {
        let options_of_table = match &source {
            Source::Table(options) => (**options).clone(),
            Source::Capture(..) => TableOptions::default(),
        };
        let reader = DepartureReader::from_batches(batches, "departures", options_of_table)?;
        let opened = Opened::Table(OpenedTable::from_reader(reader, only.as_deref(), Some(task.stop()))?);
        answer(opened, source, question, &options, task)
    })
}

fn question(arguments: &Arguments<'_, '_>, is_table: bool) -> Outcome<(Question, AnalysisOptions)> {
    let unknown = if is_table { Unknown::OF_TABLE } else { Unknown::NOTHING };
    let mut question = Question::default();
    question.packet = arguments.count("packet", 1, u64::MAX)?.and_then(NonZeroU64::new);
    question.flow = arguments.text("flow")?;
    question.victims = PacketFilter::victims(arguments.text("victims")?.as_deref(), unknown)?;
    let at = arguments.text("at")?.map(|text| text.parse::<At>()).transpose();
    question.at = at.map_err(|error| Failure::Value(format!("at=: {error}")))?;
    question.alpha = arguments.share("alpha")?.unwrap_or(question.alpha);
    question.show = Show::from_text(arguments.text("show")?.as_deref()).map_err(queuescope::analysis::Error::from)?;
    let mut options = AnalysisOptions::default();
    options.by = arguments.list("by")?.unwrap_or(options.by);
    options.victims = arguments.text("victims")?;
    Ok((question, options))
}

fn answer(
    opened: Opened,
    source: Source,
    question: Question,
    options: &AnalysisOptions,
    task: &Task,
) -> Outcome<RawWhy> {
    let progress = &mut |bytes, packets| task.progress(bytes, packets);
    let answer = match (opened, source) {
        (Opened::Capture(opened), Source::Capture(_, queue)) => {
            let mut recorder = Recorder::new(options.flows(usize::MAX), question);
            let source = opened.replay(&queue, options.mask(), &mut recorder, progress).map_err(Failure::input)?;
            recorder.answer(source)
        }
        (Opened::Capture(_), Source::Table(_)) => return Err(Failure::Value("rate= is missing".to_owned())),
        (Opened::Table(opened), _) => {
            let mut recorder = Recorder::new(FlowTable::with_limit(usize::MAX), question);
            let source = opened.read(&mut recorder, progress).map_err(Failure::input)?;
            recorder.answer(source)
        }
    };
    Ok(RawWhy { why: answer.map_err(Failure::value)? })
}

/// An answer.
#[pyclass(frozen, module = "queuescope._queuescope")]
#[derive(Debug)]
pub struct RawWhy {
    why: Why,
}

#[pymethods]
impl RawWhy {
    /// The fields as JSON.
    fn fields(&self) -> PyResult<String> {
        Ok(serde_json::to_string(&self.why).map_err(Failure::value)?)
    }

    /// The line that `queuescope why --json` prints.
    fn json(&self) -> PyResult<String> {
        Ok(written(|out| json::write_why(&self.why, out))?)
    }

    /// What `queuescope why` prints, without colours.
    fn text(&self) -> PyResult<String> {
        Ok(strip_str(&written(|out| text::write_why(&self.why, out))?).to_string())
    }

    /// The culprits of all kinds.
    fn table(&self) -> PyResult<RawTable> {
        Ok(culprits(&self.why)?)
    }
}

fn culprits(why: &Why) -> Outcome<RawTable> {
    let (mut kinds, mut granularities, mut parts) = (Vec::new(), Vec::new(), Vec::<Part>::new());
    for (kind, Ranked { by, .. }) in [("direct", &why.direct), ("indirect", &why.indirect), ("original", &why.original)]
    {
        for level in by {
            kinds.extend(level.flows.iter().map(|_| kind));
            granularities.extend(level.flows.iter().map(|_| level.granularity.as_str()));
            parts.extend(level.flows.iter().cloned());
        }
    }
    table_of(Columns::default().texts("kind", kinds).texts("granularity", granularities), &parts)
}
