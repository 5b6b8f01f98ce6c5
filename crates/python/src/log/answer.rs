//! Queries of captures and folders.

use crate::arguments::Arguments;
use crate::arrow::{Columns, RawTable, table_of};
use crate::failure::{Failure, Outcome};
use crate::task::{self, Task};
use arrow_array::RecordBatch;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use queuescope::archive::History;
use queuescope::ingest::{expression, open_capture};
use queuescope::log::arrow::{Batches, columns};
use queuescope::log::{AttributeId, Schema, begins_as_date, parse_date};
use queuescope::recording::query::{
    Form, LoadOptions, Loaded, Question, QueueTimes, Seen, SelectOptions, Selection, write_rows,
};
use queuescope::{ByteCount, Nanos};
use serde_json::Value;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// How many rows a batch of packets has.
const ROWS: usize = 1 << 16;

/// Finds packets of a capture or a folder that match an expression, or computes figures of them.
#[pyfunction]
#[pyo3(signature = (path, expression, arguments, progress=None))]
pub fn query(
    py: Python<'_>,
    path: PathBuf,
    expression: String,
    arguments: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RawAnswer> {
    let job = Job::new(path, expression, &Arguments(arguments))?;
    task::run(py, progress, move |task| job.run(task))
}

/// What is to be done.
struct Job {
    path: PathBuf,
    expression: String,
    options: SelectOptions,
    in_queue: bool,
    inner: bool,
    memory: Option<ByteCount>,
    from: Option<TimePoint>,
    to: Option<TimePoint>,
}

/// A time in the input.
#[derive(Clone, Copy)]
enum TimePoint {
    AfterFirst(Nanos),
    Date(Nanos),
}

impl TimePoint {
    fn of(arguments: &Arguments<'_, '_>, name: &str) -> Outcome<Option<Self>> {
        if let Some(value) = arguments.get(name)?
            && let Ok(text) = value.extract::<String>()
            && begins_as_date(&text)
        {
            let date = parse_date(&text).map_err(|why| Failure::Value(format!("{name}=: {why}")))?;
            return Ok(Some(Self::Date(date)));
        }
        Ok(arguments.time(name)?.map(Self::AfterFirst))
    }

    fn within(self, loaded: &Loaded) -> u64 {
        match self {
            Self::Date(time) => time.0,
            Self::AfterFirst(time) => loaded.at(Some(time), 0),
        }
    }
}

impl Job {
    fn new(path: PathBuf, expression: String, arguments: &Arguments<'_, '_>) -> Outcome<Self> {
        let mut options = SelectOptions::default();
        options.select = arguments.text("select")?;
        options.group = arguments.text("group")?;
        options.top = arguments.count("top", 1, u64::from(u32::MAX))?.map(|top| top as usize);
        options.limit = arguments.count("limit", 0, u64::MAX)?;
        Ok(Self {
            path,
            expression,
            options,
            in_queue: arguments.flag("in_queue")?.unwrap_or(false),
            inner: arguments.flag("inner")?.unwrap_or(false),
            memory: arguments.bytes("memory")?,
            from: TimePoint::of(arguments, "start")?,
            to: TimePoint::of(arguments, "end")?,
        })
    }

    fn run(self, task: &Task) -> Outcome<RawAnswer> {
        let folder = self.path.is_dir().then(|| History::open(&self.path)).transpose().map_err(Failure::input)?;
        let schema = folder.as_ref().map_or_else(|| Schema::packet().clone(), |history| history.schema().clone());
        // Check the query before anything is read.
        let expression = expression(&schema, &self.expression)?;
        let selection = Selection::from_options(&self.options, &schema)?;
        let mut company = self.in_queue.then(|| QueueTimes::new(&schema)).transpose()?;
        let loaded = self.load(folder, task)?;
        let mut needed = selection.attributes();
        needed.extend(company.iter().flat_map(QueueTimes::attributes));
        let from = self.from.map_or(0, |time| time.within(&loaded));
        let to = self.to.map_or(u64::MAX, |time| time.within(&loaded));
        let question = Question { expression: &expression, from, to, needed: &needed, company: None };
        let mut damage = loaded.damage.clone();
        let question = match &mut company {
            None => question,
            Some(company) => {
                damage = damage.or(company.find(&loaded.held, question).map_err(Failure::input)?.damage);
                company.question(&needed)
            }
        };
        let (table, seen) = match &selection {
            Selection::Packets(attributes, limit) => packets(&loaded, question, attributes, *limit, task)?,
            Selection::All(_) | Selection::Groups(_) => figures(&loaded, question, &selection)?,
        };
        let notes: Vec<_> = loaded.skipped.iter().cloned().chain(seen.skipped).collect();
        Ok(RawAnswer { table, notes: table_of(Columns::default(), &notes)?, damage: damage.or(seen.damage) })
    }

    fn load(&self, folder: Option<History>, task: &Task) -> Outcome<Loaded> {
        if let Some(history) = folder {
            let loaded = Loaded::folder(history, &self.path)?;
            return Ok(self.memory.into_iter().fold(loaded, Loaded::with_memory));
        }
        let mut options = LoadOptions::default();
        options.memory = self.memory.unwrap_or(options.memory);
        options.inner = self.inner;
        let reader = open_capture(&self.path)?;
        Ok(Loaded::capture(reader, &self.path, options, &mut |bytes, packets| task.progress(bytes, packets))?)
    }
}

/// The attributes of packets.
fn packets(
    loaded: &Loaded,
    question: Question<'_>,
    attributes: &[AttributeId],
    limit: Option<u64>,
    task: &Task,
) -> Outcome<(RawTable, Seen)> {
    let schema = loaded.held.schema();
    let most = limit.unwrap_or(u64::MAX);
    let mut batches = Batches::new(schema, attributes, ROWS);
    let (mut full, mut found) = (Vec::<RecordBatch>::new(), 0u64);
    let seen = loaded.held.each(question, &mut |record| {
        if found == most || task.stop().is_requested() {
            return Ok(ControlFlow::Break(()));
        }
        found += 1;
        full.extend(batches.push(record).map_err(io::Error::other)?);
        Ok(ControlFlow::Continue(()))
    });
    let seen = seen.map_err(Failure::input)?;
    full.extend(batches.rest().map_err(Failure::value)?);
    Ok((RawTable::new(columns(schema, attributes), full), seen))
}

/// Functions over all packets, or over groups of them.
fn figures(loaded: &Loaded, question: Question<'_>, selection: &Selection) -> Outcome<(RawTable, Seen)> {
    let mut lines = Vec::new();
    let found = write_rows(selection, question, loaded, Form::Json, &mut lines, &mut |_| ()).map_err(Failure::input)?;
    let mut rows = Vec::new();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_slice(line).map_err(Failure::value)?;
        if let Some(values) = line.get("values") {
            rows.push(values.clone());
        }
    }
    let names = selection.names(loaded.held.schema());
    let table = names.iter().fold(Columns::default(), |columns, name| column(columns, name, &rows));
    Ok((table.table().map_err(Failure::value)?, found.seen))
}

/// A column of what JSON has: integers, also those that are strings of digits; numbers; or texts.
fn column(columns: Columns, name: &str, rows: &[Value]) -> Columns {
    let cells: Vec<_> = rows.iter().map(|row| row.get(name).filter(|value| !value.is_null())).collect();
    let integer = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    if cells.iter().flatten().all(|cell| integer(cell).is_some()) {
        return columns.counts_if_known(name, cells.iter().map(|cell| cell.and_then(integer)));
    }
    if cells.iter().flatten().all(|cell| cell.is_number()) {
        return columns.numbers_if_known(name, cells.iter().map(|cell| cell.and_then(Value::as_f64)));
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    columns.texts_if_known(name, cells.iter().map(|cell| cell.map(text)))
}

/// The answer to a query.
#[pyclass(frozen, module = "queuescope._queuescope")]
#[derive(Debug)]
pub struct RawAnswer {
    table: RawTable,
    notes: RawTable,
    damage: Option<String>,
}

#[pymethods]
impl RawAnswer {
    /// The packets, or the figures.
    #[getter]
    fn table(&self) -> RawTable {
        self.table.clone()
    }

    /// Notes on what was skipped.
    #[getter]
    fn notes(&self) -> RawTable {
        self.notes.clone()
    }

    /// What could not be read.
    #[getter]
    fn damage(&self) -> Option<String> {
        self.damage.clone()
    }
}
