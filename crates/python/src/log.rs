//! Logs in folders: recording captures and records, queries, and alerts.

mod answer;

use crate::arguments::Arguments;
use crate::arrow::{Columns, RawTable, batches};
use crate::failure::{Failure, Outcome, with_causes};
use crate::task;
pub use answer::{RawAnswer, query};
use arrow_array::RecordBatch;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use queuescope::archive::{self, AlertLines, History, Recorder, RecorderOptions, is_recorded};
use queuescope::ingest::CaptureInput;
use queuescope::log::arrow::KeyReader;
use queuescope::log::{Appended, Reader, Schema};
use queuescope::recording::{self, DefinitionsFile, Derived, Headers, KeepOptions, check_log, into_folder};
use std::path::{Path, PathBuf};

/// Records the headers of a capture to a folder. Returns the number of packets, notes, and the damage of the capture.
#[pyfunction]
#[pyo3(signature = (path, folder, arguments, progress=None))]
pub fn record(
    py: Python<'_>,
    path: PathBuf,
    folder: PathBuf,
    arguments: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(u64, RawTable, Option<String>)> {
    let arguments = Arguments(arguments);
    let inner = arguments.flag("inner")?.unwrap_or(false);
    let sample = arguments.count("sample", 1, u64::MAX)?;
    let mut headers = Headers::of(arguments.text("where")?.as_deref(), inner, sample).map_err(Failure::from)?;
    let derived = derived(&arguments)?;
    let mut options = KeepOptions::default();
    options.memory = arguments.bytes("memory")?.unwrap_or(options.memory);
    options.indexes =
        recording::attributes("index", arguments.text("index")?.as_deref(), Schema::packet()).map_err(Failure::from)?;
    task::run(py, progress, move |task| {
        let mut capture = CaptureInput::open(&path, Some(task.stop()))?;
        // Notes repeat what the result has.
        let (damage, kept) = into_folder(&folder, &options, &derived, Box::new(|_| ()), |folder| {
            headers.keep_all(&mut capture, folder, &mut |bytes, packets| task.progress(bytes, packets))
        })?;
        let damage = damage?.or_else(|| kept.recorded.damage());
        let notes: Vec<_> = headers.left_out().chain(kept.notes()).chain(headers.notes()).collect();
        Ok((kept.recorded.records, crate::arrow::table_of(Columns::default(), &notes)?, damage))
    })
}

/// Filters, aggregates and triggers of arguments.
fn derived(arguments: &Arguments<'_, '_>) -> Outcome<Derived> {
    let texts = |name| -> Outcome<Vec<String>> {
        Ok(arguments.get(name)?.map(|value| value.extract()).transpose()?.unwrap_or_default())
    };
    let mut derived = Derived::default();
    (derived.filters, derived.aggregates, derived.triggers) =
        (texts("filters")?, texts("aggregates")?, texts("triggers")?);
    derived.definitions = arguments.text("definitions")?.map(|text| DefinitionsFile {
        name: "definitions=".to_owned(),
        text,
        values: Vec::new(),
    });
    Ok(derived)
}

/// The attributes of a folder's records, or of a schema: names, kinds and descriptions.
#[pyfunction]
pub fn attributes(folder: Option<PathBuf>, schema: &str) -> PyResult<RawTable> {
    let schema = match folder {
        Some(folder) => archive::schema(&folder).map_err(Failure::input)?,
        None => built_in(schema)?,
    };
    let attributes = schema.attributes();
    let columns = Columns::default()
        .texts("name", attributes.iter().map(|attribute| attribute.name.as_str()))
        .texts("description", attributes.iter().map(|attribute| attribute.doc.as_str()));
    Ok(columns.table().map_err(Failure::value)?)
}

fn built_in(name: &str) -> Outcome<Schema> {
    let known = Schema::built_in(name).cloned();
    known.ok_or_else(|| Failure::Value(format!("schema= is '{name}': it must be packet, departure or queued")))
}

/// Checks that a path is a folder with a log.
#[pyfunction]
pub fn check_folder(folder: PathBuf) -> PyResult<()> {
    check_log(&folder).map_err(Failure::from)?;
    History::open(&folder).map_err(Failure::input)?;
    Ok(())
}

/// Appends records to a folder.
#[pyclass(module = "queuescope._queuescope")]
pub struct RawWriter {
    recorder: Option<Recorder>,
    schema: Schema,
}

#[pymethods]
impl RawWriter {
    #[new]
    fn new(py: Python<'_>, folder: PathBuf, schema: &str) -> PyResult<Self> {
        let schema = match is_there(&folder) {
            true => archive::schema(&folder).map_err(Failure::input)?,
            false => built_in(schema)?,
        };
        let open = || Recorder::open(&folder, &schema, RecorderOptions::default());
        let (recorder, _) = py.detach(open).map_err(Failure::input)?;
        Ok(Self { recorder: Some(recorder), schema })
    }

    /// Appends the rows of a table, whose columns are attributes; the others are zero. Returns the numbers of records that were added, and
    /// that were refused because of their times.
    fn append(&self, py: Python<'_>, table: &Bound<'_, PyAny>) -> PyResult<(u64, u64)> {
        let batches = batches("batch", table)?;
        let recorder = self.recorder.as_ref().ok_or_else(|| Failure::Value("the log is closed".to_owned()))?;
        Ok(py.detach(|| -> Outcome<(u64, u64)> {
            let (mut added, mut refused) = (0, 0);
            for batch in batches {
                let batch = batch.map_err(|why| Failure::Input(why.to_string()))?;
                let records = records(&batch, &self.schema)?;
                if records.is_empty() {
                    continue;
                }
                let Appended { refused: late, .. } = recorder.append(&records).map_err(Failure::input)?;
                refused += late;
                added += batch.num_rows() as u64 - late;
            }
            Ok((added, refused))
        })?)
    }

    /// Ends the recording.
    fn finish(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(recorder) = self.recorder.take() else { return Ok(()) };
        py.detach(|| recorder.finish()).map_err(Failure::input)?;
        Ok(())
    }
}

fn is_there(folder: &Path) -> bool {
    archive::schema(folder).is_ok()
}

/// The records of a batch, one after another.
fn records(batch: &RecordBatch, schema: &Schema) -> Outcome<Vec<u8>> {
    let size = schema.record_size();
    let mut records = vec![0; size * batch.num_rows()];
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        let name = field.name();
        let unknown = || {
            let known: Vec<_> = schema.names().collect();
            Failure::Value(format!(
                "records of '{}' have no attribute '{name}': they have {}",
                schema.name(),
                known.join(", ")
            ))
        };
        let id = schema.find(name).ok_or_else(unknown)?;
        let mut keys = KeyReader::new(id, schema)
            .filter(|_| !schema.attribute(id).view)
            .ok_or_else(|| Failure::Value(format!("'{name}' follows from other attributes: leave the column out")))?;
        if array.null_count() > 0 {
            return Err(Failure::Value(format!("the column '{name}' has missing values, and records have none")));
        }
        let keys = keys
            .keys(array.as_ref())
            .map_err(|why| Failure::Value(format!("the column '{name}': {}", with_causes(&why))))?;
        let reader: Reader = schema.reader(id);
        for (row, record) in records.chunks_exact_mut(size).enumerate() {
            reader.write(record, keys.get(row));
        }
    }
    Ok(records)
}

/// Alerts of a folder, also while they are written.
#[pyclass(module = "queuescope._queuescope")]
pub struct RawAlerts {
    folder: PathBuf,
    lines: AlertLines,
}

#[pymethods]
impl RawAlerts {
    #[new]
    fn new(folder: PathBuf, from_now: bool) -> Self {
        Self { lines: AlertLines::new(&folder, from_now), folder }
    }

    /// Lines of JSON that were written since the last call, and whether more may come.
    fn more(&mut self, py: Python<'_>) -> PyResult<(String, bool)> {
        Ok(py.detach(|| -> Outcome<(String, bool)> {
            // Before reading, so that what was written before the recording ended is read.
            let goes_on = is_recorded(&self.folder).map_err(Failure::input)?;
            let lines = self.lines.more().map_err(Failure::input)?;
            Ok((String::from_utf8(lines).map_err(Failure::value)?, goes_on))
        })?)
    }
}
