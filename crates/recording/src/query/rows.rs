//! Rows of values as a table, CSV or JSON Lines.

use super::cell::Cell;
use super::show::BOLD;
use queuescope_report::json::{self, Line};
use serde_json::Map;
use std::io::{self, Write};

/// Bytes of a usual line of CSV.
const LINE: usize = 256;
/// Rows from which the widths of columns are computed.
const LOOKED_AT: usize = 1000;

/// The format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A table for people.
    Text,
    /// CSV with a header line.
    Csv,
    /// JSON Lines.
    Json,
}

/// Formats and writes rows.
pub(super) struct Table<'a> {
    names: Vec<String>,
    form: Form,
    out: &'a mut dyn Write,
    /// The first rows, until the widths are known.
    waiting: Vec<Vec<(String, bool)>>,
    widths: Vec<usize>,
}

impl<'a> Table<'a> {
    pub fn new(names: Vec<String>, form: Form, out: &'a mut dyn Write) -> Self {
        let widths = names.iter().map(String::len).collect();
        Self { names, form, out, waiting: Vec::new(), widths }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        match self.form {
            Form::Json => {
                let values: Map<_, _> = self.names.iter().cloned().zip(cells.iter().map(Cell::json)).collect();
                json::write_line(&Line::Row { values }, self.out)
            }
            Form::Csv => {
                if !self.names.is_empty() {
                    let names = std::mem::take(&mut self.names);
                    csv_line(names.iter().map(String::as_str), self.out)?;
                }
                let cells: Vec<_> = cells.iter().map(Cell::plain).collect();
                csv_line(cells.iter().map(String::as_str), self.out)
            }
            Form::Text => {
                let cells: Vec<_> = cells.iter().map(|cell| (cell.text(), cell.is_number())).collect();
                if self.names.is_empty() {
                    return self.write(&cells);
                }
                self.waiting.push(cells);
                if self.waiting.len() == LOOKED_AT { self.begin() } else { Ok(()) }
            }
        }
    }

    /// Writes the names and the rows that waited.
    fn begin(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        for row in &waiting {
            for (width, (text, _)) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(text.len());
            }
        }
        let is_number =
            |column: usize| waiting.first().and_then(|row| row.get(column)).is_some_and(|(_, number)| *number);
        let names: Vec<_> = std::mem::take(&mut self.names)
            .into_iter()
            .enumerate()
            .map(|(column, name)| (name, is_number(column)))
            .collect();
        write!(self.out, "{BOLD}")?;
        self.write(&names)?;
        write!(self.out, "{BOLD:#}")?;
        waiting.iter().try_for_each(|row| self.write(row))
    }

    fn write(&mut self, row: &[(String, bool)]) -> io::Result<()> {
        let mut text = String::new();
        for ((cell, is_number), width) in row.iter().zip(&self.widths) {
            let gap = if text.is_empty() { "" } else { "  " };
            text += &if *is_number { format!("{gap}{cell:>width$}") } else { format!("{gap}{cell:<width$}") };
        }
        writeln!(self.out, "{}", text.trim_end())
    }

    /// Writes what waits; returns where it was written.
    pub fn finish(mut self) -> io::Result<&'a mut dyn Write> {
        match self.form {
            Form::Text if !self.names.is_empty() => self.begin()?,
            Form::Csv if !self.names.is_empty() => csv_line(self.names.iter().map(String::as_str), self.out)?,
            _ => {}
        }
        Ok(self.out)
    }
}

fn csv_line<'a>(cells: impl Iterator<Item = &'a str>, out: &mut dyn Write) -> io::Result<()> {
    // Not to `out` itself: the writer would flush it at the end of each line.
    let mut writer = csv::WriterBuilder::new().buffer_capacity(LINE).from_writer(Vec::with_capacity(LINE));
    writer.write_record(cells)?;
    let line = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    out.write_all(&line)
}
