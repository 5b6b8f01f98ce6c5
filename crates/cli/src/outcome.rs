//! How a run ends: what it prints, and whether its input was whole.

use anyhow::{Context, Result, anyhow};
use std::io::{self, BufWriter, Write};

/// Whether the input was whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was.
    Whole,
    /// It ended early, or parts of it could not be read, for this reason; what could be is in the report.
    Damaged(String),
    /// A command that was run ended with this status, as shells have it.
    Ended(u8),
}

impl Outcome {
    /// By the damage that was found, if any.
    pub fn of(damage: Option<String>) -> Self {
        damage.map_or(Self::Whole, Self::Damaged)
    }
}

/// Prints to standard output: as JSON or, with styles where they belong, as text. That nobody reads on is no error.
///
/// # Errors
/// If it cannot be written.
pub fn print(
    as_json: bool,
    json: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let result = if as_json {
        let mut out = BufWriter::new(io::stdout().lock());
        json(&mut out).and_then(|()| out.flush())
    } else {
        let mut out = anstream::stdout().lock();
        text(&mut out).and_then(|()| out.flush())
    };
    told(result)
}

/// What became of writing to standard output. That nobody reads on is no error.
///
/// # Errors
/// If it cannot be written.
pub fn told(result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// What two things gave that are both done whatever becomes of the other.
///
/// # Errors
/// If one went wrong; both are told if both did.
pub fn both<A, B>(one: Result<A>, other: Result<B>) -> Result<(A, B)> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(error), Err(other)) => Err(anyhow!("{error:#}; and {other:#}")),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    }
}
