//! Arrays in and out of Python by the Arrow PyCapsule interface, without a copy.
//!
//! [`RawTable`] and [`RawColumn`] hold arrays, and every Arrow library can take them over. [`import`] takes arrays from such a library.
//! The interface is used directly: the crate pyo3-arrow would bring numpy's bindings and change the features of the whole workspace's
//! arrow and chrono.

mod build;
mod column;
mod import;
mod records;
mod table;
mod values;

pub use build::Columns;
pub use column::RawColumn;
pub use import::{Batches, batches, import_table};
pub use records::table as table_of;
pub use table::RawTable;
