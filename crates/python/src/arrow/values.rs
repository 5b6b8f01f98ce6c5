//! Values of Arrow arrays as objects of Python.

use crate::failure::Failure;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, downcast_dictionary_array};
use arrow_schema::{DataType, TimeUnit};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// The value at an index; `None` if it is missing.
pub fn value<'py>(py: Python<'py>, array: &dyn Array, index: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(index) {
        return Ok(py.None().into_bound(py));
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(index).into_bound_py_any(py),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(index).into_bound_py_any(py),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(index).into_bound_py_any(py),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(index).into_bound_py_any(py),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(index).into_bound_py_any(py),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(index).into_bound_py_any(py),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(index).into_bound_py_any(py),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(index).into_bound_py_any(py),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(index).into_bound_py_any(py),
        DataType::Float32 => array.as_primitive::<Float32Type>().value(index).into_bound_py_any(py),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(index).into_bound_py_any(py),
        // Nanoseconds, which no type of Python can represent.
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            array.as_primitive::<TimestampNanosecondType>().value(index).into_bound_py_any(py)
        }
        DataType::Utf8 => array.as_string::<i32>().value(index).into_bound_py_any(py),
        DataType::LargeUtf8 => array.as_string::<i64>().value(index).into_bound_py_any(py),
        DataType::Binary => Ok(PyBytes::new(py, array.as_binary::<i32>().value(index)).into_any()),
        DataType::FixedSizeBinary(_) => Ok(PyBytes::new(py, array.as_fixed_size_binary().value(index)).into_any()),
        DataType::List(_) => list(py, array.as_list::<i32>().value(index).as_ref()),
        DataType::Dictionary(_, _) => downcast_dictionary_array!(
            array => match array.key(index) {
                Some(key) => value(py, array.values().as_ref(), key),
                None => Ok(py.None().into_bound(py)),
            },
            other => Err(unknown(other)),
        ),
        other => Err(unknown(other)),
    }
}

fn list<'py>(py: Python<'py>, array: &dyn Array) -> PyResult<Bound<'py, PyAny>> {
    let values = (0..array.len()).map(|index| value(py, array, index));
    Ok(PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?.into_any())
}

fn unknown(kind: &DataType) -> PyErr {
    Failure::Value(format!("values of type {kind} have no form in Python: pass the table to a library for Arrow"))
        .into()
}
