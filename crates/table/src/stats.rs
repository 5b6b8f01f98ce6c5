//! Counts of rows that were skipped, rounded or out of order.

use crate::Field;
use std::fmt;

/// How many malformed rows are described; the others are only counted.
const DESCRIBED: usize = 10;

/// How many characters of a malformed value are kept.
const TEXT: usize = 60;

/// Counters of a read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Rows that were read.
    pub rows: u64,
    /// Rows that could not be read and were skipped.
    pub malformed: u64,
    /// The first of these rows.
    pub first_malformed: Vec<MalformedRow>,
    /// Rows whose packet left before the packet of an earlier row.
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

/// A malformed row: `t.csv: line 7: column 'size': '12x' is not a number`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedRow {
    /// The name of the file or stream.
    pub table: String,
    /// The unit of `number`: `line` (of a text file, the header being 1) or `row` (from 1).
    pub unit: &'static str,
    /// The number of the line or row.
    pub number: u64,
    /// The column's name in the table, or the names of the columns that form the flow; `None` if the whole row is
    /// wrong.
    pub column: Option<String>,
    /// Its value, truncated if it is long.
    pub text: String,
    /// What is wrong with the value.
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
    /// The value is missing.
    Missing,
    /// The value is not a number.
    NotANumber,
    /// The value begins like a date but does not continue like one, or has no time of day.
    NotATime,
    /// The value is not UTF-8 text.
    NotText,
    /// The number is negative.
    Negative,
    /// The number must be whole.
    NotWhole,
    /// The number is too large: times and sizes have 64 bits, classes have 8.
    TooLarge,
    /// The packet leaves before it enters.
    Backwards {
        /// When it entered, in nanoseconds.
        enqueued: u64,
        /// When it left, in nanoseconds.
        dequeued: u64,
    },
    /// The row has a different number of fields from the header.
    Fields {
        /// How many fields the row has.
        row: usize,
        /// How many fields the header has.
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

/// A value for a message: control characters are escaped, and long values truncated.
pub(crate) fn shown(value: &[u8]) -> String {
    // A character has at most four bytes, so the rest cannot matter.
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
