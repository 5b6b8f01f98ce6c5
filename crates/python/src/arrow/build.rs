//! Tables from values of the engine.

use crate::arrow::RawTable;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema};
use std::sync::Arc;

/// Columns of equal length, in order.
#[derive(Debug, Default)]
pub struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
    rows: usize,
}

impl Columns {
    /// Adds an array.
    #[must_use]
    pub fn array(mut self, name: &str, array: ArrayRef) -> Self {
        self.rows = array.len();
        self.fields.push(Field::new(name, array.data_type().clone(), array.null_count() > 0));
        self.arrays.push(array);
        self
    }

    /// Adds counts, times in nanoseconds, or sizes in bytes.
    #[must_use]
    pub fn counts(self, name: &str, values: impl IntoIterator<Item = u64>) -> Self {
        self.array(name, Arc::new(UInt64Array::from_iter_values(values)))
    }

    /// Adds counts that may be missing.
    #[must_use]
    pub fn counts_if_known(self, name: &str, values: impl IntoIterator<Item = Option<u64>>) -> Self {
        let array: UInt64Array = values.into_iter().collect();
        self.array_that_may_lack(name, Arc::new(array))
    }

    /// Adds integers that may be negative or missing.
    #[must_use]
    pub fn signed_if_known(self, name: &str, values: impl IntoIterator<Item = Option<i64>>) -> Self {
        let array: Int64Array = values.into_iter().collect();
        self.array_that_may_lack(name, Arc::new(array))
    }

    /// Adds numbers.
    #[must_use]
    pub fn numbers(self, name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        self.array(name, Arc::new(Float64Array::from_iter_values(values)))
    }

    /// Adds numbers that may be missing.
    #[must_use]
    pub fn numbers_if_known(self, name: &str, values: impl IntoIterator<Item = Option<f64>>) -> Self {
        let array: Float64Array = values.into_iter().collect();
        self.array_that_may_lack(name, Arc::new(array))
    }

    /// Adds texts.
    #[must_use]
    pub fn texts<T: AsRef<str>>(self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        self.array(name, Arc::new(StringArray::from_iter_values(values)))
    }

    /// Adds texts that may be missing.
    #[must_use]
    pub fn texts_if_known<T: AsRef<str>>(self, name: &str, values: impl IntoIterator<Item = Option<T>>) -> Self {
        let array: StringArray = values.into_iter().collect();
        self.array_that_may_lack(name, Arc::new(array))
    }

    /// Adds truth values.
    #[must_use]
    pub fn flags(self, name: &str, values: impl IntoIterator<Item = bool>) -> Self {
        let array: BooleanArray = values.into_iter().map(Some).collect();
        self.array(name, Arc::new(array))
    }

    /// Adds an array whose schema allows missing values even if this one has none, so that all reports have one schema.
    fn array_that_may_lack(mut self, name: &str, array: ArrayRef) -> Self {
        self = self.array(name, array);
        if let Some(field) = self.fields.last_mut() {
            field.set_nullable(true);
        }
        self
    }

    /// The table.
    ///
    /// # Errors
    /// Fails if the columns differ in length.
    pub fn table(self) -> Result<RawTable, ArrowError> {
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let schema = Arc::new(Schema::new(self.fields));
        Ok(RecordBatch::try_new_with_options(schema, self.arrays, &options)?.into())
    }
}
