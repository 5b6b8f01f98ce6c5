//! Errors of a table as a whole.

use crate::Field;
use std::io;

/// A table that cannot be read or written. Each message says what failed, where, why, and what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file could not be opened.
    #[error("{table}: cannot open: {error}")]
    Open {
        /// The file.
        table: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The path names a directory.
    #[error("{table}: is a directory; name a CSV or Parquet file in it")]
    Directory {
        /// The directory.
        table: String,
    },
    /// The file is empty.
    #[error("{table}: is empty; departures need a header line that names the columns, or a Parquet file")]
    Empty {
        /// The file.
        table: String,
    },
    /// A later version of the program wrote it.
    #[error("{table}: is of format '{found}', and this version of queuescope reads up to {known}; use a newer version")]
    Format {
        /// The file.
        table: String,
        /// Its format.
        found: String,
        /// The latest format that can be read.
        known: u32,
    },
    /// The file has columns but no rows.
    #[error("{table}: has a header but no rows; was it cut short, or is it still being written?")]
    NoRows {
        /// The file.
        table: String,
    },
    /// The first line cannot be a header.
    #[error("{table}: line 1 is not a header: {why}")]
    Header {
        /// The file.
        table: String,
        /// What is wrong with it.
        why: String,
    },
    /// A column is missing.
    #[error(
        "{table}: there is no column '{wanted}' for {field}; the columns are {} (map names with --columns {field}=NAME,...)",
        listed(.there)
    )]
    MissingColumn {
        /// The file.
        table: String,
        /// The field that the column would contain.
        field: Field,
        /// The name that it should have.
        wanted: String,
        /// The names in the table.
        there: Vec<String>,
    },
    /// Several columns have the same name.
    #[error(
        "{table}: there is more than one column '{wanted}' for {field} \
         (rename one, or map another with --columns {field}=NAME,...)"
    )]
    AmbiguousColumn {
        /// The file.
        table: String,
        /// The field that the column would contain.
        field: Field,
        /// The common name.
        wanted: String,
    },
    /// A column has a type that cannot represent its field.
    #[error("{table}: column '{column}' is of type {kind}, which cannot be {field}; {field} is {}", expected(*.field))]
    ColumnType {
        /// The file.
        table: String,
        /// The column.
        column: String,
        /// Its Arrow type.
        kind: String,
        /// The field that it should contain.
        field: Field,
    },
    /// A row is too long.
    #[error("{table}: the row that starts at line {line} is longer than {limit} bytes; is a quote left open?")]
    RowTooLong {
        /// The file.
        table: String,
        /// The line in which the row starts.
        line: u64,
        /// The longest row that can be read, in bytes.
        limit: u64,
    },
    /// The input failed: a read error, or a compressed stream that is damaged or cut short.
    #[error("{table}: reading stopped after line {line}, at or before byte {offset} of the input: {error}{}", hint(.error))]
    Read {
        /// The file.
        table: String,
        /// The last line that was read.
        line: u64,
        /// How many bytes of the input were read so far, before decompression.
        offset: u64,
        /// The error of the system or the decompressor.
        error: io::Error,
    },
    /// A Parquet file is inside a compressed stream, or comes from a pipe.
    #[error("{table}: is Parquet {how}; Parquet is read from its end, so {cure}")]
    ParquetStream {
        /// The file.
        table: String,
        /// How it arrived.
        how: String,
        /// What to do.
        cure: &'static str,
    },
    /// A Parquet file is damaged, or of an unsupported kind.
    #[error("{table}: cannot read Parquet: {place}: {why}")]
    Parquet {
        /// The file.
        table: String,
        /// Where: the footer, or a row group and a row.
        place: String,
        /// The error of the decoder.
        why: String,
    },
    /// The library that hands over Arrow batches failed.
    #[error("{table}: reading stopped after row {rows}: {why}")]
    Batches {
        /// The table.
        table: String,
        /// How many rows were read before.
        rows: u64,
        /// The error of that library.
        why: String,
    },
    /// A Parquet file could not be written.
    #[error("cannot write Parquet after {rows} rows: {why}")]
    Write {
        /// How many rows were written before.
        rows: u64,
        /// The error of the encoder or the system.
        why: String,
    },
    /// A time is too large for a Parquet timestamp.
    #[error(
        "cannot write Parquet: packet {packet} has the time {nanos} ns, and timestamps end at 2^63 - 1 ns (year 2262)"
    )]
    WriteTime {
        /// The packet's number.
        packet: u64,
        /// Its time, in nanoseconds.
        nanos: u64,
    },
}

fn listed(names: &[String]) -> String {
    const MOST: usize = 40;
    let mut shown: Vec<_> =
        names.iter().take(MOST).map(|name| format!("'{}'", crate::stats::shown(name.as_bytes()))).collect();
    if names.len() > MOST {
        shown.push(format!("and {} more", names.len() - MOST));
    }
    shown.join(", ")
}

fn expected(field: Field) -> &'static str {
    match field {
        Field::Flow => "text, bytes or a whole number",
        Field::Size => "a number of bytes",
        Field::Enqueued | Field::Dequeued => "a number in the unit of --time-unit, a timestamp or a duration",
        Field::Class => "a number from 0 to 255",
        Field::IpId | Field::TcpSeq | Field::TcpAck | Field::PayloadLength => "a number of 32 bits",
    }
}

fn hint(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::UnexpectedEof { " (the file is cut short)" } else { "" }
}
