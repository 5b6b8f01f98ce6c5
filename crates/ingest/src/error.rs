//! Errors of opening an input.

use queuescope_log::DnfError;
use queuescope_pcap::OpenError;
#[cfg(feature = "table")]
use queuescope_table::TableError;
use queuescope_text::TextError;
use std::io;

/// Why an input cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be opened, or is not a capture.
    #[error(transparent)]
    Capture(#[from] OpenError),
    /// A file cannot be opened, or is not a table of departures.
    #[cfg(feature = "table")]
    #[error(transparent)]
    Table(#[from] TableError),
    /// Standard input cannot be read.
    #[error("cannot read standard input")]
    StandardInput(#[source] io::Error),
    /// An expression is invalid.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// The signal handlers cannot be installed.
    #[error("cannot wait for signals")]
    Signals(#[source] io::Error),
}

/// Why an expression about packets is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionError {
    /// It cannot be parsed. The error points at the place in its text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Its normal form is too large.
    #[error(transparent)]
    Form(#[from] DnfError),
    /// It uses an attribute that is not known for these packets.
    #[error("`{attribute}` cannot be used for {of}: {why}")]
    Unknown {
        /// The attribute.
        attribute: String,
        /// The kind of packets, such as those of a table.
        of: &'static str,
        /// Why it is not known.
        why: &'static str,
    },
}
