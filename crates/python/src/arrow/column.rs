//! A column: one Arrow array with its name.

use crate::arrow::values::value;
use crate::failure::Failure;
use arrow_array::ffi::{FFI_ArrowSchema, to_ffi};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, FieldRef};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

/// An array and its name.
#[pyclass(frozen, module = "queuescope._queuescope")]
#[derive(Debug, Clone)]
pub struct RawColumn {
    field: FieldRef,
    array: ArrayRef,
}

impl RawColumn {
    /// A column.
    pub fn new(field: FieldRef, array: ArrayRef) -> Self {
        Self { field, array }
    }
}

#[pymethods]
impl RawColumn {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // As for tables.
        let _ = requested_schema;
        let (array, _) = to_ffi(&self.array.to_data()).map_err(Failure::value)?;
        Ok((self.__arrow_c_schema__(py)?, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.field.as_ref()).map_err(Failure::value)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }

    /// The name.
    #[getter]
    fn name(&self) -> &str {
        self.field.name()
    }

    /// The Arrow type as text.
    #[getter]
    fn data_type(&self) -> String {
        self.field.data_type().to_string()
    }

    /// The number of missing values.
    #[getter]
    fn null_count(&self) -> usize {
        self.array.null_count()
    }

    /// The address of the values and their type in the notation of numpy's array interface; `None` if they are not numbers in one block.
    fn block(&self) -> Option<(usize, &'static str)> {
        let kind = match self.field.data_type() {
            DataType::UInt8 => "|u1",
            DataType::Int8 => "|i1",
            DataType::UInt16 => "<u2",
            DataType::Int16 => "<i2",
            DataType::UInt32 => "<u4",
            DataType::Int32 => "<i4",
            DataType::UInt64 => "<u8",
            DataType::Int64 => "<i8",
            DataType::Float32 => "<f4",
            DataType::Float64 => "<f8",
            _ => return None,
        };
        if self.array.null_count() > 0 || cfg!(target_endian = "big") {
            return None;
        }
        let data = self.array.to_data();
        let width = data.data_type().primitive_width()?;
        let start = data.buffers().first()?.as_ptr() as usize;
        Some((start + data.offset() * width, kind))
    }

    /// A value; `None` if it is missing.
    fn value<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        if index >= self.array.len() {
            return Err(PyIndexError::new_err(format!("there are {} values, and no value {index}", self.array.len())));
        }
        value(py, self.array.as_ref(), index)
    }

    /// All values.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for index in 0..self.array.len() {
            list.append(value(py, self.array.as_ref(), index)?)?;
        }
        Ok(list)
    }
}
