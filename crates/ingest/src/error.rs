//! What can go wrong before anything is read.

use queuescope_log::DnfError;
use queuescope_pcap::OpenError;
#[cfg(feature = "table")]
use queuescope_table::TableError;
use queuescope_text::TextError;
use std::io;

/// Why an input cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A capture cannot be opened, or is none.
    #[error(transparent)]
    Capture(#[from] OpenError),
    /// A table cannot be opened, or is none.
    #[cfg(feature = "table")]
    #[error(transparent)]
    Table(#[from] TableError),
    /// Standard input cannot be read.
    #[error("cannot read standard input")]
    StandardInput(#[source] io::Error),
    /// An expression means nothing.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// The system does not let a process wait for signals.
    #[error("cannot wait for signals")]
    Signals(#[source] io::Error),
}

/// What is wrong with an expression about packets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionError {
    /// It cannot be read; the error shows where in its text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Its normal form is too large.
    #[error(transparent)]
    Form(#[from] DnfError),
    /// It is about an attribute that is not known here.
    #[error("`{attribute}` cannot be asked of {of}: {why}")]
    Unknown {
        /// The attribute.
        attribute: String,
        /// What it was asked of.
        of: &'static str,
        /// Why it is not known.
        why: &'static str,
    },
}
