//! `analyze`: the report of a capture or of a table of departures.

mod packets;

pub use crate::analyze::packets::Watched;
use crate::arguments::Arguments;
use crate::arrow::{Batches, batches};
use crate::failure::{Failure, Outcome};
use crate::report::RawReport;
use crate::task::{self, Task};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use queuescope::analysis::{Analysis, AnalysisOptions, DEPARTURES, FLOWS, Scale};
use queuescope::ingest::records::Unknown;
use queuescope::ingest::{self, Input, Opened, OpenedCapture, OpenedTable, Queue};
use queuescope::meter::History;
use queuescope::recording::Outputs;
use queuescope::table::{DepartureReader, TableOptions};
use queuescope::wire::{FlowTable, Flows, KeyMask};
use queuescope::{Rate, report::model::Report};
use std::path::PathBuf;

/// Makes the report of a capture, which passes a queue, or of a table of departures.
#[pyfunction]
#[pyo3(signature = (path, arguments, progress=None))]
pub fn analyze(
    py: Python<'_>,
    path: PathBuf,
    arguments: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RawReport> {
    let job = Job::new(path, &Arguments(arguments))?;
    task::run(py, progress, move |task| job.run(task))
}

/// Makes the report of departures of another library, which are read batch by batch.
#[pyfunction]
#[pyo3(signature = (table, arguments, progress=None))]
pub fn analyze_departures(
    py: Python<'_>,
    table: &Bound<'_, PyAny>,
    arguments: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RawReport> {
    let batches = batches("departures", table)?;
    let job = Job::new(PathBuf::new(), &Arguments(arguments))?;
    task::run(py, progress, move |task| job.run_batches(batches, task))
}

/// What is to be done.
struct Job {
    path: PathBuf,
    source: Source,
    only: Option<String>,
    options: AnalysisOptions,
    keeps: bool,
    parquet: Option<PathBuf>,
    pcapng: Option<PathBuf>,
}

/// Where departures come from.
pub enum Source {
    /// A capture, whose packets pass this queue.
    Capture(Rate, Box<Queue>),
    /// A table.
    Table(Box<TableOptions>),
}

impl Source {
    /// The source that arguments describe.
    ///
    /// # Errors
    /// Fails if the rate is missing, or is given for departures.
    pub fn new(arguments: &Arguments<'_, '_>) -> Outcome<Self> {
        let is_table = arguments.flag("departures")?.unwrap_or(false);
        match arguments.rate("rate")? {
            Some(_) if is_table => Err(Failure::Value(
                "rate= applies to captures only: departures have left their queue already. Leave it out".to_owned(),
            )),
            Some(rate) => Ok(Self::Capture(rate, Box::new(arguments.queue()?))),
            None if is_table => Ok(Self::Table(Box::new(arguments.table()?))),
            None => Err(Failure::Value(
                "rate= is missing: give the rate at which the link drains the queue, such as rate='20mbps'. Departures need none: departures=table"
                    .to_owned(),
            )),
        }
    }
}

impl Job {
    fn new(path: PathBuf, arguments: &Arguments<'_, '_>) -> Outcome<Self> {
        let source = Source::new(arguments)?;
        let file = |name| Ok::<_, Failure>(arguments.get(name)?.map(|value| value.extract::<PathBuf>()).transpose()?);
        Ok(Self {
            path,
            source,
            only: arguments.text("input")?,
            options: arguments.analysis()?,
            keeps: arguments.flag("packets")?.unwrap_or(false),
            parquet: file("parquet")?,
            pcapng: file("pcapng")?,
        })
    }

    fn run(self, task: &Task) -> Outcome<RawReport> {
        let input = match &self.source {
            Source::Capture(rate, _) => Input::capture(&self.path, *rate),
            Source::Table(options) => Input::table(&self.path, (**options).clone()),
        };
        // Open the input before creating outputs: if it fails, older files must stay.
        let opened = ingest::open(&input.only(self.only.clone()), Some(task.stop()))?;
        self.report(opened, task)
    }

    fn run_batches(self, batches: Batches, task: &Task) -> Outcome<RawReport> {
        let options = match &self.source {
            Source::Table(options) => (**options).clone(),
            Source::Capture(..) => TableOptions::default(),
        };
        let reader = DepartureReader::from_batches(batches, "departures", options)?;
        self.report(Opened::Table(OpenedTable::from_reader(reader, self.only.as_deref(), Some(task.stop()))?), task)
    }

    fn report(&self, opened: Opened, task: &Task) -> Outcome<RawReport> {
        let outputs = Outputs::create(self.pcapng.as_deref(), self.parquet.as_deref(), None).map_err(Failure::input)?;
        let watched = Watched::new(outputs, self.keeps);
        let (mut report, watched) = match opened {
            Opened::Capture(capture) => self.capture(capture, watched, task)?,
            Opened::Table(table) => self.table(table, watched, task)?,
        };
        let (written, packets) = watched.finish()?;
        report.skipped.extend(written.notes());
        Ok(RawReport::new(report, packets))
    }

    fn capture(&self, opened: OpenedCapture, watched: Watched, task: &Task) -> Outcome<(Report, Watched)> {
        let fallback = Queue::default();
        let queue = match &self.source {
            Source::Capture(_, queue) => queue,
            Source::Table(_) => &fallback,
        };
        let rate = opened.rate();
        let mask = if queue.managed().is_some() { KeyMask::WHOLE } else { self.options.mask() };
        let flows = Flows::masked(mask, &self.options.granularities(), FLOWS);
        let scale = Scale::of_queue(rate, queue.limit);
        let params = self.options.params(Unknown::NOTHING, History::Fifo, Some(rate), scale)?;
        let params = if queue.is_fifo() { params } else { params.in_any_order() };
        let mut analysis = Analysis::new(flows, params, watched).map_err(Failure::value)?;
        let source = opened
            .replay(queue, mask, &mut analysis, &mut |bytes, packets| task.progress(bytes, packets))
            .map_err(Failure::input)?;
        let (findings, watched) = analysis.finish();
        Ok((findings.report(source), watched))
    }

    fn table(&self, opened: OpenedTable, watched: Watched, task: &Task) -> Outcome<(Report, Watched)> {
        let scale = Scale::from_rate(None);
        let mut params = self.options.params(Unknown::OF_TABLE, History::Departures(DEPARTURES), None, scale)?;
        params.not_judged = None;
        let mut analysis = Analysis::new(FlowTable::with_limit(FLOWS), params, watched).map_err(Failure::value)?;
        let source =
            opened.read(&mut analysis, &mut |bytes, rows| task.progress(bytes, rows)).map_err(Failure::input)?;
        let (findings, watched) = analysis.finish();
        Ok((findings.report(source), watched))
    }
}
