//! CSV and similar formats: a header line, then rows. The header reveals the separator.

use crate::columns::ColumnPositions;
use crate::number::{RoundedNumber, TimeUnit, whole};
use crate::reader::{NextRow, PacketIdentity, Values};
use crate::source::{BytesRead, LONGEST_ROW, TableSource};
use crate::stamp::time;
use crate::stats::{Fault, Problem};
use crate::{Columns, Field, TableError};
use csv::{ByteRecord, Reader, ReaderBuilder};
use queuescope_unpack::Compression;
use std::io::{self, Read};

/// The separators that are tried, the likeliest first.
const SEPARATORS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// The rows of a text table.
pub(crate) struct TextRows {
    table: String,
    reader: Reader<TableSource>,
    progress: BytesRead,
    record: ByteRecord,
    places: ColumnPositions,
    fields: usize,
    unit: TimeUnit,
    line: u64,
}

impl TextRows {
    /// Reads the header. Also returns the separator and the compression.
    pub fn open(
        raw: impl Read + Send + 'static,
        table: &str,
        columns: &Columns,
        unit: TimeUnit,
    ) -> Result<(Self, u8, Compression), TableError> {
        let no_input = |offset| move |error| TableError::Read { table: table.to_owned(), line: 0, offset, error };
        let (mut source, compression, progress) = TableSource::open(raw).map_err(no_input(0))?;
        let start = beginning(&mut source).map_err(no_input(progress.bytes()))?;
        match start.as_slice() {
            [] => return Err(TableError::Empty { table: table.to_owned() }),
            [b'P', b'A', b'R', b'1', ..] => return Err(parquet_in_stream(table, compression)),
            _ => {}
        }
        let (separator, names) = header(&start, table, columns)?;
        let places = ColumnPositions::find(columns, &names, table)?;
        let reader = ReaderBuilder::new()
            .delimiter(separator)
            .flexible(true)
            .has_headers(true)
            .buffer_capacity(1 << 16)
            .from_reader(source.put_back(start));
        let record = ByteRecord::new();
        let rows =
            Self { table: table.to_owned(), reader, progress, record, places, fields: names.len(), unit, line: 1 };
        Ok((rows, separator, compression))
    }

    /// The next row; writes its flow's name to `flow`.
    pub fn next(&mut self, flow: &mut String) -> Result<NextRow, TableError> {
        self.reader.get_mut().allow_row();
        let start = self.reader.position().line();
        match self.reader.read_byte_record(&mut self.record) {
            Ok(false) => return Ok(NextRow::End),
            Ok(true) => {}
            Err(error) => return Err(self.broken(error, start)),
        }
        self.line = self.record.position().map_or(self.line, csv::Position::line);
        Ok(match self.values(flow) {
            Ok(values) => NextRow::Row(values),
            Err((field, problem)) => {
                let text = self.text(field);
                NextRow::Bad(Fault { number: self.line, field, text, problem })
            }
        })
    }

    /// How many bytes of the input were read, before decompression.
    pub fn input_read(&self) -> u64 {
        self.progress.bytes()
    }

    fn values(&self, flow: &mut String) -> Result<Values, (Option<Field>, Problem)> {
        let record = &self.record;
        // Some writers add empty fields at the end. Other additional fields mean that a value with a separator shifted
        // the columns.
        if record.len() < self.fields || record.iter().skip(self.fields).any(|field| !field.is_empty()) {
            return Err((None, Problem::Fields { row: record.len(), header: self.fields }));
        }
        let value = |field, index: usize| record.get(index).ok_or((Some(field), Problem::Missing));
        let moment = |field, index| -> Result<RoundedNumber, _> {
            time(value(field, index)?, self.unit.power()).map_err(|problem| (Some(field), problem))
        };
        flow.clear();
        for (number, &index) in self.places.flow.iter().enumerate() {
            let part = value(Field::Flow, index)?;
            let part = std::str::from_utf8(part).map_err(|_| (Some(Field::Flow), Problem::NotText))?;
            if number > 0 {
                flow.push(' ');
            }
            flow.push_str(part);
        }
        if flow.trim().is_empty() {
            return Err((Some(Field::Flow), Problem::Missing));
        }
        let size = value(Field::Size, self.places.size)?;
        let size = whole(size).map_err(|problem| (Some(Field::Size), problem))?;
        let enqueued = moment(Field::Enqueued, self.places.enqueued)?;
        let dequeued = moment(Field::Dequeued, self.places.dequeued)?;
        let class = match self.places.class {
            Some(index) => {
                let class = whole(value(Field::Class, index)?).map_err(|problem| (Some(Field::Class), problem))?;
                u8::try_from(class).map_err(|_| (Some(Field::Class), Problem::TooLarge))?
            }
            None => 0,
        };
        let mut identity = [0; 4];
        for (place, field) in Field::IDENTITY.into_iter().enumerate() {
            if let Some(index) = self.places.identity[place] {
                identity[place] = whole(value(field, index)?).map_err(|problem| (Some(field), problem))?;
            }
        }
        PacketIdentity::of(identity)
            .and_then(|identity| Values::checked(size, enqueued, dequeued, class, identity))
            .map_err(|(field, problem)| (Some(field), problem))
    }

    /// The value that has a fault.
    fn text(&self, field: Option<Field>) -> Vec<u8> {
        let index = match field {
            None => return Vec::new(),
            Some(Field::Flow) => {
                let parts: Vec<_> = self.places.flow.iter().filter_map(|&index| self.record.get(index)).collect();
                return parts.join(&b' ');
            }
            Some(Field::Size) => Some(self.places.size),
            Some(Field::Enqueued) => Some(self.places.enqueued),
            Some(Field::Dequeued) => Some(self.places.dequeued),
            Some(Field::Class) => self.places.class,
            Some(field) => {
                let place = Field::IDENTITY.iter().position(|other| *other == field);
                place.and_then(|place| self.places.identity[place])
            }
        };
        index.and_then(|index| self.record.get(index)).unwrap_or_default().to_vec()
    }

    fn broken(&self, error: csv::Error, line: u64) -> TableError {
        let table = self.table.clone();
        if self.reader.get_ref().overrun() {
            return TableError::RowTooLong { table, line, limit: LONGEST_ROW };
        }
        let error = match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            other => io::Error::other(format!("{other:?}")),
        };
        TableError::Read { table, line: self.line, offset: self.input_read(), error }
    }
}

/// The text up to the end of the first line, or to the longest possible header. It stops there so that a live pipe is
/// analysed as it arrives.
fn beginning(source: &mut TableSource) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    let mut buffer = [0; 8192];
    while start.len() < LONGEST_ROW as usize - buffer.len() {
        let count = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        start.extend_from_slice(&buffer[..count]);
        if ends_header(&start) {
            break;
        }
    }
    Ok(start)
}

/// Whether there is a line end outside quotes.
fn ends_header(start: &[u8]) -> bool {
    let mut quoted = false;
    start.iter().any(|&byte| {
        quoted ^= byte == b'"';
        byte == b'\n' && !quoted
    })
}

/// The separator under which the first line has most of the mapped columns (then most columns), and the names.
fn header(start: &[u8], table: &str, columns: &Columns) -> Result<(u8, Vec<String>), TableError> {
    let error = |why: &str| TableError::Header { table: table.to_owned(), why: why.to_owned() };
    if matches!(start, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        return Err(error("it is UTF-16; save the table as UTF-8"));
    }
    if start.iter().take_while(|&&byte| byte != b'\n').any(|&byte| byte == 0) {
        return Err(error("it has zero bytes, so this is neither CSV nor Parquet"));
    }
    let mut best: Option<((usize, usize), u8, Vec<String>)> = None;
    for separator in SEPARATORS {
        let mut reader = ReaderBuilder::new().delimiter(separator).flexible(true).has_headers(false).from_reader(start);
        let mut record = ByteRecord::new();
        if !reader.read_byte_record(&mut record).unwrap_or(false) {
            continue;
        }
        let names = record.iter().map(|name| std::str::from_utf8(name).map(|name| name.trim().to_owned()));
        let names: Vec<String> = names.collect::<Result<_, _>>().map_err(|_| error("it is not UTF-8 text"))?;
        let score = (ColumnPositions::matches(columns, &names), names.len());
        if best.as_ref().is_none_or(|(other, ..)| score > *other) {
            best = Some((score, separator, names));
        }
    }
    let (_, separator, names) = best.ok_or_else(|| TableError::Empty { table: table.to_owned() })?;
    Ok((separator, names))
}

fn parquet_in_stream(table: &str, compression: Compression) -> TableError {
    let (how, cure) = match compression {
        Compression::None => ("from a pipe".to_owned(), "save it and name the file"),
        packed => (format!("inside {packed}"), "decompress it first (Parquet compresses its own pages)"),
    };
    TableError::ParquetStream { table: table.to_owned(), how, cure }
}
