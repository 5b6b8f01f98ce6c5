//! Departures as tables: CSV, Parquet and Arrow batches in, Parquet out.
//!
//! A row is a packet that left a queue: flow, size, enqueue and dequeue time, class. A switch's telemetry or a
//! simulator's log has these under its own names and units, which [`Columns`] and [`TimeUnit`] describe.
//!
//! - [`DepartureReader`]: reads rows of a file or a stream, one at a time, in bounded memory.
//! - [`DepartureWriter`]: writes departures to a Parquet file that DuckDB, pandas and polars can open.
//! - [`CellWriter`]: writes the cells of a sweep to a Parquet file.
//! - [`HopWriter`]: writes the telemetry of simulated packets to a Parquet file.
//! - [`BatchWriter`]: writes record batches of any columns to a Parquet file.
//!
//! A row that cannot be read is skipped, counted and described in [`TableStats`]. A file with a broken structure ends
//! with a [`TableError`]. The large dependencies on Arrow and Parquet are only in this crate.

mod arriving;
mod batches;
mod cells;
mod columns;
mod decoded;
mod error;
mod format;
mod hops;
mod number;
mod parquet;
mod reader;
mod source;
mod stamp;
mod stats;
mod text;
mod values;
mod writer;

pub use batches::BatchWriter;
pub use cells::{CellRow, CellWriter};
pub use columns::{Columns, ColumnsError, Field};
pub use error::TableError;
pub use hops::{HopRow, HopWriter, PacketRow};
pub use number::{TimeUnit, TimeUnitError};
pub use queuescope_unpack::Compression;
pub use reader::{DepartureReader, Format, PacketIdentity, Row, TableOptions};
pub use stats::{MalformedRow, Problem, TableStats};
pub use writer::{DepartureRow, DepartureWriter};
