//! The report of an analysis, and its parts as tables.

mod tables;

use crate::arrow::RawTable;
use crate::failure::{Failure, Outcome};
use anstream::adapter::strip_str;
use pyo3::prelude::*;
use queuescope::report::model::Report;
use queuescope::report::{html, json, text};
use std::io;

/// A report.
#[pyclass(frozen, module = "queuescope._queuescope")]
#[derive(Debug)]
pub struct RawReport {
    report: Report,
    packets: Option<RawTable>,
}

impl RawReport {
    /// A report, with a table of its packets if they were kept.
    pub fn new(report: Report, packets: Option<RawTable>) -> Self {
        Self { report, packets }
    }
}

#[pymethods]
impl RawReport {
    /// The report's fields as JSON.
    fn fields(&self, py: Python<'_>) -> PyResult<String> {
        Ok(py.detach(|| serde_json::to_string(&self.report)).map_err(Failure::value)?)
    }

    /// The lines that `queuescope analyze --json` prints.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        Ok(py.detach(|| written(|out| json::write(&self.report, out)))?)
    }

    /// What `queuescope analyze` prints, without colours.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        let styled = py.detach(|| written(|out| text::write(&self.report, out)))?;
        Ok(strip_str(&styled).to_string())
    }

    /// The page that `queuescope analyze --html` writes.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        Ok(py.detach(|| written(|out| html::write(&self.report, out)))?)
    }

    /// A part as a table: `bursts`, `culprits`, `groups`, `delays`, `depth`, `depth_by_flow`, `sketch`, `notes`, `links`, `flows`.
    fn table(&self, py: Python<'_>, part: &str) -> PyResult<RawTable> {
        Ok(py.detach(|| tables::part(&self.report, part))?)
    }

    /// The packets, if they were kept.
    #[getter]
    fn packets(&self) -> Option<RawTable> {
        self.packets.clone()
    }
}

/// What a writer writes, as text.
pub fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Outcome<String> {
    let mut bytes = Vec::new();
    write(&mut bytes).map_err(Failure::input)?;
    String::from_utf8(bytes).map_err(Failure::value)
}
