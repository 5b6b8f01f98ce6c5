//! [`DepartureReader`]: reads rows of a table of any format, one at a time.

use crate::arriving::ArrowRows;
use crate::number::RoundedNumber;
use crate::parquet::{MAGIC, ParquetRows};
use crate::source::first_bytes;
use crate::stats::{Fault, shown};
use crate::text::TextRows;
use crate::{Columns, Compression, Field, MalformedRow, Problem, TableError, TableStats, TimeUnit};
use arrow_array::RecordBatchReader;
use queuescope_wire::Nanos;
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// How to read a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// The column of each field.
    pub columns: Columns,
    /// The unit of times whose column does not state one.
    pub time_unit: TimeUnit,
}

/// A packet that left a queue, as described by a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// The flow of the packet.
    pub flow: &'a str,
    /// Its size in bytes.
    pub size: u64,
    /// When it entered the queue.
    pub enqueued: Nanos,
    /// When it left the queue; never before it entered.
    pub dequeued: Nanos,
    /// Its class of service; 0 if the table has none.
    pub class: u8,
    /// What distinguishes it from others of its flow, as far as columns for it were named.
    pub identity: PacketIdentity,
}

/// What distinguishes a packet from others of its flow, and no router changes; 0 what is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketIdentity {
    /// The identification in its IPv4 header, or in the fragment header of IPv6.
    pub ip_id: u32,
    /// Its TCP sequence number.
    pub tcp_seq: u32,
    /// Its TCP acknowledgement number.
    pub tcp_ack: u32,
    /// Bytes behind its transport header.
    pub payload_length: u32,
}

impl PacketIdentity {
    /// From the values of [`Field::IDENTITY`].
    pub(crate) fn of(values: [u64; 4]) -> Result<Self, (Field, Problem)> {
        let wide = |at: usize| u32::try_from(values[at]).map_err(|_| (Field::IDENTITY[at], Problem::TooLarge));
        Ok(Self { ip_id: wide(0)?, tcp_seq: wide(1)?, tcp_ack: wide(2)?, payload_length: wide(3)? })
    }
}

/// The rows of a CSV or Parquet table, or of Arrow batches, in their order and in bounded memory.
pub struct DepartureReader {
    table: String,
    columns: Columns,
    format: Format,
    body: TableRows,
    flow: String,
    latest: u64,
    stats: TableStats,
}

enum TableRows {
    Text(Box<TextRows>),
    Parquet(Box<ParquetRows>),
    Arrow(Box<ArrowRows>),
    Ended { input_read: u64 },
}

impl DepartureReader {
    /// Opens a file: Parquet if it begins with `PAR1`, otherwise text, which is decompressed if it is gzip, zstd or xz.
    #[expect(clippy::disallowed_methods, reason = "this crate is a door: it opens files")]
    pub fn open(path: &Path, options: TableOptions) -> Result<Self, TableError> {
        let table = path.display().to_string();
        let open = |error| TableError::Open { table: table.clone(), error };
        let mut file = File::open(path).map_err(open)?;
        let kind = file.metadata().map_err(open)?;
        if kind.is_dir() {
            return Err(TableError::Directory { table });
        }
        // Only a file that can be reread is inspected first. A named pipe must be text, and the text reader reports
        // Parquet.
        if kind.is_file() {
            let start = first_bytes(&mut file, MAGIC.len()).map_err(open)?;
            file.seek(SeekFrom::Start(0)).map_err(open)?;
            if start == MAGIC {
                let rows = ParquetRows::open(file, &table, &options.columns, options.time_unit)?;
                return Ok(Self::new(&table, options.columns, Format::Parquet, TableRows::Parquet(Box::new(rows))));
            }
        }
        Self::from_csv(file, &table, options)
    }

    /// Reads a Parquet file in memory.
    pub fn from_parquet(bytes: Vec<u8>, name: &str, options: TableOptions) -> Result<Self, TableError> {
        if bytes.is_empty() {
            return Err(TableError::Empty { table: name.to_owned() });
        }
        let rows = ParquetRows::open(bytes::Bytes::from(bytes), name, &options.columns, options.time_unit)?;
        Ok(Self::new(name, options.columns, Format::Parquet, TableRows::Parquet(Box::new(rows))))
    }

    /// Reads text from a stream, such as standard input; `name` is its name in messages.
    pub fn from_csv(source: impl Read + Send + 'static, name: &str, options: TableOptions) -> Result<Self, TableError> {
        let TableOptions { columns, time_unit } = options;
        let (rows, separator, compression) = TextRows::open(source, name, &columns, time_unit)?;
        Ok(Self::new(name, columns, Format::Text { separator, compression }, TableRows::Text(Box::new(rows))))
    }

    /// Reads Arrow batches that another library hands over, one at a time; `name` is the name of the table in messages.
    ///
    /// ```
    /// use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, StringArray, UInt64Array};
    /// use queuescope_table::{DepartureReader, TableOptions};
    /// use std::sync::Arc;
    ///
    /// let numbers = |value: u64| -> ArrayRef { Arc::new(UInt64Array::from(vec![value])) };
    /// let flow: ArrayRef = Arc::new(StringArray::from(vec!["a call"]));
    /// let columns = [("flow", flow), ("size", numbers(200)), ("enqueued", numbers(10)), ("dequeued", numbers(30))];
    /// let batch = RecordBatch::try_from_iter(columns)?;
    /// let schema = batch.schema();
    /// let batches = RecordBatchIterator::new([Ok(batch)], schema);
    /// let mut reader = DepartureReader::from_batches(Box::new(batches), "departures", TableOptions::default())?;
    /// let row = reader.next_row()?.ok_or("a row")?;
    /// assert_eq!((row.flow, row.size, row.dequeued.0), ("a call", 200, 30));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails if a column is missing, or has a type that cannot represent its field.
    pub fn from_batches(
        batches: Box<dyn RecordBatchReader + Send>,
        name: &str,
        options: TableOptions,
    ) -> Result<Self, TableError> {
        let rows = ArrowRows::open(batches, name, &options.columns, options.time_unit)?;
        Ok(Self::new(name, options.columns, Format::Arrow, TableRows::Arrow(Box::new(rows))))
    }

    fn new(table: &str, columns: Columns, format: Format, body: TableRows) -> Self {
        let stats = TableStats::default();
        Self { table: table.to_owned(), columns, format, body, flow: String::new(), latest: 0, stats }
    }

    /// The next valid row. Invalid rows are skipped and counted. After an error there are no more rows.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, TableError> {
        loop {
            let step = match &mut self.body {
                TableRows::Text(rows) => rows.next(&mut self.flow),
                TableRows::Parquet(rows) => rows.next(&mut self.flow),
                TableRows::Arrow(rows) => rows.next(&mut self.flow),
                TableRows::Ended { .. } => return Ok(None),
            };
            match step {
                Ok(NextRow::Row(values)) => return Ok(Some(self.row(values))),
                Ok(NextRow::Bad(fault)) => self.skip(fault),
                Ok(NextRow::End) => {
                    self.end();
                    let TableStats { rows, malformed, .. } = self.stats;
                    return if rows + malformed > 0 {
                        Ok(None)
                    } else {
                        Err(TableError::NoRows { table: self.table.clone() })
                    };
                }
                Err(error) => {
                    self.end();
                    return Err(error);
                }
            }
        }
    }

    /// The format of the table: `CSV`, `CSV separated by ';' (gzip)`, `Parquet`, `Arrow`.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How many bytes of the input were read so far, before decompression; for Parquet, in proportion to the rows; of Arrow batches, how many rows.
    pub fn input_read(&self) -> u64 {
        match &self.body {
            TableRows::Text(rows) => rows.input_read(),
            TableRows::Parquet(rows) => rows.input_read(),
            TableRows::Arrow(rows) => rows.rows_read(),
            TableRows::Ended { input_read } => *input_read,
        }
    }

    /// Counts of rows read and skipped so far.
    pub fn stats(&self) -> &TableStats {
        &self.stats
    }

    /// The table's name in messages.
    pub fn name(&self) -> &str {
        &self.table
    }

    fn row(&mut self, values: Values) -> Row<'_> {
        let Values { size, enqueued, dequeued, class, identity, rounded } = values;
        self.stats.rows += 1;
        self.stats.rounded += u64::from(rounded);
        self.stats.out_of_order += u64::from(dequeued < self.latest);
        self.latest = self.latest.max(dequeued);
        Row { flow: &self.flow, size, enqueued: Nanos(enqueued), dequeued: Nanos(dequeued), class, identity }
    }

    fn skip(&mut self, fault: Fault) {
        let Fault { number, field, text, problem } = fault;
        let (table, columns, format) = (&self.table, &self.columns, self.format);
        self.stats.skip(|| MalformedRow {
            table: table.clone(),
            unit: format.row_unit(),
            number,
            column: field.map(|field| columns.name(field).to_owned()),
            text: shown(&text),
            problem,
        });
    }

    fn end(&mut self) {
        self.body = TableRows::Ended { input_read: self.input_read() };
    }
}

impl fmt::Debug for DepartureReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, format, stats, .. } = self;
        f.debug_struct("DepartureReader")
            .field("table", table)
            .field("format", format)
            .field("stats", stats)
            .finish_non_exhaustive()
    }
}

/// The format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines with fields between separators.
    Text {
        /// The separator between the fields.
        separator: u8,
        /// The compression of the text.
        compression: Compression,
    },
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow, in memory.
    Arrow,
}

impl Format {
    fn row_unit(self) -> &'static str {
        match self {
            Self::Text { .. } => "line",
            Self::Parquet | Self::Arrow => "row",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (separator, compression) = match self {
            Self::Text { separator, compression } => (separator, compression),
            Self::Parquet => return f.write_str("Parquet"),
            Self::Arrow => return f.write_str("Arrow"),
        };
        match separator {
            b',' => f.write_str("CSV")?,
            b'\t' => f.write_str("TSV")?,
            other => write!(f, "CSV separated by '{}'", char::from(*other))?,
        }
        match compression {
            Compression::None => Ok(()),
            packed => write!(f, " ({packed})"),
        }
    }
}

/// The next element of a table.
pub(crate) enum NextRow {
    Row(Values),
    Bad(Fault),
    End,
}

/// A row's numbers, in bytes and nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values {
    size: u64,
    enqueued: u64,
    dequeued: u64,
    class: u8,
    identity: PacketIdentity,
    rounded: bool,
}

impl Values {
    /// Checks that the numbers are consistent.
    pub fn checked(
        size: u64,
        enqueued: RoundedNumber,
        dequeued: RoundedNumber,
        class: u8,
        identity: PacketIdentity,
    ) -> Result<Self, (Field, Problem)> {
        let rounded = enqueued.rounded || dequeued.rounded;
        let (enqueued, dequeued) = (enqueued.value, dequeued.value);
        if dequeued < enqueued {
            return Err((Field::Dequeued, Problem::Backwards { enqueued, dequeued }));
        }
        Ok(Self { size, enqueued, dequeued, class, identity, rounded })
    }
}
