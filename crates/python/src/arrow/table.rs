//! A table of Arrow record batches.

use crate::arrow::column::RawColumn;
use crate::failure::{Failure, Outcome};
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Record batches with one schema.
#[pyclass(frozen, module = "queuescope._queuescope")]
#[derive(Debug, Clone)]
pub struct RawTable {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl RawTable {
    /// A table of batches with this schema.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    /// Its batches, which are shared and not copied.
    pub fn reader(&self) -> Box<dyn RecordBatchReader + Send> {
        Box::new(RecordBatchIterator::new(self.batches.clone().into_iter().map(Ok), self.schema.clone()))
    }
}

impl From<RecordBatch> for RawTable {
    fn from(batch: RecordBatch) -> Self {
        Self::new(batch.schema(), vec![batch])
    }
}

#[pymethods]
impl RawTable {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The consumer casts what it wants otherwise, as the interface allows.
        let _ = requested_schema;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(self.reader()), c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(Failure::value)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The Arrow types of the columns, as text.
    #[getter]
    fn column_types(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    /// A column by its position. Several batches are joined first, which copies them.
    fn column(&self, py: Python<'_>, index: usize) -> PyResult<RawColumn> {
        py.detach(|| self.whole_column(index)).map_err(PyErr::from)
    }

    /// Rows from `start` up to, but without, `end`.
    fn slice(&self, start: usize, end: usize) -> Self {
        let (mut before, mut batches) = (0, Vec::new());
        for batch in &self.batches {
            let from = start.saturating_sub(before).min(batch.num_rows());
            let to = end.saturating_sub(before).min(batch.num_rows());
            if from < to {
                batches.push(batch.slice(from, to - from));
            }
            before += batch.num_rows();
        }
        Self { schema: self.schema.clone(), batches }
    }
}

impl RawTable {
    fn whole_column(&self, index: usize) -> Outcome<RawColumn> {
        let field = self.schema.fields().get(index).cloned();
        let field = field.ok_or_else(|| Failure::Value(format!("there is no column {index}")))?;
        let array = match self.batches.as_slice() {
            [batch] => batch.column(index).clone(),
            batches => {
                let schema = self.schema.project(&[index]).map_err(Failure::value)?;
                let parts = batches.iter().map(|batch| batch.project(&[index])).collect::<Result<Vec<_>, _>>();
                let joined = concat_batches(&schema.into(), &parts.map_err(Failure::value)?).map_err(Failure::value)?;
                joined.column(0).clone()
            }
        };
        Ok(RawColumn::new(field, array))
    }
}
