//! Departures as tables: CSV and Parquet in, Parquet out.
//!
//! A row is a packet that left a queue: flow, size, when it came, when it left, class. A switch's telemetry or a
//! simulator's log has these under names and units of its own; [`Columns`] and [`TimeUnit`] say which.
//!
//! - [`DepartureReader`]: rows of a file or a stream, one at a time, in bounded memory.
//! - [`DepartureWriter`]: departures to a Parquet file that DuckDB, pandas and polars open.
//! - [`CellWriter`]: the cells of a sweep to such a file.
//! - [`HopWriter`]: the telemetry of simulated packets to a Parquet file.
//! - [`BatchWriter`]: record batches of any columns to such a file.
//!
//! A row that cannot be read is skipped, counted and described in [`TableStats`]; a file that is broken in its
//! structure ends with a [`TableError`]. The heavy dependencies on Arrow and Parquet stay in this crate.

mod batches;
mod cells;
mod columns;
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
pub use reader::{DepartureReader, Format, Row, TableOptions};
pub use stats::{MalformedRow, Problem, TableStats};
pub use writer::{DepartureRow, DepartureWriter};
