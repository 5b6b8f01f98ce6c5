//! What reading a table skipped, rounded and found out of order.

use crate::Field;
use std::fmt;

/// How many malformed rows are described; the rest are only counted.
const DESCRIBED: usize = 10;

/// The longest part of a malformed value that is kept, in characters.
const TEXT: usize = 60;

/// Counters of a read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Rows that were read.
    pub rows: u64,
    /// Rows that could not be read and were skipped.
    pub malformed: u64,
    /// The first of those.
    pub first_malformed: Vec<MalformedRow>,
    /// Rows whose packet left before one that an earlier row told of.
    pub out_of_order: u64,
    /// Rows with a time finer than a nanosecond, rounded to the nearest.
    pub rounded: u64,
}

impl TableStats {
    /// Counts a malformed row, and keeps it if it is among the first.
    pub(crate) fn skip(&mut self, row: impl FnOnce() -> MalformedRow) {
        self.malformed += 1;
        if self.first_malformed.len() < DESCRIBED {
            self.first_malformed.push(row());
        }
    }
}

/// A row that could not be read: `t.csv: line 7: column 'size': '12x' is not a number`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedRow {
    /// The file, or what stands for it.
    pub table: String,
    /// What `number` counts: `line` (of a text file, the header being 1) or `row` (from 1).
    pub unit: &'static str,
    /// Which one.
    pub number: u64,
    /// The column's name in the table, or the columns' that make the flow; none if the whole row is wrong.
    pub column: Option<String>,
    /// The value there, cut if it is long.
    pub text: String,
    /// What is wrong with it.
    pub problem: Problem,
}

impl fmt::Display for MalformedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, unit, number, column, text, problem } = self;
        write!(f, "{table}: {unit} {number}: ")?;
        if let Some(column) = column {
            write!(f, "column '{column}': ")?;
        }
        match problem {
            Problem::Missing | Problem::Fields { .. } => write!(f, "{problem}"),
            _ => write!(f, "'{text}' {problem}"),
        }
    }
}

/// What is wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// There is no value.
    Missing,
    /// The value is not a number.
    NotANumber,
    /// The value begins as a date and does not go on as one, or has no time of day.
    NotATime,
    /// The value is not UTF-8 text.
    NotText,
    /// The number is below zero.
    Negative,
    /// The number should be whole.
    NotWhole,
    /// The number does not fit: times and sizes in 64 bits, classes in 8.
    TooLarge,
    /// The packet leaves before it comes.
    Backwards {
        /// When it came, in nanoseconds.
        enqueued: u64,
        /// When it left, in nanoseconds.
        dequeued: u64,
    },
    /// The row has another number of fields than the header.
    Fields {
        /// In the row.
        row: usize,
        /// In the header.
        header: usize,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no value"),
            Self::NotANumber => f.write_str("is not a number"),
            Self::NotATime => f.write_str("is not a date with a time of day, like 2024-05-06T07:08:09.123Z"),
            Self::NotText => f.write_str("is not UTF-8 text"),
            Self::Negative => f.write_str("is negative"),
            Self::NotWhole => f.write_str("is not a whole number"),
            Self::TooLarge => f.write_str("is too large"),
            Self::Backwards { enqueued, dequeued } => {
                let early = enqueued.saturating_sub(*dequeued);
                write!(f, "is {early} ns before the packet entered the queue")
            }
            Self::Fields { row, header } => {
                write!(
                    f,
                    "the row has {row} fields where the header has {header} (a separator inside a value needs quotes)"
                )
            }
        }
    }
}

/// A value as it is shown in a description: control characters escaped, and cut if it is long.
pub(crate) fn shown(value: &[u8]) -> String {
    // A character is at most four bytes long, so the rest need not be looked at.
    let start = &value[..value.len().min(TEXT * 4 + 4)];
    let text = String::from_utf8_lossy(start);
    let mut shown = String::new();
    for c in text.chars().take(TEXT) {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    if text.chars().nth(TEXT).is_some() {
        shown.push('…');
    }
    shown
}

/// A row's fault, before the reader adds the names of file and column.
#[derive(Debug)]
pub(crate) struct Fault {
    pub number: u64,
    pub field: Option<Field>,
    pub text: Vec<u8>,
    pub problem: Problem,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_short_and_harmless() {
        assert_eq!(shown(b"12x"), "12x");
        assert_eq!(shown(b"a\n\x1b[31m"), "a\\n\\u{1b}[31m");
        assert_eq!(shown(&[0xff, b'a']), "\u{fffd}a");
        assert_eq!(shown("ü".repeat(500).as_bytes()), format!("{}…", "ü".repeat(TEXT)));
    }
}
