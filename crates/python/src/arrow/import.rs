//! Arrays from another library of the process, without a copy.

use crate::arrow::table::RawTable;
use crate::failure::{Failure, Outcome};
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::ffi::CStr;
use std::ptr::NonNull;

/// A table that arrives batch by batch.
pub type Batches = Box<dyn RecordBatchReader + Send>;

/// Takes a table or a stream of batches from any object with the Arrow PyCapsule interface, such as a table of polars, pyarrow, pandas or
/// DuckDB. `name` is that of the argument.
///
/// # Errors
/// Fails if the object lacks this interface, or is not a table.
pub fn batches(name: &str, object: &Bound<'_, PyAny>) -> Outcome<Batches> {
    if let Ok(table) = object.cast::<RawTable>() {
        return Ok(table.get().reader());
    }
    if object.hasattr("__arrow_c_stream__")? {
        let capsule = object.call_method0("__arrow_c_stream__")?;
        return stream(name, &capsule);
    }
    if object.hasattr("__arrow_c_array__")? {
        let (schema, array) =
            object.call_method0("__arrow_c_array__")?.extract().map_err(|_| not_arrow(name, object))?;
        return one_batch(name, &schema, &array);
    }
    Err(not_arrow(name, object))
}

fn stream(name: &str, capsule: &Bound<'_, PyAny>) -> Outcome<Batches> {
    let pointer = pointer(capsule, c"arrow_array_stream")?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the name of the capsule says that it owns an ArrowArrayStream at this address, and the capsule lives until this function
    // returns. `from_raw` moves the stream out and leaves a released one, as a consumer has to.
    #[expect(unsafe_code, reason = "the Arrow PyCapsule interface passes addresses")]
    let reader = unsafe { ArrowArrayStreamReader::from_raw(pointer.as_ptr()) };
    let reader =
        reader.map_err(|why| Failure::Value(format!("{name}= cannot be read as a stream of batches: {why}")))?;
    Ok(Box::new(reader))
}

fn one_batch(name: &str, schema: &Bound<'_, PyAny>, array: &Bound<'_, PyAny>) -> Outcome<Batches> {
    let schema = pointer(schema, c"arrow_schema")?.cast::<FFI_ArrowSchema>();
    let array = pointer(array, c"arrow_array")?.cast::<FFI_ArrowArray>();
    // SAFETY: the names of the capsules say that they own an ArrowSchema and an ArrowArray at these addresses, and both capsules live until
    // this function returns. The array is moved out, and a released one is left, as a consumer has to; the schema is only read. That the
    // two belong together, and describe valid buffers, is the promise of the library that made them.
    #[expect(unsafe_code, reason = "the Arrow PyCapsule interface passes addresses")]
    let data = unsafe { from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
    let data = data.map_err(|why| Failure::Value(format!("{name}= cannot be read as an array: {why}")))?;
    if !matches!(data.data_type(), DataType::Struct(_)) {
        return Err(Failure::Value(format!(
            "{name}= is one array of type {}: it must be a table, whose columns have names",
            data.data_type()
        )));
    }
    let batch = RecordBatch::from(StructArray::from(data));
    let schema = batch.schema();
    Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}

/// The address in a capsule with this name.
fn pointer(capsule: &Bound<'_, PyAny>, name: &CStr) -> Outcome<NonNull<std::ffi::c_void>> {
    let capsule = capsule.cast::<PyCapsule>().map_err(PyErr::from)?;
    Ok(capsule.pointer_checked(Some(name))?)
}

fn not_arrow(name: &str, object: &Bound<'_, PyAny>) -> Failure {
    let hint = if object.is_instance_of::<PyDict>() {
        ". Make a table of the dictionary first: polars.DataFrame(...) or pyarrow.table(...)"
    } else {
        ", such as a table of polars, pyarrow, pandas 2.2 or DuckDB"
    };
    crate::arguments::wrong(name, &format!("a table with the Arrow PyCapsule interface{hint}"), object)
}

/// Takes a table over from another library. A stream is read to its end.
#[pyfunction]
pub fn import_table(py: Python<'_>, table: &Bound<'_, PyAny>) -> PyResult<RawTable> {
    let reader = batches("data", table)?;
    let schema = reader.schema();
    let read = move || reader.collect::<Result<Vec<_>, _>>().map_err(|why| Failure::Input(why.to_string()));
    Ok(RawTable::new(schema, py.detach(read)?))
}
